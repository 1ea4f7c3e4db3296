"""Ready-made questions that a person chooses in their client: go on with a thread, catch up, write a handoff."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from raddle.apps.mcp_server.phase_tools import SummaryGet, summary_get
from raddle.apps.mcp_server.run_tools import ContextBootstrap, ContextRead, context_bootstrap, context_read
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.thread_tools import ThreadRead, thread_read
from raddle.apps.mcp_server.tools import Call
from raddle.model.errors import InvalidInput, NotFound


class Prompt(Struct, frozen=True, kw_only=True):
    """A prompt and its arguments: name -> what it is."""

    name: str
    summary: str
    arguments: dict[str, str]
    required: tuple[str, ...] = ()


class PromptTold(NamedTuple):
    """What the prompt says."""

    summary: str
    text: str


PROMPTS = (
    Prompt(
        name="resume_thread",
        summary="Go on with an earlier conversation.",
        arguments={"thread": "its id, or the start of it", "task": "what to do now"},
        required=("thread",),
    ),
    Prompt(name="catch_up", summary="What happened in this project, and what is next.", arguments={}),
    Prompt(
        name="write_handoff",
        summary="Write the handoff of a phase out of what it noted.",
        arguments={"phase": "else the active one"},
    ),
)
_BY_NAME = {one.name: one for one in PROMPTS}


def prompt(session: Session, name: str, given: dict[str, str], call: Call) -> PromptTold:
    """The prompt filled in. NotFound for a name that is none; InvalidInput for its arguments."""
    one = _BY_NAME.get(name)
    if one is None:
        raise NotFound("prompt", name[:60], f"there are {', '.join(_BY_NAME)}")
    missing = [argument for argument in one.required if not given.get(argument, "").strip()]
    strangers = [argument for argument in given if argument not in one.arguments]
    if missing or strangers:
        wrong = f"misses {missing[0]}" if missing else f"takes no argument {strangers[0][:60]!r}"
        raise InvalidInput(f"{name} {wrong}", f"it takes {', '.join(one.arguments) or 'none'}")
    return PromptTold(one.summary, _TEXTS[name](session, given, call))


def _resume_thread(session: Session, given: dict[str, str], call: Call) -> str:
    told = thread_read(session, ThreadRead(thread_id=given["thread"].strip(), tokens=8000), call)
    task = given.get("task", "").strip() or "Say in a few lines where it stood, then go on from there."
    return f"Go on with this earlier conversation.\n\n{_quoted(told)}\n\nNow: {task}"


def _catch_up(session: Session, given: dict[str, str], call: Call) -> str:
    told = context_bootstrap(session, ContextBootstrap(tokens=8000), call)
    return (
        f"This is what the project's memory holds.\n\n{_quoted(told)}\n\n"
        "Say what happened lately, what was decided, what is open, and what you would do next. Name the sources."
    )


def _write_handoff(session: Session, given: dict[str, str], call: Call) -> str:
    phase = given.get("phase", "").strip() or None
    summary = summary_get(session, SummaryGet(phase=phase), call)
    entries = context_read(session, ContextRead(phase=summary["phase"], limit=200), call)
    return (
        f"Publish the handoff of {summary['phase']} with handoff_publish: a headline of one line, key_results with "
        "their numbers, decisions with their reasons, open questions. A later phase reads nothing else.\n\n"
        f"Its summary and entries:\n\n{_quoted({'summary': summary['markdown'], 'entries': entries['entries']})}"
    )


_TEXTS = {"resume_thread": _resume_thread, "catch_up": _catch_up, "write_handoff": _write_handoff}


def _quoted(told: dict[str, Any]) -> str:
    """Stored text, fenced so that none of it reads as part of the prompt."""
    plain = msgspec.to_builtins(told, str_keys=True, enc_hook=str)
    shown = json.dumps(plain, ensure_ascii=False, indent=1).replace("`" * 3, "'" * 3)
    return f"```json\n{shown}\n```"
