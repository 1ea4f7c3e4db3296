"""Thread stores to try things on: over a folder of the test's own, written by a device of the test's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

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
LONG = "x" * 40_000
"""Two of these take a journal past the size at which it is folded."""


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
    erased: Callable[[str, frozenset[str]], None] = lambda *_: None,
    report: Callable[[Finding], None] = lambda _: None,
) -> ThreadFiles:
    """A store over `folder`; another one over the same folder is like another process."""
    paths = paths_in(folder)
    return ThreadFiles(
        paths,
        LockFiles(paths.locks_dir),
        author or a_writer(),
        changed=changed,
        erased=erased,
        report=report,
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


def names_in(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[2] or path.name for path in folder.iterdir())


def plain_of(file: Path) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(file.read_bytes())
    return plain


def is_whole_without_the_file(folder: Path, files: Files, whole: Thread) -> bool:
    """Is everything still there when the .json is not? (Tried on a copy.)"""
    copy = folder / "copy" / "data" / "threads"
    copy.mkdir(parents=True)
    for file in files:
        if file.exists() and file != files.json:
            (copy / file.name).write_bytes(file.read_bytes())
    seen = a_store(folder / "copy").load(whole.id)
    for file in copy.iterdir():
        file.unlink()
    copy.rmdir()
    return equal(seen, whole)


def rewritten_by_the_seed(file: Path, **changes: Any) -> None:
    """The file as the first seed's program leaves it: its own fields, messages without ids."""
    plain = plain_of(file)
    known = {"stamps", "format", "drafts", "removed_messages", "deleted_at", "client_version", "source"}
    seed = {key: value for key, value in plain.items() if key not in known}
    seed["metadata"] = {key: value for key, value in seed["metadata"].items() if key != "branches"}
    kept = ("role", "content", "tool_calls", "tool_call_id", "tool_name")
    seed["conversation"] = {
        "messages": [
            {key: message[key] for key in kept if key in message}
            for message in plain["conversation"]["messages"]
        ]
    }
    for key, value in changes.items():
        if key == "title":
            seed["metadata"]["title"] = value
        elif key == "turn":
            seed["conversation"]["messages"].append({"role": "user", "content": value})
        else:
            seed[key] = value
    file.write_bytes(msgspec.json.format(msgspec.json.encode(seed), indent=2))
