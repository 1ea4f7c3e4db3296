"""Found messages as they are shown: the thread's summary, the best message, the lines around what was found."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from raddle.adapters.local_store.search_lookup import Lookup
from raddle.adapters.local_store.search_ranking import Ranking
from raddle.adapters.local_store.search_writer import load_summary
from raddle.model.threads.search_answer import Hit
from raddle.model.threads.search_order import Place
from raddle.model.threads.search_snippet import shown_of


def hits_of(
    sql: sqlite3.Connection, lookup: Lookup, ranking: Ranking, places: Sequence[Place]
) -> Iterator[Hit]:
    """The hits at these places."""
    rows = lookup.rows_of([place.thread for place in places])
    best = ranking.best_rows(rows)
    texts = dict(lookup.rows.texts(sorted(best.values())))
    for place in places:
        summary, text = load_summary(sql, place.thread), texts[best[place.thread]]
        is_in_header = lookup.found[place.thread].covered > 0
        field, snippet = shown_of(lookup.query, summary, text.texts, is_in_header=is_in_header)
        yield Hit(
            thread=summary,
            message_id=text.id,
            role=text.role,
            field=field,
            snippet=snippet,
            score=place.score,
            matches=len(rows[place.thread]),
        )
