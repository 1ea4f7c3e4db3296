"""The mark by which recalled text is known again in a transcript.

An agent that asks raddle gets stored text back, and its own transcript then holds a copy. Whoever writes the mark and
whoever leaves such copies out of the search must mean the same one.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

RECALLED_KEY = "recalled_by_raddle"
"""The first key of every answer that holds stored text."""
PRIVATE_KEY = "private_by_raddle"
"""The second one of an answer that tells of a private thread: who keeps that answer, keeps it private."""
_HEAD = 1600
"""Characters in which the mark stands where an agent leaves the order as it was: what it puts before is short."""
_LONGEST, _DEEPEST = 1 << 20, 6
_AS_CODEX_TELLS = r"(?:\s*Wall\ time:[^\n]{0,60}\n(?:[^\n]{0,60}\n){0,2}?\s*Output:)?"
_AS_GEMINI_TELLS = r"(?:Output\ too\ large\.[^\n]{0,1000}\n)?(?:<untrusted_context>\n)?"
_AS_AGENTS_TELL = f"(?:{_AS_CODEX_TELLS}{_AS_GEMINI_TELLS})"
_WRAPPERS = ("content", "text", "output", "result", "Ok", "structuredContent", "structured_content")
_WRAPPED = re.compile(
    _AS_AGENTS_TELL
    + rf"""(?:[\[{{:,\s]|\\[nrt]|\\*"(?:type|{"|".join(_WRAPPERS)})\\*"|\\*"(?=[\[{{]))*"""
    + rf"""\{{(?:\\[nrt]|\s)*\\*"{RECALLED_KEY}\\*"\s*:"""
)


def is_recalled(output: str) -> bool:
    """Is this tool output an answer of raddle's that holds stored text: as it was given, or wrapped in JSON by an
    agent, as `content`, `text` or the like, cut short or with its keys in another order? That the mark is named
    somewhere in it is not enough."""
    if RECALLED_KEY not in output:
        return False
    if _WRAPPED.match(output[:_HEAD]) is not None:
        return True
    told = re.match(_AS_AGENTS_TELL, output)
    return _is_marked((output if told is None else output[told.end() :]).lstrip(), _DEEPEST)


def holds_private(output: str) -> bool:
    """Is it such an answer, and tells of a private thread?"""
    return PRIVATE_KEY in output and is_recalled(output)


def _is_marked(plain: Any, deep: int) -> bool:
    """Has this JSON value the mark, or what it wraps?"""
    if isinstance(plain, str):
        if plain[:1] not in ("{", "[") or len(plain) > _LONGEST or RECALLED_KEY not in plain:
            return False
        try:
            plain = msgspec.json.decode(plain)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return False
    if not deep or not isinstance(plain, dict | list):
        return False
    if isinstance(plain, list):
        return any(_is_marked(inner, deep - 1) for inner in plain[:_DEEPEST])
    return RECALLED_KEY in plain or any(_is_marked(plain.get(name), deep - 1) for name in _WRAPPERS)
