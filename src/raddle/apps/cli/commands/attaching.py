"""`raddle attachments`: the files and images of a thread."""

from __future__ import annotations

from pathlib import Path

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import as_json, thread_argument, with_stores
from raddle.model.errors import NotFound
from raddle.wiring import Stores


@click.command(
    help="""List the files and images that were attached in thread ID; with -o, write them into a folder.

    One that another device attached is fetched from the server, unless the thread is private.""",
)
@thread_argument
@click.option(
    "-o", "--output", "folder", metavar="FOLDER", type=click.Path(path_type=Path), help="Write them here."
)
@as_json
@with_stores
def attachments(stores: Stores, thread: str, folder: Path | None, json: bool) -> None:
    """Print them, or where they are now."""
    from raddle.wiring.attaching import attachments_in, write_attachments  # noqa: PLC0415

    loaded = stores.threads.load(stores.resolve(thread))
    if folder is not None:
        paths, missing = write_attachments(stores, loaded, folder)
        for path in paths:
            output.line(str(path))
        for one in missing:
            diagnostics.warn(f"{words.one_line(one.name or one.sha256[:12])} is not to be had here")
        if missing and not paths:
            raise NotFound(
                "attachment of", loaded.id, "sign in to the server that has it, or ask where it was attached"
            )
        return
    found = attachments_in(loaded)
    if json:
        output.json(
            [
                {
                    "message_id": message_id,
                    "name": one.name,
                    "media_type": one.media_type,
                    "size": one.size,
                    "sha256": one.sha256,
                }
                for message_id, one in found
            ]
        )
        return
    rows = [
        [
            words.tail(message_id),
            words.one_line(one.name or one.sha256[:12]),
            one.media_type,
            words.size(one.size),
        ]
        for message_id, one in found
    ]
    for line in words.table(rows, (10, 60, 40, 12), styles=("dim", None, "dim", None)):
        output.styled(line)
    if not rows:
        diagnostics.say("nothing was attached")
