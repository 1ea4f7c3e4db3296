"""`raddle.open()`: the threads of this machine for a program that reads, searches and keeps them.

Owns the names that such programs rely on: the first seed's store, over the same wiring as the command line.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from raddle.actions.ports import Finding
from raddle.apps.library.interruptions import interruptions
from raddle.model.errors import FormatError, InvalidInput, NotFound, RaddleError
from raddle.model.ids import is_thread_id
from raddle.model.threads.edits import Editor
from raddle.model.threads.plain_values import count, plain_text
from raddle.model.threads.search_answer import Hit
from raddle.model.threads.summary import ThreadSummary
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores, open_stores

Summaries = list[ThreadSummary]
Hits = list[Hit]

_ALL = 1_000_000
"""More threads than a store holds."""

logger = logging.getLogger("raddle")


def open() -> Store:  # noqa: A001  it is called raddle.open
    """The threads of this machine, where the environment and `config.toml` say they are; use it with `with`."""
    return Store()


class Store:
    """Threads on the disk. An id may be given by its start wherever one is asked for (Ambiguous: it names
    several). Use it from one thread at a time."""

    def __init__(self) -> None:
        self._stores: Stores = open_stores(report=_report)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what was opened; nothing is lost where this is not called."""
        self._stores.close()

    def load(self, thread_id: str) -> Thread | None:
        """The thread, deleted ones too; None where there is none. FormatError where it cannot be read."""
        try:
            return self.get(thread_id)
        except NotFound:
            return None

    def get(self, thread_id: str) -> Thread:
        """The thread, deleted ones too; NotFound where there is none. FormatError where it cannot be read."""
        return self._stores.threads.load(self._resolve(thread_id))

    def _resolve(self, thread_id: str) -> str:
        return self._stores.resolve(plain_text(thread_id, "the id of a thread"))

    def __iter__(self) -> Iterator[Thread]:
        """Every thread that is not deleted, oldest first, one at a time in memory. What cannot be read is
        logged and passed over."""
        for thread_id in self._stores.threads.ids():
            try:
                thread = self._stores.threads.load(thread_id)
            except NotFound:  # purged meanwhile
                continue
            except FormatError as error:
                logger.warning("%s: %s", thread_id, error.message)
                continue
            if not thread.is_deleted:
                yield thread

    def __contains__(self, thread_id: object) -> bool:
        """Is there a thread of just this id?"""
        return (
            isinstance(thread_id, str)
            and is_thread_id(thread_id)
            and self._stores.paths.thread_file(thread_id).exists()
        )

    def save(self, thread: Thread) -> bool:
        """Keep a thread, whoever has it from wherever: it joins what is there and overwrites nothing. Was there
        anything new? An empty one is not written."""
        if not isinstance(thread, Thread):
            raise InvalidInput(
                f"a thread is a Thread, not {type(thread).__name__}", "`load` and `get` give one"
            )
        with interruptions.deferred():
            return self._stores.threads.save(thread)

    def save_and_sync(self, thread: Thread) -> bool:
        """`save`, then bring the thread into step with the server; does the server have it now as it is here?

        Where it is kept on this machine alone the answer is False, and the log says why: no server, not signed in, no
        network, a private thread. The next sync brings there what could not be. Raises what `save` raises.
        """
        self.save(thread)
        from raddle.wiring.syncing import put_on_server  # noqa: PLC0415  most programs ask no server

        try:
            return put_on_server(self._stores, thread.id)
        except RaddleError as error:
            logger.info("%s is not on the server yet: %s", thread.id, error.message)
            return False

    @contextmanager
    def edit(self, thread_id: str) -> Iterator[Editor]:
        """Change a thread on its newest state: `with store.edit(ID) as editor: editor.rename("…")`.

        Saved when the block ends, not at all where it raises. The thread is locked meanwhile: ask no model in
        there. UserError for any other write to the thread in there, through whatever store or session: the edit
        could not see it.
        """
        whole = self._resolve(thread_id)
        with interruptions.deferred(), self._stores.threads.edit(whole) as editor:
            yield editor

    def list(self, query: str | None = "", *, limit: int | None = 50, archived: bool = False) -> Summaries:
        """Summaries, pins first, the newest activity first; `query` as in `raddle list`. `limit` None: all."""
        query = plain_text("" if query is None else query, "a query")
        return self._stores.listed(query, limit=_limit(limit), with_archived=archived)

    def search(self, query: str, *, limit: int | None = 20) -> Hits:
        """The threads in which `query` is found, best first, each with its best message and a snippet of it.
        `limit` None: all."""
        known = _limit(limit)
        found = self._stores.find(plain_text(query, "a query"), limit=_ALL if known is None else known)
        for note in found.scope.notes:
            logger.info("search: %s", note)
        return [*found.hits]

    def delete(self, thread_id: str) -> None:
        """Delete a thread on all devices; `raddle restore` brings it back. NotFound where there is none."""
        with self.edit(thread_id) as editor:
            editor.delete()


def _limit(given: int | None) -> int | None:
    number = None if given is None else count(given, "a limit")
    if number is not None and number < 0:
        raise InvalidInput(f"a limit is 0 or more, not {number}", "None is all")
    return None if number is None else min(number, _ALL)


def _report(finding: Finding) -> None:
    logger.warning("%s: %s", finding.path, "; ".join(filter(None, (finding.what, finding.done))))
