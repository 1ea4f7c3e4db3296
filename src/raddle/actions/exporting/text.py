"""A thread as plain text for a terminal: no markup, no line cut, and no control code of a transcript
obeyed.
"""

from __future__ import annotations

from collections.abc import Iterator

from raddle.actions.exporting.transcript import Section, Transcript, Turn, transcript_of
from raddle.actions.exporting.wording import (
    arguments_text,
    attachment_text,
    counted,
    hint_of,
    printable,
    role_label,
    section_title,
    turn_label,
)
from raddle.model.threads.message import NOTICE
from raddle.model.threads.rendering import NO_RESULT, Exchange
from raddle.model.threads.thread import Thread

_INDENT = "    "
_MARGIN = "  "
"""Before every line that somebody said, so that none can be taken for the heading of a turn."""


def to_text(thread: Thread, leaf: str | None = None) -> bytes:
    """The transcript; `leaf`: only the path from the root to it. NotFound for an unknown leaf."""
    return ("\n".join(_document(transcript_of(thread, leaf))) + "\n").encode(errors="replace")


def _document(transcript: Transcript) -> Iterator[str]:
    yield from _heading(transcript.title, "=")
    width = max((len(label) for label, _ in transcript.facts), default=0)
    for label, value in transcript.facts:
        yield f"{label:<{width}}  {_line(value)}"
    for section in transcript.sections:
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    if section.number > 1:
        yield ""
        yield from _heading(section_title(section), "-")
    for turn in section.turns:
        yield from _turn(turn)


def _turn(turn: Turn) -> Iterator[str]:
    if turn.exchanges[0].message.kind == NOTICE:
        return
    yield ""
    yield f"[{turn.number}] {_line(turn_label(turn))}"
    for exchange in turn.exchanges:
        yield from _exchange(exchange, _MARGIN)
    for sub_agent in turn.sub_agents:
        yield f"{_MARGIN}sub-agent:"
        for exchange in sub_agent:
            yield f"{_INDENT}{_line(role_label(exchange.message.role))}"
            yield from _exchange(exchange, _INDENT + _MARGIN)
    if turn.forks:
        yield f"  (also answered in line {', '.join(map(str, turn.forks))})"
    if turn.hidden_forks:
        yield f"  ({counted(turn.hidden_forks, 'other answer')} left out)"


def _exchange(exchange: Exchange, indent: str) -> Iterator[str]:
    message = exchange.message
    if message.is_purged:
        yield f"{indent}(erased)"
        return
    if exchange.is_orphan:
        yield f"{indent}< {_line(message.tool_name or 'tool')} (its call is not here)"
        yield from _body(message.content, indent + _INDENT)
    elif message.content.strip():
        yield from _body(message.content, indent)
    for attachment in message.attachments:
        yield f"{indent}+ {_line(attachment_text(attachment))}"
    for call, result in zip(message.tool_calls, exchange.results, strict=True):
        yield f"{indent}> {_line(call.tool_name)} {_line(hint_of(call.arguments_json))}".rstrip()
        if not isinstance(call.arguments_json, str | None):
            yield from _body(arguments_text(call.arguments_json), indent + _INDENT)
        failed = " (failed)" if result is not None and result.is_error else ""
        yield f"{indent}<{failed}{'' if result is not None else f' {NO_RESULT}'}"
        if result is not None:
            yield from _body("(erased)" if result.is_purged else result.content, indent + _INDENT)


def _body(text: str, indent: str) -> Iterator[str]:
    for line in printable(text).strip("\n").split("\n"):
        yield f"{indent}{line}".rstrip() if not line.strip() else f"{indent}{line}"


def _heading(title: str, underline: str) -> Iterator[str]:
    line = _line(title)
    yield line
    yield underline * len(line)


def _line(text: str) -> str:
    return " ".join(printable(text).split())
