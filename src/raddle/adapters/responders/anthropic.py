"""Whoever speaks Anthropic's Messages API, streamed.

Owns that API's shapes: turns that alternate, results beside the user's words, the system's words apart.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from raddle.actions.answering.ports import Answered, Event, Pause, Question, ReadBytes
from raddle.actions.answering.settings import URLS, ResponderSettings, key_hint_of
from raddle.adapters.responders.arriving import Arriving, arrival, count_of, part_of, text_of
from raddle.adapters.responders.attachments import Document, Image, Part, Text, parts_of, words_of
from raddle.adapters.responders.calls import SentCalls, arguments_of, name_of
from raddle.adapters.responders.http import Endpoint, Key
from raddle.adapters.responders.retrying import Persistence, retried
from raddle.model.errors import Rejected
from raddle.model.threads.message import Usage
from raddle.model.threads.rendering import ChatMessage

MAX_TOKENS = 32_000
"""This API wants to be told; the most that all its models of today take."""
_ANTHROPIC = "api.anthropic.com"
_VERSION = "2023-06-01"
_BEGINS = "[the conversation begins with an answer]"
"""This API wants the first turn to be the user's."""

Block = dict[str, Any]


class AnthropicResponder:
    """See `Responder`. A key is needed for https, unless it is this machine."""

    kind = "anthropic"
    lives_on = False

    def __init__(
        self,
        settings: ResponderSettings,
        *,
        key: Key,
        pause: Pause,
        random: Callable[[], float],
        folder: Path | None = None,
        socket_path: Path | None = None,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._how = Persistence(settings.retries, pause, random)
        url = (settings.url or URLS["anthropic"]).rstrip("/")
        self._endpoint = Endpoint(
            # What other programs call the base of this API has no /v1.
            url if url.endswith("/v1") else f"{url}/v1",
            name=settings.name,
            key=key,
            key_hint=key_hint_of(settings),
            needs_key=None if settings.takes_key else False,
            header=lambda key: ("x-api-key", key),
            headers={"anthropic-version": _VERSION},
            timeout_seconds=settings.timeout_seconds,
            socket_path=socket_path,
        )

    def ask(self, question: Question) -> Iterator[Event]:
        """See `Responder`."""
        body = request_of(question, self._settings)
        yield (yield from retried(lambda: self._attempt(body), self._how))

    def _attempt(self, body: dict[str, Any]) -> Generator[Event, None, Answered]:
        host = self._endpoint.host
        with self._endpoint.connected() as connection:
            arriving = Arriving(host, connection.told, connection.without_key)
            stream = connection.events("POST", "/messages", body, is_whole=_is_whole)
            yield from arrival(arriving, stream, _read)
        provider = "anthropic" if host == _ANTHROPIC else self.name
        return arriving.answered(provider=provider, model=body["model"])


def request_of(question: Question, settings: ResponderSettings) -> dict[str, Any]:
    """The body of a request. Rejected where no model is named."""
    model = question.model or settings.model
    if not model:
        raise Rejected(
            f"no model is named for {settings.name}", f"say `model` in [responders.{settings.name}]"
        )
    messages = question.messages
    head = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    said = [settings.system, *(words_of(message, question.read) for message in messages[:head])]
    system = "\n\n".join(words for words in said if words.strip())
    calls = SentCalls()
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": settings.max_tokens or MAX_TOKENS,
        "messages": messages_of(messages[head:], question.read, calls),
        "stream": True,
    }
    if system:
        body["system"] = system
    if calls.names:
        # Calls in a conversation are taken only with their tools; nobody is here to run another.
        schema = {"type": "object", "additionalProperties": True}
        body["tools"] = [{"name": name, "input_schema": schema} for name in calls.names]
        body["tool_choice"] = {"type": "none"}
    effort = question.effort or settings.effort
    if effort:
        body["output_config"] = {"effort": effort}
    return body


def messages_of(messages: Sequence[ChatMessage], read: ReadBytes, calls: SentCalls) -> list[dict[str, Any]]:
    """Messages in this API's shapes: the user's and the assistant's in turns."""
    sent: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _assistant(message, read, calls) if role == "assistant" else _user(message, read, calls)
        if not blocks:
            continue
        if sent and sent[-1]["role"] == role:
            sent[-1]["content"] += blocks
        else:
            sent.append({"role": role, "content": blocks})
    if sent and sent[0]["role"] == "assistant":
        sent.insert(0, {"role": "user", "content": [{"type": "text", "text": _BEGINS}]})
    return sent


def _assistant(message: ChatMessage, read: ReadBytes, calls: SentCalls) -> list[Block]:
    # No turn of the assistant may end in white space where nothing follows it.
    words = words_of(message, read).rstrip()
    blocks: list[Block] = [{"type": "text", "text": words}] if words else []
    blocks += [
        {
            "type": "tool_use",
            "id": calls.add(call),
            "name": name_of(call.tool_name),
            "input": arguments_of(call),
        }
        for call in message.tool_calls
    ]
    return blocks


def _user(message: ChatMessage, read: ReadBytes, calls: SentCalls) -> list[Block]:
    blocks = [_block(part) for part in parts_of(message, read)]
    if message.role == "system":
        return [{"type": "text", "text": "[system]"}, *blocks] if blocks else []
    if message.role != "tool":
        return blocks
    call_id = calls.result(message.tool_call_id)
    if call_id is None:
        return [{"type": "text", "text": f"[tool] {message.tool_name}".strip()}, *blocks]
    result: Block = {"type": "tool_result", "tool_use_id": call_id}
    if blocks:
        result["content"] = blocks
    if message.is_error:
        result["is_error"] = True
    return [result]


def _block(part: Part) -> Block:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(media_type, data):
            return {"type": "image", "source": _source(media_type, data)}
        case Document(name, data):
            return {"type": "document", "source": _source("application/pdf", data), "title": name}


def _source(media_type: str, data: bytes) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}


def _is_whole(plain: dict[str, Any]) -> bool:
    """Is it a message that was not streamed?"""
    return plain.get("type") == "message" and isinstance(plain.get("content"), list)


def _read(arriving: Arriving, event: dict[str, Any]) -> Iterator[Event]:
    match event.get("type"):
        case "message_start":
            message = part_of(event, "message")
            arriving.model = arriving.told(message.get("model"))
            arriving.usage = usage_of(part_of(message, "usage"), arriving.usage)
        case "content_block_start":
            yield from _begin(arriving, count_of(event.get("index")), part_of(event, "content_block"))
        case "content_block_delta":
            yield from _go_on(arriving, count_of(event.get("index")), part_of(event, "delta"))
        case "message_delta":
            arriving.end = text_of(part_of(event, "delta").get("stop_reason")) or arriving.end
            arriving.usage = usage_of(part_of(event, "usage"), arriving.usage)
        case "message":
            yield from _read_whole(arriving, event)
        case "message_stop":
            arriving.is_whole = True
        case "error":
            arriving.fail(event.get("error"))
        case _:  # a ping, or something that this API did not have yet
            return


def _read_whole(arriving: Arriving, message: dict[str, Any]) -> Iterator[Event]:
    arriving.model = arriving.told(message.get("model"))
    arriving.usage = usage_of(part_of(message, "usage"))
    arriving.end = text_of(message.get("stop_reason"))
    blocks = message.get("content")
    for index, block in enumerate(blocks if isinstance(blocks, list) else []):
        if isinstance(block, dict):
            yield from _begin(arriving, index, block)
            if block.get("type") == "tool_use":
                arriving.calls.take(index, arguments=json.dumps(part_of(block, "input")))


def _begin(arriving: Arriving, index: int | None, block: dict[str, Any]) -> Iterator[Event]:
    yield from arriving.piece(text=text_of(block.get("text")), thinking=text_of(block.get("thinking")))
    if block.get("type") == "tool_use":
        arriving.calls.take(index, call_id=text_of(block.get("id")), name=text_of(block.get("name")))


def _go_on(arriving: Arriving, index: int | None, delta: dict[str, Any]) -> Iterator[Event]:
    match delta.get("type"):
        case "text_delta":
            yield from arriving.piece(text=text_of(delta.get("text")))
        case "thinking_delta":
            yield from arriving.piece(thinking=text_of(delta.get("thinking")))
        case "input_json_delta":
            arriving.calls.take(index, arguments=text_of(delta.get("partial_json")))
        case _:  # signatures and citations, which a thread has no place for
            return


def usage_of(plain: dict[str, Any], before: Usage | None = None) -> Usage | None:
    """Tokens as far as they are told; they are told twice, the later word counts."""
    told = {
        "input_tokens": count_of(plain.get("input_tokens")),
        "output_tokens": count_of(plain.get("output_tokens")),
        "cache_read_tokens": count_of(plain.get("cache_read_input_tokens")),
        "cache_write_tokens": count_of(plain.get("cache_creation_input_tokens")),
    }
    known = {name: count for name, count in told.items() if count is not None}
    return replace(before or Usage(), **known) if known else before
