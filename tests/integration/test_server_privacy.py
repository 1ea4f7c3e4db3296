"""What is private, withdrawn or erased is in no table of the server: not in a row, not in the search, not in a name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from psycopg import Connection, sql

from raddle.adapters.blobs.directory import BlobDirectory
from raddle.adapters.remote.http_hub import HttpHub
from raddle.model.clock import system_clock
from raddle.model.errors import InvalidInput
from raddle.model.protocol.hub import GONE, Pushed
from raddle.model.secret import Secret
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import Attachment, Message, ToolCall
from raddle.model.threads.thread import Thread
from raddle.server import rows
from raddle.server.hub import Hub
from raddle.server.jobs import run_once
from raddle.server.search.index import ServerIndex
from raddle.server.tables.database import Database
from tests.builders import THREAD_ID, a_message, a_thread, an_author
from tests.builders_routes import Asker, all_calls, body_for, new_ids, push_body
from tests.builders_served import Served, a_token, serving
from tests.builders_server import connected, new_id, prepare
from tests.contract.remote_laws import OTHER_ID, feed, more, new, whole, withdrawal
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

PATH = f"/api/threads/{THREAD_ID}"
WORDS = {
    field: f"{field}xyzzyqwop"
    for field in (
        "content",
        "tool",
        "argument",
        "attachment",
        "extra",
        "model",
        "title",
        "tag",
        "branch",
        "unknown",
    )
}
"""A word for each place that somebody's words stand in."""


def a_talkative_push() -> Delta:
    """A thread that says each of the words."""
    turn = a_message(
        content=f"some {WORDS['content']} of mine, " + "and more of it " * 40,
        tool_calls=(ToolCall(id="c1", tool_name=WORDS["tool"], arguments_json={"x": WORDS["argument"]}),),
        attachments=(Attachment(sha256="a" * 64, name=WORDS["attachment"]),),
        extra={"note": WORDS["extra"]},
        model=WORDS["model"],
        unknown={"later": WORDS["unknown"]},
    )
    return new(turn, title=WORDS["title"], git_branch=WORDS["branch"], **{f"tag/{WORDS['tag']}": True})


class House(NamedTuple):
    """A server and somebody's device."""

    served: Served
    connection: Connection
    hub: HttpHub
    asker: Asker
    blobs: Path

    def said(self) -> set[str]:
        """Those of the words that stand in any column of any table."""
        found = set()
        for table, column in self.connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " JOIN pg_tables ON schemaname = table_schema AND tablename = table_name"
            " WHERE table_schema = 'public'"
        ).fetchall():
            for (value,) in self.connection.execute(
                sql.SQL("SELECT {} FROM {}").format(sql.Identifier(column), sql.Identifier(table))
            ):
                text = _text_of(value)
                found |= {field for field, word in WORDS.items() if word in text}
        return found

    def search(self, word: str) -> int:
        answer = self.asker.ask("GET", f"/api/threads/search?q={word}")
        assert answer.status_code == 200, answer.text
        return len(answer.json()["hits"])

    def epoch(self) -> str:
        return self.hub.since(OTHER_ID, 0, "").hub_epoch


def _text_of(value: object) -> str:
    if isinstance(value, bytes):
        return rows.unpacked(value).decode("utf-8", "replace").lower()
    return str(value).lower()


@pytest.fixture
def house(new_database: NewDatabase, tmp_path: Path) -> Iterator[House]:
    conninfo = new_database(prepare)
    with connected(conninfo) as connection, serving(conninfo, tmp_path / "blobs") as served:
        token = a_token(connection)
        with HttpHub(served.link(token)) as hub, Asker(served, token) as asker:
            yield House(served, connection, hub, asker, tmp_path / "blobs")


def made_private(delta: Delta, base: Pushed | None = None) -> Delta:
    """The same push, which also says that the thread is private."""
    thread = Thread(THREAD_ID)
    thread.join(delta)
    Editor(thread, an_author("bbbbbbbb")).set_private(True)
    base_version = 0 if base is None else base.version
    return Delta(
        base_version=base_version,
        version=max(thread.version, base_version + 1),
        messages=delta.messages,
        registers=dict(thread.registers),
    )


def test_the_words_are_found_where_they_are(house: House) -> None:
    """Or the tests below would prove nothing."""
    house.hub.push(THREAD_ID, a_talkative_push(), "")
    assert house.said() == set(WORDS)
    assert house.search(WORDS["content"]) == 1


def test_what_is_private_from_the_start_is_not_taken(house: House) -> None:
    private = made_private(a_talkative_push())
    with pytest.raises(InvalidInput):
        house.hub.push(THREAD_ID, private, "")
    thread = Thread(THREAD_ID)
    thread.join(private)
    file = encode_thread(thread)
    for method, path in (("PUT", PATH), ("POST", "/api/threads")):
        answer = house.asker.ask(method, path, file)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert house.said() == set()
    assert house.asker.ask("GET", PATH).status_code == 404
    assert feed(house.hub)[0] == []


def test_a_withdrawal_that_says_more_leaves_all_as_it_was(house: House) -> None:
    base = house.hub.push(THREAD_ID, new(a_message("m0")), "")
    talkative = made_private(a_talkative_push(), base)
    with pytest.raises(InvalidInput):
        house.hub.push(THREAD_ID, talkative, base.hub_epoch)
    assert house.said() == set()
    assert whole(house.hub).version == base.version


def test_a_withdrawal_leaves_no_word_in_any_table(house: House) -> None:
    pushed = house.hub.push(THREAD_ID, a_talkative_push(), "")
    house.hub.push(OTHER_ID, new(a_message("n1", "what another thread says")), "")
    assert house.search(WORDS["content"]) == 1
    taken_back = house.hub.push(THREAD_ID, withdrawal(whole(house.hub)), pushed.hub_epoch)
    assert taken_back.is_accepted
    assert house.said() == set()
    assert [house.search(word) for word in WORDS.values()] == [0] * len(WORDS)
    assert house.search("another") == 1
    assert house.said() == set(), "to search brings nothing back"
    file = house.asker.ask("GET", PATH)
    assert not any(word in file.text for word in WORDS.values())


def test_what_was_withdrawn_before_it_was_found_leaves_no_word(house: House) -> None:
    """Search may come to a push late; by then there is nothing to come to."""
    pushed = house.hub.push(THREAD_ID, a_talkative_push(), "")
    house.hub.push(THREAD_ID, withdrawal(whole(house.hub)), pushed.hub_epoch)
    assert house.said() == set()
    assert house.search(WORDS["content"]) == 0
    assert house.said() == set()


def test_a_private_thread_takes_nothing_until_it_is_opened(house: House) -> None:
    first = house.hub.push(THREAD_ID, new(a_message("m0")), "")
    mine = whole(house.hub)
    private = house.hub.push(THREAD_ID, withdrawal(mine), first.hub_epoch)
    refused = house.hub.push(THREAD_ID, more(private, *a_talkative_push().messages), private.hub_epoch)
    assert refused.answer is not None
    assert set(refused.answer.delta.registers) == {"is_private"}
    assert house.asker.ask("PUT", PATH, encode_thread(a_thread(a_message()))).status_code in {409, 422}
    for method, below in (("POST", "/visibility"), ("DELETE", ""), ("POST", "/restore")):
        assert house.asker.ask(method, f"{PATH}{below}", b'{"visibility": "public"}').status_code == 404
    assert house.said() == set()
    held = whole(house.hub)
    Editor(held, an_author("bbbbbbbb")).set_private(False)
    opened = Delta(
        base_version=private.version,
        version=private.version + 1,
        messages=a_talkative_push().messages,
        registers={"is_private": held.registers["is_private"]},
    )
    assert house.hub.push(THREAD_ID, opened, private.hub_epoch).is_accepted
    assert "content" in house.said()


def test_words_that_are_searched_for_while_they_are_withdrawn_do_not_come_back(house: House) -> None:
    is_over = threading.Event()
    failures: list[str] = []

    def search() -> None:
        with Asker(
            house.served, house.asker.client.headers["authorization"].removeprefix("Bearer ")
        ) as asker:
            while not is_over.is_set():
                answer = asker.ask("GET", f"/api/threads/search?q={WORDS['content']}")
                if answer.status_code != 200:
                    failures.append(answer.text)

    searchers = [threading.Thread(target=search) for _ in range(2)]
    for searcher in searchers:
        searcher.start()
    try:
        for _ in range(12):
            name = new_ids().thread
            pushed = house.hub.push(name, a_talkative_push(), "")
            taken_back = withdrawal(whole(house.hub, name))
            assert house.hub.push(name, taken_back, pushed.hub_epoch).is_accepted
    finally:
        is_over.set()
        for searcher in searchers:
            searcher.join(20)
    assert failures == []
    assert house.said() == set()


def run_jobs(house: House) -> None:
    """All that is due, for who keeps nothing that is deleted."""
    database = Database(Secret(house.served.conninfo), size=2)
    database.open()
    try:
        blobs = BlobDirectory(house.blobs)
        hub = Hub(database, ServerIndex(), blobs, clock=system_clock, new_id=new_id)
        run_once(hub, kept_deleted_seconds=0)
    finally:
        database.close()


@pytest.mark.parametrize("way", ["after its time", "at once"])
def test_what_was_deleted_is_erased_and_answers_410_for_ever(house: House, way: str) -> None:
    house.hub.push(THREAD_ID, a_talkative_push(), "")
    other = house.hub.push(OTHER_ID, new(a_message("n1", "what stays")), "")
    assert house.search(WORDS["content"]) == 1
    assert house.asker.ask("DELETE", PATH).status_code == 200
    if way == "after its time":
        assert house.said() == set(WORDS), "it can still be brought back"
        assert house.asker.ask("POST", f"{PATH}/restore").status_code == 200
        run_jobs(house)
        assert house.said() == set(WORDS), "what was brought back is kept"
        house.asker.ask("DELETE", PATH)
        run_jobs(house)
    else:
        assert house.asker.ask("DELETE", f"{PATH}?purge=true").status_code == 200
    assert house.said() == set()
    assert house.search("stays") == 1
    assert [(line.thread_id, line.kind) for line in feed(house.hub)[0]][1:] == [(THREAD_ID, GONE)]
    for _ in range(2):
        _expect_gone(house, other.hub_epoch)
    run_jobs(house)
    assert house.said() == set()


def _expect_gone(house: House, epoch: str) -> None:
    """By every route that names a thread; and no push brings it back."""
    ids = new_ids()._replace(thread=THREAD_ID)
    for call in all_calls():
        if "{thread_id:str}" in call.path or call.handler == "create_thread":
            answer = house.asker.ask(call.method, ids.fill(call.path), body_for(call, ids))
            assert (answer.status_code, answer.json()["code"]) == (410, "purged"), call
    for delta in (
        a_talkative_push(),
        more(Pushed(version=3, hub_epoch=epoch), Message(id="m9", role="user")),
    ):
        for of in ("", epoch):
            assert house.asker.ask("POST", f"{PATH}/delta", push_body(delta, of)).status_code == 410
    assert house.asker.ask("GET", f"{PATH}?since=0").status_code == 410
    assert house.asker.ask("DELETE", f"{PATH}?purge=true").status_code in {200, 410}
    assert house.said() == set()
