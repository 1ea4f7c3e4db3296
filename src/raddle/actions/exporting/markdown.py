"""A thread as Markdown: readable as it is, and rendered by any forge; tool calls are folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from raddle.actions.exporting.markdown_text import code, contained, fenced, html, inline
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
from raddle.model.threads.message import NOTICE, Attachment, Message, ToolCall
from raddle.model.threads.rendering import NO_RESULT, Exchange
from raddle.model.threads.thread import Thread


def to_markdown(thread: Thread, leaf: str | None = None) -> bytes:
    """The transcript; `leaf`: only the path from the root to it. NotFound for an unknown leaf."""
    text = printable("\n\n".join(_document(transcript_of(thread, leaf))))
    return (text + "\n").encode(errors="replace")


def _document(transcript: Transcript) -> Iterator[str]:
    yield f"# {inline(transcript.title)}"
    yield "\n".join(f"- **{label}:** {code(value)}" for label, value in transcript.facts)
    for section in transcript.sections:
        yield from _section(section, is_only=len(transcript.sections) == 1)


def _section(section: Section, *, is_only: bool) -> Iterator[str]:
    if section.number > 1:
        yield "---"
        yield f'<a id="line-{section.number}"></a>\n\n# {inline(section_title(section))}'
    elif not is_only:
        yield '<a id="line-1"></a>'
    for turn in section.turns:
        yield from _turn(turn)


def _turn(turn: Turn) -> Iterator[str]:
    body = [part for exchange in turn.exchanges for part in _exchange(exchange)]
    if turn.exchanges[0].message.kind == NOTICE:
        if body:
            yield _folded(html(turn_label(turn)), body)
    else:
        yield f"## {turn.number}. {inline(turn_label(turn))}"
        yield from body
    for sub_agent in turn.sub_agents:
        inner = [part for exchange in sub_agent for part in _sub_agent_turn(exchange)]
        yield _folded(f"Sub-agent, {counted(len(sub_agent), 'message')}", inner)
    if turn.forks:
        lines = ", ".join(f"[line {number}](#line-{number})" for number in turn.forks)
        yield f"*Also answered in {lines}.*"
    if turn.hidden_forks:
        yield f"*{counted(turn.hidden_forks, 'other answer')} left out.*"


def _sub_agent_turn(exchange: Exchange) -> Iterator[str]:
    label = role_label(exchange.message.role)
    yield f"**{inline(label)}**"
    yield from _exchange(exchange)


def _exchange(exchange: Exchange) -> Iterator[str]:
    message = exchange.message
    if message.is_purged:
        yield "*This turn was erased.*"
        return
    if message.thinking.strip():
        yield _folded("Thinking", [contained(message.thinking)])
    if exchange.is_orphan:
        yield _result_of(message.tool_name or "tool", message)
    elif message.content.strip():
        yield contained(message.content)
    yield from _attachments(message.attachments)
    for call, result in zip(message.tool_calls, exchange.results, strict=True):
        yield _call(call, result)


def _call(call: ToolCall, result: Message | None) -> str:
    hint = hint_of(call.arguments_json)
    failed = " (failed)" if result is not None and result.is_error else ""
    summary = f"Tool: <code>{html(call.tool_name)}</code>{f' {html(hint)}' if hint else ''}{failed}"
    body = [fenced(arguments_text(call.arguments_json), "json")] if call.arguments_json is not None else []
    if result is None or result.is_purged:
        body.append(f"*{NO_RESULT if result is None else 'The result was erased.'}*")
    else:
        body += ["Result:", fenced(result.content), *_attachments(result.attachments)]
    return _folded(summary, body)


def _result_of(tool_name: str, message: Message) -> str:
    return _folded(f"Result of <code>{html(tool_name)}</code>, without its call", [fenced(message.content)])


def _folded(summary: str, body: Iterable[str]) -> str:
    inner = "\n\n".join(body)
    return f"<details>\n<summary>{summary}</summary>\n\n{inner}\n\n</details>"


def _attachments(attachments: Iterable[Attachment]) -> Iterator[str]:
    for attachment in attachments:
        yield f"*{inline(attachment_text(attachment))}*"
