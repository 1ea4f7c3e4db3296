"""The turns before a fork, for sessions whose agent keeps them in the file of the first session alone.

Owns where they come from: the first session's thread, as it stands here, and never its file, so that what was purged,
deleted or left out by a rule does not come in by way of a fork. Such a fork begins where it was forked.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from raddle.actions.importing.importer import Links, Write, thread_id_of
from raddle.actions.importing.joining import turns_before
from raddle.actions.importing.privacy import private_writes
from raddle.actions.importing.registry import importer_of
from raddle.actions.importing.run import Converted
from raddle.actions.importing.run_plan import SessionPlan
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.model.errors import RaddleError
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores


class FirstSession(Struct):
    """The session that another one was forked from: what its files told, and its thread.

    `is_here`: there is nothing to wait for, also where its turns are not to come in.
    """

    is_here: bool = False
    links: Links | None = None
    thread: Thread | None = None

    def history(self, messages: Mapping[str, Message]) -> list[Message]:
        """The turns that `messages` go on from, the oldest first."""
        return [] if self.thread is None else turns_before(messages, self.thread)

    def writes(self) -> tuple[Write, ...]:
        """What its words bring along: they stay private."""
        return private_writes(0) if self.thread is not None and self.thread.is_private else ()


def first_session(stores: Stores, threads: ThreadFiles, session: SessionPlan) -> FirstSession:
    """The one that `session` was forked from; an empty one where it is not here."""
    if not session.base:
        return FirstSession()
    thread_id = thread_id_of(session.agent, session.base)
    try:
        thread = threads.load(thread_id)
    except RaddleError:  # it is not there, or damaged: the doctor's, and no reason not to read the fork
        return FirstSession()
    if thread.is_deleted or thread_id in stores.ledger.purged():
        return FirstSession(is_here=True)
    links: Links | None = None
    for state in stores.ledger.states_of(thread_id):
        told = importer_of(session.agent).links(state)
        if told is not None:
            links = told if links is None else links.joined(told)
    return FirstSession(is_here=True, links=links, thread=thread)


def settled(converted: Converted) -> Converted:
    """The same, no longer waiting: what its first session can tell, it has told."""
    files = tuple(
        msgspec.structs.replace(file, entry=msgspec.structs.replace(file.entry, base=""))
        for file in converted.files
    )
    return msgspec.structs.replace(converted, files=files)
