"""Messages made ready for the index before anybody knows their row numbers: all that takes time, done beside.

An import's workers make them ready and one process writes them. What a row holds is decided by the same functions that
write single messages (`search_writer`): made in two ways, it could not be deleted again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec
from msgspec import Struct

from raddle.adapters.local_store.search_blocks import (
    REMOVED,
    SLOT_ROWS,
    Slot,
    is_full,
    key_of,
    mark_of,
    packed,
)
from raddle.adapters.local_store.search_tokens import said_words, word_columns
from raddle.model.threads.search_fields import IndexRow, encode_text, fingerprint_of

MOST_CHARACTERS = 2 << 20
"""About this much text goes to whoever writes it at once, who holds several."""

_encode_block = msgspec.msgpack.Encoder().encode


class ReadyRows(Struct, frozen=True, array_like=True):
    """Some messages of one thread: what fills a slot, in whole or in part, but for its number.

    `orders`, `marks`, `keys`: as `Slot` has them. `words`, `said`: rows of these tables, their place in the slot first.
    `blocks`: (place of the first message, size, data). `terms`: one a line, for the vocabulary.
    """

    orders: bytes
    marks: bytes
    keys: bytes
    words: list[list[int | str | None]]
    said: list[tuple[int, str]]
    blocks: list[tuple[int, int, bytes]]
    terms: str

    def slot(self, number: int) -> Slot:
        """The slot that these messages are in, once it has a number."""
        return Slot(number, orders=self.orders, marks=self.marks, keys=self.keys)


class RowGatherer:
    """Gathers the messages of one thread; `take` when it is full, and at the end."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._slot = Slot(0)
        self._words: list[list[int | str | None]] = []
        self._said: list[tuple[int, str]] = []
        self._blocks: list[tuple[int, int, bytes]] = []
        self._terms: list[str] = []
        self._size = 0
        self._texts: list[msgspec.Raw] = []
        self._texts_size = 0

    @property
    def is_full(self) -> bool:
        """Is it time to take what has gathered?"""
        return len(self._slot) >= SLOT_ROWS or self._size >= MOST_CHARACTERS

    def add(self, row: IndexRow, *, is_removed: bool = False) -> None:
        """Append one message."""
        text = row.text
        encoded = encode_text(text)
        mark = mark_of(text) | (REMOVED if is_removed else 0)
        place = self._slot.add(text.order, mark, key_of(text.id), fingerprint_of(encoded))
        self._words.append([place, *word_columns.of(row)])
        said = said_words(row)
        if said is not None:
            self._said.append((place, said))
        if row.terms:
            self._terms.append(row.terms)
        size = sum(map(len, text.texts))
        self._size += size
        self._texts.append(msgspec.Raw(encoded))
        self._texts_size += size
        if is_full(len(self._texts), self._texts_size):
            self._close_block()

    def _close_block(self) -> None:
        if self._texts:
            size, data = packed(_encode_block(self._texts))
            self._blocks.append((len(self._slot) - len(self._texts), size, data))
            self._texts, self._texts_size = [], 0

    def take(self) -> ReadyRows | None:
        """What has gathered since the last call; None where nothing has."""
        if not len(self._slot):
            return None
        self._close_block()
        slot = self._slot
        ready = ReadyRows(
            orders=slot.orders.tobytes(),
            marks=bytes(slot.marks),
            keys=bytes(slot.keys),
            words=self._words,
            said=self._said,
            blocks=self._blocks,
            terms="\n".join(self._terms),
        )
        self._start()
        return ready


def ready_rows_of(rows: Iterable[IndexRow], removed: Collection[str]) -> Iterator[ReadyRows]:
    """These messages of one thread made ready; `removed`: ids of those that do not show."""
    gatherer = RowGatherer()
    for row in rows:
        gatherer.add(row, is_removed=row.text.id in removed)
        if gatherer.is_full:
            yield from _taken(gatherer)
    yield from _taken(gatherer)


def _taken(gatherer: RowGatherer) -> Iterator[ReadyRows]:
    ready = gatherer.take()
    if ready is not None:
        yield ready
