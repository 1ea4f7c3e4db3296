"""Lines that are held in memory, handed over as those of a file: in batches, each with its number and offset.

Owns the counting of lines and bytes where there is no file to count in, as `source_bytes.py` owns it where there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from raddle.actions.importing.importer import MAX_LINE_BYTES
from raddle.actions.importing.source_reading import Lines, TooLong

_BATCH_BYTES = 1 << 20


def batches(lines: Iterable[bytes], start: int, first: int) -> Iterator[Lines | TooLong]:
    """`lines` (without their ends), the first of which is number `first`, at the offset `start`."""
    batch: list[bytes] = []
    read_to, number, size = start, first, 0
    for line in lines:
        if len(line) > MAX_LINE_BYTES:
            if batch:
                yield Lines(batch, number, read_to)
                number, batch, size = number + len(batch), [], 0
            read_to += len(line) + 1
            yield TooLong(number, len(line), read_to)
            number += 1
            continue
        batch.append(line)
        size += len(line)
        read_to += len(line) + 1
        if size >= _BATCH_BYTES:
            yield Lines(batch, number, read_to)
            number, batch, size = number + len(batch), [], 0
    if batch:
        yield Lines(batch, number, read_to)
