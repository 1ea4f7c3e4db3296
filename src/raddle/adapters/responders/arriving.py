"""An answer while it arrives: pieces out of a stream's events, and the whole once the stream says that it is whole.

Every API ends in the same few ways (whole, cut by a limit, cut by the network, an error in the middle, not a word), and
each is told here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from raddle.actions.answering.ports import Answered, Event, Piece
from raddle.adapters import event_stream
from raddle.adapters.responders.calls import ArrivingCalls
from raddle.adapters.responders.http import DONE, Failing
from raddle.model.errors import BrokenFormat, NetworkError, Unanswered
from raddle.model.threads.message import Usage
from raddle.model.tolerant_json import decode_tolerantly

CUT_BY = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
"""Why an answer is not whole though nothing failed, in the words of `Answered.cut_by`."""
_MAY_PASS = frozenset(
    {"overloaded_error", "rate_limit_error", "api_error", "timeout_error", "server_error"}
    | {"rate_limit_exceeded", "overloaded"}
)
"""Codes and types of errors that mean the same as a 429 or a 5xx."""

Told = Callable[[Any], str]
"""A stranger's words as one line without the key."""


class GrowingText:
    """A text that comes in many small pieces. Kept as UTF-8: as Python's own it would take four times as much."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, text: str) -> None:
        """More of it."""
        self._data += text.encode("utf-8", "replace")

    def whole(self) -> str:
        """All of it."""
        return self._data.decode()


class Arriving:
    """What came so far. An API's own module reads its events into it."""

    def __init__(self, host: str, told: Told, without_key: Callable[[str], str]) -> None:
        self.host = host
        self.told = told
        self._without_key = without_key
        self.model = ""
        self.usage: Usage | None = None
        self.end = ""
        """Why the model stopped, in the API's words; empty: it has not."""
        self.is_whole = False
        self.calls = ArrivingCalls()
        self._text = GrowingText()
        self._thinking = GrowingText()

    def piece(self, *, text: str = "", thinking: str = "") -> Iterator[Piece]:
        """Keep it, and tell it."""
        if text or thinking:
            text, thinking = self._without_key(text), self._without_key(thinking)
            self._text.add(text)
            self._thinking.add(thinking)
            yield Piece(text=text, thinking=thinking)

    def fail(self, error: Any) -> None:
        """Raise what an error in the middle of a stream comes to."""
        plain = error if isinstance(error, dict) else {"message": error}
        said = self.told(plain.get("message")) or self.told(plain.get("type")) or "no reason"
        codes = {code for code in (plain.get("code"), plain.get("type")) if isinstance(code, str | int)}
        message = f"{self.host} broke off: {said}"
        if codes & _MAY_PASS or any(isinstance(code, int) and (code == 429 or code >= 500) for code in codes):
            raise Failing(message, "ask again later", status=529)
        raise Unanswered(message, "ask again")

    def answered(self, *, provider: str, model: str) -> Answered:
        """All of it. Unanswered where there is nothing in it; Failing where it was cut off."""
        if not self.is_whole and not self.end:
            raise Failing(f"{self.host} ended in the middle of the answer")
        text, why = self._without_key(self._text.whole()), CUT_BY.get(self.end, "")
        if not text.strip() and not self.calls:
            reason = f" ({why})" if why else ""
            hint = (
                "`max_tokens` of the responder says how long an answer may be" if why == "max_tokens" else ""
            )
            raise Unanswered(
                f"{self.host} answered without a word{reason}", hint or "ask again, in other words"
            )
        return Answered(
            text=text,
            thinking=self._without_key(self._thinking.whole()),
            provider=provider,
            model=self.model or model,
            usage=self.usage,
            tool_calls=self.calls.whole(),
            cut_by=why,
        )


Stream = AbstractContextManager[Iterator[event_stream.Event]]
Read = Callable[[Arriving, dict[str, Any]], Iterator[Event]]
"""Take one event of an API; `is_whole` where it was the last."""


def arrival(arriving: Arriving, stream: Stream, read: Read) -> Generator[Event, None, None]:
    """Read a stream to its end, or until it breaks; a break after the model stopped is no loss."""
    try:
        with stream as events:
            for event in events:
                if event.data.strip() == DONE:
                    arriving.is_whole = True
                    return
                yield from read(arriving, _object_in(event.data, arriving))
                if arriving.is_whole:
                    return
    except NetworkError:
        if not arriving.end:
            raise


def _object_in(data: str, arriving: Arriving) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        try:
            value = decode_tolerantly(data.encode("utf-8", "replace"))[0]
        except BrokenFormat as error:
            raise Unanswered(
                f"what {arriving.host} sent cannot be read: {arriving.told(error.message)}", "ask again"
            ) from error
    if isinstance(value, dict):
        return value
    raise Unanswered(f"what {arriving.host} sent cannot be read: an event is no object", "ask again")


def text_of(value: Any) -> str:
    """A text, or else nothing."""
    return value if isinstance(value, str) else ""


def count_of(value: Any) -> int | None:
    """A number of tokens; None where it is none."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    return value if is_count else None


def part_of(plain: Any, name: str) -> dict[str, Any]:
    """The object by that name; an empty one where there is none."""
    value = plain.get(name) if isinstance(plain, dict) else None
    return value if isinstance(value, dict) else {}
