"""Three-way merges of texts and of plain values, by what each side changed since the common base.

Symmetric to the byte: handing the two sides over in the other order gives the same. A clash is an answer, never
a marker in the text: a second place that merged texts would sooner or later write one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

MOST_EDITS = 500
"""Inserted and removed lines that a comparison looks for; past that, all between the first and the last line
that differ counts as one change. The work grows with its square."""


class Missing:
    """The type of MISSING: no value there, which is something else than null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

Settle = Callable[[tuple[str, ...], Any, Any, Any], Any]
"""Given where (keys from the top), base, local and remote, the value that stands after a clash."""


def merge_texts(base: str, local: str, remote: str) -> str | None:
    """`base` with what both sides changed in it, line by line; None where they changed the same lines.

    Changes that touch each other are the same lines; equal changes are one. A line ends with its newline.
    """
    if remote in (local, base):
        return local
    if local == base:
        return remote
    lines = split_lines(base)
    changes = _merge_changes(
        list(_changes(lines, split_lines(local))), list(_changes(lines, split_lines(remote)))
    )
    if changes is None:
        return None
    merged: list[str] = []
    done = 0
    for start, end, replacement in changes:
        merged += lines[done:start]
        merged += replacement
        done = end
    return "".join(merged + lines[done:])


def split_lines(text: str) -> list[str]:
    """The lines of `text`, each with its line feed; no other character ends one."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


Change = tuple[int, int, list[str]]
"""Lines [start, end) of the base, and what stands there instead."""


def _merge_changes(local: list[Change], remote: list[Change]) -> list[Change] | None:
    """Both lists in order, equal changes once; None where two of them touch."""
    merged: list[Change] = []
    for change in sorted([*local, *remote], key=lambda change: change[:2]):
        if merged and change == merged[-1]:
            continue
        if merged and change[0] <= merged[-1][1]:
            return None
        merged.append(change)
    return merged


def _changes(base: list[str], side: list[str]) -> Iterator[Change]:
    """What turns `base` into `side`, in order, apart from each other by a line at least."""
    start = _common(base, side)
    tail = min(_common(base[::-1], side[::-1]), min(len(base), len(side)) - start)
    middle, other = base[start : len(base) - tail], side[start : len(side) - tail]
    done, done_other = 0, 0
    for index, index_other in [*_matches(middle, other), (len(middle), len(other))]:
        if (index, index_other) != (done, done_other):
            yield start + done, start + index, other[done_other:index_other]
        done, done_other = index + 1, index_other + 1


def _common(one: list[str], other: list[str]) -> int:
    """How many lines the two begin with alike."""
    for index, (line, line_of_other) in enumerate(zip(one, other, strict=False)):
        if line != line_of_other:
            return index
    return min(len(one), len(other))


def _matches(one: list[str], other: list[str]) -> list[tuple[int, int]]:
    """Pairs of equal lines along a shortest edit script, both indices growing; none past MOST_EDITS edits.

    The greedy algorithm of Myers (1986): `ends[k]` is how far down `one` the best path reaches on diagonal k.
    """
    if not one or not other:
        return []
    ends = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(len(one) + len(other), MOST_EDITS) + 1):
        trail.append(dict(ends))
        for k in range(-edits, edits + 1, 2):
            is_down = k == -edits or (k != edits and ends[k - 1] < ends[k + 1])
            x = ends[k + 1] if is_down else ends[k - 1] + 1
            while x < len(one) and 0 <= x - k < len(other) and one[x] == other[x - k]:
                x += 1
            ends[k] = x
            if x >= len(one) and x - k >= len(other):
                return _walk_back(trail, len(one), len(other))
    return []


def _walk_back(trail: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trail) - 1, -1, -1):
        ends, k = trail[edits], x - y
        is_down = k == -edits or (k != edits and ends[k - 1] < ends[k + 1])
        before_k = k + 1 if is_down else k - 1
        before_x = ends[before_k] if edits else 0
        before_y = before_x - before_k if edits else 0
        while x > before_x and y > before_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = before_x, before_y
    return pairs[::-1]


def merge_values(base: Any, local: Any, remote: Any, settle: Settle, path: tuple[str, ...] = ()) -> Any:
    """What stands after both sides' changes; MISSING: nothing does. Mappings are merged key by key.

    `settle` decides where both changed one value to two others; one side's removal never takes the other's change.
    """
    if same(local, remote) or same(remote, base):
        return local
    if same(local, base):
        return remote
    if isinstance(local, dict) and isinstance(remote, dict):
        older = base if isinstance(base, dict) else {}
        return merge_mappings(older, local, remote, settle, path)
    if local is MISSING or remote is MISSING:
        return remote if local is MISSING else local
    return settle(path, base, local, remote)


def merge_mappings(
    base: Mapping[str, Any],
    local: Mapping[str, Any],
    remote: Mapping[str, Any],
    settle: Settle,
    path: tuple[str, ...] = (),
) -> dict[str, Any]:
    """`merge_values` for each key of the three, in the order of `keys_of_both`."""
    merged: dict[str, Any] = {}
    for key in keys_of_both(base, local, remote):
        value = merge_values(
            base.get(key, MISSING), local.get(key, MISSING), remote.get(key, MISSING), settle, (*path, key)
        )
        if value is not MISSING:
            merged[key] = value
    return merged


def keys_of_both(base: Mapping[str, Any], local: Mapping[str, Any], remote: Mapping[str, Any]) -> list[str]:
    """Every key of either side: those of the base in its order, then the new ones by the alphabet."""
    both = local.keys() | remote.keys()
    return [*(key for key in base if key in both), *sorted(both - base.keys())]


def same(one: Any, other: Any) -> bool:
    """Are these the same plain value? Unlike `==`, 1 is not True and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def merge_sequences(base: Sequence[str], local: Sequence[str], remote: Sequence[str]) -> tuple[str, ...]:
    """Every text of either side once. Their order is that of the side that changed the order of the base's; what
    is new comes behind what it followed on its own side. Nothing is taken away."""
    sides = sorted({tuple(dict.fromkeys(local)), tuple(dict.fromkeys(remote))})
    skeleton = _skeleton(tuple(dict.fromkeys(base)), sides)
    merged = list(skeleton)
    for side in sides:
        place = 0
        for text in side:
            if text in merged:
                place = merged.index(text) + 1
            else:
                merged.insert(place, text)
                place += 1
    return tuple(merged)


def _skeleton(base: tuple[str, ...], sides: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The order to begin with: the first side that holds the base's texts in another order than it, else the base."""
    present = {text for side in sides for text in side}
    kept = tuple(text for text in base if text in present)
    for side in sides:
        theirs = tuple(text for text in side if text in kept)
        if theirs != tuple(text for text in kept if text in side):
            return theirs
    return kept
