"""A query asked of the index of a store. The plain meaning of it is `memory_search.is_hit`; a property test holds the
two equal.

FTS5 says which files have the words; what it cannot say (punctuation in a phrase, text across words) the texts are
asked for. All hits are scored: a store has thousands of files, not millions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import nlargest

import msgspec

from raddle.actions.memory.memory_search import (
    KINDS,
    Document,
    DocumentKind,
    MemoryAnswer,
    MemoryHit,
    fits,
    hit_of,
    notes_on,
    score,
)
from raddle.adapters.memory_repo.shelf_writer import BORDER
from raddle.model.threads.query import Fragment, Needle, Phrase, Query, Term, Word
from raddle.model.threads.query_exact import has_exact, normalised
from raddle.model.threads.search_text import cut

MOST_FRAGMENT_TERMS = 1_000
"""Words that one fragment may stand for; a commoner one is looked for in the texts."""
_AT_ONCE = 500
"""Numbers in one statement: SQLite takes a thousand."""

_FACTS = "SELECT number, kind, at, tags FROM documents"
_COUNT = "SELECT count(*) FROM documents"

_TEXTS = "{names texts}"
_NAMES = "{names name_pieces}"
_unpack: Callable[[bytes], tuple[str, ...]] = msgspec.msgpack.Decoder(tuple[str, ...]).decode


_Fact = tuple[int, DocumentKind, int | None, str]
"""What narrows a search down and orders it: number, kind, time, tags."""


class Search:
    """One query against one state of the index. `kinds`, `namespace`: where it looks."""

    def __init__(
        self, sql: sqlite3.Connection, query: Query, *, kinds: Collection[DocumentKind], namespace: str | None
    ) -> None:
        self._sql = sql
        self._query = query
        self._kinds = [kind for kind in KINDS if kind in kinds]
        self._namespace = namespace
        self._wanted = [term for term in query.terms if not term.is_negative]
        self._unwanted = [term for term in query.terms if term.is_negative]
        self._found: dict[str, list[str]] = {}

    def answer(self, *, limit: int, now: int) -> MemoryAnswer:
        """The best `limit` hits, as of `now` (microseconds)."""
        facts = self._hits()
        return MemoryAnswer(
            hits=tuple(self._best(facts, limit=limit, now=now)) if facts else (),
            total=len(facts),
            looked_at=self._count(),
            ignored=self._query.ignored,
            notes=notes_on(self._query),
        )

    def _best(self, facts: Sequence[_Fact], *, limit: int, now: int) -> Iterator[MemoryHit]:
        """The best of these, first the best. Within a group the later is the better: only its newest are scored."""
        covered = self._covered()
        groups: dict[tuple[DocumentKind, int], list[_Fact]] = {}
        for fact in facts:
            groups.setdefault((fact[1], covered.get(fact[0], 0)), []).append(fact)
        scored = []
        for (kind, count), some in groups.items():
            for number, _, at, _ in nlargest(limit, some, key=_time):
                points = score(kind, terms=len(self._wanted), covered=count, at=at, now=now)
                scored.append((points, at or 0, number, bool(self._wanted) and count == len(self._wanted)))
        for points, _, number, is_in_name in sorted(scored, key=lambda one: (-one[0], -one[1], one[2]))[
            :limit
        ]:
            yield hit_of(self._query, self._document(number), score=points, is_in_name=is_in_name)

    def paths(self) -> set[str]:
        """The paths of all that is found."""
        found = {fact[0] for fact in self._hits()}
        rows = self._sql.execute("SELECT number, path FROM documents")
        return {path for number, path in rows if number in found}

    def _hits(self) -> list[_Fact]:
        facts = self._facts(self._matching())
        if self._query.filters:
            facts = [
                fact
                for fact in facts
                if all(fits(one, fact[2], _tags_in(fact[3])) for one in self._query.filters)
            ]
        return self._checked(facts)

    def _matching(self) -> set[int] | None:
        """The numbers of files whose words fit, as far as FTS5 can say; None: all."""
        found: set[int] | None = None
        asked = [expression for term in self._wanted if (expression := self._expression(term))]
        if asked:
            found = self._numbers(" AND ".join(f"({each})" for each in asked))
        never = [
            expression
            for term in self._unwanted
            if self._check(term) is None and (expression := self._expression(term))
        ]
        if never:
            if found is None:
                found = self._column("SELECT number FROM texts")
            found -= self._numbers(" OR ".join(f"({each})" for each in never))
        return found

    def _checked(self, facts: list[_Fact]) -> list[_Fact]:
        """Those whose texts have what FTS5 cannot say, and do not have what is unwanted."""
        checks = [
            (check, term.is_negative)
            for term in self._query.terms
            if (check := self._check(term)) is not None
        ]
        if not checks:
            return facts
        kept = []
        for fact in facts:
            names, texts = self._texts(fact[0])
            if all(any(map(check, (*names, *texts))) != is_negative for check, is_negative in checks):
                kept.append(fact)
        return kept

    def _check(self, term: Term) -> Callable[[str], bool] | None:
        """What one of the texts has to fit besides the expression; None: nothing."""
        match term:
            case Phrase() if term.exact:
                return lambda text: has_exact(normalised(text), term.exact)
            case Fragment() if not term.inside:
                return lambda text: term.exact in normalised(text)
            case Fragment() if len(self._containing(term.inside)) > MOST_FRAGMENT_TERMS:
                return lambda text: any(term.inside in stream for stream in _streams(text))
            case _:
                return None

    def _expression(self, term: Term, *, in_names: bool = False) -> str:
        """The MATCH expression for files that may have `term`; empty where FTS5 cannot narrow them down."""
        everywhere, in_order = ("", _TEXTS) if not in_names else (_NAMES, "names")
        match term:
            case Word():
                return _of_word(term.needle, everywhere, in_order)
            case Phrase():
                return f"{in_order} : {_phrase(term.needle.words, is_prefix=term.needle.is_prefix)}"
            case Fragment():
                tokens = term.words
                if term.inside:
                    tokens = tuple(self._containing(term.inside))
                    if len(tokens) > MOST_FRAGMENT_TERMS:
                        return ""
                    joined = " OR ".join(_phrase([token]) for token in tokens) or _phrase(
                        [f"{BORDER}{BORDER}"]
                    )
                else:
                    joined = " AND ".join(_phrase([token]) for token in tokens)
                return f"{everywhere} : ({joined})" if everywhere and joined else joined

    def _containing(self, fragment: str) -> list[str]:
        """The words with that inside; a few more than are asked for tell that there are too many."""
        if fragment not in self._found:
            self._found[fragment] = [
                str(row[0])
                for row in self._sql.execute(
                    "SELECT term FROM vocabulary WHERE instr(term, ?) > 0 AND term <> ? LIMIT ?",
                    (fragment, BORDER, MOST_FRAGMENT_TERMS + 1),
                )
            ]
        return self._found[fragment]

    def _covered(self) -> dict[int, int]:
        """Number -> how many of the wanted terms its names have."""
        covered: dict[int, int] = {}
        for term in self._wanted:
            if self._check(term) is None and (expression := self._expression(term, in_names=True)):
                for number in self._numbers(expression):
                    covered[number] = covered.get(number, 0) + 1
        return covered

    def _facts(self, numbers: set[int] | None) -> list[_Fact]:
        """The facts of these (None: of all) where it looks."""
        where, values = self._scope()
        if numbers is None or len(numbers) > _AT_ONCE:
            rows = self._sql.execute(f"{_FACTS} WHERE {where}", values).fetchall()
            return rows if numbers is None else [row for row in rows if row[0] in numbers]
        few = sorted(numbers)
        marks = ", ".join("?" * len(few))
        return self._sql.execute(
            f"{_FACTS} WHERE {where} AND number IN ({marks})", [*values, *few]
        ).fetchall()

    def _count(self) -> int:
        where, values = self._scope()
        return int(self._sql.execute(f"{_COUNT} WHERE {where}", values).fetchone()[0])

    def _scope(self) -> tuple[str, list[object]]:
        """What narrows rows down to where it looks."""
        where = f"kind IN ({', '.join('?' * len(self._kinds))})"
        if self._namespace is None:
            return where, [*self._kinds]
        return f"{where} AND namespace = ?", [*self._kinds, self._namespace]

    def _document(self, number: int) -> Document:
        path, kind, namespace, key, run_id, phase, entry_id, at, tags = self._sql.execute(
            "SELECT path, kind, namespace, key, run_id, phase, entry_id, at, tags FROM documents WHERE number = ?",
            (number,),
        ).fetchone()
        names, texts = self._texts(number)
        return Document(
            kind=kind,
            path=path,
            namespace=namespace,
            key=key,
            run_id=run_id,
            phase=phase,
            entry_id=entry_id,
            at=at,
            tags=_tags_in(tags),
            names=names,
            texts=texts,
        )

    def _texts(self, number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        names, texts = self._sql.execute(
            "SELECT names, texts FROM texts WHERE number = ?", (number,)
        ).fetchone()
        return _unpack(names), _unpack(texts)

    def _numbers(self, expression: str) -> set[int]:
        return self._column("SELECT rowid FROM words WHERE words MATCH ?", (expression,))

    def _column(self, statement: str, values: Sequence[object] = ()) -> set[int]:
        return {row[0] for row in self._sql.execute(statement, values)}


def _time(fact: _Fact) -> tuple[int, int]:
    return (fact[2] or 0, -fact[0])


def _tags_in(tags: str) -> tuple[str, ...]:
    return tuple(tags.split("\n")) if tags else ()


def _of_word(needle: Needle, everywhere: str, in_order: str) -> str:
    # Pieces have no order of their own: words side by side count in the text alone.
    columns = everywhere if len(needle.words) == 1 else in_order
    phrase = _phrase(needle.words, is_prefix=needle.is_prefix)
    expression = f"{columns} : {phrase}" if columns else phrase
    if needle.joined:
        joined = _phrase([needle.joined], is_prefix=needle.is_prefix)
        expression = f"({expression}) OR ({f'{everywhere} : {joined}' if everywhere else joined})"
    return expression


def _phrase(words: Sequence[str], *, is_prefix: bool = False) -> str:
    return f'"{" ".join(words)}"' + (" *" if is_prefix else "")


def _streams(text: str) -> tuple[str, str]:
    found = cut(text)
    return found.words, found.pieces
