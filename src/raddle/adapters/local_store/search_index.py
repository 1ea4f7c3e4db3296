"""The search index of one data folder: what is put in, what is found, and how it keeps up with the thread files.

Derived: everything in it can be made again from the thread files. Nothing outside this room opens its file.
How it works: `docs/adr/0010-search-words-and-local-index.md`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from raddle.adapters.file_systems import is_on_network
from raddle.adapters.local_store.search_book import Book
from raddle.adapters.local_store.search_database import Database, IndexBusy
from raddle.adapters.local_store.search_sweep import FileFacts, Sweep, is_other
from raddle.adapters.local_store.search_upkeep import LoadThread, Upkeep, remove_by_id
from raddle.adapters.local_store.search_writer import (
    ARCHIVED,
    PINNED,
    PRIVATE,
    decode_summary,
    find_thread,
    load_summary,
)
from raddle.model.clock import Clock, system_clock
from raddle.model.ids import parse_thread_id, parse_thread_id_prefix
from raddle.model.threads.query import FlagFilter, Fragment, Query, is_of_thread, parse
from raddle.model.threads.reach import Reach
from raddle.model.threads.search_answer import Scope, SearchAnswer
from raddle.model.threads.search_fields import MessageText
from raddle.model.threads.summary import ThreadSummary

if TYPE_CHECKING:
    from raddle.actions.ports import Finding
    from raddle.adapters.local_store.search_bulk import Bulk
    from raddle.adapters.local_store.search_lookup import Lookup
    from raddle.adapters.local_store.search_map import ThreadMap
    from raddle.model.threads.thread import Thread


def _nothing(_: object) -> None:
    """What becomes of findings until somebody listens."""


class SearchIndex:
    """The index at `path`, made where there is none. Safe to share between threads, which take turns.

    `dirty_list`: where writers note the threads they wrote (`search_dirty.mark_dirty`). Before each answer
    those are loaded with `load` and put in, so that a search finds what was saved the moment before.
    `threads_dir`: where the thread files lie, to notice what other programs did to them (`search_sweep`); `report`
    hears of what of it cannot be read.
    Every method raises StorageError where the file cannot be read or written; IndexBusy, which is one, where
    another process writes for too long.
    """

    def __init__(
        self,
        path: Path,
        *,
        dirty_list: Path | None = None,
        threads_dir: Path | None = None,
        load: LoadThread | None = None,
        clock: Clock = system_clock,
        report: Callable[[Finding], None] = _nothing,
        is_network: Callable[[Path], bool] = is_on_network,
    ) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._database = Database(path, is_network=is_network)
        self._sweep = None if threads_dir is None else Sweep(self._database, threads_dir, clock)
        self._book = Book(self._database.sql)
        self._upkeep = (
            None
            if load is None
            else Upkeep(
                self._database, self._book, load, dirty_list=dirty_list, sweep=self._sweep, report=report
            )
        )
        self._map: ThreadMap | None = None
        self._map_version = (-1, -1)
        self._writes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of how the index is kept."""
        return self._database.notes

    def stale(self) -> str:
        """Why everything has to be put in anew (it was new, damaged, of another format); empty where it is whole."""
        with self._lock, self._database.errors():
            return self._database.rebuild_reason

    def start_over(self, reason: str = "it is being rebuilt") -> None:
        """Empty it; `stale` says why until `finish_rebuild`."""
        with self._lock:
            self._database.start_over(reason)
            self._writes += 1

    def finish_rebuild(self) -> None:
        """Every thread is in: the index is whole."""
        with self._lock, self._database.writing():
            self._database.set_meta("rebuild", "")

    @contextlib.contextmanager
    def bulk(self) -> Iterator[Bulk]:
        """Much at once: an import or a rebuild. What is not committed when it breaks off is undone."""
        from raddle.adapters.local_store.search_bulk import Bulk  # noqa: PLC0415

        with self._lock, self._database.errors():
            bulk = Bulk(self._database, self._book, self._sweep)
            bulk.begin()
            try:
                yield bulk
                bulk.end()
            except BaseException:
                bulk.abandon()
                raise
            finally:
                self._writes += 1

    def put(
        self, summary: ThreadSummary, texts: Sequence[MessageText], removed: Collection[str] = ()
    ) -> None:
        """Make the index hold this thread as it is here; only messages that differ are cut and written.

        `removed`: ids of the messages that do not show. A thread that is deleted is taken out.
        """
        from raddle.adapters.local_store.search_update import put_texts  # noqa: PLC0415

        with self._lock, self._database.writing() as sql:
            put_texts(sql, self._book, summary, texts, removed, is_whole=True)
            self._writes += 1

    def extend(
        self, summary: ThreadSummary, texts: Sequence[MessageText], removed: Collection[str] | None = None
    ) -> None:
        """Add or replace these messages and leave the others; `removed` None leaves what is taken back as it is."""
        from raddle.adapters.local_store.search_update import put_texts  # noqa: PLC0415

        with self._lock, self._database.writing() as sql:
            put_texts(sql, self._book, summary, texts, removed, is_whole=False)
            self._writes += 1

    def put_thread(self, thread: Thread) -> None:
        """Make the index hold this thread as it is."""
        from raddle.adapters.local_store.search_update import put_thread  # noqa: PLC0415

        with self._lock, self._database.writing() as sql:
            put_thread(sql, self._book, thread)
            self._writes += 1

    def remove(self, thread_id: str) -> None:
        """Take a thread out; nothing happens where it is not in."""
        with self._lock, self._database.writing():
            remove_by_id(self._database.sql, parse_thread_id(thread_id))
            self._writes += 1

    def refresh(self, *, sweeps: bool = True, is_hurried: bool = False) -> int:
        """Put in what writers noted, and with `sweeps` what other programs changed, which mends what it can on the
        way; how many threads still wait, for another process is writing the index or their files cannot be read.

        `is_hurried`: an edit inside a file may be seen a minute later.
        """
        with self._lock:
            if self._upkeep is None:
                return 0
            return self._upkeep.refresh(sweeps=sweeps, is_hurried=is_hurried)

    def file_stamp(self, thread_id: str) -> FileFacts:
        """What the thread's files look like now, for `Bulk.note_files`: to be asked before they are read."""
        return () if self._sweep is None else self._sweep.stamp(thread_id)

    def is_behind(self, thread_id: str) -> bool:
        """Has somebody written to the thread's files since the index saw them? A search looks at them first."""
        if self._sweep is None:
            return False
        with self._lock, self._database.reading():
            noted = self._sweep.noted(thread_id)
            return bool(noted) and is_other(self._sweep.stamp(thread_id), noted)

    def search(
        self,
        query: Query | str,
        *,
        limit: int = 20,
        cursor: str = "",
        now: int | None = None,
        include_private: bool = True,
        within: Reach | None = None,
        as_you_type: bool = False,
    ) -> SearchAnswer:
        """The next `limit` threads with a hit, best first. `cursor`: of the page before, for the same query.
        `as_you_type`: the last word of a query given as text is still being typed. `within`: only threads that
        belong there.

        `now`: microseconds since 1970, for recency and for times like `7d`; a cursor brings that of its first
        page. InvalidInput for a cursor that is none, or of another query.
        """
        from raddle.adapters.local_store.search_hits import hits_of  # noqa: PLC0415  a list needs none of it
        from raddle.adapters.local_store.search_ranking import Ranking  # noqa: PLC0415
        from raddle.model.threads.search_order import (  # noqa: PLC0415
            Cursor,
            check_of,
            format_cursor,
            parse_cursor,
        )

        after = parse_cursor(cursor, Cursor) if cursor else None
        moment = after.now if after is not None else self._moment(now)
        asked = parse(query, now=moment, as_you_type=as_you_type) if isinstance(query, str) else query
        if after is not None:
            after.must_fit(asked)
        with self._lock:
            pending = self.refresh()
            self._settle_book(asked)
            with self._database.reading() as sql:
                lookup = self._lookup(asked, include_private=include_private, within=within)
                ranking = Ranking(lookup, moment)
                places, has_more = ranking.page(None if after is None else after.key, max(limit, 0))
                hits = tuple(hits_of(sql, lookup, ranking, places))
                scope = self._scope(lookup, pending)
        following = Cursor(moment, places[-1].key, check_of(asked)) if places and has_more else None
        return SearchAnswer(
            scope=scope,
            total_threads=len(lookup.found),
            hits=hits,
            cursor="" if following is None else format_cursor(following),
        )

    def messages_in(self, thread_id: str, query: Query | str, *, now: int | None = None) -> list[str]:
        """The ids of the hits in one thread, in the thread's order: for going from one to the next."""
        asked = parse(query, now=self._moment(now)) if isinstance(query, str) else query
        with self._lock:
            self.refresh()
            self._settle_book(asked)
            with self._database.reading() as sql:
                number = find_thread(sql, parse_thread_id(thread_id))
                lookup = self._lookup(asked)
                if number is None or number not in lookup.found:
                    return []
                texts = lookup.rows.texts(lookup.rows_of([number])[number])
                found = [(text.order, text.id) for _, text in texts]
                return [message_id for _, message_id in sorted(found)]

    def resolve_prefix(self, prefix: str, *, most: int = 50) -> list[str]:
        """The ids that start with `prefix` (with or without `T-`), in order; InvalidInput where it cannot be one."""
        start = parse_thread_id_prefix(prefix)
        with self._lock:
            self.refresh(sweeps=False)
            with self._database.reading() as sql:
                rows = sql.execute(
                    "SELECT id FROM threads WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
                    (start, start + "g", most),
                )
                return [thread_id for (thread_id,) in rows]

    def get(self, thread_id: str) -> ThreadSummary | None:
        """The summary of a thread; None where it is not in the index."""
        with self._lock:
            self.refresh(sweeps=False)
            with self._database.reading() as sql:
                number = find_thread(sql, parse_thread_id(thread_id))
                return None if number is None else load_summary(sql, number)

    def ids(self) -> set[str]:
        """Every thread in the index, whatever its state: what a sweep compares with the thread files."""
        with self._lock, self._database.reading() as sql:
            return {thread_id for (thread_id,) in sql.execute("SELECT id FROM threads WHERE id IS NOT NULL")}

    def verify(self) -> list[str]:
        """What is wrong with it, in words; empty where all is well. Reads the whole index."""
        from raddle.adapters.local_store.search_health import problems_of  # noqa: PLC0415

        with self._lock, self._database.errors():
            return problems_of(self._database, self._book)

    def optimize(self) -> None:
        """Merge it into one piece and give space back: searches get faster, and of deleted text not a word is left."""
        from raddle.adapters.local_store.search_bulk import merge_all  # noqa: PLC0415

        with self._lock, self._database.errors():
            with self._database.writing() as sql:
                merge_all(sql)
                self._book.make_anew()
            self._database.sql.execute("VACUUM")
            self._database.write_back()
            self._writes += 1

    def _moment(self, now: int | None) -> int:
        return self._clock() if now is None else now

    def _lookup(self, query: Query, **allowed: Any) -> Lookup:
        from raddle.adapters.local_store.search_lookup import Lookup  # noqa: PLC0415
        from raddle.adapters.local_store.search_map import ThreadMap  # noqa: PLC0415

        sql = self._database.sql
        writes = self._writes + (0 if self._upkeep is None else self._upkeep.writes)
        version = (sql.execute("PRAGMA data_version").fetchone()[0], writes)
        if self._map is None or version != self._map_version:
            self._map, self._map_version = ThreadMap(sql), version
        return Lookup(sql, self._map, self._book, query, **allowed)

    def _settle_book(self, query: Query) -> None:
        """A query for fragments needs the whole vocabulary; while an import goes on, what there is has to do."""
        asks = any(isinstance(term, Fragment) for term in query.terms)
        if asks and not self._database.sql.in_transaction and self._book.is_unsure():
            with contextlib.suppress(IndexBusy), self._database.writing(wait_seconds=0):
                self._book.make_anew()

    def _scope(self, lookup: Lookup, pending: int) -> Scope:
        return Scope(
            query=lookup.query.text,
            filters=tuple(one.text for one in lookup.query.filters if one.text),
            ignored=lookup.query.ignored,
            threads=lookup.threads_looked_at,
            is_complete=lookup.is_complete,
            messages_read=lookup.rows.messages_read,
            pending=pending,
            notes=(*self.notes, *self._notes_on(lookup)),
        )

    def _notes_on(self, lookup: Lookup) -> Iterator[str]:
        """What may be missing in the answer."""
        reason = self._database.rebuild_reason
        if reason:
            yield f"the index is not whole: {reason}"
        if self._sweep is not None and self._sweep.trouble:
            yield f"what other programs changed may be missing: {self._sweep.trouble}"
        partial = lookup.partly_known if lookup.query.terms else 0
        if partial:
            told = "1 text is searched in its" if partial == 1 else f"{partial:,} texts are searched in their"
            yield f"{told} first and last part only, being longer than 1 MiB"

    def _listed(self, query: Query, *, include_archived: bool, **allowed: Any) -> Sequence[int]:
        asks_archived = any(isinstance(one, FlagFilter) and one.flag == "archived" for one in query.filters)
        # A thread whose every turn was taken back has no message to find, and is in the list all the same.
        asks_messages = bool(query.terms) or not all(map(is_of_thread, query.filters))
        lookup = self._lookup(query, asks_messages=asks_messages, **allowed)
        hidden = 0 if include_archived or asks_archived else ARCHIVED
        chosen = lookup.found if asks_messages else lookup.allowed
        found = lookup.map if chosen is None else lookup.map.newest_first(chosen)
        shown = [number for number in found if not lookup.map[number].flags & hidden]
        return sorted(shown, key=lambda number: not lookup.map[number].flags & PINNED)

    # Last, since below it the word means this method.
    def list(
        self,
        query: Query | str | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        include_archived: bool = False,
        include_private: bool = True,
        within: Reach | None = None,
        now: int | None = None,
    ) -> list[ThreadSummary]:
        """Threads, pinned ones first, then by their last activity; with a query, those it finds, in the same order.

        Archived threads are left out unless asked for, here or by `is:archived` in the query.
        """
        asked = parse(query, now=self._moment(now)) if isinstance(query, str) else query
        with self._lock:
            self.refresh(is_hurried=asked is None)
            if asked is not None:
                self._settle_book(asked)
            with self._database.reading() as sql:
                if within is not None or (asked is not None and not asked.is_empty):
                    found = self._listed(
                        asked or Query(text=""),
                        include_archived=include_archived,
                        include_private=include_private,
                        within=within,
                    )
                    chosen = found[offset : None if limit is None else offset + limit]
                    return [load_summary(sql, number) for number in chosen]
                hidden = ARCHIVED * (not include_archived) | PRIVATE * (not include_private)
                rows = sql.execute(
                    f"SELECT summary FROM threads WHERE id IS NOT NULL AND flags & ? = 0"
                    f" ORDER BY flags & {PINNED} DESC, activity DESC, id LIMIT ? OFFSET ?",
                    (hidden, -1 if limit is None else limit, offset),
                )
                return [decode_summary(summary) for (summary,) in rows]
