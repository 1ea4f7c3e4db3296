"""A query asked of a list: what its rows already answer by what they show, and what is left to ask the messages.

A reader of a list expects a word to fit the row it stands in. A list that only asked the messages would leave
out the very thread whose folder has that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from raddle.model.threads.query import Query, Term, Word
from raddle.model.threads.query_match import has_term

_ID = re.compile(r"t-[0-9a-f][0-9a-f-]*\Z|[0-9a-f][0-9a-f-]{6,}\Z")
"""The start of an id as a list shows it, or enough of it to be one without `T-`."""


def asker(query: Query) -> Callable[[str, Sequence[str]], Query | None]:
    """A function of a thread's id and what its row shows besides the words that search looks at anyway.

    It answers with what is left to look for in the thread's messages; None: the row has what is not wanted.
    """
    known: dict[Sequence[str], Query | None] = {}
    ids = {term: start for term in query.terms if (start := _as_id(term))}

    def ask(thread_id: str, names: Sequence[str]) -> Query | None:
        if ids and any(thread_id.lower().startswith(start) for start in ids.values()):
            return _left(query, lambda term: _is_of(term, ids, thread_id) or has_term(term, names))
        if names not in known:
            known[names] = _left(query, lambda term: has_term(term, names))
        return known[names]

    return ask


def _as_id(term: Term) -> str:
    """The start of a thread's id that a word may be, with its `t-`; empty where it is none."""
    text = term.text.lower() if isinstance(term, Word) else ""
    if _ID.match(text) is None:
        return ""
    return text if text.startswith("t-") else f"t-{text}"


def _is_of(term: Term, ids: dict[Term, str], thread_id: str) -> bool:
    return term in ids and thread_id.lower().startswith(ids[term])


def _left(query: Query, is_shown: Callable[[Term], bool]) -> Query | None:
    left = []
    for term in query.terms:
        if not is_shown(term):
            left.append(term)
        elif term.is_negative:
            return None
    return query if len(left) == len(query.terms) else replace(query, terms=tuple(left))
