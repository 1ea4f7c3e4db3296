"""The records of a session file and the chain they make, apart from what they say."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from bench.corpus.words import ADJECTIVES, ANIMALS, GERUNDS, uuid_text

VERSIONS = ("2.0.64", "2.0.76", "2.1.3", "2.1.7", "2.1.15", "2.1.34", "2.1.42", "2.1.88")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEPT_RECORDS = 24
_encode = msgspec.json.Encoder().encode


class Facts(Struct, frozen=True, kw_only=True):
    """What is settled before the first record. `started`: milliseconds since 1970; `agent_id`: a sub-agent's.

    `agent_files`: do its sub-agents keep files of their own, or live in `progress` records?
    """

    session_id: str
    started: int
    version: str
    branch: str
    agent_id: str = ""
    agent_files: bool = False
    tool_hooks: bool = False
    stop_hooks: bool = False
    drops_progress: bool = False
    glues_a_line: bool = False
    tears_its_end: bool = False


class Recorder:
    """Appends records, each under the last one unless told otherwise, at times that only go forward.

    `lines` are encoded records, `size` their bytes with the line ends; `records` the first few as they were
    (all of a sub-agent's), for those who copy them.
    """

    def __init__(self, rng: random.Random, root: str, facts: Facts) -> None:
        self.rng, self.root, self.facts = rng, root, facts
        self.lines: list[bytes] = []
        self.records: list[dict[str, Any]] = []
        self.size = 0
        self.messages = 0
        self.now = facts.started
        self.parent: str | None = None
        self.version = facts.version
        self.branch = facts.branch
        self.backups: dict[str, dict[str, Any]] = {}
        self._slug = f"{rng.choice(ADJECTIVES)}-{rng.choice(GERUNDS)}-{rng.choice(ANIMALS)}"

    def time(self, seconds: float) -> str:
        """The time `seconds` after the last one, as records spell it."""
        self.now += max(int(seconds * 1000), 1)
        moment = (_EPOCH + timedelta(milliseconds=self.now)).replace(tzinfo=None)
        return f"{moment.isoformat(timespec='milliseconds')}Z"

    def put(self, record: dict[str, Any]) -> None:
        """Append a record that is no part of the tree."""
        line = _encode(record)
        self.lines.append(line)
        self.size += len(line) + 1
        if self.facts.agent_id or len(self.records) < _KEPT_RECORDS:
            self.records.append(record)

    def add(self, kind: str, body: dict[str, Any], *, seconds: float = 0.4, parent: str | None = "") -> str:
        """A record in the tree, under `parent` ("": under the last one); gives its uuid."""
        uuid = uuid_text(self.rng)
        record: dict[str, Any] = {
            "parentUuid": self.parent if parent == "" else parent,
            "isSidechain": bool(self.facts.agent_id),
            "userType": "external",
            "cwd": self.root,
            "sessionId": self.facts.session_id,
            "version": self.version,
            "gitBranch": self.branch,
        }
        if self.facts.agent_id:
            record["agentId"] = self.facts.agent_id
        if self.messages > 2:
            record["slug"] = self._slug
        record["type"] = kind
        record.update(body)
        record["uuid"] = uuid
        record["timestamp"] = self.time(seconds)
        self.put(record)
        self.parent = uuid
        return uuid

    def snapshot(self, message_id: str, *, is_update: bool) -> None:
        """Append what files were backed up so far."""
        snapshot = {
            "messageId": message_id,
            "trackedFileBackups": self.backups,
            "timestamp": self.time(0.05),
        }
        kind = "file-history-snapshot"
        self.put({"type": kind, "messageId": message_id, "snapshot": snapshot, "isSnapshotUpdate": is_update})

    def hook(self, event: str, name: str, tool_id: str) -> None:
        """Append the progress of a hook that ran."""
        command = f"go run ${{CLAUDE_PROJECT_DIR}}/cmd/hooks/main.go {event.lower()}"
        data = {"type": "hook_progress", "hookEvent": event, "hookName": name, "command": command}
        self.add("progress", {"data": data, "parentToolUseID": tool_id, "toolUseID": tool_id}, seconds=0.02)
