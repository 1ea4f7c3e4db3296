"""A path of the conversation as a model reads it: one string for a deliberation, or messages for a chat API.

Owns the rules by which turns become a request: what is left out, how roles are told, which result belongs to
which call, what fits. A second place with rules of its own would make the same thread read differently in
`chat`, in `resume` and in another agent's session.

Left out of both: notices (they told another program's surroundings, and whoever runs the turn adds its own),
purged turns and blank ones. Kept: all else on the path, so also a removed turn that a later one answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.message import NOTICE, ROLES, Attachment, Message, ToolCall
from raddle.model.threads.thread import Thread

NO_RESULT = "no result recorded"
"""Stands for the result of a call where nobody wrote one down: chat APIs refuse a call without a result."""

IMAGE_TOKENS = 1600
"""What an attached image is counted as: about the most that today's models count one as."""
MESSAGE_TOKENS = 4
"""What a message costs besides its words."""

CountTokens = Callable[[str], int]

_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
"""What is blank for the peer (Unicode White_Space); `str.strip` alone would take four control codes more."""
_LINE_ENDS = "\n\r\v\f\x85\u2028\u2029"


class Exchange(NamedTuple):
    """A message and, for each of its calls in order, the message with the result (None: not recorded)."""

    message: Message
    results: tuple[Message | None, ...] = ()

    @property
    def is_orphan(self) -> bool:
        """Is it a result whose call is not on this path?"""
        return self.message.role == "tool"


class ChatMessage(Struct, frozen=True, kw_only=True):
    """One message of a chat API, in no API's own words. `role`: system, user, assistant or tool.

    `message_id` is empty for what stands for something that is not in the thread (a stub result, the gap).
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    attachments: tuple[Attachment, ...] = ()
    message_id: str = ""


def to_deliberation_query(thread: Thread, text: str, *, exact: bool = False) -> str:
    """The path to the tip and a new user turn as one string; see `to_deliberation_query_from`."""
    tip = thread.tree.tip()
    return to_deliberation_query_from(thread, tip.id if tip is not None else None, text, exact=exact)


def to_deliberation_query_from(
    thread: Thread, parent_id: str | None, text: str, *, exact: bool = False
) -> str:
    """The path from the root to `parent_id` (None: none) and a new user turn as one string.

    Blocks `[role] content`, one blank line between them, the question last; a user's turn all alone is bare;
    `Subject: <title>` leads where there is one. `exact`: the bytes that the peer itself would send. Else a
    line of content that would pass for a label gets a backslash before its bracket. NotFound: no such parent.
    """
    path = _path(thread, parent_id)
    turns = [(message.role, message.content) for message in path if exact or not _is_left_out(message)]
    said = [(role, content) for role, content in (*turns, ("user", text)) if content.strip(_WHITE_SPACE)]
    title = thread.title.strip(_WHITE_SPACE)
    if not exact:
        labels = {_label(role) for role, _ in said} | set(ROLES)
        said = [(_label(role), _without_labels(content, labels)) for role, content in said]
        title = " ".join(title.split())
    if len(said) == 1 and said[0][0] == "user":
        body = said[0][1]
    else:
        body = "\n\n".join(f"[{role}] {content}" for role, content in said)
    return f"Subject: {title}\n\n{body}" if title else body


def to_chat_messages(
    thread: Thread,
    leaf: str | None,
    budget_tokens: int | None = None,
    *,
    count_tokens: CountTokens | None = None,
) -> list[ChatMessage]:
    """The path to `leaf` as messages for a chat API; None: an empty path. NotFound for an unknown leaf.

    Calls are followed by their results, in the calls' order: the one recorded on this path, else a stub
    (`NO_RESULT`). Results without their call are left out: no API takes them. A role that chat APIs do not
    know is told by the user as `[role] content`. Thinking is left out: without its signature no API takes it.

    `budget_tokens`: the system turns that begin the path, then as many of the newest messages as fit, calls
    and results together, and between the two a user message that says how many are missing. The newest one
    (with its results) is there even where it alone is over the budget. `count_tokens` or `estimate_tokens`.
    """
    if budget_tokens is not None and budget_tokens < 1:
        raise InvalidInput(f"{budget_tokens} tokens hold nothing", "a budget is 1 token or more")
    groups = [_chat_group(exchange) for exchange in exchanges(_path(thread, leaf)) if _is_told(exchange)]
    if budget_tokens is not None:
        groups = _within(groups, budget_tokens, count_tokens or estimate_tokens)
    return [message for group in groups for message in group]


def exchanges(path: Iterable[Message]) -> list[Exchange]:
    """The messages of a path, each result moved to the call it answers.

    A call's result is the first message after it that carries its id; where a later message makes a call of
    the same id, what follows belongs to that one. A result whose call is not on the path stays where it is.
    """
    found: list[tuple[Message, list[Message | None]]] = []
    open_calls: dict[str, tuple[int, int]] = {}
    for message in path:
        place = open_calls.pop(message.tool_call_id, None) if message.role == "tool" else None
        if place is not None:
            found[place[0]][1][place[1]] = message
            continue
        for position, call in enumerate(message.tool_calls):
            open_calls[call.id] = (len(found), position)
        found.append((message, [None] * len(message.tool_calls)))
    return [Exchange(message, tuple(results)) for message, results in found]


def estimate_tokens(text: str) -> int:
    """Tokens that `text` takes, on the high side: a third of its UTF-8 bytes, rounded up.

    English comes out a third too high; code, Chinese and Japanese about right, for the tokenizers in use.
    """
    return math.ceil(len(text.encode(errors="replace")) / 3)


def _path(thread: Thread, leaf: str | None) -> list[Message]:
    if leaf is None:
        return []
    if leaf not in thread.tree:
        raise NotFound("message", leaf, f"`raddle show {thread.id} --tree` lists them")
    return thread.tree.path_to_root(leaf)


def _is_left_out(message: Message) -> bool:
    return message.kind == NOTICE or message.is_purged


def _label(role: str) -> str:
    """A role as a label: one line, no brackets of its own."""
    return " ".join(re.sub(r"[\[\]]", " ", role).split()) or "unknown"


def _without_labels(content: str, labels: set[str]) -> str:
    names = "|".join(sorted((re.escape(label) for label in labels), key=len, reverse=True))
    indent = rf"(?:^|[{_LINE_ENDS}])[^\S{_LINE_ENDS}]*"
    forged = re.compile(rf"({indent})(?=\[\s*(?:{names})\s*\](?:\s|$))", re.IGNORECASE)
    return forged.sub(r"\1\\", content)


def _is_told(exchange: Exchange) -> bool:
    """Is there anything in it that a chat API takes?"""
    message = exchange.message
    if exchange.is_orphan or _is_left_out(message):
        return False
    return bool(message.content.strip() or message.tool_calls or message.attachments)


def _chat_group(exchange: Exchange) -> list[ChatMessage]:
    message = exchange.message
    is_known = message.role in ROLES
    group = [
        ChatMessage(
            role=message.role if is_known else "user",
            content=message.content if is_known else f"[{_label(message.role)}] {message.content}",
            tool_calls=message.tool_calls,
            attachments=message.attachments,
            message_id=message.id,
        )
    ]
    for call, result in zip(message.tool_calls, exchange.results, strict=True):
        is_recorded = result is not None and not result.is_purged
        group.append(
            ChatMessage(
                role="tool",
                content=result.content if result is not None and is_recorded else NO_RESULT,
                tool_call_id=call.id,
                tool_name=call.tool_name,
                is_error=result.is_error if result is not None and is_recorded else True,
                attachments=result.attachments if result is not None else (),
                message_id=result.id if result is not None else "",
            )
        )
    return group


def _within(
    groups: Sequence[list[ChatMessage]], budget: int, count_tokens: CountTokens
) -> list[list[ChatMessage]]:
    costs = [sum(_cost(message, count_tokens) for message in group) for group in groups]
    head = next((n for n, group in enumerate(groups) if group[0].role != "system"), len(groups))
    if sum(costs) <= budget:
        return list(groups)
    left = budget - sum(costs[:head]) - _cost(_gap(len(groups)), count_tokens)
    start = len(groups)
    while start > head and (start == len(groups) or costs[start - 1] <= left):
        start -= 1
        left -= costs[start]
    missing = sum(len(group) for group in groups[head:start])
    return [*groups[:head], *([[_gap(missing)]] if missing else []), *groups[start:]]


def _gap(count: int) -> ChatMessage:
    messages = "1 earlier message" if count == 1 else f"{count} earlier messages"
    return ChatMessage(role="user", content=f"[{messages} of this conversation left out here]")


def _cost(message: ChatMessage, count_tokens: CountTokens) -> int:
    words = [message.content, message.tool_name]
    for call in message.tool_calls:
        words += [call.id, call.tool_name, _json_text(call.arguments_json)]
    images = sum(1 for attachment in message.attachments if not attachment.is_body)
    return MESSAGE_TOKENS + images * IMAGE_TOKENS + sum(count_tokens(text) for text in words if text)


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
