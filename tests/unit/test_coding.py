"""The layer that reads bodies: memory and time that somebody may take who is not even signed in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from raddle.server.http.coding import Coding

Messages = list[dict[str, Any]]


async def _echo(
    scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Answers with what came."""
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def piece(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


class Line:
    """A connection whose bytes come when the test says so."""

    def __init__(self, coding: Any) -> None:
        self.coming: asyncio.Queue[Any] = asyncio.Queue()
        self.sent: Messages = []
        scope = {"type": "http", "method": "POST", "path": "/api/threads", "headers": []}
        self.task = asyncio.ensure_future(coding(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        message = await self.coming.get()
        self.coming.task_done()
        return message

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    async def end(self, *pieces: dict[str, Any]) -> int:
        """Send these, and wait for the answer: its status."""
        for each in pieces:
            self.coming.put_nowait(each)
        await self.task
        return int(self.sent[0]["status"])


def test_bodies_that_are_in_hand_at_once_have_a_limit() -> None:
    async def story() -> list[int]:
        coding = Coding(_echo, held=1_000)
        slow = Line(coding)
        slow.coming.put_nowait(piece(b"x" * 700, more=True))
        await slow.coming.join()
        other = Line(coding)
        statuses = [await other.end(piece(b"y" * 400, more=False))]
        assert json.loads(other.sent[1]["body"])["code"] == "busy"
        assert (b"retry-after", b"1") in other.sent[0]["headers"]
        statuses.append(await slow.end(piece(b"x" * 300, more=False)))
        statuses += [await Line(coding).end(piece(b"z" * 1_000, more=False)) for _ in range(3)]
        return statuses

    assert asyncio.run(story()) == [503, 200, 200, 200, 200]


def test_who_goes_away_or_is_refused_leaves_no_room_taken() -> None:
    async def story() -> int:
        coding = Coding(_echo, 900, held=1_000)
        gone = Line(coding)
        for each in (piece(b"x" * 500, more=True), {"type": "http.disconnect"}):
            gone.coming.put_nowait(each)
        await gone.task
        assert gone.sent == []
        assert await Line(coding).end(piece(b"x" * 901, more=False)) == 413
        return await Line(coding).end(piece(b"x" * 900, more=False))

    assert asyncio.run(story()) == 200
