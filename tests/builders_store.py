"""Thread stores to try things on: over a folder of the test's own, written by a device of the test's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from raddle.actions.ports import Finding, ThreadStore
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.local_store.thread_files_reading import Files, files_of
from raddle.adapters.locks import LockFiles
from raddle.adapters.paths import Paths
from raddle.model.clock import Clock
from raddle.model.ids import MonotonicIds
from raddle.model.threads.edits import Author
from raddle.model.threads.thread import Thread
from tests.builders import WoundClock, an_author

DEVICE = "aaaaaaaa"


def paths_in(folder: Path) -> Paths:
    """A data folder, and the others beside it."""
    return Paths(
        data_dir=folder / "data",
        config_dir=folder / "config",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
    )


def a_writer(device: str = DEVICE, clock: Clock | None = None) -> Author:
    """Somebody whose ids are real ones, since threads are named by them."""
    clock = clock or WoundClock()
    return an_author(device, clock, new_id=MonotonicIds(clock))


def a_store(
    folder: Path,
    author: Author | None = None,
    *,
    changed: Callable[[str], None] = lambda _: None,
    report: Callable[[Finding], None] = lambda _: None,
) -> ThreadFiles:
    """A store over `folder`; another one over the same folder is like another process."""
    paths = paths_in(folder)
    return ThreadFiles(
        paths, LockFiles(paths.locks_dir), author or a_writer(), changed=changed, report=report
    )


def begin(store: ThreadStore, *turns: str, title: str = "") -> str:
    """The id of a new thread: user and assistant in turn."""
    with store.create() as editor:
        editor.start(workspace_root="/w")
        for number, turn in enumerate(turns or ("hello",)):
            editor.append("assistant" if number % 2 else "user", turn)
        if title:
            editor.rename(title)
    return editor.thread.id


def files_in(folder: Path, thread_id: str) -> Files:
    """Where the files of a thread lie."""
    return files_of(paths_in(folder), thread_id)


def grow_old(path: Path) -> None:
    """As if nobody had touched it for a while: nothing waits for a writer to finish it."""
    os.utime(path, (1_000_000_000, 1_000_000_000))


def equal(one: Thread, other: Thread) -> bool:
    """Do both hold the same?"""
    return (one.id, one.version, one.messages, one.registers, one.clock) == (
        other.id,
        other.version,
        other.messages,
        other.registers,
        other.clock,
    )
