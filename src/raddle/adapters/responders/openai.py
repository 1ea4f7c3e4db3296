"""Whoever speaks OpenAI's Chat Completions, streamed: OpenAI, Ollama, vLLM, LiteLLM, OpenRouter.

Owns that API's shapes. They all differ a little: what only some of them understand is sent only where it is needed, and
what they send is read as far as it goes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from raddle.actions.answering.ports import Answered, Event, Pause, Question, ReadBytes
from raddle.actions.answering.settings import URLS, ResponderSettings, key_hint_of
from raddle.adapters.responders.arriving import Arriving, arrival, count_of, part_of, text_of
from raddle.adapters.responders.attachments import (
    Document,
    Image,
    Part,
    Text,
    joined,
    parts_of,
    words_of,
)
from raddle.adapters.responders.calls import SentCalls, arguments_of, name_of
from raddle.adapters.responders.http import Endpoint, Key, Refused
from raddle.adapters.responders.retrying import Persistence, retried
from raddle.model.errors import Rejected
from raddle.model.threads.message import Usage
from raddle.model.threads.rendering import ChatMessage

_OPENAI = "api.openai.com"
_FILES_OF_RESULTS = "[what the tools' results above hold besides words]"


class OpenAIResponder:
    """See `Responder`. A key is needed for https, unless it is this machine."""

    kind = "openai"
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
        self._endpoint = Endpoint(
            settings.url or URLS["openai"],
            name=settings.name,
            key=key,
            key_hint=key_hint_of(settings),
            needs_key=None if settings.takes_key else False,
            timeout_seconds=settings.timeout_seconds,
            socket_path=socket_path,
        )

    def ask(self, question: Question) -> Iterator[Event]:
        """See `Responder`."""
        host = self._endpoint.host
        body = request_of(question, self._settings, is_openai=host == _OPENAI)
        try:
            answered = yield from retried(lambda: self._attempt(body), self._how)
        except Refused as error:
            # Some servers know nothing of it, and refuse what they do not know; counts are no reason to go without.
            if error.status not in {400, 422} or "stream_options" not in error.message:
                raise
            del body["stream_options"]
            answered = yield from retried(lambda: self._attempt(body), self._how)
        yield answered

    def _attempt(self, body: dict[str, Any]) -> Generator[Event, None, Answered]:
        host = self._endpoint.host
        with self._endpoint.connected() as connection:
            arriving = Arriving(host, connection.told, connection.without_key)
            stream = connection.events("POST", "/chat/completions", body, is_whole=_is_whole)
            yield from arrival(arriving, stream, _read)
        provider = "openai" if host == _OPENAI else self.name
        return arriving.answered(provider=provider, model=body["model"])


def request_of(question: Question, settings: ResponderSettings, *, is_openai: bool) -> dict[str, Any]:
    """The body of a request. Rejected where no model is named."""
    model = question.model or settings.model
    if not model:
        raise Rejected(
            f"no model is named for {settings.name}", f"say `model` in [responders.{settings.name}]"
        )
    effort = question.effort or settings.effort
    body: dict[str, Any] = {
        "model": model,
        "messages": messages_of(question, settings.system),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if settings.max_tokens is not None:
        # OpenAI's newer models take only the one, most other servers only the other.
        body["max_completion_tokens" if is_openai else "max_tokens"] = settings.max_tokens
    if effort:
        body["reasoning_effort"] = effort
    return body


def messages_of(question: Question, system: str = "") -> list[dict[str, Any]]:
    """The messages of a question in this API's shapes, `system` before all of them."""
    sent: list[dict[str, Any]] = [{"role": "system", "content": system}] if system.strip() else []
    calls = SentCalls()
    files: list[Part] = []
    for message in question.messages:
        if message.role != "tool" and files:
            sent.append({"role": "user", "content": _content([Text(_FILES_OF_RESULTS), *files])})
            files = []
        if message.role == "tool":
            sent.append(_result(message, question.read, calls, files))
        elif message.role == "assistant":
            sent.append(_assistant(message, question.read, calls))
        elif message.role == "system":
            sent.append({"role": "system", "content": words_of(message, question.read)})
        else:
            sent.append({"role": "user", "content": _content(parts_of(message, question.read))})
    if files:
        sent.append({"role": "user", "content": _content([Text(_FILES_OF_RESULTS), *files])})
    return sent


def _result(message: ChatMessage, read: ReadBytes, calls: SentCalls, files: list[Part]) -> dict[str, Any]:
    """A result; what it holds besides words is put into `files`, since a result takes only words."""
    parts = parts_of(message, read)
    call_id = calls.result(message.tool_call_id)
    if call_id is None:
        return {"role": "user", "content": _content([Text(f"[tool] {message.tool_name}".strip()), *parts])}
    files += [part for part in parts if not isinstance(part, Text)]
    return {"role": "tool", "tool_call_id": call_id, "content": joined(parts)}


def _assistant(message: ChatMessage, read: ReadBytes, calls: SentCalls) -> dict[str, Any]:
    words = words_of(message, read)
    if not message.tool_calls:
        return {"role": "assistant", "content": words}
    made = [
        {
            "id": calls.add(call),
            "type": "function",
            "function": {
                "name": name_of(call.tool_name),
                "arguments": json.dumps(arguments_of(call), ensure_ascii=False),
            },
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": words or None, "tool_calls": made}


def _content(parts: list[Part]) -> str | list[dict[str, Any]]:
    """Nothing but words is one text, which every server takes."""
    if all(isinstance(part, Text) for part in parts):
        return joined(parts)
    return [_part(part) for part in parts]


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(media_type, data):
            return {"type": "image_url", "image_url": {"url": _data_url(media_type, data)}}
        case Document(name, data):
            return {
                "type": "file",
                "file": {"filename": name, "file_data": _data_url("application/pdf", data)},
            }


def _data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def _is_whole(plain: dict[str, Any]) -> bool:
    """Is it a completion that was not streamed?"""
    choices = plain.get("choices")
    return isinstance(choices, list) and any(part_of(choice, "message") for choice in choices)


def _read(arriving: Arriving, chunk: dict[str, Any]) -> Iterator[Event]:
    if chunk.get("error"):
        arriving.fail(chunk["error"])
    arriving.model = arriving.model or arriving.told(chunk.get("model"))
    if isinstance(chunk.get("usage"), dict):
        arriving.usage = usage_of(chunk["usage"])
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict) and choice.get("index", 0) in {0, None}:
            yield from _read_choice(arriving, choice)


def _read_choice(arriving: Arriving, choice: dict[str, Any]) -> Iterator[Event]:
    delta = part_of(choice, "delta") or part_of(choice, "message")
    text, thinking = _words(delta.get("content"))
    thinking = text_of(delta.get("reasoning_content")) or text_of(delta.get("reasoning")) or thinking
    yield from arriving.piece(text=text + text_of(delta.get("refusal")), thinking=thinking)
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            called = part_of(call, "function")
            arriving.calls.take(
                count_of(call.get("index")),
                call_id=text_of(call.get("id")),
                name=text_of(called.get("name")),
                arguments=text_of(called.get("arguments")),
            )
    end = text_of(choice.get("finish_reason"))
    if end == "error":
        arriving.fail(choice.get("error") or "the model failed")
    arriving.end = end or arriving.end


def _words(content: Any) -> tuple[str, str]:
    """(Text, thinking) of a delta's content; some servers send a list of parts."""
    if not isinstance(content, list):
        return text_of(content), ""
    texts, thoughts = [], []
    for part in content:
        if isinstance(part, dict):
            texts.append(text_of(part.get("text")))
            inner = part.get("thinking")
            thoughts.append(_words(inner)[0] if isinstance(inner, list) else text_of(inner))
    return "".join(texts), "".join(thoughts)


def usage_of(plain: dict[str, Any]) -> Usage:
    """Tokens; this API counts cached ones among the prompt's, a thread apart."""
    prompt, cached = (
        count_of(plain.get("prompt_tokens")),
        count_of(part_of(plain, "prompt_tokens_details").get("cached_tokens")),
    )
    return Usage(
        input_tokens=None if prompt is None else max(0, prompt - (cached or 0)),
        output_tokens=count_of(plain.get("completion_tokens")),
        cache_read_tokens=cached,
    )
