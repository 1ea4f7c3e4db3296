"""What a hub is known to hold of each thread: one small database for each hub, beside the threads.

A base moves only by what its hub said, and each move is one transaction together with what it makes untrue, so
that a process killed between two of them leaves an older base, never a wrong one. An older base costs a repeated
push or a merge; a base that claims what the hub does not hold would keep a turn from ever being sent.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from raddle.actions.sync.ports import Known, Mark, Note
from raddle.adapters.file_systems import is_on_network
from raddle.adapters.files import make_folder, storage_error
from raddle.model.errors import StorageError
from raddle.model.threads.base import Base, digest_of
from raddle.model.threads.delta import Delta

FORMAT = "2"
_BUSY_SECONDS = 20.0
_MESSAGE, _REGISTER = 0, 1
_MOST_AT_ONCE = 500


class HubBases:
    """The bases of one hub, in the database at `path`. Several threads of control may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._sql = self._open()

    def close(self) -> None:
        """Let go of the file."""
        self._sql.close()

    def base(self, thread_id: str) -> Base:
        """All that the hub is known to hold of a thread; an empty base where nothing is known."""
        with self._errors():
            found = self._row(thread_id)
            if found is None:
                return Base()
            number, version, epoch = found
            parts: tuple[dict[str, int], dict[str, int]] = ({}, {})
            rows = self._sql.execute("SELECT kind, name, digest FROM parts WHERE thread = ?", (number,))
            for kind, name, digest in rows:
                parts[kind][name] = digest
            return Base(hub_epoch=epoch, version=version, messages=parts[0], registers=parts[1])

    def known(self, thread_id: str) -> Known | None:
        """The same without the digests; None where nothing is known."""
        with self._errors():
            row = self._sql.execute(f"{_KNOWN} WHERE id = ?", (thread_id,)).fetchone()
            return None if row is None else _known(row[1:])

    def all_known(self) -> dict[str, Known]:
        """Of every thread."""
        with self._errors():
            return {row[0]: _known(row[1:]) for row in self._sql.execute(_KNOWN)}

    def digests(self, thread_id: str, delta: Delta) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """What the hub is known to hold of the messages, and of the registers, that `delta` names."""
        with self._errors():
            found = self._row(thread_id)
            if found is None:
                return {}, {}
            messages = self._digests(found[0], _MESSAGE, [message.id for message in delta.messages])
            return messages, self._digests(found[0], _REGISTER, list(delta.registers))

    def replace(self, thread_id: str, delta: Delta, hub_epoch: str) -> None:
        """The hub holds `delta` at its version, and nothing else. Takes the mark away.

        No blob is known to be there any more where the hub is in another epoch (it may have been put back to a
        backup), and where the thread lost its words: what nothing names, a hub lets go.
        """
        with self._writing():
            found = self._row(thread_id)
            is_other = found is not None and found[2] not in {"", hub_epoch}
            if is_other or (delta.version and not delta.messages):
                self._sql.execute("DELETE FROM blobs")
            number = self._number(thread_id)
            self._sql.execute("DELETE FROM parts WHERE thread = ?", (number,))
            self._sql.execute(
                "UPDATE threads SET version = ?, hub_epoch = ?, file = NULL, after = NULL, is_private = 0,"
                " sources = '' WHERE no = ?",
                (delta.version, hub_epoch, number),
            )
            self._put(number, delta)

    def add(self, thread_id: str, delta: Delta, version: int, hub_epoch: str) -> None:
        """The hub holds `delta` besides what it is known to hold, at the cost of the delta."""
        with self._writing():
            number = self._number(thread_id)
            self._sql.execute(
                "UPDATE threads SET version = ?, hub_epoch = ? WHERE no = ?", (version, hub_epoch, number)
            )
            if any(message.is_purged for message in delta.messages):
                self._sql.execute("DELETE FROM blobs")
            self._put(number, delta)

    def settle(self, thread_id: str, mark: Mark | None, *, is_private: bool) -> None:
        """Nothing was pending in this state of the files (None: nobody knows)."""
        with self._writing():
            file, after = (None, None) if mark is None else mark
            self._sql.execute(
                "UPDATE threads SET file = ?, after = ?, is_private = ? WHERE no = ?",
                (file, after, is_private, self._number(thread_id)),
            )

    def forget(self, thread_id: str) -> None:
        """Nothing is known of it any more, nor that any blob is there: its own may be let go."""
        with self._writing():
            found = self._row(thread_id)
            if found is not None:
                self._sql.execute("DELETE FROM parts WHERE thread = ?", (found[0],))
            self._sql.execute("DELETE FROM threads WHERE id = ?", (thread_id,))
            self._sql.execute("DELETE FROM notes WHERE id = ?", (thread_id,))
            self._sql.execute("DELETE FROM blobs")

    def note(self, thread_id: str, note: Note | None) -> None:
        """Why a thread is not in step; None: nothing stands in the way."""
        with self._writing():
            if note is None:
                self._sql.execute("DELETE FROM notes WHERE id = ?", (thread_id,))
                return
            self._sql.execute(
                "INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?, ?)",
                (thread_id, note.code, note.reason, note.attempts, note.next_attempt_at, note.is_final),
            )

    def notes(self) -> dict[str, Note]:
        """All notes."""
        with self._errors():
            return {
                thread_id: Note(
                    code=code, reason=reason, attempts=attempts, next_attempt_at=at, is_final=bool(is_final)
                )
                for thread_id, code, reason, attempts, at, is_final in self._sql.execute(
                    "SELECT * FROM notes"
                )
            }

    def cursor(self) -> str:
        """How far the feed was taken in; empty at the start."""
        return self._meta("cursor")

    def set_cursor(self, cursor: str) -> None:
        """The feed was taken in so far."""
        self._set_meta("cursor", cursor)

    def last_success(self) -> int | None:
        """When a whole sync last came to its end, in microseconds since 1970."""
        found = self._meta("last_success")
        return int(found) if found else None

    def succeeded(self, at: int) -> None:
        """A whole sync came to its end."""
        self._set_meta("last_success", str(at))

    def sent_blobs(self, names: Iterable[str]) -> set[str]:
        """Those of these blobs that the hub is known to have."""
        with self._errors():
            return {
                sha256
                for some in _batches(sorted(set(names)))
                for (sha256,) in self._sql.execute(
                    f"SELECT sha256 FROM blobs WHERE sha256 IN ({_marks(some)})", some
                )
            }

    def note_blob(self, sha256: str) -> None:
        """The hub has this blob."""
        with self._writing():
            self._sql.execute("INSERT OR IGNORE INTO blobs VALUES (?)", (sha256,))

    def note_sources(self, thread_id: str, digest: str) -> None:
        """The hub was told this device's sources of a thread it knows; empty: it has to be told them again."""
        with self._writing():
            self._sql.execute("UPDATE threads SET sources = ? WHERE id = ?", (digest, thread_id))

    def _row(self, thread_id: str) -> tuple[int, int, str] | None:
        row: tuple[int, int, str] | None = self._sql.execute(
            "SELECT no, version, hub_epoch FROM threads WHERE id = ?", (thread_id,)
        ).fetchone()
        return row

    def _number(self, thread_id: str) -> int:
        found = self._row(thread_id)
        if found is not None:
            return found[0]
        cursor = self._sql.execute(
            "INSERT INTO threads (id, version, hub_epoch) VALUES (?, 0, '')", (thread_id,)
        )
        return int(cursor.lastrowid or 0)

    def _put(self, number: int, delta: Delta) -> None:
        messages = ((number, _MESSAGE, message.id, digest_of(message)) for message in delta.messages)
        registers = (
            (number, _REGISTER, path, digest_of(register)) for path, register in delta.registers.items()
        )
        for rows in (messages, registers):
            self._sql.executemany("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", rows)

    def _digests(self, number: int, kind: int, names: list[str]) -> dict[str, int]:
        return {
            name: digest
            for some in _batches(names)
            for name, digest in self._sql.execute(
                f"SELECT name, digest FROM parts WHERE thread = ? AND kind = ? AND name IN ({_marks(some)})",
                (number, kind, *some),
            )
        }

    def _meta(self, key: str) -> str:
        with self._errors():
            row = self._sql.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            return "" if row is None else str(row[0])

    def _set_meta(self, key: str, value: str) -> None:
        with self._writing():
            self._sql.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._errors():
            self._sql.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._sql.in_transaction:  # SQLite ends it by itself where the disk fails
                    self._sql.execute("ROLLBACK")
                raise
            self._sql.execute("COMMIT")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"cannot use {self.path}: {error}", "make room, or try again in a moment"
            ) from error
        except sqlite3.DatabaseError as error:
            hint = f"move {self.path.name} away: the next sync finds out anew what the server has"
            raise StorageError(f"{self.path} is damaged: {error}", hint) from error

    def _open(self) -> sqlite3.Connection:
        try:
            return self._open_file()
        except sqlite3.OperationalError as error:
            raise StorageError(f"cannot open {self.path}: {error}", "check who owns it") from error
        except sqlite3.DatabaseError:
            for suffix in ("", "-wal", "-shm", "-journal"):  # damaged: all of it can be found out anew
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            with self._errors():
                return self._open_file()

    def _open_file(self) -> sqlite3.Connection:
        try:
            make_folder(self.path.parent)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise storage_error(error, self.path, "open") from error
        sql = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            if not is_on_network(self.path.parent):
                with contextlib.suppress(sqlite3.OperationalError):  # where there is no shared memory
                    sql.execute("PRAGMA journal_mode = WAL")
            sql.execute(
                "PRAGMA synchronous = NORMAL"
            )  # a power cut may bring an older base back: that is safe
            sql.execute("BEGIN IMMEDIATE")
            _give_tables(sql)
            sql.execute("COMMIT")
        except BaseException:
            sql.close()
            raise
        return sql


_KNOWN = "SELECT id, version, hub_epoch, file, after, is_private, sources FROM threads"


def _known(row: tuple[Any, ...]) -> Known:
    version, epoch, file, after, is_private, sources = row
    mark = None if file is None else Mark(file, after)
    return Known(version, epoch, mark, bool(is_private), sources)


def _give_tables(sql: sqlite3.Connection) -> None:
    """The tables, where they are not there or of another format: then what was known is known no more."""
    tables = [name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if "meta" in tables:
        row = sql.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
        if row is not None and row[0] == FORMAT:
            return
    for name in tables:
        sql.execute('DROP TABLE "{}"'.format(str(name).replace('"', '""')))
    schema = Path(__file__).with_name("hub_bases.sql").read_text(encoding="utf-8")
    lines = [line for line in schema.splitlines() if not line.lstrip().startswith("--")]
    for statement in "\n".join(lines).split(";"):
        if statement.strip():
            sql.execute(statement)
    sql.execute("INSERT INTO meta VALUES ('format', ?)", (FORMAT,))


def _batches(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _MOST_AT_ONCE):
        yield names[start : start + _MOST_AT_ONCE]


def _marks(names: list[str]) -> str:
    return ", ".join("?" * len(names))
