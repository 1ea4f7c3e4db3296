"""Live events: who listens is told that a space has news, by whichever process took them.

One thread in a process waits on PostgreSQL and wakes the streams of a space; what a stream then says it reads
from the feed, so that an event is a line of the feed and nothing that could be missed or be somebody else's.
"""

from __future__ import annotations

import asyncio
import threading
from uuid import UUID

import psycopg
from psycopg import Connection

from raddle.model.errors import StorageError
from raddle.server.search.waiting import CHANNEL as WORDS_CHANNEL
from raddle.server.tables.database import Database
from raddle.server.threads.feed import CHANNEL

_LOOK_UP_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 5.0


class Listener:
    """Wakes `asyncio.Event`s of a space when it has news, all of them after each loss of the database; and sets `words`
    where words wait for the index."""

    def __init__(self, database: Database, *, words: threading.Event | None = None) -> None:
        self._database = database
        self._words = words
        self._streams: dict[UUID, set[asyncio.Event]] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to wait; `loop` is the one that the streams live in."""
        self._loop = loop
        self._thread = threading.Thread(target=self._run, name="raddle-listener", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End waiting, and wake every stream, so that it can end."""
        self._stopped.set()
        self._wake_all()

    @property
    def is_stopped(self) -> bool:
        """Does the server end?"""
        return self._stopped.is_set()

    def join(self, space: UUID) -> asyncio.Event:
        """An event that is set when the space has news."""
        event = asyncio.Event()
        with self._lock:
            self._streams.setdefault(space, set()).add(event)
        return event

    def leave(self, space: UUID, event: asyncio.Event) -> None:
        """Wake this one no more."""
        with self._lock:
            streams = self._streams.get(space, set())
            streams.discard(event)
            if not streams:
                self._streams.pop(space, None)

    def _run(self) -> None:
        pause = 0.1
        while not self._stopped.is_set():
            try:
                with self._database.connect_alone() as connection:
                    for channel in (CHANNEL, WORDS_CHANNEL):
                        connection.execute(b"LISTEN " + channel.encode())
                    self._wake_all()  # something may have come while nobody listened
                    pause = 0.1
                    self._wait(connection)
            except (psycopg.Error, StorageError):
                self._stopped.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _wait(self, connection: Connection) -> None:
        while not self._stopped.is_set():
            for note in connection.notifies(timeout=_LOOK_UP_SECONDS):
                if note.channel == WORDS_CHANNEL:
                    if self._words is not None:
                        self._words.set()
                else:
                    self._wake(note.payload)
                if self._stopped.is_set():
                    return

    def _wake(self, payload: str) -> None:
        try:
            space = UUID(payload)
        except ValueError:
            return
        with self._lock:
            events = tuple(self._streams.get(space, ()))
        self._set(events)

    def _wake_all(self) -> None:
        with self._lock:
            events = tuple(event for streams in self._streams.values() for event in streams)
        self._set(events)

    def _set(self, events: tuple[asyncio.Event, ...]) -> None:
        if self._loop is not None and events and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_set_all, events)


def _set_all(events: tuple[asyncio.Event, ...]) -> None:
    for event in events:
        event.set()
