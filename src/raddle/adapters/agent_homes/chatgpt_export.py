"""An export of ChatGPT as a collection: `conversations.json`, its newer parts, one conversation, or the zip.

Owns how an export is known by its name and its first bytes, and how a conversation in it is found again: by the
bytes where it stands, so that one of ten thousand is opened by reading it alone.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from raddle.actions.importing.chatgpt import is_conversations
from raddle.actions.importing.chatgpt_layout import conversation_lines
from raddle.actions.importing.collection import Member, Stat
from raddle.actions.importing.run_plan import FileProblem
from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.chatgpt_scan import Bytes, Found, conversations
from raddle.adapters.agent_homes.session_lines import SessionLines
from raddle.adapters.agent_homes.source_bytes import first_bytes, source_error
from raddle.adapters.agent_homes.zip_entries import ZipEntry, entries_of
from raddle.model.errors import BrokenFormat

_IN_ZIP = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json\Z", re.IGNORECASE)
_ZIP = b"PK\x03\x04"
_OTHERS = re.compile(rb"conversations(?:-\d+)?\.json|chat\.html|export_manifest\.json")
"""Names that an export's zip begins with, should its own list of names be missing."""
_CHANGED = "it changed while it was read"


def is_export(path: str, head: bytes) -> bool:
    """Is the file an export of ChatGPT, or a conversation of one? `head`: its first bytes."""
    if not head.startswith(_ZIP):
        return is_conversations(os.path.basename(path), head)  # noqa: PTH119
    try:
        return any(_IN_ZIP.match(entry.filename) for entry in entries_of(path))
    except SourceError:
        return _OTHERS.search(head) is not None  # a download that was cut: to be told, not passed over


def check_readable(path: str) -> None:
    """SourceError where nobody can say what is in the zip."""
    entries_of(path)


def open_collection(path: str) -> ChatGPTExport:
    """The export at `path`; nothing of it is read yet."""
    return ChatGPTExport(path)


class ChatGPTExport:
    """One file with conversations in it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def stat(self) -> Stat:
        """How it looks from outside."""
        try:
            status = os.stat(self._path)  # noqa: PTH116
        except OSError as error:
            raise source_error(error, self._path) from error
        return Stat(size=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino & (1 << 63) - 1)

    def members(self) -> Iterator[Member | FileProblem]:
        """Its conversations, in its order. One that stands in it twice is two members, and one thread."""
        seen: dict[str, int] = {}
        stat = self.stat()
        for name, part in self._parts(stat):
            for found in conversations(part):
                if found.reason:
                    yield FileProblem(
                        path=self._path, reason=f"{name}: {found.reason}" if name else found.reason
                    )
                if found.is_readable:
                    yield _member(found, name, stat, seen)

    def open(self, member: Member) -> SessionLines:
        """A conversation as lines: only its own bytes are read."""
        start, end, changed, name = member.where.split(":", 3)
        stat = self.stat()
        if int(changed) != stat.mtime_ns:
            raise SourceError(self._path, _CHANGED, "import it again")
        part = next((part for one, part in self._parts(stat) if one == name), None)
        if part is None:
            raise SourceError(self._path, _CHANGED, "import it again")
        try:
            # Nothing here may hold the bytes while the lines are joined: each of the two may be 48 MiB.
            lines = conversation_lines(part.read(int(start), int(end) - int(start)))
        except BrokenFormat as error:
            raise SourceError(self._path, f"{member.session}: {error.message}", "import it again") from error
        return SessionLines(lines)

    def _parts(self, stat: Stat) -> Iterator[tuple[str, Bytes]]:
        """(name in the zip, its bytes) of each file with conversations; no name where this is that file."""
        if first_bytes(self._path, len(_ZIP)) != _ZIP:
            yield "", _File(self._path, stat.size)
            return
        for entry in _zip_parts(self._path, stat):
            yield entry.name, entry


@lru_cache(maxsize=1)
def _zip_parts(path: str, _stat: Stat) -> tuple[ZipEntry, ...]:
    """The files with conversations in a zip, in their order. They are kept: they know the way back into the zip."""
    entries = [entry for entry in entries_of(path) if _IN_ZIP.match(entry.filename)]
    together = sum(entry.file_size for entry in entries)
    ordered = sorted(entries, key=lambda entry: entry.filename)
    return tuple(ZipEntry(path, entry, together=together) for entry in ordered)


class _File:
    """A plain file. It is opened for each reading, so that nothing has to be closed."""

    def __init__(self, path: str, size: int) -> None:
        self.size = size
        self._path = path

    def read(self, offset: int, size: int) -> bytes:
        """As many bytes from `offset` on, fewer where the file ends."""
        try:
            with Path(self._path).open("rb") as file:
                file.seek(offset)
                return file.read(min(size, max(self.size - offset, 0)))
        except OSError as error:
            raise source_error(error, self._path) from error


def _member(found: Found, name: str, stat: Stat, seen: dict[str, int]) -> Member:
    session = (
        found.session or f"without-an-id-{hashlib.sha256(f'{name} {found.number}'.encode()).hexdigest()[:12]}"
    )
    seen[session] = seen.get(session, 0) + 1
    return Member(
        session=session if seen[session] == 1 else f"{session} ({seen[session]})",
        size=found.end - found.start,
        changed_ns=found.changed * 1000,
        where=f"{found.start}:{found.end}:{stat.mtime_ns}:{name}",
    )
