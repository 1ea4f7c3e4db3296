"""How words, names and facts stand in the columns of the two FTS5 tables, and how a query spells them.

What the index stores and what a query asks for are made side by side here: one sign that only one of them
used would be found by nobody.

Names and facts are set apart from text by characters of the private use area, which no text is ever cut to
(`search_text.fold` makes them spaces): a query for a word can never meet the name of a tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from raddle.model.threads.query import Name, Needle
from raddle.model.threads.search_fields import (
    ASSISTANT,
    FIELDS,
    OUTPUT,
    THINKING,
    USER,
    HeaderText,
    IndexRow,
    MessageText,
    is_mixed,
)
from raddle.model.threads.search_text import Cutter, words_of

THOUGHT = "\ue004"
"""Stands before each word of the thinking in the table `said`."""
BORDER = "\ue000"
"""Stands after every name; each row of `words` has at least one, after its role."""
ROLE, TOOL, ERROR, PARTIAL = "\ue001", "\ue002", "\ue003", "\ue005"
_NOWHERE = "\ue00f"

EVERY_ROW = f'"{BORDER}"'
NO_ROW = f'"{_NOWHERE}"'

_ORDER = ("output", *FIELDS[:OUTPUT])
"""The fields as columns. FTS5 spends two bytes on each word of a row that is not in its first column, so that is
the field with the most words; the facts of every row stand there too."""
_PLACES = [_ORDER.index(field) for field in FIELDS]
_TEXT_COLUMNS = " ".join(FIELDS)
_PIECE_COLUMNS = " ".join(f"{field}_pieces" for field in FIELDS)
_NAME_COLUMNS = "title tags branches remote shas"


class _Columns:
    """The columns of one table."""

    def __init__(self, *columns: str) -> None:
        self.names = ", ".join(columns)
        self.marks = ", ".join("?" * (len(columns) + 1))
        self.count = len(columns)


class _WordColumns(_Columns):
    def of(self, row: IndexRow) -> list[str | None]:
        """What the row stores: words and pieces by field, and before the words of the output the facts."""
        columns: list[str | None] = [None] * self.count
        for field, words, pieces in ((cut.field, cut.words, cut.pieces) for cut in row.cuts):
            columns[_PLACES[field]] = words
            # A border after each: pieces side by side are no phrase, so a phrase need not be kept off their columns.
            columns[_PLACES[field] + len(FIELDS)] = pieces.replace(" ", f" {BORDER} ") or None
        columns[0] = f"{_facts_of(row.text)} {columns[0] or ''}"
        return columns


def said_words(row: IndexRow) -> str | None:
    """What the table `said` stores of a row; None where the row has no place in it."""
    if not is_mixed(sum(1 << cut.field for cut in row.cuts)):
        return None
    said = [f"{cut.words} {cut.pieces}" for cut in row.cuts if cut.field in {USER, ASSISTANT}]
    for cut in row.cuts:
        if cut.field == THINKING:
            said += [THOUGHT + word for word in f"{cut.words} {cut.pieces}".split()]
    return " ".join(said)


def in_said(needle: Needle, *, is_thought: bool) -> str:
    """The expression for rows of `said` that have all words of `needle`, in whatever order."""
    alternatives = [_all_of(needle.words, is_prefix=needle.is_prefix, is_thought=is_thought)]
    if needle.joined:
        alternatives.append(_all_of([needle.joined], is_prefix=needle.is_prefix, is_thought=is_thought))
    return f"({' OR '.join(alternatives)})"


def any_in_said(words: Iterable[str], *, is_thought: bool) -> str:
    """Rows of `said` that have one of the words."""
    return f"({' OR '.join(_one_of(word, is_thought=is_thought) for word in words) or NO_ROW})"


def _all_of(words: Sequence[str], *, is_prefix: bool, is_thought: bool) -> str:
    last = len(words) - 1
    each = [
        _one_of(word, is_prefix=is_prefix and at == last, is_thought=is_thought)
        for at, word in enumerate(words)
    ]
    return f"({' AND '.join(each)})"


def _one_of(word: str, *, is_prefix: bool = False, is_thought: bool) -> str:
    return _phrase([THOUGHT + word if is_thought else word], is_prefix=is_prefix)


class _HeaderColumns(_Columns):
    def of(self, header: HeaderText, cutter: Cutter) -> list[str | None]:
        """What the header stores; `cutter` collects its terms."""
        texts = (header.title, *header.tags, *header.branches, header.remote)
        return [
            cutter.cut(header.title).words,
            _names(header.tags, cutter),
            _names(header.branches, cutter),
            cutter.cut(header.remote).words,
            _names(header.shas, cutter),
            " ".join(cutter.cut(text).pieces for text in texts),
            _names([header.repository], cutter),
            _names([header.agent], cutter),
        ]


word_columns = _WordColumns(*_ORDER, *(f"{field}_pieces" for field in _ORDER))
header_columns = _HeaderColumns(*_NAME_COLUMNS.split(), "pieces", "repository", "agent")


def _names(names: Iterable[str], cutter: Cutter) -> str:
    return f"{BORDER} " + " ".join(f"{cutter.cut(name).words} {BORDER}" for name in names)


def _facts_of(text: MessageText) -> str:
    facts = _facts(text.role, text.tool_names, text.is_error)
    return f"{facts} {PARTIAL}" if text.is_partial else facts


@lru_cache(maxsize=4096)
def _facts(role: str, tool_names: tuple[str, ...], is_error: bool) -> str:
    facts = [*(ROLE + word for word in words_of(role)), BORDER]
    for name in tool_names:
        facts += [*(TOOL + word for word in words_of(name)), BORDER]
    if is_error:
        facts.append(ERROR)
    return " ".join(facts)


def in_texts(needle: Needle, *, parts: bool) -> str:
    """The MATCH expression for messages that have `needle`; with `parts`, also among the parts of identifiers."""
    # Without a column filter a common word is found in half the time, and no fact is spelt like a word.
    in_order = f"{{{_TEXT_COLUMNS}}} : " if len(needle.words) == 1 else ""
    return _needle(needle, in_order, "", parts=parts)


def in_headers(needle: Needle, *, parts: bool) -> str:
    """The same for the headers of threads."""
    return _needle(needle, f"{{{_NAME_COLUMNS}}} : ", f"{{{_NAME_COLUMNS} pieces}} : ", parts=parts)


def _needle(needle: Needle, in_order: str, anywhere: str, *, parts: bool) -> str:
    # Pieces have no order of their own: words side by side count in the text alone.
    columns = anywhere if parts and len(needle.words) == 1 else in_order
    expression = columns + _phrase(needle.words, is_prefix=needle.is_prefix)
    if parts and needle.joined:
        expression += f" OR {anywhere}{_phrase([needle.joined], is_prefix=needle.is_prefix)}"
    return f"({expression})"


def _phrase(words: Sequence[str], *, is_prefix: bool = False) -> str:
    return f'"{" ".join(words)}"' + (" *" if is_prefix else "")


def any_in_texts(tokens: Iterable[str]) -> str:
    """Messages that have one of the tokens."""
    return f"({' OR '.join(_phrase([token]) for token in tokens) or NO_ROW})"


def any_in_headers(tokens: Iterable[str]) -> str:
    """The same for the headers of threads."""
    return f"{{{_NAME_COLUMNS} pieces}} : {any_in_texts(tokens)}"


def both(*expressions: str) -> str:
    """All of them at once."""
    return " AND ".join(f"({each})" for each in expressions)


def either(*expressions: str) -> str:
    """Any of them."""
    return " OR ".join(f"({each})" for each in expressions)


def without(expression: str, unwanted: Sequence[str]) -> str:
    """`expression`, but none of `unwanted`."""
    return f"({expression}) NOT ({' OR '.join(f'({each})' for each in unwanted)})" if unwanted else expression


def fact(key: str, name: Name) -> str:
    """Rows whose role, or one of whose tools, has that name; for `file`, whose tools were told it."""
    if key == "file":
        return f"{{tools}} : {_phrase(name.words, is_prefix=name.is_prefix)}"
    sign = ROLE if key == "role" else TOOL
    words = [sign + word for word in name.words]
    if not name.is_whole:
        return _phrase(words, is_prefix=name.is_prefix)
    if key == "role":
        return f"^ {_phrase([*words, BORDER])}"
    return _phrase([BORDER, *words, BORDER])


def named(key: str, name: Name) -> str:
    """Headers whose names of that kind fit."""
    column = {"repo": "repository", "branch": "branches", "tag": "tags", "agent": "agent"}[key]
    words = (BORDER, *name.words, BORDER) if name.is_whole else name.words
    return f"{{{column}}} : {_phrase(words, is_prefix=name.is_prefix)}"


def has_sha(prefix: str) -> str:
    """Headers with a commit that starts so."""
    return f'{{shas}} : "{prefix}" *'
