"""`raddle export`: a thread, or one branch of it, as a file for people or for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import message_option, thread_argument, with_stores
from raddle.wiring import Stores

FORMATS = ("markdown", "text", "json", "jsonl", "loom", "quorum")


@click.command(
    help="""Write thread ID out, to stdout or to PATH.

    The forms (--format):

    \b
    markdown       to read, or to put into a repository
    text           plain text
    json           the thread file itself
    jsonl          one message a line
    loom, quorum   as these programs read it
    """,
)
@thread_argument
@message_option("--branch", "Only the path from the root to this message.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    default="markdown",
    metavar="FORM",
    help="One of the forms above; markdown unless said.",
)
@click.option("--json", "is_json", is_flag=True, help="The same as --format json; errors as JSON on stderr.")
@click.option(
    "-o", "--output", "path", metavar="PATH", help="Write there instead; an existing file is replaced whole."
)
@with_stores
def export(
    stores: Stores, thread: str, branch: str | None, kind: str, is_json: bool, path: str | None
) -> None:
    """Write the bytes of the form asked for."""
    from raddle.actions.exporting.registry import form_named  # noqa: PLC0415
    from raddle.actions.threads import find_message  # noqa: PLC0415

    loaded = stores.threads.load(stores.resolve(thread))
    leaf = None if branch is None else find_message(loaded, branch).id
    data = form_named("json" if is_json else kind).export(loaded, leaf)
    if path is None or path == "-":
        output.write_bytes(data)
        return
    from raddle.wiring import write_file  # noqa: PLC0415

    write_file(Path(path), data)
    diagnostics.say(f"wrote {words.size(len(data))} to {words.one_line(path)}")
