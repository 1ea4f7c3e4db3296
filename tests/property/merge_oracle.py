"""What a replica must show, from the edits it has heard of and who had heard of what; no clock, no stamp.

An edit is a bit; what a replica has heard of is a mask of bits, and so is what an edit's author had heard of
when it was made. Of the edits of one path those *stand* that no other heard edit had seen. If this page knew
stamps it would repeat the kernel's mistakes instead of finding them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from raddle.model.ids import canonical_json
from raddle.model.threads.message import Message

EDITS_AGAINST_A_DELETE = ("title", "is_pinned", "is_archived", "visibility", "is_shared_with_support")
FAMILIES_AGAINST_A_DELETE = ("branch/", "tag/", "gone/", "job/", "draft/")
WIDTHS = ("private", "organization", "public")


class LawBroken(AssertionError):
    """A law of the merge does not hold; the message is the law."""


def law(holds: bool, words: str, *facts: object) -> None:
    """LawBroken with `words` and the facts of the case where the law does not hold."""
    if not holds:
        raise LawBroken(f"{words}: {facts}" if facts else words)


class Edit(NamedTuple):
    """One write. `path`: of the register, or `message/<id>`. `device`: empty for an importer, `~…` for a
    copy met for the first time. `seen`: what its author had heard of."""

    bit: int
    path: str
    value: Any
    device: str
    seen: int

    @property
    def size(self) -> int:
        """Bytes of what was said."""
        return len(canonical_json(self.value))


class History:
    """All edits that were ever made, by anyone."""

    def __init__(self) -> None:
        self.edits: list[Edit] = []
        self.by_path: dict[str, list[Edit]] = {}
        self.private_bits = 0

    def add(self, path: str, value: Any, device: str, seen: int) -> Edit:
        """Note an edit whose author had heard of `seen`."""
        edit = Edit(1 << len(self.edits), path, value, device, seen)
        self.edits.append(edit)
        self.by_path.setdefault(path, []).append(edit)
        if path == "is_private":
            self.private_bits |= edit.bit
        return edit

    def heard(self, path: str, heard: int) -> list[Edit]:
        """The edits of a path that somebody has heard of."""
        return [edit for edit in self.by_path.get(path, ()) if edit.bit & heard]

    def standing(self, path: str, heard: int) -> list[Edit]:
        """Those that no other heard edit of the path had seen."""
        edits = self.heard(path, heard)
        covered = 0
        for edit in edits:
            covered |= edit.seen
        return [edit for edit in edits if not edit.bit & covered]

    def values(self, path: str, heard: int) -> list[Any]:
        """What the standing edits say."""
        return [edit.value for edit in self.standing(path, heard)]

    def paths(self, heard: int, prefix: str) -> Iterator[str]:
        """The heard paths that start with `prefix`, in the order of their first edits."""
        for path, edits in self.by_path.items():
            if path.startswith(prefix) and any(edit.bit & heard for edit in edits):
                yield path

    def names(self, heard: int, family: str) -> Iterator[tuple[str, list[Any]]]:
        """(name, standing values) of each register of a family."""
        for path in self.paths(heard, family):
            yield path.removeprefix(family), self.values(path, heard)

    def messages(self, heard: int) -> dict[str, list[Message]]:
        """Id -> every form of the message that was heard of."""
        return {
            path.removeprefix("message/"): [edit.value for edit in self.heard(path, heard)]
            for path in self.paths(heard, "message/")
        }

    def is_private(self, heard: int) -> bool:
        """Private while any standing value says so."""
        return any(value is True for value in self.values("is_private", heard))

    def visibility(self, heard: int) -> str:
        """The narrowest of the standing values."""
        values = self.values("visibility", heard)
        return min(values, key=WIDTHS.index) if values else "organization"

    def true_names(self, heard: int, family: str, *, by_all: bool) -> list[str]:
        """The names of a family that are true by all standing values, or by any."""
        agree = all if by_all else any
        return sorted(
            name for name, values in self.names(heard, family) if agree(value is True for value in values)
        )

    def removed(self, heard: int) -> list[str]:
        """Removed only where all standing values say so."""
        return self.true_names(heard, "gone/", by_all=True)

    def jobs(self, heard: int) -> list[str]:
        """Launched, cleared by nobody among those that stand, and without a landed message."""
        landed = {message.job_id for forms in self.messages(heard).values() for message in forms}
        return sorted(
            name
            for name, values in self.names(heard, "job/")
            if all(value is not None for value in values) and name not in landed
        )

    def drafts(self, heard: int) -> dict[str, dict[str, set[str]]]:
        """Device -> target -> the texts that nobody has sent, cleared or replaced."""
        drafts: dict[str, dict[str, set[str]]] = {}
        for device, values in self.names(heard, "draft/"):
            for value in values:
                for target, text in (value or {}).items():
                    drafts.setdefault(device, {}).setdefault(target, set()).add(text)
        return drafts

    def is_deleted(self, heard: int, kept: dict[str, Message]) -> bool:
        """All who wrote last say so, and together they had heard of every edit that counts. `kept`: the form in
        which each message is held."""
        deletes = self.standing("deleted", heard)
        if not deletes or any(edit.value is None for edit in deletes):
            return False
        known = 0
        for edit in deletes:
            known |= edit.seen | edit.bit
        return not any(edit.bit & ~known for edit in self._edits_against_a_delete(heard, kept))

    def _edits_against_a_delete(self, heard: int, kept: dict[str, Message]) -> Iterator[Edit]:
        for path in self.by_path:
            if path.startswith("message/"):
                message = kept.get(path.removeprefix("message/"))
                yield from (
                    edit
                    for edit in self.heard(path, heard)
                    if message is not None and edit.device and not edit.value.is_purged
                    if (edit.device, edit.value.order) == (message.device, message.order)
                )
            elif path in EDITS_AGAINST_A_DELETE or path.startswith(FAMILIES_AGAINST_A_DELETE):
                yield from (edit for edit in self.standing(path, heard) if is_persons(edit))

    def conflict(self, path: str, heard: int) -> list[bytes]:
        """The different values that persons left standing (copies met for the first time, where no person wrote),
        as sorted JSON; empty where they agree."""
        standing = self.standing(path, heard)
        asked = [edit for edit in standing if is_persons(edit)] or [edit for edit in standing if edit.device]
        values = {canonical_json(edit.value) for edit in asked}
        return sorted(values) if len(values) > 1 else []


def is_persons(edit: Edit) -> bool:
    """Written by a person's machine, not by an importer or a copy met for the first time?"""
    return bool(edit.device) and not edit.device.startswith("~")
