"""What of a store is searched, and what a query finds in it: memories, entries, summaries and handoffs.

The words are those of the search in threads: one cut, one query. Whoever keeps an index of a store indexes what
`document_of` returns and finds what `is_hit` says; a second choice of texts would find a memory in one place and
not in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import Struct

from raddle.model.clock import format_time, parse_time
from raddle.model.errors import FormatError
from raddle.model.memory.entry import ContextEntry, decode_entry
from raddle.model.memory.handoff import Handoff, decode_handoff
from raddle.model.memory.memory_text import MemoryText, described, parse_memory
from raddle.model.memory.repo_layout import Place, place_of
from raddle.model.memory.ulids import ulid_time
from raddle.model.threads.query import Filter, Name, NameFilter, Query, TimeFilter
from raddle.model.threads.search_fields import flat_json
from raddle.model.threads.search_order import score_of
from raddle.model.threads.search_snippet import Snippet, snippet_of
from raddle.model.threads.search_text import words_of

LARGEST_SEARCHED = 1 << 20
"""Bytes of a file whose words are searched; of a larger memory only its name is."""

DocumentKind = Literal["memory", "handoff", "summary", "entry"]
KINDS: tuple[DocumentKind, ...] = get_args(DocumentKind)
"""What is found, heaviest first: what was written to last weighs more than what merely happened."""

_NAME_WORDS_IN = (0, 1, 2, 3)
"""The field of a message whose weight a kind has, in the order of KINDS."""


class Document(Struct, frozen=True, kw_only=True):
    """What is searched of one file. `at`: microseconds since 1970. `names`: texts that say what it is; `texts`: what it
    says. A field of the place that does not apply is empty."""

    kind: DocumentKind
    path: str
    namespace: str = ""
    key: str = ""
    run_id: str = ""
    phase: str = ""
    entry_id: str = ""
    at: int | None = None
    tags: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


class MemoryHit(Struct, frozen=True, kw_only=True):
    """One thing that was found. `at`: RFC 3339, empty where nobody knows. `is_in_name`: all words stand in what says
    what it is (a memory's key, description, tags; a handoff's headline; an entry's tags)."""

    kind: DocumentKind
    path: str
    namespace: str = ""
    key: str = ""
    run_id: str = ""
    phase: str = ""
    entry_id: str = ""
    at: str = ""
    tags: tuple[str, ...] = ()
    is_in_name: bool = False
    snippet: Snippet
    score: float

    @property
    def name(self) -> str:
        """How a person calls it: `namespace/key`, `run/phase` or `run/phase/entry`."""
        parts = (
            (self.namespace, self.key) if self.kind == "memory" else (self.run_id, self.phase, self.entry_id)
        )
        return "/".join(part for part in parts if part)


class MemoryAnswer(Struct, frozen=True, kw_only=True):
    """The best hits of a search, and how many there are. `looked_at`: how many files were. `ignored`: parts of the
    query that asked for nothing. `notes`: sentences on what a person should know of it, without a full stop."""

    hits: tuple[MemoryHit, ...] = ()
    total: int = 0
    looked_at: int = 0
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def document_of(path: str, data: bytes, modified: int) -> Document | None:
    """What is searched of the file at `path`; None where it is of no kind that is, or cannot be read.

    `modified`: when the file was last written, which is a memory's and a summary's time where they tell none.
    """
    place = place_of(path)
    match place.kind:
        case "memory":
            return memory_document(place, read_text(data), modified)
        case "summary":
            text = text_in(data)
            return None if text is None else _in_run(place, "summary", at=modified, texts=(text,))
        case "entry" | "handoff" if len(data) <= LARGEST_SEARCHED:
            try:
                if place.kind == "entry":
                    return entry_document(place, decode_entry(data))
                return _handoff_document(place, decode_handoff(data), modified)
            except FormatError:  # its own command says what is wrong with it
                return None
    return None


def read_text(data: bytes) -> MemoryText:
    """A memory's bytes as front matter and body; what is no text, or too long to be searched, has neither."""
    return parse_memory(text_in(data) or "")


def text_in(data: bytes) -> str | None:
    """`data` as text; None where it is none, or too long to be searched."""
    if len(data) > LARGEST_SEARCHED:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def memory_document(place: Place, memory: MemoryText, modified: int) -> Document:
    """What is searched of a memory."""
    told = memory.front_matter
    name = f"{place.namespace}/{place.key}"
    return Document(
        kind="memory",
        path=place.path,
        namespace=place.namespace,
        key=place.key,
        at=time_told(memory, modified),
        tags=told.tags,
        names=_said(name, described(memory), *told.tags),
        texts=_said(memory.body),
    )


def time_told(memory: MemoryText, modified: int) -> int:
    """When a memory was last written: what it says of itself, else what its file says."""
    told = memory.front_matter
    times = [at for text in (told.updated, told.created) if (at := parse_time(text)) is not None]
    return times[0] if times else modified


def entry_document(place: Place, entry: ContextEntry) -> Document:
    """What is searched of an entry."""
    at = parse_time(entry.ts)
    return _in_run(
        place,
        "entry",
        at=ulid_time(place.entry_id) if at is None else at,
        tags=entry.tags,
        names=_said(*entry.tags),
        texts=_said("\n".join(flat_json(entry.payload))),
    )


def _handoff_document(place: Place, handoff: Handoff, modified: int) -> Document:
    at = parse_time(handoff.published_ts)
    lines = [*flat_json(handoff.key_results), *handoff.decisions, *handoff.open_questions]
    return _in_run(
        place,
        "handoff",
        at=modified if at is None else at,
        names=_said(handoff.headline),
        texts=_said("\n".join(lines)),
    )


def _in_run(
    place: Place,
    kind: DocumentKind,
    *,
    at: int,
    tags: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
    texts: tuple[str, ...] = (),
) -> Document:
    return Document(
        kind=kind,
        path=place.path,
        run_id=place.run_id,
        phase=place.phase,
        entry_id=place.entry_id,
        at=at,
        tags=tags,
        names=names,
        texts=texts,
    )


def _said(*texts: str) -> tuple[str, ...]:
    """Those that say something, with U+FFFD for half characters, which no index takes."""
    return tuple(_sound(text) for text in texts if text)


def _sound(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_hit(query: Query, document: Document) -> bool:
    """Is it found? Said the slow and plain way: the oracle of every index."""
    from raddle.model.threads.query_match import has_term  # 8 ms, which no index needs  # noqa: PLC0415

    return all(fits(one, document.at, document.tags) for one in query.filters) and all(
        has_term(term, (*document.names, *document.texts)) != term.is_negative for term in query.terms
    )


def fits(one: Filter, at: int | None, tags: Sequence[str]) -> bool:
    """Does a filter let a document of that time, with those tags, through? Filters on threads fit none."""
    match one:
        case TimeFilter():
            is_fitting = at is not None and (at >= one.at) == one.is_after
        case NameFilter(key="tag"):
            is_fitting = any(_is_named(asked, tag) for asked in one.names for tag in tags)
        case _:
            is_fitting = False
    return is_fitting != one.is_negative


def _is_named(asked: Name, name: str) -> bool:
    found, run = words_of(name), asked.words
    if asked.is_whole:
        return found == run
    for start in range(len(found) - len(run) + 1):
        here = found[start : start + len(run)]
        is_last = here[-1].startswith(run[-1]) if asked.is_prefix else here[-1] == run[-1]
        if here[:-1] == run[:-1] and is_last:
            return True
    return False


def notes_on(query: Query) -> tuple[str, ...]:
    """What to say of filters that nothing in a memory can fit."""
    if query.is_of_nothing:
        return ()
    told = dict.fromkeys(
        one.text
        for one in query.filters
        if not (isinstance(one, TimeFilter) or (isinstance(one, NameFilter) and one.key == "tag"))
        if not one.is_negative
    )
    if not told:
        return ()
    what = " ".join(told)
    return (
        f"`{what}` asks about threads, so nothing of the memory fits it: leave it out to search the memory",
    )


def score(kind: DocumentKind, *, terms: int, covered: int, at: int | None, now: int) -> float:
    """How good a hit is. Of the `terms` asked for its names have `covered`; times in microseconds."""
    age = max(now - at, 0) if at is not None else now
    return score_of(terms=terms, covered=covered, level=_NAME_WORDS_IN[KINDS.index(kind)], age=age)


def hit_of(query: Query, document: Document, *, score: float, is_in_name: bool) -> MemoryHit:
    """`document` as a hit, with the lines around what was found."""
    shown = [*document.texts, *document.names] or [document.path]
    return MemoryHit(
        kind=document.kind,
        path=document.path,
        namespace=document.namespace,
        key=document.key,
        run_id=document.run_id,
        phase=document.phase,
        entry_id=document.entry_id,
        at="" if document.at is None else format_time(document.at),
        tags=document.tags,
        is_in_name=is_in_name,
        snippet=snippet_of(query, shown)[1],
        score=score,
    )
