"""What a list shows of a thread without opening its transcript."""

from __future__ import annotations

from msgspec import Struct


class Source(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an imported thread came from: the agent's name (`claude-code`) and its own session id."""

    agent: str
    session_id: str


class ThreadSummary(Struct, frozen=True, kw_only=True):
    """One row of `raddle list`; times are RFC 3339 text, empty or None where nobody knows."""

    id: str
    title: str = ""
    message_count: int = 0
    """Shown messages, sub-agents' included."""
    created_at: str = ""
    last_activity_at: str = ""
    workspace_root: str | None = None
    git_branch: str | None = None
    git_remote_url: str | None = None
    git_commits: tuple[str, ...] = ()
    """Every commit sha the thread knows, current and initial ones included."""
    git_branches: tuple[str, ...] = ()
    """Every branch name the thread knows (current, initial)."""
    provider: str | None = None
    model: str | None = None
    source: Source | None = None
    tags: tuple[str, ...] = ()
    is_pinned: bool = False
    visibility: str = "organization"
    is_private: bool = False
    is_archived: bool = False
    is_deleted: bool = False
    has_conflicts: bool = False
    """Were values set at once on several machines that nobody has settled yet?"""


def folder_of(row: ThreadSummary) -> str:
    """The repository or folder a thread belongs to, as a list shows it; empty where it has none."""
    return (row.git_remote_url or row.workspace_root or "").rstrip("/").rpartition("/")[2]


def flags_of(row: ThreadSummary) -> list[str]:
    """What is out of the ordinary with a thread, a word each."""
    flags = (
        ("private", row.is_private),
        ("public", row.visibility == "public"),
        ("archived", row.is_archived),
    )
    return [word for word, is_so in flags if is_so]


def shown_names(row: ThreadSummary) -> tuple[str, ...]:
    """What a row shows that search does not look at: folder, agent and marks."""
    return (folder_of(row), row.source.agent if row.source is not None else "", *flags_of(row))
