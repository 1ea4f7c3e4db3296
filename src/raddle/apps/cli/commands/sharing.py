"""`raddle share`: who may read a thread on the server."""

from __future__ import annotations

import click

from raddle.apps.cli import diagnostics, output
from raddle.apps.cli.options import as_json, thread_argument, with_stores
from raddle.model.errors import InvalidInput, NetworkError, NotSignedIn
from raddle.model.threads.visibility import ORGANIZATION, PUBLIC, VISIBILITIES
from raddle.wiring import Stores

_TOLD = {
    "private": "only you can read it",
    ORGANIZATION: "members of the space it lies in can read it",
    PUBLIC: "anybody with its address can read it",
}


@click.command(
    help="""Say who may read thread ID on the server: only you (private), the members of its space (organization), or
    anybody with its address (public). A thread that is kept private (`raddle private`) is not shared."""
)
@thread_argument
@click.option("--visibility", type=click.Choice(VISIBILITIES), required=True, help="Who may read it.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@as_json
@with_stores
def share(stores: Stores, thread: str, visibility: str, dry_run: bool, json: bool) -> None:
    """Set it here, then tell the server."""
    from raddle.wiring.syncing import sync_one  # noqa: PLC0415  the help of other commands needs none of it

    thread_id = stores.resolve(thread)
    before = stores.threads.load(thread_id)
    if before.is_private:
        raise InvalidInput(
            "the thread is private: it does not leave this machine",
            f"`raddle private {thread} --off` ends that",
        )
    value = {"id": thread_id, "visibility": visibility, "was": before.visibility}
    if dry_run:
        output.answer(
            json, {**value, "is_dry_run": True}, f"it is {before.visibility}, and would be {visibility}"
        )
        return
    with stores.threads.edit(thread_id) as editor:
        editor.set_visibility(visibility)
    address = ""
    try:
        address = sync_one(stores, thread_id)
    except (NetworkError, NotSignedIn) as error:
        diagnostics.warn(f"the server was not told yet: {error.message}; the next sync tells it")
    told = f"{visibility}: {_TOLD[visibility]}"
    output.answer(json, {**value, "is_told": bool(address), "url": address or None}, told)
    if address and visibility == PUBLIC:
        diagnostics.say(address)
