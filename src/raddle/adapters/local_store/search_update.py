"""A thread brought up to date in the index: what differs is cut and written, and nothing else.

Runs inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from raddle.adapters.local_store.search_book import Book
from raddle.adapters.local_store.search_writer import (
    SlotNumbers,
    ThreadChange,
    add_thread,
    find_thread,
    remove_thread,
    save_summary,
)
from raddle.model.threads.search_fields import IndexRow, MessageText, cut_row, fields_of, fingerprint
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary

if TYPE_CHECKING:
    from raddle.model.threads.thread import Thread

_MANY = 16
"""So many messages looked for in one thread are worth a table of all its messages."""


def put_thread(sql: sqlite3.Connection, book: Book, thread: Thread) -> None:
    """Make the index hold `thread` as it is."""
    tree = thread.tree
    removed = [message.id for message in tree if tree.is_removed(message.id)]
    put_texts(sql, book, thread.summary(), [fields_of(message) for message in tree], removed, is_whole=True)


def put_texts(
    sql: sqlite3.Connection,
    book: Book,
    summary: ThreadSummary,
    texts: Sequence[MessageText],
    removed: Collection[str] | None,
    *,
    is_whole: bool,
) -> None:
    """Put these messages in; `is_whole`: they are all the thread has. A deleted thread is taken out."""
    number = find_thread(sql, summary.id)
    if summary.is_deleted:
        if number is not None:
            remove_thread(sql, number)
        return
    number = add_thread(sql) if number is None else number
    cutter = Cutter()
    change = ThreadChange(sql, number)
    terms = _merge(sql, change, texts, cutter)
    if is_whole:
        change.drop_all_but(text.id for text in texts)
    if removed is not None:
        change.set_removed(removed)
    change.save()
    save_summary(sql, number, summary, cutter)
    book.add(terms.union(cutter.take_terms().encode().split(b"\n")))


def _merge(
    sql: sqlite3.Connection, change: ThreadChange, texts: Sequence[MessageText], cutter: Cutter
) -> set[bytes]:
    """Replace what differs, append what is new; the terms of both."""
    if len(texts) > _MANY:
        change.expect_many()
    added: dict[str, IndexRow] = {}
    terms: set[bytes] = set()
    for text in texts:
        place = change.find(text.id)
        if place is not None and place[0].fingerprint(place[1]) == fingerprint(text):
            continue
        row = cut_row(text, cutter)
        terms.update(row.terms.encode().split(b"\n"))
        if place is None:
            added[text.id] = row
        else:
            change.replace(*place, row)
    if added:
        change.append(list(added.values()), SlotNumbers(sql))
    return terms
