"""Calls of tools, between what threads hold and what chat APIs take.

A thread keeps the ids, names and arguments of a call as its agent wrote them; an API refuses a whole conversation for
one id that is too long. What is sent is always the same for the same path, or no server could reuse what it has read.
"""

from __future__ import annotations

import io
import re
from typing import Any

from raddle.model.errors import BrokenFormat
from raddle.model.threads.message import ToolCall
from raddle.model.tolerant_json import decode_tolerantly

LONGEST_ID, LONGEST_NAME = 40, 64
"""The least that any of the APIs takes."""
_ID = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_ID}}}\Z")
_NO_LETTER_OF_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class SentCalls:
    """The calls of one request: what each is called there, no two the same."""

    def __init__(self) -> None:
        self._sent: set[str] = set()
        self._open: dict[str, str] = {}
        self._names: dict[str, None] = {}

    @property
    def names(self) -> list[str]:
        """The tools that were called, each once, as they came."""
        return list(self._names)

    def add(self, call: ToolCall) -> str:
        """The id to send for a call. Results with the call's own id belong to it from here on."""
        sent = call.id
        if _ID.match(sent) is None or sent in self._sent:
            number = len(self._sent) + 1
            while f"call_{number}" in self._sent:
                number += 1
            sent = f"call_{number}"
        self._sent.add(sent)
        self._open[call.id] = sent
        self._names[name_of(call.tool_name)] = None
        return sent

    def result(self, call_id: str) -> str | None:
        """The id to send for a result, once for every call; None where no call waits for it."""
        return self._open.pop(call_id, None)


def name_of(tool_name: str) -> str:
    """The name to send for a tool."""
    return _NO_LETTER_OF_A_NAME.sub("_", tool_name)[:LONGEST_NAME] or "tool"


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call as the object that APIs take; what is none is put into one, as `input`."""
    given = call.arguments_json
    if isinstance(given, str):
        given = _value_of(given)
    if given is None or given == "":
        return {}
    return given if isinstance(given, dict) else {"input": given}


class ArrivingCalls:
    """The calls of an answer, put together out of what a stream tells of them."""

    def __init__(self) -> None:
        self._calls: list[_Arriving] = []
        self._at: dict[int, _Arriving] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def take(self, index: int | None, *, call_id: str = "", name: str = "", arguments: str = "") -> None:
        """More of the call at `index` (None: the last one, unless an id begins another)."""
        known = self._at.get(index) if index is not None else (self._calls[-1] if self._calls else None)
        # Some servers give every call the index 0, each with an id of its own.
        if known is None or (call_id and known.id and known.id != call_id):
            known = _Arriving()
            self._calls.append(known)
            if index is not None:
                self._at[index] = known
        known.id = known.id or call_id
        known.name = known.name or name
        known.arguments.write(arguments)

    def whole(self) -> tuple[ToolCall, ...]:
        """All of them. Arguments that are no JSON are kept as the text they are."""
        return tuple(
            ToolCall(
                id=call.id or f"call_{number}",
                tool_name=call.name,
                arguments_json=_value_of(call.arguments.getvalue()),
            )
            for number, call in enumerate(self._calls, 1)
        )


class _Arriving:
    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = io.StringIO()


def _value_of(text: str) -> Any:
    if not text.strip():
        return {}
    try:
        return decode_tolerantly(text.encode("utf-8", "replace"))[0]
    except BrokenFormat:
        return text
