"""A database of OpenCode's with pages that cannot be read: what stands on the others is read, and the rest is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from raddle.actions.importing.collection import Member
from raddle.actions.importing.opencode import OpenCode
from raddle.actions.importing.run_plan import FileProblem, SourceFile
from raddle.actions.importing.source_reading import Lines, Pass, Unread
from raddle.adapters.agent_homes.opencode_store import is_export, open_collection
from tests.builders_opencode import OpenCodeSession
from tests.builders_opencode_stores import TABLES, store
from tests.contract.source_laws import an_entry
from tests.reading import named, read

PAGE = 1024
SESSIONS = 40
TABLE_LEAF, INDEX_LEAF = 13, 10


class Found(NamedTuple):
    """What was read: the words of each session, what was said of the collection, and of which session."""

    texts: dict[str, list[str]]
    problems: list[str]
    told: dict[str, str]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "opencode.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {PAGE}")
    connection.executescript(TABLES)
    for number in range(SESSIONS):
        session = OpenCodeSession(f"ses_{number:04}")
        for turn in range(3):
            asked = session.user(f"question {number} {turn}", message=f"msg_{number:04}_{turn}_1")
            long = "x" * (3000 if turn == 1 else 20)
            session.says(asked, f"answer {number} {turn} {long}", message=f"msg_{number:04}_{turn}_2")
        store(connection, session)
    connection.close()
    return path


def all_of(path: Path) -> Found:
    found = Found({}, [], {})
    collection = open_collection(str(path))
    for member in collection.members():
        if isinstance(member, FileProblem):
            found.problems.append(member.reason)
            continue
        source = collection.open(member)
        lines: list[bytes] = []
        for batch in source.read(0, 1, lambda _: None):
            if isinstance(batch, Unread):
                found.told[member.session] = batch.reason
            else:
                assert isinstance(batch, Lines)
                lines += batch.lines
        found.texts[member.session] = read(OpenCode(), named(member.session), lines).texts()
        source.close()
    return found


def pages_of(path: Path, tree: str, kind: int) -> list[int]:
    """The pages of a table or an index that are leaves, by their numbers from 0."""
    data = path.read_bytes()
    connection = sqlite3.connect(path)
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (tree,)).fetchone()
    connection.close()
    return list(_leaves(data, root - 1, kind))


def _leaves(data: bytes, page: int, kind: int) -> Iterator[int]:
    start = page * PAGE
    if data[start] == kind:
        yield page
        return
    for at in range(start + 12, start + 12 + 2 * int.from_bytes(data[start + 3 : start + 5], "big"), 2):
        cell = start + int.from_bytes(data[at : at + 2], "big")
        yield from _leaves(data, int.from_bytes(data[cell : cell + 4], "big") - 1, kind)
    yield from _leaves(data, int.from_bytes(data[start + 8 : start + 12], "big") - 1, kind)


def zero(path: Path, *pages: int) -> None:
    data = bytearray(path.read_bytes())
    for page in pages:
        data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    path.write_bytes(data)


def restored(path: Path) -> Callable[[], None]:
    data = path.read_bytes()

    def restore() -> None:
        path.write_bytes(data)

    return restore


@pytest.mark.parametrize("table", ["session", "message", "part"])
def test_a_bad_page_of_a_table_costs_the_rows_on_it(database: Path, table: str) -> None:
    sound = all_of(database)
    assert (len(sound.texts), sound.problems, sound.told) == (SESSIONS, [], {})
    restore = restored(database)
    leaves = pages_of(database, table, TABLE_LEAF)
    assert len(leaves) > 2
    for leaf in (leaves[0], leaves[len(leaves) // 2], leaves[-1]):
        restore()
        zero(database, leaf)
        found = all_of(database)
        assert found.texts.keys() == sound.texts.keys()
        assert found.problems == []
        changed = {session for session, texts in sound.texts.items() if texts != found.texts[session]}
        assert changed <= found.told.keys(), "what is missing is told, by its session"
        assert 0 < len(found.told) < 8
        assert all(f"of {table}" in reason for reason in found.told.values())
        if table == "session":
            assert not changed, "messages whose session's row is lost are a session still"


@pytest.mark.parametrize(
    "index",
    [
        "message_session_time_created_id_idx",
        "part_message_id_id_idx",
        "part_session_idx",
        "session_parent_idx",
        "sqlite_autoindex_session_1",
        "sqlite_autoindex_message_1",
        "sqlite_autoindex_part_1",
    ],
)
def test_a_bad_page_of_an_index_costs_nothing(database: Path, index: str) -> None:
    sound = all_of(database)
    listed = list(open_collection(str(database)).members())
    leaves = pages_of(database, index, INDEX_LEAF)
    restore = restored(database)
    for leaf in {leaves[0], leaves[-1]}:
        restore()
        zero(database, leaf)
        assert all_of(database) == sound
        assert list(open_collection(str(database)).members()) == listed, "so that nothing is read anew for it"


def test_bad_pages_in_many_places_cost_what_stands_on_them(database: Path) -> None:
    sound = all_of(database)
    leaves = pages_of(database, "part", TABLE_LEAF)
    zero(
        database,
        *leaves[5:9],
        leaves[20],
        leaves[-1],
        pages_of(database, "part_session_idx", INDEX_LEAF)[0],
        pages_of(database, "session", TABLE_LEAF)[0],
        pages_of(database, "sqlite_autoindex_session_1", INDEX_LEAF)[0],
    )
    found = all_of(database)
    assert found.problems == [
        "it is damaged: sessions of it may be missing, those that can be found are read"
    ]
    assert found.texts.keys() == sound.texts.keys(), "messages name their sessions"
    whole = [session for session, texts in sound.texts.items() if texts == found.texts[session]]
    assert len(whole) > SESSIONS // 2
    assert found.told.keys() >= sound.texts.keys() - set(whole)


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_a_database_that_was_cut_short_gives_what_is_there(database: Path, share: float) -> None:
    sound = all_of(database)
    data = database.read_bytes()
    database.write_bytes(data[: int(len(data) * share)])
    before = database.read_bytes()
    assert is_export(str(database), before[:4096])
    found = all_of(database)
    whole = [session for session, texts in sound.texts.items() if texts == found.texts.get(session)]
    assert len(whole) > SESSIONS * (share - 0.1)
    assert found.told.keys() | set(whole) == sound.texts.keys() or found.problems
    assert database.read_bytes() == before


def test_a_record_that_ends_in_zeros_is_told(database: Path) -> None:
    data = bytearray(database.read_bytes())
    at = data.rindex(b"x" * 200)
    data[at : at + 200] = bytes(200)
    database.write_bytes(data)
    (reason,) = all_of(database).told.values()
    assert "1 of part" in reason


def test_what_was_not_read_whole_is_read_again_from_its_start(database: Path) -> None:
    zero(database, pages_of(database, "part", TABLE_LEAF)[0])
    collection = open_collection(str(database))
    member = next(one for one in collection.members() if isinstance(one, Member))
    file = SourceFile(
        path="x#y", agent="opencode", session=member.session, size=member.size, mtime_ns=1, inode=0
    )
    source = collection.open(member)
    reader = OpenCode().open(named(member.session))
    result, _ = Pass(reader, source, file, 0, None).run(lambda _: None)
    assert result.entry.size == -1, "as no file is: it is never taken for unchanged"
    assert len(result.problems) == 1
    assert not source.grew_from(an_entry(result.entry.read_to, result.entry.head, result.entry.tail))
    source.close()
