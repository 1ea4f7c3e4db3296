"""OpenCode's database: its sessions, and the records of one, read at one moment.

Owns the queries. What changed is told by `session.time_updated`, by how many messages and parts there are, and by
the last message and its parts: no row of an older part is read to know that a session is as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from raddle.actions.importing.collection import Member
from raddle.actions.importing.run_plan import FileProblem
from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.opencode_rows import Body, Header, Row, as_object, roots_of
from raddle.adapters.agent_homes.read_only_sqlite import ReadOnlyDatabase

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
_MESSAGE_BYTES, _PART_BYTES = 512, 1024
"""About what a record takes, so that no record has to be read to know how much there is."""


class DatabaseRows:
    """The records in one database (`Rows`)."""

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        self._path = path
        self._database = ReadOnlyDatabase(path, scratch=scratch)
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
        rows = self._database.rows
        if self._database.columns(_LATER) and (unread := rows(_UNREAD)[0][0]):
            reason = (
                f"{unread} of its sessions are kept in a way (`{_LATER}`) that is not known yet: not read"
            )
            yield FileProblem(path=self._path, reason=reason)
        sessions = {
            _text(session): (_text(parent), _text(folder), _number(updated))
            for session, parent, folder, updated in rows(
                "SELECT id, parent_id, directory, time_updated FROM session"
            )
        }
        sizes = dict.fromkeys(sessions, 0)
        for table, size in (("message", _MESSAGE_BYTES), ("part", _PART_BYTES)):
            for session, count in rows(f"SELECT session_id, count(*) FROM {table} GROUP BY session_id"):  # noqa: S608
                if (name := _text(session)) in sizes:
                    sizes[name] += count * size
        totals: dict[str, tuple[int, int]] = {}
        roots = roots_of({session: parent for session, (parent, _, _) in sessions.items()})
        for session, root in roots.items():
            size, changed = totals.get(root, (0, 0))
            mine = max(sessions[session][2], self._last_change(session))
            totals[root] = size + sizes[session], max(changed, mine)
        for root, (size, changed) in sorted(totals.items()):
            yield Member(session=root, size=size, changed_ns=changed * 1_000_000, workspace=sessions[root][1])

    def _last_change(self, session: str) -> int:
        """When the last message of a session changed, or a part of it: the one that is written while an agent works."""
        rows = self._database.rows
        last = rows(
            "SELECT id, time_updated FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 1",
            session,
        )
        if not last:
            return 0
        parts = rows("SELECT max(time_updated) FROM part WHERE message_id = ?", _text(last[0][0]))
        return max(_number(last[0][1]), _number(parts[0][0]))

    def tree(self, session: str) -> list[Header]:
        """The session and those of its sub-agents, it first; SourceError where it is gone."""
        found = [_text(row[0]) for row in self._database.rows(_TREE, session)]
        if not found:
            raise SourceError(self._path, f"the session {session} is not there any more", "import again")
        return [self._header(one) for one in (session, *sorted(set(found) - {session}))]

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
        (found,) = self._database.rows(f"SELECT {', '.join(names)} FROM session WHERE id = ?", session)  # noqa: S608
        row = dict(zip(names, found, strict=True))
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
        query = "SELECT id, time_created, time_updated FROM message WHERE session_id = ?"
        return [
            Row(_text(message), session, _number(created), _number(updated))
            for message, created, updated in self._database.rows(query, session)
        ]

    def changed(self, session: str, since: int) -> set[str]:
        """Ids of those that changed, or of which a part did."""
        queries = (
            "SELECT id FROM message WHERE session_id = ? AND time_updated >= ?",
            "SELECT DISTINCT message_id FROM part WHERE session_id = ? AND time_updated >= ?",
        )
        return {_text(row[0]) for query in queries for row in self._database.rows(query, session, since)}

    def body(self, row: Row) -> Body:
        """What a message says."""
        info = self._database.rows("SELECT data FROM message WHERE id = ?", row.message)[0][0]
        query = "SELECT id, time_updated, data FROM part WHERE message_id = ? ORDER BY id"
        parts, updated = [], row.updated
        for part, changed, data in self._database.rows(query, row.message):
            parts.append(as_object(_bytes(data), id=_text(part)))
            updated = max(updated, _number(changed))
        return Body(as_object(_bytes(info)), parts, updated)


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
