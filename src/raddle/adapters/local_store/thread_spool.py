"""A new thread's file, written while its messages arrive, in memory that does not grow with it.

Messages go to a spool file as they will stand in the thread file; what stands around them is known only at
the end. What is kept of each is where it lies and where it sorts. The whole is put beside the thread files
under a temporary name; who calls decides when it takes its place.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from itertools import groupby
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
_LEAST_TABLE = 64
"""A power of two, as all sizes of the table are."""


class ThreadSpool:
    """The messages of one thread on their way to its file. Those of one id are joined, as in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._body: BinaryIO | None = None
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._end = 0
        self._numbers = _Numbers()
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
            number, before = self._find(message.id)
            if before is not None:
                if not anew and join_messages(before, message) is not message:
                    continue
                self._is_sorted = False
            self._append(message, number)
            kept.append(message)
        if self._pending_bytes > _BUFFER_BYTES:
            self._flush()
        return kept

    def _find(self, message_id: str) -> tuple[int, Message | None]:
        """The number of a message and how it stands; a new number and None where none of that id came yet."""
        for number in self._numbers.maybe(message_id):
            before = self._message(number)
            if before.id == message_id:
                return number, before
        return self._numbers.add(message_id), None

    def _message(self, number: int) -> Message:
        return decode_message(msgspec.json.decode(self._read(number)))

    def _append(self, message: Message, number: int) -> None:
        pretty = pretty_message(message)
        key = (message.order, message.id)
        if key < self._last:
            self._is_sorted = False
        else:
            self._last = key
        self._note(number, key[0], len(pretty))
        self._end += len(pretty) + 1
        self._pending += [pretty, b","]
        self._pending_bytes += len(pretty) + 1

    def _note(self, number: int, order: int, size: int) -> None:
        """Where a message lies; in place of where an earlier form of it did."""
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
        for place, number in enumerate(self._in_order()):
            waiting += [b"," if place else b"", *self._pieces(self._offsets[number], self._sizes[number])]
            size += self._sizes[number]
            if size > _COPY_BYTES:
                new.write(b"".join(waiting))
                waiting, size = [], 0
        new.write(b"".join(waiting))

    def _in_order(self) -> Iterator[int]:
        """The numbers of the messages in (order, id) order. Two of one order are rare: only then ids are looked up."""
        orders = self._orders
        ordered = sorted(range(len(orders)), key=orders.__getitem__)
        for _, group in groupby(ordered, key=orders.__getitem__):
            numbers = list(group)
            yield from (
                numbers if len(numbers) == 1 else sorted(numbers, key=lambda one: self._message(one).id)
            )

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


class _Numbers:
    """Message ids -> numbers from 0 on, in a sixth of the memory that a dict takes: no id is held, only its hash.

    A table with open addressing; an entry is the number and one, 0 where there is none.
    """

    def __init__(self) -> None:
        self._hashes = array("q")
        self._table = array("i", bytes(4 * _LEAST_TABLE))

    def __len__(self) -> int:
        return len(self._hashes)

    def maybe(self, message_id: str) -> list[int]:
        """Numbers of ids that hash as this one does: nearly always its own alone, or none."""
        hashes, table, sought = self._hashes, self._table, hash(message_id)
        mask = len(table) - 1
        at, found = sought & mask, []
        while entry := table[at]:
            if hashes[entry - 1] == sought:
                found.append(entry - 1)
            at = (at + 1) & mask
        return found

    def add(self, message_id: str) -> int:
        """The number of an id that is not there yet."""
        self._hashes.append(hash(message_id))
        count = len(self._hashes)
        if count * 2 > len(self._table):
            self._table = array("i", bytes(8 * len(self._table)))
            for number in range(count):
                self._enter(number)
        else:
            self._enter(count - 1)
        return count - 1

    def _enter(self, number: int) -> None:
        table = self._table
        mask = len(table) - 1
        at = self._hashes[number] & mask
        while table[at]:
            at = (at + 1) & mask
        table[at] = number + 1


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
