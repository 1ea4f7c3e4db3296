"""Commands that keep threads in order: rename, tag, pin, archive, private."""

from __future__ import annotations

import sys

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import (
    KeptText,
    TextOrStdin,
    Words,
    as_json,
    complete_thread,
    thread_argument,
    with_stores,
)
from raddle.apps.cli.telling import tell
from raddle.model.errors import InvalidInput
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores


@click.command(
    help="""Set the title of thread ID (a lone - reads it from stdin); an empty TITLE makes it the thread's first
    words again."""
)
@thread_argument
@click.argument("title", type=TextOrStdin())
@as_json
@with_stores
def rename(stores: Stores, thread: str, title: str, json: bool) -> None:
    """The title heads lists, and is searched first."""
    from raddle.actions.importing.titles import title_from  # noqa: PLC0415
    from raddle.actions.threads import rename as give  # noqa: PLC0415

    thread_id = stores.resolve(thread)
    now = give(stores.threads, thread_id, title, title_of=title_from)
    output.answer(json, {"id": thread_id, "title": now}, words.one_line(now) or "(no title)")


@click.command(
    help="""Add TAGs to thread ID, or take them away, and print those it has then.

    `raddle list tag:NAME` and `raddle search tag:NAME` find them. A tag to take away that is not there is told,
    and is no error.""",
)
@thread_argument
@click.argument("tags", nargs=-1, metavar="[TAG]…", type=KeptText())
@click.option(
    "-r",
    "--remove",
    multiple=True,
    metavar="TAG",
    type=Words(),
    help="Take this tag away; may be given again.",
)
@as_json
@with_stores
def tag(stores: Stores, thread: str, tags: tuple[str, ...], remove: tuple[str, ...], json: bool) -> None:
    """Print the tags."""
    from raddle.actions.threads import tag as change  # noqa: PLC0415

    thread_id = stores.resolve(thread)
    missing: list[str] = []
    if tags or remove:
        has, missing = change(stores.threads, thread_id, tags, remove)
    else:
        has = stores.threads.load(thread_id).tags
    told = words.one_line(" ".join(f"#{name}" for name in has)) or "(no tags)"
    output.answer(json, {"id": thread_id, "tags": has}, told)
    for name in missing:
        diagnostics.note(f"it had no tag #{words.one_line(name).removeprefix('#')}")


_off = click.option("--off", is_flag=True, help="Take it back.")


@click.command(help="Put thread ID first in lists; --off: no longer.")
@thread_argument
@_off
@as_json
@with_stores
def pin(stores: Stores, thread: str, off: bool, json: bool) -> None:
    """Print what it is now."""
    with stores.threads.edit(stores.resolve(thread)) as editor:
        editor.pin(not off)
    _answer(editor.thread, "no longer pinned" if off else "pinned", json=json)


@click.command(
    help="Put thread ID away: out of lists, still found by search and by `raddle list --all`; --off brings it back."
)
@thread_argument
@_off
@as_json
@with_stores
def archive(stores: Stores, thread: str, off: bool, json: bool) -> None:
    """Print what it is now."""
    with stores.threads.edit(stores.resolve(thread)) as editor:
        editor.archive(not off)
    _answer(editor.thread, "back from the archive" if off else "archived", json=json)


@click.command(
    help="""Keep thread ID on this machine: never synced, never shared, never searched online; --off ends that.

    Without ID, a private conversation starts: a talk where somebody is set up to answer (`raddle responders`), else its
    first turn is read from stdin. What shall be private by itself,
    by folder or by repository, stands in config.toml under [private].""",
)
@click.argument("thread", metavar="[ID]", required=False, type=Words(), shell_complete=complete_thread)
@_off
@as_json
@with_stores
def private(stores: Stores, thread: str | None, off: bool, json: bool) -> None:
    """Print what it is now, or the id of the new thread."""
    if thread is None:
        from raddle.apps.cli.chatting import Talk  # noqa: PLC0415
        from raddle.apps.cli.commands.writing import begin  # noqa: PLC0415

        if off:
            raise InvalidInput("--off needs a thread", "name it: `raddle private ID --off`")
        if stores.config.responders and sys.stdin.isatty() and not json:
            Talk(stores, is_private=True).run()
            return
        begin(stores, TextOrStdin().convert("-", None, None), is_private=True, json=json)
        return
    with stores.threads.edit(stores.resolve(thread)) as editor:
        editor.set_private(not off)
    tell(stores, [editor.thread.id], still="" if off else "the server still has this thread")
    _answer(editor.thread, "no longer private" if off else "private: it stays on this machine", json=json)
    if off and editor.thread.visibility == "private":
        diagnostics.suggest("only you can see it, until you share it")


def _answer(thread: Thread, text: str, *, json: bool) -> None:
    value = {
        "id": thread.id,
        "is_pinned": thread.is_pinned,
        "is_archived": thread.is_archived,
        "is_private": thread.is_private,
        "visibility": thread.visibility,
    }
    output.answer(json, value, text)
