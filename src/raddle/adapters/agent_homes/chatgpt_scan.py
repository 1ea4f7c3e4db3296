"""Finds the conversations in an export of ChatGPT: one array of JSON, often of gigabytes, on one line.

Owns where a conversation begins and ends. It is read in windows that are no larger than the conversation in them;
the strict decoder says where each one ends, so nothing is counted twice and nothing is guessed. Where it refuses
one, its brackets say where it ends, and where these do not, the next thing that begins as the first conversation
began.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Raw, Struct

from raddle.actions.importing.chatgpt_layout import CAPTURED, conversation_lines, microseconds
from raddle.actions.importing.fitting import NOTHING
from raddle.actions.importing.json_values import MALFORMED, UNENDED, end_of_brackets, end_of_value
from raddle.actions.importing.records import UNREADABLE
from raddle.model.errors import BrokenFormat

LARGEST_BYTES = 48 << 20
"""A longer conversation is not read: four times as much memory is needed while it becomes lines."""
_WINDOW_BYTES = 1 << 20
_SEARCH_BYTES = 4 << 20
_OVERLAP_BYTES = 4096
_BETWEEN = re.compile(rb"[\s,\[\]}\0]*")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PREFIX = re.compile(rb'\s*\{\s*"(?:conversations|items)"\s*:\s*(?=\[)')
_GOES_ON = re.compile(rb'[\s}\0]*,?\s*"(?:[^"\\]|\\.)*"\s*:')
"""What stands after an object that was closed too early."""
_SCALAR = rb'(?:"(?:[^"\\]|\\.)*"|[\w.+-]+)'
_OPENING = re.compile(rb'\{\s*"([^"\\]{1,60})"\s*:\s*(?:' + _SCALAR + rb'\s*,\s*"([^"\\]{1,60})"\s*:)?')


class Bytes(Protocol):
    """A file, or a file in a file, that is read from anywhere. SourceError where that fails."""

    @property
    def size(self) -> int:
        """How many bytes it holds."""

    def read(self, offset: int, size: int) -> bytes:
        """As many bytes from `offset` on, fewer where the file ends."""


class Found(NamedTuple):
    """A conversation, the `number`-th element from 1, at `start` to `end`. `reason`: what is wrong with it."""

    number: int
    start: int
    end: int
    session: str = ""
    changed: int = 0
    """Microseconds since 1970; 0 where it does not say."""
    reason: str = ""
    is_readable: bool = True
    """False where nothing of it is a conversation."""


class _Listed(Struct, frozen=True):
    """What is asked of a conversation before it is read."""

    conversation_id: Raw = NOTHING
    id: Raw = NOTHING
    create_time: Raw = NOTHING
    update_time: Raw = NOTHING
    mapping: Raw = NOTHING
    captured: Raw = msgspec.field(default=NOTHING, name=CAPTURED)


_decode_listed = msgspec.json.Decoder(_Listed).decode
_decode_plain = msgspec.json.Decoder().decode


def conversations(source: Bytes, *, largest: int = LARGEST_BYTES) -> Iterator[Found]:
    """Every element of the export, in its order, those that are no conversations too. Longer ones are not read."""
    window = _Window(source)
    start = len(_BYTE_ORDER_MARK) if window.at(0)[: len(_BYTE_ORDER_MARK)] == _BYTE_ORDER_MARK else 0
    prefix = _PREFIX.match(window.at(start))
    at, marks = _next(window, start + (prefix.end() if prefix is not None else 0))
    is_list, is_closed = b"[" in marks, b"]" in marks
    opening = _opening_of(window.at(at))
    number = 0
    is_sure = is_told = False
    while at < source.size:
        number += 1
        found = _element(window, number, at, opening, largest)
        if not (is_sure or found.reason):
            opening, is_sure = _opening_of(window.at(at)), True
        yield found
        at, marks = _next(window, found.end)
        is_closed, is_told = b"]" in marks, bool(found.reason)
    if is_list and not (is_closed or is_told):
        reason = (
            f"it ends too early, after {number:,} conversations (at byte {at:,}): what came then is missing"
        )
        yield Found(number + 1, at, at, reason=reason, is_readable=False)


class _Window:
    """The part of a file that is looked at; it moves forward."""

    def __init__(self, source: Bytes) -> None:
        self._source = source
        self._start = 0
        self._data = b""

    @property
    def is_at_end(self) -> bool:
        """Does the window end where the file ends?"""
        return self._start + len(self._data) >= self._source.size

    def at(self, offset: int, size: int = 0) -> memoryview:
        """What stands from `offset` on: so many bytes or more, fewer where the file ends."""
        size = size or _WINDOW_BYTES
        before = offset - self._start
        missing = offset + size - self._start - len(self._data)
        is_behind = before < 0
        if is_behind or (missing > 0 and not self.is_at_end):
            kept = b"" if is_behind else self._data[before:]
            missing = size - len(kept)
            self._data = b""
            self._data = kept + self._source.read(offset + len(kept), max(missing, _WINDOW_BYTES))
            self._start, before = offset, 0
        return memoryview(self._data)[before:]


def _next(window: _Window, at: int) -> tuple[int, set[bytes]]:
    """Where the next element begins, past commas and white space, and which brackets of the list stand before it."""
    marks: set[bytes] = set()
    while True:
        view = window.at(at)
        size = _size_between(view)
        passed = bytes(view[:size])
        marks.update(mark for mark in (b"[", b"]") if mark in passed)
        at += size
        if size < len(view) or window.is_at_end:
            return at, marks


def _size_between(data: bytes | memoryview) -> int:
    passed = _BETWEEN.match(data)
    return passed.end() if passed is not None else 0


def _element(window: _Window, number: int, start: int, opening: re.Pattern[bytes], largest: int) -> Found:
    """The element that begins at `start`, or what is damaged from there on."""
    size = _size_at(window, start, largest)
    if size > 0:
        listed = _listed(window.at(start)[:size])
        if listed is not None:
            return Found(number, start, start + size, *listed)
        told = f"element {number} (bytes {start:,} to {start + size:,}) is no conversation"
        return Found(number, start, start + size, reason=told, is_readable=False)
    end, is_torn = _end_of_damage(window, start, opening, largest)
    told = f"conversation {number} (bytes {start:,} to {end:,})"
    if end - start > largest:
        return Found(number, start, end, reason=f"{told} is too long to read", is_readable=False)
    damaged = _listed_damaged(bytes(window.at(start, end - start)[: end - start]))
    if damaged is None:
        return Found(
            number, start, end, reason=f"{told} is damaged: nothing of it is read", is_readable=False
        )
    session, changed, is_told = damaged
    reason = "" if is_told and not is_torn else f"{told} is damaged: what can be read of it is"
    return Found(number, start, end, session, changed, reason)


def _size_at(window: _Window, start: int, largest: int) -> int:
    """How long the element at `start` is; MALFORMED where it is none, or has no end within `largest` bytes."""
    size = _WINDOW_BYTES
    while True:
        found = end_of_value(window.at(start, size)[: largest + 1])
        if found != UNENDED:
            return found if 0 < found <= largest and _ends_there(window, start, found) else MALFORMED
        if window.is_at_end or size > largest:
            return MALFORMED
        size *= 2


def _ends_there(window: _Window, start: int, size: int) -> bool:
    """Is it an element that ends there, or did an object lose its end, or get one too early?"""
    after = bytes(window.at(start, size + _OVERLAP_BYTES)[size : size + _OVERLAP_BYTES])
    return _GOES_ON.match(after) is None and (_is_end(after) or after[:1] in (b",", b"]"))


def _end_of_damage(window: _Window, start: int, opening: re.Pattern[bytes], largest: int) -> tuple[int, bool]:
    """Where what is damaged ends: at its own last bracket, else (True) before the next that begins as they all do."""
    following = _following(window, start, opening)
    most = following - start
    if most <= largest:
        view = window.at(start, most)
        size = end_of_brackets(view[:most])
        if size and _is_end(bytes(view[size : size + _OVERLAP_BYTES])):
            return start + size, False
    return following, True


def _is_end(data: bytes) -> bool:
    """Does an element end before `data`?"""
    size = _size_between(data)
    return size == len(data) or (data[size : size + 1] == b"{" and b"," in data[:size])


def _following(window: _Window, start: int, opening: re.Pattern[bytes]) -> int:
    """Where the next element begins by its looks, after `start`; the end of the file where none does."""
    at = start + 1
    while True:
        view = window.at(at, _SEARCH_BYTES)
        found = opening.search(view)
        if found is not None:
            return at + found.start(1)
        if window.is_at_end:
            return at + len(view)
        at += max(len(view) - _OVERLAP_BYTES, 1)


def _opening_of(view: memoryview) -> re.Pattern[bytes]:
    """How an element looks that begins as the first one: with its first two names, else after another's end."""
    found = _OPENING.match(view)
    first = rb'(\{\s*"' + (re.escape(found.group(1)) if found is not None else b"title") + rb'"\s*:'
    if found is None or not found.group(2):
        return re.compile(rb"[}\]]\s*,\s*" + first + rb")")
    return re.compile(first + rb"\s*" + _SCALAR + rb'\s*,\s*"' + re.escape(found.group(2)) + rb'"\s*:)')


def _listed(view: memoryview) -> tuple[str, int] | None:
    """(session, time of the last change) of an element; None where it is no conversation."""
    try:
        listed = _decode_listed(view)
        if listed.mapping is NOTHING and listed.captured is not NOTHING:
            listed = _decode_listed(listed.captured)
    except UNREADABLE:
        return None
    if bytes(listed.mapping)[:1] != b"{":
        return None
    session = _plain(listed.conversation_id) or _plain(listed.id)
    changed = _plain(listed.update_time) or _plain(listed.create_time)
    moment = microseconds(changed) if isinstance(changed, int | float) else None
    return session if isinstance(session, str) else "", moment or 0


def _plain(raw: Raw) -> Any:
    try:
        return _decode_plain(raw)
    except UNREADABLE:
        return None


def _listed_damaged(data: bytes) -> tuple[str, int, bool] | None:
    """The same of one that is damaged, and whether its reader will meet the damage, and tell the line."""
    try:
        header, *nodes = conversation_lines(data)
    except BrokenFormat:
        return None
    fields = _decode_plain(header)
    session, changed = fields["conversation_id"], fields.get("update_time") or fields.get("create_time")
    moment = microseconds(changed) if isinstance(changed, int | float) else None
    return session if isinstance(session, str) else "", moment or 0, any(map(_is_damaged, nodes))


def _is_damaged(line: bytes) -> bool:
    try:
        _decode_plain(line)
    except UNREADABLE:
        return True
    return False
