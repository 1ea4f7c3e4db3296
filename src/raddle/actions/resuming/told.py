"""The path of a conversation as turns that an agent's session can hold, whichever agent it is.

Owns what of a path is told to an agent that goes on with it, and how what its format lacks is told as text. How a
turn is laid down is each format's own (`claude_code.py` and its neighbours). Which result belongs to which call:
`model/threads/rendering.py`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from raddle.model.errors import InvalidInput, NotFound
from raddle.model.ids import derived_id
from raddle.model.threads.carried import as_copy
from raddle.model.threads.message import NOTICE, Attachment, Message, ToolCall, changed
from raddle.model.threads.rendering import NO_RESULT, Exchange, exchanges
from raddle.model.threads.thread import Thread

BytesOf = Callable[[str], bytes | None]
"""The bytes of a blob by its SHA-256; None where they are not here."""

_SHOWN = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""Pictures that every one of the APIs takes."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
"""Names of tools that every one of the APIs takes; one refuses the request for any other."""
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


class Picture(Struct, frozen=True, kw_only=True):
    """A picture whose bytes are here."""

    name: str
    media_type: str
    data: str
    """Base64."""

    @property
    def url(self) -> str:
        """The same as a data URL."""
        return f"data:{self.media_type};base64,{self.data}"


class Result(Struct, frozen=True, kw_only=True):
    """What came back from a call. `message`: the one that says so; None where none does."""

    text: str
    is_error: bool = False
    message: Message | None = None
    pictures: tuple[Picture, ...] = ()


class Call(Struct, frozen=True, kw_only=True):
    """A call with its result. `id`: unlike every other one of the path."""

    id: str
    name: str
    arguments: Any
    result: Result

    @property
    def named_arguments(self) -> dict[str, Any]:
        """The arguments as an object, which most of the APIs want."""
        return self.arguments if isinstance(self.arguments, dict) else {"arguments": self.arguments}


class Turn(Struct, frozen=True, kw_only=True):
    """What a person or a model said. `role`: user or assistant; only an assistant makes calls.

    `message`: what the line carries: the message itself, hung on the one told before it. `text`: what the model
    reads; `is_said`: it is the message's content, to the letter.
    """

    message: Message
    role: str
    text: str
    is_said: bool
    calls: tuple[Call, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def is_answered(self) -> bool:
        """Has every call of it a result that was recorded?"""
        return all(call.result.message is not None for call in self.calls)


class Told(Struct, frozen=True, kw_only=True):
    """A path, ready to be laid down. `messages`: how many of the thread's are told; `unseen`: pictures and files that
    are only named."""

    turns: tuple[Turn, ...]
    messages: int
    unseen: int

    @property
    def last(self) -> Message:
        """The newest message that is told."""
        turn = self.turns[-1]
        results = [call.result.message for call in turn.calls if call.result.message is not None]
        return max([turn.message, *results], key=lambda message: (message.order, message.id))


def told_path(thread: Thread, leaf: str, bytes_of: BytesOf) -> Told:
    """The path from its root to `leaf`.

    Left out: notices, what was purged, what is blank; thoughts, which no API takes without their signatures. NotFound
    for an unknown leaf; InvalidInput where nothing is left.
    """
    if leaf not in thread.tree:
        raise NotFound("message", leaf, f"`raddle show {thread.id} --tree` lists them")
    path = [message for message in thread.tree.path_to_root(leaf) if not _is_left_out(message)]
    teller = _Teller(_rehung(path), bytes_of)
    turns = tuple(turn for exchange in exchanges(path) for turn in teller.turns(exchange))
    if not turns:
        raise InvalidInput(
            "there is nothing in this thread that an agent could go on from", "`raddle show` tells what is"
        )
    return Told(turns=turns, messages=teller.messages, unseen=teller.unseen)


def as_copies(turns: Iterable[Turn], thread_id: str) -> tuple[Turn, ...]:
    """The turns as they go into a session of another thread than the one in which they were said."""
    return tuple(_as_copy(turn, thread_id) for turn in turns)


def _as_copy(turn: Turn, thread_id: str) -> Turn:
    calls = []
    for call in turn.calls:
        result = call.result
        if result.message is not None:
            result = replace(result, message=as_copy(result.message, thread_id))
        calls.append(replace(call, result=result))
    return replace(turn, message=as_copy(turn.message, thread_id), calls=tuple(calls))


def _is_left_out(message: Message) -> bool:
    if message.kind == NOTICE or message.is_purged:
        return True
    return message.role != "tool" and not (
        message.content.strip() or message.tool_calls or message.attachments
    )


def _rehung(path: Iterable[Message]) -> dict[str, Message]:
    """By id, each message of the path hung on the one before it: between the two may stand what is left out."""
    forms: dict[str, Message] = {}
    above: str | None = None
    for message in path:
        if message.parent_id != above or message.is_sidechain:
            forms[message.id] = changed(message, parent_id=above, is_sidechain=False)
        else:
            forms[message.id] = message
        above = message.id
    return forms


class _Teller:
    """Makes turns of messages; knows what was told before."""

    def __init__(self, forms: dict[str, Message], bytes_of: BytesOf) -> None:
        self._forms = forms
        self._bytes_of = bytes_of
        self._used: set[str] = set()
        self.messages = 0
        self.unseen = 0

    def turns(self, exchange: Exchange) -> list[Turn]:
        """The turns of a message and what came back from its calls."""
        message = exchange.message
        if exchange.is_orphan:
            return [self._as_text(message, f"[result of {message.tool_name or 'a tool'}]")]
        if message.role != "assistant":
            label = "" if message.role == "user" else f"[{_label(message.role)}] "
            return [self._turn(message, "user", label + message.content)]
        pairs = list(zip(message.tool_calls, exchange.results, strict=True))
        if all(_NAME.match(call.tool_name) for call, _ in pairs):
            calls = tuple(self._call(message, call, result) for call, result in pairs)
            return [self._turn(message, "assistant", message.content, calls)]
        return self._without_calls(message, pairs)

    def _turn(self, message: Message, role: str, text: str, calls: tuple[Call, ...] = ()) -> Turn:
        self.messages += 1
        pictures, named = self._attached(message.attachments, are_shown=role == "user")
        whole = "\n".join((text, *named)) if text else "\n".join(named)
        return Turn(
            message=self._forms[message.id],
            role=role,
            text=whole,
            is_said=whole == message.content,
            calls=calls,
            pictures=pictures,
        )

    def _as_text(self, message: Message, label: str) -> Turn:
        return self._turn(message, "user", f"{label} {message.content}")

    def _without_calls(self, message: Message, pairs: list[tuple[ToolCall, Message | None]]) -> list[Turn]:
        """Calls of a tool whose name an API refuses, in words."""
        told = []
        for call, result in pairs:
            missing = "" if result is not None else f": {NO_RESULT}"
            arguments = msgspec.json.encode(call.arguments_json).decode()
            told.append(f"[call of {_label(call.tool_name)} with {arguments}{missing}]")
        words = "\n".join(filter(None, (message.content, *told)))
        results = [(call, result) for call, result in pairs if result is not None]
        return [
            self._turn(message, "assistant", words),
            *(self._as_text(result, f"[result of {_label(call.tool_name)}]") for call, result in results),
        ]

    def _call(self, message: Message, call: ToolCall, result: Message | None) -> Call:
        call_id = call.id
        if not _CALL_ID.match(call_id) or call_id in self._used:
            call_id = f"call_{derived_id('call', message.id, call.id, len(self._used)).replace('-', '')}"
        self._used.add(call_id)
        return Call(
            id=call_id, name=call.tool_name, arguments=call.arguments_json, result=self._result(result)
        )

    def _result(self, message: Message | None) -> Result:
        if message is None:
            return Result(text=NO_RESULT, is_error=True)
        self.messages += 1
        pictures, named = self._attached(message.attachments)
        return Result(
            text="\n".join(filter(None, (message.content, *named))),
            is_error=message.is_error,
            message=self._forms[message.id],
            pictures=pictures,
        )

    def _attached(
        self, attachments: Iterable[Attachment], *, are_shown: bool = True
    ) -> tuple[tuple[Picture, ...], list[str]]:
        """(the pictures that can be shown, a line for each other file). A picture that a model made has no place in an
        answer of any format."""
        pictures: list[Picture] = []
        named: list[str] = []
        for one in attachments:
            if one.is_body:
                continue
            data = self._bytes_of(one.sha256) if are_shown and one.media_type in _SHOWN else None
            if data is None:
                self.unseen += 1
                named.append(f"[attached: {one.name or 'a file'} ({one.media_type or 'of an unknown kind'})]")
            else:
                encoded = base64.b64encode(data).decode()
                pictures.append(Picture(name=one.name, media_type=one.media_type, data=encoded))
        return tuple(pictures), named


def _label(words: str) -> str:
    """A name as a part of a label: one line, no brackets of its own."""
    return " ".join(re.sub(r"[\[\]]", " ", words).split()) or "unknown"
