"""The words of a text: what is searched, decided here and nowhere else.

Both search engines store these tokens as they are (their own tokenizers decide nothing), and a query is
cut by the same function. If a second place cut text, a word could be stored that no query can spell.
What a word is, in the reader's terms: `docs/reference/search-language.md`. A change to any rule below is
a change of `CUT_VERSION`, and every index is built anew.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import pairwise

from msgspec import Struct

CUT_VERSION = 1
"""Which edition of the rules cut a stored text: an index of another edition cannot be searched or mended."""

LONGEST_WORD = 500
"""Bytes of UTF-8 that are kept of one word; longer ones are cut, so two may become one."""

LONGEST_IDENTIFIER = 80
"""Bytes of an identifier that still has parts; longer runs are data, not names."""

_CACHED_TOKEN = 64
_MOST_PLAIN = 200_000
_MOST_NAMES = 100_000

_ALNUM = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LOW = bytes(
    ord(chr(byte).lower()) if byte in _ALNUM else byte if byte >= 0x80 else 0x20 for byte in range(256)
)
_NAMES = bytes(byte if byte in _ALNUM + b"_-" or byte >= 0x80 else 0x20 for byte in range(256))

_JOINERS = re.compile(rb"[-_]+")
_PART = re.compile(rb"[A-Z]+(?![a-z\x80-\xff])|[A-Z]?[a-z\x80-\xff]+|[0-9]+")
_HEX = re.compile(rb"[0-9a-fA-F]{7,}\Z")
_TOO_LONG = re.compile(rb"[^ ]{%d,}" % (LONGEST_WORD + 1))
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")

_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1100, 0x11FF),  # Hangul: spaced, but particles stick to words
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FDF),  # Han radicals
    (0x3005, 0x3007),
    (0x3021, 0x302F),
    (0x3031, 0x303C),
    (0x3041, 0x30FF),  # kana
    (0x3105, 0x31BF),  # bopomofo
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0xA4CF),  # Han, Yi
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""Scripts that write without spaces between words."""

_ACCENTS = (
    (0x0300, 0x036F),
    (0x0591, 0x05BD),  # Hebrew points; 05BE is a hyphen
    (0x05BF, 0x05C7),
    (0x0610, 0x061A),  # Arabic signs and vowel marks, and the stroke that only stretches a word
    (0x0640, 0x0640),
    (0x064B, 0x065F),
    (0x0670, 0x0670),
    (0x06D6, 0x06ED),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE20, 0xFE2F),
)
_INVISIBLE = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),
    (0x180B, 0x180F),
    (0x200C, 0x200F),  # joiners and direction marks
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),
    (0x1F3FB, 0x1F3FF),  # skin tones: one emoji, whatever the hand
    (0xE0000, 0xE0FFF),
)
_DECORATION = (
    (0x2044, 0x2044),  # the stroke of a fraction
    (0x2190, 0x21FF),  # arrows: every line that the Read tool numbers has one
    (0x23B0, 0x23BF),
    (0x2500, 0x25FF),  # boxes, blocks, bullets
    (0x2800, 0x28FF),  # braille, which spinners are drawn with
    (0xFFFC, 0xFFFD),
)


class Words(Struct, frozen=True, kw_only=True):
    """What `cut` finds in one text; tokens are divided by one or more spaces and hold none."""

    words: str
    """Every word in reading order, one for each position."""
    pieces: str
    """Parts of camelCase and of letter-digit borders, and snake and kebab names joined: a sorted set, without
    those that stand in the text by themselves."""

    def tokens(self) -> set[str]:
        """Every token, of both streams."""
        return {*self.words.split(), *self.pieces.split()}


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)


def _fold_character(code: int) -> str:
    """What one character becomes: a letter without accent, ` ☂ ` for a symbol, or a space."""
    character = chr(code)
    if code < 0x80:
        return character
    category = unicodedata.category(character)
    is_symbol = category[0] == "S" or category == "No"
    plain = unicodedata.normalize("NFKD", character)
    if plain != character:
        folded = unicodedata.normalize("NFC", "".join([_fold_character(ord(each)) for each in plain]))
        return f" {folded} " if is_symbol else folded
    if _within(code, _ACCENTS) or _within(code, _INVISIBLE):
        return ""
    if is_symbol:
        return " " if _within(code, _DECORATION) or category == "Sk" else f" {character} "
    return character.casefold().lower() if category[0] in "LNM" else " "


class _Folds(dict[int, str]):
    """A table for `str.translate` that fills itself."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold_character(code)
        return folded


_folds = _Folds()


def _fold_run(found: re.Match[str]) -> str:
    return found[0].translate(_folds)


def fold(text: str) -> str:
    """`text` with accents dropped, compatibility forms resolved, symbols set apart and all else beyond ASCII
    that is no letter, digit or symbol made a space. ASCII is left as it is, its case too."""
    if text.isascii():
        return text
    text = text.replace("→", " ")
    if text.isascii():
        return text
    text = _NON_ASCII.sub(_fold_run, text)
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def is_unspaced(character: str) -> bool:
    """Is it of a script that writes without spaces between words?"""
    return character > "\x7f" and _within(ord(character), _UNSPACED)


@cache
def unspaced_run() -> re.Pattern[str]:
    """Matches a run of such characters. Made when the first is met: it takes longer than most searches."""
    ranges = "".join(f"{chr(first)}-{chr(last)}" for first, last in _UNSPACED)
    return re.compile(f"[{ranges}]+")


def _pairs(found: re.Match[str]) -> str:
    """A run of a script without spaces as overlapping pairs and its last character."""
    run = found[0]
    pairs = [first + second for first, second in pairwise(run)]
    return f" {' '.join(pairs)} {run[-1]} "


def _is_random(token: bytes, parts: list[bytes]) -> bool:
    """A digest or base64 rather than a name: hexadecimal, or three and more parts of less than two bytes each."""
    if _HEX.match(token):
        return True
    return len(parts) > 2 and 2 * len(parts) > len(token)


def _inner_words(token: bytes) -> tuple[bytes, ...]:
    """The pieces of one run of letters, digits, `-` and `_`: parts of each name in it, and all names joined."""
    if len(token) > LONGEST_IDENTIFIER:
        return ()
    names = [name for name in _JOINERS.split(token) if name]
    pieces: list[bytes] = []
    for name in names:
        parts = _PART.findall(name)
        if len(parts) > 1 and not _is_random(name, parts):
            pieces += parts
    if len(names) > 1:
        joined = b"".join(names)
        if not joined.isdigit() and not _HEX.match(joined):
            pieces.append(joined)
    return tuple(piece.lower() for piece in pieces)


def _shorten(found: re.Match[bytes]) -> bytes:
    return found[0][:LONGEST_WORD].decode("utf-8", "ignore").encode()


class Cutter:
    """Cuts texts and remembers the tokens it has met, so that most of a text costs one set difference.

    The result never depends on what was cut before. It also gathers the tokens it meets for the first time,
    for the vocabulary of an index: `take_terms`.
    """

    def __init__(self, *, collect: bool = True) -> None:
        self._plain: set[bytes] = set()
        self._names: dict[bytes, tuple[bytes, ...]] = {}
        self._collect = collect
        self._terms: set[bytes] = set()

    def cut(self, text: str) -> Words:
        """The words and pieces of `text`."""
        text = fold(text)
        if not text.isascii():
            text = unspaced_run().sub(_pairs, text)
        raw = text.encode("utf-8", "ignore")
        words = raw.translate(_LOW)
        tokens = set(raw.translate(_NAMES).split())
        fresh = tokens - self._plain
        if not fresh:
            return Words(words=words.decode(), pieces="")
        # A loop over the tokens in Python would cost as much as all the rest together.
        found = list(map(self._names.get, fresh))
        if None in found:
            for place, token in enumerate(fresh):
                if found[place] is None:
                    found[place] = self._learn(token)
                    if len(token) > LONGEST_WORD:
                        words = _TOO_LONG.sub(_shorten, words)
        pieces: set[bytes] = set().union(*found)  # type: ignore[arg-type]  # no None is left
        pieces.difference_update(tokens)
        return Words(words=words.decode(), pieces=b" ".join(sorted(pieces)).decode())

    def _learn(self, token: bytes) -> tuple[bytes, ...]:
        inner = _inner_words(token)
        if self._collect:
            self._terms.update(inner)
            self._terms.update(
                word if len(word) <= LONGEST_WORD else _TOO_LONG.sub(_shorten, word)
                for word in token.translate(_LOW).split()
            )
        if len(token) <= _CACHED_TOKEN:
            if inner:
                if len(self._names) >= _MOST_NAMES:
                    self._names.clear()
                self._names[token] = inner
            else:
                if len(self._plain) >= _MOST_PLAIN:
                    self._plain.clear()
                self._plain.add(token)
        return inner

    def take_terms(self) -> str:
        """The tokens met since the last call and (but for rare repeats) never before, sorted, one a line."""
        taken = b"\n".join(sorted(self._terms)).decode()
        self._terms.clear()
        return taken


_shared = Cutter(collect=False)


def cut(text: str) -> Words:
    """The words and pieces of `text`; any text will do, lone surrogates and NUL included."""
    return _shared.cut(text)


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """The words of a short text, in order."""
    return tuple(cut(text).words.split())
