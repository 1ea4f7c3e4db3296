"""What a device tells a hub of the agents' own files that a thread came from: which blobs are which part of which.

Paths are facts of a machine and do not leave it: files are told apart by a key that says nothing to anybody else,
and keep the name that their agent gave them. Device and hub speak these values and no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from raddle.model.errors import BrokenFormat, InvalidInput

MOST_SEGMENTS = 100_000
"""Of one device and one thread."""
LONGEST_KEY, LONGEST_NAME = 64, 1_000
_MOST = 1 << 53
"""What every JSON reader can still count."""
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_DEVICE = re.compile(r"[0-9a-f]{8}\Z")
_Value = TypeVar("_Value")


class SourceSegment(Struct, frozen=True, kw_only=True):
    """Bytes `start` to `end` of one generation of a source file: the blob `sha256`, of `size` bytes.

    `key`: the folder of the session, as a hash. `name`: the file's path below that folder, parts with a `/` between.
    """

    key: str
    name: str
    agent: str
    sha256: str
    generation: int
    start: int
    end: int
    size: int


class DeviceSources(Struct, frozen=True, kw_only=True):
    """What one device keeps of a thread's sources."""

    device: str
    segments: tuple[SourceSegment, ...]


class SourceList(Struct, frozen=True, kw_only=True):
    """The body by which a device says what it keeps. `version`: of the thread, as the device has it."""

    version: int
    segments: tuple[SourceSegment, ...]


def parse_device(text: str) -> str:
    """`text` itself where it names a device: 8 hex digits, in lower case; else InvalidInput."""
    if _DEVICE.match(text) is None:
        raise InvalidInput("device: it is not 8 hex digits in lower case", "a device has such an id")
    return text


def check_segments(segments: Sequence[SourceSegment]) -> None:
    """InvalidInput, naming the field, for what is no list of segments."""
    if len(segments) > MOST_SEGMENTS:
        raise InvalidInput(f"segments: more than {MOST_SEGMENTS:,} of them")
    for place, segment in enumerate(segments):
        reason = _wrong_in(segment)
        if reason:
            raise InvalidInput(f"segments[{place}].{reason}")


def _wrong_in(segment: SourceSegment) -> str:
    if not _is_word(segment.key):
        return f"key is not one to {LONGEST_KEY} ASCII characters"
    if not is_safe_name(segment.name):
        return "name is no path of a file below a folder"
    if not _is_word(segment.agent):
        return f"agent is not one to {LONGEST_KEY} ASCII characters"
    if _SHA256.match(segment.sha256) is None:
        return "sha256 is not 64 hex digits in lower case"
    numbers = (segment.generation, segment.start, segment.end, segment.size)
    if min(numbers) < 0 or max(numbers) > _MOST:
        return "generation, start, end or size is not between 0 and 2^53"
    if segment.end - segment.start != segment.size:
        return "size is not that of the bytes from start to end"
    return ""


def _is_word(text: str) -> bool:
    return 0 < len(text) <= LONGEST_KEY and text.isascii() and text.isprintable()


def is_safe_name(name: str) -> bool:
    """Does it name a file below a folder, wherever that is? A stranger's name is written to a disk one day."""
    parts = name.split("/")
    return (
        0 < len(name) <= LONGEST_NAME
        and name.isprintable()
        and "\\" not in name
        and not any(part in {"", ".", ".."} for part in parts)
    )


def encode_source_list(version: int, segments: Sequence[SourceSegment]) -> dict[str, Any]:
    """`{"version", "segments"}`."""
    plain: dict[str, Any] = msgspec.to_builtins(SourceList(version=version, segments=tuple(segments)))
    return plain


def decode_source_list(plain: Any) -> SourceList:
    """A device's list; BrokenFormat, InvalidInput where it is none."""
    sent = _converted(plain, SourceList)
    check_segments(sent.segments)
    return sent


def encode_sources(sources: Iterable[DeviceSources]) -> dict[str, Any]:
    """`{"sources": [{"device", "segments"}]}`."""
    return {"sources": msgspec.to_builtins(list(sources))}


def decode_sources(plain: Any) -> tuple[DeviceSources, ...]:
    """Every device's list; BrokenFormat, InvalidInput where an answer holds something else."""
    found = _converted(plain, _Sources).sources
    for each in found:
        parse_device(each.device)
        check_segments(each.segments)
    return found


class _Sources(Struct, frozen=True, kw_only=True):
    sources: tuple[DeviceSources, ...]


class _Missing(Struct, frozen=True, kw_only=True):
    missing: tuple[str, ...]


def decode_missing(plain: Any) -> tuple[str, ...]:
    """What a list was answered with: those of its blobs that the hub does not have."""
    missing = _converted(plain, _Missing).missing
    if not all(_SHA256.match(sha256) for sha256 in missing):
        raise BrokenFormat("missing: one of them is no SHA-256")
    return missing


def _converted(plain: Any, kind: type[_Value]) -> _Value:
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise BrokenFormat(str(error)) from error
