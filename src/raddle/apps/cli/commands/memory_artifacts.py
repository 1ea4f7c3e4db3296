"""`raddle artifact`: keep a file of a run, and fetch it anywhere."""

from __future__ import annotations

import re
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.memory_options import (
    agent_option,
    file_argument,
    phase_option,
    run_option,
    with_memory,
)
from raddle.apps.cli.options import KeptText, Words, as_json
from raddle.model.errors import InvalidInput
from raddle.model.memory.artifact import INLINE, INLINE_BELOW, Artifact, parse_blob_uri

if TYPE_CHECKING:
    from raddle.wiring.memory import ProjectMemory
    from raddle.wiring.memory_blobs import MemoryBlobs

_LARGEST_INLINE = 4 << 20
_RANGE = re.compile(r"(\d{0,18})-(\d{0,18})\Z", re.ASCII)


@click.group(
    help="""Keep files of a run: reports, figures, checkpoints.

    Small text goes into the memory itself. Anything else goes into a store of blobs, and only a pointer into the
    memory: the first store that project.yaml names under `blobs:`, else a folder of this machine.
    docs/how-to/keep-large-artifacts.md says more.""",
)
def artifact() -> None:
    """Commands on artifacts."""


@artifact.command(
    help="""Keep FILE (-: stdin) as an artifact of a run, and print its id.

    An artifact never changes: the same id with other bytes is refused. With the same bytes it is nothing new: what lies
    there is read, and put right where it is damaged or gone. It goes to the active phase of the newest run, unless
    --run and --phase say another.

    \b
    raddle artifact add report.md --kind report
    raddle artifact add model.ckpt --id best-model --kind checkpoint""",
)
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@click.option(
    "--id",
    "artifact_id",
    metavar="ID",
    type=KeptText(),
    help="Its id; else the file's name without its ending.",
)
@click.option("--kind", default="file", show_default=True, type=KeptText(), help="What it is, in a word.")
@run_option
@phase_option()
@click.option(
    "--blobs", metavar="NAME", default="", type=Words(), help="The store of blobs to use; `local`: here."
)
@click.option(
    "--trust-blobs",
    is_flag=True,
    help="Agree that bytes go where project.yaml says. It is asked once for each URL.",
)
@click.option(
    "--inline-below",
    metavar="BYTES",
    type=click.IntRange(0, _LARGEST_INLINE),
    default=INLINE_BELOW,
    help=f"Text up to this size goes into the memory itself ({INLINE_BELOW:,} unless said).",
)
@agent_option
@as_json
@with_memory
def add(
    memory: ProjectMemory,
    *,
    file: str,
    artifact_id: str | None,
    kind: str,
    run_id: str | None,
    phase: str | None,
    blobs: str,
    trust_blobs: bool,
    inline_below: int,
    agent: str | None,
    json: bool,
) -> None:
    """Print its id."""
    from raddle.actions.memory.artifacts import add_artifact, artifact_id_of  # noqa: PLC0415
    from raddle.actions.memory.runs import current_phase, resolve_run  # noqa: PLC0415
    from raddle.wiring.memory_artifacts import artifact_source  # noqa: PLC0415
    from raddle.wiring.memory_blobs import MemoryBlobs  # noqa: PLC0415

    run = resolve_run(memory.files, run_id or "")
    phase = phase or current_phase(run)
    if file == "-" and artifact_id is None:
        raise InvalidInput("what stdin gives has no name", "give it one: --id ID")
    with (
        diagnostics.waiting("the file to be kept"),
        artifact_source(memory, file) as source,
        MemoryBlobs(memory, name=blobs, agrees=trust_blobs, ask=_asked()) as stores,
    ):
        chosen = artifact_id_of(source.name) if artifact_id is None else artifact_id
        with _kept_as_it_was(memory, run.run_id, chosen):
            added = add_artifact(
                memory.files,
                stores,
                memory.writer(agent=agent),
                run_id=run.run_id,
                phase=phase,
                artifact_id=chosen,
                kind=kind,
                source=source,
                inline_below=inline_below,
            )
        value = _shape(stores, added.artifact) | {"is_new": added.is_new, "is_mended": added.is_mended}
    output.answer(json, value, words.one_line(added.artifact.artifact_id))
    if added.is_mended:
        diagnostics.note("it was there already, and its bytes were damaged or gone: they are put back")
    elif not added.is_new:
        diagnostics.note("it was there already, with the same bytes")
    else:
        diagnostics.suggest(f"{words.size(added.artifact.size_bytes)} in {_place_of(added.artifact)}")


def _kept_as_it_was(memory: ProjectMemory, run_id: str, artifact_id: str) -> AbstractContextManager[None]:
    """What stands in the memory itself under that id stays in the history, though it be damaged, and is put right."""
    from raddle.actions.memory.artifacts import list_artifacts  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    found = list_artifacts(memory.files, run_id).artifacts
    paths = [one.path for one in found if one.artifact_id == artifact_id and one.path is not None]
    return versions_kept(memory, paths) if paths else nullcontext()


def _asked() -> Any:
    """How a person is asked; None where nobody looks on."""
    if not (sys.stdin.isatty() and diagnostics.is_terminal()):
        return None
    return lambda question: click.confirm(words.one_line(question), err=True)


@artifact.command(
    help="""Print the bytes of artifact ID, or write them to a file, checked by their hash.

    A download that breaks off goes on where it stopped when the command is given again with the same -o. A file that is
    there with other bytes is left alone, unless --force. Of a part (--range) nothing can be checked.""",
)
@click.argument("artifact_id", metavar="ID", type=Words())
@run_option
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    type=file_argument,
    help="Write them here; in a folder, under its own name.",
)
@click.option(
    "--range",
    "part",
    metavar="FIRST-LAST",
    help="Only these bytes, the first one is 0: 0-99, 100- (from there on), -100 (the last ones).",
)
@click.option("--force", is_flag=True, help="Write over a file that is there with other bytes.")
@as_json
@with_memory
def get(
    memory: ProjectMemory,
    artifact_id: str,
    run_id: str | None,
    path: Path | None,
    part: str | None,
    force: bool,
    json: bool,
) -> None:
    """Print the bytes, or where they are now."""
    from raddle.actions.memory.artifacts import find_artifact, get_artifact  # noqa: PLC0415
    from raddle.actions.memory.runs import resolve_run  # noqa: PLC0415
    from raddle.wiring.memory_artifacts import fetch_artifact  # noqa: PLC0415
    from raddle.wiring.memory_blobs import MemoryBlobs  # noqa: PLC0415

    if json and path is None:
        raise InvalidInput("--json tells where the bytes are written to", "say where: -o FILE")
    run = resolve_run(memory.files, run_id or "")
    found = find_artifact(memory.files, run.run_id, artifact_id)
    wanted = None if part is None else _range(part, found.size_bytes)
    with MemoryBlobs(memory) as stores:
        if path is None:
            start, end = wanted or (0, found.size_bytes)
            pieces = get_artifact(memory.files, stores, found, start, end)
            if output.is_terminal():
                _show(found, b"".join(pieces) if found.backend == INLINE else None)
                return
            for piece in pieces:
                output.write_bytes(piece)
            return
        with diagnostics.waiting("the bytes"):
            fetched = fetch_artifact(memory, stores, found, path, wanted, may_replace=force)
        value = _shape(stores, found) | {"path": str(fetched.path), "had_bytes": fetched.had}
    output.answer(json, value, str(fetched.path))
    if 0 < fetched.had < found.size_bytes:
        diagnostics.note(f"{words.size(fetched.had)} were there already, from a try that broke off")


def _show(found: Artifact, data: bytes | None) -> None:
    """On a terminal: text, without what would move its cursor."""
    if data is None:
        raise InvalidInput(
            f"artifact {found.artifact_id[:60]!r} is nothing for a terminal ({words.size(found.size_bytes)})",
            "write it to a file: -o FILE",
        )
    text = words.safe_lines(data.decode(errors="replace"))
    output.write(text if text.endswith("\n") else text + "\n")


def _range(text: str, size: int) -> tuple[int, int]:
    """(Start, end), as a slice has them."""
    found = _RANGE.match(text.strip())
    if found is None or found.groups() == ("", ""):
        raise InvalidInput(f"{text[:40]!r} is no range of bytes", "write 0-99, 100- or -100")
    first, last = found.groups()
    start = int(first) if first else max(size - int(last), 0)
    end = size if not last or not first else min(int(last) + 1, size)
    if start >= end:
        raise InvalidInput(
            f"the artifact is {words.count(size, 'byte')} long, and has no bytes {text.strip()}",
            "the first byte is 0, and the first number of a range is not above the last",
        )
    return start, end


@artifact.command(name="list", help="List the artifacts of a run, the oldest first: what, how large, where.")
@run_option
@phase_option("Only those of this phase.")
@click.option("--kind", metavar="KIND", default="", type=Words(), help="Only those of this kind.")
@click.option("--check", is_flag=True, help="Ask the network too whether the bytes are there.")
@as_json
@with_memory
def list_(
    memory: ProjectMemory, run_id: str | None, phase: str | None, kind: str, *, check: bool, json: bool
) -> None:
    """Print a line for each."""
    from raddle.actions.memory.artifacts import list_artifacts  # noqa: PLC0415
    from raddle.actions.memory.runs import resolve_run  # noqa: PLC0415
    from raddle.wiring.memory_blobs import MemoryBlobs  # noqa: PLC0415

    run = resolve_run(memory.files, run_id or "")
    found = list_artifacts(memory.files, run.run_id, phase=phase or "", kind=kind)
    with MemoryBlobs(memory) as stores:
        rows = [_shape(stores, one, memory=memory, asks=check) for one in found.artifacts]
    if json:
        output.json(rows)
    else:
        _print(rows, memory.stores.clock())
        if not rows:
            diagnostics.say("there is no such artifact; `raddle artifact add` keeps one")
    for artifact_id, reason in found.unread.items():
        diagnostics.warn(words.one_line(reason or f"artifact {artifact_id!r} cannot be read"))


_HERE = {True: "here", False: "missing", None: "elsewhere"}


def _print(rows: list[dict[str, Any]], now: int) -> None:
    cells = [
        [
            words.one_line(row["artifact_id"]),
            words.one_line(row["kind"]),
            words.one_line(row["phase"]),
            words.size(row["size_bytes"]),
            words.one_line(row["store"] or ("in the memory" if row["is_here"] is not None else row["uri"])),
            _HERE[row["is_here"]],
            words.ago(row["created_ts"], now),
        ]
        for row in rows
    ]
    styles = (None, "dim", None, None, "dim", None, "dim")
    for line in words.table(
        cells, (60, 20, 24, 12, 24, 9, 14), styles=styles, width=output.columns(), shrink=(0, 4, 1)
    ):
        output.styled(line)


def _place_of(one: Artifact) -> str:
    place = parse_blob_uri(one.uri)
    return "the memory" if one.backend == INLINE else f"the store of blobs {place[0] if place else one.uri!r}"


def _shape(
    stores: MemoryBlobs, one: Artifact, *, memory: ProjectMemory | None = None, asks: bool = False
) -> dict[str, Any]:
    """An artifact in JSON. `is_here`: null where only the network knows."""
    place = None if one.backend == INLINE else parse_blob_uri(one.uri)
    is_here: bool | None = None
    if one.backend == INLINE:
        is_here = memory is None or (one.path is not None and memory.files.read(one.path) is not None)
    elif place is not None:
        is_here = stores.is_here(*place, asks=asks)
    return {
        "artifact_id": one.artifact_id,
        "kind": one.kind,
        "phase": one.produced_by_phase,
        "size_bytes": one.size_bytes,
        "sha256": one.sha256,
        "store": place[0] if place else None,
        "uri": one.uri,
        "is_here": is_here,
        "created_ts": one.created_ts,
    }
