"""How much a message says: what decides which of two forms of one message stands, and so its `rev`.

A source writes a message in parts, updates it in place, masks or empties it, and another machine may have read any of
these forms. Whichever says more stands, wherever and in whatever order they were read: this needs no clock, and what
is empty or shorter never wins. An importer that counted in another way would blank what another one stored.
"""

from __future__ import annotations

from raddle.actions.importing.fitting import encode
from raddle.model.threads.message import Message, changed


def fullness(message: Message) -> int:
    """Grows with every part of what is said, and with the output that its usage counts."""
    arguments = sum(1 + len(encode(call.arguments_json)) for call in message.tool_calls)
    counted = 0 if message.usage is None else 1 + (message.usage.output_tokens or 0)
    words = len(message.content) + len(message.thinking)
    return words + arguments + len(message.attachments) + message.is_error + counted


def weighed(message: Message, *, less: int = 0) -> Message:
    """`message` with its `rev`, `less` where a better witness of the same words may come. What a device wrote keeps
    its own: no source may put other words over it, nor it over those of a source.

    A message of which the body was cut has the greater one already: of its whole body.
    """
    if message.device:
        return message
    return changed(message, rev=max(message.rev, fullness(message) - less, 0))
