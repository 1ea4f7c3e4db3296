"""Two versions of a memory or a summary as one: by lines, and a memory's front matter field by field.

What both changed at one place stays whole on both sides: the later version is the value, the other one stands
beside it. No text ever holds a marker of a conflict.
"""

from __future__ import annotations

from collections.abc import Callable

from raddle.model.clock import parse_time
from raddle.model.memory.documents import plain_of
from raddle.model.memory.memory_text import FrontMatter, MemoryText, format_memory, parse_memory
from raddle.model.memory.merge_sides import Settled, SideName, earliest, latest, pick, replaced, settled_field
from raddle.model.three_way import merge_mappings, merge_sequences, merge_texts, same


def merge_memories(base: str | None, local: str, remote: str, later: SideName) -> str | None:
    """Both versions as one; None where they clash."""
    before, here, there = parse_memory(base or ""), parse_memory(local), parse_memory(remote)
    settle = Settled(later=later)
    front_matter = _merge_front_matter(before.front_matter, here.front_matter, there.front_matter, settle)
    body = merge_texts(before.body, here.body, there.body)
    if body is None or settle.clashes:
        return None
    first, second = (here, there) if later == "local" else (there, here)
    return format_memory(_with_head(first, second, front_matter, body))


def time_of_memory(text: str) -> int | None:
    """When its front matter says it was last written, in microseconds; None where it does not say."""
    return parse_time(parse_memory(text).front_matter.updated)


def _with_head(first: MemoryText, second: MemoryText, front_matter: FrontMatter, body: str) -> MemoryText:
    """The head of the one that says it already, else of the first that has one, for its comments."""
    for memory in (first, second):
        if memory.head and same(plain_of(memory.front_matter), plain_of(front_matter)):
            return replaced(memory, body=body)
    return MemoryText(front_matter=front_matter, body=body, head=first.head or second.head)


def _merge_front_matter(
    base: FrontMatter, local: FrontMatter, remote: FrontMatter, settle: Settled
) -> FrontMatter:
    # Who wrote last, and when, is no clash: both did, and one of them was the last.
    of_the_later: Callable[[str, str], str] = lambda one, other: one if settle.later == "local" else other  # noqa: E731
    return FrontMatter(
        description=settled_field(
            settle, "description", base.description, local.description, remote.description
        ),
        tags=pick(base.tags, local.tags, remote.tags, lambda one, other: _merge_tags(base.tags, one, other)),
        created=pick(base.created, local.created, remote.created, earliest),
        updated=pick(base.updated, local.updated, remote.updated, latest),
        author=pick(base.author, local.author, remote.author, of_the_later),
        unknown=merge_mappings(base.unknown, local.unknown, remote.unknown, settle),
    )


def _merge_tags(base: tuple[str, ...], local: tuple[str, ...], remote: tuple[str, ...]) -> tuple[str, ...]:
    """Every tag of either side but those that one of them took off."""
    taken_off = {tag for tag in base if tag not in local or tag not in remote}
    return tuple(tag for tag in merge_sequences(base, local, remote) if tag not in taken_off)
