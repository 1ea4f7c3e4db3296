"""JSON that a strict reader refuses, read with as little lost as can be, each repair named.

Half UTF-8 and lone surrogates become U+FFFD, NaN and numbers out of range become their text, nesting past
`DEEPEST` levels is cut to U+FFFD. Control characters inside texts are taken as they stand, unless a caller
knows that whoever wrote the bytes never writes them. Bytes that are no JSON value even so are BrokenFormat.
"""

from __future__ import annotations

import json
import re
from typing import Any

from raddle.model.errors import BrokenFormat

DEEPEST = 200
"""Levels of nesting that are kept: more than any program writes on purpose, few enough for every reader."""

NOT_UTF8 = "bytes that are not UTF-8"
"""The repair of them; what is no whole file does not say where they stand."""
_LONGEST_INTEGER = 1000
"""Digits; Python refuses to count much farther."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def decode_tolerantly(
    data: bytes, *, with_controls: bool = True, is_whole: bool = False
) -> tuple[Any, list[str]]:
    """(value, repairs) of one JSON value. BrokenFormat says where it stops being JSON.

    `is_whole`: it is a file, and no part of one, so that a place in it says something to who reads that.
    `with_controls` False: a control character (below U+0020) inside a text is where it stops.
    """
    repairs: list[str] = []
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        repairs.append(f"{NOT_UTF8} at offset {error.start}" if is_whole else NOT_UTF8)
    text = text.removeprefix("\ufeff")
    shallow = _cut_deep(text)
    if shallow is not text:
        text = shallow
        repairs.append(f"nesting deeper than {DEEPEST} levels was cut")

    def out_of_range(token: str) -> str:
        repairs.append(f"{token[:20]} is not a number that JSON can hold")
        return token

    def parse_float(token: str) -> Any:
        number = float(token)
        return out_of_range(token) if number in (float("inf"), float("-inf")) else number

    def parse_int(token: str) -> Any:
        return int(token) if len(token) < _LONGEST_INTEGER else out_of_range(token)

    try:
        value = json.loads(
            text,
            strict=not with_controls,
            parse_constant=out_of_range,
            parse_float=parse_float,
            parse_int=parse_int,
        )
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise BrokenFormat(f"not JSON: {what} at line {error.lineno}, column {error.colno}") from error
    return _without_surrogates(value, repairs), repairs


def _without_surrogates(value: Any, repairs: list[str]) -> Any:
    if isinstance(value, str):
        if _SURROGATE.search(value) is None:
            return value
        repairs.append("a lone surrogate")
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item, repairs) for item in value]
    if isinstance(value, dict):
        return {
            _without_surrogates(key, repairs): _without_surrogates(item, repairs)
            for key, item in value.items()
        }
    return value


def _cut_deep(text: str) -> str:
    """`text` with every value past DEEPEST levels put as U+FFFD; `text` itself where there is none."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return text
    depth, cut_from = 0, -1
    kept: list[str] = []
    copied = 0
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                cut_from = token.start()
        elif mark in "]}":
            depth -= 1
            if depth == DEEPEST and cut_from >= 0:
                kept += [text[copied:cut_from], '"\ufffd"']
                copied, cut_from = token.end(), -1
    if cut_from >= 0:  # torn inside the depth: no reader may be asked to go down there
        return "".join([*kept, text[copied:cut_from], '"\ufffd"'])
    return "".join([*kept, text[copied:]]) if kept else text
