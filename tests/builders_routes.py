"""Every route of the server, one by one, with something to send to it; and somebody who asks, over a real socket.

A new route is in the list by itself. What its path names has to be known to `Ids.fill`, and what it takes may be
written down in `BODIES`; a route that is not gets an empty JSON object.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx
from litestar import Litestar
from litestar.routes import HTTPRoute
from psycopg import Connection, sql

from raddle.model.protocol.wire import encode_push, json_bytes
from raddle.model.secret import Secret
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta
from raddle.server.app import ServerSettings, make_app
from tests.builders import a_message, a_thread
from tests.builders_served import ADDRESS, Served
from tests.contract.remote_laws import new

JSON = {"Content-Type": "application/json"}
_numbers = itertools.count(1)


class Call(NamedTuple):
    """One method of one route."""

    method: str
    path: str
    handler: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def has_ids(self) -> bool:
        """Does its path name something of somebody's?"""
        return "{" in self.path

    @property
    def is_page(self) -> bool:
        """Is it for people and their browsers?"""
        return not self.path.startswith("/api/")


def an_application(conninfo: str = "host=/nowhere", blobs: str | Path = "/nowhere") -> Litestar:
    """The application within what surrounds it. It is not started."""
    app: Any = make_app(ServerSettings(database_url=Secret(conninfo), blobs=Path(blobs)))
    while not isinstance(app, Litestar):
        app = app._app
    return app


def all_calls() -> list[Call]:
    """Every method of every route, but OPTIONS, which the framework answers, and the framework's own."""
    found = [
        Call(str(method), route.path, handler.handler_name)
        for route in an_application().routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        for method in handler.http_methods
        if method != "OPTIONS"
    ]
    return sorted(call for call in found if not call.path.startswith("/api/schema"))


class Ids(NamedTuple):
    """Names of one thread, one blob (with its bytes) and one device."""

    thread: str
    data: bytes
    device: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def fill(self, path: str) -> str:
        """The path with these in their places."""
        known = {
            "thread_id:str": self.thread,
            "sha256:str": self.sha256,
            "device_id:str": self.device,
            "device:str": "aaaaaaaa",
        }
        for name, value in known.items():
            path = path.replace(f"{{{name}}}", value)
        assert "{" not in path, f"{path}: whose is that? Say it here"
        return path

    def hide(self, text: str) -> str:
        """The text with a word in the place of each."""
        return text.replace(self.thread, "THREAD").replace(self.sha256, "BLOB").replace(self.device, "DEVICE")


def new_ids() -> Ids:
    """Names that nothing goes by yet."""
    number = next(_numbers)
    return Ids(
        thread=f"T-018e2b3c-4d5e-7f8a-9b0c-{number:012x}",
        data=b"blob %012d" % number,
        device=f"018e2b3c-4d5e-7f8a-9b0d-{number:012x}",
    )


def push_body(delta: Delta, hub_epoch: str = "") -> bytes:
    """A push as it is sent."""
    return json_bytes(encode_push(delta, hub_epoch))


def _thread_file(ids: Ids) -> bytes:
    return encode_thread(a_thread(a_message(), thread_id=ids.thread, title="a title"))


BODIES: Mapping[str, Callable[[Ids], bytes]] = {
    "push_delta": lambda ids: push_body(new(a_message())),
    "save_thread": _thread_file,
    "create_thread": _thread_file,
    "set_visibility": lambda ids: b'{"visibility": "public"}',
    "put_sources": lambda ids: b'{"version": 1, "segments": []}',
    "put_blob": lambda ids: ids.data,
    "rename_device": lambda ids: b'{"name": "mine now"}',
}


def body_for(call: Call, ids: Ids) -> bytes | None:
    """Something that the route takes; None for those that take none."""
    if call.method in {"GET", "HEAD"}:
        return None
    make = BODIES.get(call.handler)
    return b"{}" if make is None else make(ids)


class Asker:
    """Somebody with a token (or none), over connections of their own."""

    def __init__(self, served: Served, token: str = "", **headers: str) -> None:
        sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **headers}
        self.client = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(served.socket_path)),
            base_url=ADDRESS,
            headers=sent,
            timeout=30,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """One request; only the head of an answer that does not end."""
        sent = {**JSON, **(headers or {})} if body is not None else dict(headers or {})
        request = self.client.build_request(method, path, content=body, headers=sent)
        answer = self.client.send(request, stream=True)
        try:
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                answer.read()
        finally:
            answer.close()
        return answer

    def call(self, call: Call, ids: Ids, **headers: str) -> httpx.Response:
        """One call with these names."""
        return self.ask(call.method, ids.fill(call.path), body_for(call, ids), headers)


def rows_of_everybody(connection: Connection) -> dict[str, list[str]]:
    """What the database holds that somebody gave it: table -> its rows as text.

    Not when somebody was last seen and how often; nor search, which is made of the rest, and late.
    """
    tables = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        " AND tablename <> 'rate_limits' AND tablename NOT LIKE 'search%'"
    ).fetchall()
    held: dict[str, list[str]] = {}
    for (table,) in tables:
        words = "SELECT (to_jsonb(t) - 'last_used_at')::text FROM {} AS t ORDER BY 1"
        found = connection.execute(sql.SQL(words).format(sql.Identifier(table)))
        held[table] = [line for (line,) in found]
    return held
