"""Server-sent events out of bytes, as the HTML standard reads them: a machine that takes pieces and gives events.

A line that ends between two pieces, or in any of three ways, must not make another event of it: so it is read here
and nowhere by splitting.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from raddle.model.errors import BrokenFormat

MOST_EVENT_BYTES = 8 << 20


class Event(Struct, frozen=True, kw_only=True):
    """One event. `id`: of the last one that had any, also where this one has none."""

    kind: str
    data: str
    id: str = ""


class EventParser:
    """Takes a stream in any pieces. BrokenFormat where an event grows beyond all bounds."""

    def __init__(self, most_bytes: int = MOST_EVENT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._line = bytearray()
        self._size = 0
        self._is_first = True
        self._after_return = False
        self._data: list[str] = []
        self._kind = ""
        self._id = ""

    def feed(self, piece: bytes) -> Iterator[Event]:
        """The events that end in this piece."""
        if self._after_return and piece:
            self._after_return = False
            piece = piece.removeprefix(b"\n")
        self._after_return = piece.endswith(b"\r") or (self._after_return and not piece)
        *whole, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for part in whole:
            self._take(part)
            event = self._end_line()
            if event is not None:
                yield event
        self._take(rest)

    def _take(self, part: bytes) -> None:
        self._line += part
        self._size += len(part)
        if self._size > self._most_bytes:
            raise BrokenFormat(f"an event is larger than {self._most_bytes:,} bytes")

    def _end_line(self) -> Event | None:
        line = self._line.decode("utf-8", "replace")
        self._line.clear()
        if self._is_first:
            self._is_first = False
            line = line.removeprefix("\ufeff")
        if not line:
            return self._end_event()
        if line.startswith(":"):
            self._size = 0 if not self._data else self._size
            return None
        name, _, value = line.partition(":")
        self._set(name, value.removeprefix(" "))
        return None

    def _set(self, name: str, value: str) -> None:
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self._id = value

    def _end_event(self) -> Event | None:
        """An event without data is none, whatever else it has."""
        data, kind = self._data, self._kind or "message"
        self._data, self._kind, self._size = [], "", 0
        return Event(kind=kind, data="\n".join(data), id=self._id) if data else None
