"""A Codex home of any size, made up from a seed, in the shape that 0.171 writes: `write_corpus` is the way in.

Owns the shape of a rollout's lines and how much of them is what: calls and their outputs, events that say the
same again, encrypted thoughts, world states, token counts told twice, compactions that keep the whole history
with its pictures, forks that copy it. The texts are those of the other corpus, so that a word is as rare in
both. Nothing in it was ever said by anyone.
"""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from bench.corpus.project import Project
from bench.corpus.tools import Call, Habits, tool_call
from bench.corpus.words import base64_text, hex_text, image_text, prose

_FIRST_START = 1_769_900_000_000
_MEAN_MEGABYTES = 2.0
_MODELS = ("gpt-5-codex", "gpt-5-codex", "gpt-5.2-codex", "gpt-5.6-sol")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEPT_MESSAGES = 40
_encode = msgspec.json.Encoder().encode


class Plan(Struct, frozen=True, kw_only=True):
    """How much to write: `megabytes` (of 1,000,000 bytes) over `sessions` (0: as many as real homes have).

    `compactions`: after how many lines one comes, on the average (0: none).
    """

    megabytes: float
    sessions: int = 0
    seed: int = 1
    compactions: int = 1500
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


def uuid7(rng: random.Random, milliseconds: int) -> str:
    """A UUIDv7 of that time."""
    text = f"{milliseconds:012x}7{hex_text(rng, 3)}8{hex_text(rng, 15)}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Rollout:
    """One session that grows by turns. `lines` are encoded records, `size` their bytes with the line ends."""

    def __init__(self, rng: random.Random, project: Project, started: int, plan: Plan) -> None:
        self.rng, self.project, self.plan = rng, project, plan
        self.now = started
        self.session = uuid7(rng, started)
        self.name = f"rollout-{self._time(0)[:19].replace(':', '-')}-{self.session}.jsonl"
        self.lines: list[bytes] = []
        self.size = 0
        self.messages = 0
        self._kept: list[dict[str, Any]] = []
        self._turn = ""
        self._model = rng.choice(_MODELS)
        self._total = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
        self._next_compaction = self._after()

    def _after(self) -> int:
        most = self.plan.compactions
        return len(self.lines) + self.rng.randrange(most // 2, 2 * most) if most else 1 << 60

    def _time(self, seconds: float) -> str:
        self.now += int(seconds * 1000)
        moment = (_EPOCH + timedelta(milliseconds=self.now)).replace(tzinfo=None)
        return f"{moment.isoformat(timespec='milliseconds')}Z"

    def line(self, kind: str, payload: dict[str, Any], seconds: float = 0.02) -> None:
        """Append a record."""
        record = {
            "timestamp": self._time(seconds),
            "ordinal": len(self.lines),
            "type": kind,
            "payload": payload,
        }
        line = _encode(record)
        self.lines.append(line)
        self.size += len(line) + 1

    def event(self, kind: str, **fields: Any) -> None:
        """Append an event."""
        self.line("event_msg", {"type": kind, **fields})

    def item(self, kind: str, fields: dict[str, Any], seconds: float = 0.3) -> None:
        """Append an item of the conversation."""
        metadata = {"history_sequence": len(self.lines), "client_authored": False}
        own = {
            "type": kind,
            "id": f"{kind[:3]}_{uuid7(self.rng, self.now)}",
            **fields,
            "internal_chat_message_metadata_passthrough": {"turn_id": self._turn},
            "metadata": metadata,
        }
        self.line("response_item", own, seconds)
        if kind == "message":
            self._kept = [*self._kept[1 - _KEPT_MESSAGES :], own]

    def open(self, forked_from: str = "") -> None:
        """The header, and what the program tells the model before the first prompt."""
        page = prose(self.rng, self.project.phrases, self.project.names, 20_000)
        header = {
            "session_id": self.session,
            "id": self.session,
            "timestamp": self._time(0),
            "cwd": self.project.root,
            "originator": "codex_exec",
            "cli_version": "0.171.0",
            "source": "cli",
            "model_provider": "openai",
            "base_instructions": {"text": page},
            "history_mode": "paginated",
            "git": {"commit_hash": hex_text(self.rng, 40), "branch": "main"},
        }
        self.line("session_meta", header | ({"forked_from_id": forked_from} if forked_from else {}))

    def copy(self, earlier: Rollout) -> None:
        """The lines of an earlier session, as a fork copies them: with new times and ordinals."""
        for line in earlier.lines:
            record = msgspec.json.decode(line)
            self.line(record["type"], record["payload"], 0.0)
        self.now += 60_000

    def turn(self) -> None:
        """A prompt, some steps, an answer."""
        rng, project = self.rng, self.project
        self._turn = uuid7(rng, self.now)
        self.event("task_started", turn_id=self._turn, model_context_window=258_400)
        context = {
            "full": False,
            "state": {"host_skills": {"body": prose(rng, project.phrases, project.names, 1500)}},
        }
        self.line("world_state", context)  # fmt: skip
        self.line("turn_context", {"turn_id": self._turn, "cwd": project.root, "model": self._model})
        self._prompt(prose(rng, project.phrases, project.names, int(min(rng.lognormvariate(4.3, 1.3), 6000))))
        for _ in range(1 + int(rng.lognormvariate(1.6, 0.9))):
            self._step()
            if len(self.lines) > self._next_compaction:
                self._compact()
        self._say(int(min(rng.lognormvariate(5.75, 1.0), 6000)), "final_answer")
        self._count()
        self.event("task_complete", turn_id=self._turn, last_agent_message="")

    def _prompt(self, text: str) -> None:
        content: list[dict[str, Any]] = [{"type": "input_text", "text": text}]
        if self.rng.random() < 0.02:
            data = image_text(self.rng, int(min(self.rng.lognormvariate(11.5, 0.7), 900_000)))
            content.append({"type": "input_image", "image_url": f"data:image/png;base64,{data}"})
        self.item("message", {"role": "user", "content": content}, 40.0)
        inner = {"type": "UserMessage", "content": [{"type": "text", "text": text}]}
        self.event("item_completed", thread_id=self.session, item=inner)
        self.messages += 1

    def _step(self) -> None:
        """One response that thinks, now and then speaks, and makes a call or two; what they gave."""
        rng = self.rng
        thoughts = prose(rng, self.project.phrases, self.project.names, 160) if rng.random() < 0.4 else ""
        if thoughts:
            self.event("agent_reasoning", text=thoughts)
        self.item(
            "reasoning",
            {
                "summary": [{"type": "summary_text", "text": thoughts}] if thoughts else [],
                "encrypted_content": base64_text(rng, 4 * int(min(rng.lognormvariate(5.8, 0.8), 3000))),
            },
        )
        if rng.random() < 0.25:
            self._say(120, "commentary")
        calls = [
            (f"call_{hex_text(rng, 24)}", tool_call(rng, self.project, self.plan.habits))
            for _ in range(1 + (rng.random() < 0.15))
        ]
        for call_id, call in calls:
            asked = _encode(call.input).decode()
            self.item("function_call", {"name": "exec_command", "arguments": asked, "call_id": call_id})
        self._count()
        for call_id, call in calls:
            self._result(call_id, call)

    def _result(self, call_id: str, call: Call) -> None:
        text = call.output if isinstance(call.output, str) else _encode(call.output).decode()
        shown = f"Chunk ID: {hex_text(self.rng, 6)}\nProcess exited with code {int(call.is_error)}\nOutput:\n{text}"
        done = {"type": "CommandExecution", "id": call_id, "aggregated_output": text, "exit_code": 0}
        self.event("item_completed", thread_id=self.session, item=done)
        self.item("function_call_output", {"call_id": call_id, "output": shown})
        self.messages += 1

    def _say(self, length: int, phase: str) -> None:
        text = prose(self.rng, self.project.phrases, self.project.names, length)
        inner = {"type": "AgentMessage", "content": [{"type": "Text", "text": text}], "phase": phase}
        self.event("item_completed", thread_id=self.session, item=inner)
        content = [{"type": "output_text", "text": text}]
        self.item("message", {"role": "assistant", "content": content, "phase": phase})
        self.messages += phase == "final_answer"

    def _count(self) -> None:
        last = {
            "input_tokens": self.rng.randrange(9_000, 90_000),
            "output_tokens": self.rng.randrange(20, 900),
        }
        last["cached_input_tokens"] = last["input_tokens"] * 9 // 10
        self._total = {name: self._total[name] + last[name] for name in self._total}
        self.line("token_usage_record", {"usage": last, "thread_token_usage": self._total})
        info = {"total_token_usage": self._total, "last_token_usage": last}
        self.event("token_count", info=info, rate_limits={"primary": {"used_percent": 1.0}})
        self.messages += 1

    def _compact(self) -> None:
        summary = prose(self.rng, self.project.phrases, self.project.names, 6000)
        self.line("compacted", {"message": summary, "replacement_history": self._kept})
        self._next_compaction = self._after()
        self.messages += 1


def write_corpus(directory: str, plan: Plan) -> Written:
    """Write `plan` under `directory`, which becomes a `.codex` folder. The same plan gives the same bytes."""
    rng = random.Random(f"{plan.seed}/codex")
    done = Written()
    projects = [
        Project(f"{plan.seed}/codex", at, scale=1.0) for at in range(min(max(plan.count // 20, 2), 12))
    ]
    drawn = [rng.lognormvariate(0, 1.0) for _ in range(plan.count)]
    earlier: Rollout | None = None
    owed = 0.0
    for at, share in enumerate(drawn):
        owed += share / sum(drawn) * plan.megabytes * 1e6
        own = random.Random(f"{plan.seed}/codex/{at}")
        started = _FIRST_START + at * 25_000_000_000 // plan.count
        rollout = Rollout(own, own.choice(projects), started, plan)
        forks = earlier is not None and earlier.size < owed / 2 and own.random() < 0.2
        rollout.open(earlier.session if earlier is not None and forks else "")
        if earlier is not None and forks:
            rollout.copy(earlier)
        rollout.turn()
        while rollout.size < owed:
            rollout.turn()
        owed -= rollout.size
        earlier = rollout
        _write(directory, rollout, done)
    return done


def _write(directory: str, rollout: Rollout, done: Written) -> None:
    day = rollout.name.removeprefix("rollout-")[:10].split("-")
    folder = os.path.join(directory, "sessions", *day)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, rollout.name), "wb") as file:
        file.write(b"\n".join(rollout.lines) + b"\n")
        done.bytes += file.tell()
    done.files += 1
    done.messages += rollout.messages
