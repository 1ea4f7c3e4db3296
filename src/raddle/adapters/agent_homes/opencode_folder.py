"""OpenCode's older store: a folder of JSON files, one for each session, message and part.

Owns its layouts: `session/<project>/<session>.json`, `message/<session>/<message>.json`, and parts in a folder of
their message or all in one. A session of which only the messages are left is a session still.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from raddle.actions.importing.collection import Member
from raddle.actions.importing.run_plan import FileProblem
from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.opencode_database import chosen
from raddle.adapters.agent_homes.opencode_rows import Body, Header, Row, as_object, roots_of
from raddle.adapters.agent_homes.source_bytes import read_whole, source_error

_BUSY = 8
"""Sessions whose newest message is looked at too: those that may be at work."""
_FILE_BYTES = 2048
_TEXTS = ("parentID", "projectID", "directory", "title", "version", "agent")


class _Times(Struct, frozen=True):
    created: float | None = None
    updated: float | None = None


class _Named(
    Struct,
    frozen=True,
    rename={"message_id": "messageID", "session_id": "sessionID", "parent_id": "parentID"},
):
    """What any of the files may say of itself."""

    id: str = ""
    parent_id: str | None = None
    directory: str | None = None
    message_id: str = ""
    time: _Times | None = None


class _Place(Struct, frozen=True):
    """Where the records of a member lie, so that the others need not be looked at. `sessions`: session -> the path of
    its file, "" where it has none; the member's own first. `is_loose`: do parts lie in no folder of their own?"""

    sessions: dict[str, str]
    is_loose: bool


class _File(NamedTuple):
    """A file as `stat` shows it."""

    name: str
    path: str
    changed_ns: int
    size: int


class FolderRows:
    """The records in one such folder (`Rows`)."""

    def __init__(self, path: str, where: str = "") -> None:
        self._path = path
        self._place = msgspec.json.decode(where, type=_Place) if where else None
        self._sessions: dict[str, str] | None = None
        self._rows: dict[str, list[Row]] = {}
        self._paths: dict[str, _File] = {}
        self._loose: dict[str, list[_File]] | None = None

    def close(self) -> None:
        """Nothing is open."""

    def check(self) -> None:
        """Each file is read at a moment of its own: what a file says later is read later."""

    def losses(self) -> str:
        """A file that cannot be read is an empty record, which its reader tells."""
        return ""

    def stat(self) -> tuple[int, int, str]:
        """(bytes, newest change, what tells one state of the folder from another)."""
        files = list(self._session_files())
        folders = list(_entries(f"{self._path}/message", is_folder=True))
        newest = sorted(files, key=lambda file: -file.changed_ns)[:_BUSY]
        inside = [one for file in newest for one in self._of_last(_stem(file.name))]
        seen = sorted((one.path, one.changed_ns, one.size) for one in (*files, *folders, *inside))
        return (
            sum(size for _, _, size in seen),
            max((changed for _, changed, _ in seen), default=0),
            repr(seen),
        )

    def members(self) -> Iterator[Member | FileProblem]:
        """Its sessions, sub-agents' with the one that they lie below."""
        parents: dict[str, str] = {}
        folders: dict[str, str] = {}
        files = self._by_session()
        for session, path in files.items():
            named = _named(_whole(path)) if path else _Named()
            if named is None:
                yield FileProblem(path=path, reason="it is no JSON; the session's messages are read")
                named = _Named()
            parents[session], folders[session] = named.parent_id or "", named.directory or ""
        trees: dict[str, list[str]] = {}
        for session, root in sorted(roots_of(parents).items()):
            trees.setdefault(root, []).append(session)
        is_loose = any(True for _ in _entries(f"{self._path}/part"))
        for root, sessions in sorted(trees.items()):
            seen = [one for session in sessions for one in self._seen(session)]
            ordered = (root, *(one for one in sessions if one != root))
            place = _Place(sessions={one: files[one] for one in ordered}, is_loose=is_loose)
            yield Member(
                session=root,
                size=_FILE_BYTES * len(seen),
                changed_ns=max(file.changed_ns for file in seen),
                workspace=folders[root],
                where=msgspec.json.encode(place).decode(),
            )

    def _seen(self, session: str) -> list[_File]:
        """The files that tell whether a session changed: its own, its messages', and the last one's parts'."""
        path = self._by_session()[session]
        own = path or f"{self._path}/message/{session}"
        return [_stat(own), *self._message_files(session), *self._of_last(session)]

    def tree(self, session: str) -> list[Header]:
        """The session and those of its sub-agents, it first; SourceError where it is gone."""
        place = self._place
        if place is None:
            raise SourceError(self._path, f"where the session {session} lies is not known", "import again")
        return [self._header(one, path) for one, path in place.sessions.items()]

    def _header(self, session: str, path: str) -> Header:
        value = _json(_whole(path)) if path else None
        said = value if isinstance(value, dict) else {}
        fields: dict[str, Any] = {name: said[name] for name in _TEXTS if isinstance(said.get(name), str)}
        reverted = chosen(said.get("revert"), "messageID", "partID")
        fields |= {"model": model} if (model := chosen(said.get("model"), "id", "providerID")) else {}
        fields |= {"revert": reverted} if reverted else {}
        time = chosen(said.get("time"), "created", "updated", "archived")
        fields |= {"time": time} if time else {}
        return Header(
            session,
            fields.get("parentID", ""),
            _number(time.get("created")),
            _stat(path).changed_ns // 1_000_000 if path else 0,
            fields,
            str(reverted.get("messageID", "")),
        )

    def messages(self, session: str) -> list[Row]:
        """Its messages."""
        if session in self._rows:
            return self._rows[session]
        rows = self._rows[session] = []
        for file in self._message_files(session):
            named = _named(_whole(file.path)) or _Named()
            message = named.id or _stem(file.name)
            self._paths[message] = file
            changed = file.changed_ns // 1_000_000
            created = _number(named.time.created if named.time is not None else None) or changed
            rows.append(Row(message, session, created, changed))
        return rows

    def changed(self, session: str, since: int) -> set[str]:
        """Ids of those that changed, or of which a part did."""
        return {
            row.message
            for row in self.messages(session)
            if max(row.updated, *self._part_times(row.message)) >= since
        }

    def _part_times(self, message: str) -> list[int]:
        return [0, *(file.changed_ns // 1_000_000 for file in self._part_files(message))]

    def body(self, row: Row) -> Body:
        """What a message says."""
        parts = []
        for file in self._part_files(row.message):
            data = _whole(file.path)
            named = _named(data)
            parts.append(
                as_object(data) if named is not None and named.id else as_object(data, id=_stem(file.name))
            )
        updated = max(row.updated, *self._part_times(row.message))
        return Body(as_object(_whole(self._paths[row.message].path)), parts, updated)

    def _session_files(self) -> Iterator[_File]:
        for project in _entries(f"{self._path}/session", is_folder=True):
            yield from _entries(project.path)

    def _by_session(self) -> dict[str, str]:
        """Every session, with its file: by the id that this says, else by its name, else by its messages' folder."""
        if self._sessions is None:
            self._sessions = {}
            for file in self._session_files():
                named = _named(_whole(file.path))
                self._sessions.setdefault(
                    (named.id if named is not None else "") or _stem(file.name), file.path
                )
            for folder in _entries(f"{self._path}/message", is_folder=True):
                self._sessions.setdefault(folder.name, "")
        return self._sessions

    def _message_files(self, session: str) -> list[_File]:
        return list(_entries(f"{self._path}/message/{session}"))

    def _part_files(self, message: str) -> list[_File]:
        own = list(_entries(f"{self._path}/part/{message}"))
        is_loose = self._place is not None and self._place.is_loose
        return own or (self._loose_parts().get(message, []) if is_loose else [])

    def _loose_parts(self) -> dict[str, list[_File]]:
        """Parts that lie in no folder of a message, by the message that they name."""
        if self._loose is None:
            self._loose = {}
            for file in _entries(f"{self._path}/part"):
                named = _named(_whole(file.path))
                if named is not None and named.message_id:
                    self._loose.setdefault(named.message_id, []).append(file)
        return self._loose

    def _of_last(self, session: str) -> list[_File]:
        """The files of the session's newest message."""
        files = self._message_files(session)
        return [files[-1], *_entries(f"{self._path}/part/{_stem(files[-1].name)}")] if files else []


def _entries(folder: str, *, is_folder: bool = False) -> Iterator[_File]:
    """The JSON files in a folder, or its folders, by name; none where it is not there."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise source_error(error, folder) from error
    for entry in found:
        if entry.is_dir() if is_folder else entry.name.endswith(".json") and entry.is_file():
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            yield _File(entry.name, entry.path, status.st_mtime_ns, status.st_size)


def _stat(path: str) -> _File:
    """A file, or folder, as it looks; one that went away never changed."""
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return _File("", path, 0, 0)
    except OSError as error:
        raise source_error(error, path) from error
    return _File(Path(path).name, path, status.st_mtime_ns, status.st_size)


def _stem(name: str) -> str:
    return name.removesuffix(".json")


def _whole(path: str) -> bytes:
    """The bytes of a file; none of one that went away, or that cannot be read: the others are read."""
    try:
        return read_whole(path)
    except SourceError:
        return b""


def _named(data: bytes) -> _Named | None:
    """What a file says of itself, as far as it fits; None where it is no JSON object."""
    try:
        return msgspec.json.decode(data, type=_Named)
    except (msgspec.DecodeError, RecursionError):
        value = _json(data)
    if not isinstance(value, dict):
        return None
    texts = {name: value[name] for name in ("id", "messageID") if isinstance(value.get(name), str)}
    return msgspec.convert(texts, _Named)


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0
