"""A new thread's file, written while its messages arrive, in memory that does not grow with it.

Messages go to a spool file as they will stand in the thread file; what stands around them is known only at
the end. What is kept of each is where it lies and where it sorts. The whole is put beside the thread files
under a temporary name; who calls decides when it takes its place.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from raddle.adapters.files import storage_error
from raddle.model.threads.codec import encode_frame, pretty_message
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread

_BUFFER_BYTES = 1 << 20
_COPY_BYTES = 1 << 20


class ThreadSpool:
    """The messages of one thread on their way to its file. A message that comes again replaces its earlier form."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._body: BinaryIO | None = None
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._end = 0
        self._places: dict[str, tuple[int, int, int]] = {}
        """Message id -> (order, offset in the spool, size)."""
        self._last = (-1, "")
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._places)

    def add(self, messages: Iterable[Message]) -> None:
        """Take in messages, in any order."""
        for message in messages:
            pretty = pretty_message(message)
            key = (message.order, message.id)
            if message.id in self._places or key < self._last:
                self._is_sorted = False
            self._last = max(key, self._last)
            self._places[message.id] = (key[0], self._end, len(pretty))
            self._end += len(pretty) + 1
            self._pending += [pretty, b","]
            self._pending_bytes += len(pretty) + 1
        if self._pending_bytes > _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._body is None:
            self._body = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  closed by `close`
        self._body.write(b"".join(self._pending))
        self._pending, self._pending_bytes = [], 0

    def write(self, frame: Thread) -> Path:
        """Write the thread file under a temporary name; `frame` holds the registers and version, no messages.

        The file is not synced: a batch is synced as one when its files take their places.
        """
        before, after = encode_frame(frame)
        try:
            descriptor, name = tempfile.mkstemp(prefix=".raddle-", suffix=".tmp", dir=self._folder)
            with os.fdopen(descriptor, "wb", buffering=_BUFFER_BYTES) as out:
                out.write(before)
                self._copy(out)
                out.write(after)
        except OSError as error:
            raise storage_error(error, self._folder, "write a thread in") from error
        return Path(name)

    def _copy(self, out: BinaryIO) -> None:
        """The messages in (order, id) order, with commas between."""
        if self._is_sorted and self._body is None:
            out.writelines(self._pending[:-1])
            return
        self._flush()
        assert self._body is not None
        self._body.flush()
        spool = self._body.fileno()
        if self._is_sorted:
            _copy_range(spool, 0, self._end - 1, out)
            return
        places = sorted((order, message_id, offset, size) for message_id, (order, offset, size) in self._places.items())
        for number, (_, _, offset, size) in enumerate(places):
            if number:
                out.write(b",")
            _copy_range(spool, offset, size, out)

    def close(self) -> None:
        """Throw the spool away."""
        if self._body is not None:
            self._body.close()
            self._body = None


def _copy_range(spool: int, offset: int, size: int, out: BinaryIO) -> None:
    end = offset + size
    while offset < end:
        data = os.pread(spool, min(_COPY_BYTES, end - offset), offset)
        if not data:
            raise OSError("the spool is shorter than what was written to it")
        out.write(data)
        offset += len(data)
