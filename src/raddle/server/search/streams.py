"""How words, names and facts stand in the tables of search, and what they are spelt like.

What the index stores and what a query asks for agree by these signs: one that only one of them used would be
found by nobody. A stream is words separated by single spaces, with a border at its start, at its end, and between
all that does not stand side by side; names and facts are set apart from text by characters of the private use
area, which no text is ever cut to (`search_text.fold` makes them spaces).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from raddle.model.threads.search_fields import (
    ASSISTANT,
    THINKING,
    TOOLS,
    USER,
    HeaderText,
    IndexRow,
    is_mixed,
)
from raddle.model.threads.search_text import CUT_VERSION, cut, words_of

FORMAT = 100 * CUT_VERSION + 1
"""Which edition of the words and of their signs a thread was put in with."""

BORDER = "\ue000"
"""Stands in every stream, so it also finds every row."""
ROLE, TOOL, ERROR, PARTIAL = "\ue001", "\ue002", "\ue003", "\ue004"
PIECE, SAID, THOUGHT, THREAD = "\ue005", "\ue006", "\ue007", "\ue008"
REPOSITORY, FOLDER, BRANCH, TAG, AGENT, SHA = "\ue009", "\ue00a", "\ue00b", "\ue00c", "\ue00d", "\ue00e"
PART = "\ue00f"
"""Of a message that is stored in several."""
ALONE = "\ue010"
"""Of a message that is in no block, since not everybody finds it."""

MOST_LEXEMES = 1_000_000
"""Bytes: a tsvector holds 2^20 of them."""


class Stream(NamedTuple):
    """What is stored of a message, or of a part of it."""

    stream: str
    tools_at: int
    extra: str


def fields_in(row: IndexRow) -> int:
    """Which fields have words, a bit each."""
    return sum(1 << cut.field for cut in row.cuts)


def tokens_of(row: IndexRow) -> set[str]:
    """The tokens of a row's texts, without signs: what the vocabulary holds of it."""
    return {token for cut in row.cuts for token in (*cut.words.split(), *cut.pieces.split())}


def stream_of(row: IndexRow, thread: int, *, is_alone: bool = False) -> Stream:
    """The words of a message; `thread`: its thread's number; `is_alone`: not everybody finds it."""
    parts = [BORDER]
    parts += [
        f"{_joined(cut.words)} {BORDER}" for cut in row.cuts if cut.field != TOOLS and cut.words.strip()
    ]
    before = " ".join(parts)
    after = [BORDER]
    after += [
        f"{_joined(cut.words)} {BORDER}" for cut in row.cuts if cut.field == TOOLS and cut.words.strip()
    ]
    pieces = sorted({piece for cut in row.cuts for piece in cut.pieces.split()})
    if pieces:
        after += [*(PIECE + piece for piece in pieces), BORDER]
    extra = [f"{THREAD}{thread}", *_facts_of(row)]
    if is_alone:
        extra.append(ALONE)
    if is_mixed(fields_in(row)):
        for cut in row.cuts:
            sign = THOUGHT if cut.field == THINKING else SAID if cut.field in {USER, ASSISTANT} else ""
            if sign:
                extra += [sign + token for token in {*cut.words.split(), *cut.pieces.split()}]
    return Stream(f"{before} {' '.join(after)}", len(before) + 2, " ".join(extra))


def _joined(words: str) -> str:
    return " ".join(words.split())


def _facts_of(row: IndexRow) -> Iterator[str]:
    text = row.text
    for sign, name in ((ROLE, text.role), *((TOOL, name) for name in text.tool_names)):
        yield BORDER
        yield from (sign + word for word in words_of(name))
    yield BORDER
    if text.is_error:
        yield ERROR
    if text.is_partial:
        yield PARTIAL
    yield BORDER


def split(whole: Stream, prefix: int) -> list[Stream]:
    """The stream, or parts of it that a tsvector holds each. `prefix`: bytes that come before each word of it."""
    text = f"{whole.stream} {whole.extra}"
    if len(text.encode()) + prefix * (text.count(" ") + 1) <= MOST_LEXEMES:
        return [whole]  # even if no word stood in it twice
    words = set(text.split(" "))
    if sum(len(word.encode()) + prefix for word in words) <= MOST_LEXEMES:
        return [whole]
    parts: list[list[str]] = [[]]
    size = 0
    for word in whole.stream.split(" "):
        more = len(word.encode()) + prefix
        if size + more > MOST_LEXEMES // 2:
            parts.append([])
            size = 0
        parts[-1].append(word)
        size += more
    # What the fields say is not told apart in so long a message: with its facts alone, `extra` is short.
    facts = f"{whole.extra[: whole.extra.rindex(BORDER) + 1]} {PART}"
    return [Stream(" ".join(part), whole.tools_at, facts) for part in parts]


def header_streams(header: HeaderText) -> tuple[str, str]:
    """The words of a thread's header, and its names as filters ask for them."""
    names = (header.title, *header.tags, *header.branches, header.remote, *header.shas)
    found = [cut(name) for name in names]
    words = [BORDER]
    for each in found:
        words += [*each.words.split(), BORDER]
    words += [
        *(PIECE + piece for piece in sorted({piece for each in found for piece in each.pieces.split()})),
        BORDER,
    ]
    facts = [BORDER, BORDER]
    for sign, values in (
        (REPOSITORY if header.remote else FOLDER, (header.repository,)),
        (BRANCH, header.branches),
        (TAG, header.tags),
        (AGENT, (header.agent,)),
        (SHA, header.shas),
    ):
        for value in values:
            facts += [*(sign + word for word in cut(value).words.split()), BORDER]
    return " ".join(words), " ".join(facts)


def header_tokens(header: HeaderText) -> set[str]:
    """The tokens of the header that words find, without signs."""
    names = (header.title, *header.tags, *header.branches, header.remote, *header.shas)
    return {token for name in names for token in cut(name).tokens()}
