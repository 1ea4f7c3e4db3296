"""A new thread's file, written while its messages arrive, in memory that does not grow with it.

Messages go to a spool file as they will stand in the thread file; what stands around them is known only at
the end. What is kept of each is where it lies and where it sorts. The whole is put beside the thread files
under a temporary name; who calls decides when it takes its place.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec

from raddle.adapters.files import NewFile, storage_error
from raddle.model.threads.codec import encode_frame, pretty_message
from raddle.model.threads.message import Message
from raddle.model.threads.message_codec import decode_message
from raddle.model.threads.thread import Thread, join_messages

_BUFFER_BYTES = 1 << 20
_COPY_BYTES = 1 << 20


class ThreadSpool:
    """The messages of one thread on their way to its file. Those of one id are joined, as in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._body: BinaryIO | None = None
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._end = 0
        self._numbers: dict[str, int] = {}
        """Message id -> its number in the three lists below."""
        self._orders, self._offsets, self._sizes = array("q"), array("q"), array("q")
        self._last = (-1, "")
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, messages: Iterable[Message], *, anew: bool = False) -> list[Message]:
        """Take in messages, in any order; those that stand now. `anew`: whatever came under their ids goes."""
        kept: list[Message] = []
        for message in messages:
            if message.id in self._numbers:
                if not anew and self._joined(message) is not message:
                    continue
                self._is_sorted = False
            self._append(message)
            kept.append(message)
        if self._pending_bytes > _BUFFER_BYTES:
            self._flush()
        return kept

    def _joined(self, message: Message) -> Message:
        number = self._numbers[message.id]
        before = decode_message(msgspec.json.decode(self._read(number)))
        return join_messages(before, message)

    def _append(self, message: Message) -> None:
        pretty = pretty_message(message)
        key = (message.order, message.id)
        if key < self._last:
            self._is_sorted = False
        else:
            self._last = key
        self._note(message.id, key[0], len(pretty))
        self._end += len(pretty) + 1
        self._pending += [pretty, b","]
        self._pending_bytes += len(pretty) + 1

    def _note(self, message_id: str, order: int, size: int) -> None:
        """Where a message lies; in place of where an earlier form of it did."""
        number = self._numbers.setdefault(message_id, len(self._numbers))
        if number == len(self._orders):
            for column in (self._orders, self._offsets, self._sizes):
                column.append(0)
        self._orders[number], self._offsets[number], self._sizes[number] = order, self._end, size

    def _read(self, number: int) -> bytes:
        self._flush()
        return b"".join(self._pieces(self._offsets[number], self._sizes[number]))

    def _flush(self) -> None:
        try:
            if self._body is None:
                self._body = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115  closed by `close`
            _write_all(self._body.fileno(), b"".join(self._pending))
        except OSError as error:
            raise storage_error(error, self._folder, "write in") from error
        self._pending, self._pending_bytes = [], 0

    def write(self, frame: Thread) -> Path:
        """Write the thread file under a temporary name; `frame` holds the registers and version, no messages.

        There is at least one message. The file is not synced: a batch is, as one, when its files take their
        places.
        """
        before, after = encode_frame(frame)
        new = NewFile(self._folder)
        try:
            new.write(before)
            self._copy(new)
            new.write(after)
            return new.set_aside()
        except BaseException:
            new.discard()
            raise

    def _copy(self, new: NewFile) -> None:
        """The messages in (order, id) order, with commas between."""
        if self._is_sorted and self._body is None:
            new.write(b"".join(self._pending[:-1]))
            return
        self._flush()
        if self._is_sorted:
            for piece in self._pieces(0, self._end - 1):
                new.write(piece)
            return
        waiting: list[bytes] = []
        size = 0
        orders = self._orders
        ordered = sorted(self._numbers, key=lambda name: (orders[self._numbers[name]], name))
        for place, name in enumerate(ordered):
            number = self._numbers[name]
            waiting += [b"," if place else b"", *self._pieces(self._offsets[number], self._sizes[number])]
            size += self._sizes[number]
            if size > _COPY_BYTES:
                new.write(b"".join(waiting))
                waiting, size = [], 0
        new.write(b"".join(waiting))

    def _pieces(self, offset: int, size: int) -> Iterable[bytes]:
        """So many bytes of the spool, which is flushed."""
        assert self._body is not None
        end = offset + size
        while offset < end:
            try:
                data = os.pread(self._body.fileno(), min(_COPY_BYTES, end - offset), offset)
            except OSError as error:
                raise storage_error(error, self._folder, "read a temporary file in") from error
            assert data, "the spool is as long as what was written to it"
            yield data
            offset += len(data)

    def close(self) -> None:
        """Throw the spool away."""
        if self._body is not None:
            self._body.close()
            self._body = None


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
