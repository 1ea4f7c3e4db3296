"""The server finds what this machine finds and what a plain reading finds: random threads, queries and readers."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from psycopg import Connection

from raddle.model.threads.message import NOTICE, PURGED, SUMMARY, TURN, Attachment, Message, ToolCall
from raddle.model.threads.query import is_of_thread, parse
from raddle.model.threads.query_match import hits
from raddle.model.threads.search_fields import fields_of, header_of
from raddle.model.threads.summary import ThreadSummary
from raddle.model.threads.view import as_others_see
from raddle.model.threads.visibility import Viewer, may_read
from raddle.server.search import answers, asking, clauses, lookup, ranking, reading, streams, walking
from raddle.server.search.index import ServerIndex
from raddle.server.search.reading import Reader, as_reader_sees
from tests.builders_server import Person, a_person, connected, prepare
from tests.builders_server_search import an_organization, put, reader_of, store
from tests.postgres import NewDatabase
from tests.property.test_search_same_answer import (
    DAY,
    NOW,
    an_index,
    found_by,
    prefixes,
    queries,
    some_queries,
    some_text,
    terms,
    threads,
)

pytest_plugins = ("tests.postgres",)

EXAMPLES = 12 if settings().max_examples <= 100 else 1_000
laws = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)

Stored = tuple[ThreadSummary, list[Message], set[str]]
"""A thread: its summary, its messages, the ids of those that are removed."""


@pytest.fixture
def connection(new_database: NewDatabase) -> Iterator[Connection]:
    with contextlib.closing(connected(new_database(prepare))) as found:
        yield found


@st.composite
def messages(draw: st.DrawFn, name: str) -> Message:
    role = draw(st.sampled_from(("user", "assistant", "assistant", "tool", "system", "weird role")))
    has_time = draw(st.integers(0, 3)) > 0
    call = ToolCall(
        id="c",
        tool_name=draw(st.sampled_from(("Bash", "Read", "mcp__git__log", "git"))),
        arguments_json=draw(st.one_of(st.none(), some_text, st.dictionaries(st.just("path"), some_text))),
    )
    file = Attachment(
        sha256="0" * 64, name=draw(st.sampled_from(("beta/alpha.png", "a.png", "src\\auth.rs")))
    )
    return Message(
        id=name + draw(st.sampled_from(("", "\x00"))),
        role=role,
        content=draw(some_text),
        thinking=draw(some_text) if role == "assistant" and draw(st.booleans()) else "",
        seq=NOW - draw(st.integers(0, 20)) * DAY if has_time else draw(st.integers(0, 5)),
        tool_calls=(call,) if draw(st.integers(0, 2)) == 0 else (),
        tool_name=draw(st.sampled_from(("", "", "git"))),
        is_error=draw(st.booleans()),
        kind=draw(st.sampled_from((TURN, TURN, TURN, SUMMARY, NOTICE, PURGED))),
        attachments=(file,) if draw(st.integers(0, 4)) == 0 else (),
    )


@st.composite
def stored(draw: st.DrawFn, number: int) -> Stored:
    summary = draw(threads(number))[0]
    summary = replace(
        summary,
        is_private=False,
        visibility=draw(st.sampled_from(("organization", "organization", "private", "public", "secret"))),
        is_deleted=draw(st.integers(0, 6)) == 0,
    )
    said = [draw(messages(f"m{number}-{at}")) for at in range(draw(st.integers(0, 5)))]
    return summary, said, {message.id for message in said if draw(st.integers(0, 4)) == 0}


@st.composite
def stores(draw: st.DrawFn) -> list[Stored]:
    return [draw(stored(number)) for number in range(draw(st.integers(1, 4)))]


def all_hits(connection: Connection, reader: Reader, query: str) -> dict[str, list[str]]:
    """Thread id -> ids of its hits."""
    looked = lookup.Lookup(reading.Tables(connection, reader), parse(query, now=NOW))
    if not looked.found:
        return {}
    assert looked.is_complete
    rows = looked.rows_of(looked.found)
    names = {number: summary.id for number, summary in looked.tables.summaries(looked.found).items()}
    texts = looked.tables.texts([row.number for each in rows.values() for row in each])
    found = {names[thread]: sorted(texts[row.number].id for row in each) for thread, each in rows.items()}
    assert all(found.values())
    return found


def in_pages(connection: Connection, reader: Reader, query: str) -> dict[str, list[str]]:
    """The same by way of pages of two."""
    found: dict[str, list[str]] = {}
    scores = []
    cursor = ""
    while True:
        answer = answers.search(connection, reader, query, now=NOW, limit=2, cursor=cursor)
        for hit in answer.hits:
            ids = answers.messages_in(connection, reader, hit.thread.id, query, now=NOW)
            assert hit.thread.id not in found
            assert hit.matches == len(ids)
            assert hit.message_id in ids
            found[hit.thread.id] = sorted(ids)
            scores.append(hit.score)
        cursor = answer.cursor
        if not cursor:
            assert answer.total_threads == len(found), query
            assert scores == sorted(scores, reverse=True)
            return found


def by_reading(held: Sequence[Stored], query: str, *, is_owner: bool) -> dict[str, list[str]]:
    """The same by reading everything that the reader may see."""
    asked = parse(query, now=NOW)
    found = {}
    for summary, said, removed in held:
        viewer = Viewer(is_signed_in=True, is_owner=is_owner, is_member=True)
        is_readable = may_read(
            summary.visibility,
            is_private=summary.is_private,
            is_shared_with_support=False,
            is_deleted=summary.is_deleted,
            viewer=viewer,
        )
        if summary.is_deleted or not is_readable:
            continue
        if not is_owner:
            said = [as_others_see(message) for message in said if message.id not in removed]
        seen = as_reader_sees(summary, is_owner=is_owner)
        ids = hits(asked, header_of(seen), [fields_of(message) for message in said], removed)
        if ids:
            found[summary.id] = sorted(ids)
    return found


@contextlib.contextmanager
def an_index_of(connection: Connection, held: Collection[Stored]) -> Iterator[tuple[Reader, Reader]]:
    """The threads in a space that two people share, and both as readers: their owner, and another member."""
    with connection.transaction(force_rollback=True):
        owner, other = a_person(connection, "owner"), a_person(connection, "other")
        space = an_organization(connection, owner, other)
        for summary, said, removed in held:
            put(connection, owner, summary, said, removed, space=space)
        yield reader_of(owner, space), reader_of(other, space)


@laws
@given(stores(), some_queries)
def test_the_server_finds_what_this_machine_finds(
    connection: Connection, held: list[Stored], asked: list[str]
) -> None:
    local = [
        (summary, [fields_of(message) for message in said], removed)
        for summary, said, removed in held
        if not summary.is_deleted
    ]
    with an_index_of(connection, held) as (owner, _), an_index(local) as index:
        for query in asked:
            assert all_hits(connection, owner, query) == found_by(index, query), query


def in_any_pages(connection: Connection, reader: Reader, query: str, limit: int) -> dict[str, list[str]]:
    """The same by way of pages that may end before they are full."""
    found: dict[str, list[str]] = {}
    totals: set[int] = set()
    cursor, pages = "", 0
    while pages == 0 or cursor:
        answer = answers.search(connection, reader, query, now=NOW, limit=limit, cursor=cursor)
        for hit in answer.hits:
            assert hit.thread.id not in found
            ids = answers.messages_in(connection, reader, hit.thread.id, query, now=NOW)
            assert hit.matches == len(ids)
            found[hit.thread.id] = sorted(ids)
        assert answer.total_threads >= len(answer.hits)
        if answer.scope.is_complete:
            totals.add(answer.total_threads)
        cursor, pages = answer.cursor, pages + 1
        assert pages < 50
    assert totals <= {len(found)}
    return found


def in_a_list(connection: Connection, reader: Reader, query: str) -> list[str]:
    """The ids of threads by way of pages of a list."""
    told: list[str] = []
    cursor, pages = "", 0
    while pages == 0 or cursor:
        page = answers.listed(connection, reader, query, now=NOW, limit=1, cursor=cursor)
        told += [thread.id for thread in page.threads]
        cursor, pages = page.cursor, pages + 1
        assert pages < 50
    return told


@laws
@given(
    st.lists(st.integers(0, 1), min_size=15, max_size=15),
    stores(),
    st.lists(st.lists(prefixes | terms(), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4),
    st.tuples(st.integers(1, 3), st.sampled_from((1, 8))),
)
def test_pages_hold_all_that_is_found_where_each_looks_into_little(
    connection: Connection, bounds: list[int], held: list[Stored], asked: list[str], sizes: tuple[int, int]
) -> None:
    limit, at_once = sizes
    names = [name for name in dir(walking) if isinstance(getattr(walking, name), int)]
    names.remove("MOST_STEPS_LOOKING")
    assert len(names) == len(bounds)
    with pytest.MonkeyPatch.context() as patched, an_index_of(connection, held) as (owner, _):
        for name, bound in zip(names, bounds, strict=True):
            patched.setattr(walking, name, bound + 1)
        patched.setattr(walking, "MOST_STEPS_LOOKING", 1)
        patched.setattr(ranking, "SCORED", 2)
        patched.setattr(ranking, "_THREADS_AT_ONCE", at_once)
        for query in asked:
            expected = by_reading(held, query, is_owner=True)
            assert in_any_pages(connection, owner, query, limit) == expected, query
            # What asks of threads alone lists those without a message too.
            parsed = parse(query, now=NOW)
            if parsed.terms or not all(map(is_of_thread, parsed.filters)):
                told = in_a_list(connection, owner, query)
                assert sorted(told) == sorted(expected), query


@laws
@given(stores(), queries)
def test_pages_hold_all_that_is_found(connection: Connection, held: list[Stored], query: str) -> None:
    with an_index_of(connection, held) as (owner, _):
        assert in_pages(connection, owner, query) == by_reading(held, query, is_owner=True)


@laws
@given(stores(), some_queries)
def test_each_reader_finds_what_stands_in_what_they_may_see(
    connection: Connection, held: list[Stored], asked: list[str]
) -> None:
    with an_index_of(connection, held) as (owner, other):
        for query in asked:
            assert all_hits(connection, owner, query) == by_reading(held, query, is_owner=True), query
            assert all_hits(connection, other, query) == by_reading(held, query, is_owner=False), query


@laws
@given(
    stores(),
    st.lists(st.lists(prefixes | terms(), min_size=2, max_size=5).map(" ".join), min_size=1, max_size=4),
)
def test_it_finds_the_same_where_threads_and_words_are_too_many_to_name(
    connection: Connection, held: list[Stored], asked: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patched, an_index_of(connection, held) as (owner, other):
        patched.setattr(asking, "MOST_FRAGMENT_TERMS", 1)
        patched.setattr(reading, "MOST_FRAGMENT_TERMS", 1)
        patched.setattr(reading, "FEW_THREADS", 0)
        patched.setattr(reading, "NAMED_AT_ONCE", 1)
        patched.setattr(walking, "SOON_DONE", 0)
        patched.setattr(reading, "MANY_THREADS", 0)
        patched.setattr(walking, "ROWS_AT_ONCE", 1)
        patched.setattr(lookup, "MANY_GROUPS", 0)
        patched.setattr(ranking, "SCORED", 2)
        patched.setattr(ranking, "_THREADS_AT_ONCE", 1)
        patched.setattr(clauses, "_FEW_THREADS", 1)
        for query in asked:
            assert all_hits(connection, owner, query) == by_reading(held, query, is_owner=True), query
            assert all_hits(connection, other, query) == by_reading(held, query, is_owner=False), query


@laws
@given(stores(), some_queries, st.sampled_from((20, 60)))
def test_it_finds_the_same_in_messages_that_are_stored_in_parts(
    connection: Connection, held: list[Stored], asked: list[str], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(streams, "MOST_LEXEMES", most)
        with an_index_of(connection, held) as (owner, other):
            for query in asked:
                assert all_hits(connection, owner, query) == by_reading(held, query, is_owner=True), query
                assert all_hits(connection, other, query) == by_reading(held, query, is_owner=False), query


@laws
@given(st.lists(st.tuples(st.integers(0, 2), stored(0), st.booleans()), min_size=1, max_size=5), some_queries)
def test_an_index_that_was_kept_up_answers_like_one_made_anew(
    connection: Connection, changes: list[tuple[int, Stored, bool]], asked: list[str]
) -> None:
    index = ServerIndex()
    with connection.transaction(force_rollback=True):
        owner, other = a_person(connection, "owner"), a_person(connection, "other")
        space = an_organization(connection, owner, other)
        held: dict[str, Stored] = {}
        for number, (summary, said, removed), is_erased in changes:
            name = f"T-018e2b3c-4d5e-7f8a-9b0c-{number:012x}"
            messages = {message.id: message for message in (held[name][1] if name in held else [])}
            messages |= {message.id: message for message in said}
            held[name] = (replace(summary, id=name), list(messages.values()), removed)
            thread = store(connection, owner, held[name][0], said, removed, space=space)
            if is_erased:
                index.erase(connection, thread)
            index.put(connection, thread, held[name][0], said)
        for reader, is_owner in ((reader_of(owner, space), True), (reader_of(other, space), False)):
            for query in asked:
                expected = by_reading(list(held.values()), query, is_owner=is_owner)
                assert all_hits(connection, reader, query) == expected, query


@laws
@given(stores())
def test_erased_threads_leave_not_a_word(connection: Connection, held: list[Stored]) -> None:
    index = ServerIndex()
    with connection.transaction(force_rollback=True):
        person = a_person(connection)
        for number in [put(connection, person, summary, said, removed) for summary, said, removed in held]:
            index.erase(connection, number)
        for table in ("search_texts", "search_rows", "search_headers", "search_threads", "search_terms"):
            assert not connection.execute(f"SELECT * FROM {table}").fetchall(), table  # noqa: S608  names from above


@laws
@given(st.lists(queries, min_size=1, max_size=3), st.text(max_size=200))
@example(["x" * 20_000], '"' * 500 + "~" * 500 + "-" * 500 + " OR ( ) * : ^ {a} <-> & | ! ' \\ \x00")
@example([], "".join(f'word{at} "phrase {at} of" -not{at} \' ' for at in range(400)))
def test_any_text_is_a_query(connection: Connection, asked: list[str], text: str) -> None:
    said = Message(id="m", role="user", content="x", seq=1)
    summary = ThreadSummary(id="T-018e2b3c-4d5e-7f8a-9b0c-000000000001", title="one")
    with an_index_of(connection, [(summary, [said], set())]) as (owner, _):
        for query in (*asked, text):
            answers.search(connection, owner, query, now=NOW)
            answers.search(connection, owner, query, now=NOW, as_you_type=True)
            answers.listed(connection, owner, query, now=NOW)


def test_a_person_reads_their_own_space_alone(connection: Connection) -> None:
    ada, bob = a_person(connection, "ada"), a_person(connection, "bob")
    said = Message(id="m", role="user", content="secret plans", seq=1)
    put(connection, ada, ThreadSummary(id="T-018e2b3c-4d5e-7f8a-9b0c-000000000001"), [said])
    assert all_hits(connection, reader_of(ada), "secret")
    assert not all_hits(connection, reader_of(bob), "secret")
    assert not all_hits(
        connection, Reader(Person(bob.user, ada.space).user, (ada.space,)), "~ecre is:removed"
    )
