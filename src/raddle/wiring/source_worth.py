"""How much of a kept source file its agent's reader makes out: what a copy, or a generation of one, is worth.

Owns which bytes count as a session that can be read. Bytes alone say nothing of it: a file that was overwritten has
many, and one that was exported from here and brought back has more than the one that its agent goes on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from raddle.actions.importing.importer import MAX_LINE_BYTES, Reader, SourceName
from raddle.actions.importing.registry import importer_of
from raddle.actions.importing.run_plan import Segment
from raddle.adapters.agent_homes.discovery import Discovery
from raddle.wiring import Stores
from raddle.wiring.source_segments import bytes_of, has_gaps


def homes_of(stores: Stores, agent: str) -> list[Path]:
    """The folders in which this agent keeps its sessions on this machine."""
    environment = stores.config.environment
    user_home = Path(environment("HOME") or "~").expanduser()
    return Discovery({}).homes((importer_of(agent),), environment, user_home)


def source_name(path: str) -> SourceName:
    """What a reader is told of a kept file."""
    return SourceName(name=PurePath(path).name, folders=PurePath(path).parent.parts[1:])


def turns_read(stores: Stores, agent: str, path: str, segments: list[Segment]) -> Iterator[str]:
    """The ids of the turns that a generation of the file holds of the agent's own, some more than once, as they are
    read: what was written here is none of them. Where bytes are lost none come."""
    if not is_here(stores, segments):
        return
    reader = importer_of(agent).open(source_name(path))
    tail = b""
    for line, is_ended in lines_of(bytes_of(stores.blobs, segments)):
        if not is_ended:
            tail = line or b""
            continue
        if line is None:
            reader.skip_line("too long")
        else:
            reader.feed((line,))
        yield from _own(reader)
    reader.finish(tail)
    yield from _own(reader)


def _own(reader: Reader) -> Iterator[str]:
    return (message.id for message in reader.take().messages if not message.device)


def is_here(stores: Stores, segments: list[Segment]) -> bool:
    """Are all bytes of the generation in the store?"""
    missing = any(stores.blobs.size(segment.sha256) is None for segment in segments)
    return not missing and not has_gaps(segments)


def newest_readable(stores: Stores, agent: str, path: str, generations: dict[int, list[Segment]]) -> int:
    """The newest generation in which something can be read; the newest where that is so of none, and also where bytes
    of it are lost: of what is not there nobody knows."""
    for number in sorted(generations, reverse=True):
        if not is_here(stores, generations[number]):
            break
        if any(True for _ in turns_read(stores, agent, path, generations[number])):
            return number
    return max(generations)


def lines_of(chunks: Iterable[bytes]) -> Iterator[tuple[bytes | None, bool]]:
    """(line without its end, has it one?) of each line; None for one that is too long to read."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        first, *more = chunk.split(b"\n")
        held, size = _held(held, size, first)
        for following in more:
            yield (None if size > MAX_LINE_BYTES else b"".join(held)), True
            held, size = _held([], 0, following)
    if size:
        yield (None if size > MAX_LINE_BYTES else b"".join(held)), False


def _held(held: list[bytes], size: int, more: bytes) -> tuple[list[bytes], int]:
    """One more part of a line; of one that is too long only the size is kept."""
    size += len(more)
    return ([] if size > MAX_LINE_BYTES else [*held, more]), size
