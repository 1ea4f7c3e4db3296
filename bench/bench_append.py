"""An append to a short thread, to a long one, and the naive way: load the file, add the turn, write it again.

    python -m bench append [--short 20] [--long 20000] [--appends 14000] [--folder DIR]

Means are over all appends, folds included: a long thread folds once in about two thirds of its messages, so
`--appends` should be no less. Bytes are those handed to the system by write calls, where it counts them (Linux).
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median

import msgspec

from bench.timing import load_line
from raddle.adapters.files import write_atomic
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.locks import LockFiles
from raddle.adapters.paths import Paths
from raddle.model.clock import format_time, system_clock
from raddle.model.ids import MonotonicIds
from raddle.model.threads.codec import decode_file, encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author, Editor
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread

_TURN = "The handler retries twice and then gives up; the session is closed. " * 6
_BEFORE_RENEWAL = 100
"""Appends to one short thread before another takes its place: it would not stay short."""

_new_id = MonotonicIds()
_author = Author(device="a1b2c3d4", now=system_clock, new_id=_new_id)


class Taken(msgspec.Struct):
    """What appends took: seconds each, and bytes written in all."""

    seconds: list[float] = []
    written: int = 0

    def row(self, name: str) -> str:
        """One line of the table; times in microseconds."""
        at = sorted(self.seconds)
        micros = [1e6 * value for value in (fmean(at), median(at), at[len(at) * 99 // 100], at[-1])]
        cells = [f"{value:10,.0f}" for value in micros]
        cells.append(f"{self.written / len(at):12,.0f}" if self.written else f"{'-':>12}")
        return f"{name:34}{''.join(cells)}"


def a_thread(length: int) -> Thread:
    """`length` turns one under the other."""
    thread_id = f"T-{_new_id()}"
    messages: list[Message] = []
    start = system_clock() - length * 1_000_000
    for number in range(length):
        message_id = _new_id()
        messages.append(
            Message(
                id=message_id,
                parent_id=messages[-1].id if messages else None,
                branch_id=messages[0].id if messages else message_id,
                role="assistant" if number % 2 else "user",
                content=_TURN,
                ts=format_time(start + number * 1_000_000),
                device=_author.device,
            )
        )
    thread = Thread(thread_id)
    thread.join(Delta(version=length, messages=tuple(messages)))
    editor = Editor(thread, _author)
    editor.start(workspace_root="/home/me/project", client_version="1.0")
    editor.delta()
    return thread


def measure(taken: Taken, append: Callable[[], object]) -> None:
    """One append."""
    before = _written()
    start = time.perf_counter()
    append()
    taken.seconds.append(time.perf_counter() - start)
    taken.written += _written() - before


def _written() -> int:
    """Bytes this process has handed to the system so far; 0 where nobody counts them."""
    try:
        text = Path("/proc/self/io").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(text.split("wchar: ")[1].split()[0])


def rewrite(file: Path) -> None:
    """The naive append."""
    decoded = decode_file(file.read_bytes())
    thread = decoded.thread()
    editor = Editor(thread, _author)
    editor.append("assistant", _TURN)
    editor.delta()
    write_atomic(file, encode_thread(thread))


def main(arguments: list[str]) -> int:
    """Print the table and the ratios."""
    parser = argparse.ArgumentParser(prog="python -m bench append", description=__doc__)
    parser.add_argument("--short", type=int, default=20)
    parser.add_argument("--long", type=int, default=20_000)
    parser.add_argument("--appends", type=int, default=14_000)
    parser.add_argument("--folder", help="where to write (default: a temporary folder)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="raddle-bench-", dir=options.folder) as folder:
        short, long, naive = _run(Path(folder), options.short, options.long, options.appends)
    print(f"{'':34}{'mean us':>10}{'median':>10}{'p99':>10}{'longest':>10}{'bytes each':>12}")
    print(short.row(f"{options.short:,} messages, append"))
    print(long.row(f"{options.long:,} messages, append"))
    print(naive.row(f"{options.long:,} messages, rewrite"))
    ratio = fmean(long.seconds) / fmean(short.seconds)
    print(f"\nlong to short: {ratio:.2f} of the time", end="")
    if short.written:
        each = (long.written / len(long.seconds)) / (short.written / len(short.seconds))
        print(f", {each:.2f} of the bytes", end="")
    print(
        f"\nrewrite to append, long: {fmean(naive.seconds) / fmean(long.seconds):,.0f} times the time", end=""
    )
    if long.written:
        each = (naive.written / len(naive.seconds)) / (long.written / len(long.seconds))
        print(f", {each:,.0f} times the bytes", end="")
    print(f"\n{load_line()}")
    return 0


def _run(folder: Path, short: int, long: int, appends: int) -> tuple[Taken, Taken, Taken]:
    """(short, long, naive), taken in turns."""
    places = {f"{name}_dir": folder / name for name in ("data", "config", "state", "cache")}
    paths = Paths(**places)
    store = ThreadFiles(paths, LockFiles(paths.locks_dir), _author)
    long_thread = a_thread(long)
    store.save(long_thread)
    file = folder / "naive.json"
    file.write_bytes(encode_thread(long_thread))
    on_short, on_long, on_naive = Taken(), Taken(), Taken()
    os.sync()
    gc.collect()
    while len(on_long.seconds) < appends:
        short_thread = a_thread(short)
        store.save(short_thread)
        for _ in range(_BEFORE_RENEWAL):
            measure(on_short, lambda: store.append(short_thread.id, "assistant", _TURN))  # noqa: B023
            measure(on_long, lambda: store.append(long_thread.id, "assistant", _TURN))
        if len(on_naive.seconds) < 10:
            measure(on_naive, lambda: rewrite(file))
    return on_short, on_long, on_naive
