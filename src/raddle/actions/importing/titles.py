"""A title from the words of a conversation, cut where a reader would cut it.

Owns the cut of every imported title: two rules would give one session two titles on two machines.
"""

from __future__ import annotations

import unicodedata

LONGEST = 80
"""Characters of a title."""

_JOINER = "\u200d"
_CLINGING = frozenset("\u200d\ufe0e\ufe0f")


def title_from(text: str) -> str:
    """The first line of `text` that says something; empty where none does.

    It is cut to LONGEST characters on a word, and never inside what a reader sees as one character.
    """
    for line in text.splitlines():
        title = " ".join(line.split())
        if title:
            return _cut(title)
    return ""


def _cut(title: str) -> str:
    if len(title) <= LONGEST:
        return title
    end = LONGEST - 1
    space = title.rfind(" ", 0, end + 1)
    if space > LONGEST // 2:
        return title[:space].rstrip(",;:.-–—") + "…"
    while end > 1 and (_belongs_to_the_one_before(title[end]) or title[end - 1] == _JOINER):
        end -= 1
    return title[:end] + "…"


def _belongs_to_the_one_before(character: str) -> bool:
    """Is this a part of the character a reader sees, such as an accent, a skin tone or a joined emoji?"""
    return (
        character in _CLINGING
        or unicodedata.combining(character) != 0
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or unicodedata.category(character) in ("Mn", "Me", "Mc")
    )
