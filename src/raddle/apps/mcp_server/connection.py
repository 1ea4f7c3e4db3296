"""One client over a socket, for as long as it stays: the SDK's server on a loop of this thread's own.

Knows the SDK, as `serving.py` does. What a client sends is bounded by the line, so that none can fill the process that
serves others too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from raddle.apps.mcp_server.messages import read_message
from raddle.apps.mcp_server.serving import build_server
from raddle.apps.mcp_server.session import Session

_LONGEST_LINE = 64 << 20
_PATIENCE_SECONDS = 30.0
"""So long calls under way are waited for once the client has said its last: it may only have closed its pen."""

# What it says of a message that it does not understand may quote it.
logging.getLogger("mcp").setLevel(logging.CRITICAL)


def serve_connection(connection: socket.socket, session: Session) -> None:
    """Serve until the client ends it. For a thread of its own, a daemon thread: calls that nobody waits for any more
    are left behind in others like it, and must not keep the process."""
    anyio.run(_serve, connection, session)


async def _serve(connection: socket.socket, session: Session) -> None:
    server = build_server(lambda _: session)
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=_LONGEST_LINE)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    open_calls = _OpenCalls()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, reader, writer, to_server, open_calls)
            group.start_soon(_write, writer, from_server, open_calls)
            await server.run(from_client, to_client, server.create_initialization_options())
            group.cancel_scope.cancel()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class _OpenCalls:
    """Requests that have no answer yet, by their ids. Once the client is gone nobody waits for any."""

    def __init__(self) -> None:
        self._ids: set[str | int] = set()
        self._changed = anyio.Event()

    def sent(self, message: types.JSONRPCMessage) -> None:
        """The client asked, or gave up what it had asked."""
        if isinstance(message, types.JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._answered((message.params or {}).get("requestId"))

    def got(self, message: types.JSONRPCMessage) -> None:
        """The server said this."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._answered(message.id)

    def client_is_gone(self) -> None:
        self._ids.clear()
        self._changed.set()

    async def wait(self, seconds: float) -> None:
        """Until all are answered, at most so long."""
        with anyio.move_on_after(seconds):
            while self._ids:
                await self._changed.wait()

    def _answered(self, call: object) -> None:
        self._ids.discard(call)
        if not self._ids:
            self._changed.set()
            self._changed = anyio.Event()


async def _read(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    open_calls: _OpenCalls,
) -> None:
    """Message by message. A client that is gone, or whose line has no end, has sent its last; one that only ended its
    input still gets the answers to what it asked."""
    async with to_server:
        with contextlib.suppress(anyio.BrokenResourceError, OSError, ValueError):
            while line := await reader.readline():
                if not line.strip():
                    continue
                message = read_message(line)
                if isinstance(message, SessionMessage):
                    open_calls.sent(message.message)
                    await to_server.send(message)
                else:
                    writer.write(message)
                    await writer.drain()
            await open_calls.wait(_PATIENCE_SECONDS)


async def _write(
    writer: asyncio.StreamWriter,
    from_server: MemoryObjectReceiveStream[SessionMessage],
    open_calls: _OpenCalls,
) -> None:
    async with from_server:
        with contextlib.suppress(OSError):
            async for sent in from_server:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                await writer.drain()
                open_calls.got(sent.message)
    open_calls.client_is_gone()
