"""A term or a filter as the tables can be asked for it: words for the index, and what has to stand in a stream.

The index of words holds no positions. So each question has two halves, made side by side here: a tsquery that finds
every row which may fit, and, where words alone do not say it, patterns that one stream of such a row must hold.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from raddle.model.threads.query import (
    FlagFilter,
    Fragment,
    Name,
    NameFilter,
    Needle,
    Phrase,
    ShaFilter,
    Term,
    TimeFilter,
    Word,
)
from raddle.model.threads.query_exact import has_exact, normalised
from raddle.model.threads.search_text import LONGEST_WORD, is_unspaced, words_of
from raddle.server.search import streams
from raddle.server.search.streams import BORDER, PIECE, SAID, THOUGHT

HERE = "\ue01f"
"""Stands in a tsquery for the number of a space, before each word."""
MOST_FRAGMENT_TERMS = 1_000
"""Words that one fragment may stand for; a commoner one is looked for in the streams themselves."""

Patterns = tuple[str, ...]
"""Of which one has to stand in a stream; none of them: there is nothing to look for."""


class TextCheck(NamedTuple):
    """What streams cannot say, since they have no punctuation: `exact` stands in a text (cutting no word, if so)."""

    exact: str
    is_bordered: bool

    def holds(self, texts: Iterable[str]) -> bool:
        """Does one of these texts have it?"""
        return any(self._is_in(normalised(text)) for text in texts if text)

    def _is_in(self, text: str) -> bool:
        return has_exact(text, self.exact) if self.is_bordered else self.exact in text


class Ask(NamedTuple):
    """What is asked of a row. `words`: a tsquery; empty where the index cannot narrow it down.

    `text`, `tools`, `facts`: patterns for the stream, its part from `tools_at` on, and `extra`.
    """

    words: str
    text: Patterns = ()
    tools: Patterns = ()
    facts: Patterns = ()
    check: TextCheck | None = None
    is_fact: bool = False
    """Is it asked of what stands in `extra`?"""

    @property
    def is_decided_by_words(self) -> bool:
        """Is every row that the index finds one that fits?"""
        return not (self.text or self.tools or self.facts or self.check)


def lexeme(word: str, *, is_prefix: bool = False) -> str:
    """A word, or what begins with it, as a tsquery."""
    return f"'{HERE}{word}'" + (":*" if is_prefix else "")


EVERY_ROW = lexeme(BORDER)


def both(*queries: str) -> str:
    """All of them, those that say nothing left out."""
    said = [query for query in queries if query]
    return said[0] if len(said) == 1 else " & ".join(f"({query})" for query in said)


def either(queries: Iterable[str]) -> str:
    """Any of them; nothing at all where there is none."""
    return " | ".join(f"({query})" for query in queries) or lexeme("\ue01e")


def for_spaces(query: str, spaces: Sequence[int]) -> str:
    """The tsquery for the words of these spaces (at least one)."""
    if len(spaces) == 1:
        return query.replace(HERE, f"{spaces[0]}:")
    return " | ".join(f"({query.replace(HERE, f'{space}:')})" for space in spaces)


def _pattern(words: Iterable[str], *, is_prefix: bool) -> str:
    return f" {' '.join(words)}" + ("" if is_prefix else " ")


def _run_of(words: Sequence[str], sign: str, *, is_prefix: bool) -> str:
    last = len(words) - 1
    return both(*(lexeme(sign + word, is_prefix=is_prefix and at == last) for at, word in enumerate(words)))


def of_needles(needles: Sequence[tuple[Needle, bool]], *, has_patterns: bool = False) -> Ask:
    """Any of the needles; with True beside it, among the parts of identifiers too.

    `has_patterns`: with patterns even where the words decide.
    """
    queries: list[str] = []
    patterns: list[str] = []
    is_run = has_patterns
    for needle, has_parts in needles:
        queries.append(_run_of(needle.words, "", is_prefix=needle.is_prefix))
        patterns.append(_pattern(needle.words, is_prefix=needle.is_prefix))
        is_run = is_run or len(needle.words) > 1
        singles = [needle.joined] if needle.joined else []
        if has_parts and len(needle.words) == 1:
            queries.append(lexeme(PIECE + needle.words[0], is_prefix=needle.is_prefix))
            patterns.append(_pattern([PIECE + needle.words[0]], is_prefix=needle.is_prefix))
        for single in singles if has_parts else ():
            for word in (single, PIECE + single):
                queries.append(lexeme(word, is_prefix=needle.is_prefix))
                patterns.append(_pattern([word], is_prefix=needle.is_prefix))
    return Ask(either(queries), text=tuple(patterns) if is_run else ())


class Vocabulary(NamedTuple):
    """The words that hold a fragment: at most one more than `MOST_FRAGMENT_TERMS`, for each fragment asked for."""

    containing: dict[str, list[str]]

    def terms(self, fragment: str) -> list[str] | None:
        """Those words; None where there are too many."""
        found = self.containing.get(fragment, [])
        return found if len(found) <= MOST_FRAGMENT_TERMS else None


def fragments_in(terms: Iterable[Term]) -> set[str]:
    """What the vocabulary has to be asked for."""
    return {
        inner for term in terms if isinstance(term, Fragment) and (inner := term.inside or _only_word(term))
    }


def _only_word(term: Fragment) -> str:
    """The one word of a fragment that has punctuation besides it, where that may be the end of a longer one."""
    words = words_of(term.exact)
    return words[0] if len(words) == 1 and words[0].isascii() and term.exact.startswith(words[0]) else ""


def of_term(term: Term, vocabulary: Vocabulary, *, is_header: bool = False) -> Ask:
    """What is asked of the texts of a message, or (`is_header`) of a header."""
    match term:
        case Word():
            needles = [(term.needle, True)]
            if is_header and term.remote is not None:
                needles.append((term.remote, False))
            return of_needles(needles)
        case Phrase():
            ask = of_needles([(term.needle, False)], has_patterns=bool(term.exact))
            return ask._replace(check=TextCheck(term.exact, is_bordered=True)) if term.exact else ask
        case Fragment():
            return _of_fragment(term, vocabulary)


def _of_fragment(term: Fragment, vocabulary: Vocabulary) -> Ask:
    if term.inside:
        terms = vocabulary.terms(term.inside)
        if terms is None:
            return Ask("", text=(term.inside,))
        return Ask(either(lexeme(sign + each) for each in terms for sign in ("", PIECE)))
    return _across_words(term, vocabulary)


def _across_words(term: Fragment, vocabulary: Vocabulary) -> Ask:
    """A fragment with punctuation or spaces: the whole words in it, and the start of its last one."""
    check = TextCheck(term.exact, is_bordered=False)
    words = words_of(term.exact)
    if not words or not all(word.isascii() and len(word) < LONGEST_WORD // 2 for word in words):
        return Ask(both(*(lexeme(word) for word in term.words)), check=check)
    if any(is_unspaced(each) for each in term.exact):
        return Ask(both(*(lexeme(word) for word in term.words)), check=check)
    starts = not term.exact.startswith(words[0])
    whole = list(words if starts else words[1:])
    if not whole:
        terms = vocabulary.terms(_only_word(term)) if _only_word(term) else None
        return Ask("" if terms is None else either(map(lexeme, terms)), check=check)
    query = _run_of(whole, "", is_prefix=True)
    return Ask(query, text=(_pattern(whole, is_prefix=True),) if len(whole) > 1 else (), check=check)


def of_fact(one: NameFilter | FlagFilter) -> Ask:
    """What a filter on messages asks of a row."""
    if isinstance(one, FlagFilter):
        return Ask(lexeme(streams.ERROR), is_fact=True)
    if one.key == "file":
        return Ask(
            either(_run_of(name.words, "", is_prefix=name.is_prefix) for name in one.names),
            tools=tuple(_pattern(name.words, is_prefix=name.is_prefix) for name in one.names),
        )
    ask = _of_names(one.names, streams.ROLE if one.key == "role" else streams.TOOL)
    return ask._replace(text=(), facts=ask.text, is_fact=True)


def of_names(one: NameFilter | ShaFilter, *, is_owner: bool) -> Ask:
    """What a filter on threads asks of a header; `is_owner`: of what its owner alone sees in it."""
    if isinstance(one, ShaFilter):
        return Ask(either(lexeme(streams.SHA + prefix, is_prefix=True) for prefix in one.prefixes))
    repository = streams.FOLDER if is_owner else streams.REPOSITORY
    signs = {"repo": repository, "branch": streams.BRANCH, "tag": streams.TAG, "agent": streams.AGENT}
    return _of_names(one.names, signs[one.key])


def _of_names(names: Sequence[Name], sign: str) -> Ask:
    queries, patterns = [], []
    for name in names:
        signed = [sign + word for word in name.words]
        queries.append(_run_of(signed, "", is_prefix=name.is_prefix))
        signed = [BORDER, *signed, BORDER] if name.is_whole else signed
        patterns.append(
            _pattern(signed, is_prefix=name.is_prefix or name.is_whole)
        )  # a border may end it all
    is_run = any(len(name.words) > 1 or name.is_whole for name in names)
    return Ask(either(queries), text=tuple(patterns) if is_run else ())


def bounds_of(filters: Iterable[TimeFilter]) -> tuple[int | None, int | None]:
    """(From when, until when) a message has to be that all of these fit, in microseconds; None: whenever."""
    moments = list(filters)
    start = max((one.at for one in moments if one.is_after), default=None)
    end = min((one.at for one in moments if not one.is_after), default=None)
    return start, end


def says(term: Term, vocabulary: Vocabulary, sign: str, words: Container[str], extra: str) -> bool:
    """Has what was said (or thought, as `sign` has it) the words of a term? `words`: those of `extra`."""
    match term:
        case Word() | Phrase():
            needle = term.needle
            *whole, last = needle.words
            is_run = all(sign + word in words for word in whole)
            return (is_run and _has(sign + last, needle.is_prefix, words, extra)) or bool(
                needle.joined and _has(sign + needle.joined, needle.is_prefix, words, extra)
            )
        case Fragment():
            terms = vocabulary.terms(term.inside) if term.inside else None
            if terms is not None:
                return any(sign + each in words for each in terms)
            return bool(term.words) and all(sign + word in words for word in term.words)


def _has(word: str, is_prefix: bool, words: Container[str], extra: str) -> bool:
    return f" {word}" in extra if is_prefix else word in words


SIGNS = (SAID, THOUGHT)
"""Of what was said, and of what was thought, heavier first."""
