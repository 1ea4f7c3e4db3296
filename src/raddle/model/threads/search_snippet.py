"""The few lines around what was found, with the places to mark. Owns where a hit is seen, not what is a hit.

Marks are ranges of the snippet, never markup: whoever shows it draws them as it can. A snippet is one line,
free of control characters, so that a transcript cannot steer the terminal it is shown on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from raddle.model.threads.query import Fragment, Needle, Phrase, Query, Term, Word
from raddle.model.threads.search_fields import FIELDS, header_of
from raddle.model.threads.search_text import fold
from raddle.model.threads.summary import ThreadSummary

WIDTH = 200
_LEAD = 60
_LONGEST_FOLDED = 1 << 16
_MOST_SPANS = 256

_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_MARKS = re.compile("[\u0300-\u036f\u3099\u309a\uff9e\uff9f]")
"""Characters that join the one before them: there, a folded text has fewer."""
_GAP = r"[^0-9a-z\x80-\U0010ffff]{1,64}"

Span = tuple[int, int]


class Snippet(Struct, frozen=True, kw_only=True):
    """Some text of a hit on one line; `marks`: (start, end) of what was found, in order, not overlapping."""

    text: str
    marks: tuple[Span, ...] = ()


class _OneToOne(dict[int, str]):
    """Folds each character to one, so that places stay what they are."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = fold(chr(code)).strip()[:1] or " "
        return folded


_one_to_one = _OneToOne((code, chr(code)) for code in range(0x80))


class _Finder(Struct, frozen=True):
    """How to see one term in a folded, lower-case text: `start` is sought, then `pattern` has to match there.

    `loose`: what to look for where nothing stands as whole words: a part of an identifier, or a name that is
    joined in another way.
    """

    start: str
    pattern: re.Pattern[str]
    is_bordered: bool
    loose: re.Pattern[str] | None = None


def snippet_of(query: Query, texts: Sequence[str], *, width: int = WIDTH) -> tuple[int, Snippet]:
    """Which of `texts` shows most of what `query` asks for (the earlier, where equal), and its best part."""
    finders = [
        finder for term in query.terms if not term.is_negative and (finder := _finder(term)) is not None
    ]
    best, best_spans, most = -1, [], 0
    for at, text in enumerate(texts):
        spans = _spans(text, finders) if text else []
        shown = len({which for _, _, which in spans})
        if shown > most:
            best, best_spans, most = at, spans, shown
    if best < 0:
        best = next((at for at, text in enumerate(texts) if text), 0)
    return best, _cut_out(texts[best] if texts else "", best_spans, width)


def shown_of(
    query: Query, summary: ThreadSummary, texts: Sequence[str], *, is_in_header: bool
) -> tuple[str, Snippet]:
    """Where the words of a hit stand, and the lines around them: in the `texts` of its message, else in the header.

    `is_in_header`: the header has some of the words.
    """
    field, snippet = snippet_of(query, texts)
    if not snippet.marks and is_in_header:
        header = header_of(summary)
        names = (header.title, *header.tags, *header.branches, header.remote, *header.shas)
        _, of_header = snippet_of(query, names)
        if of_header.marks:
            return "header", of_header
    return FIELDS[field], snippet


def _finder(term: Term) -> _Finder | None:
    match term:
        case Word():
            return _needle_finder(term.needle, is_loose=True)
        case Phrase():
            if not term.exact:
                return _needle_finder(term.needle, is_loose=False)
            return _exact_finder(term.exact)
        case Fragment():
            return _exact_finder(term.inside or term.exact)


def _exact_finder(exact: str) -> _Finder:
    parts = exact.split(" ")
    return _Finder(parts[0], re.compile(r"\s+".join(re.escape(part) for part in parts)), is_bordered=False)


def _needle_finder(needle: Needle, *, is_loose: bool) -> _Finder:
    pattern = ""
    for at, word in enumerate(needle.words):
        before = needle.words[at - 1] if at else ""
        if at and len(before) == 2 and before[1] == word[0] and not before.isascii():
            pattern += re.escape(word[1:])  # overlapping pairs of one run
        else:
            pattern += (_GAP if at else "") + re.escape(word)
    is_bordered = needle.words[0].isascii()
    if is_bordered:
        pattern += "[0-9a-z]*" if needle.is_prefix else "(?![0-9a-z])"
    loose = None
    if is_loose and (needle.joined or len(needle.words) == 1):
        loose = re.compile("[-_]?".join(re.escape(each) for each in "".join(needle.words)))
    return _Finder(needle.words[0], re.compile(pattern), is_bordered=is_bordered, loose=loose)


def _spans(text: str, finders: Sequence[_Finder]) -> list[tuple[int, int, int]]:
    """(start, end, which finder) of what is found in `text`, by start."""
    places = None
    if not text.isascii():
        text = text[:_LONGEST_FOLDED]
        if _MARKS.search(text):
            text, places = _folded(text)
        else:
            text = text.translate(_one_to_one)
    low = text.lower()
    spans: list[tuple[int, int, int]] = []
    for which, finder in enumerate(finders):
        found = list(islice(_found(low, finder), _MOST_SPANS))
        if not found and finder.loose is not None:
            found = [match.span() for match in islice(finder.loose.finditer(low), _MOST_SPANS)]
        spans += [(start, end, which) for start, end in found if end > start]
    if places is not None:
        # Up to where the next character comes from, so that an accent stays with its letter.
        spans = [(places[start], max(places[end], places[end - 1] + 1), which) for start, end, which in spans]
    return sorted(spans)


def _found(low: str, finder: _Finder) -> Iterator[Span]:
    # `find` for the first word, since a pattern that begins with an assertion is tried at every character.
    at = low.find(finder.start)
    while at >= 0:
        cuts = finder.is_bordered and at > 0 and low[at - 1].isalnum() and low[at - 1].isascii()
        match = None if cuts else finder.pattern.match(low, at)
        if match is not None:
            yield match.span()
        at = low.find(finder.start, match.end() if match is not None and match.end() > at else at + 1)


def _folded(text: str) -> tuple[str, list[int]]:
    """The folded text, and for each of its characters, and its end, where it came from."""
    folded: list[str] = []
    places: list[int] = []
    for at, character in enumerate(text):
        each = fold(character)
        each = each.strip() or each[:1]  # nothing for an accent, a space for what is no word
        folded.append(each)
        places += [at] * len(each)
    return "".join(folded), [*places, len(text)]


def _cut_out(text: str, spans: list[tuple[int, int, int]], width: int) -> Snippet:
    """The `width` characters of `text` that show most kinds of spans, on one line."""
    start = _best_start(spans, width)
    start = max(min(start, len(text) - width), 0)
    end = min(start + width, len(text))
    if start and (space := re.search(r"\s", text[start : start + 20])):
        start += space.end()
    if end < len(text) and (space := re.search(r"\s\S*\Z", text[end - 20 : end])):
        end = end - 20 + space.start() if end - 20 + space.start() > start else end
    return _one_line(text, start, end, _merged(spans, start, end))


def _best_start(spans: list[tuple[int, int, int]], width: int) -> int:
    best, most = 0, 0
    for at, (start, _, _) in enumerate(spans):
        kinds = {which for begin, end, which in spans[at : at + 32] if end <= start + width - _LEAD}
        if len(kinds) > most:
            best, most = max(start - _LEAD, 0), len(kinds)
    return best


def _merged(spans: list[tuple[int, int, int]], start: int, end: int) -> list[Span]:
    merged: list[Span] = []
    for begin, finish, _ in spans:
        begin, finish = max(begin, start), min(finish, end)
        if begin >= finish:
            continue
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], finish))
        else:
            merged.append((begin, finish))
    return merged


def _one_line(text: str, start: int, end: int, spans: list[Span]) -> Snippet:
    """`text[start:end]` with white space as single spaces, and `spans` moved along."""
    out = "… " if start > 0 else ""
    marks: list[Span] = []
    at = start
    for begin, finish in spans:
        out = _joined(out, text[at:begin])
        marked = _joined(out, text[begin:finish])
        first = len(out) + (len(marked) - len(out) - len(marked[len(out) :].lstrip()))
        if first < len(marked):
            marks.append((first, len(marked)))
        out, at = marked, finish
    out = _joined(out, text[at:end]).rstrip()
    marks = [(begin, min(finish, len(out))) for begin, finish in marks if begin < len(out)]
    return Snippet(text=out + (" …" if end < len(text) else ""), marks=tuple(marks))


def _joined(out: str, text: str) -> str:
    text = re.sub(r"\s+", " ", _CONTROL.sub(" ", text))
    return out + (text.lstrip() if not out or out.endswith(" ") else text)
