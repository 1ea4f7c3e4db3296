"""A project's memory, side by side with the peer it shares its formats with: lists, searches, appends, commits, syncs.

    python -m bench memory --peer-venv DIR [--keys 10000] [--entries 10000] [--rounds 3] [--folder DIR]

Without --peer-venv ours alone. Both work on stores of the same content (syncs on small ones), each with a remote on
the same disk, in processes of their own, in turns. Figures are milliseconds, the median of the rounds; a ratio says
how many times as long the peer takes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.timing import Command, interleaved, load_line, table
from raddle.model.memory.entry import ContextEntry, Provenance, encode_entry
from raddle.model.memory.repo_layout import entries_folder
from raddle.model.memory.ulids import derived_ulid

PEER_WORK = Path(__file__).with_name("memory_peer_work.py")
ROOT = Path(__file__).parent.parent
_WORDS = (
    "lock timeout session parser index thread release invoice deploy merge cache retry token budget schema queue"
).split()
_NOON = 1_796_040_000_000_000
_PROMISED = {
    "memory list": 50,
    "memory search": 50,
    "list entries": 100,
    "memory write + commit": 25,
    "context_bootstrap": 300,
}
_BYTES = {
    "commits": ".git, bytes an entry, a commit each",
    "commits of ten": ".git, bytes an entry, ten a commit",
}
COMMITS = 300
"""Entries that both kinds of worker commit."""


class Side:
    """One of the two: a store, a remote, and how its work is done."""

    def __init__(self, name: str, home: Path, work: list[str]) -> None:
        self.name = name
        self.store = home / name / "store"
        self.run = ""
        self.small = home / name / "small"
        self.small_run = ""
        self._work = work
        places = {
            f"RADDLE_{one}_DIR": str(home / name / one.lower())
            for one in ("DATA", "CONFIG", "STATE", "CACHE")
        }
        path = os.environ.get("PATH", os.defpath)
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        self.environment = {
            "PATH": path,
            "HOME": str(home / name),
            "PYTHONPATH": f"{ROOT}/src:{ROOT}",
            **places,
            **settings,
        }
        self.figures: dict[str, list[float]] = {}

    def do(self, work: str, store: Path | None = None, run: str = "") -> dict[str, float | str]:
        """The figures of one piece of work, in a process of its own."""
        done = subprocess.run(
            [*self._work, work, str(store or self.store), run or self.run or "-"],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{self.name} failed at {work}: {done.stderr[-2000:]}")
        figures: dict[str, float | str] = json.loads(done.stdout)
        return figures

    def note(self, work: str) -> None:
        """Do it and keep the figures."""
        is_small = work == "sync"
        figures = self.do(work, self.small, self.small_run) if is_small else self.do(work)
        for name, figure in figures.items():
            self.figures.setdefault(name, []).append(float(figure))

    def git(self, *arguments: str, cwd: Path | None = None) -> None:
        """Git, as this side has it."""
        subprocess.run(
            ["git", *arguments], cwd=cwd or self.store, env=self.environment, check=True, capture_output=True
        )


def make(side: Side, peer: str, store: Path, keys: int, entries: int) -> str:
    """A store with so many memories, and a run with so many entries, all of it committed and at a remote; the run."""
    program = (
        [peer, "init"] if side.name == "redthread" else [sys.executable, "-m", "raddle", "store", "init"]
    )
    store.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [*program, "loom", "--phases", "build,test", "--store", str(store)],
        env=side.environment,
        check=True,
        capture_output=True,
    )
    side.git("config", "user.name", "bench", cwd=store)
    side.git("config", "user.email", "bench@example.org", cwd=store)
    draw = random.Random(7)
    _write_memories(store / "memory" / "team", keys, draw)
    run = str(side.do("begin", store)["run"])
    _write_entries(store, run, entries, draw)
    # Straight into a pack: a file system that has just lost twenty thousand small files (git's, once they are packed)
    # may take ten times as long to make a new one, and the figures of the appends would tell of that.
    side.git("-c", "core.bigFileThreshold=1", "add", "-A", cwd=store)
    side.git("-c", "gc.auto=0", "commit", "-q", "-m", "content", cwd=store)
    hub = store.with_suffix(".hub.git")
    side.git("init", "-q", "--bare", str(hub), cwd=store)
    side.git("remote", "add", "origin", str(hub), cwd=store)
    side.git("push", "-q", "-u", "origin", "HEAD", cwd=store)
    side.git("gc", "-q", cwd=store)
    side.do("read", store, run)
    return run


def _write_memories(folder: Path, count: int, draw: random.Random) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        lines = "\n".join(" ".join(draw.choices(_WORDS, k=10)) for _ in range(8))
        folder.joinpath(f"note-{number:05d}.md").write_text(
            f"---\ndescription: about {draw.choice(_WORDS)} and {draw.choice(_WORDS)}\n"
            f"tags:\n- {draw.choice(_WORDS)}\n---\n\n"
            f"# {draw.choice(_WORDS)} {number}\n\n{lines}\n{'nowhere-else' * (number == count - 1)}\n",
            encoding="utf-8",
        )


def _write_entries(store: Path, run_id: str, count: int, draw: random.Random) -> None:
    folder = store / entries_folder(run_id, "build")
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        entry = ContextEntry(
            entry_id=derived_ulid(_NOON + number * 1000, b"%d" % number),
            run_id=run_id,
            phase="build",
            type="note",
            ts="2026-11-30T12:00:00.000000Z",
            provenance=Provenance(node_id="a1b2c3d4"),
            payload={"text": " ".join(draw.choices(_WORDS, k=10)), "number": number},
        )
        folder.joinpath(f"{number + 1:04d}-{entry.entry_id}.json").write_bytes(encode_entry(entry))


def bytes_an_entry(side: Side, work: str) -> float:
    """What .git grows by for an entry, once git has tidied up."""
    store = side.store.parent / f"store for {work}"
    shutil.copytree(side.store, store, ignore=shutil.ignore_patterns("team", "entries", ".git"))
    side.git("init", "-q", "-b", "main", cwd=store)
    side.git("config", "user.name", "bench", cwd=store)
    side.git("config", "user.email", "bench@example.org", cwd=store)
    side.git("add", "-A", cwd=store)
    side.git("commit", "-q", "-m", "empty", cwd=store)
    before = _tidied_size(side, store)
    side.do(work, store)
    return (_tidied_size(side, store) - before) / COMMITS


def _tidied_size(side: Side, store: Path) -> int:
    side.git("reflog", "expire", "--expire=now", "--all", cwd=store)
    side.git("-c", "pack.threads=1", "gc", "-q", "--prune=now", cwd=store)
    return _size_of(store / ".git" / "objects")


def _size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def figures_table(sides: list[Side]) -> str:
    """A row for each figure: the promise, the medians, and how many times as long the peer takes."""
    names = list(dict.fromkeys(name for side in sides for name in side.figures))
    rows = [["", "promised", *(side.name for side in sides), "peer / ours"]]
    for name in names:
        figures = [median(side.figures[name]) if name in side.figures else None for side in sides]
        ratio = f"{figures[1] / figures[0]:.1f}" if len(figures) > 1 and figures[0] and figures[1] else ""
        promise = _PROMISED.get(name)
        rows.append(
            [
                name,
                f"{promise} ms" if promise else "",
                *(f"{one:.1f}" if one else "" for one in figures),
                ratio,
            ]
        )
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def commands(sides: list[Side], peer: str) -> list[Command]:
    """Help and an append, as people call them, beside a bare interpreter of each."""
    ours = sides[0]
    python = [sys.executable, "-m", "raddle"]
    add = [
        "entry",
        "add",
        "note",
        "what happened",
        "--store",
        str(ours.store),
        "--run",
        ours.run,
        "--phase",
        "build",
    ]
    found = [
        Command(name="python -c pass", argv=[sys.executable, "-c", "pass"], environment=ours.environment),
        Command(name="raddle --help", argv=[*python, "--help"], environment=ours.environment),
        Command(name="raddle entry add", argv=[*python, *add], environment=ours.environment),
    ]
    if peer:
        theirs = sides[1]
        log = ["log", theirs.run, "build", "note", '{"text": "what happened"}', "--store", str(theirs.store)]
        found += [
            Command(name="redthread --help", argv=[peer, "--help"], environment=theirs.environment),
            Command(name="redthread log", argv=[peer, *log], environment=theirs.environment),
        ]
    return found


def main(arguments: list[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench memory", description=__doc__)
    parser.add_argument("--peer-venv", help="a venv that has redthread 0.14")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where to write (default: a temporary folder)")
    options = parser.parse_args(arguments)
    peer = str(Path(options.peer_venv, "bin", "redthread")) if options.peer_venv else ""
    with tempfile.TemporaryDirectory(prefix="raddle-bench-", dir=options.folder) as folder:
        sides = [Side("raddle", Path(folder), [sys.executable, "-m", "bench.memory_work"])]
        if peer:
            work = [str(Path(options.peer_venv, "bin", "python")), str(PEER_WORK)]
            sides.append(Side("redthread", Path(folder), work))
        for side in sides:
            side.run = make(side, peer, side.store, options.keys, options.entries)
            side.small_run = make(side, peer, side.small, 100, 100)
        before = load_line()
        for _ in range(options.rounds):
            for piece in ("read", "list", "append", "write", "tools", "sync"):
                for side in sides:
                    side.note(piece)
        for side in sides:
            side.figures.update({name: [bytes_an_entry(side, work)] for work, name in _BYTES.items()})
        print(
            f"{options.keys:,} memories, {options.entries:,} entries; milliseconds, medians of {options.rounds}\n"
        )
        print(figures_table(sides))
        print(f"\nas commands\n{table(interleaved(commands(sides, peer), rounds=max(options.rounds, 5)))}")
        print(f"before: {before}; after: {load_line()}")
    return 0
