"""`raddle present`: what the phases of a run have handed on, as a report, slides and a site of pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.memory_options import file_argument, run_option, with_memory
from raddle.apps.cli.memory_words import tell_findings
from raddle.apps.cli.options import as_json

if TYPE_CHECKING:
    from raddle.wiring.memory import ProjectMemory
    from raddle.wiring.presenting import Written


@click.command(
    help="""Write what the phases of a run have handed on: a report (Markdown), slides (.pptx), pages (MkDocs).

    Only handoffs are read, of the phases before the one that presents: the one called present, else all. Figures that
    are PNGs or JPEGs are shown, others are named. Slides need `pip install 'raddle[present]'`.

    Doing it again replaces what was written, and takes away what is no part of it any more. A file that this did not
    write, or that somebody has changed since, is left alone, unless --force.

    \b
    raddle present --out talk
    raddle present --format deck --run 01M8PZ""",
)
@run_option
@click.option(
    "--phase", metavar="PHASE", help="The phase that presents; those before it are read. Else: present."
)
@click.option(
    "--out",
    "folder",
    metavar="DIR",
    type=file_argument,
    default=Path("presentation"),
    show_default=True,
    help="The folder to write to.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(["report", "deck", "site"]),
    multiple=True,
    help="Only this; it may be given several times.",
)
@click.option("--force", is_flag=True, help="Write over files that this did not write.")
@as_json
@with_memory
def present(
    memory: ProjectMemory,
    run_id: str | None,
    phase: str | None,
    folder: Path,
    formats: tuple[str, ...],
    force: bool,
    json: bool,
) -> None:
    """Print the file of each format that a person opens."""
    from raddle.wiring.presenting import present as write  # noqa: PLC0415

    with diagnostics.waiting("the figures"):
        written = write(memory, folder, run=run_id or "", phase=phase, formats=formats, may_overwrite=force)
    tell_findings(written.findings)
    if json:
        output.json(_shape(written))
    else:
        for path in written.first:
            output.line(words.one_line(str(path)))
    for artifact_id, why in written.unseen:
        diagnostics.note(words.one_line(f"the figure {artifact_id!r} is named and not shown: {why}"))
    for left in written.replaced.kept:
        diagnostics.note(words.one_line(f"{left} is no part of it any more; it was changed, and stays"))
    for error in written.missing:
        diagnostics.note(f"no slides: {error.message}; {error.hint}")


def _shape(written: Written) -> dict[str, Any]:
    """What was made, in JSON (docs/reference/json.md)."""
    return {
        "run_id": written.run_id,
        "phase": written.phase or None,
        "folder": str(written.folder),
        "formats": list(written.formats),
        "files": list(written.replaced.files),
        "removed": list(written.replaced.removed),
        "kept": list(written.replaced.kept),
        "figures_not_shown": [{"artifact_id": name, "why": why} for name, why in written.unseen],
    }
