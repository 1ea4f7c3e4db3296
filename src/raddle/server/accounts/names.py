"""What people and their devices may be called: one spelling of each name, and nothing that draws outside its line.

If two places cleaned a name, somebody could be written in a way in which they cannot sign in.
"""

from __future__ import annotations

import unicodedata

from raddle.model.errors import InvalidInput

LONGEST_NAME = 64
LONGEST_DEVICE_NAME = 100
_REFUSED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories: controls, marks that do not show, surrogates, what means nothing, line ends."""


def parse_user_name(text: str) -> str:
    """The canonical form of a person's name: NFKC, lower case, 1 to 64 characters; InvalidInput where it is none."""
    return _checked(_normal(_normal(_bounded(text)).lower()), "name", LONGEST_NAME)


def parse_device_name(text: str) -> str:
    """The name of a device as it is shown: NFKC, 1 to 100 characters; InvalidInput where it is none."""
    return _checked(_normal(_bounded(text)), "device name", LONGEST_DEVICE_NAME)


def _bounded(text: str) -> str:
    """`text`, or one that is as wrong where it is so long that looking at it costs something."""
    return text if len(text) <= 1_000 else ""


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _checked(text: str, field: str, longest: int) -> str:
    """`text` without spaces around it; the error repeats nothing of it."""
    name = text.strip(" ")
    if not 1 <= len(name) <= longest:
        raise InvalidInput(f"{field}: it has 1 to {longest} characters")
    if any(unicodedata.category(character) in _REFUSED for character in name):
        raise InvalidInput(f"{field}: it holds a character that does not show")
    return name
