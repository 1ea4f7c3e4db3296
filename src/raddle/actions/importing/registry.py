"""Every importer there is, by the name of its agent.

Owns the list: `raddle import` knows an agent exactly when it stands here.
"""

from __future__ import annotations

from raddle.actions.importing.chatgpt import ChatGPT
from raddle.actions.importing.claude_code import ClaudeCode
from raddle.actions.importing.codex import Codex
from raddle.actions.importing.gemini_cli import GeminiCli
from raddle.actions.importing.importer import Importer
from raddle.actions.importing.opencode import OpenCode
from raddle.model.errors import NotFound

IMPORTERS: tuple[Importer, ...] = (Codex(), ClaudeCode(), GeminiCli(), OpenCode(), ChatGPT())
"""In the order in which they are tried and told."""


def agents() -> list[str]:
    """The names of the agents whose sessions can be imported."""
    return [importer.agent for importer in IMPORTERS]


def importer_of(agent: str) -> Importer:
    """The importer of that agent; NotFound lists the agents there are."""
    for importer in IMPORTERS:
        if importer.agent == agent:
            return importer
    raise NotFound("agent", agent, f"known: {', '.join(agents())}")
