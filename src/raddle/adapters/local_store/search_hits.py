"""Found messages as they are shown: the thread's summary, the best message, the lines around what was found."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from raddle.adapters.local_store.search_lookup import Lookup
from raddle.adapters.local_store.search_ranking import Place, Ranking
from raddle.adapters.local_store.search_writer import load_summary
from raddle.model.threads.search_answer import Hit
from raddle.model.threads.search_fields import FIELDS, MessageText, header_of
from raddle.model.threads.search_snippet import Snippet, snippet_of
from raddle.model.threads.summary import ThreadSummary


def hits_of(
    sql: sqlite3.Connection, lookup: Lookup, ranking: Ranking, places: Sequence[Place]
) -> Iterator[Hit]:
    """The hits at these places."""
    rows = lookup.rows_of([place.thread for place in places])
    best = ranking.best_rows(rows)
    texts = dict(lookup.rows.texts(sorted(best.values())))
    for place in places:
        summary, text = load_summary(sql, place.thread), texts[best[place.thread]]
        field, snippet = _shown(lookup, place.thread, summary, text)
        yield Hit(
            thread=summary,
            message_id=text.id,
            role=text.role,
            field=field,
            snippet=snippet,
            score=place.score,
            matches=len(rows[place.thread]),
        )


def _shown(lookup: Lookup, thread: int, summary: ThreadSummary, text: MessageText) -> tuple[str, Snippet]:
    """Where the words stand, and the lines around them: in the message, else in the header."""
    field, snippet = snippet_of(lookup.query, text.texts)
    if not snippet.marks and lookup.found[thread].covered:
        header = header_of(summary)
        names = (header.title, *header.tags, *header.branches, header.remote, *header.shas)
        _, of_header = snippet_of(lookup.query, names)
        if of_header.marks:
            return "header", of_header
    return FIELDS[field], snippet
