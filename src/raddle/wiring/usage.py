"""What the threads of this machine used: files read, the query asked of the index, everything counted once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from raddle.actions.ports import Finding
from raddle.adapters.local_store.usage_files import usage_reader
from raddle.model.clock import parse_time
from raddle.model.errors import FormatError, NotFound, StorageError
from raddle.model.threads.query import parse
from raddle.model.threads.search_fields import header_of
from raddle.model.threads.summary import ThreadSummary
from raddle.model.threads.usage import Holder, Response, Tally, counted_once, tally
from raddle.model.threads.usage_scope import (
    UTC_DAYS,
    Span,
    asked_of_responses,
    asked_of_threads,
    local_days,
    span_of,
)
from raddle.wiring import Stores
from raddle.wiring.listing import fitting


class UsageScope(Struct, frozen=True, kw_only=True):
    """What was looked at. `threads`: so many fit the query; `deleted` ones are not counted.

    `unreadable`: ids of threads whose files could not be read. `pending`: threads that changed since the index
    was written, and may be missing.
    """

    query: str
    span: Span
    time_zone: str
    threads: int
    stored: int
    deleted: int
    unreadable: tuple[str, ...]
    pending: int


class UsageAnswer(Struct, frozen=True, kw_only=True):
    """The sums, and what they are of."""

    tally: Tally
    scope: UsageScope


def usage_of(
    stores: Stores,
    text: str = "",
    *,
    by: str,
    since: str | None = None,
    until: str | None = None,
    in_utc: bool = False,
) -> UsageAnswer:
    """What fits the query and the span, summed; InvalidInput where `since` or `until` names no time.

    Which thread a shared message counts for is settled over all threads first, so that a query that chooses one
    half of them and a query that chooses the other half add up.
    """
    now = stores.clock()
    days = UTC_DAYS if in_utc else local_days(datetime.astimezone)
    span = span_of(since, until, now=now, calendar=days)
    query = parse(text, now=now)
    pending = stores.index.refresh()
    rows = stores.listed(limit=None, with_archived=True)
    unreadable: list[str] = []
    counted = counted_once(_read(stores, rows, unreadable))
    asked = asked_of_threads(query)
    chosen = {row.id for row in (rows if asked.is_empty else fitting(stores, asked, with_archived=True))}
    fits = asked_of_responses(query, span)
    wanted = (one for one in counted if one.holder.id in chosen and fits(one.response))
    return UsageAnswer(
        tally=tally(wanted, by, day_of=days.day_of),
        scope=UsageScope(
            query=query.text,
            span=span,
            time_zone=days.name,
            threads=len(chosen),
            stored=len(rows),
            deleted=len(stores.deleted()),
            unreadable=tuple(unreadable),
            pending=pending,
        ),
    )


def _read(
    stores: Stores, rows: list[ThreadSummary], unreadable: list[str]
) -> Iterator[tuple[Holder, list[Response]]]:
    read = usage_reader(stores.paths, stores.threads.load)
    for row in rows:
        try:
            yield _holder(row), read(row.id)
        except NotFound:  # purged since the list was made
            continue
        except (FormatError, StorageError) as error:
            unreadable.append(row.id)
            what = f"what it used is not counted: {error.message}"
            stores.report(Finding(path=str(stores.paths.thread_file(row.id)), what=what))


def _holder(row: ThreadSummary) -> Holder:
    header = header_of(row)
    return Holder(
        id=row.id,
        title=row.title,
        created_at=parse_time(row.created_at),
        last_activity_at=parse_time(row.last_activity_at),
        repository=header.repository,
        agent=header.agent,
    )
