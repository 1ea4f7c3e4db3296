"""Messages on their way out: those that may still grow wait, the others leave in order.

Owns when an API message, which Claude Code writes in several lines with results and progress between them,
counts as whole. One that grew after it had left leaves again, with a greater `rev`.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from raddle.actions.importing.bodies import put
from raddle.actions.importing.fullness import weighed
from raddle.actions.importing.importer import Blob, Lookup, Taken
from raddle.actions.importing.parts import MessagePart
from raddle.model.threads.message import Message, Usage, changed

GROWING = 32
"""API messages that are remembered: further back, nothing is folded into them."""

_LONGEST_WAIT = 256


class Slot(Struct):
    """A message in the queue. `message` is None where only its id is known, from a state."""

    id: str
    message: Message | None = None
    is_open: bool = False
    is_queued: bool = False


class Flow:
    """The queue of one file's messages, in the order they were begun."""

    def __init__(self, lookup: Lookup | None = None) -> None:
        self.blobs: list[Blob] = []
        self.lost: list[str] = []
        """Ids of messages that should have grown and were not found."""
        self._lookup = lookup
        self._queue: deque[Slot] = deque()
        self._growing: dict[str, Slot] = {}
        self._open: dict[int, Slot] = {}

    def put(self, message: Message) -> None:
        """A message that is whole."""
        self._queue.append(Slot(message.id, message, is_queued=True))

    def begin(self, api_id: str, strand: int, message: Message) -> None:
        """The first part of an API message; the one before it on its strand is whole now."""
        slot = Slot(message.id, message, is_open=True, is_queued=True)
        self._queue.append(slot)
        before = self._open.pop(strand, None)
        if before is not None:
            before.is_open = False
        self._open[strand] = slot
        self.remember(api_id, slot)

    def remember(self, api_id: str, slot: Slot) -> None:
        """More parts of `api_id` may come."""
        self._growing[api_id] = slot
        if len(self._growing) > GROWING:
            gone = self._growing.pop(next(iter(self._growing)))
            gone.is_open = False

    def is_growing(self, api_id: str) -> bool:
        """Has an API message of this id begun?"""
        return api_id in self._growing

    def grow(self, api_id: str, part: MessagePart, usage: Usage | None) -> Message | None:
        """One more part of a message that has begun: the message as it is now; None where it is lost."""
        slot = self._growing[api_id]
        message = slot.message or self._stored(slot.id)
        if message is None:
            self.lost.append(slot.id)
            return None
        slot.message = message if message.is_purged else folded(message, part, usage)
        if slot.message is not message and not slot.is_queued:
            slot.is_queued = True
            self._queue.append(slot)
        return slot.message

    def close(self) -> None:
        """Nothing more comes: what waits is whole."""
        for slot in self._open.values():
            slot.is_open = False
        self._open.clear()

    def _stored(self, message_id: str) -> Message | None:
        """The message as the thread has it; None where it is not there, or its body was cut."""
        message = self._lookup(message_id) if self._lookup is not None else None
        return None if message is None or any(one.is_body for one in message.attachments) else message

    def take(self) -> Taken:
        """What waits for nothing any more."""
        taken = Taken(messages=[], blobs=self.blobs)
        self.blobs = []
        queue = self._queue
        while queue and (not queue[0].is_open or len(queue) > _LONGEST_WAIT):
            slot = queue.popleft()
            slot.is_queued = False
            if slot.message is not None:
                slot.message = put(taken, weighed(slot.message))
        return taken

    def memory(self) -> list[tuple[str, str]]:
        """(API id, message id) of what may still grow."""
        return [(api_id, slot.id) for api_id, slot in self._growing.items()]

    def recall(self, growing: list[tuple[str, str]]) -> None:
        """Go on where `growing` was remembered."""
        for api_id, message_id in growing:
            self.remember(api_id, Slot(message_id))


def folded(message: Message, part: MessagePart, usage: Usage | None) -> Message:
    """`message` with one more part of it; a line that adds nothing raises no `rev`."""
    calls = tuple(call for call in part.tool_calls if call not in message.tool_calls)
    words = "" if part.content == message.content else part.content
    thoughts = "" if part.thinking == message.thinking else part.thinking
    most = _most(message.usage, usage)
    if not (calls or words or thoughts or part.attachments or most != message.usage):
        return message
    return changed(
        message,
        content=_joined(message.content, words),
        thinking=_joined(message.thinking, thoughts),
        tool_calls=message.tool_calls + calls,
        attachments=message.attachments + part.attachments,
        usage=most,
        rev=message.rev + 1,
    )


def _joined(before: str, after: str) -> str:
    return f"{before}\n\n{after}" if before and after else before or after


def _most(one: Usage | None, other: Usage | None) -> Usage | None:
    """Each line of an API message repeats its usage as it stood; the greatest output is the last."""
    if one is None or other is None:
        return one or other
    return other if (other.output_tokens or 0) > (one.output_tokens or 0) else one
