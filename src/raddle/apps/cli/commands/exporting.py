"""`raddle export`: a thread, or one branch of it, as a file for people or for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from raddle.apps.cli import diagnostics, output
from raddle.apps.cli.options import thread_argument
from raddle.wiring import Stores, with_stores

FORMATS = ("markdown", "json", "jsonl", "text", "loom", "quorum")


@click.command(help="Write thread ID out: to stdout, or to PATH.")
@thread_argument
@click.option("--branch", metavar="LEAF", help="Only the path from the root to this message.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="markdown", show_default=True)
@click.option(
    "-o", "--output", "path", metavar="PATH", help="Write there instead; an existing file is replaced whole."
)
@with_stores
def export(stores: Stores, thread: str, branch: str | None, kind: str, path: str | None) -> None:
    """JSON is the thread file itself; loom and quorum open in those programs."""
    from raddle.actions.exporting.registry import form_named  # noqa: PLC0415
    from raddle.actions.threads import find_message  # noqa: PLC0415

    loaded = stores.threads.load(stores.resolve(thread))
    leaf = find_message(loaded, branch).id if branch else None
    data = form_named(kind).export(loaded, leaf)
    if path is None or path == "-":
        output.write_bytes(data)
        return
    from raddle.wiring import write_file  # noqa: PLC0415

    write_file(Path(path), data)
    diagnostics.say(f"wrote {len(data):,} bytes to {path}")
