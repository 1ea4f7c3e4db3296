"""What the peer, redthread, takes for one piece of work; run by its own interpreter, prints JSON.

    /path/to/its/venv/bin/python bench/memory_peer_work.py WORK STORE RUN

Nothing of ours is imported here: it is another venv.
"""

# ruff: noqa: PLC0415  what one piece of work imports, another does not pay for

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Do it and print the milliseconds of each figure."""
    from redthread.store.local import LocalStore

    work, place, run_id = sys.argv[1:4]
    os.sync()  # what others left unwritten is not ours to wait for
    store = LocalStore(Path(place))
    figures = {
        "begin": lambda: {"run": store.start_run().run_id},
        "list": lambda: {"memory list": timed(store.memory_index)},
        "read": lambda: read(store, run_id),
        "append": lambda: append(store, run_id),
        "write": lambda: write(store),
        "tools": lambda: tools(store),
        "sync": lambda: sync(store, Path(place), run_id),
        "commits": lambda: commits(store, Path(place), run_id, 1),
        "commits of ten": lambda: commits(store, Path(place), run_id, 10),
    }
    print(json.dumps(figures[work]()))


def timed(call: Any, times: int = 1) -> float:
    """Milliseconds of one call, of so many."""
    start = time.perf_counter()
    for _ in range(times):
        call()
    return 1000 * (time.perf_counter() - start) / times


def read(store: Any, run_id: str) -> dict[str, float]:
    """Lists and a search."""
    return {
        "memory list, first after a write": timed(store.memory_index),
        "memory search": timed(lambda: store.memory_search("nowhere-else")),
        "list entries": timed(lambda: store.read_entries(run_id, "build")),
    }


def append(store: Any, run_id: str) -> dict[str, float]:
    """Entries, one by one, to an empty phase and to a full one."""
    new = store.start_run().run_id
    payload = {"text": "what happened", "files": 12}
    return {
        "append, phase of 0": timed(lambda: store.log(new, "build", "note", payload), 50),
        "append, full phase": timed(lambda: store.log(run_id, "build", "note", payload), 50),
        "append 500 at once": timed(lambda: store.log(new, "test", "note", payload), 500) * 500,
    }


def write(store: Any) -> dict[str, float]:
    """A memory, written and committed."""
    from redthread.mcp.tools import memory_write

    times = iter(range(1000))
    return {
        "memory write + commit": timed(
            lambda: memory_write(store, "team", f"new-{time.time_ns()}-{next(times)}", "a text", push=False),
            5,
        )
    }


def tools(store: Any) -> dict[str, float]:
    """What an agent asks first, without a protocol; and how long the answers are, in KB."""
    from redthread.mcp.tools import context_bootstrap, memory_list

    told: list[Any] = []
    figures = {
        "context_bootstrap": timed(lambda: told.append(context_bootstrap(store))),
        "memory_list": timed(lambda: told.append(memory_list(store))),
    }
    sizes = [len(json.dumps(one, default=str)) / 1000 for one in told]
    return {**figures, "context_bootstrap, KB": sizes[0], "memory_list, KB": sizes[1]}


def sync(store: Any, place: Path, run_id: str) -> dict[str, float]:
    """Syncs with so many new entries."""
    from redthread.store import gitio

    gitio.sync(place, "before")
    figures = {}
    for count in (0, 1, 100, 1000):
        folder = store.layout.entries_dir(run_id, "test")
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            store.log(run_id, "test", "note", {"text": f"entry {number}"})
        figures[f"sync, {count:,} new"] = timed(lambda: gitio.sync(place, "sync"))
    return figures


def commits(store: Any, place: Path, run_id: str, at_once: int) -> dict[str, float]:
    """300 entries, committed so many at once."""
    from redthread.store import gitio

    for number in range(300):
        store.log(
            run_id, "build", "note", {"text": f"what happened in step {number} of the work", "at": number}
        )
        if number % at_once == at_once - 1:
            gitio.commit_if_dirty(place, f"entry {number}")
    return {}


if __name__ == "__main__":
    main()
