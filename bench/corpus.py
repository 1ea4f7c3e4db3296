"""Writes a Claude Code home of any size, made up from a seed, in the statistical shape of real ones.

    python -m bench.corpus DIR --megabytes 350 --seed 1
    python -m bench.corpus DIR --preset many

Owns the plan: how many sessions, how large each, which of them are resumed, damaged, sparse. The same
arguments give the same bytes on every machine.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections.abc import Iterator

from msgspec import Struct

from bench.corpus_project import Project
from bench.corpus_session import VERSIONS, Facts, Session, resume
from bench.corpus_tools import Habits
from bench.corpus_words import uuid_text

_FIRST_START = 1_735_700_000_000
_MEAN_MEGABYTES = 1.4
_NOT_IN_A_FOLDER = re.compile(r"[^A-Za-z0-9-]")


class Plan(Struct, frozen=True, kw_only=True):
    """How much to write: `megabytes` (of 1,000,000 bytes) or `messages`, over `threads` sessions (0: as many
    as real homes of that size have), with which habits."""

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


PRESETS: dict[str, Plan] = {
    "small": Plan(megabytes=5),
    "large": Plan(megabytes=350),
    "many": Plan(messages=500_000, threads=10_000, habits=Habits(output=0.35, talk=0.5, keeps_originals=False)),
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
    )


def _grow(session: Session, *, size: int, messages: int) -> None:
    """Add turns until `session` has `size` bytes or `messages` messages (0: no bound), sub-agents included."""

    def is_done() -> bool:
        total = session.size + sum(agent.size for agent in session.agents.values())
        return total >= size and session.messages >= messages

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
        return (session.size + sum(agent.size for agent in session.agents.values())) / (plan.megabytes * 1e6)
    return session.messages / plan.messages


def sessions(plan: Plan) -> Iterator[tuple[Project, Session]]:
    """The sessions of `plan`, one at a time, oldest first, each grown to its share."""
    rng = random.Random(f"{plan.seed}/plan")
    count = plan.thread_count
    scale = 1.0 if plan.habits.keeps_originals else 0.35
    projects = [Project(str(plan.seed), at, scale=scale) for at in range(min(max(count // 20, 2), 12))]
    shares = _shares(rng, count)
    largest = shares.index(max(shares))
    earlier: dict[str, list[dict[str, object]]] = {}
    year = 365 * 86_400_000
    owed = 0.0
    for at, share in enumerate(shares):
        owed += share
        own = random.Random(f"{plan.seed}/session/{at}")
        project = own.choice(projects)
        session_id = uuid_text(own)
        session = Session(own, project, plan.habits, _facts(own, session_id, _FIRST_START + year * at // count))
        if project.name in earlier and own.random() < 0.03:
            resume(session, earlier[project.name])
        if at == largest and plan.megabytes >= 20:
            session.prompt(session.prompt_text())
            session.huge_step(950_000)
        _grow(session, size=int(owed * plan.megabytes * 1e6), messages=int(owed * plan.messages))
        owed -= _share_of(session, plan)
        earlier[project.name] = session.records
        yield project, session


def write_corpus(directory: str, plan: Plan) -> Written:
    """Write `plan` under `directory`, which becomes the `.claude` folder: `projects/<cwd>/<session>.jsonl`."""
    done = Written()
    for project, session in sessions(plan):
        folder = os.path.join(directory, "projects", _NOT_IN_A_FOLDER.sub("-", project.root))
        own = os.path.join(folder, session.facts.session_id)
        os.makedirs(folder, exist_ok=True)
        _write(f"{own}.jsonl", session.lines, done)
        if session.agents:
            os.makedirs(os.path.join(own, "subagents"), exist_ok=True)
        for agent_id, agent in session.agents.items():
            path = os.path.join(own, "subagents", f"agent-{agent_id}")
            _write(f"{path}.jsonl", agent.lines, done)
            with open(f"{path}.meta.json", "wb") as meta:
                meta.write(b'{"agentType":"general-purpose","spawnDepth":1}')
            done.messages += agent.messages
        done.threads += 1
        done.messages += session.messages
    return done


def _write(path: str, lines: list[bytes], done: Written) -> None:
    with open(path, "wb") as file:
        file.write(b"\n".join(lines) + b"\n")
        done.bytes += file.tell()
    done.files += 1


def _plan_of(options: argparse.Namespace) -> Plan:
    plan = PRESETS[options.preset]
    noisy = Habits(
        output=plan.habits.output,
        talk=plan.habits.talk,
        keeps_originals=plan.habits.keeps_originals,
        noise=options.noise,
    )
    megabytes = plan.megabytes if options.megabytes is None else options.megabytes
    messages = plan.messages if options.megabytes is None else 0
    threads = plan.threads if options.threads is None else options.threads
    return Plan(megabytes=megabytes, messages=messages, threads=threads, seed=options.seed, habits=noisy)


def main(arguments: list[str] | None = None) -> int:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="python -m bench.corpus", description="Write a made-up Claude Code home.")
    parser.add_argument("directory")
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small")
    parser.add_argument("--megabytes", type=float, help="in place of the preset's size")
    parser.add_argument("--threads", type=int, help="number of sessions; otherwise as many as real homes have")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", type=int, default=0, help="a random sha or uuid for each N characters of output")
    options = parser.parse_args(arguments)
    if os.path.isdir(options.directory) and os.listdir(options.directory):
        parser.error(f"{options.directory} is not empty")
    before = time.perf_counter()
    done = write_corpus(options.directory, _plan_of(options))
    seconds = time.perf_counter() - before
    sys.stdout.write(
        f"{done.files} files, {done.threads} threads, {done.messages} messages, {done.bytes} bytes in {seconds:.1f} s\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
