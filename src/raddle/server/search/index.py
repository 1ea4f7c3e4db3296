"""Makes the words of threads findable, in the transaction that brings them; and takes them out again.

The one place that writes the tables of search. A second writer would store words that no query is spelt for, or
leave words of a thread that its owner took away.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from psycopg import Connection

from raddle.model.clock import parse_time
from raddle.model.threads.message import Message
from raddle.model.threads.search_fields import MessageText, cut_row, fields_of, header_of, time_of
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary
from raddle.model.threads.view import as_others_see
from raddle.model.threads.visibility import Viewer, may_read
from raddle.server import rows
from raddle.server.search import streams
from raddle.server.search.asking import either, for_spaces, lexeme
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.search", "index.sql")
EVERYBODY, OWNER, OTHERS = range(3)
"""Who finds a row: what others see of a message may be less than what its owner does, and is a row of its own then."""
AUDIENCES = 4
"""`place` of a row: its thread's number times this, and who finds it."""

BLOCK_MESSAGES = 64
_SMALL = 8
"""So many blocks are made one: of single messages first, then of those."""
_TERMS_LOCK = 7_233_536
"""Of the advisory locks of a database, with a space's number: the vocabulary of that space."""
_TERMS_AT_ONCE = 500
_MOST_TIME = (1 << 62) - 1
_local = threading.local()


class Row(NamedTuple):
    """A message for one audience as the tables hold it: its parts, nearly always one."""

    message_id: bytes
    audience: int
    at: int
    fields: int
    parts: list[streams.Stream]


class _Known(NamedTuple):
    """What is known of a thread when it is put in. `was_*`: what the index has, None where it has nothing."""

    space_id: UUID
    thread_id: str
    owner: UUID
    has_removed: bool
    space: int | None
    was_space: int | None
    was_format: int | None
    had_removed: bool | None


class ServerIndex:
    """The `MessageIndex` of PostgreSQL."""

    def put(
        self, connection: Connection, number: int, summary: ThreadSummary, messages: Sequence[Message]
    ) -> None:
        """Make findable what changed: the thread's header as `summary` says, and these messages of it.

        A thread that the index does not hold yet, or in another format, is put in whole.
        """
        found = connection.execute(SQL["thread"], {"thread": number}).fetchone()
        if found is None:
            return
        known = _Known(*found)
        if summary.is_private or known.was_space not in {None, known.space}:
            self.erase(connection, number)
        if summary.is_private:
            return
        space = known.space
        if space is None:
            space = _one(connection, "number_space", space_id=known.space_id)
        is_whole = known.was_space != space or known.was_format != streams.FORMAT
        takes_words = any(message.is_purged for message in messages)
        _run(connection, "read_by_index")
        _run(connection, "own_terms" if takes_words else "share_terms", lock=_TERMS_LOCK, space=space)
        if is_whole:
            _run(connection, "erase_rows", thread=number)
            where = {"space_id": known.space_id, "thread_id": known.thread_id}
            bodies = connection.execute(SQL["whole_thread"], where, binary=True)
            messages = [rows.message_of(body) for (body,) in bodies]
        tokens = _put_header(connection, number, space, known, summary)
        gone = set() if is_whole else _erase_messages(connection, number, messages)
        tokens |= _put_messages(connection, number, space, messages)
        if tokens:
            _run(connection, "put_terms", space=space, terms=sorted(tokens))
        if takes_words:
            _forget(connection, space, gone - tokens)
        if known.has_removed or known.had_removed:
            _mark_shown(connection, number, known)
        _merge_blocks(connection, number)
        _run(connection, "empty_lists")

    def put_header(self, connection: Connection, number: int, summary: ThreadSummary) -> bool:
        """What lists and access ask of a thread, and the names in its header; was it not in, or in another format?

        Its messages stay as they are: they come by `put_messages`.
        """
        found = connection.execute(SQL["thread"], {"thread": number}).fetchone()
        if found is None:
            return False
        known = _Known(*found)
        if summary.is_private or known.was_space not in {None, known.space}:
            self.erase(connection, number)
        if summary.is_private:
            return False
        space = known.space
        if space is None:
            space = _one(connection, "number_space", space_id=known.space_id)
        _run(connection, "share_terms", lock=_TERMS_LOCK, space=space)
        tokens = _put_header(connection, number, space, known, summary)
        if tokens:
            _run(connection, "put_terms", space=space, terms=sorted(tokens))
        if known.has_removed or known.had_removed:
            _mark_shown(connection, number, known)
        return known.was_space != space or known.was_format != streams.FORMAT

    def put_messages(self, connection: Connection, number: int, messages: Sequence[Message]) -> None:
        """Make findable what these messages say now, of a thread whose header is in."""
        found = connection.execute(SQL["thread"], {"thread": number}).fetchone()
        if found is None or (space := _Known(*found).was_space) is None:
            return
        known = _Known(*found)
        _run(connection, "read_by_index")
        _run(connection, "share_terms", lock=_TERMS_LOCK, space=space)
        _erase_messages(connection, number, messages)
        tokens = _put_messages(connection, number, space, messages)
        if tokens:
            _run(connection, "put_terms", space=space, terms=sorted(tokens))
        if known.has_removed or known.had_removed:
            _mark_shown(connection, number, known)
        _merge_blocks(connection, number)
        _run(connection, "empty_lists")

    def erase(self, connection: Connection, number: int) -> None:
        """Leave no word of a thread, nor of the vocabulary what no other thread has."""
        found = connection.execute(SQL["thread"], {"thread": number}).fetchone()
        if found is None or (space := _Known(*found).was_space) is None:
            return
        _run(connection, "read_by_index")
        _run(connection, "own_terms", lock=_TERMS_LOCK, space=space)
        gone = _tokens_in(_run(connection, "erase_rows", thread=number))
        gone |= _tokens_in(_run(connection, "erase_header", thread=number))
        _run(connection, "erase_thread", thread=number)
        _forget(connection, space, gone)


def reindex(connection: Connection, *, after: int = 0, limit: int = 50) -> int | None:
    """Put in up to `limit` threads that the index lacks, or holds in another format, each in its own transaction.

    `after`: a thread's number; only later ones are looked at. Returns the number to go on after, None at the end.
    """
    values = {"format": streams.FORMAT, "after": after, "limit": limit}
    waiting = [number for (number,) in connection.execute(SQL["threads_to_put"], values)]
    for number in waiting:
        with connection.transaction():
            found = connection.execute(SQL["lock_thread"], {"thread": number}).fetchone()
            if found is not None:
                ServerIndex().put(connection, number, msgspec.json.decode(found[0], type=ThreadSummary), ())
    return waiting[-1] if len(waiting) == limit else None


def rows_of(messages: Iterable[Message], thread: int, space: int) -> tuple[list[Row], set[str]]:
    """The rows of messages, and the tokens in them."""
    made: list[Row] = []
    tokens: set[str] = set()
    for message in messages:
        seen = as_others_see(message)
        full = fields_of(message)
        open_to_others = full if seen == message else fields_of(seen)
        forms = [(EVERYBODY, full)]
        if full != open_to_others:
            forms = [(OWNER, full), (OTHERS, open_to_others)]
        for audience, text in forms:
            row, found = _row(text, audience, thread, space)
            made.append(row)
            tokens |= found
    return made, tokens


def _row(text: MessageText, audience: int, thread: int, space: int) -> tuple[Row, set[str]]:
    cut = cut_row(text, _cutter())
    whole = streams.stream_of(cut, thread, is_alone=audience != EVERYBODY)
    parts = streams.split(whole, len(f"{space}:"))
    at = time_of(text.order) or 0
    row = Row(text.id.encode(), audience, min(at, _MOST_TIME), streams.fields_in(cut), parts)
    return row, streams.tokens_of(cut)


def _cutter() -> Cutter:
    """One for each thread of this process: it remembers what it cut, and may not be shared."""
    found: Cutter | None = getattr(_local, "cutter", None)
    if found is None:
        found = _local.cutter = Cutter(collect=False)
    return found


def _run(connection: Connection, name: str, **values: Any) -> Any:
    return connection.execute(SQL[name], values)


def _one(connection: Connection, name: str, **values: Any) -> Any:
    return connection.execute(SQL[name], values).fetchone()[0]  # type: ignore[index]  # it returns a row


def _put_header(
    connection: Connection, number: int, space: int, known: _Known, summary: ThreadSummary
) -> set[str]:
    """Write the thread's row and header; the tokens of the header."""
    header = header_of(summary)
    _run(
        connection,
        "put_thread",
        thread=number,
        space=space,
        owner=known.owner,
        activity=min(max(parse_time(summary.last_activity_at) or 0, 0), _MOST_TIME),
        is_open=_is_open(summary),
        is_deleted=summary.is_deleted,
        is_pinned=summary.is_pinned,
        is_archived=summary.is_archived,
        has_removed=known.has_removed,
        format=streams.FORMAT,
    )
    stream, facts = streams.header_streams(header)
    _run(connection, "put_header", thread=number, space=space, stream=stream, facts=facts)
    return streams.header_tokens(header)


def _is_open(summary: ThreadSummary) -> bool:
    """May members of the thread's space read it?"""
    return may_read(
        summary.visibility,
        is_private=summary.is_private,
        is_shared_with_support=False,
        is_deleted=summary.is_deleted,
        viewer=Viewer(is_signed_in=True, is_member=True),
    )


def _erase_messages(connection: Connection, number: int, messages: Sequence[Message]) -> set[str]:
    """Take out what was held of these messages; the tokens of it."""
    if not messages:
        return set()
    ids = [message.id.encode() for message in messages]
    gone = _run(connection, "erase_message_rows", thread=number, ids=ids).fetchall()
    for block in sorted({block for block, _ in gone if block is not None}):
        _renew_block(connection, number, [block])
    return _tokens_in((stream,) for _, stream in gone)


def _put_messages(connection: Connection, number: int, space: int, messages: Sequence[Message]) -> set[str]:
    made, tokens = rows_of(messages, number, space)
    parts = [(row, part) for row in made for part in row.parts]
    if not parts:
        return tokens
    numbers = [each for (each,) in _run(connection, "numbers", count=len(parts))]
    firsts: dict[int, int] = {}
    for each, (row, _) in zip(numbers, parts, strict=True):
        firsts.setdefault(id(row), each)
    blocks = blocks_of(made)
    block_numbers = [each for (each,) in _run(connection, "block_numbers", count=len(blocks))]
    of_block = {id(row): each for each, some in zip(block_numbers, blocks, strict=True) for row in some}
    _run(
        connection,
        "put_texts",
        thread=number,
        space=space,
        numbers=numbers,
        ids=[row.message_id for row, _ in parts],
        blocks=[of_block.get(id(row)) for row, _ in parts],
        tools_at=[part.tools_at for _, part in parts],
        streams=[part.stream for _, part in parts],
        extras=[part.extra for _, part in parts],
    )
    _run(
        connection,
        "put_rows",
        numbers=numbers,
        places=[number * AUDIENCES + row.audience for row, _ in parts],
        times=[row.at for row, _ in parts],
        fields=[row.fields for row, _ in parts],
        parts=[firsts[id(row)] if len(row.parts) > 1 else None for row, _ in parts],
    )
    if blocks:
        sizes = [len(some) for some in blocks]
        _run(connection, "put_blocks", thread=number, numbers=block_numbers, messages=sizes)
    return tokens


def blocks_of(made: Sequence[Row]) -> list[list[Row]]:
    """The rows of one thread that everybody finds, so many at a time as one entry of the index takes."""
    blocks: list[list[Row]] = []
    size = 0
    for row in made:
        if row.audience != EVERYBODY or len(row.parts) > 1:
            continue
        # Each word twice its length: the number of the space comes before it.
        more = 2 * len(row.parts[0].stream.encode())
        if not blocks or len(blocks[-1]) >= BLOCK_MESSAGES or size + more > streams.MOST_LEXEMES:
            blocks.append([])
            size = 0
        blocks[-1].append(row)
        size += more
    return blocks


def _mark_shown(connection: Connection, number: int, known: _Known) -> None:
    """Note which messages are shown, as the tables of threads have it."""
    where = {"thread": number, "space_id": known.space_id, "thread_id": known.thread_id}
    changed = _run(connection, "mark_shown", **where).fetchall()
    for block in sorted({block for _, is_shown, block, _ in changed if block is not None and not is_shown}):
        _renew_block(connection, number, [block])
    back = [row for row, is_shown, block, is_open in changed if is_shown and is_open and block is None]
    for at in range(0, len(back), BLOCK_MESSAGES // 4):
        some = back[at : at + BLOCK_MESSAGES // 4]
        block = _one(connection, "block_numbers", count=1)
        _run(connection, "mark_blocks", number=block, numbers=some)
        _run(connection, "put_blocks", thread=number, numbers=[block], messages=[len(some)])


def _renew_block(connection: Connection, number: int, blocks: list[int]) -> None:
    """Make one new block of what is shown in these."""
    block = _one(connection, "block_numbers", count=1)
    kept = _run(connection, "renew_blocks", blocks=blocks, number=block).fetchall()
    count = sum(is_shown for (is_shown,) in kept)
    if count:
        _run(connection, "put_blocks", thread=number, numbers=[block], messages=[count])


def _merge_blocks(connection: Connection, number: int) -> None:
    """Make larger blocks of small ones, each message a few times in its life."""
    found = _run(connection, "small_blocks", thread=number, most=BLOCK_MESSAGES).fetchall()
    for least, most in ((0, _SMALL), (_SMALL, BLOCK_MESSAGES)):
        some = [(block, count) for block, count in found if least <= count < most]
        if len(some) >= _SMALL:
            _renew_block(connection, number, [block for block, _ in some[:_SMALL]])


def _tokens_in(found: Iterable[tuple[str]]) -> set[str]:
    """The tokens of stored streams, without signs; names and facts are none."""
    tokens: set[str] = set()
    for (stream,) in found:
        tokens.update(stream.split(" "))
    pieces = {token[1:] for token in tokens if token.startswith(streams.PIECE)}
    return {token for token in tokens if not "\ue000" <= token[:1] <= "\ue01f"} | pieces


def _forget(connection: Connection, space: int, tokens: Collection[str]) -> None:
    """Take those of the tokens out of the vocabulary that nothing in the space has any more."""
    if not tokens:
        return
    # Most words of a thread are said in others too; asking the index for each of those reads long lists.
    common = _tokens_in(_run(connection, "newest_streams", space=space))
    rare = sorted(set(tokens) - common)
    for at in range(0, len(rare), _TERMS_AT_ONCE):
        left = set(rare[at : at + _TERMS_AT_ONCE])
        while left:
            query = either(lexeme(sign + term) for term in left for sign in ("", streams.PIECE))
            values = {"query": for_spaces(query, [space])}
            others = connection.execute(SQL["streams_with"], values, prepare=False).fetchall()
            if not others:
                _run(connection, "forget_terms", space=space, terms=sorted(left))
                break
            left -= _tokens_in(others)
