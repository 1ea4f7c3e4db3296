"""What it costs to start: raddle's everyday commands beside an interpreter that does nothing.

    python -m bench start [--rounds 15] [--home DIR]

The commands run in the demo (made below DIR, else in a temporary folder) in turns with `python -c pass`; what counts is
what each takes over that, round by round. Processor seconds are steady; walls move with whatever else the machine does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.timing import Command, Run, interleaved, load_line, table

_BARE = "python -c pass"
_PROMISED = {"raddle --help": 0.100, "raddle search": 0.150}
"""Seconds over the bare interpreter."""


def main(arguments: list[str]) -> int:
    """Print the table and what each command takes over the bare interpreter."""
    parser = argparse.ArgumentParser(prog="python -m bench start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--home", help="where to make the demo (default: a temporary folder)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="raddle-bench-") as folder:
        environment = {**os.environ, "HOME": options.home or folder}
        subprocess.run(
            [sys.executable, "-m", "raddle", "up", "--demo"], check=True, env=environment, stdout=-3
        )
        demo = str(Path(environment["HOME"], ".cache/raddle/demo/raddle"))
        before = load_line()
        runs = interleaved(_commands(demo), rounds=options.rounds, warm_ups=2)
    print(table(runs))
    print(
        f"before: {before}; after: {load_line()}\n\nover the bare interpreter, median of {options.rounds} rounds:"
    )
    for name, own in runs.items():
        if name != _BARE:
            print(_over(name, own, runs[_BARE]))
    return 0


def _commands(demo: str) -> list[Command]:
    python = [sys.executable, "-m", "raddle"]
    # The demo's command is a shell script: what the shell costs is not raddle's, so its settings are taken over.
    lines = Path(demo).read_text(encoding="utf-8").splitlines()
    exports = dict(line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))
    places = {**os.environ, **{name: value.strip("'") for name, value in exports.items()}}
    return [
        Command(name=_BARE, argv=[sys.executable, "-c", "pass"], environment=places),
        Command(name="raddle --help", argv=[*python, "--help"], environment=places),
        Command(name="raddle search", argv=[*python, "search", "lock_timeout"], environment=places),
        Command(name="raddle list", argv=[*python, "list"], environment=places),
        Command(name="raddle show", argv=[*python, "show", "T-7f98207d"], environment=places),
    ]


def _over(name: str, own: Sequence[Run], bare: Sequence[Run]) -> str:
    pairs = list(zip(own, bare, strict=True))
    wall = median(one.wall - other.wall for one, other in pairs)
    cpu = median(one.cpu - other.cpu for one, other in pairs)
    user = median(one.user - other.user for one, other in pairs)
    promised = _PROMISED.get(name)
    note = "" if promised is None else f"   (promised: under {promised * 1000:.0f} ms)"
    return f"  {name:16} wall {wall * 1000:5.0f} ms   CPU {cpu * 1000:5.0f} ms   user {user * 1000:5.0f} ms{note}"
