"""Exact text: what a quoted phrase with punctuation, or a fragment across words, is compared in, and how.

Both engines verify by these two functions what their words alone cannot say.
"""

from __future__ import annotations

from raddle.model.threads.search_text import fold, is_unspaced


def normalised(text: str) -> str:
    """Folded, lower-cased, every run of white space one space."""
    return " ".join(fold(text).lower().split())


def has_exact(text: str, exact: str) -> bool:
    """Does the normalised `text` hold `exact`, cutting no word in two at either end?"""
    at = text.find(exact)
    while at >= 0:
        if not _cuts_word(text, at) and not _cuts_word(text, at + len(exact)):
            return True
        at = text.find(exact, at + 1)
    return False


def _cuts_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and _joins_words(text[at - 1]) and _joins_words(text[at])


def _joins_words(character: str) -> bool:
    """In a folded text, whatever is beyond ASCII is part of a word; scripts without spaces have no borders."""
    return character.isalnum() if character.isascii() else not is_unspaced(character)
