"""Every importer there is, by the name of its agent.

Owns the list: `raddle import` knows an agent exactly when it stands here. Each is loaded when it is asked for: what
reads all of them takes a third of the time that a look at one agent's files does.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from raddle.actions.importing.importer import Importer
from raddle.model.errors import NotFound

_CLASSES = {
    "codex": "Codex",
    "claude-code": "ClaudeCode",
    "gemini-cli": "GeminiCli",
    "opencode": "OpenCode",
    "chatgpt": "ChatGPT",
}
"""Agent -> its importer, in the module of that name here."""


def agents() -> list[str]:
    """The names of the agents whose sessions can be imported, in the order in which they are tried and told."""
    return list(_CLASSES)


def importers() -> list[Importer]:
    """All of them, in that order."""
    return [importer_of(agent) for agent in _CLASSES]


@cache
def importer_of(agent: str) -> Importer:
    """The importer of that agent; NotFound lists the agents there are."""
    if agent not in _CLASSES:
        raise NotFound("agent", agent, f"known: {', '.join(agents())}")
    module = import_module(f"{__package__}.{agent.replace('-', '_')}")
    importer: Importer = getattr(module, _CLASSES[agent])()
    return importer
