"""Import speed of every agent in MB of its own sessions a second, beside Claude Code's, interleaved in one run.

    python -m bench agents [--megabytes 40] [--rounds 3] [AGENT…]

Each home is made from a seed in the shape of the agent's real sessions; every import starts with nothing.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from msgspec import Struct

from bench.timing import Command, interleaved, load_line


class Agent(Struct, frozen=True, kw_only=True):
    """How an agent's home is made: `corpus` is a module of `bench.corpus` with `Plan` and `write_corpus`, which writes
    to `at` below the home. `variable` names `home` for raddle; where it is empty the path itself is imported."""

    corpus: str
    at: str
    home: str = ""
    variable: str = ""


AGENTS = {
    "claude-code": Agent(corpus="plan", at=".claude", home=".claude", variable="CLAUDE_CONFIG_DIR"),
    "codex": Agent(corpus="codex", at=".codex", home=".codex", variable="CODEX_HOME"),
    "gemini-cli": Agent(corpus="gemini_cli", at=".gemini", home="", variable="GEMINI_CLI_HOME"),
    "opencode": Agent(
        corpus="opencode", at="share/opencode/opencode.db", home="share", variable="XDG_DATA_HOME"
    ),
    "chatgpt": Agent(corpus="chatgpt", at="conversations.json"),
}


def _made(name: str, folder: Path, megabytes: float) -> int:
    """Make the agent's home in `folder`; its size in bytes."""
    agent = AGENTS[name]
    module = importlib.import_module(f"bench.corpus.{agent.corpus}")
    target = folder / agent.at
    target.parent.mkdir(parents=True, exist_ok=True)
    if name == "chatgpt":
        module.write_corpus(str(target.parent), megabytes)
    else:
        module.write_corpus(str(target), module.Plan(megabytes=megabytes))
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _import_of(name: str, folder: Path, scratch: Path) -> Command:
    agent = AGENTS[name]
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(folder),
        **{
            f"RADDLE_{part.upper()}_DIR": str(scratch / part) for part in ("data", "config", "state", "cache")
        },
    }
    if agent.variable:
        environment[agent.variable] = str(folder / agent.home)
    what = name if agent.variable else str(folder / agent.at)
    return Command(
        name=name,
        argv=[sys.executable, "-m", "raddle", "import", what],
        environment=environment,
        prepare=lambda: shutil.rmtree(scratch, ignore_errors=True),
    )


def main(arguments: list[str]) -> int:
    """Print a row an agent."""
    parser = argparse.ArgumentParser(prog="python -m bench agents", description=__doc__)
    parser.add_argument("agents", nargs="*", metavar="AGENT", default=list(AGENTS))
    parser.add_argument("--megabytes", type=float, default=40.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    names = list(dict.fromkeys(["claude-code", *options.agents]))
    with tempfile.TemporaryDirectory(prefix="raddle-bench-") as scratch:
        folders = {name: Path(scratch) / name for name in names}
        sizes = {name: _made(name, folder, options.megabytes) for name, folder in folders.items()}
        commands = [_import_of(name, folders[name], Path(scratch) / f"{name} data") for name in names]
        runs = interleaved(commands, rounds=options.rounds)
    print(
        f"{'agent':14}{'MB':>8}{'wall s':>9}{'CPU s':>9}{'MB/s':>9}{'to Claude Code':>16}{'largest MB':>12}"
    )
    speeds = {name: sizes[name] / 1e6 / median(run.cpu for run in runs[name]) for name in names}
    for name in names:
        wall, cpu = median(run.wall for run in runs[name]), median(run.cpu for run in runs[name])
        peak = max(run.peak_rss for run in runs[name]) / 1e6
        ratio = speeds[name] / speeds["claude-code"]
        print(
            f"{name:14}{sizes[name] / 1e6:8.1f}{wall:9.2f}{cpu:9.2f}{speeds[name]:9.1f}{ratio:15.2f}x{peak:12.0f}"
        )
    print("MB/s are of processor time: walls move with the machine's load")
    print(load_line())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
