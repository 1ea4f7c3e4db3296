"""Pages of long lists, and what fits into what an agent has room for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from raddle.model.errors import InvalidInput

T = TypeVar("T")
CHARACTERS_A_TOKEN = 4
"""Roughly, of English and of code; of CJK it is less, so that such a page comes out shorter in tokens, never longer."""


LARGEST_ANSWER = 40_000
"""Characters. Some clients show a model nothing of an answer over 50 KB, others its beginning."""


def part_of(text: str, offset: int) -> tuple[str, dict[str, int]]:
    """What an answer holds of a text from that character on, and where it goes on, where it does. InvalidInput for an
    offset past the end."""
    if offset and offset >= len(text):
        raise InvalidInput(f"offset {offset:,} is past the end", f"the text has {len(text):,} characters")
    end = offset + LARGEST_ANSWER
    return text[offset:end], {"next_offset": end} if end < len(text) else {}


class Budget:
    """How much an answer may still say, in tokens; counted as JSON text would be."""

    def __init__(self, tokens: int) -> None:
        self._left = tokens * CHARACTERS_A_TOKEN

    def takes(self, value: Any) -> bool:
        """Is there room for it? Then it is taken."""
        size = sum(
            1 if char < "\x80" else CHARACTERS_A_TOKEN
            for char in json.dumps(value, ensure_ascii=False, default=str)
        )
        if size > self._left:
            return False
        self._left -= size
        return True

    def cut(self, text: str, share: float = 1.0) -> tuple[str, bool]:
        """As much of the start of a text as there is room for, of which it takes at most that share; is it all?"""
        room = max(int(self._left * share), 0)
        used = 0
        for at, char in enumerate(text):
            used += 1 if char < "\x80" else CHARACTERS_A_TOKEN
            if used > room:
                self._left -= room
                return text[:at], False
        self._left -= used
        return text, True


def after(items: Sequence[T], cursor: str | None, name: Callable[[T], str]) -> Sequence[T]:
    """What comes after the item that the cursor names, in the items' own order; where it is gone since, after where it
    would stand in an order by name. InvalidInput for a cursor that is none."""
    if not cursor:
        return items
    if not cursor.startswith(_MARK):
        raise InvalidInput("cursor is none of an answer's", "give the cursor of the last page, or none")
    last = cursor.removeprefix(_MARK)
    for at, item in enumerate(items):
        if name(item) == last:
            return items[at + 1 :]
    return [item for item in items if name(item) > last]


_MARK = "after:"


def page(
    items: Sequence[T],
    limit: int,
    shape: Callable[[T], Any],
    name: Callable[[T], str],
    budget: Budget | None = None,
) -> tuple[list[Any], str]:
    """The shapes of the first of them, at most `limit` and what the budget takes, at least one; and the cursor to go on
    with, empty at the end."""
    shown: list[Any] = []
    for item in items[:limit]:
        value = shape(item)
        if budget is not None and not budget.takes(value) and shown:
            break
        shown.append(value)
    is_all = len(shown) == len(items)
    return shown, "" if is_all or not shown else f"{_MARK}{name(items[len(shown) - 1])}"
