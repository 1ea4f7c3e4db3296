"""YAML as a store uses it: texts, numbers, booleans, null, lists and mappings; and rewriting without losing comments.

The types of plain scalars are those that YAML 1.1 readers give them, but for times, which stay texts. Anchors,
tags of other types and keys that are no scalars are refused: a few bytes of them can stand for gigabytes, or for
code. A second reader beside this one would see another value in `no` or `2026-11-30`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from raddle.model.errors import BrokenFormat, InvalidInput
from raddle.model.three_way import same

LARGEST = 1 << 20
"""Characters of one document; the largest a store writes by itself has a few thousand."""
DEEPEST = 100
"""Levels of nesting."""

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(word for true in ("true", "yes", "on") for word in (true, true.title(), true.upper()))
_FALSE = frozenset(word for false in ("false", "no", "off") for word in (false, false.title(), false.upper()))
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})\Z", re.ASCII)
_FLOAT = re.compile(r"[-+]?[0-9]{1,40}\.[0-9]{0,40}(?:[eE][-+][0-9]{1,3})?\Z", re.ASCII)
_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
_END = object()


def parse_yaml(text: str, what: str) -> Any:
    """The plain value of one document (empty: None); BrokenFormat names `what` and says where it stops being YAML."""
    return _read(text, what)[0]


def format_yaml(plain: Any) -> str:
    """`plain` in block style, two spaces a level, keys in their order; InvalidInput where a text is no Unicode."""
    import yaml  # 20 ms, which most commands need not spend  # noqa: PLC0415

    try:
        text: str = yaml.dump(
            plain,
            Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=False,
            width=1 << 20,
        )
        text.encode()
    except (UnicodeEncodeError, yaml.YAMLError) as error:
        raise InvalidInput("a text holds what no file can: half a character", "take it out") from error
    return text


def rewrite_yaml(old: str, plain: dict[str, Any], what: str) -> str:
    """`old` with the values of `plain` in it: entries at the top that did not change keep their bytes, their comments
    and their place; the others are written anew, new ones last."""
    before, starts = _read(old, what)
    if isinstance(before, dict) and same(before, plain):
        return old
    spliced = _spliced(old, before, plain, starts) if isinstance(before, dict) else None
    if spliced is not None:
        try:
            if same(_read(spliced, what)[0], plain):
                return spliced
        except BrokenFormat:
            return format_yaml(plain)
    return format_yaml(plain)


def _spliced(
    old: str, before: dict[str, Any], plain: dict[str, Any], starts: list[tuple[str, int]]
) -> str | None:
    """`old` with each changed entry's lines replaced; None where its entries do not stand one below the other."""
    lines = old.splitlines(keepends=True) if not re.search("[\x85\u2028\u2029\x0b\x0c\x1c-\x1e]", old) else []
    if not lines or not starts or len(starts) != len(before):
        return None
    if not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    written = lines[: starts[0][1]]
    for index, (key, start) in enumerate(starts):
        end = starts[index + 1][1] if index + 1 < len(starts) else len(lines)
        body_end = end
        while body_end > start + 1 and (
            not lines[body_end - 1].strip() or lines[body_end - 1].startswith("#")
        ):
            body_end -= 1  # what precedes the next entry belongs to it
        if key in plain and same(before[key], plain[key]):
            written += lines[start:body_end]
        elif key in plain:
            written.append(format_yaml({key: plain[key]}))
        written += lines[body_end:end]
    written += [format_yaml({key: value}) for key, value in plain.items() if key not in before]
    return "".join(written)


def _read(text: str, what: str) -> tuple[Any, list[tuple[str, int]]]:
    """The value, and of a mapping at the top each key with its line, where every key begins one."""
    import yaml  # noqa: PLC0415

    if len(text) > LARGEST:
        raise BrokenFormat(f"{what} is larger than a store's YAML ever is")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Reader(yaml.parse(text.removeprefix("\ufeff"), Loader=loader), what).document()
    except yaml.MarkedYAMLError as error:
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise BrokenFormat(f"{what} is not YAML: {error.problem or error.context}{where}") from error
    except yaml.YAMLError as error:
        raise BrokenFormat(f"{what} is not YAML: {str(error).splitlines()[0]}") from error


class _Reader:
    """Turns the parser's events into plain values; the depth is bounded before anything is built."""

    def __init__(self, events: Iterator[Any], what: str) -> None:
        self._events = events
        self._what = what
        self._starts: list[tuple[str, int]] = []

    def document(self) -> tuple[Any, list[tuple[str, int]]]:
        value: Any = None
        count = 0
        for event in self._events:
            name = type(event).__name__
            if name == "DocumentStartEvent":
                count += 1
                if count > 1:
                    raise BrokenFormat(f"{self._what} holds more than one YAML document")
            elif name not in ("StreamStartEvent", "StreamEndEvent", "DocumentEndEvent"):
                value = self._value(event, 0)
        is_block = all(line >= 0 for _, line in self._starts)
        return value, self._starts if is_block else []

    def _value(self, event: Any, depth: int) -> Any:
        name = type(event).__name__
        if name in ("SequenceEndEvent", "MappingEndEvent"):
            return _END
        if name == "AliasEvent" or event.anchor is not None:
            raise self._refused("an anchor", event)
        if depth > DEEPEST:
            raise self._refused(f"more than {DEEPEST} levels", event)
        if name == "ScalarEvent":
            return self._scalar(event)
        if event.tag not in (None, "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map", "!"):
            raise self._refused(f"the tag {event.tag[:60]}", event)
        if name == "SequenceStartEvent":
            return list(iter(lambda: self._value(next(self._events), depth + 1), _END))
        return self._mapping(depth)

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for event in self._events:
            name = type(event).__name__
            if name == "MappingEndEvent":
                return mapping
            if name != "ScalarEvent" or event.anchor is not None:
                raise self._refused("a key that is no text", event)
            key: str = event.value
            if key in mapping:
                raise self._refused(f"the key {key[:60]!r} twice", event)
            if depth == 0:
                is_at_margin = event.start_mark.column == 0 and event.start_mark.line == event.end_mark.line
                self._starts.append((key, event.start_mark.line if is_at_margin else -1))
            mapping[key] = self._value(next(self._events), depth + 1)
        return mapping

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if not event.implicit[0]:
            if event.tag not in _TEXT_TAGS:
                raise self._refused(f"the tag {event.tag[:60]}", event)
            return text
        if text in _NULLS:
            return None
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        if _INTEGER.match(text):
            return int(text)
        return float(text) if _FLOAT.match(text) else text

    def _refused(self, thing: str, event: Any) -> BrokenFormat:
        return BrokenFormat(
            f"{self._what} uses {thing}, which no store's YAML does (line {event.start_mark.line + 1})"
        )
