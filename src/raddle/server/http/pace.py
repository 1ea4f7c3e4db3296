"""How slowly a request may come: who sends a byte a minute would hold a connection for ever, and so is let go.

The only place that counts a caller's time, of the head of a request and of its body. What the server itself takes
is bounded elsewhere (tables/database.py).
"""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle
from typing import Any

from litestar.exceptions import HTTPException
from litestar.types import Receive
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

BODY_SECONDS = 60.0
_LEAST_BYTES_A_SECOND = 4 << 10
"""A body gets a second more for each so many bytes that came."""
_MOST_HEAD_BYTES = 64 << 10


class TooSlow(HTTPException):
    """A body that did not come in its time."""

    status_code = 408

    def __init__(self) -> None:
        super().__init__(detail="the body did not come in time", headers={"Connection": "close"})


class Paced:
    """Gives the messages of a body as they come; TooSlow where they do not."""

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive = receive
        self._ends = asyncio.get_running_loop().time() + seconds
        self._is_whole = False

    async def __call__(self) -> Any:
        """The next message. After the body there is no hurry: what comes then is that the caller went away."""
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._ends):
                message = await self._receive()
        except TimeoutError as error:
            raise TooSlow from error
        if message["type"] == "http.request":
            self._ends += len(message.get("body", b"")) / _LEAST_BYTES_A_SECOND
            self._is_whole = not message.get("more_body", False)
        return message


class PacedConnection(HttpToolsProtocol):
    """A connection whose requests have to begin, and be named and described, in a time and a space."""

    head_seconds = 30.0

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._is_in_head = False
        self._head_bytes = 0
        self._waiting: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the parent has it
        """Somebody came, and has to say something."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """They went."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The head of a request begins."""
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field of it. Spaces after a value are no part of it (RFC 9110, 5.5); the parser leaves them there."""
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """It ends."""
        self._is_in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Some bytes came."""
        super().data_received(data)
        if not self._is_in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > _MOST_HEAD_BYTES:
            self.send_400_response("The head of the request is too large.")
        elif self._waiting is None:
            self._wait()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.head_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
