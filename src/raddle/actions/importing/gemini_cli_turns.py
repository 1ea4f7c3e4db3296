"""What one record of a Gemini CLI session says: its words, thoughts, calls, results and pictures.

Owns which words a person typed and which the program put in their mouth. Knows one record at a time; where its
messages stand, and what of it was said before, is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from raddle.actions.importing.fitting import NOTHING, decoded, encode
from raddle.actions.importing.gemini_cli_lines import (
    Answer,
    Call,
    FunctionResponse,
    Part,
    Record,
    parts_in,
)
from raddle.actions.importing.parts import ASSISTANT, SYSTEM, TOOL, USER, Aside, MessagePart, joined
from raddle.model.threads.message import COMPACTION, NOTICE, TURN, Attachment, ToolCall

ROLES = {
    "user": USER,
    "gemini": ASSISTANT,
    "model": ASSISTANT,
    "info": SYSTEM,
    "warning": SYSTEM,
    "error": SYSTEM,
}
"""What a record's type makes of it; a record of any other type is none that is known."""

_INJECTED = re.compile(
    r"\s*(?:<(?:session_context|hook_context|background_output)>"
    r"|This is the Gemini CLI\. We are setting up the context for our chat"
    r"|Here is (?:the user's editor context|a summary of changes in the user's editor context)"
    r"|\[(?:System: You previously|Continuing from previous AI thoughts)"
    r"|System: Potential loop detected"
    r"|A previously backgrounded execution has completed)"
)
"""How words begin that the program wrote in a person's name."""

_CONTEXT = re.compile(r"\s*<session_context>")
_SUMMARY = re.compile(r"<state_snapshot>|\s*### \[System Note: Conversation History Truncated\]")
_ACKNOWLEDGED = "Got it. Thanks for the additional context!"
_FILES, _FILES_END = "--- Content from referenced files ---", "--- End of content ---"


class Said(MessagePart, frozen=True, gc=False, kw_only=True):
    """What a record says. `at`: of a result, its own time, where that is not the record's."""

    at: str = ""

    @property
    def weight(self) -> int:
        """How much it says. A form that says less never takes the place of one that says more."""
        return len(self.content) + len(self.thinking) + len(self.tool_calls) + len(self.attachments)


def said_in(record: Record, aside: Aside, is_answered: Callable[[str], bool]) -> list[Said]:
    """What a record says, in order; nothing where it has no words for anyone.

    `is_answered`: was the call of that id answered already? Its result stands in a person's name once more.
    """
    role = ROLES.get(record.type or record.role)
    if role == USER:
        return _of_person(record, aside, is_answered)
    if role == ASSISTANT:
        return _of_model(record, aside)
    return _of_program(record, aside) if role == SYSTEM else []


def is_context(said: Said) -> bool:
    """Is it what the program tells the model at the start? It has the same id in every session there is."""
    return said.kind == NOTICE and _CONTEXT.match(said.content) is not None


def _parts(content: Raw, aside: Aside) -> list[Part]:
    if content is NOTHING:
        return []
    found, repairs = parts_in(content)
    aside.repairs += repairs
    return found


def _of_person(record: Record, aside: Aside, is_answered: Callable[[str], bool]) -> list[Said]:
    parts = _parts(record.said, aside)
    results = [
        _result([part], part.function_response.id or "", aside, name=part.function_response.name)
        for part in parts
        if part.function_response is not None and not is_answered(part.function_response.id or "")
    ]
    texts = [part.text for part in parts if part.text]
    shown = joined(part.text or "" for part in _parts(record.display_content, aside))
    typed, injected = _as_shown(texts, shown) if shown else _as_typed(texts)
    pictures = tuple(_attached(parts, aside))
    is_summary = not shown and any(_SUMMARY.search(text) for text in typed)
    notice = Said(role=USER, kind=NOTICE, key="notice", content="".join(injected))
    turn = Said(
        role=USER,
        kind=COMPACTION if is_summary else TURN,
        content=joined(typed),
        attachments=pictures,
        extra=_elsewhere(parts),
    )
    return [*results, *(one for one in (notice, turn) if not one.is_empty)]


def _as_shown(texts: list[str], shown: str) -> tuple[list[str], list[str]]:
    """(what the person typed, what the program added to it), where the record says what was shown as typed."""
    return [shown], [text for text in texts if text.strip() and text.strip() not in shown]


def _as_typed(texts: list[str]) -> tuple[list[str], list[str]]:
    """The same by how the words begin: the contents of files that a prompt names stand behind it."""
    typed: list[str] = []
    injected: list[str] = []
    is_inside = False
    for text in texts:
        before, mark, inside = text.partition(_FILES)
        if is_inside or _INJECTED.match(text):
            injected.append(text)
            is_inside = is_inside and _FILES_END not in text
        elif mark:
            typed.append(before.rstrip("\n"))
            injected.append(mark + inside)
            is_inside = _FILES_END not in inside
        else:
            typed.append(text)
    return typed, injected


def _of_model(record: Record, aside: Aside) -> list[Said]:
    parts = _parts(record.said, aside)
    words = [text for part in parts if not part.thought for text in (part.text, *_code(part)) if text]
    thoughts = [
        f"{one.subject}\n{one.description}"
        if one.subject and one.description
        else one.subject + one.description
        for one in record.thoughts or ()
    ]
    if not thoughts:
        thoughts = [part.text for part in parts if part.thought and part.text]
    content = joined(words)
    is_made_up = content == _ACKNOWLEDGED and not record.model
    answer = Said(
        role=ASSISTANT,
        kind=NOTICE if is_made_up else TURN,
        content=content,
        thinking=joined(thoughts),
        tool_calls=tuple(_calls(record, parts, aside)),
        attachments=tuple(_attached(parts, aside)),
        extra=_elsewhere(parts),
    )
    results = [
        _result_of(call, aside, key=call.id or str(number))
        for number, call in enumerate(record.tool_calls or ())
        if call.result != NOTHING
    ]
    return [*([] if answer.is_empty else [answer]), *results]


def _code(part: Part) -> Iterator[str]:
    if part.executable_code is not None:
        yield part.executable_code.code
    if part.code_execution_result is not None:
        yield part.code_execution_result.output


def _calls(record: Record, parts: list[Part], aside: Aside) -> Iterator[ToolCall]:
    """Each call once: `toolCalls` and the content's `functionCall` parts are two records of the same ones."""
    listed = record.tool_calls or []
    for call in listed:
        yield ToolCall(id=call.id, tool_name=call.name, arguments_json=aside.plain(call.args))
    ids, names = {call.id for call in listed}, {call.name for call in listed}
    for part in parts:
        asked = part.function_call
        if asked is not None and (asked.id not in ids if asked.id else asked.name not in names):
            yield ToolCall(id=asked.id or "", tool_name=asked.name, arguments_json=aside.plain(asked.args))


def _result_of(call: Call, aside: Aside, *, key: str) -> Said:
    parts = _parts(call.result, aside)
    answers = [part for part in parts if part.function_response is not None]
    ours = [part for part in answers if part.function_response and part.function_response.id == call.id]
    if ours:  # when outputs are masked, the results of parallel calls are put into each of them
        parts = [*ours, *(part for part in parts if part.function_response is None)]
    extra = {} if call.status in ("", "success", "error") else {"status": call.status}
    said = _result(parts, call.id, aside, name=call.name)
    return msgspec.structs.replace(
        said,
        key=f"result {key}",
        is_error=said.is_error or call.status == "error",
        at=call.timestamp,
        extra=extra,
    )


def _result(parts: list[Part], call_id: str, aside: Aside, *, name: str) -> Said:
    """The answer to one call. It is kept when it is empty: the call was answered."""
    words: list[str] = []
    attachments: list[Attachment] = []
    is_error = False
    for part in parts:
        if part.function_response is not None:
            text, failed = _response(part.function_response, aside)
            words.append(text)
            is_error = is_error or failed
            attachments += _attached(part.function_response.parts or [], aside)
        elif part.text:
            words.append(part.text)
    return Said(
        role=TOOL,
        key=f"result {call_id}",
        content=joined(words, "\n"),
        tool_call_id=call_id,
        tool_name=name,
        is_error=is_error,
        attachments=(*attachments, *_attached(parts, aside)),
    )


def _response(response: FunctionResponse, aside: Aside) -> tuple[str, bool]:
    """(the text of a result, did the tool fail?)"""
    usual = decoded(response.response, Answer)
    if usual is not None and (usual.output is None) != (usual.error is None):
        return usual.output or usual.error or "", usual.error is not None
    plain = aside.plain(response.response)
    if isinstance(plain, dict):
        failed = "error" in plain and "output" not in plain
        if plain.keys() <= {"output", "error"} and len(plain) == 1:
            (plain,) = plain.values()
        text = plain if isinstance(plain, str) else encode(plain).decode() if plain else ""
        return text, failed
    return plain if isinstance(plain, str) else "" if plain is None else encode(plain).decode(), False


def _of_program(record: Record, aside: Aside) -> list[Said]:
    """What the program told the person: news, a warning, an error; or a tool's picture on its way to the model."""
    parts = _parts(record.said, aside)
    said = Said(
        role=SYSTEM,
        kind=NOTICE,
        content=joined(part.text or "" for part in parts),
        is_error=record.type == "error",
        attachments=tuple(_attached(parts, aside)),
        extra={"level": record.type, **_elsewhere(parts)},
    )
    return [] if said.is_empty else [said]


def _elsewhere(parts: list[Part]) -> dict[str, Any]:
    """The files that are only named here."""
    uris = [
        part.file_data.file_uri for part in parts if part.file_data is not None and part.file_data.file_uri
    ]
    return {"files": uris} if uris else {}


def _attached(parts: Iterable[Part], aside: Aside) -> Iterator[Attachment]:
    """The pictures and documents whose bytes stand in these parts."""
    for part in parts:
        inline = part.inline_data
        if inline is not None and inline.data:
            yield aside.attach(aside.from_base64(inline.data), inline.mime_type or "")
