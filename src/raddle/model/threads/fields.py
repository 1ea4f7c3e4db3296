"""Field by field: which value shows when a register holds several, what counts as an edit, what is asked about.

The table of `docs/formats/thread-file.md` ("Registers") as code, and the only place that knows it: codec,
thread, adoption and deletion all read it from here. Rules look at the standing writes of one register and
write nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from raddle.model.threads.register import Register
from raddle.model.threads.visibility import narrowest

Shows = Callable[[Register], Any]


class Field(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    shows: Shows
    is_edit: bool = False
    """Does a write by a real device keep a thread that another device deleted without seeing it?"""
    asks: bool = False
    """Are several values a conflict that a person is told of?"""


def latest(register: Register) -> Any:
    """The value with the greatest (n, device)."""
    return register.latest.value


def first(register: Register) -> Any:
    """The value with the least (n, device): set once."""
    return register.first.value


def any_true(register: Register) -> bool:
    """True where any standing value says so."""
    return any(write.value is True for write in register.writes)


def all_true(register: Register) -> bool:
    """True only where every standing value says so."""
    return bool(register.writes) and all(write.value is True for write in register.writes)


def narrowest_visibility(register: Register) -> Any:
    """The least visible of the standing values."""
    return narrowest(write.value for write in register.writes)


def pending_job(register: Register) -> Any:
    """The latest entry, or None where any standing value cleared the job: cleared wins."""
    if any(write.value is None for write in register.writes):
        return None
    return register.latest.value


def all_drafts(register: Register) -> dict[str, str]:
    """The union of the targets; two texts for one target stand one under the other, oldest first."""
    drafts: dict[str, list[str]] = {}
    for write in register.writes:
        if isinstance(write.value, dict):
            for target, text in write.value.items():
                texts = drafts.setdefault(target, [])
                if isinstance(text, str) and text not in texts:
                    texts.append(text)
    return {target: "\n\n".join(texts) for target, texts in drafts.items()}


_LATEST = Field(shows=latest)
_LATEST_EDIT = Field(shows=latest, is_edit=True)
_FIRST = Field(shows=first)

FIELDS: dict[str, Field] = {
    "source": _FIRST,
    "created_at": _FIRST,
    "title": Field(shows=latest, is_edit=True, asks=True),
    "is_pinned": Field(shows=latest, is_edit=True, asks=True),
    "is_archived": _LATEST_EDIT,
    "active_policy": _LATEST,
    "orchestrator": _LATEST,
    "server_thread": _LATEST,
    "workspace_root": _LATEST,
    "cwd": _LATEST,
    "client_version": _LATEST,
    "git_remote_url": _LATEST,
    "model": _LATEST,
    "git": _LATEST,
    "git_initial": _FIRST,
    "agent_state": _LATEST,
    "updated_at": _LATEST,
    "last_activity_at": _LATEST,
    "visibility": Field(shows=narrowest_visibility, is_edit=True, asks=True),
    "is_shared_with_support": Field(shows=all_true, is_edit=True, asks=True),
    "is_private": Field(shows=any_true),
    "deleted": Field(shows=latest, asks=True),
}
"""Registers with a path of their own. (`deleted` shows through `Thread.is_deleted`, which needs the whole thread.)"""

FAMILIES: dict[str, Field] = {
    "branch": _LATEST_EDIT,
    "tag": Field(shows=any_true, is_edit=True),
    "commit": _FIRST,
    "gone": Field(shows=all_true, is_edit=True),
    "job": Field(shows=pending_job, is_edit=True),
    "draft": Field(shows=all_drafts, is_edit=True),
    "x": _LATEST,
}
"""Registers of a family: `tag/<tag>`, `branch/<message id>/name`, `x/<json pointer>`, …"""

COMPOSITES: dict[str, tuple[str, ...]] = {
    "model": ("provider", "model"),
    "git": ("git_branch", "git_current_commit_sha", "git_end_dirty"),
    "git_initial": ("git_initial_branch", "git_initial_commit_sha", "git_start_dirty"),
}
"""Registers that hold several plain fields at once, so that one snapshot is never half of two."""


def field_of(path: str) -> Field:
    """The rule of the register at `path`; a path of a newer version reads as the latest value."""
    found = FIELDS.get(path)
    if found is not None:
        return found
    return FAMILIES.get(path.partition("/")[0], _LATEST)
