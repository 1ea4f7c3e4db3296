"""When a thread counts as deleted: a delete holds against what it had seen, and against nothing newer.

A server that keeps only rows asks the same with what it keeps, so the rule stands here and not in `Thread`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from raddle.model.threads.fields import field_of
from raddle.model.threads.register import Register


def deleted_at(register: Register | None, edit_clock: Callable[[], Mapping[str, int]]) -> str | None:
    """What the register `deleted` comes to beside the edits of the thread (asked for only where it matters):
    when it was deleted, None where it is not."""
    if register is None or not register.writes:
        return None
    seen: dict[str, int] = {}
    for write in register.writes:
        if not isinstance(write.value, dict):
            return None
        for device, n in _seen_by(write.value).items():
            seen[device] = max(n, seen.get(device, -1))
    if any(n > seen.get(device, -1) for device, n in edit_clock().items()):
        return None
    at = register.latest.value.get("at")
    return at if isinstance(at, str) else ""


def edits_of_registers(registers: Mapping[str, Register]) -> dict[str, int]:
    """Device -> the newest write of its that counts as an edit."""
    edits: dict[str, int] = {}
    for path, register in registers.items():
        if field_of(path).is_edit:
            for write in register.writes:
                note_edit(edits, write.device, write.n)
    return edits


def is_real_device(device: str) -> bool:
    """Is this a person's machine, and not an importer (empty) or a copy met for the first time (`~…`)?"""
    return bool(device) and not device.startswith("~")


def _seen_by(deletion: Mapping[str, Any]) -> dict[str, int]:
    """What a delete knew; whatever is no clock says nothing."""
    seen = deletion.get("seen")
    return {device: n for device, n in seen.items() if type(n) is int} if isinstance(seen, dict) else {}


def note_edit(edits: dict[str, int], device: str, n: int) -> None:
    """Note an edit of `device` at `n`, where it is a person's machine."""
    if is_real_device(device) and n > edits.get(device, -1):
        edits[device] = n
