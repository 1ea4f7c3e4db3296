"""What programs get: threads, hits and findings in the JSON shapes of docs/reference/json.md, which stay as they are.

Spelled out by hand, so that a field added to a value inside is not promised to anybody by accident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from raddle.model.threads.search_answer import Hit, SearchAnswer
from raddle.model.threads.summary import ThreadSummary


def listed(summary: ThreadSummary, state: str = "") -> dict[str, Any]:
    """A thread as `list --json` shows it. `state`: how it stands to the server, where that was looked at."""
    return {
        "id": summary.id,
        "title": summary.title,
        "message_count": summary.message_count,
        "created_at": summary.created_at,
        "last_activity_at": summary.last_activity_at,
        "workspace_root": summary.workspace_root,
        "git_branch": summary.git_branch,
        "git_remote_url": summary.git_remote_url,
        "provider": summary.provider,
        "model": summary.model,
        "source": summary.source,
        "tags": summary.tags,
        "is_pinned": summary.is_pinned,
        "visibility": summary.visibility,
        "is_private": summary.is_private,
        "is_archived": summary.is_archived,
        "sync": {"state": state or ("private" if summary.is_private else "local")},
    }


def found(hit: Hit, state: str = "") -> dict[str, Any]:
    """A thread that was found, shown by its best message. `state`: how it stands to the server."""
    return {
        "thread": listed(hit.thread, state),
        "message_id": hit.message_id,
        "role": hit.role,
        "field": hit.field,
        "matches": hit.matches,
        "snippet": hit.snippet.text,
        "marks": hit.snippet.marks,
        "score": round(hit.score, 6),
    }


def answered(
    answer: SearchAnswer, hints: Sequence[str] = (), states: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """One page of a search; `hints` on the query stand among the notes of its scope. `states`: how its threads stand
    to the server."""
    return {
        "scope": replace(answer.scope, notes=(*answer.scope.notes, *hints)),
        "total_threads": answer.total_threads,
        "hits": [found(hit, (states or {}).get(hit.thread.id, "")) for hit in answer.hits],
        "cursor": answer.cursor,
    }
