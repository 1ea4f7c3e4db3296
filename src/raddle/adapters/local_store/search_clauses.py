"""A query as clauses for FTS5: which words are left to find in the texts, once a thread's header has its share.

"In its text or in its thread's header" holds for each word by itself, so threads fall into groups by the words
that their headers have; each group asks the texts for the rest. A thread in no group asks for all of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from raddle.adapters.local_store import search_tokens as tokens
from raddle.adapters.local_store.search_blocks import SLOT_BITS
from raddle.adapters.local_store.search_book import Book
from raddle.adapters.local_store.search_numbers import numbers
from raddle.adapters.local_store.search_writer import decode_summary
from raddle.model.threads.query import (
    Filter,
    FlagFilter,
    Fragment,
    NameFilter,
    Needle,
    Phrase,
    Query,
    ShaFilter,
    Term,
    Word,
    is_of_thread,
)
from raddle.model.threads.query_exact import has_exact, normalised
from raddle.model.threads.reach import Reach
from raddle.model.threads.search_fields import HeaderText, header_of

MOST_FRAGMENT_TERMS = 1_000
"""Words that one fragment may stand for; a commoner one is looked for in the texts, like one across words."""


_FEW_PREFIX_TERMS, _MOST_PREFIX_TERMS = 80, 5_000
"""The words of a prefix that are asked for one by one; fewer FTS5 itself merges as fast."""
_CHEAP_ALTERNATIVES = 8
_MANY_GROUPS = 8
_FEW_THREADS = 64
_FEW_COSTLY = 2
"""More groups than this do not each ask for what is costly: see `Clause.parts`."""
SLOTS = f"SELECT DISTINCT rowid >> {SLOT_BITS} AS number FROM words WHERE words MATCH ?"
"""The slots that have a row that matches."""

Groups = dict[frozenset[int], frozenset[int]]
"""Which terms a header has (their places in the query) -> the threads that have just those."""


class TextCheck(NamedTuple):
    """What FTS5 cannot say: `exact` stands in one of the texts (`is_bordered`: cutting no word), or does not."""

    exact: str
    is_bordered: bool
    is_negative: bool = False

    def holds(self, texts: Iterable[str]) -> bool:
        """Do these texts fit?"""
        longest = max(self.exact.split(" "), key=len)
        return any(self._is_in(text, longest) for text in texts) != self.is_negative

    def _is_in(self, text: str, longest: str) -> bool:
        # Folding is what takes the time, and a text of ASCII (line numbers have arrows) shows what it lacks as it is.
        plain = text if text.isascii() else text.replace("→", " ")
        if plain.isascii() and longest not in plain.lower():
            return False
        normal = normalised(text)
        return has_exact(normal, self.exact) if self.is_bordered else self.exact in normal


class Clause(NamedTuple):
    """One way to be a hit: rows that `expression` matches (None: every row) and `checks` hold for, in `threads`,
    whose headers have the other `covered` terms (None: in all threads that no other clause is for).

    `said`, `thought`: the same words as the table `said` is asked for them; empty where the header has them all.
    `is_costly`: FTS5 gathers many lists of rows before it gives the first (a prefix, a fragment), each time it
    is asked. `alternatives`: where the expression is nothing but words of which one will do, an expression for each:
    asked for one by one they take half the time. `parts`: where many clauses have costly terms in common, the terms
    of this one, of which all have to match, and `unwanted`, of which none may: so that each is asked for once for all
    of the clauses, not once more for every combination of them. `said_parts`, `thought_parts`: those of `said` and
    `thought`.
    """

    expression: str | None
    said: str = ""
    thought: str = ""
    is_costly: bool = False
    alternatives: tuple[str, ...] = ()
    checks: tuple[TextCheck, ...] = ()
    covered: int = 0
    threads: frozenset[int] | None = None
    parts: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    said_parts: tuple[str, ...] = ()
    thought_parts: tuple[str, ...] = ()

    @property
    def is_bounded(self) -> bool:
        """Does it look for fragments across words, which is given up at some point?"""
        return any(not check.is_bordered for check in self.checks)

    def holds(self, texts: Sequence[str]) -> bool:
        """Do the texts of a message have what FTS5 cannot say?"""
        return all(check.holds(texts) for check in self.checks)


class Clauses(NamedTuple):
    """All ways to be a hit; threads whose header has an unwanted word are `forbidden`."""

    clauses: tuple[Clause, ...]
    grouped: frozenset[int]
    forbidden: frozenset[int]


class Compiler:
    """Compiles the terms of one query against one state of the index."""

    def __init__(self, sql: sqlite3.Connection, book: Book, thread_of: Mapping[int, int]) -> None:
        self._sql = sql
        self._book = book
        self._thread_of = thread_of

    def clauses(self, query: Query) -> Clauses:
        """The clauses of `query`."""
        wanted = [term for term in query.terms if not term.is_negative]
        unwanted = [term for term in query.terms if term.is_negative]
        facts = [fact_of(one) for one in query.filters if not one.is_negative and is_fact(one)]
        covering = [self._headers_with(term) for term in wanted]
        grouped = frozenset().union(*covering)
        groups = _groups_of(grouped, covering)
        clauses = [self._clause(wanted, unwanted, facts)]
        if len(groups) > _MANY_GROUPS:
            groups = self._pruned(groups, wanted, covering)
        for covered, threads in groups.items():
            left = [term for at, term in enumerate(wanted) if at not in covered]
            clause = self._clause(left, unwanted, facts)
            clauses.append(clause._replace(covered=len(covered), threads=threads))
        if sum(clause.is_costly for clause in clauses[1:]) <= _FEW_COSTLY:
            clauses = [_whole(clause) for clause in clauses]
        else:
            clauses[0] = _whole(clauses[0])
        forbidden = frozenset().union(*(self._headers_with(term) for term in unwanted))
        return Clauses(tuple(clauses), grouped, forbidden)

    def _pruned(self, groups: Groups, wanted: Sequence[Term], covering: Sequence[frozenset[int]]) -> Groups:
        """The groups without threads that cannot have a hit, since each group left is one more query.

        Terms that no header has, or few, have to be in one message of nearly every thread: one query says which.
        """
        rare: set[int] = set()
        excused: frozenset[int] = frozenset()
        for at in sorted(range(len(wanted)), key=lambda at: len(covering[at])):
            if len(excused | covering[at]) > _FEW_THREADS:
                break
            rare.add(at)
            excused |= covering[at]
        asked = [expression for at in rare if (expression := self._in_texts(wanted[at]))]
        if not asked:
            return groups
        slots = numbers(self._sql, SLOTS, (tokens.both(*asked),))
        possible = {self._thread_of[slot] for slot in slots if slot in self._thread_of} | excused
        pruned = {covered: threads & possible for covered, threads in groups.items()}
        return {covered: threads for covered, threads in pruned.items() if threads}

    def any_of(self, query: Query) -> Clause | None:
        """Rows that have any of the wanted terms; None where FTS5 cannot say."""
        wanted = [term for term in query.terms if not term.is_negative]
        terms = [expression for term in wanted if (expression := self._in_texts(term))]
        if not terms:
            return None
        asked = tokens.either(*terms)
        return Clause(
            asked,
            said=tokens.either(*(self._in_said(term, is_thought=False) for term in wanted)),
            thought=tokens.either(*(self._in_said(term, is_thought=True) for term in wanted)),
            is_costly=is_costly(asked),
            alternatives=self._alternatives(wanted),
        )

    def _clause(self, wanted: Sequence[Term], unwanted: Sequence[Term], facts: Sequence[str]) -> Clause:
        """The clause that asks the texts for all of `wanted`."""
        terms = [expression for term in wanted if (expression := self._in_texts(term))]
        checks = [check for term in wanted if (check := _check_of(term, self._is_common))]
        never = []
        for term in unwanted:
            check = _check_of(term, self._is_common)
            if check is not None:
                checks.append(check._replace(is_negative=True))
            else:
                never.append(self._in_texts(term))
        asked = tokens.both(*terms, *facts) if terms or facts else None
        if never:
            asked = tokens.without(asked or tokens.EVERY_ROW, never)
        said = tuple(self._in_said(term, is_thought=False) for term in wanted)
        thought = tuple(self._in_said(term, is_thought=True) for term in wanted)
        return Clause(
            asked,
            said=tokens.both(*said),
            thought=tokens.both(*thought),
            is_costly=asked is not None and is_costly(asked),
            parts=(*terms, *facts),
            unwanted=tuple(never),
            said_parts=said,
            thought_parts=thought,
            alternatives=self._alternatives(wanted) if not unwanted and not facts else (),
            checks=tuple(checks),
        )

    def _alternatives(self, wanted: Sequence[Term]) -> tuple[str, ...]:
        match wanted:
            case [Fragment() as term] if term.inside and not self._is_common(term):
                return tuple(f'"{word}"' for word in self._containing(term))
            case [Word(needle=Needle(words=[start], is_prefix=True, joined=""))] if (
                not self._book.is_unsure()
            ):
                words = self._book.starting(start, most=_MOST_PREFIX_TERMS + 1)
                if _FEW_PREFIX_TERMS < len(words) <= _MOST_PREFIX_TERMS:
                    return tuple(f'"{word}"' for word in words)
        return ()

    def _in_texts(self, term: Term) -> str:
        """The expression for messages whose text may have `term`; empty where FTS5 cannot narrow them down."""
        match term:
            case Word():
                return tokens.in_texts(term.needle, parts=True)
            case Phrase():
                return tokens.in_texts(term.needle, parts=False)
            case Fragment():
                if term.inside and not self._is_common(term):
                    return tokens.any_in_texts(self._containing(term))
                return (
                    tokens.both(*(tokens.any_in_texts([word]) for word in term.words)) if term.words else ""
                )

    def _in_said(self, term: Term, *, is_thought: bool) -> str:
        """The expression for rows of `said` that may have `term`."""
        match term:
            case Word() | Phrase():
                return tokens.in_said(term.needle, is_thought=is_thought)
            case Fragment():
                if term.inside:
                    return tokens.any_in_said(self._containing(term), is_thought=is_thought)
                words = term.words
                return tokens.in_said(Needle(words=words), is_thought=is_thought) if words else tokens.NO_ROW

    def _is_common(self, term: Fragment) -> bool:
        """Are there too many words with this fragment to ask for each?"""
        return len(self._containing(term)) > MOST_FRAGMENT_TERMS

    def _containing(self, term: Fragment) -> list[str]:
        return self._book.containing(term.inside, most=MOST_FRAGMENT_TERMS + 1)

    def _headers_with(self, term: Term) -> frozenset[int]:
        """The threads whose header has `term`."""
        match term:
            case Word():
                found = self._headers(tokens.in_headers(term.needle, parts=True))
                if term.remote is not None:
                    found |= self._headers(tokens.in_headers(term.remote, parts=False))
                return found
            case Phrase():
                return self._checked(term, self._headers(tokens.in_headers(term.needle, parts=False)))
            case Fragment():
                if term.inside and not self._is_common(term):
                    return self._headers(tokens.any_in_headers(self._containing(term)))
                return self._checked(term, None)

    def _checked(self, term: Term, threads: frozenset[int] | None) -> frozenset[int]:
        """Those of `threads` (None: of all) whose names hold what FTS5 cannot say of `term`."""
        check = _check_of(term, self._is_common)
        if check is None:
            return threads or frozenset()
        headers = self._all_headers(threads)
        return frozenset(number for number, header in headers if check.holds(_names(header)))

    def _headers(self, expression: str) -> frozenset[int]:
        return frozenset(
            numbers(self._sql, "SELECT rowid AS number FROM headers WHERE headers MATCH ?", (expression,))
        )

    def _all_headers(self, threads: frozenset[int] | None) -> Iterator[tuple[int, HeaderText]]:
        if threads is None:
            rows = self._sql.execute("SELECT no, summary FROM threads WHERE id IS NOT NULL")
            yield from ((number, header_of(decode_summary(summary))) for number, summary in rows)
            return
        for number in threads:
            found = self._sql.execute(
                "SELECT summary FROM threads WHERE no = ? AND id IS NOT NULL", (number,)
            ).fetchone()
            if found is not None:
                yield number, header_of(decode_summary(found[0]))

    def threads_named(self, one: NameFilter | ShaFilter) -> frozenset[int]:
        """The threads that a filter on names or commits fits, whether or not it is negative."""
        if isinstance(one, ShaFilter):
            return frozenset().union(*(self._headers(tokens.has_sha(prefix)) for prefix in one.prefixes))
        return frozenset().union(*(self._headers(tokens.named(one.key, name)) for name in one.names))

    def threads_within(self, reach: Reach) -> frozenset[int]:
        """The threads that belong there."""
        rows = self._sql.execute("SELECT no, summary FROM threads WHERE id IS NOT NULL")
        places = ((number, _decode_place(summary)) for number, summary in rows)
        return frozenset(no for no, at in places if reach.holds(at.git_remote_url, at.workspace_root))


class _PlaceOfThread(Struct):
    """The part of a summary that says where its thread belongs; decoding no more takes a tenth of the time."""

    git_remote_url: str | None = None
    workspace_root: str | None = None


_decode_place = msgspec.msgpack.Decoder(_PlaceOfThread).decode


def _groups_of(threads: frozenset[int], covering: Sequence[frozenset[int]]) -> Groups:
    """These threads by the terms that cover them."""
    groups: Groups = {frozenset(): threads} if threads else {}
    for at, covered in enumerate(covering):
        split: Groups = {}
        for terms, some in groups.items():
            if inside := some & covered:
                split[terms | {at}] = inside
            if outside := some - covered:
                split[terms] = outside
        groups = split
    return groups


def _whole(clause: Clause) -> Clause:
    """The same, to be asked for as one."""
    return clause._replace(parts=(), unwanted=(), said_parts=(), thought_parts=())


def is_compared(expression: str) -> bool:
    """Does FTS5 compare rows or positions for it, which takes longer than to read what is found?"""
    return " AND " in expression or any(" " in quoted for quoted in expression.split('"')[1::2])


def is_costly(expression: str) -> bool:
    """Does FTS5 gather many lists of rows for it before it gives the first?"""
    return " *" in expression or expression.count(" OR ") > _CHEAP_ALTERNATIVES


def _check_of(term: Term, is_common: Callable[[Fragment], bool]) -> TextCheck | None:
    match term:
        case Phrase():
            return TextCheck(term.exact, is_bordered=True) if term.exact else None
        case Fragment():
            if not term.inside:
                return TextCheck(term.exact, is_bordered=False)
            return TextCheck(term.inside, is_bordered=False) if is_common(term) else None
        case Word():
            return None


def _names(header: HeaderText) -> list[str]:
    return [header.title, *header.tags, *header.branches, header.remote, *header.shas]


def is_fact(one: Filter) -> bool:
    """Is it a filter on messages that FTS5 answers (that is, not about time or removal)?"""
    if isinstance(one, FlagFilter):
        return one.flag == "error"
    return isinstance(one, NameFilter) and not is_of_thread(one)


def fact_of(one: Filter) -> str:
    """The expression for rows that a filter on messages fits."""
    if isinstance(one, NameFilter):
        return " OR ".join(f"({tokens.fact(one.key, name)})" for name in one.names)
    return tokens.any_in_texts([tokens.ERROR])
