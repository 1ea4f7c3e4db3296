"""`raddle search`: messages that were found, grouped by thread, and what was looked at to find them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.commands.listing import place_of, query_hints, titled
from raddle.apps.cli.options import AskingCommand, Words, as_json, as_json_lines, limit_option, with_stores
from raddle.apps.cli.plain_json import encoded
from raddle.apps.cli.shapes import answered, found
from raddle.model.errors import InvalidInput, NetworkError
from raddle.wiring import Stores, has_server

if TYPE_CHECKING:
    from raddle.actions.memory.memory_search import MemoryAnswer
    from raddle.model.threads.search_answer import Hit, SearchAnswer
    from raddle.model.threads.summary import ThreadSummary

_INDENT = "    "
_LEAST_TITLE = 24
_AT_ONCE = 100
"""Hits that a stream makes ready together."""
_MOST_LINES = 2
"""Lines of a snippet where a terminal is: what was found stands in the first 60 characters of it."""
_SAID_BY = {
    "thinking": "thinking",
    "tools": "tool call",
    "output": "tool output",
    "header": "title, tags or git",
}
"""What a hit's field is called where it is not what somebody said."""


@click.command(
    cls=AskingCommand,
    help="""Find messages, the best first.

    A message is found when every word of QUERY stands in its text, or in its thread's title, tags or git facts.

    \b
    "exact phrase"   these words side by side      -word    not this word
    prefix*          words that start so           ~text    also inside a word
    repo: branch: sha: tag: role: agent: tool: file:        a,b is a or b
    before: after:   2026-11-30, or 7d, 12h
    is:pinned is:private is:archived is:removed has:error

    A commit, a path or a URL finds what it names. Any text is a valid query; quote it for the shell:

    \b
    raddle search '"data race" repo:lantern after:30d'
    raddle search --in all "data race"
    """,
)
@click.argument("query", nargs=-1, required=True, type=Words())
@limit_option(10, "threads: 1 to 1000", most=1000)
@click.option("--cursor", default="", metavar="CURSOR", help="Go on where an earlier answer ended.")
@click.option(
    "--as-you-type",
    is_flag=True,
    help="The last word is still being typed: find what begins so.",
)
@click.option(
    "--online",
    is_flag=True,
    help="Search on the server: what your other devices have, and what others show you.",
)
@click.option(
    "--in",
    "where",
    type=click.Choice(("threads", "memory", "all")),
    default="threads",
    help="Look into this project's memory (memories, entries, summaries, handoffs) instead, or as well.",
)
@click.option("--store", "store_path", metavar="PATH", help="The memory's folder, with --in memory or all.")
@as_json
@as_json_lines
@with_stores
def search(
    stores: Stores,
    query: tuple[str, ...],
    limit: int,
    cursor: str,
    as_you_type: bool,
    online: bool,
    where: str,
    store_path: str | None,
    json: bool,
    jsonl: bool,
) -> None:
    """Print hits grouped by thread."""
    text = " ".join(query)
    found = None
    if where == "threads" and store_path is not None:
        raise InvalidInput(
            "--store names a memory, and only threads are searched", "add --in memory, or --in all"
        )
    if where != "threads":
        if where == "memory" and (cursor or online):
            raise InvalidInput("--cursor and --online are for threads", "-n shows more of a memory")
        found = _in_memory(
            stores,
            text,
            store_path,
            limit=limit,
            as_you_type=as_you_type,
            where=where,
            json=json,
            jsonl=jsonl,
        )
        if where == "memory":
            return
    with contextlib.ExitStack() as stack:
        ask = _asker(stores, text, stack, as_you_type=as_you_type, online=online)
        _answer(
            stores,
            ask,
            text,
            limit=limit,
            cursor=cursor,
            as_you_type=as_you_type,
            json=json,
            jsonl=jsonl,
            beside=found,
        )


def _in_memory(
    stores: Stores,
    text: str,
    store_path: str | None,
    *,
    limit: int,
    as_you_type: bool,
    where: str,
    json: bool,
    jsonl: bool,
) -> MemoryAnswer | None:
    """What the memory has, printed but where one document of JSON is to hold threads as well."""
    from raddle.apps.cli.searching_memory import search_here, tell  # noqa: PLC0415  most ask for threads alone

    is_alone = where == "memory"
    found = search_here(stores, store_path, text, limit, as_you_type=as_you_type, is_wanted=is_alone)
    if found is not None and (is_alone or jsonl or not json):
        tell(found, stores.clock(), json=json, jsonl=jsonl, is_first=not is_alone)
        if is_alone:
            for hint in query_hints(stores, text, has_hits=bool(found.total) or as_you_type):
                diagnostics.note(hint)
    return found


def _asker(
    stores: Stores, text: str, stack: contextlib.ExitStack, *, as_you_type: bool, online: bool
) -> Callable[..., SearchAnswer]:
    """What answers `text`: this machine, or the server as long as it does; when it does not, that is said."""
    local = functools.partial(stores.find, text, as_you_type=as_you_type)
    if not online:
        return local
    from raddle.wiring.remote import open_remote, server_of  # noqa: PLC0415  the network is for who asks for it

    server = server_of(stores)
    remote = stack.enter_context(open_remote(stores, is_hurried=True))

    def ask(*, limit: int, cursor: str = "") -> SearchAnswer:
        try:
            with diagnostics.waiting(server):
                return remote.search(text, limit=limit, cursor=cursor, as_you_type=as_you_type)
        except NetworkError as error:
            if cursor:  # the page before was the server's: this machine's next would be another's
                raise
            diagnostics.warn(f"{error.message}: this is what this machine has")
            return local(limit=limit)

    return ask


def _answer(
    stores: Stores,
    ask: Callable[..., SearchAnswer],
    text: str,
    *,
    limit: int,
    cursor: str,
    as_you_type: bool,
    json: bool,
    jsonl: bool,
    beside: MemoryAnswer | None = None,
) -> None:
    """`beside`: what the memory has of it, which one document of JSON holds as well."""
    if jsonl:
        _stream(stores, ask, text, limit, cursor)
        return
    answer = ask(limit=limit, cursor=cursor)
    hints = query_hints(stores, text, has_hits=bool(answer.total_threads) or as_you_type)
    if json:
        told = answered(answer, hints, _states(stores, answer))
        if beside is not None:
            from raddle.apps.cli.memory_found import shape_of_answer  # noqa: PLC0415

            told["memory"] = shape_of_answer(beside)
        output.json(told)
    else:
        output.page(_hits(stores, answer))
        scope = _scope(answer)
        for start, end in words.wrapped(scope, output.columns() or len(scope)):
            diagnostics.say(scope[start:end])
    for hint in hints:
        diagnostics.note(hint)
    if not (json or hints):
        _suggest(answer, limit)


def _stream(stores: Stores, ask: Callable[..., SearchAnswer], text: str, limit: int, cursor: str) -> None:
    """Hits as they are made, then what was looked at: on stderr, so that every line of stdout is a hit."""
    answer = ask(limit=min(limit, _AT_ONCE), cursor=cursor)
    _say_hits(stores, answer)
    shown = len(answer.hits)
    while answer.cursor and shown < limit:
        answer = ask(limit=min(limit - shown, _AT_ONCE), cursor=answer.cursor)
        _say_hits(stores, answer)
        shown += len(answer.hits)
    hints = query_hints(stores, text, has_hits=bool(answer.total_threads))
    for hint in hints:
        diagnostics.note(hint)
    told = answered(answer, hints)
    del told["hits"]
    diagnostics.say(encoded(told).decode())


def _say_hits(stores: Stores, answer: SearchAnswer) -> None:
    states = _states(stores, answer)
    output.json_lines(found(hit, states.get(hit.thread.id, "")) for hit in answer.hits)


def _states(stores: Stores, answer: SearchAnswer) -> dict[str, str]:
    """How each thread that was found stands to the server; empty where there is none."""
    if not has_server(stores):
        return {}
    from raddle.wiring.syncing import states  # noqa: PLC0415  who has no server does not pay for it

    rows = {hit.thread.id: hit.thread for hit in answer.hits}
    return {
        one.id: one.state for one in states(stores, rows.values(), is_of_server=answer.scope.store != "local")
    }


def _hits(stores: Stores, answer: SearchAnswer) -> Iterator[str]:
    now, room = stores.clock(), output.columns()
    short = stores.short_ids(hit.thread.id for hit in answer.hits)
    for at, hit in enumerate(answer.hits):
        if at:
            yield ""
        row = hit.thread
        place = place_of(row) if room is None else words.cut(place_of(row), max(room // 4, 14))
        facts = [place, words.ago(row.last_activity_at, now, is_short=True)]
        if hit.matches > 1:
            facts.append(words.count(hit.matches, "hit"))
        yield from _first_lines(row, short[row.id], "  ".join(facts), room)
        yield from _snippet(hit, room)


def _first_lines(row: ThreadSummary, short_id: str, told: str, room: int | None) -> Iterator[str]:
    """Id, title and what is told of the thread: one line, or two where the title would have no room."""
    left = None if room is None else room - len(short_id) - 2
    beside = None if left is None else left - words.width(told) - 2
    start = words.style(short_id, "yellow")
    if beside is None or beside >= _LEAST_TITLE:
        yield f"{start}  {words.style(titled(row, beside), 'bold')}  {words.style(told, 'dim')}"
    else:
        yield f"{start}  {words.style(titled(row, left), 'bold')}"
        yield _INDENT + words.style(words.cut(told, (room or 0) - len(_INDENT)), "dim")


def _snippet(hit: Hit, room: int | None) -> Iterator[str]:
    said_by = words.one_line(_SAID_BY.get(hit.field, hit.role)) or "–"
    label = f"{said_by} {words.tail(hit.message_id)}: "
    text = label + hit.snippet.text
    parts = [(0, len(text))]
    if room is not None:
        parts = words.wrapped(text, room - len(_INDENT) - 2)
        if len(parts) > _MOST_LINES:
            text = text[: parts[_MOST_LINES - 1][1]] + " …"
            parts = [*parts[: _MOST_LINES - 1], (parts[_MOST_LINES - 1][0], len(text))]
    marks = [(start + len(label), end + len(label)) for start, end in hit.snippet.marks]
    for start, end in parts:
        spans = [(0, len(label), "dim"), *((one, other, "red") for one, other in marks)]
        yield _INDENT + _styled(text, start, end, spans)


def _styled(text: str, start: int, end: int, spans: list[tuple[int, int, str]]) -> str:
    """`text[start:end]` with the parts that lie in one of `spans` (sorted, apart) in their colours."""
    parts, at = [], start
    for one, other, colour in spans:
        begin, finish = max(one, start), min(other, end)
        if begin < finish:
            marked = text[begin:finish]
            shown = (
                click.style(marked, fg="red", bold=True) if colour == "red" else words.style(marked, colour)
            )
            parts += [text[at:begin], shown]
            at = finish
    return "".join([*parts, text[at:end]])


def _scope(answer: SearchAnswer) -> str:
    """What was looked at, so that an empty answer from the wrong place shows that it is from the wrong place."""
    scope = answer.scope
    found, looked_at = (words.count(number, "thread") for number in (answer.total_threads, scope.threads))
    where = "of this machine" if scope.store == "local" else "on the server"
    shown = f", {len(answer.hits)} shown" if len(answer.hits) < answer.total_threads else ""
    said = f"{found} found{shown}; looked at {looked_at} {where}"
    if scope.filters:
        said += f" with {' '.join(scope.filters)}"
    notes = list(scope.notes)
    if scope.ignored:
        notes.append(f"ignored: {' '.join(scope.ignored)}")
    if not scope.is_complete:
        notes.append(f"looked inside the newest {words.count(scope.messages_read, 'message')} only")
    if scope.pending:
        notes.append(f"{words.count(scope.pending, 'thread')} changed since and not in this answer yet")
    return words.one_line("; ".join([said, *notes]))


def _suggest(answer: SearchAnswer, limit: int) -> None:
    if answer.cursor:
        more = min(answer.total_threads, limit * 5)
        diagnostics.suggest(f"-n {more} shows more of them; filters narrow them (`raddle search --help`)")
    elif not answer.hits and not answer.scope.threads:
        diagnostics.suggest("`raddle import` brings in the sessions of other agents")
    elif not answer.hits:
        diagnostics.suggest("fewer words find more; `prefix*` and `~inside` find parts of words")
