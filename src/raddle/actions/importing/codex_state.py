"""What a reading of a Codex rollout leaves, so that a grown file is read on from its end.

Owns what is in it, and its version. A state is bounded: some 30 kB, and 20 bytes for each of 4,096 records
that have no id of their own.
"""

from __future__ import annotations

from msgspec import Struct

from raddle.actions.importing.codex_facts import Facts
from raddle.actions.importing.codex_flow import Memory as FlowMemory
from raddle.actions.importing.codex_lineage import Lineage
from raddle.actions.importing.codex_strand import anchors
from raddle.actions.importing.codex_weaver import Memory
from raddle.actions.importing.importer import Anchor, Links

VERSION = 2
"""Another number means that a grown file is read from its start once."""


class State(Struct, array_like=True):
    """What a reading leaves for the next one. `rollout`: the id in the file's name.

    `calls`, `agents`: as in `Links`. `total`: input and output tokens of the session when they were told last.
    """

    version: int
    line: int
    rollout: str
    fallback: str
    lineage: Lineage
    woven: Memory
    flow: FlowMemory
    facts: Facts
    calls: dict[str, Anchor]
    agents: dict[str, str]
    total: tuple[int, int]


def links_in(state: State) -> Links:
    """What the file tells its session's other files, as it stood then."""
    own = state.lineage.session or state.fallback
    start, strand = state.woven.start, state.woven.strand
    marks = {} if start.is_sub_agents else anchors(strand, state.rollout or own)
    return Links(session_id=start.parent or own, calls={**marks, **state.calls}, agents=state.agents)
