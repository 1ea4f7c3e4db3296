"""Which call started which sub-agent, gathered while a session is read.

Owns the four traces Claude Code leaves of it, best first: the call id in the file beside the sub-agent's, the
agent's id in the result or the progress of the call, and the call's prompt, which is the agent's first line.
"""

from __future__ import annotations

import re

from raddle.actions.importing.bounded import keep_first
from raddle.actions.importing.claude_code_lines import OutcomeLine, ProgressLine, StartedAgent
from raddle.actions.importing.fitting import decoded
from raddle.actions.importing.importer import Anchor, Links, prompt_digest
from raddle.model.threads.message import ToolCall

_REMEMBERED = 512
"""Calls that are remembered: a state grows by some 150 bytes for each."""
_STARTERS = frozenset(("Task", "Agent", "Workflow"))
_AGENT_ID = re.compile(r"\bagentId: ?([A-Za-z0-9_-]+)")
_RUN = "run:"


class Agents:
    """The calls of one file that may start sub-agents, and what is known of them."""

    def __init__(self, known: Links | None = None) -> None:
        known = known or Links()
        self.session_id = known.session_id
        self._given = known
        self._calls: dict[str, Anchor] = {}
        self._agents: dict[str, str] = {}
        self._prompts: dict[str, str] = {}
        self._unlinked: set[str] = set()

    def see_call(self, call: ToolCall, anchor: Anchor) -> None:
        """A message makes a call; remember it where it may start a sub-agent."""
        arguments = call.arguments_json if isinstance(call.arguments_json, dict) else {}
        if not call.id or not (call.tool_name in _STARTERS or "subagent_type" in arguments):
            return
        keep_first(self._calls, call.id, anchor, _REMEMBERED)
        self._unlinked.add(call.id)
        if len(self._unlinked) > _REMEMBERED:
            self._unlinked &= self._calls.keys()
        prompt = arguments.get("prompt")
        if isinstance(prompt, str):
            keep_first(self._prompts, prompt_digest(prompt), call.id, _REMEMBERED)

    def see_progress(self, call_id: str, line: bytes) -> None:
        """A progress line of a call; the first that names an agent tells which one the call started."""
        if call_id in self._unlinked:
            found = decoded(line, ProgressLine)
            if found is not None and found.data is not None:
                self._link(call_id, found.data)

    def see_result(self, call_id: str, content: str, line: bytes) -> None:
        """The result of a call names what it started."""
        if call_id not in self._unlinked:
            return
        found = decoded(line, OutcomeLine)
        if found is not None and found.tool_use_result is not None:
            self._link(call_id, found.tool_use_result)
        if call_id in self._unlinked and (named := _AGENT_ID.search(content)) is not None:
            self._link(call_id, StartedAgent(agent_id=named.group(1)))
        self._unlinked.discard(call_id)

    def _link(self, call_id: str, started: StartedAgent) -> None:
        if started.run_id:
            keep_first(self._agents, _RUN + started.run_id, call_id, _REMEMBERED)
        if started.agent_id:
            keep_first(self._agents, started.agent_id, call_id, _REMEMBERED)
        if started.agent_id or started.run_id:
            self._unlinked.discard(call_id)

    def starter_of(self, agent_id: str, prompt: str, *, call_id: str = "", run_id: str = "") -> Anchor | None:
        """The message that started a sub-agent."""
        links = self.links(self.session_id)
        digest = prompt_digest(prompt)
        for one in (
            call_id,
            links.agents.get(agent_id, ""),
            links.agents.get(_RUN + run_id, ""),
            links.prompts.get(digest, ""),
        ):
            if one in links.calls:
                return links.calls[one]
        return None

    def links(self, session_id: str) -> Links:
        """All that is known, for the session's other files."""
        own = Links(session_id=session_id, calls=self._calls, agents=self._agents, prompts=self._prompts)
        return own.joined(self._given)

    def memory(self) -> tuple[Links, list[str]]:
        """What this file told, and the calls that are not linked yet."""
        own = Links(calls=self._calls, agents=self._agents, prompts=self._prompts)
        return own, [call_id for call_id in self._calls if call_id in self._unlinked]

    def recall(self, own: Links, unlinked: list[str]) -> None:
        """Go on where `memory` was taken."""
        self._calls, self._agents, self._prompts = dict(own.calls), dict(own.agents), dict(own.prompts)
        self._unlinked = set(unlinked)
