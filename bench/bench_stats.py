"""Usage of many threads: as a command, and its reading of the files beside a whole load of every thread.

python -m bench stats [--threads 10000] [--messages 50] [--rounds 5] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.timing import Command, interleaved, load_line, table
from raddle.adapters.local_store.usage_files import usage_reader
from raddle.config import load_config
from raddle.model.clock import format_time, system_clock
from raddle.model.ids import MonotonicIds
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author, Editor
from raddle.model.threads.message import Message, Usage
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores, open_stores

_HOUR = 3_600_000_000
_WORDS = "lock timeout session parser index thread release invoice deploy merge cache".split()


def _files(threads: int, messages: int) -> Iterator[tuple[str, bytes]]:
    """Threads an hour apart; every other message is an answer that says what it used."""
    draw, now = random.Random(7), system_clock()
    new_id = MonotonicIds()
    for number in range(threads):
        at = now - number * _HOUR - _HOUR
        thread = Thread(f"T-{MonotonicIds(lambda: at)()}")  # noqa: B023  called at once
        turns: list[Message] = []
        for turn in range(messages):
            is_answer = bool(turn % 2)
            turns.append(
                Message(
                    id=new_id(),
                    parent_id=turns[-1].id if turns else None,
                    branch_id="b",
                    role="assistant" if is_answer else "user",
                    content=" ".join(draw.choices(_WORDS, k=120)),
                    ts=format_time(at + turn),
                    model="claude" if is_answer else "",
                    usage=_usage(draw) if is_answer else None,
                )
            )
        thread.join(Delta(version=1, messages=tuple(turns)))
        editor = Editor(thread, Author(device="a1b2c3d4", now=lambda: at, new_id=new_id))  # noqa: B023
        editor.start(workspace_root=f"/home/me/src/project{number % 40}", client_version="1")
        editor.delta()
        yield thread.id, encode_thread(thread)


def _usage(draw: random.Random) -> Usage:
    return Usage(
        input_tokens=draw.randrange(20),
        output_tokens=draw.randrange(2_000),
        cache_read_tokens=draw.randrange(100_000),
        cache_write_tokens=draw.randrange(2_000),
    )


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _compare(stores: Stores) -> None:
    ids = stores.threads.ids()
    read = usage_reader(stores.paths, stores.threads.load)
    for _ in range(2):
        ours = _seconds(lambda: [read(thread_id) for thread_id in ids])
        naive = _seconds(lambda: [len(stores.threads.load(thread_id).tree) for thread_id in ids])
        print(f"reading usage {ours:.2f} s; loading every thread {naive:.2f} s; ratio {ours / naive:.2f}")


def main(arguments: list[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench stats", description=__doc__)
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where to write (default: a temporary folder)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="raddle-bench-", dir=options.folder) as folder:
        places = {
            f"RADDLE_{name}_DIR": str(Path(folder, name)) for name in ("DATA", "CONFIG", "STATE", "CACHE")
        }
        environment = {**os.environ, "HOME": folder, **places}
        with open_stores(load_config(environment)) as stores:
            stores.threads.import_many(_files(options.threads, options.messages))
            stores.listed(limit=1)
            print(f"{options.threads:,} threads of {options.messages} messages; promised: seconds")
            _compare(stores)
        python = [sys.executable, "-m", "raddle"]
        commands = [
            Command(name="list", argv=[*python, "list"], environment=environment),
            Command(name="stats", argv=[*python, "stats"], environment=environment),
            Command(
                name="stats repo:project7", argv=[*python, "stats", "repo:project7"], environment=environment
            ),
        ]
        runs = interleaved(commands, rounds=options.rounds)
        print(f"\nas a command\n{table(runs)}\n{load_line()}")
    return 0
