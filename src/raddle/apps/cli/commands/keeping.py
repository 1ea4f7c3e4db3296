"""Commands that keep threads in order: rename, tag, pin, archive, private."""

from __future__ import annotations

import click

from raddle.apps.cli import output
from raddle.apps.cli.options import as_json, thread_argument
from raddle.wiring import Stores, with_stores


@click.command(help="Set the title of thread ID; an empty TITLE takes it away.")
@thread_argument
@click.argument("title")
@as_json
@with_stores
def rename(stores: Stores, thread: str, title: str, json: bool) -> None:
    """The title heads lists, and is searched first."""
    with stores.threads.edit(stores.resolve(thread)) as editor:
        editor.rename(output.text_or_stdin(title))
    output.answer(
        json, {"id": editor.thread.id, "title": editor.thread.title}, editor.thread.title or "(no title)"
    )


@click.command(help="Add TAGS to thread ID, or take them away; without TAGS print what it has.")
@thread_argument
@click.argument("tags", nargs=-1)
@click.option("-r", "--remove", multiple=True, metavar="TAG", help="Take this tag away; may be given again.")
@as_json
@with_stores
def tag(stores: Stores, thread: str, tags: tuple[str, ...], remove: tuple[str, ...], json: bool) -> None:
    """Tags are found by `raddle search tag:NAME` and `raddle list tag:NAME`."""
    from raddle.actions.threads import tag as change  # noqa: PLC0415

    thread_id = stores.resolve(thread)
    if tags or remove:
        has = change(stores.threads, thread_id, tags, remove)
    else:
        has = stores.threads.load(thread_id).tags
    output.answer(json, {"id": thread_id, "tags": has}, " ".join(f"#{name}" for name in has) or "(no tags)")


def _flag(name: str, help_text: str, on: str, off: str) -> click.Command:
    """A command that sets one flag of a thread, and with --off takes it back."""

    @click.command(name=name, help=help_text)
    @thread_argument
    @click.option("--off", is_flag=True, help="Take it back.")
    @as_json
    @with_stores
    def flag(stores: Stores, thread: str, off: bool, json: bool) -> None:
        with stores.threads.edit(stores.resolve(thread)) as editor:
            if name == "pin":
                editor.pin(not off)
            elif name == "archive":
                editor.archive(not off)
            else:
                editor.set_private(not off)
        thread_now = editor.thread
        value = {
            "id": thread_now.id,
            "is_pinned": thread_now.is_pinned,
            "is_archived": thread_now.is_archived,
            "is_private": thread_now.is_private,
            "visibility": thread_now.visibility,
        }
        output.answer(json, value, off_text if off else on)

    off_text = off
    return flag


pin = _flag("pin", "Put thread ID first in lists; --off: no longer.", "pinned", "no longer pinned")
archive = _flag(
    "archive",
    "Put thread ID away: out of lists, still found by search; --off brings it back.",
    "archived",
    "back from the archive",
)
private = _flag(
    "private",
    "Keep thread ID on this machine: never synced, shared or searched online; --off ends that.",
    "private: it never leaves this machine",
    "no longer private (its visibility stays private until you share it)",
)
