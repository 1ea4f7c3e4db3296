"""From a size and a seed to the files of a Claude Code home.

Owns the plan: how many sessions, how large each, which of them are resumed, damaged, sparse. The same
plan gives the same bytes on every machine.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from bench.corpus.project import Project
from bench.corpus.recorder import VERSIONS, Facts
from bench.corpus.session import Session
from bench.corpus.tools import Habits
from bench.corpus.words import uuid_text

_FIRST_START = 1_735_700_000_000
_MEAN_MEGABYTES = 1.4
_NOT_IN_A_FOLDER = re.compile(r"[^A-Za-z0-9-]")


class Plan(Struct, frozen=True, kw_only=True):
    """How much to write: `megabytes` (of 1,000,000 bytes) or `messages`, over `threads` sessions (0: as many
    as real homes of that size have), with which habits.
    """

    megabytes: float = 0.0
    messages: int = 0
    threads: int = 0
    seed: int = 1
    habits: Habits = Habits()

    @property
    def thread_count(self) -> int:
        """The number of sessions, sub-agents not counted."""
        return self.threads or max(round(self.megabytes / _MEAN_MEGABYTES), 4)


class Written(Struct, kw_only=True):
    """What was written: `bytes`, `files` (sub-agents included), `threads`, `messages`."""

    bytes: int = 0
    files: int = 0
    threads: int = 0
    messages: int = 0


_LEAN = Habits(output=0.27, talk=0.5, keeps_originals=False, patience=2)
PRESETS: dict[str, Plan] = {
    "small": Plan(megabytes=5),
    "large": Plan(megabytes=350),
    "many": Plan(messages=500_000, threads=10_000, habits=_LEAN),
}


def _shares(rng: random.Random, count: int) -> list[float]:
    """`count` heavy-tailed shares of a whole, none above eight times the mean (where `count` allows that)."""
    drawn = [rng.lognormvariate(0, 1.0) for _ in range(count)]
    for _ in range(3):
        most = 8 * sum(drawn) / count
        drawn = [min(one, most) for one in drawn]
    whole = sum(drawn)
    return [one / whole for one in drawn]


def _facts(rng: random.Random, session_id: str, started: int) -> Facts:
    version = rng.choice(VERSIONS)
    return Facts(
        session_id=session_id,
        started=started,
        version=version,
        branch=rng.choice(("main", "main", "main", "dev/review", "fix/flaky", "feat/sync")),
        agent_files=version == VERSIONS[-1],
        tool_hooks=rng.random() < 0.45,
        stop_hooks=rng.random() < 0.6,
        drops_progress=rng.random() < 0.16,
        glues_a_line=rng.random() < 0.3,
        tears_its_end=rng.random() < 0.01,
    )


def _grow(session: Session, *, size: int, messages: int) -> None:
    """Add turns until `session` has `size` bytes or `messages` messages (0: no bound)."""

    def is_done() -> bool:
        return session.whole_size >= size and session.whole_messages >= messages

    session.open()
    next_compaction = session.rng.randrange(200, 900)
    while True:
        session.turn(is_done)
        if is_done():
            return
        if len(session.lines) > next_compaction:
            session.compact()
            next_compaction = len(session.lines) + session.rng.randrange(300, 900)


def _share_of(session: Session, plan: Plan) -> float:
    """How much of the whole `plan` was written with `session`: a turn never ends on the byte."""
    if plan.megabytes:
        return session.whole_size / (plan.megabytes * 1e6)
    return session.whole_messages / plan.messages


def sessions(plan: Plan) -> Iterator[tuple[Project, Session]]:
    """The sessions of `plan`, one at a time, oldest first, each grown to its share."""
    rng = random.Random(f"{plan.seed}/plan")
    count = plan.thread_count
    scale = max(plan.habits.output, 0.3)
    projects = [Project(str(plan.seed), at, scale=scale) for at in range(min(max(count // 20, 2), 12))]
    shares = _shares(rng, count)
    largest = shares.index(max(shares))
    earlier: dict[str, list[dict[str, Any]]] = {}
    year = 365 * 86_400_000
    owed = 0.0
    for at, share in enumerate(shares):
        owed += share
        own = random.Random(f"{plan.seed}/session/{at}")
        project = own.choice(projects)
        session_id = uuid_text(own)
        session = Session(
            own, project, plan.habits, _facts(own, session_id, _FIRST_START + year * at // count)
        )
        if project.name in earlier and own.random() < 0.03:
            session.begin_with(earlier[project.name])
        if at == largest and plan.megabytes >= 20:
            session.prompt(session.prompt_text())
            session.huge_step(950_000)
        _grow(session, size=int(owed * plan.megabytes * 1e6), messages=int(owed * plan.messages))
        owed -= _share_of(session, plan)
        earlier[project.name] = session.records
        yield project, session


def write_corpus(directory: str, plan: Plan) -> Written:
    """Write `plan` under `directory`, which becomes a `.claude` folder: `projects/<cwd>/<session>.jsonl`."""
    done = Written()
    for project, session in sessions(plan):
        folder = os.path.join(directory, "projects", _NOT_IN_A_FOLDER.sub("-", project.root))
        own = os.path.join(folder, session.facts.session_id)
        os.makedirs(folder, exist_ok=True)
        torn = session.lines.pop()[:-40] if session.facts.tears_its_end else b""
        _write(f"{own}.jsonl", session.lines, done, torn)
        if session.agents:
            os.makedirs(os.path.join(own, "subagents"), exist_ok=True)
        for agent_id, agent in session.agents.items():
            path = os.path.join(own, "subagents", f"agent-{agent_id}")
            _write(f"{path}.jsonl", agent.lines, done)
            with open(f"{path}.meta.json", "wb") as meta:
                meta.write(b'{"agentType":"general-purpose","spawnDepth":1}')
        done.threads += 1
        done.messages += session.whole_messages
    return done


def _write(path: str, lines: list[bytes], done: Written, torn: bytes = b"") -> None:
    with open(path, "wb") as file:
        file.write(b"\n".join(lines) + b"\n" + torn)
        done.bytes += file.tell()
    done.files += 1
