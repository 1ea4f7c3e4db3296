"""Who may read a thread: the pure function and the SQL function say the same of every row, and so does `find`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import Connection

from raddle.model.errors import Forbidden, NotFound, Purged
from raddle.model.threads.visibility import Viewer, may_read
from raddle.server.accounts.access import (
    SQL,
    ThreadFacts,
    facts_of,
    find_thread,
    may,
    reader_values,
    refusal,
)
from raddle.server.accounts.callers import Caller
from tests.builders_server import connected, prepare
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

THREAD = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"
_USERS = [UUID(int=number) for number in range(1, 5)]
_PERSONAL = [UUID(int=100 + number) for number in range(1, 5)]
_ORGS = [UUID(int=200 + number) for number in range(1, 4)]
_WORDS = [
    "private",
    "organization",
    "organisation",
    "public",
    "team",
    "",
    "Public",
    " PUBLIC\t",
    "publicİ",
    "ᴘublic",
]
_SPACES = "\t\n\v\f\r \x1c\x1d\x1e\x1f\x85\xa0\u1680\u2003\u200a\u2028\u2029\u202f\u205f\u3000\u200b\ufeff"

_visibilities = st.sampled_from(_WORDS) | st.builds(
    lambda left, word, right: left + word + right,
    st.text(_SPACES, max_size=2),
    st.sampled_from(["public", "ORGANIZATION", "Organisation", "private"]),
    st.text(_SPACES, max_size=2),
)
_facts = st.builds(
    ThreadFacts,
    space_id=st.sampled_from(_PERSONAL + _ORGS),
    owner_id=st.sampled_from(_USERS),
    visibility=_visibilities,
    is_private=st.booleans(),
    is_deleted=st.booleans(),
    is_shared_with_support=st.booleans(),
    is_purged=st.booleans(),
)
_callers = st.none() | st.builds(
    lambda number, orgs, is_support: Caller(
        user=_USERS[number],
        name=f"user{number}",
        space=_PERSONAL[number],
        spaces=(_PERSONAL[number], *sorted(orgs)),
        device=None,
        scopes=frozenset(),
        is_support=is_support,
    ),
    st.integers(0, 3),
    st.sets(st.sampled_from(_ORGS)),
    st.booleans(),
)


@pytest.fixture
def connection(new_database: NewDatabase) -> Iterator[Connection]:
    with connected(new_database(prepare)) as found:
        for space in _PERSONAL + _ORGS:
            kind = "personal" if space in _PERSONAL else "org"
            found.execute("INSERT INTO spaces (id, kind, name) VALUES (%s, %s, '')", (space, kind))
        for user, space in zip(_USERS, _PERSONAL, strict=True):
            found.execute(
                "INSERT INTO users (id, name, personal_space) VALUES (%s, %s, %s)", (user, str(user), space)
            )
        yield found


def _hold(connection: Connection, threads: list[ThreadFacts]) -> None:
    """Put each thread there, named by its place; those of one space and one name are one."""
    connection.execute("DELETE FROM threads")
    connection.cursor().executemany(
        "INSERT INTO threads (space_id, id, owner_id, version, summary, visibility, is_private, is_deleted,"
        " is_shared_with_support, purged_at)"
        " VALUES (%s, %s, %s, 1, '', %s, %s, %s, %s, CASE WHEN %s THEN now() END)",
        [(facts.space_id, f"T-{number}", *facts[1:]) for number, facts in enumerate(threads)],
    )


_tables = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_tables
@given(caller=_callers, threads=st.lists(_facts, min_size=4, max_size=16))
def test_the_two_say_the_same_of_every_thread(
    connection: Connection, caller: Caller | None, threads: list[ThreadFacts]
) -> None:
    _hold(connection, threads)
    for number, facts in enumerate(threads):
        thread_id = f"T-{number}"
        values = {**reader_values(caller), "space": facts.space_id, "thread": thread_id}
        found = connection.execute(SQL["is_readable"], values).fetchone()
        assert found == (may(caller, "read", facts),)
        assert facts_of(connection, facts.space_id, thread_id) == facts


def test_the_two_say_the_same_of_every_kind_of_thread_and_reader(connection: Connection) -> None:
    flags = [False, True]
    kinds = itertools.product([_PERSONAL[0], _ORGS[0]], _USERS[:2], _WORDS, flags, flags, flags, flags)
    threads = [ThreadFacts(*kind) for kind in kinds]
    _hold(connection, threads)
    readers: list[Caller | None] = [None]
    for number, orgs, is_support in itertools.product(range(3), ([], _ORGS[:1]), flags):
        spaces = (_PERSONAL[number], *orgs)
        user = _USERS[number]
        readers.append(Caller(user, "", _PERSONAL[number], spaces, None, frozenset(), is_support=is_support))
    asked = b"SELECT thread_is_readable(%(reader)s, %(spaces)s::uuid[], %(is_support)s, space_id, owner_id,"
    asked += b" visibility, is_private, is_deleted, is_shared_with_support, purged_at) FROM threads ORDER BY number"
    for reader in readers:
        said = [is_readable for (is_readable,) in connection.execute(asked, reader_values(reader))]
        assert said == [may(reader, "read", facts) for facts in threads]


def test_the_two_read_a_visibility_alike_whatever_character_stands_in_it(connection: Connection) -> None:
    spelled = []
    for code in (*range(1, 0xD800), *range(0xE000, 0x10000), 0x1D429, 0x1F9F5):
        character = chr(code)
        spelled += [
            f"{character}public",
            f"PUBLIC {character}",
            f"pub{character}ic",
            f"organi{character}ation",
        ]
    asked = b"SELECT thread_is_readable(%s, %s, false, %s, %s, visibility, false, false, false, NULL)"
    asked += b" FROM unnest(%s::text[]) WITH ORDINALITY AS row(visibility, place) ORDER BY place"
    values = (_USERS[0], [_ORGS[0]], _ORGS[0], _USERS[1], spelled)
    said = [is_readable for (is_readable,) in connection.execute(asked, values)]
    reader = Caller(_USERS[0], "", _PERSONAL[0], (_PERSONAL[0], _ORGS[0]), None, frozenset())
    expected = [may(reader, "read", ThreadFacts(_ORGS[0], _USERS[1], visibility)) for visibility in spelled]
    assert said == expected
    assert sum(expected) > 50


@_tables
@given(
    caller=_callers, threads=st.lists(_facts, min_size=1, max_size=6, unique_by=lambda facts: facts.space_id)
)
def test_an_id_means_a_thread_that_may_be_read_ones_own_first(
    connection: Connection, caller: Caller | None, threads: list[ThreadFacts]
) -> None:
    _hold(connection, threads)
    connection.execute("UPDATE threads SET id = %s", [THREAD])
    readable = [facts for facts in threads if may(caller, "read", facts)]
    found: ThreadFacts | None
    try:
        found = find_thread(connection, caller, THREAD)
    except Purged:
        assert caller is not None
        assert any(facts.is_purged and facts.owner_id == caller.user for facts in threads)
        return
    except NotFound:
        assert readable == []
        return
    assert found in readable
    if caller is not None and any(facts.space_id == caller.space for facts in readable):
        assert found.space_id == caller.space
    for facts in threads:
        if facts not in readable and not facts.is_purged:
            with pytest.raises(NotFound):
                find_thread(connection, caller, THREAD, space=facts.space_id)


@given(caller=_callers, facts=_facts, action=st.sampled_from(["read", "write", "share", "delete"]))
def test_a_refusal_says_no_more_than_the_asker_may_know(
    caller: Caller | None, facts: ThreadFacts, action: Any
) -> None:
    error = refusal(caller, action, facts, THREAD)
    assert (error is None) == may(caller, action, facts)
    is_owner = caller is not None and caller.user == facts.owner_id
    if isinstance(error, Forbidden):
        assert may(caller, "read", facts)
        assert not is_owner
    if isinstance(error, Purged):
        assert is_owner
    unknown = refusal(caller, action, None, THREAD)
    if error is not None and not may(caller, "read", facts) and not is_owner:
        assert unknown is not None
        assert (error.code, error.message, error.hint) == (unknown.code, unknown.message, unknown.hint)


@given(caller=_callers, facts=_facts)
def test_nobody_changes_what_they_may_not_read_and_only_the_owner_changes_anything(
    caller: Caller | None, facts: ThreadFacts
) -> None:
    for action in ("write", "share", "delete"):
        if may(caller, action, facts):
            assert may(caller, "read", facts)
            assert caller is not None
            assert caller.user == facts.owner_id


def test_the_function_is_put_in_the_place_of_its_call(connection: Connection) -> None:
    asked = b"EXPLAIN (COSTS OFF) SELECT id FROM threads WHERE thread_is_readable(%s, %s, false, space_id, owner_id,"
    asked += b" visibility, is_private, is_deleted, is_shared_with_support, purged_at)"
    plan = connection.execute(asked, (_USERS[0], _ORGS)).fetchall()
    assert "thread_is_readable" not in str(plan)
    assert "purged_at IS NULL" in str(plan)


def test_of_one_space_each_kind_of_reader_sees_what_the_model_says() -> None:
    facts = ThreadFacts(space_id=_ORGS[0], owner_id=_USERS[0], visibility="organization")
    member = Caller(_USERS[1], "eve", _PERSONAL[1], (_PERSONAL[1], _ORGS[0]), None, frozenset())
    assert may(member, "read", facts)
    assert not may(member, "write", facts)
    assert isinstance(refusal(member, "write", facts, THREAD), Forbidden)
    stranger = member._replace(spaces=(_PERSONAL[1],))
    assert isinstance(refusal(stranger, "write", facts, THREAD), NotFound)
    assert may(stranger, "read", facts) == may_read(
        "organization",
        is_private=False,
        is_shared_with_support=False,
        is_deleted=False,
        viewer=Viewer(is_signed_in=True),
    )
