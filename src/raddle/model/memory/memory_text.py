"""A long-term memory: a text, with what its front matter says of it. `memory/<namespace>/<key>`.

Front matter is YAML between two lines `---` at the top. A text without it, or with one that cannot be read, is a
memory as well: all of it is body.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.errors import BrokenFormat
from raddle.model.memory.documents import plain_of, texts
from raddle.model.memory.yaml_text import format_yaml, parse_yaml, rewrite_yaml
from raddle.model.three_way import same

_FENCE = "---"
_LONGEST_FRONT_MATTER = 64 * 1024
_LONGEST_DESCRIPTION = 160


class FrontMatter(Struct, frozen=True, kw_only=True):
    """What a memory says of itself. Times are RFC 3339; what is empty is left out."""

    LEFT_OUT = frozenset({"description", "tags", "created", "updated", "author"})

    description: str = ""
    tags: tuple[str, ...] = ()
    created: str = ""
    updated: str = ""
    author: str = ""
    unknown: dict[str, Any] = {}


class MemoryText(Struct, frozen=True, kw_only=True):
    """`head`: the front matter as it stood, fences and empty lines below it included; empty where there is none."""

    front_matter: FrontMatter
    body: str
    head: str = ""


def parse_memory(text: str) -> MemoryText:
    """`text` as front matter and body; nothing of it is lost, and nothing of it is refused."""
    head, yaml, body = _cut(text)
    plain = _plain(yaml) if head else None
    if plain is None:
        return MemoryText(front_matter=FrontMatter(), body=text)
    return MemoryText(front_matter=front_matter_of(plain), body=body, head=head)


def format_memory(memory: MemoryText) -> str:
    """The text of `memory`; a head that says what the front matter says stays as it was written."""
    plain = plain_of(memory.front_matter)
    yaml = _cut(memory.head)[1]
    old = _plain(yaml) or {}
    if memory.head and same(plain_of(front_matter_of(old)), plain):
        return memory.head + memory.body
    if not plain:  # a body that looks like front matter must not become it
        return memory.body if not parse_memory(memory.body).head else f"{_FENCE}\n{_FENCE}\n\n{memory.body}"
    written = rewrite_yaml(yaml, plain, "front matter") if old else format_yaml(plain)
    return f"{_FENCE}\n{written}{_FENCE}\n\n{memory.body}"


def _plain(yaml: str) -> dict[str, Any] | None:
    """The fields between two fences (nothing: none); None where these are no fields."""
    try:
        plain = parse_yaml(yaml, "front matter") if yaml.strip() else None
    except BrokenFormat:
        return None
    if plain is None:
        return {}
    return plain if isinstance(plain, dict) else None


def front_matter_of(plain: dict[str, Any]) -> FrontMatter:
    """A mapping as front matter. What fits no field is kept as unknown; a single tag is a list of one."""
    fields: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    for name, value in plain.items():
        if name == "tags" and value is not None:
            try:
                fields[name] = texts(value)
            except BrokenFormat:
                unknown[name] = value
        elif name in FrontMatter.LEFT_OUT and isinstance(value, str):
            fields[name] = value
        else:
            unknown[name] = value
    return FrontMatter(**fields, unknown=unknown)


def described(memory: MemoryText) -> str:
    """One line on what it holds: what it says of itself, else its first line that says something; 160 characters."""
    told = memory.front_matter.description.strip() or next(
        filter(None, map(_meaning, memory.body.splitlines())), ""
    )
    line = " ".join(told.split())
    return line if len(line) <= _LONGEST_DESCRIPTION else line[: _LONGEST_DESCRIPTION - 1].rstrip() + "…"


def changed_front_matter(memory: MemoryText, **fields: Any) -> MemoryText:
    """`memory` with other values in its front matter."""
    return msgspec.structs.replace(
        memory, front_matter=msgspec.structs.replace(memory.front_matter, **fields)
    )


def _meaning(line: str) -> str:
    line = line.strip()
    if line.startswith((_FENCE, "```", "<!--")):
        return ""
    return line.lstrip("#").strip()


def _cut(text: str) -> tuple[str, str, str]:
    """(head, the YAML in it, body) of a text that opens with front matter; else ("", "", text)."""
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text[:_LONGEST_FRONT_MATTER])
    if not lines or lines[0].strip() != _FENCE:
        return "", "", text
    for index, line in enumerate(lines[1:], 1):
        if line.strip() == _FENCE:
            end = len("".join(lines[: index + 1]))
            while text[end : end + 1] == "\n":
                end += 1
            return text[:end], "".join(lines[1:index]), text[end:]
    return "", "", text
