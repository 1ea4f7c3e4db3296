"""Several processes write to one store directory while another syncs it: nothing is lost, nothing is half-read."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec
import pytest

from raddle.actions.memory.entries import EntryLog, NewEntry
from raddle.actions.memory.runs import set_phase, start_run
from raddle.actions.memory.verifying import verify
from raddle.model.memory.artifact import Artifact, ArtifactIndex, decode_index, encode_index
from raddle.model.memory.repo_layout import index_file, memory_file
from raddle.model.memory.run import decode_run
from tests.memory_clones import Clone, make_hub, settle

SHARED = memory_file("team", "shared")


def opened(root: Path, node_id: str) -> Clone:
    clone = Clone.__new__(Clone)
    clone.root = root
    clone.open(node_id)
    return clone


def write(root: Path, run_id: str, number: int, writes: int) -> list[str]:
    """One process: entries, lines in one memory, pointers in one index, the run; the ids of its entries."""
    clone = opened(root, f"node-{number}")
    log = EntryLog(clone.files, clone.writer)
    written = []
    for step in range(writes):
        match step % 4:
            case 0 | 1:
                entry = log.add(run_id, "build", NewEntry(type="note", payload={"text": f"{number}-{step}"}))
                written.append(entry.entry_id)
            case 2:
                line = f"{number}-{step}\n".encode()
                clone.files.change(SHARED, lambda old, line=line: (old or b"") + line)  # type: ignore[misc]
            case _:
                _point(clone, run_id, f"artifact-{number}-{step}")
                set_phase(clone.files, clone.writer, run_id, "build", "active")
    return written


def _point(clone: Clone, run_id: str, artifact_id: str) -> None:
    pointer = Artifact(
        artifact_id=artifact_id,
        kind="config",
        sha256="0" * 64,
        size_bytes=1,
        backend="rsync",
        uri=f"rsync://local/{'0' * 64}",
        produced_by_phase="build",
    )

    def change(old: bytes | None) -> bytes:
        index = decode_index(old) if old else ArtifactIndex(run_id=run_id)
        return encode_index(
            msgspec.structs.replace(index, artifacts={**index.artifacts, artifact_id: pointer})
        )

    clone.files.change(index_file(run_id), change)


def keep_syncing(root: Path, times: int) -> None:
    """Another process: syncs while they write."""
    clone = opened(root, "syncing")
    for _ in range(times):
        assert clone.sync().state == "in_step"


def _together(folder: Path, writes: int, syncs: int) -> None:
    hub = make_hub(folder / "hub.git")
    ada, bob = Clone(folder / "ada", hub), Clone(folder / "bob", hub)
    ada.begin()
    run = start_run(ada.files, ada.writer)
    settle([ada, bob])
    with ProcessPoolExecutor(5, mp_context=multiprocessing.get_context("spawn")) as pool:
        writers = [pool.submit(write, ada.root, run.run_id, number, writes) for number in range(4)]
        syncing = pool.submit(keep_syncing, ada.root, syncs)
        for _ in range(syncs // 2):
            bob.write(memory_file("team", "bobs"), f"{bob.writer.new_id()}\n")
            bob.sync()
        written = {entry_id for writer in writers for entry_id in writer.result()}
        syncing.result()
    settle([ada, bob])
    assert ada.scan() == bob.scan()
    paths = bob.files.paths(f"runs/{run.run_id}")
    assert {path[-31:-5] for path in paths if "/entries/" in path} == written
    assert len(written) == 4 * len([step for step in range(writes) if step % 4 < 2])
    lines = bob.text(SHARED).splitlines()
    assert sorted(lines) == sorted(
        {f"{number}-{step}" for number in range(4) for step in range(2, writes, 4)}
    )
    data = bob.files.read(index_file(run.run_id))
    assert data is not None
    assert len(decode_index(data).artifacts) == 4 * len(range(3, writes, 4))
    stored = bob.files.read(f"runs/{run.run_id}/run.yaml")
    assert stored is not None
    assert decode_run(stored).phases["build"] == "active"
    assert verify(bob.files, trouble=lambda *_: "").is_whole


def test_four_processes_and_a_sync_on_one_store_lose_nothing(tmp_path: Path) -> None:
    _together(tmp_path, writes=16, syncs=4)


@pytest.mark.soak
def test_five_hundred_writes_of_four_processes_on_one_store_lose_nothing(tmp_path: Path) -> None:
    _together(tmp_path, writes=125, syncs=40)
