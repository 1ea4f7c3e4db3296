"""Registers as the plain fields of a thread file, both ways; the one place that knows where each stands.

`plain_of` lays what shows of a thread's registers out as the seed's own JSON; `registers_shown` reads the
values back, path by path. The two are each other's proof: a stamp may be written short only where the plain
field reads back exactly the register's one value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raddle.model.threads.fields import COMPOSITES, field_of
from raddle.model.threads.thread import Thread
from raddle.model.threads.visibility import ORGANIZATION, VISIBILITIES, parse_visibility

_TOP = (
    "source",
    "created_at",
    "active_policy",
    "orchestrator",
    "server_thread",
    "workspace_root",
    "cwd",
    "client_version",
    "git_remote_url",
    "updated_at",
    "last_activity_at",
    "is_private",
    "visibility",
    "is_shared_with_support",
)
_METADATA = ("title", "is_pinned", "is_archived")
_FLAGS = frozenset({"is_pinned", "is_archived", "is_private", "is_shared_with_support"})
_COMPOSITE_PARTS = frozenset(part for parts in COMPOSITES.values() for part in parts)

TOP_LEVEL = (
    frozenset(_TOP)
    | _COMPOSITE_PARTS
    | {
        "id",
        "version",
        "deleted_at",
        "conversation",
        "removed_messages",
        "drafts",
        "pending_jobs",
        "git_commits",
    }
    | {"agent_state", "metadata", "stamps", "format", "loom_version", "pending_job", "draft"}
)
"""Every top-level key that raddle reads; any other is kept as a register `x/<key>`."""
_METADATA_KEYS = frozenset(_METADATA) | {"tags", "branches", "extra"}


def plain_of(thread: Thread) -> dict[str, Any]:
    """The file's JSON without messages and stamps, in the file's key order; absent optionals are left out."""
    shows = thread.shows
    plain: dict[str, Any] = {"id": thread.id, "version": thread.version}
    for name in ("created_at", "updated_at", "last_activity_at"):
        plain[name] = thread.time(name) or "1970-01-01T00:00:00.000000Z"
    plain["deleted_at"] = thread.deleted_at
    for name in ("workspace_root", "cwd", "client_version", "source"):
        plain[name] = shows(name)
    for name in ("git_branch",):
        plain[name] = thread.plain(name)
    plain["git_remote_url"] = shows("git_remote_url")
    for name in ("git_initial_branch", "git_initial_commit_sha", "git_current_commit_sha"):
        plain[name] = thread.plain(name)
    plain["git_commits"] = thread.git_commits or None
    for name in ("git_start_dirty", "git_end_dirty", "provider", "model"):
        plain[name] = thread.plain(name)
    for name in ("active_policy", "orchestrator", "server_thread"):
        plain[name] = shows(name)
    plain["conversation"] = {"messages": []}
    plain["removed_messages"] = thread.removed_messages or None
    plain["drafts"] = thread.drafts or None
    plain["pending_jobs"] = _pending_jobs(thread) or None
    plain["agent_state"] = shows("agent_state") or {
        "kind": "waiting_for_user_input",
        "retries": 0,
        "last_error": None,
        "pending_tool_calls": [],
    }
    plain["metadata"] = {
        "title": thread.title or None,
        "tags": thread.tags,
        "is_pinned": thread.is_pinned,
        "is_archived": thread.is_archived,
        "branches": {name: dict(sorted(marks.items())) for name, marks in thread.branch_marks.items()}
        or None,
    }
    plain["is_private"] = thread.is_private
    plain["visibility"] = thread.visibility
    plain["is_shared_with_support"] = thread.is_shared_with_support
    _lay_unknown(thread, plain)
    plain["metadata"] = {key: value for key, value in plain["metadata"].items() if value is not None}
    return {key: value for key, value in plain.items() if value is not None}


def _pending_jobs(thread: Thread) -> list[dict[str, Any]]:
    return [
        {"job_id": job.job_id, **(thread.shows(f"job/{job.job_id}") or {})} for job in thread.pending_jobs
    ]


def _lay_unknown(thread: Thread, plain: dict[str, Any]) -> None:
    for pointer, register in sorted(thread.family("x")):
        value = field_of("x/").shows(register)
        keys = [_unescape(key) for key in pointer.split("/")]
        if value is None or (len(keys) == 1 and keys[0] in plain):
            continue
        at = plain
        for key in keys[:-1]:
            inner = at.setdefault(key, {})
            if not isinstance(inner, dict):
                break
            at = inner
        else:
            at.setdefault(keys[-1], value)


def registers_shown(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Path -> value of every register that the plain fields of a file show (British spelling, `loom_version`,
    `pending_job` and unknown keys included); what does not fit its field's type is kept as it is read.
    """
    shown = _top_level(plain)
    for family, key in (("commit", "git_commits"), ("gone", "removed_messages")):
        shown |= {f"{family}/{name}": True for name in _texts(plain.get(key))}
    shown |= _jobs_and_drafts(plain)
    shown |= _metadata(_object(plain.get("metadata")))
    shown |= {f"x/{_escape(key)}": value for key, value in plain.items() if key not in TOP_LEVEL}
    conversation = _object(plain.get("conversation"))
    shown |= {
        f"x/conversation/{_escape(key)}": value for key, value in conversation.items() if key != "messages"
    }
    return shown


def _top_level(plain: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {name: plain[name] for name in _TOP if plain.get(name) is not None}
    if "client_version" not in shown and plain.get("loom_version") is not None:
        shown["client_version"] = plain["loom_version"]
    if "visibility" in shown:
        shown["visibility"] = _visibility(shown["visibility"])
    for path, parts in COMPOSITES.items():
        if any(plain.get(part) is not None for part in parts):
            shown[path] = {part: plain.get(part) for part in parts}
    if plain.get("agent_state") is not None:
        shown["agent_state"] = _agent_state(plain["agent_state"])
    return shown


def absent_value(path: str) -> Any:
    """What a register reads back as where the plain field is absent."""
    family = path.partition("/")[0]
    if path in _FLAGS or family in ("tag", "gone") or (family == "branch" and path.endswith("/is_archived")):
        return False
    return ORGANIZATION if path == "visibility" else None


def _jobs_and_drafts(plain: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    jobs = plain.get("pending_jobs")
    for entry in jobs if isinstance(jobs, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("job_id"), str):
            shown[f"job/{entry['job_id']}"] = {key: value for key, value in entry.items() if key != "job_id"}
    if isinstance(plain.get("pending_job"), str):
        shown.setdefault(
            f"job/{plain['pending_job']}", {"parent_id": None, "responder": "", "launched_at": ""}
        )
    for device, targets in _object(plain.get("drafts")).items():
        shown[f"draft/{device}"] = targets
    return shown


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        name: metadata[name] for name in _METADATA if metadata.get(name) not in (None, "")
    }
    for tag in _texts(metadata.get("tags")):
        shown[f"tag/{tag}"] = True
    for message_id, marks in _object(metadata.get("branches")).items():
        for mark, value in _object(marks).items():
            shown[f"branch/{message_id}/{mark}"] = value
    for key, value in metadata.items():
        if key not in _METADATA_KEYS:
            shown[f"x/metadata/{_escape(key)}"] = value
    for key, value in _object(metadata.get("extra")).items():
        shown[f"x/metadata/extra/{_escape(key)}"] = value
    return shown


def _agent_state(value: Any) -> Any:
    """The four parts, each there, so that a seed's file and ours read the same; unknown parts are kept."""
    if not isinstance(value, dict):
        return value
    return {
        "kind": value.get("kind", "waiting_for_user_input"),
        "retries": value.get("retries", 0),
        "last_error": value.get("last_error"),
        "pending_tool_calls": value.get("pending_tool_calls") or [],
    } | {
        key: part
        for key, part in value.items()
        if key not in ("kind", "retries", "last_error", "pending_tool_calls")
    }


def _visibility(value: Any) -> str:
    lower = value.strip().lower().replace("organisation", ORGANIZATION) if isinstance(value, str) else ""
    return parse_visibility(lower) if lower in VISIBILITIES else "private"


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _unescape(key: str) -> str:
    return key.replace("~1", "/").replace("~0", "~")
