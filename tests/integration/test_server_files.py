"""Whole thread files over HTTP: what a file of another program says counts, and what says private is not kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from psycopg import Connection

from raddle.model.threads.codec import encode_thread
from raddle.server.threads import feed
from tests.builders import THREAD_ID, a_message, a_thread
from tests.builders_routes import Asker
from tests.builders_served import a_token, serving
from tests.builders_server import connected, new_id, prepare
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

PATH = f"/api/threads/{THREAD_ID}"
WAYS = [("POST", "/api/threads"), ("PUT", PATH)]


class Desk(NamedTuple):
    """A server's database, and somebody with a token."""

    connection: Connection
    asker: Asker

    def send(self, way: tuple[str, str], plain: Any, **headers: str) -> httpx.Response:
        return self.asker.ask(*way, json.dumps(plain).encode(), headers)

    def shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = self.asker.ask("GET", PATH).json()
        return shown

    def threads(self) -> int:
        (found,) = self.connection.execute("SELECT count(*) FROM threads").fetchone() or (0,)
        return int(found)


@pytest.fixture
def desk(new_database: NewDatabase, tmp_path: Path) -> Iterator[Desk]:
    conninfo = new_database(prepare)
    with (
        connected(conninfo) as connection,
        serving(conninfo, tmp_path / "blobs") as served,
        Asker(served, a_token(connection)) as asker,
    ):
        feed.hub_epoch(connection, new_id)
        yield Desk(connection, asker)


def a_plain_file(**fields: Any) -> dict[str, Any]:
    """What a program writes that knows of no stamps and gives its turns no ids."""
    said = [{"role": "user", "content": "marimba"}, {"role": "assistant", "content": "I see."}]
    return {"id": THREAD_ID, "conversation": {"messages": said}, **fields}


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_says_it_is_private_is_refused_whoever_wrote_it(desk: Desk, way: tuple[str, str]) -> None:
    stamped = json.loads(encode_thread(a_thread(a_message())))
    for plain in (a_plain_file(is_private=True), {**stamped, "is_private": True}):
        answer = desk.send(way, plain)
        assert (answer.status_code, "is_private" in answer.json()["detail"]) == (422, True)
    assert desk.threads() == 0


@pytest.mark.parametrize("way", WAYS)
def test_what_the_plain_fields_of_a_file_say_is_kept(desk: Desk, way: tuple[str, str]) -> None:
    metadata = {"title": "Cold kiln", "tags": ["fire"], "is_pinned": True}
    sent = a_plain_file(metadata=metadata, visibility="public", git_branch="dev")
    assert desk.send(way, sent).status_code in {200, 201}
    shown = desk.shown()
    assert [each["content"] for each in shown["conversation"]["messages"]] == ["marimba", "I see."]
    assert {name: shown["metadata"][name] for name in metadata} == metadata
    assert (shown["visibility"], shown["git_branch"]) == ("public", "dev")


def test_a_stamped_file_that_was_edited_since_says_what_it_says_now(desk: Desk) -> None:
    stamped = json.loads(encode_thread(a_thread(a_message(), title="a title")))
    assert desk.send(WAYS[0], stamped).status_code == 201
    stamped["metadata"]["title"] = "another"
    assert desk.send(WAYS[1], stamped).status_code == 200
    shown = desk.shown()
    assert shown["metadata"]["title"] == "another"
    shown["is_private"] = True
    assert desk.send(WAYS[1], shown).status_code == 422
    assert desk.shown()["metadata"]["title"] == "another"


def test_the_same_file_posted_twice_is_answered_like_the_first_time(desk: Desk) -> None:
    first, again = (desk.send(WAYS[0], a_plain_file()) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert desk.send(WAYS[0], a_plain_file(visibility="public")).status_code == 409


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"messages": [5]}, "message 1"),
        ({"conversation": {"messages": [5]}}, "message 1"),
        ({"conversation": {"messages": [{"content": "who?"}]}}, "message 1"),
        ({"metadata": 5}, "metadata"),
        ({"metadata": {"title": 5}}, "title"),
        ({"is_private": "yes"}, "is_private"),
        ({"visibility": "everyone"}, "visibility"),
        ({"stamps": {"title": "yesterday"}}, "stamp of title"),
    ],
)
def test_a_file_of_which_something_would_be_left_out_is_refused_by_name(
    desk: Desk, fields: dict[str, Any], name: str
) -> None:
    plain = a_plain_file(**fields)
    if "messages" in fields:
        del plain["conversation"]
    for way in WAYS:
        answer = desk.send(way, plain)
        assert (answer.status_code, name in answer.json()["detail"]) == (422, True), answer.text
    assert desk.threads() == 0


def test_a_version_that_is_not_the_newest_is_answered_with_the_one_that_is(desk: Desk) -> None:
    assert desk.send(WAYS[0], a_plain_file()).status_code == 201
    version = desk.shown()["version"]
    answer = desk.send(WAYS[1], a_plain_file(), **{"If-Match": '"999"'})
    assert (answer.status_code, answer.json()["server_version"]) == (409, version)
    assert answer.json()["detail"] == f"the thread is at version {version} here, and not at 999"
