"""Made-up OpenCode sessions as OpenCode keeps them: rows of a database, or a folder of JSON files."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from raddle.actions.importing.collection import Collection, Member
from raddle.actions.importing.opencode import OpenCode
from raddle.actions.importing.run_plan import FileProblem, SourceEntry
from raddle.actions.importing.source_reading import Lines, OpenSource
from tests.builders_opencode import OpenCodeSession
from tests.reading import Reading, named, read

TABLES = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, share_url text, summary_diffs text, revert text,
  permission text, agent text, model text, time_created integer NOT NULL, time_updated integer NOT NULL,
  time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE INDEX session_parent_idx ON session (parent_id);
"""
SHARE_URL = "https://opencode.example/s/not-to-be-kept"


def connected(path: Path, *, mode: str = "wal") -> sqlite3.Connection:
    """The database at `path`, made where it is not there, as its own program opens it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        connection.executescript(TABLES)
    return connection


def text(value: Any) -> str:
    """JSON as it stands in a column."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def store(connection: sqlite3.Connection, session: OpenCodeSession) -> None:
    """Write what is new or changed of a session."""
    connection.execute("BEGIN")
    for row in session.sessions.values():
        revert = text(row["revert"]) if row.get("revert") else None
        connection.execute(
            "INSERT OR REPLACE INTO session VALUES"
            " (?, ?, ?, 'quiet-otter', ?, ?, ?, ?, NULL, ?, NULL, ?, ?, ?, ?, NULL)",
            (
                row["id"],
                row["projectID"],
                row.get("parentID"),
                row["directory"],
                row["title"],
                row["version"],
                SHARE_URL,
                revert,
                row.get("agent"),
                text({"id": "m1", "providerID": "mock"}),
                row["time"]["created"],
                row["time"]["updated"],
            ),
        )
    for row in session.messages.values():
        created = row["info"]["time"].get("created", 0)
        is_new = not connection.execute("SELECT count(*) FROM message WHERE id = ?", (row["id"],)).fetchone()[
            0
        ]
        times = (created, created if is_new else session.now)
        _put(connection, "message", (row["id"], row["session"]), times, row["info"])
        for part in row["parts"]:
            data = {name: value for name, value in part.items() if name != "id"}
            _put(connection, "part", (part["id"], row["id"], row["session"]), times, data)
    connection.execute("COMMIT")


def _put(
    connection: sqlite3.Connection, table: str, key: tuple[str, ...], times: tuple[int, int], data: Any
) -> None:
    """A row that is new or says something else; one that says the same keeps its time."""
    marks = ", ".join("?" * (len(key) + 3))
    connection.execute(
        f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT (id) DO UPDATE"  # noqa: S608
        " SET data = excluded.data, time_updated = excluded.time_updated WHERE data != excluded.data",
        (*key, *times, text(data)),
    )


def remove(connection: sqlite3.Connection, session: OpenCodeSession, *messages: str) -> None:
    """Messages that OpenCode deletes when somebody types after a step back."""
    for message in messages:
        connection.execute("DELETE FROM part WHERE message_id = ?", (message,))
        connection.execute("DELETE FROM message WHERE id = ?", (message,))
        del session.messages[message]


def write_folder(root: Path, session: OpenCodeSession, *, is_loose: bool = False) -> None:
    """The same as files of the older store. `is_loose`: parts in one folder, and files that bear no ids."""
    for number, row in enumerate(session.sessions.values()):
        value = {name: one for name, one in row.items() if name != "opencode"} | {"share": {"url": SHARE_URL}}
        name = f"ses_{number}" if is_loose else row["id"]
        _write(root / "session" / row["projectID"] / f"{name}.json", value)
    for row in session.messages.values():
        info = {"id": row["id"], "sessionID": row["session"], **row["info"]}
        _write(root / "message" / row["session"] / f"{row['id']}.json", info)
        for number, part in enumerate(row["parts"]):
            value = {**part, "sessionID": row["session"], "messageID": row["id"]}
            if is_loose:
                _write(root / "part" / f"{part['id']}.json", value)
            else:
                _write(root / "part" / row["id"] / f"{number:03}.json", value)


def _write(path: Path, value: Any) -> None:
    data = json.dumps(value, ensure_ascii=False, indent=2)
    if path.exists() and path.read_text() == data:
        return  # its time tells when it changed
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data)


def touch(path: Path, milliseconds: int) -> None:
    """Give a file the time of its last change."""
    os.utime(path, ns=(milliseconds * 1_000_000, milliseconds * 1_000_000))


def members(collection: Collection) -> list[Member]:
    """The sessions of a collection; it must have no problem."""
    found = list(collection.members())
    assert not [one for one in found if isinstance(one, FileProblem)]
    return [one for one in found if isinstance(one, Member)]


def lines_of(source: OpenSource, start: int = 0) -> list[bytes]:
    """What a source gives from an offset on."""
    kept: list[bytes] = []
    lines: list[bytes] = []
    for batch in source.read(start, 1, kept.append):
        assert isinstance(batch, Lines)
        lines += batch.lines
    assert b"".join(kept) == b"".join(line + b"\n" for line in lines)
    return lines


class Reader:
    """Reads one member of a collection again and again, as an import does. `told`: the lines of the last reading."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._entry: SourceEntry | None = None
        self.reading: Reading | None = None
        self.told: list[bytes] = []
        self.wholes = 0
        """How often it was read from its start."""

    def read(self) -> Reading:
        """What is new."""
        (member,) = members(self._collection)
        source = self._collection.open(member)
        try:
            grew = self._entry is not None and source.grew_from(self._entry)
            start = self._entry.read_to if grew and self._entry is not None else 0
            self.told = lines_of(source, start)
            before = self.reading if grew else None
            self.reading = read(OpenCode(), named(member.session), self.told, before=before)
            assert not self.reading.ending.needs_whole
            self.wholes += not grew
            size = start + sum(len(line) + 1 for line in self.told)
            self._entry = SourceEntry(
                path="x", agent="opencode", session=member.session, thread_id="t", size=member.size,
                mtime_ns=member.changed_ns, inode=0, read_to=size, lines=1, head=source.head(size),
                tail=source.tail(size), generation=0,
            )  # fmt: skip
        finally:
            source.close()
        return self.reading
