"""The hub of one server process: the database, the index and the epoch, as routes ask for them.

Here a request's words (whose thread, which id) become keys of rows; below it nobody knows of callers, above it
nobody knows of connections.
"""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable
from uuid import UUID

from msgspec.structs import replace
from psycopg import Connection

from raddle.model.clock import Clock
from raddle.model.errors import ConflictError, InvalidInput, NotFound, NotSignedIn
from raddle.model.ids import NewId
from raddle.model.protocol.hub import Answer, Changes, Pushed
from raddle.model.protocol.sources import DeviceSources, SourceList
from raddle.model.threads.adopt import open_file
from raddle.model.threads.branching import fork_into
from raddle.model.threads.codec import Decoded
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author, Editor
from raddle.model.threads.message import Message
from raddle.model.threads.search_answer import SearchAnswer
from raddle.model.threads.thread import Thread
from raddle.model.threads.view import view_for
from raddle.model.threads.visibility import parse_visibility
from raddle.server.accounts.access import Action, find_thread, refusal
from raddle.server.accounts.callers import Caller, is_alive
from raddle.server.blobs.keeping import ServerBlobs
from raddle.server.search import answers
from raddle.server.search.reading import Reader
from raddle.server.search.waiting import take_in, waiting_in
from raddle.server.tables.database import Database
from raddle.server.threads import answering, feed, purging, pushing, sources
from raddle.server.threads.checking import check_file
from raddle.server.threads.holding import Key, MessageIndex

_TRIES = 5
_PATIENCE_SECONDS = 0.5
"""So long a search waits for words that were pushed a moment ago."""


class Hub:
    """What the routes call; safe to use from many threads at once."""

    def __init__(
        self, database: Database, index: MessageIndex, blobs: ServerBlobs, *, clock: Clock, new_id: NewId
    ) -> None:
        self.database = database
        self.index = index
        self.blobs = blobs
        self.new_id = new_id
        self.clock = clock
        self._pushed_at = -1e9

    @functools.cached_property
    def epoch(self) -> str:
        """This life of the hub: read once, since only who restores a database changes it, with the servers down."""
        with self.database.connection() as connection:
            return feed.hub_epoch(connection, self.new_id)

    def push(self, caller: Caller, thread_id: str, delta: Delta, hub_epoch: str) -> Pushed:
        """Take a push into the caller's own space."""
        key = Key(caller.space, thread_id)
        self._pushed_at = time.monotonic()
        with self.database.connection() as connection:
            return pushing.push(
                connection, key, caller.user, delta, hub_epoch, index=self.index, epoch=self.epoch
            )

    def seconds_since_push(self) -> float:
        """How long ago this process last took a push in hand."""
        return time.monotonic() - self._pushed_at

    def since(self, caller: Caller, thread_id: str, version: int, hub_epoch: str) -> Answer:
        """What the caller's own thread has since a version."""
        with self.database.connection() as connection:
            return answering.since(
                connection, Key(caller.space, thread_id), version, hub_epoch, epoch=self.epoch
            )

    def read(self, visitor: Caller | None, thread_id: str, space: UUID | None) -> Thread:
        """A thread as `visitor` may see it: their own whole, another's without what is its owner's alone.

        NotFound where they may read none of that name; Purged where theirs was erased for good.
        """
        with self.database.connection() as connection, answering.at_one_moment(connection):
            facts = find_thread(connection, visitor, thread_id, space)
            thread = answering.whole(connection, Key(facts.space_id, thread_id))
        is_owner = visitor is not None and visitor.user == facts.owner_id
        return thread if is_owner else view_for(thread, viewer_is_owner=False)

    def search(
        self, caller: Caller, query: str, *, limit: int, cursor: str = "", as_you_type: bool = False
    ) -> SearchAnswer:
        """Threads with a message that hits, in the spaces that the caller looks into; what waits is counted."""
        with self.database.connection() as connection:
            take_in(connection, caller.spaces, seconds=_PATIENCE_SECONDS)
            answer = answers.search(
                connection,
                Reader(caller.user, caller.spaces),
                query,
                now=self.clock(),
                limit=limit,
                cursor=cursor,
                as_you_type=as_you_type,
            )
            scope = replace(answer.scope, pending=waiting_in(connection, caller.spaces))
        return replace(answer, scope=scope)

    def listed(self, caller: Caller, query: str, *, limit: int, cursor: str = "") -> answers.Listed:
        """Threads of those spaces, the newest activity first; with a query, those it finds."""
        reader = Reader(caller.user, caller.spaces)
        with self.database.connection() as connection:
            if query:
                take_in(connection, caller.spaces, seconds=_PATIENCE_SECONDS)
            return answers.listed(
                connection, reader, query or None, now=self.clock(), limit=limit, cursor=cursor
            )

    def append(
        self, caller: Caller, thread_id: str, *, parent: str | None, role: str, text: str, author: str
    ) -> Message:
        """A turn under the message `parent` (None: under the newest one), as an edit that this server makes for the
        caller; `author`: who says it. ConflictError where others were quicker each time."""
        made: list[Message] = []

        def say(editor: Editor) -> None:
            add = editor.append if parent is None else functools.partial(editor.reply, parent)
            made.append(add(role, text, author=author))

        pushed = self._edit(caller, thread_id, "write", say)
        if not pushed.is_accepted:
            raise ConflictError("others changed the thread at the same time", "try again")
        return made[-1]

    def fork(self, caller: Caller, thread_id: str, *, at: str | None, title: str) -> str:
        """A copy of what the caller may read of a thread, as one of their own; its id. `at`: up to this message."""
        source = self.read(caller, thread_id, None)
        editor = Editor(Thread(f"T-{self.new_id()}"), self._author())
        fork_into(editor, source, at, title=title)
        self.push(caller, editor.thread.id, editor.delta(), self.epoch)
        return editor.thread.id

    def save(self, caller: Caller, sent: Decoded, base_version: int | None) -> Pushed:
        """Join a whole thread, made on `base_version` (None: on whatever is here); it removes nothing.

        A file that raddle did not write, or not last, is read as the local store reads one: what its plain fields
        say counts. InvalidInput for one that says that it is private, or that cannot be read whole.
        """
        check_file(sent)
        tries = _TRIES if base_version is None else 1
        for left in reversed(range(tries)):
            known = None if base_version == 0 else self._known(caller, sent.id)
            thread = open_file(sent, known, self._author())
            if thread.is_private:
                raise InvalidInput(
                    "is_private: the thread is private", "what is private does not leave its machine"
                )
            version = base_version
            if version is None:
                version = 0 if known is None else known.version
            delta = Delta(
                base_version=version,
                version=thread.version,
                messages=tuple(thread.tree),
                registers=dict(thread.registers),
            )
            pushed = self.push(caller, thread.id, delta, self.epoch)
            if pushed.is_accepted or not left:
                return pushed
        raise AssertionError("the last try returns")

    def _known(self, caller: Caller, thread_id: str) -> Thread | None:
        """The caller's thread as it is here; None where it is not. Purged where it was erased for good."""
        with self.database.connection() as connection:
            try:
                return answering.whole(connection, Key(caller.space, thread_id))
            except NotFound:
                return None

    def delete(self, caller: Caller, thread_id: str) -> Pushed:
        """Delete, as an edit that this server makes for the caller."""
        return self._edit(caller, thread_id, "delete", lambda editor: editor.delete())

    def restore(self, caller: Caller, thread_id: str) -> Pushed:
        """Bring back, as an edit that this server makes for the caller."""
        return self._edit(caller, thread_id, "delete", lambda editor: editor.restore())

    def purge(self, caller: Caller, thread_id: str) -> None:
        """Erase a thread for good, at its owner's word. NotFound, Forbidden; Purged where it was erased before."""
        with self.database.connection() as connection:
            purging.purge(connection, _own_key(connection, caller, thread_id, "delete"), self.index)

    def put_sources(self, caller: Caller, thread_id: str, device: str, sent: SourceList) -> list[str]:
        """Replace what a device of the caller keeps of a thread of theirs; the blobs that they have not given."""
        with self.database.connection() as connection:
            key = _own_key(connection, caller, thread_id, "write")
            return sources.put_sources(connection, key, device, sent.segments, sent.version)

    def sources(self, caller: Caller, thread_id: str) -> list[DeviceSources]:
        """What the caller's devices keep of a thread of theirs."""
        with self.database.connection() as connection:
            return sources.sources(connection, _own_key(connection, caller, thread_id, "write"))

    def set_visibility(self, caller: Caller, thread_id: str, visibility: str) -> Pushed:
        """Say who may read it, as an edit that this server makes for the caller."""
        name = parse_visibility(visibility)
        return self._edit(caller, thread_id, "share", lambda editor: editor.set_visibility(name))

    def _own(self, caller: Caller, thread_id: str, action: Action) -> Thread:
        """The caller's own thread, to be changed; NotFound, Forbidden, Purged where it is not theirs to."""
        with self.database.connection() as connection:
            thread = answering.whole(connection, _own_key(connection, caller, thread_id, action))
        if thread.is_private:
            raise NotFound("thread", thread_id, "it is private, and not here")
        return thread

    def _edit(
        self, caller: Caller, thread_id: str, action: Action, change: Callable[[Editor], object]
    ) -> Pushed:
        for left in reversed(range(_TRIES)):
            thread = self._own(caller, thread_id, action)
            version = thread.version
            editor = Editor(thread, self._author())
            change(editor)
            delta = editor.delta()
            if delta.is_empty:
                return Pushed(version=version, hub_epoch=self.epoch)
            made = Delta(
                base_version=version,
                version=delta.version,
                messages=delta.messages,
                registers=delta.registers,
            )
            pushed = self.push(caller, thread_id, made, self.epoch)
            if pushed.is_accepted or not left:
                return pushed
        raise AssertionError("the last try returns")

    def _author(self) -> Author:
        """This server as a device: one for each life of the hub, so that a restored one writes as another."""
        device = hashlib.sha256(f"hub {self.epoch}".encode()).hexdigest()[:8]
        return Author(device=device, now=self.clock, new_id=self.new_id)

    def changes(self, caller: Caller, cursor: str, limit: int) -> Changes:
        """The feed of the caller's own space: what their devices replicate."""
        with self.database.connection() as connection:
            return feed.changes(connection, (caller.space,), cursor, limit=limit, epoch=self.epoch)

    def changes_if_alive(self, caller: Caller, cursor: str, limit: int) -> Changes:
        """The same for a stream that has been open for a while: NotSignedIn where the token was revoked since."""
        with self.database.connection() as connection:
            if not is_alive(connection, caller):
                raise NotSignedIn("this device was signed out", "sign in again: `raddle login`")
            return feed.changes(connection, (caller.space,), cursor, limit=limit, epoch=self.epoch)


def _own_key(connection: Connection, caller: Caller, thread_id: str, action: Action) -> Key:
    """The caller's own thread; NotFound, Forbidden, Purged where it is not theirs to do that with."""
    facts = find_thread(connection, caller, thread_id)
    refused = refusal(caller, action, facts, thread_id)
    if refused is not None:
        raise refused
    return Key(facts.space_id, thread_id)
