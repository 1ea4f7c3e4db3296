"""Another program's database, in each state that it may lie in: read to its last word, and not touched."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.read_only_sqlite import ReadOnlyDatabase, forget_copies, keep_copies_in
from raddle.adapters.temporaries import sweep_temporaries
from tests.file_events import start_child

_DIES = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA journal_mode = " + sys.argv[2])
database.execute("CREATE TABLE IF NOT EXISTS said (word)")
database.execute("INSERT INTO said VALUES ('first')")
database.commit()
database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
database.execute("INSERT INTO said VALUES ('last')")
if sys.argv[3] == "committed":
    database.commit()
else:
    database.execute("PRAGMA cache_size = 1")
    database.executemany("INSERT INTO said VALUES (?)", [("x" * 4000,)] * 200)
os._exit(0)
"""


def left_by_a_crash(path: Path, mode: str, state: str = "committed") -> None:
    """A database whose program was killed."""
    subprocess.run([sys.executable, "-c", _DIES, str(path), mode, state], check=True)


def words(path: Path, scratch: Path | None = None) -> list[str]:
    with ReadOnlyDatabase(str(path), scratch=None if scratch is None else str(scratch)) as database:
        found = [row[0].decode() for row in database.rows("SELECT word FROM said")]
        database.check()
        return found


def look(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def closed(path: Path) -> None:
    left_by_a_crash(path, "wal")
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("SELECT count(*) FROM said").fetchone()
    assert not Path(f"{path}-wal").exists()


def crashed(path: Path) -> None:
    left_by_a_crash(path, "wal")


def crashed_without_index(path: Path) -> None:
    left_by_a_crash(path, "wal")
    Path(f"{path}-shm").unlink()


def crashed_without_log(path: Path) -> None:
    closed(path)
    Path(f"{path}-shm").write_bytes(b"")


def with_empty_log(path: Path) -> None:
    closed(path)
    Path(f"{path}-wal").write_bytes(b"")


def without_log_at_all(path: Path) -> None:
    left_by_a_crash(path, "delete")


@pytest.mark.parametrize(
    "state",
    [closed, crashed, crashed_without_index, crashed_without_log, with_empty_log, without_log_at_all],
)
def test_every_word_is_read_and_no_byte_of_the_folder_changes(
    tmp_path: Path, state: Callable[[Path], None]
) -> None:
    folder, scratch = tmp_path / "agent", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    path = folder / "it is? a #1 database.db"
    state(path)
    before = look(folder)
    assert words(path, scratch) == ["first", "last"]
    assert words(path, scratch) == ["first", "last"]
    assert look(folder) == before
    assert len(list(scratch.iterdir())) == (state in (crashed_without_index, crashed_without_log)), (
        "one copy for both"
    )
    forget_copies()
    assert list(scratch.iterdir()) == []


def read_and_die(path: Path, cache: Path) -> None:
    keep_copies_in(cache)
    words(path)
    os._exit(9)


def test_a_copy_is_private_held_while_it_is_used_and_swept_once_its_process_was_killed(
    tmp_path: Path,
) -> None:
    folder, cache = tmp_path / "agent", tmp_path / "cache"
    folder.mkdir()
    crashed_without_index(folder / "a.db")
    start_child(read_and_die, folder / "a.db", cache).join()
    (left,) = cache.iterdir()
    modes = {path.stat().st_mode & 0o777 for path in left.iterdir()}
    assert (left.stat().st_mode & 0o777, modes) == (0o700, {0o600})
    assert words(folder / "a.db", cache) == ["first", "last"]
    assert sweep_temporaries(cache, older_than_seconds=0) == 1
    (in_use,) = cache.iterdir()
    assert in_use != left
    forget_copies()
    assert list(cache.iterdir()) == []


def test_a_change_that_was_never_finished_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    left_by_a_crash(folder / "a.db", "delete", "half")
    assert (folder / "a.db-journal").stat().st_size, "the crash left a journal to go back by"
    before = look(folder)
    assert words(folder / "a.db") == ["first"]
    assert look(folder) == before


def test_a_folder_that_cannot_be_written_is_read_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    crashed(folder / "a.db")
    for path in folder.iterdir():
        path.chmod(0o400)
    folder.chmod(0o500)
    try:
        assert words(folder / "a.db") == ["first", "last"]
    finally:
        folder.chmod(0o700)


def test_a_database_in_use_is_read_as_it_was_at_one_moment(tmp_path: Path) -> None:
    writer = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode = wal")
    writer.execute("CREATE TABLE said (word)")
    writer.execute("INSERT INTO said VALUES ('first')")
    with ReadOnlyDatabase(str(tmp_path / "a.db")) as database:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO said VALUES ('second')")
        assert [row[0] for row in database.rows("SELECT word FROM said")] == [b"first"]
        writer.execute("COMMIT")
        writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        assert [row[0] for row in database.rows("SELECT word FROM said")] == [b"first"]
        database.check()
    assert words(tmp_path / "a.db") == ["first", "second"]
    writer.close()


def test_a_program_that_starts_while_its_database_is_read_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    closed(path)
    with ReadOnlyDatabase(str(path)) as database:
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("INSERT INTO said VALUES ('more')")
        with pytest.raises(SourceError, match="changed while it was read"):
            database.check()
        writer.close()


def test_a_locked_database_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raddle.adapters.agent_homes.read_only_sqlite._LOCK_SECONDS", 0.01)
    writer = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    writer.execute("CREATE TABLE said (word)")
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(SourceError, match="another program has it locked"):
        ReadOnlyDatabase(str(tmp_path / "a.db"))
    writer.close()


def test_what_is_no_database_and_what_is_damaged_are_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="it is not there"):
        ReadOnlyDatabase(str(tmp_path / "gone.db"))
    (tmp_path / "text.db").write_text("words, words, words")
    with pytest.raises(SourceError, match="no SQLite database"):
        ReadOnlyDatabase(str(tmp_path / "text.db"))
    closed(tmp_path / "a.db")
    with (tmp_path / "a.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(SourceError, match="SQLite says"):
        words(tmp_path / "a.db")


def test_a_copy_that_does_not_fit_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    crashed_without_index(path)
    with pytest.raises(SourceError):
        words(path, tmp_path / "no such folder")
