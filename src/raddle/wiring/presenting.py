"""What a run's phases have handed on, made into files that people look at: the verbs joined to a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from raddle.model.errors import BrokenFormat, FormatError, InvalidInput, NotFound, RaddleError, UserError

if TYPE_CHECKING:
    from raddle.actions.ports import Finding
    from raddle.actions.presenting.document import Document, LookAt
    from raddle.actions.presenting.pictures import NoPicture, Picture
    from raddle.adapters.output_folder import Replaced
    from raddle.wiring.memory import ProjectMemory
    from raddle.wiring.memory_blobs import MemoryBlobs

REPORT, DECK, SITE = FORMATS = ("report", "deck", "site")
FOLDER = "presentation"
"""Where it goes, below the current folder, where nobody names another."""

_SHOWN_KINDS = ("figure", "image")


class Written(NamedTuple):
    """What was made. `first`: the file of each format that a person opens. `unseen`: (artifact id, why) of figures that
    are not shown. `missing`: what is to be installed for a format that was left out."""

    run_id: str
    phase: str
    folder: Path
    formats: tuple[str, ...]
    first: tuple[Path, ...]
    replaced: Replaced
    unseen: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    missing: tuple[UserError, ...]


def present(
    memory: ProjectMemory,
    folder: Path,
    *,
    run: str = "",
    phase: str | None = None,
    formats: Iterable[str] = (),
    may_overwrite: bool = False,
) -> Written:
    """Write what the phases before `phase` have handed on into a folder. `formats`: some of FORMATS; none: all that
    this installation can make.

    NotFound where nothing was handed on; InvalidInput for a folder in the memory itself; ConflictError where a file is
    there that this did not write; UserError where what a format needs is not installed.
    """
    from raddle.actions.presenting.document import document_of  # noqa: PLC0415
    from raddle.actions.presenting.pictures import NoPicture  # noqa: PLC0415
    from raddle.adapters.locks import LockFiles  # noqa: PLC0415
    from raddle.adapters.output_folder import replace_output  # noqa: PLC0415
    from raddle.wiring.memory_blobs import MemoryBlobs  # noqa: PLC0415

    target = _target(memory, folder)
    with MemoryBlobs(memory) as blobs:
        found = document_of(memory.files, _looker(memory, blobs), run=run, phase=phase)
    asked = tuple(dict.fromkeys(formats))
    parts: dict[str, Mapping[str, bytes]] = {}
    missing = []
    for name in asked or FORMATS:
        try:
            parts[name] = _made(found.document, name)
        except UserError as error:
            if asked:
                raise
            missing.append(error)
    locks = LockFiles(memory.stores.paths.state_dir / "presenting-locks", stripes=1)
    with locks.held(hashlib.sha256(str(target).encode(errors="surrogateescape")).hexdigest()):
        replaced = replace_output(target, parts, may_overwrite=may_overwrite)
    unseen = tuple(
        (figure.artifact_id, figure.shows.why)
        for part in found.document.parts
        for figure in part.figures
        if isinstance(figure.shows, NoPicture)
    )
    return Written(
        run_id=found.document.run_id,
        phase=found.phase,
        folder=target,
        formats=tuple(parts),
        first=tuple(target / next(iter(files)) for files in parts.values()),
        replaced=replaced,
        unseen=unseen,
        findings=found.findings,
        missing=tuple(missing),
    )


def _made(document: Document, name: str) -> Mapping[str, bytes]:
    """Path -> bytes of one format."""
    if name == REPORT:
        from raddle.actions.presenting.report import report_of  # noqa: PLC0415

        return report_of(document)
    if name == SITE:
        from raddle.actions.presenting.site import site_of  # noqa: PLC0415

        return site_of(document)
    from raddle.actions.presenting import deck  # noqa: PLC0415
    from raddle.adapters.slides import draw  # noqa: PLC0415

    return {deck.DECK: draw(deck.deck_of(document))}


def _looker(memory: ProjectMemory, blobs: MemoryBlobs) -> LookAt:
    """How a document sees its figures: by their bytes, from wherever they are."""
    from raddle.actions.memory.artifacts import find_artifact, get_artifact  # noqa: PLC0415
    from raddle.actions.presenting.pictures import LARGEST, NoPicture, look_at  # noqa: PLC0415

    def look(run_id: str, artifact_id: str, is_figure: bool) -> Picture | NoPicture | None:
        try:
            found = find_artifact(memory.files, run_id, artifact_id)
        except (NotFound, FormatError):
            return NoPicture(why="the run has no such artifact that can be read") if is_figure else None
        if not is_figure and found.kind not in _SHOWN_KINDS:
            return None
        if found.size_bytes > LARGEST:
            return NoPicture(why=f"it has more than {LARGEST >> 20} MiB")
        try:
            return look_at(b"".join(_pieces(get_artifact(memory.files, blobs, found), LARGEST)))
        except NotFound:
            return NoPicture(why="its bytes are not on this machine")
        except BrokenFormat:
            return NoPicture(why="its bytes are damaged, or lie where raddle does not reach")
        except RaddleError:
            return NoPicture(why="its bytes cannot be reached from here")

    return look


def _pieces(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    """As many of them as were promised; a store that sends more is not listened to for ever."""
    size = 0
    for piece in pieces:
        size += len(piece)
        yield piece
        if size > most:
            return


def _target(memory: ProjectMemory, folder: Path) -> Path:
    from raddle.wiring.memory_blobs import is_inside  # noqa: PLC0415

    if "\0" in str(folder):
        raise InvalidInput("a path holds a NUL character", "take it out")
    try:
        target = folder.expanduser().absolute().resolve()
        is_taken = target.exists() and not target.is_dir()
    except (RuntimeError, ValueError, OSError) as error:  # links in a circle, no home folder, a NUL
        raise InvalidInput(f"{folder} is no path to write to: {error}", "name another: --out DIR") from error
    if is_inside(target, memory.root) or is_inside(target, memory.own_folder.parent):
        raise InvalidInput(
            f"{target} lies in the memory itself: it would be committed and pushed",
            "name a folder outside of it: --out DIR",
        )
    if is_taken:
        raise InvalidInput(f"{target} is no folder", "name another: --out DIR")
    return target
