"""Messages on their way out: the last response of the model waits until it is whole, the others leave in order.

Owns which items are one response: Codex writes its thoughts, words and calls one after the other, and what it
cost after that, sometimes only behind the results of the calls. One that grew after it had left leaves again,
with a greater `rev`.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from raddle.actions.importing.bodies import put
from raddle.actions.importing.fullness import weighed
from raddle.actions.importing.importer import Blob, Lookup, Taken
from raddle.actions.importing.parts import MessagePart
from raddle.model.threads.message import Message, Usage, changed

_LONGEST_WAIT = 128


class Memory(Struct, array_like=True):
    """The last response as a state remembers it: its id, and what may still come of it."""

    id: str = ""
    takes_parts: bool = False
    takes_usage: bool = False
    spare: Usage | None = None


class _Slot(Struct):
    """A message in the queue. `message` is None where only its id is known, from a state."""

    id: str
    message: Message | None = None
    is_queued: bool = False


class Flow:
    """The queue of one file's messages, in the order they were begun."""

    def __init__(self, lookup: Lookup | None = None) -> None:
        self.blobs: list[Blob] = []
        self.is_lost = False
        """Should a message have grown that was not found?"""
        self._lookup = lookup
        self._queue: deque[_Slot] = deque()
        self._last = _Slot("")
        self._takes_parts = False
        self._takes_usage = False
        self._spare: Usage | None = None

    @property
    def takes_parts(self) -> bool:
        """Is a response open, so that the next thought, word or call is part of it?"""
        return self._takes_parts

    def put(self, message: Message) -> None:
        """A message that is whole; the response before it takes no more parts."""
        self._takes_parts = False
        self._queue.append(_Slot(message.id, message, is_queued=True))

    def begin(self, message: Message) -> None:
        """The first part of a response."""
        self._last = _Slot(message.id, message, is_queued=True)
        self._queue.append(self._last)
        self._takes_parts = self._takes_usage = True
        self._spare = None

    def compact(self, message: Message) -> None:
        """A summary, which cost a response of its own: the one counted last, if that has no message yet."""
        spare = self._spare
        self.begin(message)
        self._takes_parts = False
        if spare is not None:
            self.count(spare)

    def end_response(self) -> None:
        """What comes next is another response, if it is one."""
        self._takes_parts = False

    def grow(self, part: MessagePart) -> Message | None:
        """One more part of the open response: the message as it is now; None where it is lost."""
        message = self._stored()
        return None if message is None else self._replace(message, folded(message, part))

    def count(self, usage: Usage) -> None:
        """What the last response cost, if nothing told that yet."""
        if not self._takes_usage:
            self._spare = usage
            return
        message = self._stored()
        self._takes_parts = self._takes_usage = False
        if message is not None and message.usage is None:
            self._replace(message, changed(message, usage=usage, rev=message.rev + 1))

    def _stored(self) -> Message | None:
        """The last response, from the queue or from the thread."""
        slot = self._last
        if slot.message is None and self._lookup is not None:
            slot.message = self._lookup(slot.id)
        if slot.message is None:
            self.is_lost = True
        return slot.message

    def _replace(self, before: Message, message: Message) -> Message:
        slot = self._last
        if message is not before and not before.is_purged:
            slot.message = message
            if not slot.is_queued:
                slot.is_queued = True
                self._queue.append(slot)
        return message

    def close(self) -> None:
        """Nothing more comes: what waits is whole."""
        self._takes_parts = self._takes_usage = False

    def take(self) -> Taken:
        """What waits for nothing any more."""
        taken = Taken(messages=[], blobs=self.blobs)
        self.blobs = []
        queue = self._queue
        while queue and (not self._waits(queue[0]) or len(queue) > _LONGEST_WAIT):
            slot = queue.popleft()
            slot.is_queued = False
            if slot.message is not None:
                slot.message = put(taken, weighed(slot.message, less=slot.message.rev == 0))
        return taken

    def _waits(self, slot: _Slot) -> bool:
        return slot is self._last and (self._takes_parts or self._takes_usage)

    def memory(self) -> Memory:
        """What a later reading needs."""
        return Memory(self._last.id, self._takes_parts, self._takes_usage, self._spare)

    def recall(self, memory: Memory) -> None:
        """Go on where `memory` was taken."""
        self._last = _Slot(memory.id)
        self._takes_parts, self._takes_usage = memory.takes_parts, memory.takes_usage
        self._spare = memory.spare


def folded(message: Message, part: MessagePart) -> Message:
    """`message` with one more part of it; a part that adds nothing raises no `rev`."""
    if part.is_empty:
        return message
    return changed(
        message,
        content=_joined(message.content, part.content),
        thinking=_joined(message.thinking, part.thinking),
        tool_calls=message.tool_calls + part.tool_calls,
        attachments=message.attachments + part.attachments,
        extra=message.extra | part.extra,
        rev=message.rev + 1,
    )


def _joined(before: str, after: str) -> str:
    return f"{before}\n\n{after}" if before and after else before or after
