"""`GET /api/events`: the feed, live, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

import anyio.to_thread
from litestar import get
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from litestar.response import ServerSentEvent, ServerSentEventMessage

from raddle.model.errors import RaddleError
from raddle.model.protocol.wire import encode_changes, json_bytes
from raddle.server.accounts.callers import Caller
from raddle.server.events import Listener
from raddle.server.http.described import STREAM, Says, operation
from raddle.server.http.given import GivenCaller, GivenCounts, GivenHub
from raddle.server.hub import Hub
from raddle.server.metrics import Metrics
from raddle.server.threads.feed import check_cursor

_PAGE = 200
_KEEP_ALIVE_SECONDS = 15.0
_LONGEST_SECONDS = 3600.0
"""Then the stream ends and the client comes anew, with its token looked at once more."""
_Listener = NamedDependency[Listener]


@get("/api/events", operation_class=operation({200: Says("They come until one goes.", "Events", STREAM)}))
async def stream_events(
    hub: GivenHub,
    caller: GivenCaller,
    listener: _Listener,
    counts: GivenCounts,
    cursor: Annotated[str, QueryParameter(max_length=4_000)] = "",
) -> ServerSentEvent:
    """Each change in my space after `cursor`, as it happens: events `changes` with a page of the feed as data."""
    check_cursor(cursor)  # here, where it can still be told
    return ServerSentEvent(_pages(hub, caller, listener, counts, cursor))


async def _pages(
    hub: Hub, caller: Caller, listener: Listener, counts: Metrics, cursor: str
) -> AsyncIterator[ServerSentEventMessage]:
    news = listener.join(caller.space)
    counts.listeners += 1
    ends = asyncio.get_running_loop().time() + _LONGEST_SECONDS
    try:
        yield ServerSentEventMessage(comment="raddle", retry=1000)
        while not listener.is_stopped and asyncio.get_running_loop().time() < ends:
            news.clear()
            try:
                page = await anyio.to_thread.run_sync(hub.changes_if_alive, caller, cursor, _PAGE)
            except RaddleError:
                return  # the client comes back, and is told why then
            if page.changes:
                cursor = page.cursor
                data = json_bytes(encode_changes(page)).decode()
                yield ServerSentEventMessage(data=data, event="changes", id=cursor)
                continue
            try:
                await asyncio.wait_for(news.wait(), _KEEP_ALIVE_SECONDS)
            except TimeoutError:
                yield ServerSentEventMessage(comment="")
    finally:
        counts.listeners -= 1
        listener.leave(caller.space, news)


HANDLERS = [stream_events]
