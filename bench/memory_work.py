"""What raddle takes for one piece of work on a project's memory; a process of its own, prints JSON.

python -m bench.memory_work WORK STORE RUN
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable

import msgspec

from raddle.actions.memory.committing import commit_changes, commit_paths
from raddle.actions.memory.entries import EntryLog, NewEntry
from raddle.actions.memory.memories import set_memory
from raddle.actions.memory.memory_search import DocumentKind
from raddle.actions.memory.runs import start_run
from raddle.adapters.memory_repo import shelf_search  # noqa: F401  its import is not what is measured
from raddle.apps.mcp_server.memory_tools import MemoryList, memory_list
from raddle.apps.mcp_server.run_tools import ContextBootstrap, context_bootstrap
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.tools import Call
from raddle.config import load_config
from raddle.wiring import open_stores
from raddle.wiring.memory import ProjectMemory, open_memory
from raddle.wiring.memory_shelf import open_shelf, search_memory
from raddle.wiring.memory_syncing import sync_memory

_BATCH = 500


def timed(call: Callable[[], object], times: int = 1) -> float:
    """Milliseconds of one call, of so many."""
    start = time.perf_counter()
    for _ in range(times):
        call()
    return 1000 * (time.perf_counter() - start) / times


def read(memory: ProjectMemory, run_id: str) -> dict[str, float]:
    """Lists and a search, each the first of a process: the index is on the disk, and compared with the folder."""

    def lines() -> None:
        with open_shelf(memory) as shelf:
            shelf.memories()

    def entries() -> None:
        with open_shelf(memory) as shelf:
            shelf.entries(run_id, "build")

    only: tuple[DocumentKind, ...] = ("memory",)
    return {
        "memory list, first after a write": timed(lines),
        "memory list, again": timed(lines),
        "memory search": timed(lambda: search_memory(memory, '"nowhere-else"', limit=20, kinds=only)),
        "memory search, common word": timed(lambda: search_memory(memory, "session", limit=20, kinds=only)),
        "list entries": timed(entries),
        "list entries, again": timed(entries),
    }


def list_memories(memory: ProjectMemory) -> dict[str, float]:
    """The same where nobody wrote since the last one."""

    def lines() -> None:
        with open_shelf(memory) as shelf:
            shelf.memories()

    return {"memory list": timed(lines)}


def append(memory: ProjectMemory, run_id: str) -> dict[str, float]:
    """Entries, one by one, to an empty phase and to a full one, and many at once."""
    writer = memory.writer()
    new = start_run(memory.files, writer).run_id
    log = EntryLog(memory.files, writer)
    entry = NewEntry(type="note", payload={"text": "what happened", "files": 12})
    log.add(run_id, "build", entry)
    return {
        "append, phase of 0": timed(lambda: log.add(new, "build", entry), 50),
        "append, full phase": timed(lambda: log.add(run_id, "build", entry), 50),
        f"append {_BATCH} at once": timed(lambda: log.add_all(new, "test", [entry] * _BATCH)),
    }


def write(memory: ProjectMemory) -> dict[str, float]:
    """A memory, written and committed."""
    writer, times, stamp = memory.writer(), itertools.count(), time.time_ns()

    def one() -> None:
        done = set_memory(memory.files, writer, f"team/new-{stamp}-{next(times)}", "a text")
        commit_paths(memory.files, memory.repository, writer, [done.path])

    one()
    return {"memory write + commit": timed(one, 5)}


def tools(memory: ProjectMemory) -> dict[str, float]:
    """What an agent asks first, without a protocol; and how long the answers are, in KB."""
    session = Session(msgspec.structs.replace(memory.stores.config, store=str(memory.root), is_offline=True))
    call = Call(progress=lambda done, of, what: None, is_over=lambda: False)
    told: list[dict[str, object]] = []

    def bootstrap() -> None:
        told.append(context_bootstrap(session, ContextBootstrap(), call))

    def listed() -> None:
        told.append(memory_list(session, MemoryList(), call))

    figures = {"context_bootstrap": timed(bootstrap), "memory_list": timed(listed)}
    sizes = [len(msgspec.json.encode(one)) / 1000 for one in told]
    return {**figures, "context_bootstrap, KB": sizes[0], "memory_list, KB": sizes[1]}


def sync(memory: ProjectMemory, run_id: str) -> dict[str, float]:
    """Syncs with so many new entries."""
    sync_memory(memory, may_publish=True)
    log = EntryLog(memory.files, memory.writer())
    figures = {}
    for count in (0, 1, 100, 1000):
        log.add_all(
            run_id,
            "test",
            [NewEntry(type="note", payload={"text": f"entry {number}"}) for number in range(count)],
        )
        figures[f"sync, {count:,} new"] = timed(lambda: sync_memory(memory))
    return figures


def begin(memory: ProjectMemory) -> dict[str, str]:
    """A run to work in; and the index, made once."""
    with open_shelf(memory) as shelf:
        shelf.rebuild()
    return {"run": start_run(memory.files, memory.writer()).run_id}


def commits(memory: ProjectMemory, run_id: str, at_once: int) -> dict[str, float]:
    """300 entries, committed so many at once."""
    writer = memory.writer()
    log = EntryLog(memory.files, writer)
    for number in range(300):
        payload = {"text": f"what happened in step {number} of the work", "at": number}
        log.add(run_id, "build", NewEntry(type="note", payload=payload))
        if number % at_once == at_once - 1:
            commit_changes(memory.files, memory.repository, writer)
    return {}


def main(arguments: list[str]) -> None:
    """Do it and print the milliseconds of each figure."""
    work, place, run_id = arguments
    os.sync()  # what others left unwritten is not ours to wait for
    with open_stores(load_config()) as stores:
        memory = open_memory(stores, place)
        figures: dict[str, Callable[[], object]] = {
            "begin": lambda: begin(memory),
            "read": lambda: read(memory, run_id),
            "list": lambda: list_memories(memory),
            "append": lambda: append(memory, run_id),
            "write": lambda: write(memory),
            "sync": lambda: sync(memory, run_id),
            "tools": lambda: tools(memory),
            "commits": lambda: commits(memory, run_id, 1),
            "commits of ten": lambda: commits(memory, run_id, 10),
        }
        print(json.dumps(figures[work]()))


if __name__ == "__main__":
    main(sys.argv[1:])
