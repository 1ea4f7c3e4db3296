"""The feed, live: pages as they come, over a connection of its own that another thread can cut.

Closing a socket does not wake who reads from it; shutting it down does. So the sockets are noted as they are made.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Self

from raddle.adapters.event_stream import EventParser
from raddle.adapters.remote.http_link import HttpLink, Lost
from raddle.model.errors import BrokenFormat, NetworkError
from raddle.model.protocol.hub import Changes
from raddle.model.protocol.wire import json_value

_SILENCE_SECONDS = 45.0
"""The server says something every 15 seconds; after three silences nobody is there."""


class LiveEvents:
    """An iterator of pages of the feed. It ends where the connection does, or after `close`, which any thread may call.

    The first page may raise what any call of a hub does; NetworkError later only where the server talks nonsense.
    """

    def __init__(self, link: HttpLink, cursor: str, decode: Callable[[Any], Changes]) -> None:
        self._link = link
        self._decode = decode
        self._sockets: list[socket.socket] = []
        self._is_closed = False
        self._pages = self._read(cursor)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Changes:
        return next(self._pages)

    def close(self) -> None:
        """End it, also while another thread waits for the next page."""
        self._is_closed = True
        for each in tuple(self._sockets):
            _cut(each)
        with contextlib.suppress(ValueError):  # the other thread is in it, and leaves by itself
            self._pages.close()

    def _read(self, cursor: str) -> Generator[Changes, None, None]:
        is_open = False
        try:
            with (
                self._link.new_client(read_seconds=_SILENCE_SECONDS) as client,
                self._link.listening(
                    client, "/api/events", query={"cursor": cursor}, trace=self._note
                ) as pieces,
            ):
                is_open = True
                yield from self._pages_of(pieces)
        except NetworkError as error:
            if not self._is_closed and not (is_open and isinstance(error, Lost)):
                raise

    def _pages_of(self, pieces: Iterator[bytes]) -> Iterator[Changes]:
        parser = EventParser()
        for piece in pieces:
            try:
                for event in parser.feed(piece):
                    if event.kind == "changes":
                        yield self._decode(json_value(event.data.encode()))
            except BrokenFormat as error:
                raise self._link.nonsense(error.message) from error
            if self._is_closed:
                return

    def _note(self, step: str, about: Mapping[str, Any]) -> None:
        """Told by httpcore of each step: a finished connect answers a stream that has a socket."""
        find = getattr(about.get("return_value"), "get_extra_info", None)
        made = find("socket") if find is not None else None
        if isinstance(made, socket.socket):
            self._sockets.append(made)
            if self._is_closed:
                _cut(made)


def _cut(made: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already, or an SSL socket has taken it over
        # The method of the plain socket: SSL's own would first forget the session that the other thread reads from.
        socket.socket.shutdown(made, socket.SHUT_RDWR)
