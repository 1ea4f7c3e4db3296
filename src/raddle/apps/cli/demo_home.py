"""A small made-up home of a coding agent, to try raddle on: readable conversations, a few true wounds.

Owns how the demo's stories become session files of Claude Code. Nothing in it is real, nothing is fetched,
and the same directory, seed and time give the same bytes.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from raddle.apps.cli import demo_stories, demo_stories_more
from raddle.apps.cli.demo_script import (
    Agent,
    Bash,
    Compact,
    Edit,
    Read,
    Rewind,
    Say,
    Step,
    Story,
    Think,
    Together,
    User,
)
from raddle.model.clock import format_time

_HOUR = 3_600_000_000
_VERSION, _MODEL = "2.1.88", "claude-sonnet-4-5-20250929"
_NOT_IN_A_FOLDER = re.compile(r"[^A-Za-z0-9-]")
_NULS = 512
_RESUMED = "This session goes on with a conversation that ran out of context. What was said so far:\n\n"
_ABOUT = {
    "tidepool": "Keeps the readings of tide gauges.",
    "papercrane": "Folds hours into invoices.",
    "lantern": "Pushes and deploys small programs.",
    "moth": "Reads recipes and shopping lists.",
}
_encode = msgspec.json.Encoder().encode


class DemoSearch(Struct, frozen=True, kw_only=True):
    """A search worth trying: the words as they are typed, and the title of the one session they find."""

    query: str
    finds: str
    shows: str


class DemoHome(Struct, frozen=True, kw_only=True):
    """What was written. `claude_home`: for CLAUDE_CONFIG_DIR. `damaged`: the session file with wounds."""

    claude_home: Path
    projects: tuple[Path, ...]
    sessions: dict[str, str]
    """Title -> session id, oldest session first."""
    damaged: Path
    searches: tuple[DemoSearch, ...]


SEARCHES = (
    DemoSearch(
        query="lock_timeout", finds=demo_stories.MIGRATION.title, shows="a word in code, output and prose"
    ),
    DemoSearch(
        query='"data race"', finds=demo_stories_more.RACE.title, shows="a phrase that only a tool said"
    ),
    DemoSearch(
        query="東京湾", finds=demo_stories.STATION_NAMES.title, shows="words of a script without spaces"
    ),
)


def write_demo_home(directory: str | Path, *, now: int, seed: int = 7) -> DemoHome:
    """Write the demo under `directory` (made if need be) and say what is there. `now`: microseconds since
    1970; the newest session is an hour or two older.

    Raises OSError where the disk refuses.
    """
    root = Path(directory).resolve()
    claude_home = root / ".claude"
    stories = sorted((*demo_stories.STORIES, *demo_stories_more.STORIES), key=lambda one: -one.hours_ago)
    written: dict[str, Session] = {}
    damaged = root
    for story in stories:
        session = Session(story, root / "src" / story.project, now=now, seed=seed)
        if story.goes_on_from:
            session.go_on_from(written[story.goes_on_from])
        for step in story.steps:
            session.play(step)
        session.close()
        session.entitle()
        written[story.title] = session
        path = session.write(claude_home)
        damaged = path if story.is_damaged else damaged
    for name, about in _ABOUT.items():
        _write(root / "src" / name / "README.md", f"# {name}\n\n{about} Made up for a demo.\n".encode())
    return DemoHome(
        claude_home=claude_home,
        projects=tuple(root / "src" / name for name in _ABOUT),
        sessions={title: session.session_id for title, session in written.items()},
        damaged=damaged,
        searches=SEARCHES,
    )


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class Session:
    """One session file in the making, or the file of a sub-agent (`agent_id`)."""

    def __init__(self, story: Story, cwd: Path, *, now: int, seed: int, agent_id: str = "") -> None:
        self.story, self.cwd, self.agent_id = story, cwd, agent_id
        self._seed, self._drawn = seed, 0
        self.session_id = self._uuid()
        self.records: list[dict[str, Any]] = []
        self.agents: list[tuple[Session, dict[str, Any]]] = []
        self.now = now - int(story.hours_ago * _HOUR)
        self._end = now
        self._parent: str | None = None
        self._typed_under: list[str | None] = []
        self._said: list[dict[str, Any]] = []
        self._context = 14_000

    def _hex(self, digits: int) -> str:
        """The next `digits` hexadecimal digits that this session draws."""
        self._drawn += 1
        name = f"{self._seed}/{self.story.title}/{self.agent_id}/{self._drawn}"
        return hashlib.shake_128(name.encode()).hexdigest(digits // 2)

    def _uuid(self) -> str:
        text = self._hex(32)
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"

    def _time(self, seconds: float) -> str:
        self.now = min(self.now + int(seconds * 1e6), self._end)
        return f"{format_time(self.now)[:23]}Z"

    def _add(self, kind: str, body: dict[str, Any], *, seconds: float = 1.0, parent: str | None = "") -> str:
        """A record under `parent` ("": under the last one); gives its uuid."""
        record: dict[str, Any] = {
            "parentUuid": self._parent if parent == "" else parent,
            "isSidechain": bool(self.agent_id),
            "userType": "external",
            "cwd": str(self.cwd),
            "sessionId": self.session_id,
            "version": _VERSION,
            "gitBranch": self.story.branch,
        }
        if self.agent_id:
            record["agentId"] = self.agent_id
        record |= {"type": kind, **body, "uuid": self._uuid(), "timestamp": self._time(seconds)}
        self.records.append(record)
        self._parent = record["uuid"]
        return str(record["uuid"])

    def go_on_from(self, earlier: Session) -> None:
        """Begin as a resume does: with the earlier session's lines under their own uuids."""
        kept = [record for record in earlier.records if "uuid" in record]
        self.records = [record | {"sessionId": self.session_id} for record in kept]
        self._parent = earlier._parent
        self._context = earlier._context

    def entitle(self) -> None:
        """Add the title that the agent made up, as it does once the first turn is over."""
        title = {"type": "ai-title", "sessionId": self.session_id, "aiTitle": self.story.title}
        self.records.insert(len(self.records) - 1, title)

    def play(self, step: Step) -> None:
        """Add what one step of the story makes."""
        match step:
            case User(text, after):
                self.close()
                self._typed_under.append(self._parent)
                self._add("user", {"message": {"role": "user", "content": text}}, seconds=after * 60)
            case Think(text):
                signature = self._hex(300)
                self._said.append({"type": "thinking", "thinking": text, "signature": signature})
            case Say(text):
                self._said.append({"type": "text", "text": text})
            case Together(calls):
                self._call(calls)
            case Bash() | Read() | Edit() | Agent():
                self._call((step,))
            case Rewind(to):
                self.close()
                self._parent = self._typed_under[to]
            case Compact(summary):
                self.close()
                self._compact(summary)

    def _compact(self, summary: str) -> None:
        meta = {"trigger": "auto", "preTokens": 155_000}
        body = {"logicalParentUuid": self._parent, "subtype": "compact_boundary", "level": "info"}
        self._add(
            "system", body | {"content": "Conversation compacted", "compactMetadata": meta}, parent=None
        )
        flags = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        self._add("user", {"message": {"role": "user", "content": _RESUMED + summary}} | flags)

    def close(self) -> None:
        """Write down what the agent has said since the last result: one API message, a record a block."""
        if self._said:
            self._api_message(self._said)

    def _api_message(self, blocks: list[dict[str, Any]]) -> list[str]:
        length = len(_encode(blocks)) // 4
        usage = {"input_tokens": 4, "cache_read_input_tokens": self._context, "output_tokens": length}
        usage["cache_creation_input_tokens"] = length * 2
        self._context += length * 3
        message = {
            "id": f"msg_01{self._hex(22)}",
            "type": "message",
            "role": "assistant",
            "model": _MODEL,
        }
        request = f"req_01{self._hex(22)}"
        self._said = []
        return [
            self._add(
                "assistant",
                {"message": message | {"content": [block], "usage": usage}, "requestId": request},
                seconds=2.0 + len(_encode(block)) / 90,
            )
            for block in blocks
        ]

    def _call(self, calls: tuple[Bash | Read | Edit | Agent, ...]) -> None:
        """What was said so far and the calls, as one API message; then each result under its own call."""
        ids = [f"toolu_01{self._hex(22)}" for _ in calls]
        asks = [
            {"type": "tool_use", "id": tool_id, "name": name, "input": asked}
            for tool_id, (name, asked) in zip(ids, (self._asked(call) for call in calls), strict=True)
        ]
        uuids = self._api_message(self._said + asks)[-len(calls) :]
        for call, tool_id, uuid in zip(calls, ids, uuids, strict=True):
            content, result, is_error = self._answer(call, tool_id)
            block = {"tool_use_id": tool_id, "type": "tool_result", "content": content, "is_error": is_error}
            body = {"message": {"role": "user", "content": [block]}, "toolUseResult": result}
            self._add("user", body | {"sourceToolAssistantUUID": uuid}, seconds=3.0, parent=uuid)

    def _path(self, path: str) -> str:
        return f"{self.cwd}/{path}"

    def _asked(self, call: Bash | Read | Edit | Agent) -> tuple[str, dict[str, Any]]:
        match call:
            case Bash(command):
                return "Bash", {"command": command}
            case Read(path):
                return "Read", {"file_path": self._path(path)}
            case Edit(path, old, new):
                return "Edit", {"file_path": self._path(path), "old_string": old, "new_string": new}
            case Agent(description, prompt):
                asked = {"description": description, "prompt": prompt}
                return "Task", asked | {"subagent_type": "general-purpose"}

    def _answer(self, call: Bash | Read | Edit | Agent, tool_id: str) -> tuple[Any, Any, bool]:
        """(what the model sees, what the program keeps beside it, did it fail?)"""
        match call:
            case Bash(_, output, failed):
                text = f"Exit code 1\n{output}" if failed else output
                kept = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
                return text, f"Error: {text}" if failed else kept, failed
            case Read(path, text, start):
                lines = text.split("\n")
                shown = "\n".join(f"{at:6d}→{line}" for at, line in enumerate(lines, start))
                kept = {
                    "filePath": self._path(path),
                    "content": text,
                    "numLines": len(lines),
                    "startLine": start,
                }
                return shown, {"type": "text", "file": kept}, False
            case Edit(path, old, new):
                kept = {"filePath": self._path(path), "oldString": old, "newString": new, "replaceAll": False}
                return f"The file {self._path(path)} has been updated.", kept, False
            case Agent():
                return self._sub_agent(call, tool_id)

    def _sub_agent(self, call: Agent, tool_id: str) -> tuple[Any, Any, bool]:
        agent_id = f"a{self._hex(16)}"
        agent = Session(self.story, self.cwd, now=self._end, seed=self._seed, agent_id=agent_id)
        agent.session_id, agent.now = self.session_id, self.now
        for step in (User(call.prompt, 0.0), *call.steps, Say(call.answer)):
            agent.play(step)
        agent.close()
        self.now = agent.now
        sidecar = {"agentType": "general-purpose", "description": call.description, "toolUseId": tool_id}
        self.agents.append((agent, sidecar | {"spawnDepth": 1}))
        content = [{"type": "text", "text": call.answer}]
        kept = {"status": "completed", "agentId": agent_id, "prompt": call.prompt, "content": content}
        return content, kept, False

    def write(self, claude_home: Path) -> Path:
        """Write the file, and those of its sub-agents, under `claude_home`; gives its path."""
        folder = claude_home / "projects" / _NOT_IN_A_FOLDER.sub("-", str(self.cwd))
        path = folder / f"{self.session_id}.jsonl"
        _write(path, self.encoded())
        for agent, sidecar in self.agents:
            beside = folder / self.session_id / "subagents"
            _write(beside / f"agent-{agent.agent_id}.jsonl", agent.encoded())
            _write(beside / f"agent-{agent.agent_id}.meta.json", _encode(sidecar))
        return path

    def encoded(self) -> bytes:
        """The lines of the file, with its wounds if it has some."""
        lines = [_encode(record) + b"\n" for record in self.records]
        if self.story.is_damaged:
            lines.insert(len(lines) // 2, b"\0" * _NULS + b"\n")
            lines[-1] = lines[-1][:-60]
        return b"".join(lines)
