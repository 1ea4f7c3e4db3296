"""`raddle export`: a thread, or one branch of it, as a file for people or for other programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import message_option, thread_argument, with_stores
from raddle.model.errors import InvalidInput, NetworkError, TooManyRequests
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.model.threads.thread import Thread
    from raddle.wiring.native_export import NativeSession

NATIVE = ("claude-code", "codex", "gemini")
FORMATS = ("markdown", "text", "json", "jsonl", "loom", "quorum", *NATIVE)


@click.command(
    help="""Write thread ID out, to stdout or to PATH.

    The forms (--format):

    \b
    markdown       to read, or to put into a repository
    text           plain text
    json           the thread file itself
    jsonl          one message a line
    loom, quorum   as these programs read it
    claude-code, codex, gemini
                   a session of that agent as its own file: what the agent wrote,
                   byte for byte, and behind it the turns that were added here

    PATH may be a folder (one that is there, or with a / at its end): the file in it is named for the thread, an agent's
    own as the agent named it; of a session with several files it gets them all.
    """,
)
@thread_argument
@message_option(
    "--branch", "Only the path from the root to this message; of an agent's own file, only added turns on it."
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    metavar="FORM",
    help="One of the forms above; markdown unless said.",
)
@click.option(
    "--generation",
    type=click.IntRange(min=1),
    metavar="N",
    help="An agent's own file as it was before it was rewritten, from 1; nothing is added to it.",
)
@click.option("--json", "is_json", is_flag=True, help="The same as --format json; errors as JSON on stderr.")
@click.option(
    "-o",
    "--output",
    "output_path",
    metavar="PATH",
    help="Write there instead; an existing file is replaced whole.",
)
@with_stores
def export(
    stores: Stores,
    *,
    thread: str,
    branch: str | None,
    kind: str | None,
    generation: int | None,
    is_json: bool,
    output_path: str | None,
) -> None:
    """Write the bytes of the form asked for."""
    from raddle.actions.exporting.registry import form_named  # noqa: PLC0415
    from raddle.actions.threads import find_message  # noqa: PLC0415

    if is_json and kind not in (None, "json"):
        raise InvalidInput(f"--json is --format json, not --format {kind}", "leave one of the two out")
    kind = "json" if is_json else kind or "markdown"
    if generation is not None and kind not in NATIVE:
        raise InvalidInput(
            "--generation is of an agent's own file", f"say which: --format {', '.join(NATIVE)}"
        )
    loaded = stores.threads.load(stores.resolve(thread))
    leaf = None if branch is None else find_message(loaded, branch).id
    to = None if output_path == "-" else output_path
    if kind in NATIVE:
        _export_native(stores, loaded, kind, leaf=leaf, generation=generation, path=to)
        return
    form = form_named(kind)
    data = form.export(loaded, leaf)
    if to is None:
        output.write_bytes(data)
        return
    from raddle.wiring import write_file  # noqa: PLC0415
    from raddle.wiring.native_export import folder_at, made_folder  # noqa: PLC0415

    folder = folder_at(to)
    path = Path(to) if folder is None else made_folder(folder) / f"{loaded.id}{form.suffix}"
    write_file(path, data)
    _say_written(len(data), to if folder is None else str(path))


def _say_written(size: int, path: str) -> None:
    diagnostics.say(f"wrote {words.size(size)} to {words.one_line(path)}")


def _export_native(
    stores: Stores, thread: Thread, kind: str, *, leaf: str | None, generation: int | None, path: str | None
) -> None:
    """An agent's own file, in pieces: a session may be larger than the memory."""
    from raddle.wiring.native_export import check_whole, chunks_of, folder_at, write_session  # noqa: PLC0415

    session = _native_session(stores, thread, kind, leaf=leaf, generation=generation)
    folder = folder_at(path) if path is not None else None
    if path is None:
        check_whole(stores, session.main)
        for data in chunks_of(stores, session.main):
            output.write_bytes(data)
    elif folder is not None:
        for file, size in write_session(stores, session, folder):
            _say_written(size, str(file))
    else:
        from raddle.wiring import write_pieces  # noqa: PLC0415

        _say_written(write_pieces(Path(path), chunks_of(stores, session.main)), path)
    for line in _remarks(session, is_folder=folder is not None, is_newest=generation is None):
        diagnostics.say(line)


def _native_session(
    stores: Stores, thread: Thread, kind: str, *, leaf: str | None, generation: int | None
) -> NativeSession:
    """The session; where bytes of it are not here, once more with what the server has of them."""
    from raddle.wiring.native_export import FORMS, MissingBytes, native_session  # noqa: PLC0415

    try:
        return native_session(stores, thread, kind, leaf=leaf, generation=generation)
    except MissingBytes as missing:
        from raddle.wiring.fetching import fetch_sources  # noqa: PLC0415  most exports fetch nothing

        try:
            fetched = fetch_sources(stores, thread, FORMS[kind].agent)
        except (NetworkError, TooManyRequests) as error:
            diagnostics.warn(f"the server was asked for the source bytes: {error.message}")
            raise missing from error
        if fetched is None:
            raise
    diagnostics.say(
        f"fetched {words.size(fetched.size)} of source bytes from {fetched.server}; they are kept here"
    )
    return native_session(stores, thread, kind, leaf=leaf, generation=generation)


def _remarks(session: NativeSession, *, is_folder: bool, is_newest: bool) -> Iterator[str]:
    """What a person should know of what was written, and of what was not."""
    if session.added:
        yield f"with {words.count(session.added, 'turn')} added here, behind what the agent wrote"
    if session.others and not is_folder:
        files = words.count(len(session.others), "more file")
        yield f"left out: {files} of this session, such as {session.others[0].name}; -o FOLDER/ writes all"
    if session.elsewhere:
        turns = words.count(session.elsewhere, "added turn")
        yield f"left out: {turns} on other branches; --branch MESSAGE takes the path to one"
    if session.unwritten:
        yield f"left out: {words.count(session.unwritten, 'added turn')} that the format has no place for"
    later = [number for number in session.generations if number > session.generation]
    if later and is_newest:
        yield (
            f"this is generation {session.generation} of the file: nothing can be read in what it was rewritten to;"
            f" --generation {later[-1]} gives that"
        )
        return
    earlier = [number for number in session.generations if number < session.generation]
    if earlier and is_newest:
        numbers = ", ".join(map(str, earlier))
        yield (
            f"this is generation {session.generation} of the file, which was rewritten;"
            f" --generation N gives an earlier one: {numbers}"
        )
