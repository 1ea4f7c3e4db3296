"""Search on the server over a real database: what a push makes findable, for whom, and what leaves no word behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from psycopg import Connection

from raddle.model.errors import InvalidInput
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import NOTICE, Message, ToolCall
from raddle.model.threads.register import one_write
from raddle.model.threads.summary import Source, ThreadSummary
from raddle.server.search import answers, streams, walking
from raddle.server.search.index import ServerIndex, reindex
from raddle.server.search.reading import Reader
from tests.builders import THREAD_ID
from tests.builders_server import ServerHub, a_person, connected, prepare
from tests.builders_server_search import an_organization, put, reader_of
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

NOW = 1_796_000_000_000_000
ONE, TWO = "T-018e2b3c-4d5e-7f8a-9b0c-000000000001", "T-018e2b3c-4d5e-7f8a-9b0c-000000000002"
TABLES = ("search_texts", "search_rows", "search_blocks", "search_headers", "search_threads", "search_terms")


@pytest.fixture
def connection(new_database: NewDatabase) -> Iterator[Connection]:
    with contextlib.closing(connected(new_database(prepare))) as found:
        yield found


def said(text: str, at: int = 1, **fields: object) -> Message:
    return Message(id=f"m{at}", role="user", content=text, seq=NOW + at, **fields)  # type: ignore[arg-type]


def distinct(at: int) -> str:
    """A word of its own for each number."""
    return "w" + "".join("abcdefghij"[int(digit)] for digit in f"{at:06d}")


def found(connection: Connection, reader: Reader, query: str) -> set[str]:
    return {hit.thread.id for hit in answers.search(connection, reader, query, now=NOW).hits}


def stored_words(connection: Connection) -> str:
    """All that the tables of search hold, as text."""
    return "\n".join(
        str(line)
        for table in TABLES
        for line in connection.execute(f"SELECT * FROM {table}")  # noqa: S608  names from above
    )


def a_hub(connection: Connection) -> ServerHub:
    hub = ServerHub(connection, a_person(connection))
    hub.index = ServerIndex()  # type: ignore[assignment]
    return hub


def pushed(hub: ServerHub, version: int, *messages: Message, **registers: object) -> int:
    delta = Delta(
        base_version=version,
        version=version + 1,
        messages=messages,
        registers={path: one_write(NOW + version, "", value) for path, value in registers.items()},
    )
    answer = hub.push(THREAD_ID, delta, hub.epoch)
    assert answer.is_accepted
    return answer.version


def test_what_was_pushed_is_found_at_once(connection: Connection) -> None:
    hub = a_hub(connection)
    pushed(hub, 0, said("the session token"), title="About tokens")
    reader = reader_of(hub.person)
    assert found(connection, reader, "session token") == {THREAD_ID}
    assert found(connection, reader, "about session") == {THREAD_ID}
    assert found(connection, reader, "nothing") == set()


def test_a_later_form_of_a_message_takes_the_place_of_the_first(connection: Connection) -> None:
    hub = a_hub(connection)
    version = pushed(hub, 0, said("first words", rev=1))
    pushed(hub, version, said("second words", rev=2))
    reader = reader_of(hub.person)
    assert found(connection, reader, "first") == set()
    assert found(connection, reader, "second words") == {THREAD_ID}


def test_a_purged_message_leaves_no_word(connection: Connection) -> None:
    hub = a_hub(connection)
    message = said("hunter2 is the password")
    version = pushed(hub, 0, message, said("another word", 2))
    pushed(hub, version, message.purged())
    assert "hunter2" not in stored_words(connection)
    assert "another" in stored_words(connection)


def test_a_thread_made_private_leaves_no_word(connection: Connection) -> None:
    hub = a_hub(connection)
    version = pushed(hub, 0, said("hunter2 is the password"), title="Secrets")
    put(connection, hub.person, ThreadSummary(id=TWO), [said("the password is another")])
    pushed(hub, version, is_private=True)
    words = stored_words(connection)
    assert "hunter2" not in words
    assert "secrets" not in words
    assert found(connection, reader_of(hub.person), "password") == {TWO}
    assert found(connection, reader_of(hub.person), "~asswor") == {TWO}


def test_turns_that_were_taken_back_are_found_by_their_owner_alone_and_when_asked_for(
    connection: Connection,
) -> None:
    ada, bob = a_person(connection, "ada"), a_person(connection, "bob")
    space = an_organization(connection, ada, bob)
    messages = [said("alpha", 1), said("beta", 2)]
    summary = ThreadSummary(id=ONE)
    put(connection, ada, summary, messages, {"m1"}, space=space)
    owner, other = reader_of(ada, space), reader_of(bob, space)
    assert found(connection, owner, "alpha") == set()
    assert found(connection, owner, "alpha is:removed") == {ONE}
    assert found(connection, other, "alpha is:removed") == set()
    put(connection, ada, summary, messages, (), space=space)
    assert found(connection, other, "alpha") == {ONE}
    assert found(connection, owner, "alpha is:removed") == set()


def test_a_push_that_takes_a_turn_back_hides_its_words_and_those_below(connection: Connection) -> None:
    hub = a_hub(connection)
    version = pushed(hub, 0, said("alpha", 1), said("beta", 2, parent_id="m1"))
    reader = reader_of(hub.person)
    assert found(connection, reader, "alpha") == found(connection, reader, "beta") == {THREAD_ID}
    pushed(hub, version, **{"gone/m2": True})
    assert found(connection, reader, "alpha") == {THREAD_ID}
    assert found(connection, reader, "beta") == set()
    assert found(connection, reader, "beta is:removed") == {THREAD_ID}


def test_others_find_no_word_of_what_they_may_not_see(connection: Connection) -> None:
    ada, bob = a_person(connection, "ada"), a_person(connection, "bob")
    space = an_organization(connection, ada, bob)
    summary = ThreadSummary(
        id=ONE,
        workspace_root="/home/ada/manhattan",
        is_pinned=True,
        source=Source(agent="codex", session_id="s-1"),
    )
    put(connection, ada, summary, [said("instructions", 1, kind=NOTICE), said("hello", 2)], space=space)
    owner, other = reader_of(ada, space), reader_of(bob, space)
    for query in ("instructions", "repo:manhattan", "is:pinned", "~nstructio", '"instructions"'):
        assert found(connection, owner, query) == {ONE}, query
        assert found(connection, other, query) == set(), query
    hit = answers.search(connection, other, "hello agent:codex", now=NOW).hits[0]
    assert hit.thread == replace(
        summary, workspace_root=None, is_pinned=False, source=Source(agent="codex", session_id="")
    )


@pytest.mark.parametrize("visibility", ["private", "unheard of"])
def test_what_is_not_open_is_found_by_its_owner_alone(connection: Connection, visibility: str) -> None:
    ada, bob = a_person(connection, "ada"), a_person(connection, "bob")
    space = an_organization(connection, ada, bob)
    put(connection, ada, ThreadSummary(id=ONE, visibility=visibility), [said("hello")], space=space)
    assert found(connection, reader_of(ada, space), "hello") == {ONE}
    for query in ("hello", "", "-nothing", "role:user"):
        answer = answers.search(connection, reader_of(bob, space), query, now=NOW)
        assert (answer.total_threads, answer.scope.threads, answer.hits) == (0, 0, ())
    assert answers.listed(connection, reader_of(bob, space)).threads == ()


def test_no_reader_finds_what_lies_in_a_space_that_is_not_theirs(connection: Connection) -> None:
    ada, bob = a_person(connection, "ada"), a_person(connection, "bob")
    put(connection, ada, ThreadSummary(id=ONE, visibility="public"), [said("hello")])
    assert found(connection, reader_of(bob), "hello") == set()
    assert found(connection, reader_of(ada), "hello") == {ONE}


def test_a_deleted_thread_is_not_found_until_it_is_back(connection: Connection) -> None:
    ada = a_person(connection)
    summary = ThreadSummary(id=ONE)
    put(connection, ada, replace(summary, is_deleted=True), [said("hello")])
    assert found(connection, reader_of(ada), "hello") == set()
    put(connection, ada, summary, [])
    assert found(connection, reader_of(ada), "hello") == {ONE}


def test_more_distinct_words_than_a_tsvector_holds_are_stored_and_found(connection: Connection) -> None:
    ada = a_person(connection)
    words = " ".join(map(distinct, range(150_000)))
    call = ToolCall(id="c", tool_name="Write", arguments_json={"path": "src/first.py", "text": words})
    long = Message(id="m", role="assistant", content="a start", tool_calls=(call,), seq=NOW)
    put(connection, ada, ThreadSummary(id=ONE), [long])
    first, near, next_to_it, last = map(distinct, (3, 70_000, 70_001, 149_999))
    put(connection, ada, ThreadSummary(id=TWO), [said(f"{first} alone")])
    reader = reader_of(ada)
    for query in (
        f"{last} start",
        f"{first} {last}",
        f'"{near} {next_to_it}"',
        "file:src/first.py",
        f"{first} -alone",
        f"~{last[1:]}",
        "tool:write start",
    ):
        assert found(connection, reader, query) == {ONE}, query
    assert found(connection, reader, first) == {ONE, TWO}
    assert found(connection, reader, f"{first} -{last}") == {TWO}
    assert found(connection, reader, f'"{first} {last}"') == set()
    ServerIndex().erase(connection, 1)
    assert last not in stored_words(connection)
    assert first in stored_words(connection)


def test_a_word_in_a_hundred_small_pushes_is_in_few_blocks(connection: Connection) -> None:
    ada = a_person(connection)
    for at in range(100):
        put(connection, ada, ThreadSummary(id=ONE), [said(f"alpha number{at}", at)])
    counted = connection.execute("SELECT count(*), sum(messages) FROM search_blocks").fetchone()
    assert counted is not None
    assert counted[0] < 20
    assert counted[1] == 100
    assert found(connection, reader_of(ada), "number99") == {ONE}


def test_an_index_of_another_format_is_made_anew_in_pieces(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = a_person(connection)
    for at in range(5):
        put(
            connection,
            ada,
            ThreadSummary(id=f"{ONE[:-1]}{at}", title="t"),
            [said("alpha", at), said("beta", at + 9)],
        )
    monkeypatch.setattr(streams, "FORMAT", streams.FORMAT + 1)
    reader = reader_of(ada)
    assert "not whole" in answers.search(connection, reader, "alpha", now=NOW).scope.notes[0]
    after: int | None = 0
    rounds = 0
    while after is not None:
        after = reindex(connection, after=after, limit=2)
        rounds += 1
    assert rounds == 3
    answer = answers.search(connection, reader, "alpha", now=NOW)
    assert (answer.total_threads, answer.scope.notes) == (5, ())
    counted = connection.execute("SELECT count(*) FROM search_rows").fetchone()
    assert counted == (10,)


def test_pages_of_a_list_follow_each_other_newest_first(connection: Connection) -> None:
    ada = a_person(connection)
    for at in range(7):
        summary = ThreadSummary(
            id=f"{ONE[:-1]}{at}", last_activity_at=f"2026-11-{at + 1:02d}T00:00:00Z", tags=("odd",) * (at % 2)
        )
        put(connection, ada, summary, [said("alpha")])
    for query, expected in ((None, "6543210"), ("tag:odd", "531"), ("alpha", "6543210"), ("beta", "")):
        told, cursor = "", ""
        while True:
            page = answers.listed(connection, reader_of(ada), query, limit=2, cursor=cursor, now=NOW)
            told += "".join(thread.id[-1] for thread in page.threads)
            cursor = page.cursor
            if not cursor:
                break
        assert told == expected, query


@pytest.mark.parametrize("cursor", ["x", "AAAA", "%", "\x00", "kf8", "ksQBAA"])
def test_a_cursor_that_is_none_is_refused(connection: Connection, cursor: str) -> None:
    reader = reader_of(a_person(connection))
    with pytest.raises(InvalidInput):
        answers.search(connection, reader, "a", now=NOW, cursor=cursor)
    with pytest.raises(InvalidInput):
        answers.listed(connection, reader, cursor=cursor)


def test_what_was_not_looked_into_is_said_and_found_on_the_next_pages(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "MOST_LOOKED_INTO", 3)
    monkeypatch.setattr(walking, "LOOKED_INTO_A_STEP", 2)
    ada = a_person(connection)
    for at in range(9):
        put(connection, ada, ThreadSummary(id=f"{ONE[:-1]}{at}"), [said("alpha beta", at)])
    told: list[str] = []
    totals: list[int] = []
    cursor = ""
    while not totals or cursor:
        answer = answers.search(connection, reader_of(ada), '"alpha beta"', now=NOW, cursor=cursor)
        assert not answer.scope.is_complete
        assert "there may be more" in answer.scope.notes[0]
        told += [hit.thread.id[-1] for hit in answer.hits]
        totals.append(answer.total_threads)
        cursor = answer.cursor
    assert "".join(sorted(told)) == "012345678"
    assert totals == [3, 3, 3]


@pytest.mark.parametrize("written", [range(2), range(4, 12), range(12)], ids=["long ago", "lately", "always"])
def test_a_common_word_is_counted_wherever_its_threads_stand(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, written: range
) -> None:
    monkeypatch.setattr(walking, "FEW_THREADS", 1)
    monkeypatch.setattr(walking, "NEWEST_COUNTED", 2)
    ada = a_person(connection)
    for at in range(12):
        summary = ThreadSummary(id=f"{ONE[:-2]}{at:02d}", last_activity_at=f"2026-11-{at + 1:02d}T00:00:00Z")
        for part in range(5):
            text = "needle" if at in written else "hay"
            put(connection, ada, summary, [said(f"{text} {part}", 10 * at + part)])
    told: list[int] = []
    cursor = ""
    while not told or cursor:
        answer = answers.search(connection, reader_of(ada), "needle", now=NOW, cursor=cursor)
        assert answer.scope.is_complete
        assert answer.total_threads == len(written)
        assert [hit.matches for hit in answer.hits] == [5] * len(answer.hits)
        told += [int(hit.thread.id[-2:]) for hit in answer.hits]
        cursor = answer.cursor
    assert told == sorted(written, reverse=True)


def test_a_heavier_field_comes_first(connection: Connection) -> None:
    ada = a_person(connection)
    call = ToolCall(id="c", tool_name="Read", arguments_json={"path": "needle.py"})
    put(
        connection,
        ada,
        ThreadSummary(id=ONE),
        [Message(id="m", role="assistant", content="so", tool_calls=(call,), seq=NOW)],
    )
    put(connection, ada, ThreadSummary(id=TWO), [said("a needle")])
    answer = answers.search(connection, reader_of(ada), "needle", now=NOW)
    assert [(hit.thread.id, hit.field) for hit in answer.hits] == [(TWO, "user"), (ONE, "tools")]
    assert answer.hits[0].snippet.marks == ((2, 8),)
