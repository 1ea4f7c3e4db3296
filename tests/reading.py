"""Session files read as the import reads them, with the file system left out: bytes in, a thread out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from raddle.actions.importing.importer import (
    Blob,
    Ending,
    Importer,
    Links,
    Problem,
    SourceName,
)
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message
from raddle.model.threads.register import one_write
from raddle.model.threads.thread import Thread


class Reading(Struct, kw_only=True):
    """What a reading gave. `messages`: as they were taken, one that grew after that more than once."""

    thread: Thread
    ending: Ending
    messages: list[Message]
    blobs: list[Blob]
    problems: list[Problem]

    def texts(self) -> list[str]:
        """What was said, in order."""
        return [message.content for message in self.thread.messages]

    def message(self, content: str) -> Message:
        """The one message that says exactly this."""
        (found,) = [message for message in self.thread.messages if message.content == content]
        return found

    def path(self) -> list[str]:
        """What the path to the tip says."""
        tip = self.thread.tree.tip()
        return [message.content for message in self.thread.tree.path_to_root(tip.id if tip else None)]

    def register(self, path: str) -> object:
        """What a register shows."""
        return self.thread.shows(path)


def named(name: str, *folders: str, sidecar: bytes = b"") -> SourceName:
    """A file of that name in those folders."""
    return SourceName(name=name, folders=folders, sidecar=sidecar)


def read(
    importer: Importer,
    source: SourceName,
    data: bytes | Iterable[bytes],
    *,
    before: Reading | None = None,
    links: Links | None = None,
    batch: int = 3,
) -> Reading:
    """Read a file from its start, or what follows what was read `before`; joined into what came before.

    `data`: bytes, or lines that all end with a newline. Lines are fed and messages taken `batch` at a time.
    """
    whole = data if isinstance(data, bytes) else b"".join(line + b"\n" for line in data)
    *lines, tail = whole.split(b"\n")
    thread = before.thread.copy() if before is not None else Thread("")
    state = before.ending.state if before is not None else b""
    reader = importer.open(source, state=state, links=links, lookup=thread.tree.get)
    messages: list[Message] = []
    blobs: list[Blob] = []
    for at in range(0, len(lines), batch):
        reader.feed(lines[at : at + batch])
        taken = reader.take()
        messages += taken.messages
        blobs += taken.blobs
    ending = reader.finish(tail)
    taken = reader.take()
    messages += taken.messages
    blobs += taken.blobs
    reading = Reading(
        thread=thread, ending=ending, messages=messages, blobs=blobs, problems=list(reader.problems)
    )
    thread.id = ending.thread_id or thread.id
    thread.join(delta_of(reading))
    return reading


def delta_of(reading: Reading) -> Delta:
    """What a reading tells a thread."""
    registers = {path: one_write(n, "", value) for path, n, value in reading.ending.registers}
    return Delta(messages=tuple(reading.messages), registers=registers)


def read_on(importer: Importer, source: SourceName, first: Sequence[bytes], rest: Sequence[bytes]) -> Reading:
    """A file read while it had its first lines, and again when it had the rest, as the import does it.

    The second reading goes on where the first ended, unless it says that this is not enough.
    """
    begun = read(importer, source, first)
    if begun.ending.state:
        grown = read(importer, source, rest, before=begun)
        if not grown.ending.needs_whole:
            return grown
    whole = read(importer, source, [*first, *rest])
    whole.thread.join(begun.thread.whole())
    return whole


def read_session(
    importer: Importer, main: tuple[SourceName, bytes], *parts: tuple[SourceName, bytes]
) -> Reading:
    """A session of several files: the main one, then its parts with what the files before told."""
    reading = read(importer, *main)
    links = reading.ending.links
    for source, data in parts:
        part = read(importer, source, data, links=links)
        links = links.joined(part.ending.links)
        reading.thread.join(part.thread.whole())
        reading.problems += part.problems
    return reading


def same_thread(one: Thread, other: Thread) -> bool:
    """Are they equal, message by message and register by register?"""
    return one.messages == other.messages and one.registers == other.registers


def difference(one: Thread, other: Thread) -> str:
    """What a failed comparison wants to show; empty where the threads are equal."""
    mine = {message.id: message for message in one.messages}
    theirs = {message.id: message for message in other.messages}
    told = [
        f"{message_id}:\n  {mine.get(message_id)}\n  {theirs.get(message_id)}"
        for message_id in {**mine, **theirs}
        if mine.get(message_id) != theirs.get(message_id)
    ]
    told += [
        f"{path}: {one.registers.get(path)} / {other.registers.get(path)}"
        for path in {**one.registers, **other.registers}
        if one.registers.get(path) != other.registers.get(path)
    ]
    return "\n".join(told)
