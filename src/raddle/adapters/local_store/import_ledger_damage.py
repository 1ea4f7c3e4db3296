"""A ledger that SQLite cannot read any more: how it is told from a disk that refuses, and what can still be saved.

Owns which errors mean damage. Were a busy or full disk taken for it, a good ledger would be set aside.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from raddle.actions.importing.run_plan import Segment, SourceEntry
from raddle.adapters.files import storage_error
from raddle.adapters.local_store.quarantine import quarantined, set_aside
from raddle.adapters.paths import Paths
from raddle.model.ids import is_thread_id

_OF_THE_FILE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""The last: a table or a column is missing, for what is asked is always right."""
_BESIDE = ("-journal", "-wal", "-shm")


class Saved(Struct, frozen=True, kw_only=True):
    """What could still be read of a damaged ledger; `marks` of one that held the purge marks itself."""

    entries: tuple[SourceEntry, ...] = ()
    segments: tuple[tuple[str, Segment], ...] = ()
    marks: dict[str, bool] = {}


def is_damage(error: sqlite3.Error) -> bool:
    """Is it the file that is wrong, and not the disk, the mode of a folder or another process?"""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:  # a text in it is not UTF-8
        return isinstance(error, sqlite3.OperationalError)
    return code & 0xFF in _OF_THE_FILE


def move_away(paths: Paths, reason: str) -> Path:
    """Set the ledger aside, with what SQLite keeps beside it: left there, it would be laid over the next one."""
    ledger = paths.import_ledger
    kept = set_aside(paths, ledger, reason)
    for end in _BESIDE:
        beside = ledger.with_name(ledger.name + end)
        try:
            beside.replace(kept.with_name(kept.name + end))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage_error(error, beside, "set aside") from error
    return kept


def ledgers_set_aside(paths: Paths) -> list[Path]:
    """The damaged ledgers that still lie there, each with what SQLite kept beside it, by name."""
    return list(quarantined(paths.data_dir, paths.import_ledger.name))


def drop_set_aside(paths: Paths) -> None:
    """Remove them, with the notes why: an importer's state in one holds words, and what could be saved was."""
    for kept in ledgers_set_aside(paths):
        for path in (kept, paths.quarantine_reason(kept)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(error, path, "remove") from error


def saved_from(kept: Path) -> Saved:
    """What can be read of it, row by row up to the first that cannot; rows that make no sense are left out."""
    try:
        connection = sqlite3.connect(f"{kept.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error:
        return Saved()
    with contextlib.closing(connection):
        connection.row_factory = sqlite3.Row
        sources = [dict(row) for row in _rows(connection, "sources")]
        segments = [dict(row) for row in _rows(connection, "segments")]
        marks = [dict(row) for row in _rows(connection, "purged")]
    return Saved(
        entries=tuple(entry for row in sources if (entry := _entry(row)) is not None),
        segments=tuple(
            (row["path"], segment)
            for row in segments
            if isinstance(row.get("path"), str) and (segment := _segment(row)) is not None
        ),
        marks={
            row["thread_id"]: bool(row["is_whole"])
            for row in marks
            if is_thread_id(str(row.get("thread_id"))) and isinstance(row.get("is_whole"), int)
        },
    )


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[sqlite3.Row]:
    with contextlib.suppress(sqlite3.Error):
        yield from connection.execute(f"SELECT * FROM {table}")  # noqa: S608  names of our own


def _entry(row: dict[str, Any]) -> SourceEntry | None:
    for flag in ("is_main", "is_unplaced"):
        row[flag] = bool(row.get(flag))
    try:
        return msgspec.convert(
            {name: row[name] for name in SourceEntry.__struct_fields__ if name in row}, SourceEntry
        )
    except msgspec.ValidationError:
        return None


def _segment(row: dict[str, Any]) -> Segment | None:
    try:
        return msgspec.convert({name: row.get(name) for name in Segment.__struct_fields__}, Segment)
    except msgspec.ValidationError:
        return None
