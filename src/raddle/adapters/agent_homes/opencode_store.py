"""OpenCode's stores as collections: its database, and the folder of JSON files that it kept before.

Owns which of the two a path is. Both list a session with its sub-agents as one member, so that these hang on the
calls that started them.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from raddle.actions.importing.collection import Collection, Member, Stat
from raddle.actions.importing.run_plan import FileProblem
from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.opencode_database import DatabaseRows
from raddle.adapters.agent_homes.opencode_folder import FolderRows
from raddle.adapters.agent_homes.opencode_rows import OpenRows
from raddle.adapters.agent_homes.read_only_sqlite import ReadOnlyDatabase, is_sqlite
from raddle.adapters.agent_homes.source_bytes import source_error

_OWN_NAME = "opencode"
"""How the name of a database begins that OpenCode made."""


def open_collection(path: str) -> Collection:
    """The store at `path`."""
    return Folder(path) if Path(path).is_dir() else Database(path)


def folder_at(path: str) -> str:
    """The older store at a path that a person named: that folder, or where OpenCode has it below; empty where there is
    none."""
    named = Path(path)
    with contextlib.suppress(OSError):  # what may not be read is told by whoever searches the folder
        for folder in (named, named / "storage", named / "opencode" / "storage"):
            if any(folder.glob("session/*/ses_*.json")) or any(folder.glob("message/ses_*")):
                return str(folder)
    return ""


def is_export(path: str, head: bytes) -> bool:
    """Is the file a database of OpenCode's, by its first bytes and its tables?"""
    if not is_sqlite(head):
        return False
    try:
        DatabaseRows(path).close()
    except SourceError:
        return Path(path).name.startswith(_OWN_NAME)  # what is wrong with it is told when it is listed
    return True


def check_readable(path: str) -> None:
    """SourceError where nobody can say what is in the database."""
    with ReadOnlyDatabase(path) as database:
        database.columns("session")


class Database:
    """`opencode.db` (a `Collection`). `scratch`: where a copy is made, if it can be read from one only."""

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        self._path = path
        self._scratch = scratch

    def stat(self) -> Stat:
        """How it looks from outside, its log included."""
        size = mtime_ns = inode = 0
        for suffix in ("", "-wal"):
            try:
                status = Path(f"{self._path}{suffix}").stat()
            except FileNotFoundError as error:
                if not suffix:
                    raise source_error(error, self._path) from error
                continue
            except OSError as error:
                raise source_error(error, self._path) from error
            size, mtime_ns = size + status.st_size, max(mtime_ns, status.st_mtime_ns)
            inode = inode or status.st_ino & ((1 << 63) - 1)
        return Stat(size=size, mtime_ns=mtime_ns, inode=inode)

    def members(self) -> Iterator[Member | FileProblem]:
        """Its sessions, at one moment."""
        rows = DatabaseRows(self._path, scratch=self._scratch)
        try:
            members = list(rows.members())  # or a slow reader would keep the log from being written back
            rows.check()
        finally:
            rows.close()
        yield from members

    def open(self, member: Member) -> OpenRows:
        """A session as lines of JSON, as it is at this moment."""
        return OpenRows(DatabaseRows(self._path, scratch=self._scratch), member.session)


class Folder:
    """`storage` (a `Collection`)."""

    def __init__(self, path: str) -> None:
        self._path = path

    def stat(self) -> Stat:
        """How its files look; the inode stands for all that size and time do not tell."""
        size, mtime_ns, seen = FolderRows(self._path).stat()
        digest = hashlib.blake2b(seen.encode(errors="replace"), digest_size=8).digest()
        return Stat(size=size, mtime_ns=mtime_ns, inode=int.from_bytes(digest, "big") >> 1)

    def members(self) -> Iterator[Member | FileProblem]:
        """Its sessions, and the files of theirs that are no JSON."""
        yield from FolderRows(self._path).members()

    def open(self, member: Member) -> OpenRows:
        """A session as lines of JSON, as it is at this moment."""
        return OpenRows(FolderRows(self._path, member.where), member.session)
