"""Two nodes that change copies of one store: what each did, as files. Small pools of names, so that they meet.

A story knows nothing of merging: it writes what a node of that store would have on its disk.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from raddle.model.clock import format_time
from raddle.model.errors import FormatError
from raddle.model.memory.artifact import Artifact, ArtifactIndex, decode_index, encode_index
from raddle.model.memory.entry import ContextEntry, Provenance, encode_entry
from raddle.model.memory.handoff import Handoff, encode_handoff
from raddle.model.memory.memory_text import changed_front_matter, format_memory, parse_memory
from raddle.model.memory.merge_sides import Side, Sides
from raddle.model.memory.project import Project, decode_project, encode_project
from raddle.model.memory.repo_layout import (
    ATTRIBUTES,
    ATTRIBUTES_FILE,
    PROJECT_FILE,
    artifact_file,
    entry_file,
    handoff_file,
    index_file,
    run_file,
    summary_file,
    twin_of,
)
from raddle.model.memory.run import PHASE_STATUSES, RUN_STATUSES, Run, Stint, decode_run, encode_run
from raddle.model.memory.ulids import derived_ulid

Files = dict[str, bytes]
NOON = 1_796_040_000_000_000
RUN_ID = derived_ulid(NOON, b"run")
PHASES = ("build", "test", "present")
KEYS = ("a", "a/b", "a/B", "A/c", "Notes.md", "notes.md", "caf\u00e9", "cafe\u0301", "deep/er/one")
LINES = ("one\n", "two\n", "three\n", "four\n", "five\n")
ARTIFACT_IDS = ("model", "Model", "model.txt", "plot")
SUFFIXES = (".txt", ".png", "")
WORDS = ("x", "y", "z")


class Story(NamedTuple):
    """The store as both had it, as each has it now, and who they are."""

    base: Files
    local: Files
    remote: Files
    sides: Sides


class Node(NamedTuple):
    """Who acts, and how many seconds after noon."""

    name: str
    second: int

    @property
    def at(self) -> int:
        return NOON + self.second * 1_000_000

    @property
    def ts(self) -> str:
        return format_time(self.at)


Act = Callable[[Files, Node], None]


def blob_id(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:40]


def first_files() -> Files:
    """A store as `init` and one `run start` leave it, with a memory, a summary and an artifact."""
    files: Files = {ATTRIBUTES_FILE: b"* text=auto eol=lf\n"}
    files[PROJECT_FILE] = encode_project(
        Project(project_id="loom", phases=PHASES, created_ts=format_time(NOON))
    )
    files[run_file(RUN_ID)] = encode_run(
        Run(
            run_id=RUN_ID,
            status="active",
            phases=dict.fromkeys(PHASES, "pending"),
            nodes=(Stint(node_id="node-0", joined=format_time(NOON)),),
            created_ts=format_time(NOON),
        )
    )
    files[index_file(RUN_ID)] = encode_index(ArtifactIndex(run_id=RUN_ID))
    files[summary_file(RUN_ID, "build")] = "".join(LINES).encode()
    text = "---\ndescription: first\ntags: [t0, t1]\n---\n\n" + "".join(LINES)
    files["memory/notes/Notes.md"] = text.encode()
    files["memory/notes/plain"] = "".join(LINES).encode()
    return files


def changes_of_run(draw: Any) -> Act:
    return _change_of_run(draw, ("status", "phases", "join", "leave", "unknown", "parent", "phase"))


def changes_of_status(draw: Any) -> Act:
    return _change_of_run(draw, ("status", "phases"))


def changes_of_stints(draw: Any) -> Act:
    return _change_of_run(draw, ("join", "leave"))


def _change_of_run(draw: Any, fields: tuple[str, ...]) -> Act:
    field = draw(st.sampled_from(fields))
    word = draw(st.sampled_from(WORDS))
    status = draw(st.sampled_from(RUN_STATUSES))
    phase, state = draw(st.sampled_from(PHASES)), draw(st.sampled_from(PHASE_STATUSES))

    def act(files: Files, node: Node) -> None:
        path = run_file(RUN_ID)
        try:
            run = decode_run(files[path])
        except FormatError:
            return
        nodes = list(run.nodes)
        changes: dict[str, Any] = {
            "status": {"status": status},
            "phases": {"phases": run.phases | {phase: state}},
            "phase": {"phases": run.phases | {f"extra-{word}": state}},
            "join": {"nodes": (*nodes, Stint(node_id=node.name, host=word, joined=node.ts))},
            "leave": {"nodes": (msgspec.structs.replace(nodes[0], left=node.ts), *nodes[1:])},
            "unknown": {"unknown": run.unknown | {f"future-{word}": f"known to {node.name}"}},
            "parent": {"parent_run_id": derived_ulid(NOON, word.encode())},
        }
        files[path] = encode_run(msgspec.structs.replace(run, **changes[field]), files[path])

    return act


def changes_of_project(draw: Any) -> Act:
    field = draw(st.sampled_from(("name", "publish", "phases", "blobs", "unknown")))
    word = draw(st.sampled_from(WORDS))
    publish = draw(st.sampled_from((True, False, None)))

    def act(files: Files, node: Node) -> None:
        project = decode_project(files[PROJECT_FILE])
        changes: dict[str, Any] = {
            "name": {"name": f"{word} of {node.name}"},
            "publish": {"publish": publish},
            "phases": {"phases": tuple(dict.fromkeys((*project.phases, f"phase-{word}")))},
            "blobs": {"blobs": project.blobs | {word: f"file:///{node.name}"}},
            "unknown": {"unknown": project.unknown | {word: f"known to {node.name}"}},
        }
        files[PROJECT_FILE] = encode_project(
            msgspec.structs.replace(project, **changes[field]), files[PROJECT_FILE]
        )

    return act


def new_artifact(draw: Any) -> Act:
    return _new_artifact(draw, ARTIFACT_IDS, SUFFIXES)


def new_twin_artifact(draw: Any) -> Act:
    return _new_artifact(draw, ("model", "Model", "model.txt"), (".txt", ""))


def _new_artifact(draw: Any, ids: tuple[str, ...], suffixes: tuple[str, ...]) -> Act:
    artifact_id, suffix = draw(st.sampled_from(ids)), draw(st.sampled_from(suffixes))
    content = draw(st.sampled_from((b"one", b"two", b"three")))
    is_future = draw(st.integers(0, 9)) == 0

    def act(files: Files, node: Node) -> None:
        path = index_file(RUN_ID)
        index = decode_index(files[path])
        uri = artifact_file(RUN_ID, "build", artifact_id, suffix)
        is_taken = artifact_id in index.artifacts or artifact_id in index.unread
        if is_taken or (uri not in files and twin_of(uri, files) is not None):
            return
        if is_future:
            pointer = {"schema_version": 7, "artifact_id": artifact_id, "of": node.name}
            files[path] = encode_index(
                msgspec.structs.replace(index, unread=index.unread | {artifact_id: pointer})
            )
            return
        if files.get(uri, content) != content:
            return
        artifact = Artifact(
            artifact_id=artifact_id,
            kind="plot",
            sha256=hashlib.sha256(content).hexdigest(),
            size_bytes=len(content),
            backend="inline",
            uri=uri,
            produced_by_phase="build",
            created_ts=node.ts,
        )
        files[uri] = content
        files[path] = encode_index(
            msgspec.structs.replace(index, artifacts=index.artifacts | {artifact_id: artifact})
        )

    return act


def new_entry(draw: Any) -> Act:
    phase = draw(st.sampled_from(PHASES))

    def act(files: Files, node: Node) -> None:
        entry_id = derived_ulid(node.at, node.name.encode(), str(len(files)).encode())
        entry = ContextEntry(
            entry_id=entry_id,
            run_id=RUN_ID,
            phase=phase,
            type="note",
            ts=node.ts,
            provenance=Provenance(node_id=node.name),
            payload={"text": node.name},
        )
        files[entry_file(RUN_ID, phase, 1, entry_id)] = encode_entry(entry)

    return act


def _edited(draw: Any) -> Callable[[str, Node], str]:
    """A line changed, put in or taken out; or the whole replaced."""
    kind = draw(st.sampled_from(("change", "insert", "remove", "append", "whole")))
    number, word = draw(st.integers(0, 4)), draw(st.sampled_from(WORDS))

    def edit(text: str, node: Node) -> str:
        lines = text.splitlines(keepends=True)
        if kind == "whole":
            return f"{word} all of {node.name}"
        if kind == "append":
            return text + f"{word} more of {node.name}\n"
        if number < len(lines):
            new = f"{word} by {node.name}\n"
            lines[number : number + (kind != "insert")] = [] if kind == "remove" else [new]
        return "".join(lines)

    return edit


def changes_of_memory(draw: Any) -> Act:
    kinds = ("edit", "edit", "head", "tags", "remove", "binary")
    return _change_of_memory(draw, (*KEYS, "plain", "plain", "Notes.md", "Notes.md"), kinds)


def changes_of_tags(draw: Any) -> Act:
    return _change_of_memory(draw, ("Notes.md",), ("tags", "tags", "edit"))


def changes_of_twins(draw: Any) -> Act:
    return _change_of_memory(draw, ("caf\u00e9", "cafe\u0301", "Caf\u00e9"), ("edit",))


def _change_of_memory(draw: Any, keys: tuple[str, ...], kinds: tuple[str, ...]) -> Act:
    key, kind = draw(st.sampled_from(keys)), draw(st.sampled_from(kinds))
    edit, word = _edited(draw), draw(st.sampled_from(WORDS))
    is_stamped = draw(st.booleans())

    def act(files: Files, node: Node) -> None:
        path = f"memory/notes/{key}"
        if kind == "remove":
            files.pop(path, None)
            return
        old = files.get(path, b"")
        if not _may_hold(files, path) or b"\xff" in old:
            return
        if kind == "binary" and word == "x":
            files[path] = b"\xff\xfe" + node.name.encode()
            return
        memory = parse_memory(old.decode())
        if kind in ("edit", "binary"):
            memory = msgspec.structs.replace(memory, body=edit(memory.body, node))
        if kind == "head":
            memory = changed_front_matter(memory, description=f"{word} by {node.name}", author=node.name)
        if kind == "tags":
            tags = [tag for tag in memory.front_matter.tags if tag != "t0" or word != "x"]
            memory = changed_front_matter(memory, tags=tuple(dict.fromkeys((*tags, word))))
        if is_stamped:
            memory = changed_front_matter(memory, updated=node.ts, author=node.name)
        files[path] = format_memory(memory).encode()

    return act


def _may_hold(files: Files, path: str) -> bool:
    """Can one disk hold this path beside those that are there? A node never writes two that clash."""
    if path in files:
        return True
    parts = path.split("/")
    for other in files:
        if _folded(f"{other}/").startswith(_folded(f"{path}/")) or _folded(f"{path}/").startswith(
            _folded(f"{other}/")
        ):
            return False
        parts_of_other = other.split("/")
        for depth in range(1, min(len(parts), len(parts_of_other))):
            if parts[:depth] != parts_of_other[:depth] and _folded("/".join(parts[:depth])) == _folded(
                "/".join(parts_of_other[:depth])
            ):
                return False
    return True


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def changes_of_summary(draw: Any) -> Act:
    edit = _edited(draw)

    def act(files: Files, node: Node) -> None:
        path = summary_file(RUN_ID, "build")
        files[path] = edit(files.get(path, b"").decode(), node).encode()

    return act


def new_handoff(draw: Any) -> Act:
    word, is_dated = draw(st.sampled_from(WORDS)), draw(st.booleans())

    def act(files: Files, node: Node) -> None:
        handoff = Handoff(
            from_phase="build",
            run_id=RUN_ID,
            headline=f"{word} of {node.name}",
            published_ts=node.ts if is_dated else "",
        )
        files[handoff_file(RUN_ID, "build")] = encode_handoff(handoff)

    return act


def rare_accident(draw: Any) -> Act:
    kind = draw(st.sampled_from(("future run", "broken run", "attributes", "hostile", "free")))

    def act(files: Files, node: Node) -> None:
        path = run_file(RUN_ID)
        if kind == "future run":
            files[path] = f"schema_version: 9\nby: {node.name}\n".encode()
        elif kind == "broken run":
            files[path] = f"nodes: [{node.name}".encode()
        elif kind == "attributes":
            files[ATTRIBUTES_FILE] = ATTRIBUTES
        elif kind == "hostile":
            files["memory/notes/.GIT/hooks/post-checkout"] = node.name.encode()
        else:
            files["free/file.txt"] = f"of {node.name}\n".encode()

    return act


ACTS: tuple[Callable[[Any], Act], ...] = (
    changes_of_run,
    changes_of_run,
    changes_of_project,
    new_artifact,
    new_artifact,
    new_entry,
    changes_of_memory,
    changes_of_memory,
    changes_of_memory,
    changes_of_summary,
    new_handoff,
)


@st.composite
def stories(draw: Any, acts: tuple[Callable[[Any], Act], ...] = ACTS) -> Story:
    """What both had, and what each made of it; now and then something that no node writes stands at the end."""
    base = first_files()
    play(draw, acts, base, Node("node-0", 0), most=3)
    local, remote = dict(base), dict(base)
    seconds = draw(st.tuples(st.integers(10, 13), st.integers(10, 13)))
    play(draw, acts, local, Node("node-1", seconds[0]), most=5)
    play(draw, acts, remote, Node("node-2", seconds[1]), most=5)
    if draw(st.integers(0, 7)) == 0:
        rare_accident(draw)(draw(st.sampled_from((local, remote))), Node("node-3", 20))
    at = [NOON + second * 1_000_000 for second in draw(st.permutations((20, 21)))]
    return Story(
        base,
        local,
        remote,
        Sides(local=Side(node_id="node-1", at=at[0]), remote=Side(node_id="node-2", at=at[1])),
    )


def play(draw: Any, acts: tuple[Callable[[Any], Act], ...], files: Files, node: Node, *, most: int) -> None:
    for number in range(draw(st.integers(0, most))):
        draw(st.sampled_from(acts))(draw)(files, Node(node.name, node.second + number))
