"""What threads used, read straight from their files: only the few fields that are counted are decoded.

A thread file is read so where it lies as raddle wrote it and its journal holds no edit; every other one goes
through the store, which joins and mends. So there is no cache of usage that could be wrong: 10,000 threads take a
second (`python -m bench stats`). A file whose header somebody edited by hand is taken as it lies: what it says of
usage is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from raddle.adapters.local_store.thread_files_reading import Glance, files_of, look
from raddle.adapters.paths import Paths
from raddle.model.clock import parse_time
from raddle.model.threads.codec import FORMAT
from raddle.model.threads.message import Usage
from raddle.model.threads.thread import Thread
from raddle.model.threads.usage import Response, response_of


class _Extra(Struct, frozen=True):
    twin_of: str = ""
    copied_from: str = ""


class _Message(Struct):
    id: str
    role: str
    ts: str = ""
    model: str = ""
    rev: int = 0
    is_sidechain: bool = False
    usage: Usage | None = None
    extra: _Extra = _Extra()


class _Conversation(Struct):
    messages: list[_Message]


class _File(Struct):
    id: str
    format: int
    stamps: Raw
    conversation: _Conversation
    removed_messages: Raw | UnsetType = UNSET


_decode = msgspec.json.Decoder(_File).decode


def usage_reader(paths: Paths, load: Callable[[str], Thread]) -> Callable[[str], list[Response]]:
    """A function of a thread's id: what its messages used. `load`: the store's, which raises what it finds wrong."""

    def read(thread_id: str) -> list[Response]:
        glance = look(files_of(paths, thread_id), thread_id)
        if _is_whole(glance):
            found = _from_file(glance.data, thread_id)
            if found is not None:
                return found
        tree = load(thread_id).tree
        made = (response_of(message, is_removed=tree.is_removed(message.id)) for message in tree)
        return [response for response in made if response is not None]

    return read


def _is_whole(glance: Glance) -> bool:
    """Does the file hold all there is of the thread?"""
    journal = glance.journal
    return journal.file in {None, glance.identity} and not (
        journal.has_edits or journal.bad or journal.is_torn
    )


def _from_file(data: bytes | None, thread_id: str) -> list[Response] | None:
    """What the file says; None where it is not as raddle writes it, or where some turns were taken back."""
    try:
        file = _decode(data or b"")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    messages = file.conversation.messages
    is_plain = file.id == thread_id and file.format == FORMAT and file.removed_messages is UNSET
    if not is_plain or len({message.id for message in messages} - {""}) != len(messages):
        return None
    return [
        Response(
            id=message.extra.twin_of or message.id,
            usage=message.usage,
            at=parse_time(message.ts),
            role=sys.intern(message.role),
            model=sys.intern(message.model),
            rev=message.rev,
            is_sidechain=message.is_sidechain,
            is_copied=bool(message.extra.copied_from),
        )
        for message in messages
        if message.usage is not None
    ]
