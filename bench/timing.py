"""Times programs side by side: A B A B after a warm-up, processor time and memory of their children included.

    python -m bench.timing --rounds 5 --before 'rm -rf /tmp/out' ours='python -m ours /tmp/out' theirs='…'

Owns how a figure is taken, so that two programs are never measured by two rules. Walls depend on what else
the machine does; processor seconds and ratios within one round are the steady figures. Linux and macOS.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import IO

from msgspec import Struct

_POLL_SECONDS = 0.05
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_LAUNCHER = Path(__file__).with_name("launcher.py")
_GONE_SECONDS = 1.0
MARK = "RADDLE_BENCH_RUN"
"""The environment variable by which `left_behind` knows the processes of a run."""


class Command(Struct, frozen=True, kw_only=True):
    """What to run. `environment`: all of it (None: ours). `prepare` runs before each round, untimed."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str] | None = None
    directory: str | None = None
    prepare: Callable[[], None] | None = None


class Run(Struct, frozen=True, kw_only=True):
    """One run. Seconds; bytes. `peak_rss` is that of the largest process, `together_rss` the largest sum over
    all of them that was seen (shared pages counted in each; 0 where there is no /proc).
    """

    wall: float
    user: float
    system: float
    peak_rss: int
    together_rss: int
    output: str

    @property
    def cpu(self) -> float:
        """Processor seconds, in user mode and in the kernel."""
        return self.user + self.system


class _Watch(threading.Thread):
    """Polls the memory of a process and of all below it until told to stop."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.together = 0
        self._pid = pid
        self._done = threading.Event()

    def run(self) -> None:
        """Poll; the thread's own body."""
        while not self._done.wait(_POLL_SECONDS):
            self.together = max(self.together, sum(_memory(pid) for pid in _tree(self._pid)))

    def stop(self) -> None:
        """Poll no more."""
        self._done.set()
        self.join()


def _tree(pid: int) -> list[int]:
    """`pid` and every process below it; as much as can be seen of them."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                found += [
                    int(child) for child in Path(f"/proc/{one}/task/{task}/children").read_text().split()
                ]
    return found


def _memory(pid: int) -> int:
    """Resident bytes of `pid` now; 0 where it is gone."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return 0


def left_behind(mark: str) -> list[int]:
    """The processes that carry `mark` in their environment and don't end within a second: what a run left
    running (Linux only).
    """
    until = time.monotonic() + _GONE_SECONDS
    while (found := _marked(mark)) and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
    return found


def _marked(mark: str) -> list[int]:
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        with contextlib.suppress(OSError):
            if name.isdigit() and f"{MARK}={mark}\0".encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
    return found


def run_once(command: Command) -> Run:
    """Prepare, run and measure once; RuntimeError where it fails, or leaves a process behind."""
    if command.prepare is not None:
        command.prepare()
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    environment = dict(os.environ if command.environment is None else command.environment) | {MARK: mark}
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as said, open(reading, "rb") as told:
        launcher = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_LAUNCHER), str(writing), *command.argv],
            env=environment,
            cwd=command.directory,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            pass_fds=[writing],
            start_new_session=True,
        )
        os.close(writing)
        pid, took, together = _listen(told)
        launcher.wait()
        said.seek(0)
        output = said.read().decode(errors="replace")
    code = int(took[4]) if pid and took else "nothing"
    if code != 0:
        raise RuntimeError(f"{command.name} ended with {code}: {output[-2000:].strip()}")
    if rest := left_behind(mark):
        raise RuntimeError(f"{command.name} left processes behind: {rest}")
    wall, user, system = (float(one) for one in took[:3])
    peak = int(took[3]) * _RSS_UNIT
    return Run(wall=wall, user=user, system=system, peak_rss=peak, together_rss=together, output=output)


def _listen(told: IO[bytes]) -> tuple[int, list[bytes], int]:
    """The pid and the figures that the launcher tells (empty where it tells none), and the most memory that
    the process and its children were seen to have together.
    """
    first = told.readline()
    if not first:
        return 0, [], 0
    watch = _Watch(int(first))
    watch.start()
    took = told.readline().split()
    watch.stop()
    return int(first), took, watch.together


def interleaved(commands: Sequence[Command], *, rounds: int = 5, warm_ups: int = 1) -> dict[str, list[Run]]:
    """Name -> its runs. Every round runs each command once, in order; the warm-ups are thrown away."""
    runs: dict[str, list[Run]] = {command.name: [] for command in commands}
    for at in range(-warm_ups, rounds):
        for command in commands:
            run = run_once(command)
            if at >= 0:
                runs[command.name].append(run)
    return runs


def _row(name: str, runs: Sequence[Run], first: Sequence[Run]) -> list[str]:
    walls = sorted(run.wall for run in runs)
    cells = [name, f"{median(walls):.3f}", f"{walls[0]:.3f}-{walls[-1]:.3f}"]
    cells += [f"{median(run.cpu for run in runs):.3f}", f"{median(run.user for run in runs):.3f}"]
    cells += [f"{median(run.system for run in runs):.3f}"]
    cells += [f"{median(run.peak_rss for run in runs) / 1e6:.0f}"]
    cells += [f"{median(run.together_rss for run in runs) / 1e6:.0f}"]
    pairs = list(zip(runs, first, strict=True))
    cells.append(_ratio([(one.wall, other.wall) for one, other in pairs]))
    cells.append(_ratio([(one.cpu, other.cpu) for one, other in pairs]))
    cells.append(_ratio([(one.peak_rss, other.peak_rss) for one, other in pairs]))
    return cells


def _ratio(pairs: Sequence[tuple[float, float]]) -> str:
    return f"{median(one / max(other, 1e-9) for one, other in pairs):.2f}"


def table(runs: Mapping[str, Sequence[Run]]) -> str:
    """Medians in seconds and MB; a ratio is the median of the ratios to the first command, round by round."""
    head = ["", "wall s", "min-max", "CPU s", "user", "sys", "RSS MB", "all MB", "wall x", "CPU x", "RSS x"]
    first = next(iter(runs.values()), [])
    rows = [head, *[_row(name, own, first) for name, own in runs.items()]]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def load_line() -> str:
    """What else the machine is doing, to stand beside every table."""
    return f"load {' '.join(f'{one:.2f}' for one in os.getloadavg())} on {os.cpu_count()} cores"


def _named(words: Iterable[str], before: str) -> list[Command]:
    def prepare() -> None:
        subprocess.run(before, shell=True, check=True)

    commands = []
    for word in words:
        name, has_name, line = word.partition("=")
        argv = shlex.split(line if has_name else word)
        commands.append(
            Command(name=name if has_name else argv[0], argv=argv, prepare=prepare if before else None)
        )
    return commands


def main(arguments: list[str] | None = None) -> int:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="python -m bench.timing", description="Time programs side by side.")
    parser.add_argument("commands", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-ups", type=int, default=1)
    parser.add_argument("--before", default="", help="a shell line to run before every run, untimed")
    options = parser.parse_args(arguments)
    before = load_line()
    commands = _named(options.commands, options.before)
    try:
        runs = interleaved(commands, rounds=options.rounds, warm_ups=options.warm_ups)
    except RuntimeError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{table(runs)}\nbefore: {before}; after: {load_line()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
