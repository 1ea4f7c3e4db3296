"""Every importer there is, by the name of its agent.

Owns the list: `raddle import` knows an agent exactly when it stands here.
"""

from __future__ import annotations

from raddle.actions.importing.claude_code import ClaudeCode
from raddle.actions.importing.importer import Importer
from raddle.model.errors import NotFound

IMPORTERS: tuple[Importer, ...] = (ClaudeCode(),)
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
