"""`raddle share`: who may read a thread on the server."""

from __future__ import annotations

import click

from raddle.apps.cli import diagnostics, output
from raddle.apps.cli.options import as_json, thread_argument, with_stores
from raddle.model.errors import ConflictError, InvalidInput, NetworkError, NotSignedIn
from raddle.model.threads.visibility import ORGANIZATION, PUBLIC, VISIBILITIES
from raddle.wiring import Stores, has_server

_TOLD = {
    "private": "only you can read it",
    ORGANIZATION: "members of the space it lies in can read it; as long as that is your own, only you",
    PUBLIC: "anybody with its address can read it",
}


@click.command(
    help="""Say who may read thread ID on the server: only you (private), the members of its space (organization: in a
    space of your own that is you alone), or anybody with its address (public), which gives the thread file as JSON.

    What the server knows is taken in first, so that this settles what another device said. A thread that is kept
    private (`raddle private`) is not shared."""
)
@thread_argument
@click.option("--visibility", type=click.Choice(VISIBILITIES), required=True, help="Who may read it.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@as_json
@with_stores
def share(stores: Stores, thread: str, visibility: str, dry_run: bool, json: bool) -> None:
    """Take in what the server knows, set it, tell the server, and print what it is now."""
    from raddle.wiring.syncing import set_visibility  # noqa: PLC0415  the help of other commands needs none of it
    from raddle.wiring.syncing import share as share_now  # noqa: PLC0415

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
    now, address, why_not = visibility, "", _why_unasked(stores)
    try:
        if not why_not:
            now, address = share_now(stores, thread_id, visibility)
    except (NetworkError, NotSignedIn) as error:
        why_not = error.message
    if why_not:
        set_visibility(stores, thread_id, visibility)
        diagnostics.warn(f"the server was not told yet: {why_not}; the next sync tells it")
    if now != visibility:
        raise ConflictError(
            f"it is {now} and not {visibility}: another device said so at the same time",
            "say it again: `raddle share` settles it",
        )
    told = f"{now}: {_TOLD[now]}" if address else f"{now}, once the server is told"
    output.answer(json, {**value, "is_told": bool(address), "url": address or None}, told)
    if address and now == PUBLIC:
        diagnostics.say(address)


def _why_unasked(stores: Stores) -> str:
    """Why no server is asked at all; empty where one is."""
    if stores.config.is_offline:
        return "RADDLE_OFFLINE is set"
    return "" if has_server(stores) else "none is known"
