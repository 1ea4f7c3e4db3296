"""Is the index whole? Every check that `raddle doctor` makes of it."""

from __future__ import annotations

import sqlite3

from raddle.adapters.local_store.search_blocks import GONE, SLOT_BITS, key_of, load_slots, texts_of
from raddle.adapters.local_store.search_book import Book
from raddle.adapters.local_store.search_database import Database

_MOST_NAMED = 20


def problems_of(database: Database, book: Book) -> list[str]:
    """What is wrong, in words."""
    sql = database.sql
    problems = [
        f"the file is damaged: {row[0]}" for row in sql.execute("PRAGMA quick_check(5)") if row[0] != "ok"
    ]
    if problems:
        return problems
    for table in ("words", "said", "headers"):
        try:
            sql.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            problems.append(f"the table of {table} is damaged: {error}")
    reason = database.rebuild_reason
    if reason:
        problems.append(f"not every thread may be in: {reason}")
    problems += _misplaced(sql)
    if not book.is_unsure():
        missing = book.stored_terms() - book.terms()
        if missing:
            problems.append(f"the vocabulary lacks {len(missing)} words")
    return problems[:_MOST_NAMED]


def _misplaced(sql: sqlite3.Connection) -> list[str]:
    """Threads whose rows, marks and texts do not agree."""
    problems = []
    lost = sql.execute("SELECT count(*) FROM slots WHERE thread NOT IN (SELECT no FROM threads)").fetchone()[
        0
    ]
    if lost:
        problems.append(f"{lost} slots belong to no thread")
    for number, thread_id in sql.execute("SELECT no, id FROM threads WHERE id IS NOT NULL").fetchall():
        for slot in load_slots(sql, number):
            rows = [(slot.slot << SLOT_BITS) + at for at, mark in enumerate(slot.marks) if not mark & GONE]
            keys = [key_of(text.id) for _, text in texts_of(sql, rows)]
            if keys != [slot.key(row - (slot.slot << SLOT_BITS)) for row in rows]:
                problems.append(f"the texts of {thread_id} are not those of its marks")
                break
    return problems
