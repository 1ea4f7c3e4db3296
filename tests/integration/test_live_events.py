"""The feed, live: what a device hears of a push, and how it stops listening."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.adapters.remote.http_hub import HttpHub
from raddle.model.errors import NetworkError, NotSignedIn
from raddle.model.protocol.hub import Changes
from tests.builders import THREAD_ID, a_message
from tests.builders_served import Served, a_token, serving
from tests.builders_server import connected, prepare
from tests.contract.remote_laws import OTHER_ID, new
from tests.fakes.hostile_server import Says, answer, hostile
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

_PATIENCE_SECONDS = 20
PAGE = {"changes": [{"id": THREAD_ID, "version": 3}], "cursor": "c", "hub_epoch": "e", "more": False}
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n"


@pytest.fixture
def conninfo(new_database: NewDatabase) -> str:
    return new_database(prepare)


@pytest.fixture
def token(conninfo: str) -> str:
    with connected(conninfo) as connection:
        return a_token(connection)


@pytest.fixture
def served(conninfo: str, tmp_path: Path) -> Iterator[Served]:
    with serving(conninfo, tmp_path / "blobs") as server:
        yield server


def test_a_push_is_heard_by_who_listens(served: Served, token: str) -> None:
    with HttpHub(served.link(token)) as hub, contextlib.closing(hub.events("")) as events:
        first = hub.push(THREAD_ID, new(a_message()), "")
        page = next(events)
        assert [(change.thread_id, change.version) for change in page.changes] == [(THREAD_ID, first.version)]
        hub.push(OTHER_ID, new(a_message("n1")), "")
        assert [change.thread_id for change in next(events).changes] == [OTHER_ID]


def test_who_comes_back_hears_what_it_missed_and_nothing_twice(served: Served, token: str) -> None:
    with HttpHub(served.link(token)) as hub:
        hub.push(THREAD_ID, new(a_message()), "")
        with contextlib.closing(hub.events("")) as events:
            cursor = next(events).cursor
        hub.push(OTHER_ID, new(a_message("n1")), "")
        with contextlib.closing(hub.events(cursor)) as events:
            assert [change.thread_id for change in next(events).changes] == [OTHER_ID]


def test_another_thread_ends_the_waiting(served: Served, token: str) -> None:
    heard: list[Changes] = []
    with HttpHub(served.link(token)) as hub:
        hub.push(THREAD_ID, new(a_message()), "")
        events = hub.events("")
        got_one = threading.Event()

        def listen() -> None:
            for page in events:
                heard.append(page)
                got_one.set()

        listener = threading.Thread(target=listen)
        listener.start()
        assert got_one.wait(_PATIENCE_SECONDS)
        events.close()
        listener.join(2)
        assert not listener.is_alive()
        assert len(heard) == 1
        assert list(events) == []


def test_the_end_of_the_server_is_the_end_of_the_stream(served: Served, token: str) -> None:
    with HttpHub(served.link(token)) as hub:
        hub.push(THREAD_ID, new(a_message()), "")
        events = hub.events("")
        next(events)
        served.stop()
        assert list(events) == []
    served.start()


def test_who_is_not_let_in_is_told(served: Served) -> None:
    with HttpHub(served.link("rdl_nobody")) as hub, pytest.raises(NotSignedIn):
        next(hub.events(""))


def told(*pieces: bytes) -> list[str]:
    """The cursors of the pages that a stream of these pieces tells."""
    with hostile(Says([STREAM, *pieces])) as server, HttpHub(server.link()) as hub:
        return [page.cursor for page in hub.events("")]


def test_pages_are_read_out_of_any_pieces() -> None:
    lines = json.dumps(PAGE, indent=1).splitlines()
    event = "".join(f"data: {line}\r\n" for line in lines).encode()
    stream = b": hello\r\n\r\nevent: changes\r\n" + event + b"id: c\r\n\r\n: bye\r\n\r\n"
    assert told(*(stream[at : at + 7] for at in range(0, len(stream), 7))) == ["c"]


def test_events_of_other_kinds_are_passed_over() -> None:
    page = json.dumps(PAGE).encode()
    assert told(b"event: later\ndata: {}\n\ndata: x\n\nevent: changes\ndata: " + page + b"\n\n") == ["c"]


def test_half_a_page_is_none() -> None:
    assert told(b"event: changes\ndata: " + json.dumps(PAGE).encode() + b"\n") == []


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"changes": [{"id": "../x", "version": 1}]}'])
def test_a_page_that_is_none_of_ours_is_an_error(data: bytes) -> None:
    with pytest.raises(NetworkError):
        told(b"event: changes\ndata: " + data + b"\n\n")


@pytest.mark.parametrize(
    "says",
    [
        answer(b"{}"),
        answer(b"", "500 Oh"),
        Says([]),
        Says([STREAM.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")]),
    ],
)
def test_what_is_no_stream_is_an_error(says: Says) -> None:
    with hostile(says) as server, HttpHub(server.link()) as hub, pytest.raises(NetworkError):
        next(hub.events(""))


def test_waiting_for_the_head_can_be_ended_too() -> None:
    with hostile(Says([], then_hangs=True)) as server, HttpHub(server.link()) as hub:
        events = hub.events("")
        listener = threading.Thread(target=lambda: list(events))
        listener.start()
        while not server.requests:
            listener.join(0.01)
        events.close()
        listener.join(2)
        assert not listener.is_alive()


def test_a_stream_that_was_never_listened_to_is_closed_for_nothing() -> None:
    with hostile(answer(b"{}")) as server, HttpHub(server.link()) as hub:
        hub.events("").close()
        assert server.requests == []
