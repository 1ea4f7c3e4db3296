"""JSON that a person wrote, changed where it has to be and nowhere else: order, indentation and comments stay.

Decoding and encoding again would lay out anew what somebody laid out by hand. So only the places of values are worked
out here, and text is put in or taken out between them; whoever asks decodes the outcome and compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from raddle.model.errors import BrokenFormat

Path = Sequence[str | int]
"""Keys and places from the root to a value."""

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING = r'"(?:[^"\\]|\\.)*"'
_TRAILING = re.compile(rf"({_STRING}|[\w}}\]])(\s*),(?=\s*[}}\]])|({_STRING})", re.DOTALL)
_PLAIN = re.compile(r'"(?:[^"\\]|\\.)*"|[-+.0-9A-Za-z]+')
_USUAL_UNIT = "  "


class _Node(NamedTuple):
    """A value in the text, from `start` to `end`, and the values inside."""

    start: int
    end: int
    inner: list[_Inner]

    def place_of(self, part: str | int) -> int:
        """Where it is among the values inside; of several with one name the last, which is the one that counts."""
        if isinstance(part, int):
            return part
        return max(place for place, one in enumerate(self.inner) if one.name == part)


class _Inner(NamedTuple):
    """A value inside another; `start`: where its key begins, or it itself in a list."""

    name: str
    start: int
    node: _Node


def decoded(text: str, *, has_comments: bool = False, has_trailing_commas: bool = False) -> Any:
    """What the text says; BrokenFormat where it is no JSON. `has_comments`: they may stand in it; the other: a comma
    may stand behind a last value, too."""
    try:
        return json.loads(_strict(text, has_comments=has_comments, has_trailing_commas=has_trailing_commas))
    except RecursionError as error:
        raise BrokenFormat("it is nested too deeply", "mend it by hand") from error
    except ValueError as error:
        raise BrokenFormat(f"it is not valid JSON: {error}", "mend it by hand, then try again") from error


def key_given_twice(text: str, *, has_comments: bool = False, has_trailing_commas: bool = False) -> str:
    """A key that stands twice in one object of the text, which `decoded` reads; empty where none does."""
    twice: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs]
        twice.extend(key for key in keys if keys.count(key) > 1)

    strict = _strict(text, has_comments=has_comments, has_trailing_commas=has_trailing_commas)
    json.loads(strict, object_pairs_hook=look)
    return next(iter(twice), "")


def _strict(text: str, *, has_comments: bool, has_trailing_commas: bool) -> str:
    if has_comments:
        text = _COMMENT.sub(_kept, text)
    return _TRAILING.sub(_without_comma, text) if has_trailing_commas else text


def _kept(found: re.Match[str]) -> str:
    return found[1] or " "


def _without_comma(found: re.Match[str]) -> str:
    return found[3] or found[1] + found[2]


def with_value(text: str, path: Path, value: Any) -> str:
    """The text, which `decoded` reads, with `value` at the end of the object or list at `path[:-1]`; the last part of
    the path is its key (in a list, anything)."""
    node = _at(text, path[:-1])
    key = "" if text[node.start] == "[" else f"{json.dumps(path[-1], ensure_ascii=False)}: "
    last = node.inner[-1].node.end if node.inner else node.start + 1
    comma = "," if node.inner else ""
    if node.inner and (trailing := _comma_after(text, last)):
        last, comma = trailing, ""
    if node.inner and "\n" not in text[node.start : node.end]:
        return f"{text[:last]}{comma} {key}{json.dumps(value, ensure_ascii=False)}{text[last:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    unit, around = _unit(text), _indent(text, node.start)
    inside = _indent(text, node.inner[-1].start) if node.inner else around + unit
    spread = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + inside)
    close = node.end - 1
    end = max(len(text[:close].rstrip()), last)  # past a comment that stands behind the last value
    tail = text[end:close] if "\n" in text[end:close] else newline + around
    return f"{text[:last]}{comma}{text[last:end]}{newline}{inside}{key}{spread}{tail}{text[close:]}"


def with_other_value(text: str, path: Path, value: Any) -> str:
    """The text with `value`, on one line, in the place of the value at `path`."""
    node = _at(text, path)
    return text[: node.start] + json.dumps(value, ensure_ascii=False) + text[node.end :]


def without(text: str, path: Path) -> str:
    """The text without the value at `path`, its key and its comma; comments beside it stay."""
    node = _at(text, path[:-1])
    place = node.place_of(path[-1])
    one = node.inner[place]
    start, end = one.start, one.node.end
    if place < len(node.inner) - 1:
        return text[:start].rstrip() + text[_after_blank(text, end) + 1 :]
    if place:
        comma = _after_blank(text, node.inner[place - 1].node.end)
        return text[:comma] + text[comma + 1 : start].rstrip() + text[end:]
    end = _comma_after(text, end) or end
    is_alone = not (text[node.start + 1 : start] + text[end : node.end - 1]).strip()
    if is_alone:
        return text[: node.start + 1] + text[node.end - 1 :]
    return text[:start].rstrip() + text[end:]


def _at(text: str, path: Path) -> _Node:
    node = _read(text, _after_blank(text, 0))
    for part in path:
        node = node.inner[node.place_of(part)].node
    return node


def _read(text: str, at: int) -> _Node:
    """The value that begins at `at`."""
    if text[at] not in "{[":
        found = _PLAIN.match(text, at)
        assert found is not None  # it was decoded before
        return _Node(at, found.end(), [])
    is_list, start = text[at] == "[", at
    inner: list[_Inner] = []
    at = _after_blank(text, at + 1)
    while text[at] not in "}]":
        begin, name = at, ""
        if not is_list:
            key = _read(text, at)
            name = json.loads(text[key.start : key.end])
            at = _after_blank(text, _after_blank(text, key.end) + 1)
        node = _read(text, at)
        inner.append(_Inner(name, begin, node))
        at = _after_blank(text, node.end)
        if text[at] == ",":
            at = _after_blank(text, at + 1)
    return _Node(start, at + 1, inner)


def _comma_after(text: str, at: int) -> int:
    """The place behind the comma that comes next; 0 where none does."""
    after = _after_blank(text, at)
    return after + 1 if text[after] == "," else 0


def _after_blank(text: str, at: int) -> int:
    """Past white space and comments."""
    found = _BLANK.match(text, at)
    assert found is not None  # it matches nothing, too
    return found.end()


def _unit(text: str) -> str:
    """What one level is indented by: as the first one is."""
    root = _read(text, _after_blank(text, 0))
    if not root.inner:
        return _USUAL_UNIT
    return _indent(text, root.inner[0].start) or _USUAL_UNIT


def _indent(text: str, at: int) -> str:
    """The white space that the line of `at` begins with."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]
