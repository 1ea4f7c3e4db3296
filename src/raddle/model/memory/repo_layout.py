"""Where everything of a store stands: the only place that spells a path of it, or reads one.

Paths are relative, with `/`. Who makes one here gets a path that every system can hold; who reads one from a tree
that others wrote asks `place_of` what it is, and `is_safe` whether it may reach a disk.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from raddle.model.errors import InvalidInput
from raddle.model.memory.names import check_name, folded, is_dangerous, shown
from raddle.model.memory.ulids import ULID_PATTERN, parse_ulid

PROJECT_FILE = "project.yaml"
ATTRIBUTES_FILE = ".gitattributes"
ATTRIBUTES = b"* -text\n"
"""git keeps the bytes as they are: an artifact's hash holds on every machine."""
RUNS_FOLDER = "runs"
MEMORY_FOLDER = "memory"
KEPT_FOLDERS = (f"{RUNS_FOLDER}/.gitkeep", f"{MEMORY_FOLDER}/.gitkeep")
"""Empty files, so that a new store's folders are there in every clone."""
MARKER_FILE = ".raddle.yaml"
PEER_MARKER_FILE = ".redthread.yaml"
"""The markers in a code repository; the first is written, both are read."""

LONGEST_KEY = 400
"""Bytes of a memory key."""
DEEPEST_KEY = 16
"""Parts of a memory key."""
LONGEST_PHASE = 64
LONGEST_NODE = 64
LONGEST_NODE_IN_A_NAME = 18
"""Of a node's id, in the name of a conflict."""
LONGEST_SEQ = 9
"""Digits."""

_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z", re.ASCII)
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z", re.ASCII)
_ENTRY = re.compile(rf"([0-9]{{1,{LONGEST_SEQ}}})-({ULID_PATTERN})\.json\Z", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*\Z", re.ASCII)
"""Nearly every path: no name of it begins with a dot or holds anything unusual. Asked of every path of a tree."""
_CONFLICT = re.compile(
    rf"(.+)\.conflict-([A-Za-z0-9][A-Za-z0-9_-]{{0,17}})-({ULID_PATTERN})(\.[^./]{{1,20}})?\Z", re.DOTALL
)

Kind = Literal[
    "project",
    "run",
    "index",
    "entry",
    "artifact",
    "summary",
    "handoff",
    "memory",
    "attributes",
    "conflict",
    "other",
]


class Place(Struct, frozen=True, kw_only=True):
    """What a path of a store is; a field that does not apply is empty. `name`: the file's own."""

    kind: Kind
    path: str
    run_id: str = ""
    phase: str = ""
    seq: int = 0
    entry_id: str = ""
    namespace: str = ""
    key: str = ""
    name: str = ""
    conflict: Conflict | None = None
    """Of the kind `conflict` only: one side of a clash, kept beside the other."""


class Conflict(Struct, frozen=True, kw_only=True):
    """The path that a conflict stands beside, the node whose version it is, and its own ULID."""

    of: str
    node_id: str
    conflict_id: str


def check_project_id(text: str) -> str:
    """`text` where it is a slug; InvalidInput where not."""
    if not _SLUG.match(text):
        raise InvalidInput(
            f"{shown(text)} is not a project id",
            "use lower-case letters, digits, `-`, `_` and `.`, 64 at most",
        )
    return text


def check_node_id(text: str) -> str:
    """`text` where it can name a node; InvalidInput where not."""
    if not _NODE.match(text):
        raise InvalidInput(
            f"{shown(text)} is not a node id",
            f"use letters, digits, `-`, `_` and `.`, {LONGEST_NODE} at most",
        )
    return text


def check_phase(text: str) -> str:
    """`text` as a phase's name, in its canonical form."""
    return check_name(_no_option(text, "phase"), "phase", LONGEST_PHASE)


def check_phases(texts: Sequence[str]) -> tuple[str, ...]:
    """A pipeline: at least one phase, no two that a file system could take for one."""
    if not texts:
        raise InvalidInput(
            "a project needs at least one phase", "name them in order, such as build,test,present"
        )
    phases = tuple(map(check_phase, texts))
    for index, phase in enumerate(phases):
        twin = twin_of(phase, phases[:index])
        if twin is not None:
            raise InvalidInput(
                f"phase {shown(phase)} is there already, as {shown(twin)}", "give each a name of its own"
            )
    return phases


def check_namespace(text: str) -> str:
    """`text` as a namespace of the memory, in its canonical form."""
    return check_name(_no_option(text, "namespace"), "namespace")


def check_key(text: str) -> str:
    """`text` as a memory key, its parts joined by `/`, in its canonical form; none that a conflict could have."""
    parts = text.split("/")
    if len(parts) > DEEPEST_KEY:
        raise InvalidInput(f"memory key {shown(text)} has more than {DEEPEST_KEY} parts", "nest it less")
    key = "/".join(
        check_name(part, "memory key" if text == part else "part of a memory key") for part in parts
    )
    if len(key.encode()) > LONGEST_KEY:
        raise InvalidInput(f"memory key {shown(text)} is longer than {LONGEST_KEY} bytes", "shorten it")
    if parse_conflict(key) is not None:
        raise InvalidInput(
            f"memory key {shown(text)} is the name of a conflict", "settle it with `raddle memory resolve`"
        )
    return key


def check_artifact_id(text: str) -> str:
    """`text` as an artifact's id, in its canonical form."""
    return check_name(_no_option(text, "artifact id"), "artifact id")


def _no_option(text: str, what: str) -> str:
    if text.startswith("-"):
        raise InvalidInput(f"{what} {shown(text)} looks like an option", "begin it with a letter or a digit")
    return text


def check_new_key(key: str, existing: Iterable[str]) -> str:
    """`check_key`, and InvalidInput where a key of `existing` (of the same namespace) stands in its way.

    In its way: one that differs only in case or Unicode form, or that is a folder of it or the other way round.
    """
    key = check_key(key)
    fold = folded(key)
    for other in existing:
        if other == key:
            return key
        fold_of_other = folded(other)
        if fold_of_other == fold:
            raise InvalidInput(
                f"memory key {shown(key)} differs from {shown(other)} only in case or Unicode form",
                f"write to {shown(other)}, or choose another name",
            )
        if fold.startswith(fold_of_other + "/") or fold_of_other.startswith(fold + "/"):
            shorter, longer = sorted((key, other), key=len)
            raise InvalidInput(
                f"{shown(shorter)} cannot be a memory key and the folder of {shown(longer)} at once",
                "choose another name for one of them",
            )
        _refuse_another_spelling(key, other)
    return key


def _refuse_another_spelling(key: str, other: str) -> None:
    """InvalidInput where a folder of `key` is a folder of `other` in other letters."""
    for part, part_of_other in zip(key.split("/")[:-1], other.split("/")[:-1], strict=False):
        if folded(part) != folded(part_of_other):
            return
        if part != part_of_other:
            raise InvalidInput(
                f"{shown(part)} differs from the folder {shown(part_of_other)} only in case or Unicode form",
                f"write {shown(part_of_other)}",
            )


def twin_of(name: str, others: Iterable[str]) -> str | None:
    """The one of `others` that a file system could take for `name`, itself included; None where there is none."""
    fold = folded(name)
    return next((other for other in others if folded(other) == fold), None)


def run_folder(run_id: str) -> str:
    """The folder of a run."""
    return f"{RUNS_FOLDER}/{parse_ulid(run_id, 'run id')}"


def run_file(run_id: str) -> str:
    """What a run is."""
    return f"{run_folder(run_id)}/run.yaml"


def index_file(run_id: str) -> str:
    """The pointers to a run's artifacts."""
    return f"{run_folder(run_id)}/artifacts.index.json"


def phase_folder(run_id: str, phase: str) -> str:
    """The folder of one phase of a run."""
    return f"{run_folder(run_id)}/phases/{check_phase(phase)}"


def entries_folder(run_id: str, phase: str) -> str:
    """Where the entries of a phase are."""
    return f"{phase_folder(run_id, phase)}/entries"


def entry_file(run_id: str, phase: str, seq: int, entry_id: str) -> str:
    """One entry. `seq` is advisory and has four digits at least; the ULID orders."""
    number = min(max(seq, 0), 10**LONGEST_SEQ - 1)
    return f"{entries_folder(run_id, phase)}/{number:04d}-{parse_ulid(entry_id, 'entry id')}.json"


def artifact_file(run_id: str, phase: str, artifact_id: str, suffix: str = "") -> str:
    """An artifact that is kept in the store itself. `suffix` with its dot, as the file it was made from had it."""
    check_artifact_id(artifact_id)
    return f"{phase_folder(run_id, phase)}/artifacts/{check_name(artifact_id + suffix, 'artifact file')}"


def summary_file(run_id: str, phase: str) -> str:
    """The digest of a phase."""
    return f"{phase_folder(run_id, phase)}/summary.md"


def handoff_file(run_id: str, phase: str) -> str:
    """What a phase hands to the ones after it."""
    return f"{phase_folder(run_id, phase)}/handoff.json"


def memory_file(namespace: str, key: str) -> str:
    """A memory."""
    return f"{MEMORY_FOLDER}/{check_namespace(namespace)}/{check_key(key)}"


def is_safe(path: str) -> bool:
    """May a file of this path, which anybody may have put into a tree, be written below a store's folder?"""
    return _PLAIN.match(path) is not None or (bool(path) and not any(map(is_dangerous, path.split("/"))))


def is_portable(path: str) -> bool:
    """Can every system hold this path, and is it one that would be written today?"""
    try:
        return path == "/".join(check_name(part, "name") for part in path.split("/"))
    except InvalidInput:
        return path in (ATTRIBUTES_FILE, *KEPT_FOLDERS)


def parse_conflict(path: str) -> Conflict | None:
    """What a path (or a key) says of itself where it is the other side of a clash; None where it is not."""
    found = _CONFLICT.match(path)
    if found is None:
        return None
    of, node_id, conflict_id, suffix = found.groups()
    return Conflict(of=of + (suffix or ""), node_id=node_id, conflict_id=conflict_id)


def conflict_path(path: str, node_id: str, conflict_id: str) -> str:
    """Where one side of a clash over `path` is kept; the file's own name is cut where the whole would be too long.

    `a.md` becomes `a.md.conflict-<node>-<ulid>`, the node's id in letters that every system can hold.
    """
    return _beside(path, node_id, conflict_id, "")


def moved_artifact_path(path: str, node_id: str, conflict_id: str) -> str:
    """The same for an artifact's file, which keeps its ending: `a.conflict-<node>-<ulid>.png`."""
    head, dot, suffix = path.rpartition(".")
    if not dot or not head or "/" in suffix or head.endswith("/") or not 1 <= len(suffix) <= 20:
        return _beside(path, node_id, conflict_id, "")
    return _beside(head, node_id, conflict_id, dot + suffix)


def moved_artifact_id(artifact_id: str, node_id: str, conflict_id: str) -> str:
    """The new id of an artifact whose id another one has."""
    return _beside(artifact_id, node_id, conflict_id, "")


def _beside(path: str, node_id: str, conflict_id: str, suffix: str) -> str:
    node = (
        re.sub(r"[^A-Za-z0-9_-]", "-", node_id, flags=re.ASCII).lstrip("-_")[:LONGEST_NODE_IN_A_NAME]
        or "unknown"
    )
    tail = f".conflict-{node}-{conflict_id}{suffix}"
    folder, slash, name = path.rpartition("/")
    room = 255 - len(tail.encode())
    return folder + slash + name.encode()[:room].decode(errors="ignore") + tail


@functools.lru_cache(maxsize=8192)
def place_of(path: str) -> Place:
    """What `path` is, by its shape alone; `other` for what no part of a store is known to be."""
    parts = path.split("/")
    if not is_safe(path) or path in KEPT_FOLDERS:
        return Place(kind="other", path=path, name=parts[-1])
    conflict = parse_conflict(path)
    is_memory = parts[0] == MEMORY_FOLDER and len(parts) > 2
    if is_memory or conflict is not None:
        return Place(
            kind="memory" if conflict is None else "conflict",
            path=path,
            namespace=parts[1] if is_memory else "",
            key="/".join(parts[2:]) if is_memory else "",
            name=parts[-1],
            conflict=conflict,
        )
    if parts[0] == RUNS_FOLDER and len(parts) > 2:
        return _place_in_run(path, parts[1], parts[2:])
    known: dict[str, Kind] = {PROJECT_FILE: "project", ATTRIBUTES_FILE: "attributes"}
    return Place(kind=known.get(path, "other"), path=path, name=parts[-1])


def _place_in_run(path: str, run_id: str, parts: Sequence[str]) -> Place:
    kind: Kind = "other"
    phase, seq, entry_id = "", 0, ""
    match parts:
        case ["run.yaml"]:
            kind = "run"
        case ["artifacts.index.json"]:
            kind = "index"
        case ["phases", phase, "summary.md"]:
            kind = "summary"
        case ["phases", phase, "handoff.json"]:
            kind = "handoff"
        case ["phases", phase, "entries", name] if (found := _ENTRY.match(name)) is not None:
            kind, seq, entry_id = "entry", int(found[1]), found[2]
        case ["phases", phase, "artifacts", _, *_]:
            kind = "artifact"
        case _:
            phase = ""
    return Place(kind=kind, path=path, run_id=run_id, phase=phase, seq=seq, entry_id=entry_id, name=parts[-1])
