"""The vocabulary of the index: all its tokens as lines of text, in which a fragment is found by `bytes.find`.

FTS5 could tell its terms itself (`fts5vocab`), but reads every list of rows to do so: 200 ms where this takes
one. So the book is stored and grows with the index. A token too many finds nothing; one too few hides what
holds it, so a book that might lack some is marked, and made anew from FTS5 when it is next needed.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate, pairwise

_MOST_PARTS = 48
_UNSURE = "book_unsure"


class Book:
    """The vocabulary as the connection sees it; the last reading is kept."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self._text = b"\n"
        self._parts: list[tuple[int, int]] = []
        """Where in it each part starts and ends; its lines are in order."""
        self._read: tuple[int, int] | None = None

    def containing(self, fragment: str, *, most: int) -> list[str]:
        """The tokens that contain `fragment` (folded, lower-case, without white space), each once; at most `most`."""
        text, sought = self._load(), fragment.encode()
        found: dict[bytes, None] = {}
        at = text.find(sought)
        while at >= 0 and len(found) < most:
            end = text.index(b"\n", at)
            found[text[text.rindex(b"\n", 0, at + 1) + 1 : end]] = None
            at = text.find(sought, end)
        return [token.decode() for token in found]

    def starting(self, prefix: str, *, most: int) -> list[str]:
        """The tokens that start with `prefix`, each once; at most `most`."""
        text, sought = self._load(), prefix.encode()
        found: dict[bytes, None] = {}
        for first, last in self._parts:
            at = first + bisect_left(range(first, last), sought, key=lambda at: self._line(at)[: len(sought)])
            while len(found) < most and text.startswith(sought, at, last):
                end = text.index(b"\n", at)
                found[text[at:end]] = None
                at = end + 1
        return [token.decode() for token in found]

    def _line(self, at: int) -> bytes:
        """The line that has the byte `at`, its end included."""
        return self._text[self._text.rindex(b"\n", 0, at) + 1 : self._text.index(b"\n", at)]

    def add(self, terms: Iterable[bytes]) -> None:
        """Write more terms; inside a transaction that writes."""
        lines = b"\n".join(sorted(term for term in terms if term))
        if lines:
            self._sql.execute("INSERT INTO book (terms) VALUES (?)", (lines,))
            parts, small = self._sql.execute(
                "SELECT count(*), sum(length(terms)) - max(length(terms)) FROM book"
            ).fetchone()
            biggest = self._sql.execute("SELECT max(length(terms)) FROM book").fetchone()[0]
            # Each merging reads all, so it waits until a quarter of it is loose parts, or there are too many.
            if parts > _MOST_PARTS and (small > biggest // 4 or parts > 8 * _MOST_PARTS):
                self._rewrite(self._all_terms())

    def terms(self) -> set[bytes]:
        """Every term."""
        return self._all_terms()

    def has_all(self, terms: Iterable[bytes]) -> bool:
        """Are these few terms in it?"""
        text = self._load()
        return all(b"\n" + term + b"\n" in text for term in terms)

    def mark_unsure(self, *, is_unsure: bool) -> None:
        """Note that it may lack terms (an import that did not end may not have written them), or that it does not."""
        if is_unsure:
            self._sql.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (_UNSURE,))
        else:
            self._sql.execute("DELETE FROM meta WHERE key = ?", (_UNSURE,))

    def is_unsure(self) -> bool:
        """May it lack terms?"""
        return self._sql.execute("SELECT 1 FROM meta WHERE key = ?", (_UNSURE,)).fetchone() is not None

    def make_anew(self) -> None:
        """Write it from what FTS5 holds; inside a transaction that writes."""
        self._rewrite(self.stored_terms())
        self.mark_unsure(is_unsure=False)

    def stored_terms(self) -> set[bytes]:
        """The terms that FTS5 holds, names and facts left out; slow."""
        stored: set[bytes] = set()
        for table in ("word_terms", "header_terms"):
            for (term,) in self._sql.execute(f"SELECT term FROM {table}"):
                if not "\ue000" <= term[:1] <= "\ue00f":
                    stored.add(term.encode())
        return stored

    def _all_terms(self) -> set[bytes]:
        return {
            term for (terms,) in self._sql.execute("SELECT terms FROM book") for term in terms.split(b"\n")
        }

    def _rewrite(self, terms: set[bytes]) -> None:
        self._sql.execute("DELETE FROM book")
        if terms:
            self._sql.execute("INSERT INTO book (terms) VALUES (?)", (b"\n".join(sorted(terms)),))
        self._read = None

    def _load(self) -> bytes:
        now = self._sql.execute("SELECT coalesce(max(part), 0), count(*) FROM book").fetchone()
        if now != self._read:
            parts = [terms for (terms,) in self._sql.execute("SELECT terms FROM book")]
            self._text = b"\n" + b"".join(terms + b"\n" for terms in parts)
            ends = list(accumulate((len(terms) + 1 for terms in parts), initial=1))
            self._parts = list(pairwise(ends))
            self._read = now
        return self._text
