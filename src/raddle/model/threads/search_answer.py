"""What a search answers: hits, what was looked at to find them, and where the next page begins."""

from __future__ import annotations

from msgspec import Struct

from raddle.model.threads.search_snippet import Snippet
from raddle.model.threads.summary import ThreadSummary


class Scope(Struct, frozen=True, kw_only=True):
    """What was looked at: an empty answer from the wrong place must show that it is from the wrong place."""

    store: str = "local"
    query: str = ""
    filters: tuple[str, ...] = ()
    """As typed, and those that were added for the asker."""
    ignored: tuple[str, ...] = ()
    """Parts of the query that asked for nothing."""
    threads: int = 0
    """Threads that the filters on threads left to look at."""
    is_complete: bool = True
    """False: a fragment across words was looked for in the newest `messages_read` messages only."""
    messages_read: int = 0
    """Messages whose text was opened to compare it, newest first; 0 where the index alone decided."""
    pending: int = 0
    """Threads changed since, which are not in this answer yet: the index was being written."""
    notes: tuple[str, ...] = ()


class Hit(Struct, frozen=True, kw_only=True):
    """A thread that was found, shown by its best message."""

    thread: ThreadSummary
    message_id: str
    """Opens the branch it is on."""
    role: str
    field: str
    """Where the words stand: one of `FIELDS`, or `header`."""
    snippet: Snippet
    score: float
    """Field weight times recency; 0.0 for hits past the newest thousand, which come in order of activity."""
    matches: int
    """Messages of this thread that are hits."""


class SearchAnswer(Struct, frozen=True, kw_only=True):
    """One page of hits. `cursor`: where the next page begins; empty after the last."""

    scope: Scope
    total_threads: int
    """Threads with a hit: exact, unless `scope.is_complete` is false."""
    hits: tuple[Hit, ...] = ()
    cursor: str = ""
