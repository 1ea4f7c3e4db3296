"""A text that is not to be seen: the one shape in which a token or a key goes from one room to the next."""

from __future__ import annotations


class Secret:
    """A text that no print, log or traceback shows; `reveal()` is for the one who sends it."""

    __slots__ = ("_shown", "_text")

    def __init__(self, text: str, shown: str = "set") -> None:
        self._text = text
        self._shown = shown

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return self._shown
