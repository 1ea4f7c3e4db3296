"""What is said to a deliberation server and what it says, as values: bodies, headers, status words, events.

Owns every field's name on that wire. A word that is read in two places would one day mean "failed" in one and "still
running" in the other, and an answer would be given up that was on its way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from raddle.actions.answering.ports import Answered, Asks, Done, Policy, Question
from raddle.actions.answering.settings import ResponderSettings
from raddle.adapters.event_stream import Event
from raddle.model.errors import BrokenFormat
from raddle.model.tolerant_json import decode_tolerantly

KIND = "orchestrator"
SESSION_HEADER = "x-nsed-session-id"
COMPLETE_EVENT = "job_complete"
PENDING, ANSWERED, FAILED, UNKNOWN = "pending", "answered", "failed", "unknown"
"""The states of a `Done`."""

_RUNNING = frozenset({"pending", "running", "claimed", "queued"})
_COMPLETED = frozenset({"completed", "complete", "success"})
"""`GET …/result` says the first, the event of a stream the last."""
_LONGEST_ID = 200
_SESSION = re.compile(r"[!-~]{1,500}\Z")
_SHARE = re.compile(r"(?:0(?:\.\d{1,9})?|1(?:\.0{1,9})?)\Z", re.ASCII)
_MOST_ASKED = 64 << 10
_ASK_TOOL: dict[str, Any] = {
    "name": "ask_user",
    "description": (
        "Put a question to the person who asked, where only they can decide or know it and the answer would change "
        "the result. They may pick one of the options or say something else."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "question": {"type": "string"},
            "options": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["question"],
    },
    "strict": False,
}
"""Agents can ask the person nothing unless they are offered a tool for it."""

Shown = Callable[[Any], str]
"""A stranger's text as one short line without the key."""


def launch_body(settings: ResponderSettings, question: Question) -> dict[str, Any]:
    """The body of a launch: the policy that is asked for, or else the agents, or else whatever the server takes."""
    policy = policy_of(settings, question)
    effort = question.effort or settings.effort
    # A room holds one job: the launch's own id keeps a second one from being refused for the first one's sake.
    body: dict[str, Any] = {
        "room_id": f"{settings.name}_{question.job_id}",
        "conversation_id": conversation_of(question),
        "user_query": question.query,
        "deliberation_rounds": settings.rounds,
        "agent_names": [] if policy else list(settings.agents),
        "policy_id": policy,
        "effort": float(effort) if _SHARE.match(effort) else effort,
        "scope": settings.scope,
        "new_turn": _new_turn(question),
        "user_tools": [_ASK_TOOL],
    }
    return {name: value for name, value in body.items() if value not in ("", [])}


def conversation_of(question: Question) -> str:
    """What the server takes for one conversation, in which it does one thing at a time: each branch is one."""
    return f"{question.thread_id}_{question.branch}" if question.branch else question.thread_id


def policy_of(settings: ResponderSettings, question: Question) -> str:
    """The policy by which it is worked on; empty: none is asked for."""
    return question.policy or settings.policy


def _new_turn(question: Question) -> str:
    """This turn alone, for agents that remember the rest; empty where it is all that is asked."""
    turns = [message.content for message in question.messages if message.role == "user"]
    return turns[-1] if turns and turns[-1] != question.query else ""


def launch_headers(question: Question) -> dict[str, str]:
    """The session that the server gave the conversation before, where it is one that a header can hold.

    A thread keeps one, that of its main line; what was said there is not for the agents of another branch.
    """
    session = "" if question.branch else question.server_thread or ""
    return {SESSION_HEADER: session} if _SESSION.match(session) else {}


def session_in(headers: Mapping[str, str]) -> str | None:
    """The session that the server names; `headers` by lower-case name."""
    session = headers.get(SESSION_HEADER, "").strip()
    return session if _SESSION.match(session) else None


def session_for(question: Question, headers: Mapping[str, str]) -> str | None:
    """The session that the thread keeps from now on; None: what it has stays."""
    return None if question.branch else session_in(headers)


def job_in(plain: Any) -> str:
    """The id of the job that was launched; empty where there is none that could be asked for."""
    job_id = plain.get("job_id") if isinstance(plain, dict) else None
    return job_id if isinstance(job_id, str) and is_id(job_id) else ""


def is_id(text: str) -> bool:
    """Can it stand in a path, as one step of it?"""
    return 0 < len(text) <= _LONGEST_ID and text.isprintable() and text not in {".", ".."}


def job_path(job_id: str, *steps: str) -> str:
    """Where a job is asked about."""
    return "/".join(["/deliberation", *(quote(step, safe="") for step in (job_id, *steps))])


def stream_path(job_id: str) -> str:
    """Where a job tells what happens."""
    return f"/job/{quote(job_id, safe='')}/stream"


def standing(plain: Any, shown: Shown) -> Done | None:
    """How a job stands, out of an answer to `GET …/result`; None where it cannot be read."""
    if not isinstance(plain, dict) or not isinstance(plain.get("status"), str):
        return None
    return _done(plain["status"], plain.get("result"), "", shown)


def completion(event: Event, job_id: str, shown: Shown) -> Done | None:
    """How a job ended, out of the event that says so; None where it is another event, or cannot be read."""
    if event.kind != COMPLETE_EVENT:
        return None
    try:
        plain = decode_tolerantly(event.data.encode("utf-8", "replace"))[0]
    except BrokenFormat:
        return None
    if not isinstance(plain, dict) or plain.get("job_id", job_id) != job_id:
        return None
    status, author = plain.get("status"), plain.get("best_proposal_author")
    if not isinstance(status, str) or _head(status) in _RUNNING:
        return None
    return _done(status, plain.get("best_proposal_content"), author if isinstance(author, str) else "", shown)


def _done(status: str, result: Any, author: str, shown: Shown) -> Done:
    word = _head(status)
    if word in _RUNNING:
        return Done(state=PENDING)
    if word not in _COMPLETED:
        why = shown(status.partition(":")[2]) or shown(result)
        ended = shown(status) if not why else f"{shown(word)}: {why}"
        return Done(state=FAILED, why=ended or "it ended without a word")
    if not isinstance(result, str) or not result.strip():
        return Done(state=FAILED, why="it was completed without a word")
    return Done(state=ANSWERED, answer=Answered(text=result, provider=KIND, author=author))


def _head(status: str) -> str:
    """`failed` of `Failed: no quorum`."""
    return status.partition(":")[0].strip().lower()


def questions_in(plain: Any, job_id: str) -> list[Asks]:
    """What agents wait to be told."""
    calls = plain.get("tool_calls") if isinstance(plain, dict) else plain
    return list(_questions(calls, job_id)) if isinstance(calls, list) else []


def _questions(calls: list[Any], job_id: str) -> Iterator[Asks]:
    for call in calls:
        if not isinstance(call, dict):
            continue
        call_id, name, status = (call.get(each) for each in ("call_id", "tool_name", "status"))
        is_open = not isinstance(status, str) or status.lower() == "pending"
        if isinstance(call_id, str) and is_id(call_id) and is_open:
            yield Asks(
                job_id=job_id,
                call_id=call_id,
                text=_asked_in(call.get("arguments")),
                tool_name=name if isinstance(name, str) else "",
            )


def _asked_in(arguments: Any) -> str:
    """The question, and under it what can be chosen; what is neither is shown as it came."""
    if isinstance(arguments, str):
        try:
            arguments = decode_tolerantly(arguments.encode("utf-8", "replace"))[0]
        except BrokenFormat:
            return str(arguments)[:_MOST_ASKED]
    if not isinstance(arguments, dict) or not isinstance(arguments.get("question"), str):
        return "" if arguments is None else f"{arguments}"[:_MOST_ASKED]
    options = arguments.get("options")
    chosen = [each for each in options if isinstance(each, str)] if isinstance(options, list) else []
    return "\n".join([arguments["question"], *(f"- {option}" for option in chosen)])[:_MOST_ASKED]


def policies_in(plain: Any) -> list[Policy] | None:
    """What can be chosen; None where it cannot be read."""
    entries = plain.get("policies") if isinstance(plain, dict) else plain
    if not isinstance(entries, list):
        return None
    return [
        Policy(id=each["policy_id"], name=_text(each.get("name")), tags=_texts(each.get("tags")))
        for each in entries
        if isinstance(each, dict) and isinstance(each.get("policy_id"), str)
    ]


def _text(plain: Any) -> str:
    return plain if isinstance(plain, str) else ""


def _texts(plain: Any) -> tuple[str, ...]:
    return tuple(each for each in plain if isinstance(each, str)) if isinstance(plain, list) else ()
