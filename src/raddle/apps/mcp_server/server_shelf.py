"""The threads of a sync server that one caller may see, as its hub gives them: the caller's own rights, no others."""

from __future__ import annotations

from raddle.apps.mcp_server.thread_shelf import ListPage, Looked, no_thread, with_hints
from raddle.model.errors import Forbidden, InvalidInput, NotFound, Purged
from raddle.model.ids import parse_thread_id
from raddle.model.protocol.signing_in import THREADS
from raddle.model.threads.message import Message
from raddle.model.threads.search_answer import SearchAnswer
from raddle.model.threads.thread import Thread
from raddle.server.accounts.callers import Caller
from raddle.server.hub import Hub


class ServerShelf:
    """A ThreadShelf of the spaces that `caller` is a member of; by its id, also what everybody may read."""

    def __init__(self, hub: Hub, caller: Caller) -> None:
        self._hub = hub
        self._caller = caller
        self.looked = Looked(
            where="your spaces on this server", is_wide=True, private="never leaves its machine"
        )

    def search(self, query: str, *, limit: int, cursor: str) -> SearchAnswer:
        """As ThreadShelf."""
        answer = self._hub.search(self._caller, query, limit=limit, cursor=cursor)
        return with_hints(answer, query, self._hub.clock())

    def listed(self, query: str, *, limit: int, cursor: str) -> ListPage:
        """As ThreadShelf, without pins: the newest activity first."""
        found = self._hub.listed(self._caller, query, limit=limit, cursor=cursor)
        return ListPage(list(found.threads), found.cursor)

    def load(self, thread: str) -> Thread:
        """As ThreadShelf; by its whole id alone."""
        try:
            thread_id = parse_thread_id(thread)
        except InvalidInput as error:
            error.hint = "a server takes whole ids: thread_list and thread_search have them"
            raise
        try:
            loaded = self._hub.read(self._caller, thread_id, None)
        except (NotFound, Purged):
            raise no_thread(thread) from None
        if loaded.is_deleted or loaded.is_private:
            raise no_thread(thread)
        return loaded

    def end(self, thread: Thread) -> str | None:
        """As ThreadShelf: the newest turn."""
        tip = thread.tree.tip()
        return tip.id if tip is not None else None

    def append(self, thread: Thread, text: str, *, parent: str | None, role: str, author: str) -> Message:
        """As ThreadShelf. Forbidden where the thread is somebody else's, or the token may only read."""
        self._must_write()
        return self._hub.append(self._caller, thread.id, parent=parent, role=role, text=text, author=author)

    def fork(self, thread: Thread, *, at: str | None, title: str) -> str:
        """As ThreadShelf, into the caller's own space. Forbidden where the token may only read."""
        self._must_write()
        return self._hub.fork(self._caller, thread.id, at=at, title=title)

    def _must_write(self) -> None:
        if THREADS not in self._caller.scopes:
            raise Forbidden("this device may only read", "let it in anew with the scope `threads`")
