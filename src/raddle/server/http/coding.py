"""Bodies coded with gzip or zstd, both ways, as one ASGI layer around the application.

A body is expanded piece by piece and refused as soon as it grows over the limit: what is asked for first is
how large it would be, never whether there is memory for it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import msgspec
import zstandard
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from raddle.model.protocol.wire import MOST_BODY_BYTES
from raddle.server.http.pace import BODY_SECONDS, Paced, TooSlow
from raddle.server.http.problems import MEDIA_TYPE, problem

_LEAST_WORTH_CODING = 600
_STREAMED = "/api/blobs/"
_PIECE = 1 << 20
MOST_HELD_BYTES = 512 << 20


class _Refused(Exception):
    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


class _Overrun(ValueError):
    """More came after the end of what was coded."""


class _Expander(Protocol):
    def feed(self, data: bytes) -> Iterable[bytes]:
        """What `data` expands to, in pieces; _Overrun where it goes on after its end, which nobody would read."""

    def is_done(self) -> bool:
        """Did the body end where its coding says that it does?"""


class _Plain:
    def feed(self, data: bytes) -> Iterable[bytes]:
        yield data

    def is_done(self) -> bool:
        return True


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> Iterable[bytes]:
        while data:
            if self._inner.eof:
                raise _Overrun
            yield self._inner.decompress(data, _PIECE)
            data = self._inner.unconsumed_tail or self._inner.unused_data

    def is_done(self) -> bool:
        return self._inner.eof


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj(write_size=_PIECE)

    def feed(self, data: bytes) -> Iterable[bytes]:
        # One frame may expand ten thousand times: small pieces in keep the pieces out small.
        for at in range(0, len(data), 4096):
            if self._inner.eof:
                raise _Overrun
            yield self._inner.decompress(data[at : at + 4096])
        if self._inner.unused_data:
            raise _Overrun

    def is_done(self) -> bool:
        return self._inner.eof


_EXPANDERS: dict[str, type[_Plain | _Gzip | _Zstd]] = {
    "": _Plain,
    "identity": _Plain,
    "gzip": _Gzip,
    "zstd": _Zstd,
}


class _Shelf:
    """Room for the bodies that a process holds at once: whoever sends them, signed in or not, memory is not theirs."""

    def __init__(self, most: int) -> None:
        self.free = most


class _Share:
    """What one request takes of the room."""

    def __init__(self, shelf: _Shelf) -> None:
        self._shelf = shelf
        self.size = 0

    def take(self, size: int) -> None:
        """_Refused where there is no more."""
        if size > self._shelf.free:
            raise _Refused(503, "busy", "the server has its hands full; try again in a moment")
        self._shelf.free -= size
        self.size += size

    def give_back(self) -> None:
        """All of it."""
        self._shelf.free += self.size
        self.size = 0


class Coding:
    """Expands what comes in, up to `limit` bytes, and codes what goes out as the caller accepts.

    `seconds`: how long the first bytes of a body may take (`pace.py`). `held`: bytes of all bodies in hand at once.
    """

    def __init__(
        self,
        app: ASGIApp,
        limit: int = MOST_BODY_BYTES,
        *,
        seconds: float = BODY_SECONDS,
        held: int = MOST_HELD_BYTES,
    ) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds
        self._shelf = _Shelf(held)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        receive = Paced(receive, self._seconds)
        out = _Answer(send, _best_coding(headers.get(b"accept-encoding", "")))
        if scope["path"].startswith(_STREAMED):
            await self._app(scope, receive, out if scope["method"] != "GET" else send)
            return
        share = _Share(self._shelf)
        try:
            body = await self._body(headers, receive, share)
            if body is not None:
                kept = [(name, value) for name, value in scope["headers"] if name.lower() not in _REPLACED]
                kept.append((b"content-length", str(len(body)).encode()))
                scope["headers"] = kept
                await self._app(scope, _Body(body, receive), out)
        except _Refused as refused:
            await _refuse(send, refused)
        except TooSlow as slow:
            await _refuse(send, _Refused(slow.status_code, "request_timeout", slow.detail))
        finally:
            share.give_back()

    async def _body(self, headers: dict[bytes, str], receive: Receive, share: _Share) -> bytes | None:
        """The whole body, expanded; None where the caller went away."""
        coding = headers.get(b"content-encoding", "").strip().lower()
        if coding not in _EXPANDERS:
            raise _Refused(415, "unknown_coding", "content-encoding is none of gzip, zstd, identity")
        declared = headers.get(b"content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared) > self._limit:
            raise _too_large(self._limit)
        expander: _Expander = _EXPANDERS[coding]()
        pieces: list[bytes] = []
        received = 0
        has_more = True
        while has_more:
            message: Any = await receive()
            if message["type"] == "http.disconnect":
                return None
            data: bytes = message.get("body", b"")
            received += len(data)
            if received > self._limit:
                raise _too_large(self._limit)
            for piece in _expanded(expander, data, coding):
                share.take(len(piece))
                if share.size > self._limit:
                    raise _too_large(self._limit)
                pieces.append(piece)
            has_more = message.get("more_body", False)
        if received and not expander.is_done():
            raise _Refused(400, "broken_coding", f"the body ends in the middle of its {coding}")
        return b"".join(pieces)


def _expanded(expander: _Expander, data: bytes, coding: str) -> Iterator[bytes]:
    try:
        yield from expander.feed(data) if data else ()
    except (zlib.error, zstandard.ZstdError, _Overrun) as error:
        raise _Refused(400, "broken_coding", f"the body is not {coding}, or goes on after its end") from error


_REPLACED = {b"content-encoding", b"content-length", b"transfer-encoding"}


class _Body:
    """Gives the expanded body once, then what the connection says (that the caller went away)."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Any:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        return await self._receive()


class _Answer:
    """Codes a body that comes in one piece; what is streamed passes as it is."""

    def __init__(self, send: Send, coding: str) -> None:
        self._send = send
        self._coding = coding
        self._start: Any = None

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        if self._start is None:
            await self._send(message)
            return
        start, self._start = self._start, None
        body = message.get("body", b"")
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            start, body = self._coded(start, body)
            message = {**message, "body": body}
        await self._send(start)
        await self._send(message)

    def _coded(self, start: Any, body: bytes) -> tuple[Any, bytes]:
        names = {name.lower() for name, _ in start["headers"]}
        if not self._coding or len(body) < _LEAST_WORTH_CODING or b"content-encoding" in names:
            return start, body
        short = _code(self._coding, body)
        headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        headers += [
            (b"content-encoding", self._coding.encode()),
            (b"content-length", str(len(short)).encode()),
            (b"vary", b"accept-encoding"),
        ]
        return {**start, "headers": headers}, short


def _code(coding: str, body: bytes) -> bytes:
    if coding == "zstd":
        return zstandard.ZstdCompressor(level=3).compress(body)
    squeezer = zlib.compressobj(level=6, wbits=31)
    return squeezer.compress(body) + squeezer.flush()


def _best_coding(accepted: str) -> str:
    names = {
        part.partition(";")[0].strip().lower()
        for part in accepted.split(",")
        if ";q=0" not in part.replace(" ", "")
    }
    return next((coding for coding in ("zstd", "gzip") if coding in names), "")


def _too_large(limit: int) -> _Refused:
    return _Refused(413, "too_large", f"the body is larger than {limit} bytes")


async def _refuse(send: Send, refused: _Refused) -> None:
    body = msgspec.json.encode(problem(refused.status, refused.code, refused.detail))
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if refused.status == 503:
        headers.append((b"retry-after", b"1"))
    start: Any = {"type": "http.response.start", "status": refused.status, "headers": headers}
    end: Any = {"type": "http.response.body", "body": body, "more_body": False}
    await send(start)
    await send(end)
