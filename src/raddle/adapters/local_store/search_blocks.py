"""Where the messages of a thread lie in the index: rows in slots, their marks, their texts in blocks.

A row number is `slot * 1024 + place`; a slot belongs to one thread, so a hit's thread is one shift away and
its rows are one range. Owns that layout and its bytes: read elsewhere, they would be read wrongly after the
next change.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator

import msgspec

from raddle.model.threads.search_fields import FIELDS, MessageText

SLOT_BITS = 10
SLOT_ROWS = 1 << SLOT_BITS

REMOVED, GONE = 1 << 5, 1 << 6
"""Bits of a row's mark: taken back by its author; no longer in the thread at all. The five bits below say
which fields it has, the heaviest lowest."""
FIELD_BITS = (1 << len(FIELDS)) - 1

_BLOCK_ROWS = 128
_BLOCK_BYTES = 64 << 10
_KEY_BYTES = 12
"""Eight of the hash of a message's id, four of its fingerprint."""
_LEVEL = 3

Block = list[MessageText | None]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Block).decode
_split = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_decode_one = msgspec.msgpack.Decoder(MessageText | None).decode


def compressed(block: Block) -> tuple[int, bytes]:
    """(size before compression, bytes) of a block."""
    return packed(_encode(block))


def packed(raw: bytes) -> tuple[int, bytes]:
    """The same of one that is encoded already, as a list of what `encode_text` gives."""
    import zstandard  # a search that shows no hit never needs it  # noqa: PLC0415

    return len(raw), zstandard.ZstdCompressor(level=_LEVEL).compress(raw)


def decompressed(data: bytes) -> Block:
    """The block of those bytes."""
    return _decode(_unpacker()(data))


def _unpacker() -> Callable[[bytes], bytes]:
    """What unpacks one block after another; for one thread at a time."""
    import zstandard  # noqa: PLC0415

    return zstandard.ZstdDecompressor().decompress


def is_full(rows: int, size: int) -> bool:
    """Does a block of so many rows and bytes take no more?"""
    return rows >= _BLOCK_ROWS or size >= _BLOCK_BYTES


def key_of(message_id: str) -> bytes:
    """Eight bytes that stand for a message's id within its thread."""
    from hashlib import blake2b  # searches need no keys  # noqa: PLC0415

    return blake2b(message_id.encode("utf-8", "replace"), digest_size=8).digest()


def mark_of(text: MessageText) -> int:
    """The bits for the fields that a message has."""
    return sum(1 << field for field, content in enumerate(text.texts) if content)


class Slot:
    """One slot in memory: order, mark and key of each row. `slot` is its number."""

    def __init__(self, slot: int, *, orders: bytes = b"", marks: bytes = b"", keys: bytes = b"") -> None:
        self.slot = slot
        self.orders = array("q", orders)
        self.marks = bytearray(marks)
        self.keys = bytearray(keys)

    def __len__(self) -> int:
        return len(self.marks)

    @property
    def next_row(self) -> int:
        """The row that the next message gets."""
        return (self.slot << SLOT_BITS) + len(self)

    def add(self, order: int, mark: int, key: bytes, fingerprint: int) -> int:
        """Take in a message; its row."""
        row = self.next_row
        self.orders.append(order)
        self.marks.append(mark)
        self.keys += key + fingerprint.to_bytes(4, "little")
        return row

    def replace(self, place: int, order: int, mark: int, fingerprint: int) -> None:
        """Another form of the message at `place`."""
        self.orders[place] = order
        self.marks[place] = mark
        self.keys[place * _KEY_BYTES + 8 : (place + 1) * _KEY_BYTES] = fingerprint.to_bytes(4, "little")

    def drop(self, place: int) -> None:
        """The message at `place` is no more; its row stays empty."""
        self.marks[place] = GONE
        self.keys[place * _KEY_BYTES : (place + 1) * _KEY_BYTES] = bytes(_KEY_BYTES)

    def fingerprint(self, place: int) -> int:
        """The fingerprint of the message at `place`."""
        return int.from_bytes(self.keys[place * _KEY_BYTES + 8 : (place + 1) * _KEY_BYTES], "little")

    def key(self, place: int) -> bytes:
        """The key of the message at `place`."""
        return bytes(self.keys[place * _KEY_BYTES : place * _KEY_BYTES + 8])

    def find(self, key: bytes) -> int | None:
        """Where the message of that key is; None where it is not in this slot."""
        at = self.keys.find(key)
        while at >= 0:
            if at % _KEY_BYTES == 0:
                return at // _KEY_BYTES
            at = self.keys.find(key, at + 1)
        return None


def load_slots(sql: sqlite3.Connection, thread: int) -> list[Slot]:
    """All slots of the thread of that number, in order."""
    rows = sql.execute(
        "SELECT m.slot, m.orders, m.bits, m.keys FROM slots s JOIN marks m USING (slot)"
        " WHERE s.thread = ? ORDER BY s.slot",
        (thread,),
    )
    return [Slot(slot, orders=orders, marks=bits, keys=keys) for slot, orders, bits, keys in rows]


def load_block(sql: sqlite3.Connection, row: int) -> tuple[int, Block]:
    """(first row, texts) of the block that holds `row`."""
    first, data = _stored_block(sql, row)
    return first, decompressed(data)


def _stored_block(sql: sqlite3.Connection, row: int) -> tuple[int, bytes]:
    first, data = sql.execute(
        "SELECT first, data FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1", (row,)
    ).fetchone()
    return first, data


def save_block(sql: sqlite3.Connection, first: int, block: Block) -> None:
    """Write a block."""
    size, data = compressed(block)
    sql.execute("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?)", (first, size, data))


def texts_of(sql: sqlite3.Connection, rows: Iterable[int]) -> Iterator[tuple[int, MessageText]]:
    """(row, text) of rows given in ascending order; a block is opened once, and only these rows of it are decoded."""
    first, block, unpacked = 0, list[msgspec.Raw](), _unpacker()
    for row in rows:
        if not first <= row < first + len(block):
            first, data = _stored_block(sql, row)
            block = _split(unpacked(data))
        text = _decode_one(block[row - first])
        if text is not None:
            yield row, text
