"""The ways in which a message can be a hit, once the headers of threads have their share of the words.

"In its text or in its thread's header" holds for each word by itself, so threads fall into groups by the words
that their headers have; each group asks the texts for the rest. A thread in no group asks for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from raddle.model.threads.query import Filter, FlagFilter, NameFilter, Query, Term, is_of_thread
from raddle.server.search.asking import EVERY_ROW, Ask, Vocabulary, both, either, of_term

MANY_GROUPS = 8
_FEW_THREADS = 64

Groups = dict[frozenset[int], set[int]]
"""Which terms a header has (their places in the query) -> the threads that have just those."""


class Clause(NamedTuple):
    """Rows that fit all of `asks` and none of `unwanted`, in `threads`, whose headers have the other `covered` terms
    (None: in all threads that no other clause is for).

    `said`: the terms to look for in the fields of mixed messages, to know which has them; empty where the header has
    them all.
    """

    asks: tuple[Ask, ...] = ()
    unwanted: tuple[Ask, ...] = ()
    said: tuple[Term, ...] = ()
    covered: int = 0
    threads: frozenset[int] | None = None

    @property
    def query(self) -> str:
        """The tsquery for every row that may fit."""
        never = [ask.words for ask in self.unwanted if ask.is_decided_by_words]
        asked = both(*(ask.words for ask in self.asks if ask.words))
        return both(asked or EVERY_ROW, f"!({either(never)})" if never else "")

    @property
    def is_everything(self) -> bool:
        """Does every row fit?"""
        return not self.asks and not self.unwanted

    @property
    def is_plain(self) -> bool:
        """Does the index of words decide?"""
        return all(ask.is_decided_by_words for ask in (*self.asks, *self.unwanted))

    @property
    def is_of_any(self) -> bool:
        """Is it asked for one of some words of the texts, and for nothing else?"""
        return len(self.asks) == 1 and not self.asks[0].is_fact and not self.unwanted and self.is_plain

    @property
    def is_narrow(self) -> bool:
        """Does the index of words leave out anything to speak of?"""
        return any(ask.words for ask in self.asks)

    @property
    def words_of_texts(self) -> str:
        """The tsquery for what has to stand in the texts, as blocks can be asked for it; empty: nothing."""
        asked = [ask.words for ask in self.asks if ask.words and not ask.is_fact]
        return both(*asked) if asked else ""

    def wanted_checks(self) -> list[Ask]:
        """What has to stand in the texts themselves."""
        return [ask for ask in self.asks if ask.check is not None]

    def unwanted_checks(self) -> list[Ask]:
        """What may not stand in the texts themselves."""
        return [ask for ask in self.unwanted if ask.check is not None]


def grouped(covering: Sequence[frozenset[int]]) -> Groups:
    """Threads by the terms that their headers have. `covering`: for each term the threads whose header has it."""
    if len(covering) == 1:  # which may be all threads
        return {frozenset({0}): set(covering[0])} if covering[0] else {}
    groups: Groups = {}
    for thread in frozenset().union(*covering):
        covered = frozenset(at for at, threads in enumerate(covering) if thread in threads)
        groups.setdefault(covered, set()).add(thread)
    return groups


def pruned(
    groups: Groups,
    asks: Sequence[Ask],
    covering: Sequence[frozenset[int]],
    threads_with: Callable[[str], frozenset[int]],
) -> Groups:
    """The groups without threads that cannot have a hit, since each group left is one more query.

    Terms that few headers have must be in one message of nearly every thread: one query says which threads those are.
    """
    excused: frozenset[int] = frozenset()
    words: list[str] = []
    for at in sorted(range(len(asks)), key=lambda at: len(covering[at])):
        if len(excused | covering[at]) > _FEW_THREADS:
            break
        excused |= covering[at]
        words += [asks[at].words] if asks[at].words else []
    if not words:
        return groups
    possible = threads_with(both(*words)) | excused
    left = {covered: threads & possible for covered, threads in groups.items()}
    return {covered: threads for covered, threads in left.items() if threads}


def clause_of(terms: Mapping[Term, Ask], unwanted: Sequence[Ask], facts: Sequence[Ask]) -> Clause:
    """The clause that asks messages for all of `terms`."""
    return Clause((*terms.values(), *facts), tuple(unwanted), tuple(terms))


def asks_of(terms: Sequence[Term], vocabulary: Vocabulary) -> dict[Term, Ask]:
    """What each term asks of the texts."""
    return {term: of_term(term, vocabulary) for term in terms}


def contradicts_itself(query: Query) -> bool:
    """Is it asked for turns that were taken back, and for others alone?"""
    return len({one.is_negative for one in query.filters if is_removal(one)}) == 2


def is_removal(one: Filter) -> bool:
    """Is it about turns that were taken back?"""
    return isinstance(one, FlagFilter) and one.flag == "removed"


def facts_in(filters: Iterable[Filter]) -> Iterator[NameFilter | FlagFilter]:
    """The filters on messages that are not about time or removal."""
    for one in filters:
        if isinstance(one, NameFilter | FlagFilter) and not is_of_thread(one) and not is_removal(one):
            yield one
