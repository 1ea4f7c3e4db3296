"""A Gemini CLI home of any size, made up from a seed, in the shapes of its versions: `write_corpus` is the way in.

Owns the shape of its records and how much of them is what: answers that are written again with their calls, results
that stand in a call, in its display and as the user's, histories given back at a resume, outputs that are masked,
compressions, steps back; and, for a share of the sessions, the printed documents of older versions. The texts are
those of the other corpus, so that a word is as rare in both. Nothing in it was ever said by anyone.
"""

from __future__ import annotations

import hashlib
import os
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from bench.corpus.project import Project
from bench.corpus.tools import Habits, tool_call
from bench.corpus.words import hex_text, image_text, prose, uuid_text

_FIRST_START = 1_769_900_000_000
_MEAN_MEGABYTES = 1.2
_MODELS = ("gemini-2.5-pro", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro-preview")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONTEXT_ID = hashlib.sha256(b"environment-context").hexdigest()[:32]
_encode = msgspec.json.Encoder().encode

Plain = dict[str, Any]


class Plan(Struct, frozen=True, kw_only=True):
    """How much to write: `megabytes` (of 1,000,000 bytes) over `sessions` (0: as many as real homes have).

    `old`: which share of the sessions are documents. `events`: after how many turns the history is given back,
    masked or compressed, or the person steps back, on the average (0: never).
    """

    megabytes: float
    sessions: int = 0
    seed: int = 1
    old: float = 0.3
    events: int = 12
    habits: Habits = Habits()

    @property
    def count(self) -> int:
        """The number of sessions."""
        return self.sessions or max(round(self.megabytes / _MEAN_MEGABYTES), 3)


class Written(Struct, kw_only=True):
    """What was written: `bytes`, `files`, `messages`."""

    bytes: int = 0
    files: int = 0
    messages: int = 0


class Session:
    """One session that grows by turns. `data` is its file, `size` about how long that is so far."""

    def __init__(self, rng: random.Random, project: Project, started: int, plan: Plan) -> None:
        self.rng, self.project, self.plan = rng, project, plan
        self.now = started
        self.id = uuid_text(rng)
        self.is_old = rng.random() < plan.old
        stem = f"session-{self._time(0)[:16].replace(':', '-')}-{self.id[:8]}"
        self.name = stem + (".json" if self.is_old else ".jsonl")
        self.size = 0
        self.messages = 0
        self._model = rng.choice(_MODELS)
        self._lines: list[bytes] = []
        self._records: list[Plain] = []
        self._typed: list[str] = []
        self._befallen = rng.randrange(2)
        self._head = {
            "sessionId": self.id,
            "projectHash": hashlib.sha256(project.root.encode()).hexdigest(),
            "startTime": self._time(0),
            "lastUpdated": self._time(0),
        }
        if not self.is_old:
            self._line({**self._head, "kind": "main"})
            self._begin()

    def _time(self, seconds: float) -> str:
        self.now += int(seconds * 1000)
        moment = (_EPOCH + timedelta(milliseconds=self.now)).replace(tzinfo=None)
        return f"{moment.isoformat(timespec='milliseconds')}Z"

    def _line(self, value: Plain) -> None:
        if not self.is_old:
            line = _encode(value)
            self._lines.append(line)
            self.size += len(line) + 1

    def _put(self, record: Plain, seconds: float) -> Plain:
        made = {"id": uuid_text(self.rng), "timestamp": self._time(seconds), **record}
        self._records.append(made)
        self._write(made)
        self.messages += 1
        return made

    def _write(self, record: Plain) -> None:
        self._line(record)
        self._line({"$set": {"lastUpdated": self._time(0)}})
        if self.is_old:
            self.size += len(_encode(record)) * 6 // 5

    def _begin(self) -> None:
        listing = "\n".join(f"├───{path}" for path in self.project.paths(self.rng, 150))
        text = (
            "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n"
            f"- **Workspace Directories:**\n  - {self.project.root}\n- **Directory Structure:**\n\n{listing}\n"
            "</session_context>"
        )
        record = {"id": _CONTEXT_ID, "timestamp": self._time(0), "type": "user", "content": [{"text": text}]}
        self._records.append(record)
        self._line({"$set": {"messages": [record], "lastUpdated": self._time(0)}})
        self.messages += 1

    def turn(self) -> None:
        """A prompt, some steps, an answer; now and then something befalls the history."""
        rng, project = self.rng, self.project
        if self._typed and self.plan.events and rng.random() < 1 / self.plan.events and not self.is_old:
            befalls = (self._step_back, self._mask, self._compress, self._give_back)
            befalls[self._befallen % len(befalls)]()
            self._befallen += 1
        text = prose(rng, project.phrases, project.names, int(min(rng.lognormvariate(4.3, 1.3), 6000)))
        content: Any = text if self.is_old else [{"text": text}]
        if rng.random() < 0.02:
            data = image_text(rng, int(min(rng.lognormvariate(11.5, 0.7), 900_000)))
            content = [{"text": text}, {"inlineData": {"mimeType": "image/png", "data": data}}]
        self._typed.append(self._put({"type": "user", "content": content}, 40.0)["id"])
        for _ in range(1 + int(rng.lognormvariate(1.5, 0.9))):
            self._step()
        self._say(int(min(rng.lognormvariate(5.75, 1.0), 6000)))
        if rng.random() < 0.03:
            self._put({"type": "info", "content": "Gemini CLI update available!"}, 0.1)

    def _say(self, length: int) -> Plain:
        rng = self.rng
        thoughts = [
            {
                "subject": " ".join(self.project.words.draw(rng, 3)),
                "description": text,
                "timestamp": self._time(0),
            }
            for text in (
                prose(rng, self.project.phrases, self.project.names, 240) for _ in range(rng.randrange(3))
            )
        ]
        given, cached = rng.randrange(9_000, 90_000), rng.randrange(9_000)
        used = {"input": given, "output": length // 4, "cached": cached, "thoughts": 60, "tool": 0}
        return self._put(
            {
                "type": "gemini",
                "content": prose(rng, self.project.phrases, self.project.names, length) if length else "",
                "thoughts": thoughts,
                "tokens": used | {"total": given + length // 4 + 60},
                "model": self._model,
            },
            3.0,
        )

    def _step(self) -> None:
        """One answer that makes a call or two, written again when they are done; their results, once more."""
        rng = self.rng
        said = self._say(120 if rng.random() < 0.3 else 0)
        made: list[Plain] = []
        for number in range(1 + (rng.random() < 0.15)):
            call = tool_call(rng, self.project, self.plan.habits)
            call_id = f"run_{call.name.lower()}_{self.now}_{number}"
            text = call.output if isinstance(call.output, str) else _encode(call.output).decode()
            response = {"error" if call.is_error else "output": text}
            made.append(
                {
                    "id": call_id,
                    "name": call.name,
                    "args": call.input,
                    "result": [
                        {"functionResponse": {"id": call_id, "name": call.name, "response": response}}
                    ],
                    "status": "error" if call.is_error else "success",
                    "timestamp": self._time(call.seconds),
                    "resultDisplay": text[: rng.randrange(4000)],
                    "description": prose(rng, self.project.phrases, self.project.names, 300),
                    "displayName": call.name,
                    "renderOutputAsMarkdown": True,
                }
            )
        self.messages += len(made)
        if self.is_old:
            self.size += len(_encode(made)) * 6 // 5
        said["toolCalls"] = made
        self._line(said)
        if not self.is_old:
            results = [part for call in made for part in call["result"]]
            self._put({"type": "user", "content": results}, 0.1)
            self.messages -= 1

    def _history(self) -> list[Plain]:
        """The messages as the program takes them out of its history."""
        made: list[Plain] = []
        for record in self._records:
            if record["type"] not in ("user", "gemini"):
                continue
            content = record["content"]
            parts: list[Plain] = (
                [{"text": content}] if isinstance(content, str) and content else content or []
            )
            calls = record.get("toolCalls", [])
            asked = [
                {"functionCall": {name: call[name] for name in ("id", "name", "args")}} for call in calls
            ]
            made.append({**record, "content": [*parts, *asked]})
        return made

    def _give_back(self) -> None:
        self._line({"$set": {"sessionId": self.id}})
        self._line({"$set": {"messages": self._history(), "lastUpdated": self._time(600)}})

    def _mask(self) -> None:
        """Long results of long ago are put out of the way."""
        made = self._history()
        for record in made[:-4]:
            if "toolCalls" in record:
                masked = {"output": f"<tool_output_masked>{hex_text(self.rng, 12)}</tool_output_masked>"}
                record["toolCalls"] = [
                    {**call, "result": [{"functionResponse": {"id": call["id"], "response": masked}}]}
                    for call in record["toolCalls"]
                ]
        self._line({"$set": {"messages": made, "lastUpdated": self._time(1)}})

    def _compress(self) -> None:
        rng, tail = self.rng, self._history()[-12:]
        summary = prose(rng, self.project.phrases, self.project.names, 6000)
        self._records = []
        self._put({"type": "user", "content": [{"text": f"<state_snapshot>{summary}</state_snapshot>"}]}, 9)
        self._put({"type": "gemini", "content": [{"text": "Got it. Thanks for the additional context!"}]}, 0)
        for record in tail:
            self._put({"type": record["type"], "content": record["content"]}, 0)
            self.messages -= 1
        self._line({"$set": {"messages": self._records, "lastUpdated": self._time(0)}})
        self._typed = []

    def _step_back(self) -> None:
        at = self._typed.pop(self.rng.randrange(max(len(self._typed) - 4, 0), len(self._typed)))
        places = [number for number, record in enumerate(self._records) if record["id"] == at]
        if places:
            self._line({"$rewindTo": at})
            self._records = self._records[: places[0]]
            self._typed = [one for one in self._typed if any(record["id"] == one for record in self._records)]

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        if self.is_old:
            whole = {**self._head, "messages": self._records, "summary": "A made-up session"}
            return msgspec.json.format(_encode(whole), indent=2)
        return b"\n".join(self._lines) + b"\n"


def write_corpus(directory: str, plan: Plan) -> Written:
    """Write `plan` under `directory`, which becomes a `.gemini` folder. The same plan gives the same bytes."""
    rng = random.Random(f"{plan.seed}/gemini-cli")
    done = Written()
    seed = f"{plan.seed}/gemini-cli"
    projects = [Project(seed, at, scale=1.0) for at in range(min(max(plan.count // 20, 2), 12))]
    drawn = [rng.lognormvariate(0, 1.0) for _ in range(plan.count)]
    owed = 0.0
    for at, share in enumerate(drawn):
        owed += share / sum(drawn) * plan.megabytes * 1e6
        own = random.Random(f"{seed}/{at}")
        project = own.choice(projects)
        session = Session(own, project, _FIRST_START + at * 25_000_000_000 // plan.count, plan)
        session.turn()
        while session.size < owed:
            session.turn()
        owed -= session.size
        _write(directory, project, session, done)
    slugs = {project.root: project.name for project in projects}
    with open(os.path.join(directory, "projects.json"), "wb") as file:
        file.write(_encode({"projects": slugs}))
    return done


def _write(directory: str, project: Project, session: Session, done: Written) -> None:
    folder = os.path.join(directory, "tmp", project.name)
    os.makedirs(os.path.join(folder, "chats"), exist_ok=True)
    with open(os.path.join(folder, ".project_root"), "w", encoding="utf-8") as mark:
        mark.write(project.root)
    with open(os.path.join(folder, "chats", session.name), "wb") as file:
        file.write(session.data)
        done.bytes += file.tell()
    done.files += 1
    done.messages += session.messages
