"""Added turns as messages of a Gemini CLI session: lines at its end, or inside the list where it is one document.

Owns how raddle writes a message of that format, and where the list of an old document ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from raddle.actions.exporting.native import Added, Insertion, SourceEnd, Where, lines_at_end, stamp_of
from raddle.model.errors import BrokenFormat
from raddle.model.threads.carried import FIELD, carried_form
from raddle.model.threads.message import Message

_LISTS = frozenset((b"messages", b"history"))
_SPACE = b" \t\r\n"
_MARK = re.compile(rb'["{}\[\]]')
_END_OF_TEXT = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LONGEST_KEY = 64
_LONGEST_INDENT = 256


class GeminiCliWriter:
    """Learns the age of the format and, of a document, where its list of messages ends."""

    def __init__(self) -> None:
        self._document = _Document()

    def scan(self, chunk: bytes) -> None:
        """The file's bytes as they come."""
        self._document.feed(chunk)

    def see(self, line: bytes, where: Where) -> None:
        """Bytes tell everything."""

    def insertion(self, added: Sequence[Added], session_id: str, end: SourceEnd) -> Insertion:
        """Lines at the end, or elements at the end of the list."""
        document = self._document
        if not document.is_one:
            return lines_at_end((msgspec.json.encode(_line(one.message)) for one in added), end)
        if document.list_end < 0:
            raise BrokenFormat(
                "the session is a document that has no end, so nothing can be added to it",
                "`--generation` may name an earlier one; json and markdown hold everything",
            )
        pieces = [document.printed(_line(one.message, is_old=True)) for one in added]
        glue = b"," + document.between
        first = document.between if document.is_empty else glue
        return Insertion(at=document.list_end, data=first + glue.join(pieces))


class _Document:
    """Finds the end of the list of messages in a JSON document that comes in pieces.

    `is_lines`: it is no document, but a file of lines. `list_end`: the offset after the list's last element, or after
    its bracket where it is empty; -1 until that is found. `between`: what stands before the elements.
    """

    def __init__(self) -> None:
        self.is_lines = False
        self.list_end = -1
        self.is_empty = False
        self.between = b""
        self._depth = 0
        self._offset = 0
        self._solid_end = 0
        self._in_text = False
        self._is_escaped = False
        self._text: bytes | None = None
        self._key = b""
        self._in_list = False
        self._list_start = -1
        self._indent: bytes | None = None
        self._is_root_over = False

    @property
    def is_one(self) -> bool:
        """Is the file one document that lists its messages? A header alone is the first of some lines."""
        return not self.is_lines and (self.list_end >= 0 or not self._is_root_over)

    def feed(self, chunk: bytes) -> None:
        """The next bytes. Once it is clear that these are lines, none is looked at any more."""
        if self.is_lines or not chunk:
            return
        if self._indent is not None:
            self._measure(chunk)
        at = 0
        while at < len(chunk):
            at = self._rest_of_text(chunk, at) if self._in_text else self._next_mark(chunk, at)
        solid = len(chunk.rstrip(_SPACE))
        if solid:
            self._solid_end = self._offset + solid
        self._offset += len(chunk)

    def _measure(self, chunk: bytes) -> None:
        """More of what stands between the bracket and the first element."""
        indent = self._indent or b""
        space = chunk[: len(chunk) - len(chunk.lstrip(_SPACE))]
        self._indent = None
        self.between = (indent + space)[:_LONGEST_INDENT]
        if len(space) == len(chunk):
            self._indent = self.between

    def _rest_of_text(self, chunk: bytes, at: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            self._hold(chunk[at : at + 1])
            return at + 1
        found = _END_OF_TEXT.match(chunk, at)
        if found is None:
            rest = chunk[at:]
            self._hold(rest)
            self._is_escaped = (len(rest) - len(rest.rstrip(b"\\"))) % 2 == 1
            return len(chunk)
        self._hold(chunk[at : found.end() - 1])
        self._in_text = False
        if self._depth == 1 and self._text is not None:
            self._key = self._text
        self._text = None
        return found.end()

    def _hold(self, text: bytes) -> None:
        """Keep a text of the document itself, which may be the name of the list."""
        if self._text is not None:
            self._text = self._text + text if len(self._text) + len(text) <= _LONGEST_KEY else None

    def _next_mark(self, chunk: bytes, at: int) -> int:
        found = _MARK.search(chunk, at)
        if found is None:
            if self._is_root_over and chunk[at:].strip(_SPACE):
                self.is_lines = True
            return len(chunk)
        place, mark = found.start(), found.group()
        if self._is_root_over:
            self.is_lines = True
            return len(chunk)
        if mark == b'"':
            self._in_text, self._text = True, b"" if self._depth == 1 else None
        elif mark in b"{[":
            self._open(mark, chunk, place)
        else:
            self._close(mark, chunk, place)
        return place + 1

    def _open(self, mark: bytes, chunk: bytes, place: int) -> None:
        if self._depth == 1 and mark == b"[" and self._key in _LISTS:
            self._in_list = True
            self._list_start = self._offset + place + 1
            rest = chunk[place + 1 :]
            space = rest[: len(rest) - len(rest.lstrip(_SPACE))]
            self.between = space[:_LONGEST_INDENT]
            self._indent = self.between if len(space) == len(rest) else None
        self._depth += 1

    def _close(self, mark: bytes, chunk: bytes, place: int) -> None:
        self._depth -= 1
        if self._depth == 1 and mark == b"]" and self._in_list:
            self._in_list = False
            before = len(chunk[:place].rstrip(_SPACE))
            self.list_end = self._offset + before if before else self._solid_end
            self.is_empty = self.list_end == self._list_start
            if self.is_empty and b"\n" in self.between:
                self.between = b"\n    "
        if self._depth <= 0:
            self._is_root_over = True

    def printed(self, value: dict[str, Any]) -> bytes:
        """An element of the list, printed as the others are."""
        data = msgspec.json.encode(value)
        start, newline, indent = self.between.rpartition(b"\n")
        if not newline:
            return data
        step = indent[: max(len(indent) // 2, 1)] or b"  "
        lines = msgspec.json.format(data, indent=1).split(b"\n")
        out = []
        for line in lines:
            bare = line.lstrip(b" ")
            out.append(indent + step * (len(line) - len(bare)) + bare)
        ending = b"\r\n" if start.endswith(b"\r") else b"\n"
        return ending.join(out)[len(indent) :]


def _line(message: Message, *, is_old: bool = False) -> dict[str, Any]:
    """One message as the program writes it. `is_old`: as documents have it, where a prompt is a text."""
    if message.role == "assistant":
        calls = [(call.id, call.tool_name, call.arguments_json) for call in message.tool_calls]
        line = answer_line(message, message.content, calls)
    elif message.role == "tool":
        line = prompt_line(
            message,
            [
                response_part(
                    message.tool_call_id, message.tool_name, message.content, is_error=message.is_error
                )
            ],
        )
    else:
        line = prompt_line(message, message.content if is_old else [{"text": message.content}])
    return line | {FIELD: carried_form(message, is_said=message.role != "tool")}


def answer_line(message: Message, content: Any, calls: Iterable[tuple[str, str, Any]]) -> dict[str, Any]:
    """What a model said. `calls`: (id, name, arguments) of each."""
    at = stamp_of(message)
    line: dict[str, Any] = {"id": message.id, "timestamp": at, "type": "gemini", "content": content}
    if message.model:
        line["model"] = message.model
    made = [
        {
            "id": call_id,
            "name": name,
            "args": arguments if isinstance(arguments, dict) else {},
            "status": "success",
            "timestamp": at,
        }
        for call_id, name, arguments in calls
    ]
    return line | ({"toolCalls": made} if made else {})


def prompt_line(message: Message, content: Any) -> dict[str, Any]:
    """What a person said, or what came back from calls."""
    return {"id": message.id, "timestamp": stamp_of(message), "type": "user", "content": content}


def response_part(call_id: str, name: str, text: str, *, is_error: bool) -> dict[str, Any]:
    """What came back from a call."""
    response = {"error" if is_error else "output": text}
    return {"functionResponse": {"id": call_id, "name": name, "response": response}}
