"""One Claude Code session of the corpus, record by record, with the artefacts real ones are full of.

Owns the shape of a record and of the tree they make: API messages split over records, parallel calls,
progress chains, hooks, compactions, rewinds, replays, glued lines. Sizes of what tools say are elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from bench.corpus.project import Project
from bench.corpus.recorder import VERSIONS, Facts, Recorder
from bench.corpus.tools import Call, Habits, huge_edit, tool_call
from bench.corpus.words import (
    EMOJI,
    api_id,
    base64_text,
    cjk_text,
    hex_text,
    image_text,
    prose,
    uuid_text,
)

MODELS = (
    "claude-opus-4-5-20251101",
    "claude-opus-4-5-20251101",
    "claude-sonnet-4-5-20250929",
    "claude-haiku-4-5-20251001",
)
_BOUNDARY = "This session goes on with a conversation that ran out of context. What was said so far:"
_CAVEAT = "<local-command-caveat>Local commands wrote what follows. Do not answer it.</local-command-caveat>"


class Session(Recorder):
    """A session that grows by turns. `lines` are the encoded records; `agents` the sub-agents with files of
    their own, by id. `messages` counts as a reader does: an API message, a tool result, a typed text is one.
    """

    def __init__(self, rng: random.Random, project: Project, habits: Habits, facts: Facts) -> None:
        super().__init__(rng, project.root, facts)
        self.project, self.habits = project, habits
        self.agents: dict[str, Session] = {}
        self._model = rng.choice(MODELS)
        self._context = rng.randrange(9000, 36_000)
        self._typed: list[str | None] = []

    @property
    def whole_size(self) -> int:
        """Bytes so far, those of its sub-agents' files included."""
        return self.size + sum(agent.size for agent in self.agents.values())

    @property
    def whole_messages(self) -> int:
        """Messages so far, those of its sub-agents' files included, copied ones left out."""
        return self.messages + sum(agent.messages for agent in self.agents.values())

    def begin_with(self, earlier: list[dict[str, Any]]) -> None:
        """Open with records of an earlier session under their own uuids, as a resume copies them."""
        for record in earlier:
            self.put(record | {"sessionId": self.facts.session_id} if "sessionId" in record else record)
            self.parent = record.get("uuid", self.parent)

    def open(self) -> None:
        """The records before the first prompt: summaries of what came before, hooks that ran at the start."""
        rng = self.rng
        self.project.look_at(rng)
        if rng.random() < 0.25:
            for _ in range(rng.randrange(1, 6)):
                text = " ".join(self.project.words.draw(rng, 6)).capitalize()
                self.put({"type": "summary", "summary": text, "leafUuid": uuid_text(rng)})
        if self.facts.tool_hooks:
            tool_id = uuid_text(rng)
            for _ in range(2):
                self.hook("SessionStart", "SessionStart:startup", tool_id)

    def prompt_text(self) -> str:
        """What a person types: mostly a line, now and then a page, in some language."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.006:
            return cjk_text(rng, 40)
        length = min(rng.lognormvariate(4.3, 1.3), 6000)
        text = prose(rng, self.project.phrases, self.project.names, int(length))
        if draw < 0.05:
            text += f"\n\nsee {self.project.paths(rng, 1)[0]}:{rng.randrange(400)} at {hex_text(rng, 40)}"
        if draw > 0.99:
            text += f" {rng.choice(EMOJI)}"
        return text

    def prompt(self, text: str) -> None:
        """A typed text, a pasted image now and then, a command with its caveat; sometimes after a rewind."""
        rng = self.rng
        if len(self._typed) > 1 and rng.random() < 0.03:
            self.parent = rng.choice(self._typed[-4:])
        if rng.random() < 0.03:
            self.add("user", {"message": {"role": "user", "content": _CAVEAT}, "isMeta": True})
        if rng.random() < 0.05:
            self._command()
        self._typed.append(self.parent)
        content: Any = text
        if rng.random() < 0.012:
            data = image_text(rng, int(min(rng.lognormvariate(10.6, 0.7), 600_000) * self.habits.output))
            image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
            content = [image, {"type": "text", "text": text}]
        body: dict[str, Any] = {"message": {"role": "user", "content": content}}
        if not self.facts.agent_id:
            body |= {"thinkingMetadata": {"level": "high", "disabled": False, "triggers": []}, "todos": []}
            body["permissionMode"] = "default"
        uuid = self.add("user", body, seconds=rng.lognormvariate(4.0, 1.2) if self._typed[1:] else 1.0)
        if not self.facts.agent_id:
            self.snapshot(uuid, is_update=False)
        self.messages += 1

    def _command(self) -> None:
        """A slash command: its name as if typed, and the page of instructions it stands for."""
        name = self.project.names.one(self.rng)
        text = f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>"
        self.add("user", {"message": {"role": "user", "content": text}})
        page = prose(
            self.rng,
            self.project.phrases,
            self.project.names,
            int(self.rng.uniform(2000, 14_000) * self.habits.output),
        )
        block = {"type": "text", "text": f"# {name}\n\n{page}"}
        self.add("user", {"message": {"role": "user", "content": [block]}, "isMeta": True}, seconds=0.001)
        self.messages += 1

    def _usage(self, output_tokens: int) -> dict[str, Any]:
        fresh = self.rng.randrange(100, 4000)
        read, self._context = self._context, self._context + fresh
        return {
            "input_tokens": self.rng.randrange(1, 12),
            "cache_creation_input_tokens": fresh,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": fresh, "ephemeral_1h_input_tokens": 0},
            "output_tokens": output_tokens,
            "service_tier": "standard",
        }

    def _api_message(self, blocks: list[dict[str, Any]]) -> list[str]:
        """One API message, a record for each block; all but the last may know only the first tokens."""
        rng = self.rng
        message_id, request_id = api_id(rng, "msg"), api_id(rng, "req")
        first, last = rng.randrange(1, 12), rng.randrange(20, 1800)
        usage, uuids = self._usage(first), []
        for at, block in enumerate(blocks):
            if at == len(blocks) - 1 and rng.random() < 0.4:
                usage = {**usage, "output_tokens": last}
            message = {
                "model": self._model,
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": usage,
            }
            body = {"message": message, "requestId": request_id}
            uuids.append(self.add("assistant", body, seconds=rng.lognormvariate(0.2, 0.8)))
        self.messages += 1
        return uuids

    def _thoughts(self) -> list[dict[str, Any]]:
        rng, project, talk = self.rng, self.project, self.habits.talk
        blocks: list[dict[str, Any]] = []
        if rng.random() < 0.44:
            text = prose(
                rng, project.phrases, project.names, int(min(rng.lognormvariate(5.55, 1.2), 9000) * talk)
            )
            signature = base64_text(rng, 4 * int(min(rng.lognormvariate(5.2, 0.9), 2400) * talk))
            blocks.append({"type": "thinking", "thinking": text, "signature": signature})
        if rng.random() < 0.38:
            blocks.append(self._said(4.9))
        return blocks

    def _said(self, log_length: float) -> dict[str, Any]:
        length = int(min(self.rng.lognormvariate(log_length, 1.0), 6000) * self.habits.talk)
        return {"type": "text", "text": prose(self.rng, self.project.phrases, self.project.names, length)}

    def step(self, calls: list[Call]) -> None:
        """One API message that makes `calls`, what happens while they run, and their results."""
        rng = self.rng
        ids = [api_id(rng, "toolu") for _ in calls]
        asks = [
            {"type": "tool_use", "id": tool_id, "name": call.name, "input": call.input}
            for tool_id, call in zip(ids, calls, strict=True)
        ]
        thoughts = self._thoughts()
        uuids = self._api_message(thoughts + asks)[len(thoughts) :]
        is_chain = rng.random() < 0.3
        for at, call in enumerate(calls):
            if not is_chain:
                self.parent = uuids[at]
            self._progress(call, ids[at])
            self._result(call, ids[at], uuids[at], parent="" if is_chain else uuids[at])
            if call.changed_path and not self.facts.agent_id and rng.random() < 0.35:
                self._backup(call.changed_path, uuids[at])

    def _backup(self, path: str, uuid: str) -> None:
        version = self.backups[path]["version"] + 1 if path in self.backups else 1
        name = f"{hex_text(self.rng, 16)}@v{version}"
        entry = {"backupFileName": name, "version": version, "backupTime": self.time(0.01)}
        self.backups = dict([*self.backups.items(), (path, entry)][-8:])
        self.snapshot(uuid, is_update=True)

    def _result(self, call: Call, tool_id: str, asked_by: str, *, parent: str) -> None:
        block: dict[str, Any] = {"tool_use_id": tool_id, "type": "tool_result", "content": call.output}
        if call.is_error or call.name == "Bash":
            block["is_error"] = call.is_error
        body = {"message": {"role": "user", "content": [block]}, "toolUseResult": call.result}
        self.add("user", body | {"sourceToolAssistantUUID": asked_by}, seconds=0.1, parent=parent)
        self.messages += 1

    def _progress(self, call: Call, tool_id: str) -> None:
        rng = self.rng
        if self.facts.tool_hooks and rng.random() < 0.7:
            self.hook("PostToolUse", f"PostToolUse:{call.name}", tool_id)
        if call.name == "Bash" and call.seconds > 2:
            shown = call.output if isinstance(call.output, str) else ""
            for at in range(min(int(call.seconds), self.habits.patience)):
                part = shown[: 150 * (at + 1)]
                data: dict[str, Any] = {"type": "bash_progress", "output": part[-300:]}
                data |= {
                    "fullOutput": part[:1500],
                    "elapsedTimeSeconds": at + 2,
                    "totalLines": part.count("\n"),
                }
                ids = {"toolUseID": f"bash-progress-{at}", "parentToolUseID": tool_id}
                self.add("progress", {"data": data} | ids, seconds=1.0)
        if call.agent_task and not self.facts.agent_id:
            self._sub_agent(call, tool_id)
        if self.facts.drops_progress and rng.random() < 0.02:
            self.parent = uuid_text(rng)

    def _sub_agent(self, call: Call, tool_id: str) -> None:
        """The sub-agent that `call` starts: a file of its own, or inside progress records of this session."""
        agent_id = call.result["agentId"]
        facts = msgspec.structs.replace(self.facts, agent_id=agent_id, started=self.now, tool_hooks=False)
        agent = Session(self.rng, self.project, self.habits, facts)
        agent.prompt(call.agent_task)
        for _ in range(int(self.rng.uniform(3, 30) * self.habits.output) + 1):
            agent.step(
                [tool_call(self.rng, self.project, self.habits) for _ in range(1 + (self.rng.random() < 0.1))]
            )
        agent.close_turn()
        if self.facts.agent_files:
            self.agents[agent_id] = agent
            self.now = agent.now
            return
        keys = ("type", "message", "requestId", "uuid", "timestamp", "toolUseResult")
        for at, record in enumerate(agent.records):
            if record["type"] not in ("user", "assistant"):
                continue
            inner = {key: record[key] for key in keys if key in record}
            if self.rng.random() < 0.45:
                inner.pop("toolUseResult", None)
            prompt = call.agent_task if at == 0 else ""
            data = {"message": inner, "normalizedMessages": [], "type": "agent_progress", "prompt": prompt}
            ids = {"toolUseID": f"agent_{record['uuid'][:24]}", "parentToolUseID": tool_id}
            self.add("progress", {"data": data | {"agentId": agent_id}} | ids, seconds=1.0)

    def close_turn(self) -> None:
        """The agent's last words, the hooks that run when it stops, how long the turn took."""
        self._api_message([*self._thoughts()[:1], self._said(5.75)])
        if self.facts.agent_id:
            return
        if self.facts.stop_hooks:
            tool_id = uuid_text(self.rng)
            self.hook("Stop", "Stop", tool_id)
            body: dict[str, Any] = {
                "subtype": "stop_hook_summary",
                "hookCount": 1,
                "hookErrors": [],
                "hasOutput": True,
            }
            body["hookInfos"] = [{"command": "go run ${CLAUDE_PROJECT_DIR}/cmd/hooks/main.go stop"}]
            body |= {
                "preventedContinuation": False,
                "stopReason": "",
                "level": "suggestion",
                "toolUseID": tool_id,
            }
            self.add("system", body)
        if self.rng.random() < 0.5:
            body = {
                "subtype": "turn_duration",
                "durationMs": self.rng.randrange(900, 900_000),
                "isMeta": False,
            }
            self.add("system", body)

    def compact(self) -> None:
        """A compaction: a boundary without a parent, a summary the user never typed, the last lines again."""
        rng = self.rng
        before = self.parent
        meta = {
            "trigger": rng.choice(("auto", "auto", "manual")),
            "preTokens": rng.randrange(110_000, 170_000),
        }
        body: dict[str, Any] = {"logicalParentUuid": before, "subtype": "compact_boundary", "isMeta": False}
        body |= {"content": "Conversation compacted", "level": "info", "compactMetadata": meta}
        self.add("system", body, parent=None)
        said = prose(rng, self.project.phrases, self.project.names, int(9000 * self.habits.output))
        flags = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        self.add("user", {"message": {"role": "user", "content": f"{_BOUNDARY}\n{said}"}} | flags)
        self.messages += 1
        if rng.random() < 0.3:
            for line in [line for line in self.lines[-9:-3] if line.startswith(b'{"parentUuid"')]:
                again = msgspec.json.decode(line) | {"uuid": uuid_text(rng)}
                self.put(again)
        self._context = rng.randrange(9000, 30_000)

    def between(self) -> None:
        """What now and then happens between two turns: a queued prompt, an error, an upgrade, a branch."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.14:
            queued = {
                "type": "queue-operation",
                "operation": rng.choice(("enqueue", "dequeue")),
                "timestamp": self.time(1),
            }
            self.put(queued | {"sessionId": self.facts.session_id, "content": self.prompt_text()[:200]})
        elif draw < 0.17:
            error = {"status": 529, "error": {"type": "overloaded_error", "message": "Overloaded"}}
            body = {
                "subtype": "api_error",
                "level": "error",
                "error": error,
                "retryInMs": 560,
                "retryAttempt": 1,
            }
            self.add("system", body | {"maxRetries": 10})
        elif draw < 0.18:
            self.version = rng.choice(VERSIONS)
        elif draw < 0.2:
            self.branch = f"feat/{self.project.names.one(rng)}"
        elif draw < 0.25 and self.facts.glues_a_line and len(self.lines) > 3:
            self.lines[-2:] = [self.lines[-2] + self.lines[-1]]
        elif draw > 0.99:
            link = {"type": "pr-link", "sessionId": self.facts.session_id, "prNumber": rng.randrange(1, 900)}
            link["prUrl"] = f"https://example.com/{self.project.name}/pull/{link['prNumber']}"
            self.put(link | {"prRepository": f"dev/{self.project.name}", "timestamp": self.time(1)})

    def turn(self, is_done: Callable[[], bool]) -> None:
        """A prompt, the steps it takes, the last words; cut short when `is_done` says so."""
        rng = self.rng
        if rng.random() < 0.3:
            self.project.look_at(rng)
        self.prompt(self.prompt_text())
        for _ in range(int(min(rng.lognormvariate(1.75, 0.85), 90)) + 1):
            parallel = rng.choices((1, 2, 3, 7), weights=(95, 8, 2, 0.4))[0]
            self.step([tool_call(rng, self.project, self.habits) for _ in range(parallel)])
            if is_done():
                break
        self.close_turn()
        self.between()

    def huge_step(self, size: int) -> None:
        """A step whose record is about `size` bytes long."""
        self.step([huge_edit(self.rng, self.project, size)])
