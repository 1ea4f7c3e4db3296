"""An OpenCode database of any size, made up from a seed, in the shape that 1.18 writes: `write_corpus` is the way in.

Owns the shape of its rows and how much of them is what: steps that say only where they begin and end, calls whose
`metadata` repeats their output, thoughts, sub-agents' sessions, forks that copy messages under new ids, events that
keep every state of every record. The texts are those of the other corpora, so that a word is as rare in all of them.
Nothing in it was ever said by anyone.
"""

from __future__ import annotations

import random
import sqlite3
from typing import Any

import msgspec
from msgspec import Struct

from bench.corpus.project import Project
from bench.corpus.tools import Call, Habits, tool_call
from bench.corpus.words import base64_text, hex_text, prose

_FIRST_START = 1_769_900_000_000
_MEAN_MEGABYTES = 0.5
_TOOLS = {"TodoWrite": "todowrite", "Task": "task", "TaskOutput": "task"}
_encode = msgspec.json.Encoder().encode

_TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, time_created integer NOT NULL,
  time_updated integer NOT NULL, sandboxes text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text,
  slug text NOT NULL, directory text NOT NULL, path text, title text NOT NULL, version text NOT NULL, share_url text,
  summary_diffs text, cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL, revert text,
  permission text, agent text, model text, time_created integer NOT NULL, time_updated integer NOT NULL,
  time_compacting integer, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE event_sequence (aggregate_id text PRIMARY KEY, seq integer NOT NULL, owner_id text);
CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL,
  data text NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE INDEX session_project_idx ON session (project_id);
CREATE INDEX session_parent_idx ON session (parent_id);
CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
"""


class Plan(Struct, frozen=True, kw_only=True):
    """How much to write: `megabytes` (of 1,000,000 bytes of messages and parts) over `sessions` (0: as many as real
    homes have), sub-agents' and forks not counted. `events`: whether the states of every record are kept too."""

    megabytes: float
    sessions: int = 0
    seed: int = 1
    events: bool = False
    habits: Habits = Habits()

    @property
    def count(self) -> int:
        """The number of sessions."""
        return self.sessions or max(round(self.megabytes / _MEAN_MEGABYTES), 3)


class Written(Struct, kw_only=True):
    """What was written: `bytes` of messages and parts, `sessions` of all kinds, `messages`, `parts`."""

    bytes: int = 0
    sessions: int = 0
    messages: int = 0
    parts: int = 0


def write_corpus(path: str, plan: Plan) -> Written:
    """Write a database to `path`, which must not be there yet."""
    database = sqlite3.connect(path)
    database.executescript(_TABLES)
    done = Written()
    projects = [Project(str(plan.seed), number, scale=1.0) for number in range(8)]
    for number, project in enumerate(projects):
        database.execute(
            "INSERT INTO project VALUES (?, ?, 'git', ?, ?, '[]')",
            (f"p{number}", project.root, _FIRST_START, _FIRST_START),
        )
    each = plan.megabytes * 1_000_000 / plan.count
    for number in range(plan.count):
        rng = random.Random(f"{plan.seed}/opencode/{number}")
        at = number % len(projects)
        session = _Session(database, plan, rng, project=projects[at], project_id=f"p{at}", done=done)
        session.grow(_FIRST_START + number * 5_400_000, each * rng.uniform(0.2, 1.8))
        if number % 97 == 5:
            session.fork()
        if number % 50 == 49:
            database.commit()
    database.commit()
    database.close()
    return done


class _Session:
    """One session with its sub-agents, written as it grows."""

    def __init__(
        self,
        database: sqlite3.Connection,
        plan: Plan,
        rng: random.Random,
        *,
        project: Project,
        project_id: str,
        done: Written,
    ) -> None:
        self._database = database
        self._plan = plan
        self._rng = rng
        self._project = project
        self._project_id = project_id
        self._done = done
        self._now = 0
        self._count = 0
        self._id = ""

    def grow(self, start: int, size: float) -> None:
        """Turns until so many bytes are written."""
        self._now = start
        self._id = self._begin(None, prose(self._rng, self._project.phrases, self._project.names, 40))
        until = self._done.bytes + size
        while self._done.bytes < until:
            self._turn(self._id, "build", is_side=False)
        self._end(self._id)

    def fork(self) -> None:
        """A copy of the main session under new ids, with its times."""
        copy = self._begin(None, "a fork")
        names: dict[str, str] = {}
        rows = self._database.execute(
            "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id",
            (self._id,),
        ).fetchall()
        for message, created, data in rows:
            names[message] = self._name("msg")
            info = msgspec.json.decode(data)
            if info.get("parentID") in names:
                info["parentID"] = names[info["parentID"]]
            self._put_message(copy, names[message], created, info)
            parts = self._database.execute(
                "SELECT data FROM part WHERE message_id = ? ORDER BY id", (message,)
            )
            for (part,) in parts.fetchall():
                self._put_part(copy, names[message], msgspec.json.decode(part))
        self._end(copy)

    def _name(self, prefix: str) -> str:
        self._count += 1
        number = (self._now * 0x1000 + self._count % 0x1000) & ((1 << 48) - 1)
        if prefix == "ses":
            number ^= (1 << 48) - 1
        return f"{prefix}_{number:012x}{base64_text(self._rng, 14).replace('+', 'a').replace('/', 'b')}"

    def _begin(self, parent: str | None, title: str) -> str:
        session = self._name("ses")
        model = '{"id":"sonnet","providerID":"anthropic"}'
        self._database.execute(
            "INSERT INTO session (id, project_id, parent_id, slug, directory, path, title, version, agent, model,"
            " time_created, time_updated) VALUES (?, ?, ?, 'quiet-otter', ?, '', ?, '1.18.33', ?, ?, ?, ?)",
            (
                session,
                self._project_id,
                parent,
                self._project.root,
                title,
                "general" if parent else "build",
                model,
                self._now,
                self._now,
            ),
        )
        self._done.sessions += 1
        return session

    def _end(self, session: str) -> None:
        self._database.execute("UPDATE session SET time_updated = ? WHERE id = ?", (self._now, session))

    def _turn(self, session: str, agent: str, *, is_side: bool, prompt: str = "") -> None:
        rng, project = self._rng, self._project
        self._now += rng.randrange(1_000, 90_000)
        asked = self._put_message(
            session,
            self._name("msg"),
            self._now,
            {
                "role": "user",
                "time": {"created": self._now},
                "agent": agent,
                "model": {"providerID": "anthropic", "modelID": "sonnet"},
                "summary": {"diffs": []},
            },
        )
        words = prompt or prose(
            rng, project.phrases, project.names, int(min(rng.lognormvariate(4.3, 1.3), 6000))
        )
        self._put_part(session, asked, {"type": "text", "text": words})
        for _ in range(max(1, int(rng.lognormvariate(1.2, 0.8)))):
            self._step(session, agent, asked, is_last=False, is_side=is_side)
        self._step(session, agent, asked, is_last=True, is_side=is_side)

    def _step(self, session: str, agent: str, asked: str, *, is_last: bool, is_side: bool) -> None:
        rng, project = self._rng, self._project
        self._now += rng.randrange(500, 9_000)
        created, out = self._now, rng.randrange(20, 900)
        message = self._name("msg")
        tree, tokens = (
            hex_text(rng, 40),
            {
                "total": 52_000 + out,
                "input": 2_000,
                "output": out,
                "reasoning": 0,
                "cache": {"write": 0, "read": 50_000},
            },
        )
        info: dict[str, Any] = {
            "parentID": asked,
            "role": "assistant",
            "mode": agent,
            "agent": agent,
            "path": {"cwd": project.root, "root": project.root},
            "cost": 0.01,
            "tokens": tokens,
            "modelID": "sonnet",
            "providerID": "anthropic",
            "time": {"created": created, "completed": created + 400},
            "finish": "stop" if is_last else "tool-calls",
        }
        self._put_message(session, message, created, info)
        self._put_part(session, message, {"snapshot": tree, "type": "step-start"})
        times = {"start": created, "end": created + 200}
        if rng.random() < 0.4:
            thought = prose(rng, project.phrases, project.names, 300)
            self._put_part(session, message, {"type": "reasoning", "text": thought, "time": times})
        if is_last or rng.random() < 0.5:
            said = prose(rng, project.phrases, project.names, int(min(rng.lognormvariate(5, 1), 8000)))
            self._put_part(session, message, {"type": "text", "text": said, "time": times})
        if not is_last:
            self._call(session, message, tool_call(rng, project, self._plan.habits), is_side=is_side)
        finish = {
            "reason": info["finish"],
            "snapshot": tree,
            "type": "step-finish",
            "tokens": tokens,
            "cost": 0.01,
        }
        self._put_part(session, message, finish)

    def _call(self, session: str, message: str, call: Call, *, is_side: bool) -> None:
        output = (
            call.output
            if isinstance(call.output, str)
            else "\n".join(str(block.get("text", "")) for block in call.output)
        )
        tool = _TOOLS.get(call.name, call.name.lower())
        metadata: dict[str, Any] = {"output": output, "exit": 0, "truncated": False}
        if tool == "task" and not is_side:
            child = self._begin(session, f"{call.name} (@general subagent)")
            for _ in range(self._rng.randrange(1, 3)):
                self._turn(child, "general", is_side=True, prompt=str(call.input.get("prompt", "")))
            self._end(child)
            metadata = {"sessionId": child, "parentSessionId": session}
        state = {
            "status": "error" if call.is_error else "completed",
            "input": call.input,
            ("error" if call.is_error else "output"): output,
            "title": tool,
            "metadata": metadata,
            "time": {"start": self._now, "end": self._now + int(call.seconds * 1000)},
        }
        call_id = f"call_{hex_text(self._rng, 24)}"
        self._put_part(session, message, {"type": "tool", "tool": tool, "callID": call_id, "state": state})

    def _put_message(self, session: str, message: str, created: int, info: dict[str, Any]) -> str:
        data = _encode(info).decode()
        self._database.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
            (message, session, created, max(self._now, created), data),
        )
        self._done.messages += 1
        self._note(session, "message.updated.1", data)
        return message

    def _put_part(self, session: str, message: str, part: dict[str, Any]) -> None:
        data = _encode(part).decode()
        self._database.execute(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
            (self._name("prt"), message, session, self._now, self._now, data),
        )
        self._done.parts += 1
        self._note(session, "message.part.updated.1", data)

    def _note(self, session: str, kind: str, data: str) -> None:
        self._done.bytes += len(data)
        if self._plan.events:
            for _ in range(3):
                self._count += 1
                self._database.execute(
                    "INSERT INTO event VALUES (?, ?, ?, ?, ?)",
                    (f"evt_{self._id}{self._count}", session, self._count, kind, data),
                )
