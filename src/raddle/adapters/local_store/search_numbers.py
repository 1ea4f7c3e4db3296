"""Whole numbers out of SQLite, very many at once: joined by SQLite and read as one list.

Fetched one by one, each costs 0.17 µs, several times what FTS5 takes to find it; joined, 0.045 µs. So where finding
is slow, all rows are fetched, and nothing is asked for twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

_decode = msgspec.json.Decoder(list[int]).decode
_decode_lists = msgspec.json.Decoder(list[list[int]]).decode


def numbers(sql: sqlite3.Connection, select: str, parameters: Sequence[object]) -> list[int]:
    """What `select` gives as its column `number`, in its order."""
    joined = sql.execute(f"SELECT group_concat(number) FROM ({select})", parameters).fetchone()[0]
    return [] if joined is None else _decode(f"[{joined}]")


def number_lists(sql: sqlite3.Connection, select: str, table: str) -> list[list[int]]:
    """For each row of `table`, in order, what `select` gives as its column `number`, in its order."""
    one = f"coalesce((SELECT group_concat(number) FROM ({select})), '')"
    joined = sql.execute(f"SELECT group_concat('[' || {one} || ']') FROM {table}").fetchone()[0]
    return [] if joined is None else _decode_lists(f"[{joined}]")
