"""A thread as the JSON it is: the thread file's own bytes, or one message a line."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from raddle.model.errors import NotFound
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.message import Message
from raddle.model.threads.message_codec import encode_message
from raddle.model.threads.thread import Thread
from raddle.model.threads.view import only_path


def to_json(thread: Thread, leaf: str | None = None) -> bytes:
    """The thread file; `leaf`: without the turns off the path to it. NotFound for an unknown leaf."""
    if leaf is None:
        return encode_thread(thread)
    _check(thread, leaf)
    return encode_thread(only_path(thread, leaf))


def to_json_lines(thread: Thread, leaf: str | None = None) -> bytes:
    """One message a line, as it stands in the thread file: those that show in (order, id) order, or the
    path to `leaf`. NotFound for an unknown leaf.
    """
    messages: Iterable[Message] = thread.tree.shown()
    if leaf is not None:
        _check(thread, leaf)
        messages = thread.tree.path_to_root(leaf)
    return b"".join(msgspec.json.encode(encode_message(message)) + b"\n" for message in messages)


def _check(thread: Thread, leaf: str) -> None:
    if leaf not in thread.tree:
        raise NotFound("message", leaf, f"`raddle show {thread.id} --tree` lists them")
