"""Words that somebody else wrote as Markdown in which none of them is taken for a mark.

Owns the escapes, which both kinds of readers must take: CommonMark (forges, editors) and Python-Markdown (MkDocs). They
do not agree on a backslash before `<`, `&`, `~` or `$`, so those are written as entities.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from raddle.actions.presenting.tables import Table, is_numeric

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
_IN_PAIRS = {"~": "&#126;", "$": "&#36;"}
"""What strikes words out, or makes a formula of them, on a forge: one alone does nothing."""
_MARKS = re.compile(r"[\\`*\[\]{}&<>|]|(?<![^\W_])_|_(?![^\W_])")
_AT_THE_START = re.compile(r"(?:#|[-+](?=\s|\Z)|[-=+]{2,}\Z|(?P<number>\d{1,9})(?=[.)](?:\s|\Z)))")


def words(text: str) -> str:
    """`text`, one line, at the start of a line or after other words."""
    escaped = _MARKS.sub(_escaped, text)
    for mark, entity in _IN_PAIRS.items():
        if escaped.count(mark) > 1:
            escaped = escaped.replace(mark, entity)
    found = _AT_THE_START.match(escaped)
    if found is None:
        return escaped
    if found["number"]:
        return f"{found[0]}\\{escaped[found.end() :]}"
    return f"\\{escaped}"


def paragraph(text: str) -> str:
    """`text` of several lines, each of which stays one."""
    return "<br>\n".join(words(line) for line in text.split("\n"))


def bullets(texts: Iterable[str]) -> str:
    """A list, a text each."""
    return "\n".join("- " + paragraph(text).replace("\n", "\n  ") for text in texts)


def table(shown: Table) -> str:
    """A table; columns of numbers stand to the right."""
    return rows(shown.header, shown.rows)


def rows(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """The same of a header and rows."""
    rules = ["---:" if is_numeric([row[at] for row in body]) else "---" for at in range(len(header))]
    lines = [list(map(_cell, header)), rules, *(list(map(_cell, row)) for row in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return "<br>".join(words(line) for line in text.split("\n")) or " "


def _escaped(found: re.Match[str]) -> str:
    return _ENTITIES.get(found[0], f"\\{found[0]}")
