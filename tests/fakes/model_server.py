"""A model on this machine, for the agents' own programs: it speaks what each of them asks, and notes every request.

Real HTTP on a port of 127.0.0.1: OpenAI's Responses API (Codex) and Chat Completions (OpenCode), both as streams, and
Gemini's `generateContent` and `streamGenerateContent` (Gemini CLI). It runs as a process of its own, because a test
has no network: `python -m tests.fakes.model_server FILE` prints its address, adds each request to FILE as one line of
JSON, and ends when its stdin does.

It answers `Answer N.`, unless the newest words of a person ask for tools: `[call NAME argument=value; other:=JSON]`,
which it calls one after another.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

_CALL = re.compile(r"\[call ([\w.-]+) ?([^\]]*)\]")
_ROOT = Path(__file__).resolve().parent.parent.parent


class Asked(NamedTuple):
    """A request: its path without the query, and its body."""

    path: str
    body: Any


class Model(NamedTuple):
    """A model that runs. `address`: `http://127.0.0.1:PORT`."""

    address: str
    log: Path

    def requests(self) -> list[Asked]:
        """Every request so far."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [Asked(*json.loads(line)) for line in lines]


@contextlib.contextmanager
def running_model(folder: Path) -> Iterator[Model]:
    """A model whose requests are noted in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "requests.jsonl"
    command = [sys.executable, "-m", "tests.fakes.model_server", str(log)]
    with subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        address = process.stdout.readline().strip()
        assert address, "the model did not start"
        try:
            yield Model(address, log)
        finally:
            process.stdin.close()
            process.wait(30)


class _Reply(NamedTuple):
    """What the model says: words, or a call of a tool (id, name, arguments)."""

    words: str
    call: tuple[str, str, dict[str, Any]] | None = None


class _Door(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    log: Path
    counter: itertools.count[int]
    lock = threading.Lock()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Which models there are."""
        self._send(json.dumps({"object": "list", "data": [], "models": []}).encode(), "application/json")

    def do_POST(self) -> None:
        """A request to the model."""
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"null")
        path = self.path.partition("?")[0]
        with self.lock, self.log.open("a") as file:
            file.write(json.dumps([path, body]) + "\n")
        if path.endswith("/responses"):
            self._stream(_of_responses(self._reply(*_asked_of_responses(body))))
        elif path.endswith("/chat/completions"):
            self._stream(_of_chat(self._reply(*_asked_of_chat(body))))
        elif path.endswith(":streamGenerateContent"):
            self._stream(_of_gemini(self._reply(*_asked_of_gemini(body))))
        elif path.endswith(":generateContent"):
            (answer,) = _of_gemini(self._reply(*_asked_of_gemini(body)))
            self._send(json.dumps(answer).encode(), "application/json")
        else:
            self._send(b'{"totalTokens": 1}', "application/json")

    def _reply(self, asked: str, results: int) -> _Reply:
        """What is due after so many results of the calls that were asked for."""
        number = next(self.counter)
        if asked.startswith('"'):
            asked = asked.replace('\\"', '"')  # OpenCode quotes words with spaces in them
        due = list(_CALL.finditer(asked))[results : results + 1]
        if not due:
            return _Reply(f"Answer {number}.")
        (found,) = due
        arguments = dict(_argument(one) for one in found[2].split("; ") if one)
        return _Reply("", (f"call_{number}", found[1], arguments))

    def _stream(self, events: list[dict[str, Any]]) -> None:
        named = [(f"event: {event['type']}\n" if "type" in event else "", event) for event in events]
        told = "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in named)
        is_chat = "choices" in events[0]
        self._send((told + ("data: [DONE]\n\n" if is_chat else "")).encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _argument(said: str) -> tuple[str, Any]:
    """`name=text`, or `name:=JSON`."""
    name, _, value = said.partition("=")
    return (name[:-1], json.loads(value)) if name.endswith(":") else (name, value)


def _texts(content: Any) -> str:
    """The words of a content, whatever shape it has."""
    if isinstance(content, str):
        return content
    return " ".join(part.get("text") or "" for part in content or () if isinstance(part, dict))


def _asked_of_responses(body: Any) -> tuple[str, int]:
    """The newest words of a person, and how many results of tools came after them."""
    turns = body.get("input") or []
    at = max((at for at, turn in enumerate(turns) if turn.get("role") == "user"), default=len(turns))
    words = _texts(turns[at].get("content")) if at < len(turns) else ""
    return words, sum(turn.get("type") == "function_call_output" for turn in turns[at:])


def _asked_of_chat(body: Any) -> tuple[str, int]:
    turns = body["messages"] if body.get("tools") else []
    at = max((at for at, turn in enumerate(turns) if turn["role"] == "user"), default=len(turns))
    words = _texts(turns[at].get("content")) if at < len(turns) else ""
    return words, sum(turn["role"] == "tool" for turn in turns[at:])


def _asked_of_gemini(body: Any) -> tuple[str, int]:
    turns = body["contents"] if body.get("tools") else []
    said = [
        at
        for at, turn in enumerate(turns)
        if turn.get("role") == "user" and _texts(turn.get("parts")).strip()
    ]
    at = max(said, default=len(turns))
    words = _texts(turns[at].get("parts")) if at < len(turns) else ""
    return words, sum("functionResponse" in part for turn in turns[at:] for part in turn.get("parts") or ())


def _of_responses(reply: _Reply) -> list[dict[str, Any]]:
    """Events of the Responses API."""
    if reply.call is not None:
        call_id, name, arguments = reply.call
        namespace, _, last = name.rpartition(".")
        item: dict[str, Any] = {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            **({"namespace": namespace} if namespace else {}),
            "name": last,
            "arguments": json.dumps(arguments),
        }
    else:
        content = [{"type": "output_text", "text": reply.words, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    }
    return [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}},
    ]


def _of_chat(reply: _Reply) -> list[dict[str, Any]]:
    """Chunks of a chat completion."""

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }

    said: dict[str, Any] = {"content": reply.words}
    if reply.call is not None:
        call_id, name, arguments = reply.call
        function = {"name": name, "arguments": json.dumps(arguments)}
        said = {"tool_calls": [{"index": 0, "id": call_id, "type": "function", "function": function}]}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    last = chunk({}, "stop" if reply.call is None else "tool_calls") | {"usage": usage}
    return [chunk({"role": "assistant"}), chunk(said), last]


def _of_gemini(reply: _Reply) -> list[dict[str, Any]]:
    """The one answer of Gemini's API."""
    part: dict[str, Any] = {"text": reply.words}
    if reply.call is not None:
        call_id, name, arguments = reply.call
        part = {"functionCall": {"id": call_id, "name": name, "args": arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}
    return [{"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro"}]


def main(log: str) -> None:
    """Serve until stdin ends."""
    _Door.log, _Door.counter = Path(log), itertools.count(1)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Door)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    while os.read(0, 1):
        continue
    server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
