"""The one kind of register: a value, who wrote it when, and what each writer had seen.

Everything about a thread that can change is a register under a path (`title`, `tag/urgent`, `job/42`). A
register keeps *every* value that nobody has settled: two devices that write without having seen each
other leave two, and the next write by anyone who saw both replaces them. What shows of several is decided
by the field's rule (`fields.py`), never here, and never by rewriting: a join invents nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from raddle.model.ids import canonical_json


class Write(NamedTuple):
    """One value that stands in a register. Order among writes is (`n`, `device`)."""

    n: int
    """The writer's clock, in microseconds."""
    device: str
    """8 hex; empty for an importer; `~` and a hash for a copy met for the first time."""
    value: Any


class Register(NamedTuple):
    """`writes`: the values that stand, by (n, device), at most one a device; `saw`: the newest write of each
    device that this register has seen (its own writes included).

    Nothing stands where two sides each have seen, and dropped, what the other holds: only a device that lost its
    memory and kept its id does that. Such a register reads as null, and the next write fills it.
    """

    writes: tuple[Write, ...]
    saw: Mapping[str, int]

    @property
    def latest(self) -> Write:
        """The standing write with the greatest (n, device)."""
        return self.writes[-1] if self.writes else Write(self.clock, "", None)

    @property
    def first(self) -> Write:
        """The standing write with the least (n, device)."""
        return self.writes[0] if self.writes else Write(self.clock, "", None)

    @property
    def clock(self) -> int:
        """The greatest n this register knows of, standing or overwritten."""
        return max(self.saw.values(), default=0)

    @property
    def values(self) -> list[Any]:
        """The values that stand, by (n, device)."""
        return [write.value for write in self.writes]


def one_write(n: int, device: str, value: Any) -> Register:
    """A register that has seen nothing but this write."""
    return Register((Write(n, device, value),), {device: n})


def overwrite(register: Register | None, n: int, device: str, value: Any) -> Register:
    """The register after an edit by someone who saw all of `register`: one value stands, all are seen."""
    if register is None:
        return one_write(n, device, value)
    return Register((Write(n, device, value),), {**register.saw, device: n})


def join_registers(one: Register, other: Register) -> Register:
    """Both histories in one: commutative, associative, idempotent.

    A value stands where both sides hold it, or one side holds it and the other has not seen it. Returns
    `one` itself where `other` adds nothing.
    """
    if one is other:
        return one
    standing: dict[tuple[int, str], Write] = {}
    theirs = {(write.n, write.device): write for write in other.writes}
    for write in one.writes:
        twin = theirs.pop((write.n, write.device), None)
        if twin is not None:
            standing[write.n, write.device] = _greater(write, twin)
        elif other.saw.get(write.device, -1) < write.n:
            standing[write.n, write.device] = write
    standing.update(
        (stamp, write) for stamp, write in theirs.items() if one.saw.get(write.device, -1) < write.n
    )
    news = {device: n for device, n in other.saw.items() if n > one.saw.get(device, -1)}
    writes = tuple(standing[stamp] for stamp in sorted(standing))
    if not news and len(writes) == len(one.writes) and all(map(operator.is_, writes, one.writes)):
        return one
    return Register(writes, {**one.saw, **news})


def _greater(one: Write, other: Write) -> Write:
    """Two values under one stamp come from a broken writer: the greater canonical JSON, on every device."""
    if one.value is other.value or (type(one.value) is type(other.value) is str and one.value == other.value):
        return one
    # Not by ==: to Python 1, 1.0 and True are equal, and each device would keep its own.
    return max(one, other, key=lambda write: canonical_json(write.value))


def register_of(writes: Iterable[tuple[int, str, Any]], saw: Mapping[str, int] | None = None) -> Register:
    """A register from stored parts, put into its canonical form; `saw` always covers what stands."""
    ordered = sorted((Write(n, device, value) for n, device, value in writes), key=lambda write: write[:2])
    seen = dict(saw or {})
    for write in ordered:
        if seen.get(write.device, -1) < write.n:
            seen[write.device] = write.n
    return Register(tuple(ordered), seen)
