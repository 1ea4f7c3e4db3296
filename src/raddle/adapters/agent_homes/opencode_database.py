"""OpenCode's database: its sessions, and the records of one, read at one moment.

Owns the queries. What changed is told by `session.time_updated`, by how many messages and parts there are, and by
the last message and its parts: no row of an older part is read to know that a session is as it was. A page that is
damaged costs what stands on it: every query has another to fall back on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from raddle.actions.importing.collection import Member
from raddle.actions.importing.run_plan import FileProblem
from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.damaged_tables import Tables
from raddle.adapters.agent_homes.opencode_rows import Body, Header, Row, as_object, roots_of
from raddle.adapters.agent_homes.read_only_sqlite import Damaged, ReadOnlyDatabase

_NEEDED = {
    "session": {"id", "parent_id", "directory", "title", "time_created", "time_updated"},
    "message": {"id", "session_id", "time_created", "time_updated", "data"},
    "part": {"id", "message_id", "session_id", "time_updated", "data"},
}
_TEXTS = {
    "project_id": "projectID",
    "directory": "directory",
    "title": "title",
    "version": "version",
    "agent": "agent",
}
_TREE = """
    WITH RECURSIVE tree (id) AS (
        SELECT id FROM session WHERE id = ?
        UNION SELECT session.id FROM session JOIN tree ON session.parent_id = tree.id
    ) SELECT id FROM tree"""
_LATER = "session_message"
"""A table that 1.18 has and leaves empty: a later version may put messages there."""
_UNREAD = f"""
    SELECT count(DISTINCT session_id) FROM {_LATER}
    WHERE session_id NOT IN (SELECT session_id FROM message)"""  # noqa: S608
_IDS = (
    "SELECT id FROM session ORDER BY id",
    "SELECT DISTINCT session_id FROM message",
    "SELECT DISTINCT session_id FROM part",
)
"""Where the ids of sessions stand besides in their own rows."""
_MESSAGE_BYTES, _PART_BYTES = 512, 1024
"""About what a record takes, so that no record has to be read to know how much there is."""


class DatabaseRows:
    """The records in one database (`Rows`)."""

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        self._path = path
        self._database = ReadOnlyDatabase(path, scratch=scratch)
        self._tables = Tables(self._database)
        self._lost: dict[tuple[str, str], int] = {}
        """(table, id of the row, or of what it belongs to) -> how many rows cannot be read, at least."""
        try:
            self._columns = self._known_columns()
        except BaseException:
            self.close()
            raise

    def _known_columns(self) -> dict[str, set[str]]:
        columns = {table: set(self._database.columns(table)) for table in _NEEDED}
        if any(not needed <= columns[table] for table, needed in _NEEDED.items()):
            reason = "it is no database of OpenCode's, or one of a kind that is not known"
            raise SourceError(self._path, reason, "check the path")
        return columns

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    def check(self) -> None:
        """After reading: SourceError where it was not of one moment."""
        self._database.check()

    def members(self) -> Iterator[Member | FileProblem]:
        """Its sessions, sub-agents' with the one that they lie below, and what of it is not read."""
        yield from self._later()
        sessions, are_all = self._sessions()
        if not are_all:
            reason = "it is damaged: sessions of it may be missing, those that can be found are read"
            yield FileProblem(path=self._path, reason=reason)
        sizes = dict.fromkeys(sessions, 0)
        for table, size in (("message", _MESSAGE_BYTES), ("part", _PART_BYTES)):
            for session, count in self._counts(table).items():
                if session in sizes:
                    sizes[session] += count * size
        totals: dict[str, tuple[int, int]] = {}
        roots = roots_of({session: parent for session, (parent, _, _) in sessions.items()})
        for session, root in roots.items():
            size, changed = totals.get(root, (0, 0))
            mine = max(sessions[session][2], self._last_change(session))
            totals[root] = size + sizes[session], max(changed, mine)
        for root, (size, changed) in sorted(totals.items()):
            yield Member(session=root, size=size, changed_ns=changed * 1_000_000, workspace=sessions[root][1])

    def _later(self) -> Iterator[FileProblem]:
        """What is said of the sessions that are kept in another way."""
        if not self._database.columns(_LATER):
            return
        try:
            unread = self._database.rows(_UNREAD)[0][0]
        except Damaged as error:
            yield FileProblem(
                path=self._path, reason=f"what it keeps in `{_LATER}` cannot be read: {error.reason}"
            )
            return
        if unread:
            reason = (
                f"{unread} of its sessions are kept in a way (`{_LATER}`) that is not known yet: not read"
            )
            yield FileProblem(path=self._path, reason=reason)

    def _sessions(self) -> tuple[dict[str, tuple[str, str, int]], bool]:
        """Session -> its parent, its folder, its last change; of one whose row is damaged, nothing. Are they all?"""
        columns = "id, parent_id, directory, time_updated"
        are_all = True
        lost: set[str] = set()
        try:
            rows = self._database.rows(f"SELECT {columns} FROM session")  # noqa: S608
        except Damaged:
            numbered, is_whole = self._tables.scan("session", columns)
            rows = [row[1:] for row in numbered]
            if not is_whole:
                (ids, are_all), *others = [self._database.rows_until_damage(query) for query in _IDS]
                lost = {_text(row[0]) for row in ids} | {
                    _text(row[0]) for other, _ in others for row in other
                }
        found = {
            _text(session): (_text(parent), _text(folder), _number(updated))
            for session, parent, folder, updated in rows
        }
        return dict.fromkeys(sorted(lost), ("", "", 0)) | found, are_all

    def _counts(self, table: str) -> Counter[str]:
        """Session -> how many rows it has."""
        query = f"SELECT session_id, count(*) FROM {table} GROUP BY session_id"  # noqa: S608
        counts: Counter[str] = Counter()
        try:
            for session, count in self._database.rows(query):
                counts[_text(session)] += count
        except Damaged:
            rows, _ = self._tables.scan(table, "session_id")
            counts = Counter(_text(session) for _, session in rows)
        return counts

    def _last_change(self, session: str) -> int:
        """When the last message of a session changed, or a part of it: the one that is written while an agent works."""
        rows = self._database.rows
        query = "SELECT id, time_updated FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 1"
        try:
            last = rows(query, session)
        except Damaged:
            found, _ = self._tables.where("message", "time_created, id, time_updated", "session_id", session)
            last = [row[1:] for row in sorted(found, key=lambda row: (_number(row[0]), _text(row[1])))[-1:]]
        if not last:
            return 0
        message = _text(last[0][0])
        parts, _ = self._tables.where(
            "part", "time_updated", "message_id", message, within=("session_id", session)
        )
        return max(_number(last[0][1]), *(_number(updated) for (updated,) in parts), 0)

    def tree(self, session: str) -> list[Header]:
        """The session and those of its sub-agents, it first; SourceError where it is gone."""
        try:
            found = [_text(row[0]) for row in self._database.rows(_TREE, session)]
        except Damaged:
            found = self._found_tree(session)
        if not found:
            raise SourceError(self._path, f"the session {session} is not there any more", "import again")
        return [self._header(one) for one in (session, *sorted(set(found) - {session}))]

    def _found_tree(self, session: str) -> list[str]:
        """The same, from all sessions that can be found."""
        sessions, _ = self._sessions()
        found = [session] if session in sessions else []
        for above in found:
            found += [one for one, (parent, _, _) in sessions.items() if parent == above and one not in found]
        return found

    def _header(self, session: str) -> Header:
        names = [
            name
            for name in (
                *_TEXTS,
                "parent_id",
                "model",
                "revert",
                "time_created",
                "time_updated",
                "time_archived",
            )
            if name in self._columns["session"]
        ]
        found = self._where("session", ", ".join(names), "id", session)
        if not found:
            return Header(session, "", 0, 0, {})
        row = dict(zip(names, found[0], strict=True))
        created, updated = _number(row["time_created"]), _number(row["time_updated"])
        fields: dict[str, Any] = {"parentID": parent} if (parent := _text(row["parent_id"])) else {}
        fields |= {key: text for name, key in _TEXTS.items() if (text := _text(row.get(name)))}
        reverted = chosen(_json(row.get("revert")), "messageID", "partID")
        fields |= {"model": model} if (model := chosen(_json(row.get("model")), "id", "providerID")) else {}
        fields |= {"revert": reverted} if reverted else {}
        fields["time"] = {"created": created, "updated": updated}
        if row.get("time_archived"):
            fields["time"]["archived"] = _number(row["time_archived"])
        return Header(session, parent, created, updated, fields, str(reverted.get("messageID", "")))

    def messages(self, session: str) -> list[Row]:
        """Its messages."""
        found = self._where("message", "id, time_created, time_updated", "session_id", session)
        return [
            Row(_text(message), session, _number(created), _number(updated))
            for message, created, updated in found
        ]

    def changed(self, session: str, since: int) -> set[str]:
        """Ids of those that changed, or of which a part did; of all where that cannot be told."""
        queries = (
            "SELECT id FROM message WHERE session_id = ? AND time_updated >= ?",
            "SELECT DISTINCT message_id FROM part WHERE session_id = ? AND time_updated >= ?",
        )
        try:
            return {_text(row[0]) for query in queries for row in self._database.rows(query, session, since)}
        except Damaged:
            return {row.message for row in self.messages(session)}

    def body(self, row: Row) -> Body | None:
        """What a message says; None where its record is damaged."""
        within = ("session_id", row.session)
        info = self._where("message", "data", "id", row.message, within=within)
        if not info:
            return None
        parts, updated = [], row.updated
        found = self._where("part", "id, time_updated, data", "message_id", row.message, within=within)
        for part, changed, data in sorted(found, key=lambda one: _bytes(one[0])):
            self._check("part", _text(part), _bytes(data))
            parts.append(as_object(_bytes(data), id=_text(part)))
            updated = max(updated, _number(changed))
        self._check("message", row.message, _bytes(info[0][0]))
        return Body(as_object(_bytes(info[0][0])), parts, updated)

    def _check(self, table: str, name: str, data: bytes) -> None:
        """Note a record that ends on a page of zeros, which SQLite does not find out: JSON has none."""
        if b"\0" in data:
            self._lost[table, name] = 1

    def losses(self) -> str:
        """What of that which was asked for cannot be read; empty where all could be."""
        lost: Counter[str] = Counter()
        for (table, _), count in self._lost.items():
            lost[table] += count
        if not lost:
            return ""
        told = ", ".join(f"{count} of {table}" for table, count in sorted(lost.items()))
        return (
            f"the database is damaged: rows of this session cannot be read ({told}, or more), the others are"
        )

    def _where(
        self, table: str, columns: str, column: str, value: str, *, within: tuple[str, str] | None = None
    ) -> list[tuple[Any, ...]]:
        rows, lost = self._tables.where(table, columns, column, value, within=within)
        if lost:
            self._lost[table, value] = lost
        return rows


def chosen(value: Any, *names: str) -> dict[str, Any]:
    """Some fields of a JSON object; none where it is something else."""
    return {name: value[name] for name in names if name in value} if isinstance(value, dict) else {}


def _json(data: Any) -> Any:
    try:
        return msgspec.json.decode(_bytes(data))
    except (msgspec.DecodeError, RecursionError):
        return None


def _bytes(data: Any) -> bytes:
    return data if isinstance(data, bytes) else str(data or "").encode(errors="replace")


def _text(data: Any) -> str:
    """A column that holds a text; SQLite does not see to it that it does."""
    return _bytes(data).decode(errors="replace")


def _number(data: Any) -> int:
    return int(data) if isinstance(data, int | float) else 0
