"""A model's API of our own, for who asks one: real HTTP on a Unix socket, and every way in which such a server fails.

It speaks OpenAI's Chat Completions and Anthropic's Messages, both streamed. Each request gets the next of the answers
that a test wrote down (the last one again and again), and is noted.
"""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tests.builders_served import short_folder

_PATIENCE_SECONDS = 30


class Asked(NamedTuple):
    """A request. `headers` by name in small letters."""

    path: str
    headers: Mapping[str, str]
    body: Any


class Says(NamedTuple):
    """An answer, its body piece by piece. `then`: it ends, the connection breaks, or nothing more comes.

    `status` 0: the connection breaks before any answer. `meanwhile`: done after the last piece.
    """

    status: int = 200
    pieces: Iterable[bytes] = ()
    kind: str = "text/event-stream"
    headers: Mapping[str, str] = {}
    then: Literal["ends", "breaks", "hangs"] = "ends"
    meanwhile: Callable[[], object] = lambda: None


def refusal(status: int, words: str = "", **headers: str) -> Says:
    """As both APIs say no; `headers` by name with _ for -."""
    body = json.dumps({"error": {"message": words, "type": "some_error"}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Says(status, [body], "application/json", named)


class Call(NamedTuple):
    """A tool that the model calls. `arguments` in pieces of JSON."""

    id: str
    name: str
    arguments: Sequence[str]


class Story(NamedTuple):
    """What a model says. `end`: stop, max_tokens, content_filter, or nothing: it is cut off there."""

    pieces: Iterable[str] = ()
    thinking: Iterable[str] = ()
    calls: Sequence[Call] = ()
    end: str = "stop"
    model: str = "some-model-2026"


def openai_stream(story: Story, *, with_done: bool = True) -> Iterator[bytes]:
    """A story as Chat Completions stream it."""

    def chunk(**choice: Any) -> bytes:
        choices = [{"index": 0, "finish_reason": None, **choice}]
        return _data(
            {"id": "c1", "object": "chat.completion.chunk", "model": story.model, "choices": choices}
        )

    yield chunk(delta={"role": "assistant", "content": ""})
    for thought in story.thinking:
        yield chunk(delta={"reasoning_content": thought})
    for piece in story.pieces:
        yield chunk(delta={"content": piece})
    for index, call in enumerate(story.calls):
        begun = {"index": index, "id": call.id, "type": "function"}
        yield chunk(delta={"tool_calls": [{**begun, "function": {"name": call.name, "arguments": ""}}]})
        for part in call.arguments:
            yield chunk(delta={"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    if not story.end:
        return
    ends = {"stop": "tool_calls" if story.calls else "stop", "max_tokens": "length"}
    yield chunk(delta={}, finish_reason=ends.get(story.end, story.end))
    usage = {"prompt_tokens": 120, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 100}}
    yield _data({"id": "c1", "model": story.model, "choices": [], "usage": usage})
    if with_done:
        yield b"data: [DONE]\n\n"


def anthropic_stream(story: Story) -> Iterator[bytes]:
    """A story as Messages stream it."""
    usage = {"input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 1}
    message = {"id": "m1", "role": "assistant", "model": story.model, "content": [], "usage": usage}
    yield _event("message_start", message=message)
    yield _event("ping")
    blocks: list[tuple[dict[str, Any], str, str, Iterable[str]]] = []
    if story.thinking:
        blocks.append(({"type": "thinking", "thinking": ""}, "thinking_delta", "thinking", story.thinking))
    blocks.append(({"type": "text", "text": ""}, "text_delta", "text", story.pieces))
    for call in story.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        blocks.append((block, "input_json_delta", "partial_json", call.arguments))
    for index, (block, kind, field, parts) in enumerate(blocks):
        yield _event("content_block_start", index=index, content_block=block)
        for part in parts:
            yield _event("content_block_delta", index=index, delta={"type": kind, field: part})
        if story.end or index + 1 < len(blocks):
            yield _event("content_block_stop", index=index)
    if not story.end:
        return
    ends = {"stop": "tool_use" if story.calls else "end_turn", "content_filter": "refusal"}
    delta = {"stop_reason": ends.get(story.end, story.end), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage={"output_tokens": 7})
    yield _event("message_stop")


def openai_error(words: str, code: str = "bad_thing") -> bytes:
    """An error in the middle of a stream."""
    return _data({"error": {"message": words, "code": code}})


def anthropic_error(words: str, code: str = "bad_thing") -> bytes:
    """An error in the middle of a stream."""
    return _event("error", error={"type": code, "message": words})


class Wire(NamedTuple):
    """One of the two APIs, as a test tells it."""

    stream: Callable[[Story], Iterator[bytes]]
    error: Callable[[str, str], bytes]
    path: str


OPENAI = Wire(openai_stream, openai_error, "/v1/chat/completions")
ANTHROPIC = Wire(anthropic_stream, anthropic_error, "/v1/messages")


class ModelHttp:
    """Use `serving_model`. `requests`: all so far. `answers`: what is still to be said, to be changed by a test."""

    def __init__(self, socket_path: Path) -> None:
        self.socket_path = socket_path
        self.requests: list[Asked] = []
        self.answers: list[Says] = []
        self.has_lost_somebody = threading.Event()
        """Somebody went away while an answer was still coming."""
        self.is_over = threading.Event()

    def next_answer(self) -> Says:
        """What comes now."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextlib.contextmanager
def serving_model(*answers: Says) -> Iterator[ModelHttp]:
    """A server that answers so."""
    with short_folder() as folder:
        model = ModelHttp(folder / "s")
        model.answers = list(answers)
        server = _Server(model)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="model", daemon=True)
        thread.start()
        try:
            yield model
        finally:
            model.is_over.set()
            server.shutdown()
            server.server_close()
            thread.join(_PATIENCE_SECONDS)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, model: ModelHttp) -> None:
        self.model = model
        super().__init__(str(model.socket_path), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients of ours go away on purpose."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "a socket"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Tests say what they see."""

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.model.requests.append(Asked(self.path, headers, json.loads(data)))
        says = self.server.model.next_answer()
        self.close_connection = True
        if says.status:
            try:
                self._say(says)
            except OSError:
                self.server.model.has_lost_somebody.set()
                return
        says.meanwhile()
        if says.then == "hangs":
            self._hang()

    def _say(self, says: Says) -> None:
        self.send_response_only(says.status)
        for name, value in {
            "Content-Type": says.kind,
            "Transfer-Encoding": "chunked",
            "Connection": "close",
            **says.headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in says.pieces:
            if piece:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if says.then == "ends":
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _hang(self) -> None:
        self.connection.settimeout(0.05)
        while not self.server.model.is_over.is_set():
            try:
                is_gone = not self.connection.recv(1)
            except TimeoutError:
                continue
            except OSError:  # it went away with something unread
                is_gone = True
            if is_gone:
                self.server.model.has_lost_somebody.set()
                return


def _data(plain: Any) -> bytes:
    return b"data: %b\n\n" % json.dumps(plain, ensure_ascii=False).encode()


def _event(kind: str, **plain: Any) -> bytes:
    return b"event: %b\n%b" % (kind.encode(), _data({"type": kind, **plain}))
