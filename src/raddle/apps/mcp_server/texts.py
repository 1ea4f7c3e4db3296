"""Texts that agents give, in the forms that they come in, and what is said about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def tags_of(given: Sequence[str] | str | None) -> tuple[str, ...]:
    """Tags given as a list, as one text, or as a list that was written as a text: `a`, `a, b`, `["a", "b"]`."""
    if given is None:
        return ()
    if isinstance(given, str):
        text = given.strip()
        if text.startswith("["):
            try:
                plain = json.loads(text)
            except ValueError:
                plain = None
            if isinstance(plain, list) and all(isinstance(one, str) for one in plain):
                return tags_of(plain)
        given = text.split(",")
    return tuple(tag.strip() for tag in given if tag.strip())


def warn_of_secrets(kinds: Sequence[str]) -> dict[str, Any]:
    """What is added to an answer where the text seems to hold a secret."""
    if not kinds:
        return {}
    return {"warning": f"it seems to hold a secret ({', '.join(kinds)}): memory is shared, take it out"}
