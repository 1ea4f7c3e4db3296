"""Which call started which sub-agent: what a Gemini CLI session's files tell each other of that.

Owns how a sub-agent's file finds its call. Since mid-2026 the call names the sub-agent's session once that is done;
before, only its prompt tells: it holds an argument of the call, word for word.
"""

from __future__ import annotations

import re

from raddle.actions.importing.bounded import keep_first
from raddle.actions.importing.importer import Anchor, Links, prompt_digest
from raddle.model.threads.message import ToolCall

_REMEMBERED = 256
_STARTERS = frozenset(
    "invoke_agent delegate_to_agent codebase_investigator cli_help generalist generalist_agent browser_agent"
    " memory_manager".split()
)
_OBJECTIVE = re.compile(r"<(objective|question)>(.*)</\1>", re.DOTALL)


class Agents:
    """What is known of a session's sub-agents. `agent_id`: the one whose file this is; empty for a main file."""

    def __init__(self, given: Links | None, agent_id: str) -> None:
        self.is_unplaced = False
        """Was a sub-agent's own file begun without knowing the call that started it?"""
        self.agent_id = agent_id
        self._given = given or Links()
        self._own = Links()

    def see_call(self, call: ToolCall, message_id: str, order: int) -> None:
        """A call was made by that message: it may start a sub-agent."""
        if call.tool_name not in _STARTERS or not isinstance(call.arguments_json, dict):
            return
        keep_first(self._own.calls, call.id, Anchor(message_id, order), _REMEMBERED)
        for given in call.arguments_json.values():
            if isinstance(given, str) and given.strip():
                keep_first(self._own.prompts, prompt_digest(given), call.id, _REMEMBERED)

    def see_agent(self, agent_id: str, call_id: str, message_id: str, order: int) -> None:
        """A call of that message started the sub-agent."""
        keep_first(self._own.calls, call_id, Anchor(message_id, order), _REMEMBERED)
        keep_first(self._own.agents, agent_id, call_id, _REMEMBERED)

    def starter(self, prompt: str) -> Anchor | None:
        """The message that started this sub-agent, which was asked `prompt`."""
        known = self.links("")
        inside = _OBJECTIVE.search(prompt)
        asked = [prompt, inside.group(2)] if inside is not None else [prompt]
        calls = [
            known.agents.get(self.agent_id, ""),
            *(known.prompts.get(prompt_digest(one), "") for one in asked),
        ]
        found = next((known.calls[call] for call in calls if call in known.calls), None)
        self.is_unplaced = found is None
        return found

    def links(self, session_id: str) -> Links:
        """All that is known, for the session's other files."""
        return Links(session_id=session_id).joined(self._own).joined(self._given)

    def memory(self) -> Links:
        """What this file told."""
        return self._own

    def recall(self, own: Links) -> None:
        """Go on where `memory` was taken."""
        self._own = own
