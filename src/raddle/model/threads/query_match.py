"""What a query finds, said the slow and plain way: by reading each text from its first character to its last.

The oracle of the search engines' tests, and the answer where there is no index. It shares with them what a
character is (`fold`) and what a query is; words, parts of identifiers and matches it works out by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from raddle.model.threads.query import (
    Filter,
    FlagFilter,
    Fragment,
    Name,
    NameFilter,
    Needle,
    Phrase,
    Query,
    ShaFilter,
    Term,
    TimeFilter,
    Word,
    is_of_thread,
)
from raddle.model.threads.query_exact import has_exact, normalised
from raddle.model.threads.search_fields import TOOLS, HeaderText, MessageText, time_of
from raddle.model.threads.search_text import LONGEST_IDENTIFIER, LONGEST_WORD, fold, is_unspaced

_IDENTIFIERS = re.compile(r"[A-Za-z0-9_\-\x80-\U0010ffff]+")
_CAMEL = re.compile(r"(?<=[a-z\x80-\U0010ffff])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z\x80-\U0010ffff])")
_DIGITS = re.compile(r"(?<=[0-9])(?=[^0-9])|(?<=[^0-9])(?=[0-9])")


def matches(query: Query, header: HeaderText, message: MessageText, *, is_removed: bool = False) -> bool:
    """Is this message of that thread a hit? Filters that drop whole threads see only this one message."""
    return bool(hits(query, header, [message], {message.id} if is_removed else ()))


def hits(
    query: Query, header: HeaderText, messages: Sequence[MessageText], removed: Collection[str] = ()
) -> list[str]:
    """The ids of the messages of one thread that are hits, in the order given."""
    of_thread = [one for one in query.filters if is_of_thread(one)]
    of_message = [one for one in query.filters if not is_of_thread(one) and not _is_about_removal(one)]
    if not all(_thread_fits(one, header) != one.is_negative for one in of_thread):
        return []
    asked = {one.is_negative for one in query.filters if _is_about_removal(one)}
    if asked == {True, False}:
        return []
    visible = [message for message in messages if (message.id in removed) == (False in asked)]
    dropping = [one for one in of_message if one.is_negative]
    if any(_message_fits(one, message) for one in dropping for message in visible):
        return []
    names = _names(header)
    return [
        message.id
        for message in visible
        if all(_message_fits(one, message) for one in of_message if not one.is_negative)
        and all(
            (_in_header(term, names) or has_term(term, message.texts)) != term.is_negative
            for term in query.terms
        )
    ]


def words(text: str) -> list[str]:
    """The words of a text, in order, character by character."""
    found: list[str] = []
    run = ""
    for character in fold(text) + " ":
        same_kind = run == "" or is_unspaced(run[-1]) == is_unspaced(character)
        if run and not (_is_word_character(character) and same_kind):
            found += _run_words(run)
            run = ""
        if _is_word_character(character):
            run += character
    return found


def _is_word_character(character: str) -> bool:
    return character.isalnum() if character.isascii() else True


def _run_words(run: str) -> list[str]:
    if not is_unspaced(run[0]):
        return [_shortened(run.lower())]
    return [run[at : at + 2] for at in range(len(run))]


def _shortened(word: str) -> str:
    while len(word.encode("utf-8", "replace")) > LONGEST_WORD:
        word = word[:-1]
    return word


def pieces(text: str) -> set[str]:
    """The parts of identifiers in a text, and snake and kebab identifiers as one word."""
    spaced = "".join([f" {each} " if is_unspaced(each) else each for each in fold(text)])
    found: set[str] = set()
    for identifier in _IDENTIFIERS.findall(spaced):
        if len(identifier.encode("utf-8", "replace")) > LONGEST_IDENTIFIER:
            continue
        names = [name for name in re.split("[-_]", identifier) if name]
        for name in names:
            parts = [part for half in _CAMEL.split(name) for part in _DIGITS.split(half)]
            if len(parts) > 1 and not _is_hex(name) and not _is_noise(name, parts):
                found.update(part.lower() for part in parts)
        joined = "".join(names)
        if len(names) > 1 and re.search("[^0-9]", joined) and not _is_hex(joined):
            found.add(joined.lower())
    return found


def _is_hex(name: str) -> bool:
    return len(name) >= 7 and all(each in "0123456789abcdefABCDEF" for each in name)


def _is_noise(name: str, parts: Sequence[str]) -> bool:
    return len(parts) > 2 and 2 * len(parts) > len(name.encode("utf-8", "replace"))


def _names(header: HeaderText) -> list[str]:
    return [header.title, *header.tags, *header.branches, header.remote, *header.shas]


def _in_header(term: Term, names: Sequence[str]) -> bool:
    if has_term(term, names):
        return True
    return (
        isinstance(term, Word) and term.remote is not None and any(_has(name, term.remote) for name in names)
    )


def has_term(term: Term, texts: Sequence[str]) -> bool:
    """Does one of the texts have it, whether or not it is wanted?"""
    match term:
        case Word():
            return any(_has(text, term.needle) or _has_piece(text, term.needle) for text in texts)
        case Phrase():
            return any(_has(text, term.needle) for text in texts) and (
                not term.exact or any(has_exact(normalised(text), term.exact) for text in texts)
            )
        case Fragment():
            if term.inside:
                return any(term.inside in token for text in texts for token in (*words(text), *pieces(text)))
            return any(term.exact in normalised(text) for text in texts)


def _has(text: str, needle: Needle) -> bool:
    return _has_run(words(text), needle.words, is_prefix=needle.is_prefix)


def _has_piece(text: str, needle: Needle) -> bool:
    """Is it one part of an identifier, or one identifier however that is joined?"""
    single = {needle.joined} if needle.joined else set()
    alone = needle.words[0] if len(needle.words) == 1 else None
    if any(_is_word(token, each, is_prefix=needle.is_prefix) for each in single for token in words(text)):
        return True
    single |= {alone} if alone is not None else set()
    return any(_is_word(token, each, is_prefix=needle.is_prefix) for each in single for token in pieces(text))


def _is_word(token: str, word: str, *, is_prefix: bool) -> bool:
    return token.startswith(word) if is_prefix else token == word


def _has_run(found: Sequence[str], run: Sequence[str], *, is_prefix: bool) -> bool:
    """Do the words of `run` stand side by side in `found`?"""
    for at in range(len(found) - len(run) + 1):
        here = found[at : at + len(run)]
        if list(here[:-1]) == list(run[:-1]) and _is_word(here[-1], run[-1], is_prefix=is_prefix):
            return True
    return False


def _is_about_removal(one: Filter) -> bool:
    return isinstance(one, FlagFilter) and one.flag == "removed"


def _thread_fits(one: Filter, header: HeaderText) -> bool:
    match one:
        case ShaFilter():
            return any(sha.startswith(prefix) for sha in header.shas for prefix in one.prefixes)
        case FlagFilter():
            return {
                "pinned": header.is_pinned,
                "private": header.is_private,
                "archived": header.is_archived,
            }[one.flag]
        case NameFilter():
            names: dict[str, tuple[str, ...]] = {
                "repo": (header.repository,),
                "branch": header.branches,
                "tag": header.tags,
                "agent": (header.agent,),
            }
            return any(_name_fits(asked, name) for asked in one.names for name in names[one.key])
        case TimeFilter():
            return True


def _message_fits(one: Filter, message: MessageText) -> bool:
    match one:
        case TimeFilter():
            at = time_of(message.order)
            return at is not None and (at >= one.at) == one.is_after
        case FlagFilter():
            return message.is_error
        case NameFilter():
            return any(_names_message(one.key, asked, message) for asked in one.names)
        case ShaFilter():
            return True


def _names_message(key: str, asked: Name, message: MessageText) -> bool:
    if key == "file":
        return _has_run(words(message.texts[TOOLS]), asked.words, is_prefix=asked.is_prefix)
    names = (message.role,) if key == "role" else message.tool_names
    return any(_name_fits(asked, name) for name in names)


def _name_fits(asked: Name, name: str) -> bool:
    found = words(name)
    if asked.is_whole:
        return found == list(asked.words)
    return _has_run(found, asked.words, is_prefix=asked.is_prefix)
