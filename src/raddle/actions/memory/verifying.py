"""Is a store whole: each file readable, in its place, and what it refers to there? And what can be put right of it.

What is damaged costs itself only. Nothing is thrown away: what is replaced was handed to `keep` before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from raddle.actions.memory.ports import StoreDisk
from raddle.actions.ports import Finding
from raddle.model.errors import BrokenFormat, FormatError, InvalidInput, NewerFormat, NotFound, RaddleError
from raddle.model.memory.artifact import (
    Artifact,
    ArtifactIndex,
    decode_index,
    encode_index,
    parse_blob_uri,
    unread_reason,
)
from raddle.model.memory.entry import decode_entry
from raddle.model.memory.handoff import decode_handoff
from raddle.model.memory.merge import conflicts_in
from raddle.model.memory.project import Project, decode_project
from raddle.model.memory.repo_layout import (
    ATTRIBUTES,
    ATTRIBUTES_FILE,
    KEPT_FOLDERS,
    PROJECT_FILE,
    Place,
    index_file,
    is_portable,
    place_of,
    run_file,
)
from raddle.model.memory.run import decode_run
from raddle.model.memory.ulids import is_ulid

BlobTrouble = Callable[[str, str, int], str]
"""Name of the store of blobs, SHA-256, bytes -> what is wrong with it, in words; empty where nothing is known to be."""
Earlier = Callable[[str], Iterable[bytes]]
"""Path -> what it held in the commits there are, the newest first."""
Keep = Callable[[str, bytes], str]
"""Keep bytes that are about to be replaced, by the path they had; where they are now, in words."""
_QUIET = frozenset({*KEPT_FOLDERS, ".gitignore", "README.md"})


class Fault(Struct, frozen=True, kw_only=True):
    """`mend`: bytes -> whether these would do in the file's place; None where no bytes would help, or it is not ours
    to touch. `otherwise`: what takes its place where no such bytes are left anywhere; None: nothing may."""

    path: str
    what: str
    mend: Callable[[bytes], bool] | None = None
    otherwise: bytes | None = None


class Checked(Struct, frozen=True, kw_only=True):
    """`files`: how many were looked at. `conflicts`: versions of a clash that nobody has settled yet."""

    files: int
    findings: tuple[Finding, ...]
    conflicts: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Is nothing left to put right?"""
        return all(finding.done and not finding.failed for finding in self.findings)


def verify(disk: StoreDisk, *, trouble: BlobTrouble) -> Checked:
    """Look at every file. `trouble`: tells of the blobs that pointers lead to."""
    return _checked(disk, _faults(disk, trouble), ())


def mend(disk: StoreDisk, *, trouble: BlobTrouble, earlier: Earlier, keep: Keep) -> Checked:
    """The same, and what has a whole version somewhere is put back in its place."""
    findings = []
    with disk.locked():
        for fault in _faults(disk, trouble):
            try:
                done = _mended(disk, fault, earlier, keep)
                findings.append(Finding(path=fault.path, what=fault.what, done=done))
            except RaddleError as error:
                findings.append(Finding(path=fault.path, what=fault.what, failed=error.message))
    return _checked(disk, (), findings)


def _checked(disk: StoreDisk, faults: Iterable[Fault], findings: Sequence[Finding]) -> Checked:
    told = [*findings, *(Finding(path=fault.path, what=fault.what) for fault in faults)]
    paths = disk.paths()
    return Checked(files=len(paths), findings=tuple(told), conflicts=conflicts_in(dict.fromkeys(paths)))


def _mended(disk: StoreDisk, fault: Fault, earlier: Earlier, keep: Keep) -> str:
    if fault.mend is None:
        return ""
    if fault.path == ATTRIBUTES_FILE:
        disk.change(ATTRIBUTES_FILE, lambda old: ATTRIBUTES + (old or b""))
        return "it keeps all bytes as they are now"
    data = disk.read(fault.path)
    for version in _candidates(data, earlier(fault.path)):
        if fault.mend(version):
            kept = keep(fault.path, data) if data else ""
            disk.change(fault.path, lambda _, version=version: version)  # type: ignore[misc]
            return f"the version of an earlier commit is back{kept and f'; what was there is in {kept}'}"
    if data is not None and not data.strip(b"\0 \r\n"):
        disk.change(fault.path, lambda _: None)
        return "nothing was in it; it is removed"
    if data is not None and fault.otherwise is not None:
        kept = keep(fault.path, data)
        disk.change(fault.path, lambda _: fault.otherwise or None)
        return f"no whole version of it is left; it begins anew, and what was there is in {kept}"
    raise NotFound("whole version of", fault.path, "another clone may have one")


def _candidates(data: bytes | None, versions: Iterable[bytes]) -> Iterator[bytes]:
    """What the file may have held: its own bytes as they were before line ends were changed, and each version."""
    if data is not None:
        plain = data.replace(b"\r\n", b"\n")
        yield plain
        yield plain.replace(b"\n", b"\r\n")
    yield from versions


def _faults(disk: StoreDisk, trouble: BlobTrouble) -> list[Fault]:
    scan = disk.scan()
    look = _Look(disk, trouble, frozenset(scan.files))
    faults = [Fault(path=path, what=f"it is left out: {why}") for path, why in scan.blocked.items()]
    faults += look.at_project()
    for path in sorted(scan.files):
        faults += look.at(place_of(path))
    return faults


class _Look:
    """One look at a store."""

    def __init__(self, disk: StoreDisk, trouble: BlobTrouble, paths: frozenset[str]) -> None:
        self._disk = disk
        self._trouble = trouble
        self._paths = paths
        self._project: Project | None = None
        self._indexes: dict[str, ArtifactIndex | None] = {}
        self._phases: dict[str, frozenset[str] | None] = {}

    def at_project(self) -> Iterator[Fault]:
        """What the store says of itself; NewerFormat where it is from the future."""
        data = self._disk.read(PROJECT_FILE)
        try:
            self._project = decode_project(data) if data is not None else None
        except NewerFormat:
            raise
        except FormatError as error:
            yield _unread(PROJECT_FILE, error, decode_project)
        if data is None:
            yield Fault(path=PROJECT_FILE, what="it is missing", mend=_reads(decode_project))
        attributes = self._disk.read(ATTRIBUTES_FILE) or b""
        if ATTRIBUTES.strip() not in [line.strip() for line in attributes.splitlines()]:
            what = "it does not keep all bytes as they are: artifacts would fail their hash elsewhere"
            yield Fault(path=ATTRIBUTES_FILE, what=what, mend=lambda _: True)

    def at(self, place: Place) -> Iterator[Fault]:
        """One file."""
        if place.path in _QUIET or place.kind in ("project", "attributes", "conflict"):
            return
        if not is_portable(place.path):
            yield Fault(path=place.path, what="its name is not one that every system can hold")
        look = {
            "run": self._at_run,
            "index": self._at_index,
            "entry": self._at_entry,
            "handoff": self._at_handoff,
            "artifact": self._at_artifact,
            "other": self._at_other,
        }.get(place.kind)
        if look is not None:
            yield from look(place, self._disk.read(place.path) or b"")
        if place.phase and not self._has_phase(place.run_id, place.phase):
            yield Fault(path=place.path, what=f"neither the run nor the project has a phase {place.phase!r}")

    def _has_phase(self, run_id: str, phase: str) -> bool:
        """Does the run name it, or the project? Where neither can be read, who knows."""
        if run_id not in self._phases:
            try:
                data = self._disk.read(run_file(run_id))
                run = decode_run(data) if data is not None else None
            except (FormatError, InvalidInput):
                run = None
            self._phases[run_id] = None if run is None else frozenset(run.phases)
        named = [self._phases[run_id], None if self._project is None else frozenset(self._project.phases)]
        return any(phases is None or phase in phases for phases in named)

    def _at_run(self, place: Place, data: bytes) -> Iterator[Fault]:
        try:
            run = decode_run(data)
        except FormatError as error:
            yield _unread(place.path, error, decode_run)
            return
        if run.run_id != place.run_id:
            yield Fault(path=place.path, what=f"it says that it is run {run.run_id[:40]!r}")
        if (
            run.parent_run_id
            and is_ulid(run.parent_run_id)
            and run_file(run.parent_run_id) not in self._paths
        ):
            yield Fault(path=place.path, what=f"its parent run {run.parent_run_id} is not in this store")

    def _at_entry(self, place: Place, data: bytes) -> Iterator[Fault]:
        try:
            entry = decode_entry(data)
        except FormatError as error:
            fault = _unread(place.path, error, decode_entry)
            yield fault if data else msgspec.structs.replace(fault, what="it is empty")
            return
        if (entry.entry_id, entry.run_id, entry.phase) != (place.entry_id, place.run_id, place.phase):
            yield Fault(path=place.path, what="it says that it belongs elsewhere")

    def _at_handoff(self, place: Place, data: bytes) -> Iterator[Fault]:
        try:
            handoff = decode_handoff(data)
        except FormatError as error:
            yield _unread(place.path, error, decode_handoff, otherwise=b"")
            return
        if (handoff.run_id, handoff.from_phase) != (place.run_id, place.phase):
            yield Fault(path=place.path, what="it says that it belongs elsewhere")
        index = self._index(place.run_id)
        if index is None:  # which is damaged, and named for that
            return
        known = index.artifacts.keys() | index.unread.keys()
        for artifact_id in dict.fromkeys((*handoff.best_artifacts, *handoff.figures)):
            if artifact_id not in known:
                yield Fault(
                    path=place.path, what=f"it names an artifact that the run has not: {artifact_id[:60]!r}"
                )

    def _at_index(self, place: Place, data: bytes) -> Iterator[Fault]:
        try:
            index = decode_index(data)
        except FormatError as error:
            anew = encode_index(ArtifactIndex(run_id=place.run_id))
            yield _unread(place.path, error, decode_index, otherwise=anew)
            return
        for artifact_id, pointer in index.unread.items():
            yield Fault(path=place.path, what=unread_reason(artifact_id, pointer))
        for artifact_id, artifact in index.artifacts.items():
            if artifact.path is not None:
                yield from self._at_inline(artifact.path, artifact.sha256, artifact_id)
            elif artifact.backend == "inline":
                yield Fault(path=place.path, what=f"artifact {artifact_id[:60]!r} leads out of the store")
            else:
                yield from self._at_blob(place.path, artifact)

    def _at_inline(self, path: str, sha256: str, artifact_id: str) -> Iterator[Fault]:
        data = self._disk.read(path)
        if data is None or hashlib.sha256(data).hexdigest() != sha256:
            what = "is missing" if data is None else "is not what its pointer says (its hash differs)"
            yield Fault(
                path=path,
                what=f"artifact {artifact_id[:60]!r} {what}",
                mend=lambda version: hashlib.sha256(version).hexdigest() == sha256,
            )

    def _at_blob(self, path: str, artifact: Artifact) -> Iterator[Fault]:
        address = parse_blob_uri(artifact.uri)
        if address is None or address[1] != artifact.sha256:
            yield Fault(
                path=path,
                what=f"the address of artifact {artifact.artifact_id[:60]!r} is none: {artifact.uri[:80]!r}",
            )
            return
        wrong = self._trouble(address[0], artifact.sha256, artifact.size_bytes)
        if wrong:
            yield Fault(
                path=path,
                what=f"the bytes of artifact {artifact.artifact_id[:60]!r}: the blob in {address[0]!r} {wrong}",
            )

    def _at_artifact(self, place: Place, _: bytes) -> Iterator[Fault]:
        index = self._index(place.run_id)
        if index is not None and not any(one.path == place.path for one in index.artifacts.values()):
            yield Fault(path=place.path, what="no artifact leads to it")

    def _at_other(self, place: Place, _: bytes) -> Iterator[Fault]:
        yield Fault(
            path=place.path,
            what="it is no part of a store: a sync takes it along only where it was committed before",
        )

    def _index(self, run_id: str) -> ArtifactIndex | None:
        if run_id not in self._indexes:
            try:
                data = self._disk.read(index_file(run_id))
                self._indexes[run_id] = (
                    decode_index(data) if data is not None else ArtifactIndex(run_id=run_id)
                )
            except (FormatError, InvalidInput):
                self._indexes[run_id] = None
        return self._indexes[run_id]


def _unread(
    path: str, error: FormatError, decode: Callable[[bytes], object], *, otherwise: bytes | None = None
) -> Fault:
    """A file that cannot be read. One of a newer format is whole, and for a newer raddle alone to touch."""
    if not isinstance(error, BrokenFormat):
        return Fault(path=path, what=error.message)
    return Fault(path=path, what=error.message, mend=_reads(decode), otherwise=otherwise)


def _reads(decode: Callable[[bytes], object]) -> Callable[[bytes], bool]:
    def does(data: bytes) -> bool:
        try:
            decode(data)
        except (FormatError, msgspec.MsgspecError):
            return False
        return True

    return does
