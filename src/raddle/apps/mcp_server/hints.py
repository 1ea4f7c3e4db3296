"""Hints as an agent can follow them: the command that a person would type, by the name of the tool that does it."""

from __future__ import annotations

import re

TOOL_OF = {
    "memory list": "memory_list",
    "memory set": "memory_write",
    "memory search": "memory_search",
    "run list": "run_list",
    "run show": "context_bootstrap",
    "run start": "run_start",
    "entry add": "context_log",
    "entry list": "context_read",
    "summary set": "summary_update",
    "handoff publish": "handoff_publish",
    "handoff show": "handoff_get",
    "artifact add": "artifact_put",
    "artifact get": "artifact_get",
    "store init": "store_init",
    "store status": "sync_status",
    "search": "thread_search",
    "list": "thread_list",
    "show": "thread_read",
    "fork": "thread_fork",
    "reply": "thread_append",
}
_COMMAND = re.compile(rf"`raddle ({'|'.join(sorted(TOOL_OF, key=len, reverse=True))})(?: (?!-o)[^`]*)?`")


def for_agents(text: str) -> str:
    """`text` with commands of the command line as tools; what only a person can do stays as it is typed."""
    return _COMMAND.sub(lambda found: TOOL_OF[found[1]], text)
