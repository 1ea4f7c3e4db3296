"""What the server answers to a search, and the list of threads: the same values as on a machine of one's own.

Both are restricted to what the reader may read, and a word that stands only where they may not look finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from psycopg import Connection

from raddle.model.threads.query import Query, is_of_thread, parse
from raddle.model.threads.search_answer import Scope, SearchAnswer
from raddle.model.threads.search_order import Cursor, Key, check_of, format_cursor, no_cursor, parse_cursor
from raddle.model.threads.summary import ThreadSummary
from raddle.server.search.lookup import Lookup
from raddle.server.search.ranking import Ranking, place_of, unscored_key
from raddle.server.search.reading import Reader, Tables
from raddle.server.search.walking import Place


class Listed(NamedTuple):
    """One page of a list. `cursor`: where the next page begins; empty after the last."""

    threads: tuple[ThreadSummary, ...]
    cursor: str = ""


def search(
    connection: Connection,
    reader: Reader,
    query: Query | str,
    *,
    now: int,
    limit: int = 20,
    cursor: str = "",
    as_you_type: bool = False,
) -> SearchAnswer:
    """The next `limit` threads with a hit that `reader` may read, best first. `cursor`: of the page before.

    `now`: microseconds since 1970, for recency and for times like `7d`; a cursor brings that of its first page.
    InvalidInput for a cursor that is none, or of another query.
    """
    after = parse_cursor(cursor, Cursor) if cursor else None
    moment = now if after is None else after.now
    asked = parse(query, now=moment, as_you_type=as_you_type) if isinstance(query, str) else query
    if after is not None:
        after.must_fit(asked)
    key = None if after is None else after.key
    with connection.transaction():
        lookup = Lookup(
            Tables(connection, reader), asked, after=None if key is None else _place_of(key, cursor)
        )
        ranking = Ranking(lookup, moment, key)
        places, has_more = ranking.page(max(limit, 0))
        hits = ranking.hits(places) if places else ()
        scope = _scope(lookup)
    last = places[-1].key if places and has_more else None
    if not has_more and lookup.horizon is not None:
        last = unscored_key(*lookup.horizon)
    following = None if last is None else Cursor(moment, last, check_of(asked))
    return SearchAnswer(
        scope=scope,
        total_threads=lookup.total,
        hits=hits,
        cursor="" if following is None else format_cursor(following),
    )


def listed(
    connection: Connection,
    reader: Reader,
    query: Query | str | None = None,
    *,
    now: int = 0,
    limit: int = 50,
    cursor: str = "",
) -> Listed:
    """The next `limit` threads that `reader` may read, by their last activity, newest first; with a query, those it
    finds. InvalidInput for a cursor that is none."""
    after = _parse_place(cursor) if cursor else None
    asked = parse(query, now=now) if isinstance(query, str) else query
    with connection.transaction():
        tables = Tables(connection, reader)
        if asked is None or asked.is_empty:
            places, horizon = tables.newest(after, limit + 1) if tables.spaces else [], None
        else:
            places, horizon = _found(tables, asked, after, limit + 1)
        page = places[: max(limit, 0)]
        summaries = tables.summaries([number for _, number in page])
    has_more = len(places) > len(page)
    last = (page[-1] if page else after) if has_more else horizon
    following = "" if last is None else format_cursor(last)
    threads = tuple(summaries[number] for _, number in page if number in summaries)
    return Listed(threads, following)


def _found(tables: Tables, asked: Query, after: Place | None, limit: int) -> tuple[list[Place], Place | None]:
    """The places that were found, and where those end that were looked for; None: nowhere."""
    # A thread whose every turn was taken back has no message to find, and is in the list all the same.
    asks_messages = bool(asked.terms) or not all(map(is_of_thread, asked.filters))
    lookup = Lookup(tables, asked, asks_messages=asks_messages, after=after)
    if asks_messages:
        found = [(lookup.activity[number], number) for number in lookup.newest_first()]
    else:
        allowed = lookup.allowed or {}
        found = sorted(((activity, number) for number, activity in allowed.items()), reverse=True)
    return [place for place in found if after is None or place < after][:limit], lookup.horizon


def _scope(lookup: Lookup) -> Scope:
    return Scope(
        store="server",
        query=lookup.query.text,
        filters=tuple(one.text for one in lookup.query.filters if one.text),
        ignored=lookup.query.ignored,
        threads=lookup.threads_looked_at,
        is_complete=lookup.is_complete,
        messages_read=lookup.messages_read,
        notes=tuple(_notes(lookup)),
    )


def _notes(lookup: Lookup) -> Iterator[str]:
    """What may be missing in the answer."""
    if lookup.tables.is_stale:
        yield "the index is not whole: it is being made anew"
    if not lookup.is_complete:
        yield "the newest threads were looked into, and there may be more on the next page, or with more words"
    partial = lookup.tables.partly_known() if lookup.query.terms and lookup.tables.spaces else 0
    if partial:
        told = "1 text is searched in its" if partial == 1 else f"{partial:,} texts are searched in their"
        yield f"{told} first and last part only, being longer than 1 MiB"


def _place_of(key: Key, cursor: str) -> Place | None:
    try:
        place = place_of(key)
    except ValueError as error:
        raise no_cursor(cursor) from error
    if place is not None and not all(0 <= each < 1 << 63 for each in place):
        raise no_cursor(cursor)
    return place


def _parse_place(text: str) -> Place:
    place = parse_cursor(text, tuple[int, int])
    if not all(0 <= each < 1 << 62 for each in place):
        raise no_cursor(text)
    return place


def messages_in(
    connection: Connection, reader: Reader, thread_id: str, query: Query | str, *, now: int
) -> list[str]:
    """The ids of the hits in one thread (of whatever space the reader looks into), in the thread's order."""
    asked = parse(query, now=now) if isinstance(query, str) else query
    with connection.transaction():
        tables = Tables(connection, reader)
        lookup = Lookup(tables, asked, among=tables.called(thread_id))
        rows = [row.number for each in lookup.rows_of(lookup.found).values() for row in each]
        texts = lookup.tables.texts(rows).values()
    return [message_id for _, message_id in sorted((text.order, text.id) for text in texts)]
