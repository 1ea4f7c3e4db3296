"""The importer of Claude Code: where its sessions lie and how their files belong together.

Owns the layout of `~/.claude/projects`. A session is one file, and a file for each of its sub-agents, in
`<session>/subagents/` or, from older versions, beside it; the oldest have the sub-agents' lines in the
session's own file. How a file is read: `claude_code_reader.py`.
"""

from __future__ import annotations

import re

from raddle.actions.importing.claude_code_reader import VERSION, ClaudeCodeReader, State, session_folder
from raddle.actions.importing.claude_code_weaver import AGENT, agent_id_in
from raddle.actions.importing.importer import Home, Links, Lookup, Place, SourceName
from raddle.actions.importing.other_agents import agent_of_head
from raddle.actions.importing.states import decode_state

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
_SESSION_ID = re.compile(rb'"sessionId" ?: ?"([^"\\]{1,200})"')


class ClaudeCode:
    """Claude Code's sessions."""

    agent = AGENT
    label = "Claude Code"
    home = Home(
        variables=(("CLAUDE_CONFIG_DIR", "projects"),),
        folders=("~/.claude/projects", "~/.config/claude/projects"),
        patterns=("**/*.jsonl",),
        suffix=".jsonl",
        sidecar=".meta.json",
    )

    def place(self, source: SourceName, head: bytes) -> Place | None:
        """Which session the file belongs to; None for the journals that lie beside sub-agents."""
        found = _SESSION_ID.search(head)
        in_content = found.group(1).decode(errors="replace") if found is not None else ""
        if agent_id_in(source.name):
            return Place(session=session_folder(source) or in_content, is_part=True)
        if session_folder(source):
            return None
        stem = source.name.rpartition(".")[0]
        session = stem if _UUID.match(stem) else in_content or stem
        return Place(session=session, other_agent=agent_of_head(head))

    def open(
        self,
        source: SourceName,
        *,
        state: bytes = b"",
        links: Links | None = None,
        lookup: Lookup | None = None,
    ) -> ClaudeCodeReader:
        """A reader of the file, from its start or from where `state` was taken."""
        is_part = bool(agent_id_in(source.name))
        reader = ClaudeCodeReader(source, is_part=is_part, links=links, lookup=lookup)
        if state:
            reader.recall(state)
        return reader

    def links(self, state: bytes) -> Links | None:
        """The links that a `state` remembers; None where it is not a state of this version."""
        found = decode_state(state, State, VERSION)
        if found is None:
            return None
        session_id = found.session or found.fallback
        return Links(session_id=session_id).joined(found.links)
