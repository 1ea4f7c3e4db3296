"""Which call started which sub-agent, gathered while a Codex session is read.

Owns the traces Codex leaves of it: the event that ends the call, the activity that is told of the sub-agent, and
the result of the call, each of which names the sub-agent's own session.
"""

from __future__ import annotations

import re

from raddle.actions.importing.bounded import keep_first, keep_last
from raddle.actions.importing.codex_lines import Payload
from raddle.actions.importing.importer import Anchor
from raddle.model.threads.message import ToolCall

ACTIVITY = "SubAgentActivity"
"""The item whose completion tells of a sub-agent."""

_REMEMBERED = 256
_AGENT_ID = re.compile(r'"agent_id" ?: ?"([^"\\]{1,100})"')


class Spawns:
    """The calls of one file that start sub-agents: call id -> message, sub-agent's session -> call id."""

    def __init__(self) -> None:
        self.calls: dict[str, Anchor] = {}
        self.agents: dict[str, str] = {}

    def see_call(self, call: ToolCall, anchor: Anchor) -> None:
        """A message makes a call; remember it where it starts a sub-agent."""
        if call.tool_name.endswith("spawn_agent"):
            keep_last(self.calls, call.id, anchor, _REMEMBERED)

    def see_result(self, call_id: str, content: str) -> None:
        """The result of a call names what it started."""
        if call_id in self.calls and (named := _AGENT_ID.search(content)) is not None:
            self._link(named[1], call_id)

    def see_event(self, event: Payload) -> None:
        """An event tells of a sub-agent."""
        activity = event.item
        if activity is not None:
            if activity.type == ACTIVITY:
                self._link(activity.agent_thread_id, activity.id)
        else:
            self._link(event.new_thread_id or event.agent_thread_id, event.call_id or event.event_id)

    def _link(self, agent: str | None, call_id: str | None) -> None:
        if agent and call_id in self.calls:
            keep_first(self.agents, agent, call_id, _REMEMBERED)
