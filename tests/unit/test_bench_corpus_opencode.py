"""The made-up OpenCode database: the same seed gives the same rows, and the importer reads all of them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bench.corpus.opencode import Plan, write_corpus
from raddle.actions.importing.opencode import OpenCode
from raddle.adapters.agent_homes.opencode_store import open_collection
from tests.builders_opencode_stores import lines_of, members
from tests.reading import Reading, named, read

PLAN = Plan(megabytes=1.2, sessions=6, seed=3)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("opencode") / "opencode.db"
    write_corpus(str(path), PLAN)
    return path


def readings(path: Path) -> list[Reading]:
    collection = open_collection(str(path))
    found = []
    for member in members(collection):
        source = collection.open(member)
        found.append(read(OpenCode(), named(member.session), lines_of(source), batch=200))
        source.close()
    return found


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_the_same_seed_gives_the_same_rows_and_another_one_others(tmp_path: Path, database: Path) -> None:
    query = "SELECT id, data FROM part ORDER BY id"
    write_corpus(str(tmp_path / "again.db"), PLAN)
    assert rows(tmp_path / "again.db", query) == rows(database, query)
    write_corpus(str(tmp_path / "other.db"), Plan(megabytes=0.2, sessions=2, seed=4, events=True))
    assert not set(rows(tmp_path / "other.db", query)) & set(rows(database, query))
    assert rows(tmp_path / "other.db", "SELECT count(*) FROM event") != [(0,)]


def test_all_of_it_is_read(database: Path) -> None:
    found = readings(database)
    assert all(reading.problems == [] for reading in found)
    messages = [message for reading in found for message in reading.thread.messages]
    (count,) = rows(database, "SELECT count(*) FROM message")[0]
    assert sum(message.role != "tool" for message in messages) == count
    (calls,) = rows(database, 'SELECT count(*) FROM part WHERE data LIKE \'%"type":"tool"%\'')[0]
    assert sum(message.role == "tool" for message in messages) == calls
    assert any(message.is_sidechain for message in messages)
    assert all(reading.thread.tree.lost() == [] for reading in found)


def test_a_fork_is_in_it(database: Path) -> None:
    ids = [{message.id for message in reading.thread.messages} for reading in readings(database)]
    assert any(one & other for at, one in enumerate(ids) for other in ids[at + 1 :])
