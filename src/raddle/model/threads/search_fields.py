"""What of a thread is searched: five fields of each message, and the names in the thread's header.

Both engines index what these functions return. If one of them chose its own fields, a thread would be
found on one side and not on the other.
"""

from __future__ import annotations

import re
import zlib
from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.threads.message import COMPACTION, NOTICE, SUMMARY, Message, ToolCall
from raddle.model.threads.recalled import is_recalled
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary

FIELDS = ("user", "assistant", "thinking", "tools", "output")
"""The fields of a message, heaviest first; the thread's header weighs more than any of them."""

USER, ASSISTANT, THINKING, TOOLS, OUTPUT = range(5)

OWN_AGENT = "raddle"
"""The agent of a thread that came from no other program."""

encode_text = msgspec.msgpack.Encoder().encode
"""A `MessageText` as bytes: as it lies in the index, and as its fingerprint is taken."""

_SHA = re.compile(r"[0-9a-fA-F]{4,64}\Z")
_LONGEST_NESTED_JSON = 1 << 20
_LEAST_KNOWN_TIME = 1_000_000_000_000
"""Orders below 1970-01-12 are positions that an importer counted out, not times."""


class MessageText(Struct, frozen=True, kw_only=True, array_like=True):
    """What is searched of one message, and what a hit shows of it."""

    id: str
    order: int
    """Its place in the thread; its time too, in microseconds, where the source knew one (`time_of`)."""
    role: str
    texts: tuple[str, str, str, str, str]
    """One for each of `FIELDS`, empty where the message has none."""
    tool_names: tuple[str, ...] = ()
    is_error: bool = False
    is_sidechain: bool = False
    is_partial: bool = False
    """One of its texts is longer than a message holds: what lies between its first and last part is not searched."""


class HeaderText(Struct, frozen=True, kw_only=True):
    """What is searched of a thread besides its messages, and what filters ask of it."""

    title: str = ""
    tags: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    remote: str = ""
    shas: tuple[str, ...] = ()
    """Commits, lower-case hex."""
    repository: str = ""
    """What `repo:` looks at: the remote, or the workspace's own name where there is none."""
    agent: str = OWN_AGENT
    is_pinned: bool = False
    is_private: bool = False
    is_archived: bool = False


class FieldCut(Struct, frozen=True, array_like=True):
    """The words and pieces of one field (a number in `FIELDS`) of a message."""

    field: int
    words: str
    pieces: str


class IndexRow(Struct, frozen=True, kw_only=True, array_like=True):
    """A message ready for an index: its texts, cut. `terms`: tokens, one a line, that no earlier row of the same
    `Cutter` had; the rows of one cutter go to one index, or its vocabulary lacks words."""

    text: MessageText
    cuts: tuple[FieldCut, ...]
    terms: str = ""


def time_of(order: int) -> int | None:
    """The time of a message of that order, in microseconds since 1970; None where nobody knows."""
    return order if order >= _LEAST_KNOWN_TIME else None


def is_mixed(fields: int) -> bool:
    """Does a message with these fields (bits, as in `FIELDS`) say or think something, and have another field too?

    Only then has to be asked which of them holds a word. The name of a tool beside its output does not count.
    """
    return fields & (fields - 1) != 0 and fields & (1 << USER | 1 << ASSISTANT | 1 << THINKING) != 0


def fields_of(message: Message) -> MessageText:
    """What is searched of `message`: nothing of a purged one, and no answer of raddle's own, whose text is found where
    it came from."""
    texts = [""] * len(FIELDS)
    field = _field_of(message)
    if field != OUTPUT or not is_recalled(message.content):
        texts[field] = _sound(message.content)
    texts[THINKING] = _sound(message.thinking)
    texts[TOOLS] = _sound(_tools_of(message))
    names = [call.tool_name for call in message.tool_calls] + [message.tool_name]
    return MessageText(
        id=message.id,
        order=message.order,
        role=_sound(message.role),
        texts=(texts[0], texts[1], texts[2], texts[3], texts[4]),
        tool_names=tuple(dict.fromkeys(_sound(name) for name in names if name)),
        is_error=message.is_error,
        is_sidechain=message.is_sidechain,
        is_partial=any(attached.is_body for attached in message.attachments),
    )


def _field_of(message: Message) -> int:
    """Where the content of `message` belongs; what a program injected never counts as what the user said."""
    if message.kind in {SUMMARY, COMPACTION} or message.role == "assistant":
        return ASSISTANT
    return USER if message.role == "user" and message.kind != NOTICE else OUTPUT


def _tools_of(message: Message) -> str:
    """Names and arguments of the calls, the name of the tool that answers, the names of attached files."""
    if not (message.tool_calls or message.tool_name or message.attachments):
        return ""
    lines = [_call_text(call) for call in message.tool_calls]
    lines.append(message.tool_name)
    lines += [attached.name for attached in message.attachments if not attached.is_body]
    return "\n".join([line for line in lines if line])


def _call_text(call: ToolCall) -> str:
    return "\n".join([call.tool_name, *flat_json(call.arguments_json)])


def flat_json(value: Any) -> list[str]:
    """The keys and plain values of a JSON value as lines, `key: text` where a key holds one; depth-first.

    Text that is itself a JSON object or list (as some APIs give arguments) is opened, so that an escape in
    it cannot glue itself to a word.
    """
    lines: list[str] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        key, item = waiting.pop()
        if isinstance(item, str):
            item = _opened(item)
        if isinstance(item, dict):
            lines += [f"{key}:"] if key else []
            waiting += [(str(name), inner) for name, inner in reversed(item.items())]
        elif isinstance(item, list | tuple):
            lines += [f"{key}:"] if key else []
            waiting += [("", inner) for inner in reversed(item)]
        elif item is None:
            lines += [f"{key}:"] if key else []
        else:
            text = item if isinstance(item, str) else _literal(item)
            lines.append(f"{key}: {text}" if key else text)
    return lines


def _literal(item: Any) -> str:
    return str(item).lower() if isinstance(item, bool) else str(item)


def _opened(text: str) -> Any:
    if text[:1] not in {"{", "["} or len(text) > _LONGEST_NESTED_JSON:
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text


def _sound(text: str) -> str:
    """`text` with U+FFFD for surrogates, which no store takes."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def header_of(summary: ThreadSummary) -> HeaderText:
    """What is searched of the thread besides its messages."""
    branches = [summary.git_branch or "", *summary.git_branches]
    remote = summary.git_remote_url or ""
    workspace = (summary.workspace_root or "").rstrip("/\\").replace("\\", "/")
    return HeaderText(
        title=_sound(summary.title),
        tags=tuple(_sound(tag) for tag in summary.tags),
        branches=tuple(dict.fromkeys(_sound(branch) for branch in branches if branch)),
        remote=_sound(remote),
        shas=tuple(dict.fromkeys(sha.lower() for sha in summary.git_commits if _SHA.match(sha))),
        repository=_sound(remote or workspace.rpartition("/")[2]),
        agent=_sound(summary.source.agent) if summary.source is not None else OWN_AGENT,
        is_pinned=summary.is_pinned,
        is_private=summary.is_private,
        is_archived=summary.is_archived,
    )


def index_row(message: Message, cutter: Cutter) -> IndexRow:
    """`message` ready for an index; `cutter` collects the terms."""
    return cut_row(fields_of(message), cutter)


def cut_row(text: MessageText, cutter: Cutter) -> IndexRow:
    """The texts of a message with their words; the same each time, which is how an index deletes."""
    cuts = []
    for field, content in enumerate(text.texts):
        if content:
            found = cutter.cut(content)
            cuts.append(FieldCut(field, found.words, found.pieces))
    return IndexRow(text=text, cuts=tuple(cuts), terms=cutter.take_terms())


def fingerprint(text: MessageText) -> int:
    """32 bits that change when anything that is searched or shown of the message does."""
    return fingerprint_of(encode_text(text))


def fingerprint_of(encoded: bytes) -> int:
    """The same, for who has encoded the text already."""
    return zlib.crc32(encoded)
