"""Which threads fit a query asked of a list: each word stands in what a row shows, or in a message.

Owns that answer for every command that chooses threads so; two of them would choose differently.
"""

from __future__ import annotations

import functools

from msgspec.structs import replace

from raddle.model.threads.query import Query
from raddle.model.threads.query_rows import asker
from raddle.model.threads.reach import Reach
from raddle.model.threads.summary import ThreadSummary, shown_names
from raddle.wiring import Stores


def fitting(
    stores: Stores,
    query: Query,
    *,
    limit: int | None = None,
    with_archived: bool,
    include_private: bool = True,
    within: Reach | None = None,
) -> list[ThreadSummary]:
    """The first `limit` threads that fit (None: all), in the order of a list. `within`: only of those there."""
    listed = functools.partial(
        stores.index.list, include_archived=with_archived, include_private=include_private, within=within
    )
    ask, left_for = asker(query), dict[Query, set[str]]()
    rows = listed(replace(query, terms=())) if query.terms else []
    for row in rows:
        left = ask(row.id, shown_names(row))
        if left is not None:
            left_for.setdefault(left, set()).add(row.id)
    if sum(map(len, left_for.values())) == len(rows) and left_for.keys() <= {query}:  # the rows tell nothing
        return listed(query, limit=limit)
    found: set[str] = set()
    for left, ids in left_for.items():
        having = listed(left) if left.terms else rows
        found |= ids & {row.id for row in having}
    return [row for row in rows if row.id in found][:limit]
