"""A store of the published peer opens here, and a store of ours opens there: the peer itself says so."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raddle.model.memory.artifact import Artifact, ArtifactIndex, decode_index, encode_index
from raddle.model.memory.entry import ContextEntry, Provenance, decode_entry, encode_entry
from raddle.model.memory.handoff import Evidence, Handoff, decode_handoff, encode_handoff
from raddle.model.memory.marker import Marker, StorePlace, decode_marker, encode_marker
from raddle.model.memory.memory_text import FrontMatter, MemoryText, format_memory, parse_memory
from raddle.model.memory.project import Project, decode_project, encode_project
from raddle.model.memory.repo_layout import (
    ATTRIBUTES,
    ATTRIBUTES_FILE,
    PEER_MARKER_FILE,
    PROJECT_FILE,
    artifact_file,
    entry_file,
    handoff_file,
    index_file,
    memory_file,
    place_of,
    run_file,
    summary_file,
)
from raddle.model.memory.run import Run, Stint, decode_run, encode_run
from tests.peer_program import peer_python

pytestmark = pytest.mark.soak

RUN_ID, ENTRY_ID = "01M8PZKM3KMAB0SYRHJ485PAMY", "01M8PZKM3QH82B3EHB38JW5D7M"
WHEN = "2026-11-30T19:41:16.226877Z"
SHA256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

WRITES = """
import sys
from pathlib import Path
from redthread.hostconfig import HostConfig, StoreRef, write_host_config
from redthread.models import Handoff
from redthread.store.local import LocalStore
root = Path(sys.argv[1])
store = LocalStore.init(root / "store", "my-project", ["build", "test"], name="My: pröject")
run = store.start_run()
store.log(run.run_id, "build", "metric", payload={"x": 1.5, "y": [None, {"z": "ü"}]}, tags=["a"], agent="claude")
(root / "conf.txt").write_text("hello\\n")
store.add_artifact(run.run_id, "build", root / "conf.txt", "config")
store.set_summary(run.run_id, "build", "# Sum\\n")
store.publish_handoff(Handoff(from_phase="build", run_id=run.run_id, headline="h", key_results={"a": {"b": [1]}}))
store.memory_write("notes", "dir/key.md", "# Body\\n", description="a: b", tags=["z", "a"])
store.memory_write("notes", "plain", "no front matter\\n")
write_host_config(root, HostConfig(store=StoreRef(mode="worktree", path="./store", branch="b")))
"""

READS = """
import json, sys
from pathlib import Path
from redthread.hostconfig import read_host_config
from redthread.store.local import LocalStore
root = Path(sys.argv[1])
store = LocalStore(root)
(run_id,) = store.list_runs()
run = store.get_run(run_id)
(entry,) = store.read_entries(run_id)
artifact, path = store.resolve_artifact(run_id, "conf")
handoff = store.get_handoff(run_id, "build")
print(json.dumps({
    "phases": store.manifest.phases, "publish": store.manifest.publish, "name": store.manifest.name,
    "status": run.status, "nodes": [n.node_id for n in run.nodes], "current": store.current_run_id(),
    "payload": entry.payload, "tags": entry.tags, "bytes": path.read_text(),
    "summary": store.get_summary(run_id, "build"),
    "headline": handoff.headline, "results": handoff.key_results,
    "memory": store.memory_index(), "hits": [h["match"] for h in store.memory_search("body")],
    "branch": read_host_config(root).store.branch,
}))
"""


def peer(pytestconfig: pytest.Config, script: str, folder: Path) -> str:
    """What the peer prints when it runs `script` on a folder."""
    python = peer_python(pytestconfig)
    return subprocess.run(
        [python, "-c", script, str(folder)], check=True, capture_output=True, text=True, timeout=60
    ).stdout


def test_a_store_of_the_peer_comes_back_to_the_byte(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    codecs: dict[str, tuple[Callable[[bytes], Any], Callable[[Any, bytes], bytes]]] = {
        "project": (decode_project, encode_project),
        "run": (decode_run, encode_run),
        "entry": (decode_entry, lambda value, old: encode_entry(value)),
        "index": (decode_index, lambda value, old: encode_index(value)),
        "handoff": (decode_handoff, lambda value, old: encode_handoff(value)),
        "memory": (
            lambda data: parse_memory(data.decode()),
            lambda value, old: format_memory(value).encode(),
        ),
    }
    peer(pytestconfig, WRITES, tmp_path)
    seen: set[str] = set()
    store = tmp_path / "store"
    for file in sorted(
        path for path in store.rglob("*") if path.is_file() and ".git/" not in path.as_posix()
    ):
        place, data = place_of(file.relative_to(store).as_posix()), file.read_bytes()
        seen.add(place.kind)
        if place.kind in codecs:
            decode, encode = codecs[place.kind]
            assert encode(decode(data), data).rstrip(b"\n") == data.rstrip(b"\n")
    assert seen == {*codecs, "summary", "artifact", "attributes", "other"}
    assert decode_marker((tmp_path / PEER_MARKER_FILE).read_bytes()).store.branch == "b"


def test_a_store_of_ours_opens_there(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    provenance = Provenance(node_id="a1b2c3d4", thread_id="T-1", message_id="m")
    entry = ContextEntry(
        entry_id=ENTRY_ID,
        run_id=RUN_ID,
        phase="build",
        type="note",
        ts=WHEN,
        provenance=provenance,
        payload={"t": "ü"},
        tags=("a",),
    )
    uri = artifact_file(RUN_ID, "build", "conf", ".txt")
    artifact = Artifact(
        artifact_id="conf",
        kind="config",
        sha256=SHA256,
        size_bytes=6,
        backend="inline",
        uri=uri,
        produced_by_phase="build",
        created_ts=WHEN,
    )
    handoff = Handoff(
        from_phase="build",
        run_id=RUN_ID,
        headline="h",
        key_results={"a": {"b": [1]}},
        published_ts=WHEN,
        evidence=(Evidence(thread_id="T-1"),),
    )
    memory = MemoryText(
        front_matter=FrontMatter(description="a: b", tags=("z",), updated=WHEN, author="ada"), body="# Body\n"
    )
    project = Project(
        project_id="p",
        name="Pröject",
        phases=("build", "on"),
        created_ts=WHEN,
        publish=False,
        blobs={"o": "s3://b"},
    )
    run = Run(
        run_id=RUN_ID,
        status="active",
        phases={"build": "done", "on": "pending"},
        nodes=(Stint(node_id="n", joined=WHEN),),
        created_ts=WHEN,
    )
    files = {
        PROJECT_FILE: encode_project(project),
        ATTRIBUTES_FILE: ATTRIBUTES,
        run_file(RUN_ID): encode_run(run),
        index_file(RUN_ID): encode_index(ArtifactIndex(run_id=RUN_ID, artifacts={"conf": artifact})),
        uri: b"hello\n",
        entry_file(RUN_ID, "build", 1, ENTRY_ID): encode_entry(entry),
        summary_file(RUN_ID, "build"): b"# Sum\n",
        handoff_file(RUN_ID, "build"): encode_handoff(handoff),
        memory_file("notes", "dir/key.md"): format_memory(memory).encode(),
        PEER_MARKER_FILE: encode_marker(Marker(store=StorePlace(mode="worktree", path="./x", branch="b"))),
    }
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    read = json.loads(peer(pytestconfig, READS, tmp_path))
    assert read == {
        "phases": ["build", "on"],
        "publish": False,
        "name": "Pröject",
        "status": "active",
        "nodes": ["n"],
        "current": RUN_ID,
        "payload": {"t": "ü"},
        "tags": ["a"],
        "bytes": "hello\n",
        "summary": "# Sum\n",
        "headline": "h",
        "results": {"a": {"b": [1]}},
        "memory": [
            {
                "namespace": "notes",
                "key": "dir/key.md",
                "description": "a: b",
                "tags": ["z"],
                "size_bytes": len(format_memory(memory).encode()),
            }
        ],
        "hits": ["# Body"],
        "branch": "b",
    }
    assert msgspec.structs.asdict(decode_entry(encode_entry(entry)))["provenance"] == provenance
