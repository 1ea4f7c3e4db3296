"""Whoever reads a thread in pages, however small, while others push to it, ends up with what the server holds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import Connection

from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.thread import Thread
from raddle.server.threads import answering
from raddle.server.threads.holding import Key
from tests.builders import THREAD_ID, an_author, counted_ids
from tests.builders_server import ServerHub, a_person, connected, new_id, prepare
from tests.postgres import NewDatabase
from tests.property.merge_laws import state_of

pytest_plugins = ("tests.postgres",)

EXAMPLES = 40 if settings().max_examples <= 100 else 2_000
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(1, 4), st.integers(0, 2_000)),
        st.tuples(st.just("purge"), st.integers(0, 9)),
        st.tuples(st.just("rename"), st.integers(0, 500)),
        st.tuples(st.just("withdraw")),
        st.tuples(st.just("read")),
        st.tuples(st.just("read")),
    ),
    min_size=3,
    max_size=25,
)


@pytest.fixture
def connection(new_database: NewDatabase) -> Iterator[Connection]:
    with contextlib.closing(connected(new_database(prepare))) as found:
        yield found


class Writer:
    """A device that pushes each edit at once, and is the only one."""

    def __init__(self, hub: ServerHub) -> None:
        self.hub = hub
        self.thread = Thread(THREAD_ID)
        self.author = an_author("aaaaaaaa", new_id=counted_ids("m"))
        self.version = 0

    def take(self, step: tuple[object, ...]) -> None:
        editor = Editor(self.thread, self.author)
        match step:
            case ("say", int(count), int(size)):
                for _ in range(count):
                    editor.reply(None, "user", "x" * size)
            case ("purge", int(pick)) if len(self.thread.tree):
                turns = list(self.thread.tree)
                editor.purge([turns[pick % len(turns)].id])
            case ("rename", int(size)):
                editor.rename("t" * size)
            case ("withdraw",) if self.version:
                for is_private in (True, False):  # and what it had said is not said again
                    editor.set_private(is_private)
                    self.push(editor.delta(), only="is_private")
                return
        made = editor.delta()
        if not made.is_empty:
            self.push(made)

    def push(self, made: Delta, only: str = "") -> None:
        registers = {path: each for path, each in made.registers.items() if not only or path == only}
        delta = Delta(
            base_version=self.version,
            version=self.version + 1,
            messages=made.messages,
            registers=registers,
        )
        pushed = self.hub.push(THREAD_ID, delta, self.hub.epoch)
        assert pushed.is_accepted
        self.version = pushed.version


class Reader:
    """Holds what the server is known to hold, and asks for a page more."""

    def __init__(self, hub: ServerHub) -> None:
        self.hub = hub
        self.thread = Thread(THREAD_ID)
        self.version = 0

    def read(self) -> bool:
        """Is there more?"""
        answer = self.hub.since(THREAD_ID, self.version)
        if answer.delta.base_version == 0:
            self.thread = Thread(THREAD_ID)
        else:
            assert answer.delta.base_version == self.version
        assert answer.delta.version > self.version or not answer.has_more
        self.thread.join(answer.delta)
        self.version = answer.delta.version
        return answer.has_more


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, page_bytes=st.integers(1, 6_000))
def test_pages_of_a_thread_that_grows_meanwhile_are_the_whole(
    connection: Connection, steps: list[tuple[object, ...]], page_bytes: int
) -> None:
    hub = ServerHub(connection, a_person(connection, new_id()), page_bytes=page_bytes)
    writer, reader = Writer(hub), Reader(hub)
    for step in steps:
        if step == ("read",):
            reader.read()
        else:
            writer.take(step)
    while reader.read():
        pass
    if not writer.version:
        return
    held = answering.whole(connection, Key(hub.person.space, THREAD_ID))
    assert state_of(reader.thread) == state_of(held)
    assert reader.version == held.version == writer.version
