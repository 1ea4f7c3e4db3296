"""The threads that one client may see, wherever they are: what the tools of threads ask of.

A thread that lies beyond what the client may see is not there, whoever asks and by whichever name: the one place that
says so for the threads of this machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from raddle.apps.mcp_server.paging import after, page
from raddle.model.errors import Ambiguous, FormatError, NotFound

if TYPE_CHECKING:
    from raddle.model.threads.message import Message
    from raddle.model.threads.query import Query
    from raddle.model.threads.reach import Reach
    from raddle.model.threads.search_answer import SearchAnswer
    from raddle.model.threads.summary import ThreadSummary
    from raddle.model.threads.thread import Thread
    from raddle.wiring import Stores
    from raddle.wiring.thread_reach import Surroundings

_MOST_NAMED = 8


class Looked(NamedTuple):
    """Where was looked, in words, and whether private threads are shown. `is_wide`: in more than one place, so that
    each thread has to say where it belongs."""

    where: str
    is_wide: bool
    private: str


class ListPage(NamedTuple):
    """Threads in the order of a list, and the cursor to go on with; empty at the end."""

    rows: list[ThreadSummary]
    cursor: str = ""


class ThreadShelf(Protocol):
    """Threads that may be seen. `load`, `append` and `fork` raise NotFound for any other."""

    @property
    def looked(self) -> Looked:
        """Where `search` and `listed` look."""

    def search(self, query: str, *, limit: int, cursor: str) -> SearchAnswer:
        """The next `limit` threads with a hit, best first; what was not read as meant stands in the scope's notes."""

    def listed(self, query: str, *, limit: int, cursor: str) -> ListPage:
        """The next threads that fit, pins first, then the newest activity."""

    def load(self, thread: str) -> Thread:
        """The thread of this id, or of an id that starts so. NotFound, Ambiguous among those that may be seen."""

    def end(self, thread: Thread) -> str | None:
        """The message that a next turn answers; None in a thread without any."""

    def append(self, thread: Thread, text: str, *, parent: str | None, role: str, author: str) -> Message:
        """A turn under the message `parent` (None: at the end), said by `author`."""

    def fork(self, thread: Thread, *, at: str | None, title: str) -> str:
        """A copy of the path to the message `at`, or of all of it, as a new thread; its id."""


class LocalShelf:
    """The threads of this machine that belong to a place (None: of every one), private ones too or not."""

    def __init__(self, stores: Stores, surroundings: Surroundings | None, *, include_private: bool) -> None:
        self._stores = stores
        self._reach: Reach | None = None if surroundings is None else surroundings.reach
        self._include_private = include_private
        self.looked = Looked(
            where="every repository of this machine" if surroundings is None else surroundings.name,
            is_wide=surroundings is None,
            private="shown too" if include_private else "left out",
        )

    def search(self, query: str, *, limit: int, cursor: str) -> SearchAnswer:
        """As ThreadShelf."""
        answer = self._stores.index.search(
            query, limit=limit, cursor=cursor, include_private=self._include_private, within=self._reach
        )
        hits = tuple(hit for hit in answer.hits if self._is_shown(hit.thread.id))
        answer = msgspec.structs.replace(answer, hits=hits)
        return with_hints(answer, query, self._stores.clock())

    def listed(self, query: str, *, limit: int, cursor: str) -> ListPage:
        """As ThreadShelf."""
        found = self._rows(query, None if cursor else limit + 1)
        rest = after(found, cursor, lambda row: row.id)
        rows, following = page(rest, limit, lambda row: row, lambda row: row.id)
        return ListPage([row for row in rows if self._is_shown(row.id)], following)

    def _rows(self, text: str, limit: int | None) -> list[ThreadSummary]:
        from raddle.model.threads.query import Query, parse  # noqa: PLC0415
        from raddle.wiring.listing import fitting  # noqa: PLC0415

        query: Query = parse(text, now=self._stores.clock()) if text.strip() else Query(text="")
        return fitting(
            self._stores,
            query,
            limit=limit,
            with_archived=False,
            include_private=self._include_private,
            within=self._reach,
        )

    def load(self, thread: str) -> Thread:
        """As ThreadShelf."""
        from raddle.model.ids import is_thread_id  # noqa: PLC0415

        thread_id = thread if is_thread_id(thread) else self._resolved(thread)
        try:
            loaded = self._stores.threads.load(thread_id)
        except NotFound:
            raise no_thread(thread) from None
        except FormatError:  # that it is damaged is for those to know who may see it
            if thread_id not in {row.id for row in self._all()}:
                raise no_thread(thread) from None
            raise
        if not self._may_see(loaded):
            raise no_thread(thread)
        return loaded

    def _resolved(self, prefix: str) -> str:
        from raddle.model.ids import parse_thread_id_prefix  # noqa: PLC0415

        start = parse_thread_id_prefix(prefix)
        found = [row.id for row in self._all() if row.id.startswith(start)]
        if not found:
            raise no_thread(prefix)
        if len(found) > 1:
            raise Ambiguous("thread", prefix, found[: _MOST_NAMED + 1])
        return found[0]

    def _all(self) -> list[ThreadSummary]:
        return self._stores.index.list(
            include_archived=True, include_private=self._include_private, within=self._reach
        )

    def _may_see(self, thread: Thread) -> bool:
        if thread.is_deleted or (thread.is_private and not self._include_private):
            return False
        return self._reach is None or self._reach.holds(
            thread.plain("git_remote_url"), thread.plain("workspace_root")
        )

    def _is_shown(self, thread_id: str) -> bool:
        """Is it so by its own file, where the index does not know that yet? It takes long to see while somebody else
        writes it, and what is private by then is not to be shown."""
        if not self._stores.index.is_behind(thread_id):
            return True
        try:
            return self._may_see(self._stores.threads.load(thread_id))
        except (NotFound, FormatError):
            return False

    def end(self, thread: Thread) -> str | None:
        """As ThreadShelf: of the branch that this device switched to, else the newest turn."""
        tip = thread.tree.tip()
        return self._stores.active_leaf(thread) or (tip.id if tip is not None else None)

    def append(self, thread: Thread, text: str, *, parent: str | None, role: str, author: str) -> Message:
        """As ThreadShelf."""
        from raddle.actions.threads import TIP, reply  # noqa: PLC0415

        chosen = self._stores.active_leaf(thread) if parent is None else ""
        message = reply(
            self._stores.threads, thread.id, text, parent=parent or chosen or TIP, role=role, author=author
        )
        if chosen:
            self._stores.active.set(thread.id, message.id)
        return message

    def fork(self, thread: Thread, *, at: str | None, title: str) -> str:
        """As ThreadShelf. Private where the thread is, or by a rule of the config."""
        from raddle.actions.threads import fork_thread  # noqa: PLC0415

        return fork_thread(
            self._stores.threads, thread.id, at=at, title=title, makes_private=self._stores.makes_private
        )


def local_shelf(stores: Stores, *, all_repositories: bool, include_private: bool) -> LocalShelf:
    """The threads of the place that `stores` has as its workspace."""
    from raddle.wiring.memory_places import workspace_of  # noqa: PLC0415
    from raddle.wiring.thread_reach import surroundings_of  # noqa: PLC0415

    if all_repositories:
        return LocalShelf(stores, None, include_private=include_private)
    around = surroundings_of(workspace_of(stores.config))
    return LocalShelf(stores, around, include_private=include_private)


def with_hints(answer: SearchAnswer, query: str, now: int) -> SearchAnswer:
    """The answer with what is to be said of the query among its notes."""
    from raddle.model.threads.query import parse  # noqa: PLC0415
    from raddle.model.threads.query_hints import hints  # noqa: PLC0415

    told = hints(parse(query, now=now), has_hits=bool(answer.total_threads))
    scope = msgspec.structs.replace(answer.scope, notes=(*answer.scope.notes, *told))
    return msgspec.structs.replace(answer, scope=scope)


def no_thread(name: str) -> NotFound:
    """What is said of a thread that is not there, and of one that may not be seen."""
    return NotFound("thread", name[:80], "thread_list and thread_search show those that there are")
