"""What tests of the search index put in and ask it, where the words alone matter."""

from __future__ import annotations

from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.threads.search_fields import MessageText

ONE, TWO = "T-018e2b3c-4d5e-7f8a-9b0c-000000000001", "T-018e2b3c-4d5e-7f8a-9b0c-000000000002"


def says(text: str, at: int = 1) -> MessageText:
    """A user's turn with this text, at this place of its thread."""
    return MessageText(id=f"m{at}", order=at, role="user", texts=(text, "", "", "", ""))


def found(index: SearchIndex, query: str) -> set[str]:
    """The ids of the threads found."""
    return {hit.thread.id for hit in index.search(query).hits}


def is_sound(index: SearchIndex) -> bool:
    """Is nothing wrong with it, once it counts as whole?"""
    index.finish_rebuild()
    return index.verify() == []
