"""A list of many threads: in a warm process and as a command, and that it opens no transcript.

    python -m bench list [--threads 10000] [--rounds 15] [--folder DIR]

The store is made below DIR (else in a temporary folder). Once it is in the index, every thread file is emptied, and
that is noted: a list that opened one would fail. The sweep looks at every file from outside.
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
from statistics import median

from bench.timing import Command, interleaved, load_line, table
from raddle.apps.cli.commands import listing
from raddle.config import load_config
from raddle.model.clock import format_time, system_clock
from raddle.model.ids import MonotonicIds
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author, Editor
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores, open_stores

_WORDS = (
    "lock timeout session parser index thread release invoice 東京湾 水位 échec deploy merge cache".split()
)
_HOUR = 3_600_000_000


def a_store(stores: Stores, threads: int) -> None:
    """Fill it with threads of three turns, an hour apart, and put them into the index."""
    stores.threads.import_many(_files(threads))
    stores.listed(limit=1)
    with stores.index.bulk() as bulk:
        for file in stores.paths.threads_dir.glob("T-*.json"):
            file.write_bytes(b"")
            bulk.note_files(
                file.stem, stores.index.file_stamp(file.stem)
            )  # or it would be read as edited by hand


def look_again(stores: Stores) -> None:
    """Have the next list look at every file, as it does when no process did in the last two seconds."""
    database = stores.index._database  # noqa: SLF001
    with database.writing():
        database.set_meta("swept", "0 0 0")


def _files(threads: int) -> Iterator[tuple[str, bytes]]:
    draw, now, new_id = random.Random(7), system_clock(), MonotonicIds()
    for number in range(threads):
        at = now - number * _HOUR - _HOUR
        thread = Thread(f"T-{MonotonicIds(lambda: at)()}")  # noqa: B023  called at once
        messages: list[Message] = []
        for turn in range(3):
            message_id = new_id()
            messages.append(
                Message(
                    id=message_id,
                    parent_id=messages[-1].id if messages else None,
                    branch_id=messages[0].id if messages else message_id,
                    role="assistant" if turn % 2 else "user",
                    content=" ".join(draw.choices(_WORDS, k=12)),
                    ts=format_time(at + turn),
                )
            )
        thread.join(Delta(version=1, messages=tuple(messages)))
        editor = Editor(thread, Author(device="a1b2c3d4", now=lambda: at, new_id=new_id))  # noqa: B023
        editor.start(workspace_root=f"/home/me/src/project{number % 40}", client_version="1")
        editor.rename(" ".join(draw.choices(_WORDS, k=7)))
        editor.pin(number % 500 == 3)
        editor.delta()
        yield thread.id, encode_thread(thread)


def timed(rounds: int, action: Callable[[], object]) -> str:
    """Median, least and longest milliseconds of so many calls, after one that is not counted."""
    action()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        taken.append(1000 * (time.perf_counter() - start))
    return f"median {median(taken):6.1f} ms   {min(taken):6.1f} to {max(taken):6.1f}"


def main(arguments: list[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench list", description=__doc__)
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", help="where to write (default: a temporary folder)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="raddle-bench-", dir=options.folder) as folder:
        places = {
            f"RADDLE_{name}_DIR": str(Path(folder, name)) for name in ("DATA", "CONFIG", "STATE", "CACHE")
        }
        environment = {**os.environ, "HOME": folder, **places}
        with open_stores(load_config(environment)) as stores:
            a_store(stores, options.threads)
            print(f"{options.threads:,} threads; promised: a list under 100 ms\n\nin a warm process")
            ways: dict[str, Callable[[], object]] = {
                "the newest 30": lambda: list(listing.table(stores, stores.listed(limit=30))),
                "all of them": lambda: list(listing.table(stores, stores.listed(limit=None))),
                "all, as JSON": lambda: stores.listed(limit=None),
                "repo:project7": lambda: list(
                    listing.table(stores, stores.listed("repo:project7", limit=30))
                ),
            }
            for name, action in ways.items():
                print(f"  {name:16} {timed(options.rounds, action)}")
            first = ways["the newest 30"]
            print(f"  {'and the sweep':16} {timed(options.rounds, lambda: (look_again(stores), first()))}")
        python = [sys.executable, "-m", "raddle", "list"]
        commands = [
            Command(name="python -c pass", argv=[sys.executable, "-c", "pass"], environment=environment),
            Command(name="raddle list", argv=python, environment=environment),
            Command(name="list --all", argv=[*python, "--all"], environment=environment),
            Command(name="list --all --json", argv=[*python, "--all", "--json"], environment=environment),
        ]
        runs = interleaved(commands, rounds=options.rounds)
        print(f"\nas a command\n{table(runs)}\n{load_line()}")
    return 0
