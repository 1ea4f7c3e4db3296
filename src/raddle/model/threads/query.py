"""The query language: from what a person types to a value that every search engine compiles.

One parser for the command line, the inbox, the pages, the API and MCP. With a second one, two places would
read the same text differently and answer differently. Any text is a valid query: what means nothing is put
into `ignored`, never refused; where nothing else was asked, nothing is found (`NOTHING`). The language in the
reader's terms: `docs/reference/search-language.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from raddle.model.threads.query_exact import normalised
from raddle.model.threads.query_times import parse_moment
from raddle.model.threads.search_text import fold, is_unspaced, words_of

MOST_TERMS = 64
"""Terms and filters that one query has; what comes after them is ignored, and said to be."""
MOST_WORDS = 64
"""Words of one term or phrase; a longer one is cut."""
LONGEST_QUERY = 20_000
"""Characters that are looked at."""

NAME_FILTERS = ("repo", "branch", "tag", "role", "agent", "tool", "file")
FLAGS = {"is": ("pinned", "private", "archived", "removed"), "has": ("error",)}
FILTERS = (*NAME_FILTERS, "sha", "before", "after", *FLAGS)


class Needle(Struct, frozen=True, kw_only=True):
    """Words that stand one after the other in one field or name; at least one."""

    words: tuple[str, ...]
    is_prefix: bool = False
    """The last word may go on."""
    joined: str = ""
    """All of them as one word, where they are written as one identifier: `get_user` is `getuser` too."""


class Word(Struct, frozen=True, kw_only=True, tag=True):
    """A bare word, path or identifier: found as words, or among the parts of identifiers.

    `remote`: what it is as the address of a repository, looked for in headers only.
    """

    text: str
    needle: Needle
    remote: Needle | None = None
    is_negative: bool = False


class Phrase(Struct, frozen=True, kw_only=True, tag=True):
    """Quoted text: whole words side by side; `exact`, where it is not empty, has to stand in the text as well
    (both normalised: see `normalised`)."""

    text: str
    needle: Needle
    exact: str = ""
    is_negative: bool = False


class Fragment(Struct, frozen=True, kw_only=True, tag=True):
    """`~text`: found inside words. `inside`: the folded fragment where one word can hold it; else it spans
    several, and `exact` has to stand in the normalised text, which `words` (whole ones in its middle) narrow."""

    text: str
    inside: str = ""
    exact: str = ""
    words: tuple[str, ...] = ()
    is_negative: bool = False


Term = Word | Phrase | Fragment


class Name(Struct, frozen=True, kw_only=True):
    """A value of a filter: its words stand together in the name, or (`is_whole`) are all of the name."""

    words: tuple[str, ...]
    is_prefix: bool = False
    is_whole: bool = False


class NameFilter(Struct, frozen=True, kw_only=True, tag=True):
    """`repo: branch: tag: role: agent: tool: file:` — any of `names` will do."""

    text: str
    key: str
    names: tuple[Name, ...]
    is_negative: bool = False


class ShaFilter(Struct, frozen=True, kw_only=True, tag=True):
    """`sha:` — a commit of the thread starts with one of `prefixes` (lower-case hex)."""

    text: str
    prefixes: tuple[str, ...]
    is_negative: bool = False


class TimeFilter(Struct, frozen=True, kw_only=True, tag=True):
    """`before:` and `after:` — the message is earlier than `at` (microseconds), or not earlier."""

    text: str
    is_after: bool
    at: int
    is_negative: bool = False


class FlagFilter(Struct, frozen=True, kw_only=True, tag=True):
    """`is:` of a thread (`pinned private archived`) or message (`removed`); `has:error` of a message."""

    text: str
    flag: str
    is_negative: bool = False


Filter = NameFilter | ShaFilter | TimeFilter | FlagFilter

NOTHING = (FlagFilter(text="", flag="removed"), FlagFilter(text="", flag="removed", is_negative=True))
"""What a text asks for of which nothing can be looked for: no message is both, so that no engine finds any."""

THREAD_KEYS = frozenset({"repo", "branch", "tag", "agent"})
THREAD_FLAGS = frozenset({"pinned", "private", "archived"})


class Query(Struct, frozen=True, kw_only=True):
    """What is asked for. All terms and all filters have to hold."""

    text: str
    terms: tuple[Term, ...] = ()
    filters: tuple[Filter, ...] = ()
    ignored: tuple[str, ...] = ()
    """Parts of the text that ask for nothing: punctuation alone, values that no filter has, too many words."""

    @property
    def is_empty(self) -> bool:
        """Is it no question at all? It finds everything."""
        return not self.terms and not self.filters

    @property
    def is_of_nothing(self) -> bool:
        """Was something asked of which nothing can be looked for? It finds nothing."""
        return not self.terms and self.filters[: len(NOTHING)] == NOTHING

    def narrowed(self, *filters: Filter) -> Query:
        """The same query with more filters, which the person did not type: a scope."""
        return replace(self, filters=(*self.filters, *filters))


def is_of_thread(one: Filter) -> bool:
    """Does this filter ask about the thread as a whole, not about single messages?"""
    match one:
        case NameFilter():
            return one.key in THREAD_KEYS
        case ShaFilter():
            return True
        case TimeFilter():
            return False
        case FlagFilter():
            return one.flag in THREAD_FLAGS


_QUOTES = str.maketrans("“”„‟«»＂", '"""""""')
_PART = re.compile(
    r"""\s*
    (?P<minus>-(?=[^\s-]))?
    (?:
        (?P<fragment>~)(?:"(?P<quoted_fragment>[^"]*)(?:"|\Z)|(?P<bare_fragment>\S*))
      | "(?P<phrase>[^"]*)(?:"|\Z)
      | (?P<key>[A-Za-z]+):(?:"(?P<quoted_value>[^"]*)(?:"|\Z)|(?P<value>[^\s"]\S*))
      | (?P<word>\S+)
    )""",
    re.VERBOSE,
)
_SHA = re.compile(r"[0-9a-fA-F]{7,40}\Z")
_SHA_PREFIX = re.compile(r"[0-9a-fA-F]{1,64}\Z")
_IDENTIFIER = re.compile(r"[-_]*[^\W_]+(?:[-_]+[^\W_]+)+[-_]*\Z")
_ADDRESS = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*://(?:[^/@\s]*@)?|(?:[\w.-]+@))([^/:\s]+)(?::\d+(?=/))?[:/](.*)", re.DOTALL
)
_ASCII_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def parse(text: str, *, now: int, as_you_type: bool = False) -> Query:
    """What `text` asks for; `now` (microseconds) is what `7d` counts back from.

    `as_you_type`: the last word is still being typed, so it is a prefix by itself; what asks for nothing yet
    finds everything.
    """
    looked_at = text[:LONGEST_QUERY].translate(_QUOTES)
    terms: dict[Term, None] = {}
    filters: dict[Filter, None] = {}
    ignored: list[str] = []
    surplus = 0
    for part in _parts(looked_at):
        if len(terms) + len(filters) + len(ignored) >= MOST_TERMS:
            surplus += 1
            continue
        made = _read(part, now=now, typing=as_you_type and part.end() == len(looked_at))
        if made is None:
            ignored.append(part[0].strip()[:80])
        elif isinstance(made, Word | Phrase | Fragment):
            terms[made] = None
        else:
            filters[made] = None
    if ignored and not terms and not filters and not as_you_type:
        filters = dict.fromkeys(NOTHING)
    if surplus:
        ignored.append(f"{surplus} more, after the first {MOST_TERMS}")
    if len(text) > LONGEST_QUERY:
        ignored.append(f"what follows the first {LONGEST_QUERY} characters")
    return Query(
        text=text[:LONGEST_QUERY].strip(), terms=tuple(terms), filters=tuple(filters), ignored=tuple(ignored)
    )


def _parts(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while (found := _PART.match(text, at)) is not None:
        yield found
        at = found.end()


def _read(part: re.Match[str], *, now: int, typing: bool) -> Term | Filter | None:
    negative = part["minus"] is not None
    if part["fragment"] is not None:
        quoted = part["quoted_fragment"]
        return _fragment(part["bare_fragment"] if quoted is None else quoted, negative)
    if part["phrase"] is not None:
        return _phrase(part["phrase"], negative)
    if part["key"] is None:
        return _word(part["word"], negative, typing=typing)
    key, quoted = part["key"].lower(), part["quoted_value"]
    made = _filter(key, part["value"] if quoted is None else quoted, is_quoted=quoted is not None, now=now)
    if made is not None:
        shown = part[0].strip()
        return replace(made, text=shown, is_negative=negative)
    bare = part[0].strip()
    return _word(bare[1:] if negative else bare, negative, typing=typing)


def _words(text: str) -> tuple[tuple[str, ...], bool]:
    """The words to look for one after the other, and whether the last is only the start of one.

    A text that ends in a script without spaces may go on in the thread, so the single character that ends
    its run is left out; a run of one character is the start of a pair.
    """
    words = words_of(text)[:MOST_WORDS]
    folded = fold(text).rstrip()
    if not words or not is_unspaced(folded[-1]):
        return words, False
    is_run = len(folded) > 1 and is_unspaced(folded[-2])
    return (words[:-1], False) if is_run else (words, True)


def _word(text: str, negative: bool, *, typing: bool) -> Word | None:
    stem = text.rstrip("*")
    words, is_open = _words(stem)
    if not words:
        return None
    starred = len(stem) < len(text) and words_of(stem[-1:]) != ()
    if typing and not starred and len(words[-1]) == 1 and words[-1].isascii():
        words = words[:-1]  # a single letter begins too many words to ask for
        if not words:
            return None
        typing = False
    is_prefix = is_open or starred or typing or _SHA.match(stem) is not None
    needle = Needle(words=words, is_prefix=is_prefix, joined=_joined(stem, words))
    return Word(text=text, needle=needle, remote=_remote(stem), is_negative=negative)


def _joined(stem: str, words: tuple[str, ...]) -> str:
    """The words as one, where `stem` is one snake or kebab identifier."""
    folded = fold(stem)
    if not 1 < len(words) < MOST_WORDS or _IDENTIFIER.match(folded) is None or any(map(is_unspaced, folded)):
        return ""
    return "".join(words)


def _remote(text: str) -> Needle | None:
    """`text` as the address of a repository (URL, scp form, or ending in `.git`): its host and first two names."""
    found = _ADDRESS.match(text)
    if found is None and not text.endswith(".git"):
        return None
    host, path = (found[1], found[2]) if found else ("", text)
    path = re.split(r"[?#]", path, maxsplit=1)[0]
    names = [name.removesuffix(".git") for name in path.split("/") if name][: 2 if found else None]
    words = words_of("/".join([host, *names]))[:MOST_WORDS]
    return Needle(words=words) if words and names else None


def _phrase(text: str, negative: bool) -> Phrase | Fragment | None:
    words, is_open = _words(text)
    exact = normalised(text)
    if not words:
        return Fragment(text=f'"{text}"', exact=exact, is_negative=negative) if exact else None
    if _ASCII_PUNCTUATION.search(exact) is None:
        exact = ""
    return Phrase(
        text=f'"{text}"', needle=Needle(words=words, is_prefix=is_open), exact=exact, is_negative=negative
    )


def _fragment(text: str, negative: bool) -> Term | None:
    exact = normalised(text)
    if not exact:
        return None
    words, is_open = _words(text)
    if all(map(is_unspaced, exact)):
        return Phrase(text=f"~{text}", needle=Needle(words=words, is_prefix=is_open), is_negative=negative)
    if words == (exact,):
        return Fragment(text=f"~{text}", inside=exact, is_negative=negative)
    return Fragment(text=f"~{text}", exact=exact, words=words[1:-1], is_negative=negative)


def _filter(key: str, value: str, *, is_quoted: bool, now: int) -> Filter | None:
    """The filter, or None where `key` is none or has no such value: then it is text like any other."""
    if key in NAME_FILTERS:
        values = [value] if is_quoted else value.split(",")
        names = tuple(name for each in values if (name := _name(each, is_whole=is_quoted)) is not None)
        return NameFilter(text="", key=key, names=names) if names else None
    if key == "sha":
        prefixes = tuple(
            each.strip().lower() for each in value.rstrip("*").split(",") if _SHA_PREFIX.match(each.strip())
        )
        return ShaFilter(text="", prefixes=prefixes) if prefixes else None
    if key in {"before", "after"}:
        moment = parse_moment(value, now)
        return None if moment is None else TimeFilter(text="", is_after=key == "after", at=moment)
    flag = value.lower()
    return FlagFilter(text="", flag=flag) if flag in FLAGS.get(key, ()) else None


def _name(value: str, *, is_whole: bool) -> Name | None:
    stem = value if is_whole else value.rstrip("*")
    words, is_open = (words_of(stem)[:MOST_WORDS], False) if is_whole else _words(stem)
    if not words:
        return None
    return Name(words=words, is_prefix=is_open or len(stem) < len(value), is_whole=is_whole)
