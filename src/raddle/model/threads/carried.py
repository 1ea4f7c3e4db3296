"""A message that travels inside a line of another agent's session file, so that it comes back as the same message.

Owns the field of ours in such a line (`raddle`), which the agent itself passes over: whoever writes lines and whoever
reads them mean one thing by it. It holds all that the line's own fields do not say; where the line's text is the
message's content, it holds no second copy of that.
"""

from __future__ import annotations

from typing import Any

import msgspec

from raddle.model.errors import BrokenFormat, InvalidInput
from raddle.model.ids import parse_message_id
from raddle.model.threads.message import PURGED, Message, changed
from raddle.model.threads.message_codec import decode_message, encode_message

FIELD = "raddle"
"""The key of the field, at the top of the line."""

_COPIED = "is_copied"
"""Of a turn that an importer read elsewhere and that is told here in another agent's format."""
_COPIED_FROM = "copied_from"
"""In the `extra` of a message: the thread in which it was said."""


def carried_form(message: Message, *, is_said: bool) -> dict[str, Any]:
    """What the field holds. `is_said`: the line's own text is the content, to the letter."""
    plain: dict[str, Any] = msgspec.to_builtins(encode_message(message))
    if is_said:
        plain.pop("content", None)
    else:
        plain.setdefault("content", "")  # a field that is not there would be the line's own text
    return plain


def copied_form(message: Message, *, is_said: bool) -> dict[str, Any]:
    """The same for a session that tells a conversation in another agent's format, where no line but this one speaks for
    the turn: also one without a device is carried."""
    form = carried_form(message, is_said=is_said)
    return form if message.device else form | {_COPIED: True}


def as_copy(message: Message, thread_id: str) -> Message:
    """The message as it goes into a session of another thread: it says where it was said, there or still earlier."""
    return changed(message, extra={_COPIED_FROM: thread_id, **message.extra})


def form_as_copy(form: Any, thread_id: str) -> dict[str, Any] | None:
    """The same of what a field holds; None where it holds no message."""
    if not isinstance(form, dict) or not form.get("device"):
        return None
    extra = form.get("extra")
    return form | {"extra": {_COPIED_FROM: thread_id, **(extra if isinstance(extra, dict) else {})}}


def copied_from(message: Message) -> str:
    """The thread in which this was said, and paid for, where that is another one; else empty."""
    origin = message.extra.get(_COPIED_FROM)
    return origin if isinstance(origin, str) else ""


def carried_mark(message: Message) -> dict[str, str]:
    """What the field holds in every further line of the same message: whose it is, and nothing to read."""
    return {"id": message.id}


def carried_message(form: Any, said: str) -> Message | None:
    """The message that a line carries; `said`: the line's own text. None where the field holds no whole message.

    An imported turn has no device. It is carried only by a copy in another agent's format; in its own agent's file its
    own record speaks for it. `rev` does not count, so that no file can put other words over those that are stored.
    """
    if not isinstance(form, dict):
        return None
    if form.get(_COPIED) is True:
        form = {name: value for name, value in form.items() if name not in (_COPIED, "device")}
    elif not isinstance(form.get("device"), str) or not form["device"]:
        return None
    try:
        message = decode_message(form)
        names = (message.id, *(name for name in (message.parent_id, message.branch_id) if name))
        for name in names:
            parse_message_id(name)
    except (BrokenFormat, InvalidInput):
        return None
    if message.kind == PURGED:
        return None
    return changed(message, content=message.content if "content" in form else said, rev=0)


def is_carried_mark(form: Any) -> bool:
    """Is this one of the further lines of a message that an earlier line carries?"""
    return isinstance(form, dict) and form.keys() == {"id"}
