"""A server of accounts and pages alone, over a real database: its client as a browser, and as a program.

What is asked goes through the application as it would over a socket; time is wound by moving rows back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import httpx
from litestar import Litestar, get, post
from litestar.di import NamedDependency, Provide
from litestar.testing import TestClient
from psycopg import Connection, sql

from raddle.model.protocol.signing_in import DEVICE_GRANT
from raddle.model.secret import Secret
from raddle.server.accounts import users
from raddle.server.accounts.callers import Caller
from raddle.server.http.callers import provide_caller, provide_visitor
from raddle.server.http.problems import EXCEPTION_HANDLERS
from raddle.server.http.web import WebSettings
from raddle.server.pages import handlers as pages
from raddle.server.routes import auth, devices
from raddle.server.tables.database import Database
from tests.builders_server import connected, new_id

PASSWORD = "correct horse battery"
_TOKEN = re.compile(r'name="form_token" value="([^"]+)"')


@get("/api/probe", sync_to_thread=False)
def probe(visitor: NamedDependency[Caller | None]) -> str:
    """Who is it, for a route that anybody may ask?"""
    return "nobody" if visitor is None else visitor.name


@post("/api/probe", sync_to_thread=False, status_code=200)
def change(caller: NamedDependency[Caller]) -> str:
    """A route that changes something."""
    return caller.name


def an_app(database: Database, web: WebSettings | None = None) -> Litestar:
    """The routes and pages of accounts, composed as the server composes them."""
    settings = web or WebSettings()
    return Litestar(
        route_handlers=[probe, change, *auth.HANDLERS, *devices.HANDLERS, *pages.HANDLERS],
        dependencies={
            "database": Provide(lambda: database, sync_to_thread=False),
            "web": Provide(lambda: settings, sync_to_thread=False),
            "new_id": Provide(lambda: new_id, sync_to_thread=False),
            "caller": Provide(provide_caller, sync_to_thread=False),
            "visitor": Provide(provide_visitor, sync_to_thread=True),
        },
        exception_handlers=dict(EXCEPTION_HANDLERS),
        logging_config=None,
    )


class Site:
    """One process of a server, as a browser that keeps cookies meets it."""

    def __init__(self, client: TestClient[Litestar], connection: Connection) -> None:
        self.client = client
        self.connection = connection

    def get(self, path: str, **options: Any) -> httpx.Response:
        """A page, without going on to where it sends us."""
        return self.client.get(path, follow_redirects=False, **options)

    def submit(self, form: str, action: str, fields: dict[str, str], **options: Any) -> httpx.Response:
        """Fill in the form of the page `form` and send it to `action`."""
        found = _TOKEN.search(self.get(form).text)
        assert found is not None, f"no form on {form}"
        return self.client.post(
            action, data={"form_token": found[1], **fields}, follow_redirects=False, **options
        )

    @property
    def user(self) -> UUID:
        """Ada's id."""
        user = users.find_user(self.connection, "ada")
        assert user is not None
        return user

    def sign_in(self, name: str = "ada", password: str = PASSWORD, **options: Any) -> httpx.Response:
        """Sign in by the page."""
        return self.submit("/sign-in", "/sign-in", {"name": name, "password": password}, **options)

    def ask(self, **fields: str) -> dict[str, Any]:
        """A device asks to be let in."""
        answer = self.client.post("/api/auth/device", data={"client_name": "laptop", **fields})
        assert answer.status_code == 200, answer.text
        plain: dict[str, Any] = answer.json()
        return plain

    def poll(self, device_code: str) -> httpx.Response:
        """The device asks for its token."""
        return self.client.post(
            "/api/auth/token", data={"grant_type": DEVICE_GRANT, "device_code": device_code}
        )

    def decide(self, user_code: str, decision: str = "approve") -> httpx.Response:
        """Whoever is signed in says yes or no."""
        return self.submit(
            f"/device?user_code={user_code}", "/device", {"user_code": user_code, "decision": decision}
        )

    def bearer(self, method: str, path: str, token: str, **options: Any) -> httpx.Response:
        """A program asks, by its token."""
        headers = {"Authorization": f"Bearer {token}"}
        return self.client.request(method, path, headers=headers, follow_redirects=False, **options)

    def wind(self, table: str, column: str, seconds: int) -> None:
        """Let `seconds` pass, as the rows of a table see it."""
        self.connection.execute(
            sql.SQL("UPDATE {} SET {} = {} - make_interval(secs => %s)").format(
                sql.Identifier(table), sql.Identifier(column), sql.Identifier(column)
            ),
            [seconds],
        )


@contextmanager
def a_site(
    conninfo: str, web: WebSettings | None = None, *, base_url: str = "http://raddle.test"
) -> Iterator[Site]:
    """A server over that database, which is migrated."""
    database = Database(Secret(conninfo), size=4)
    database.open()
    try:
        with (
            connected(conninfo) as connection,
            TestClient(an_app(database, web), base_url=base_url, raise_server_exceptions=False) as client,
        ):
            yield Site(client, connection)
    finally:
        database.close()


def a_user(connection: Connection, name: str = "ada", password: str | None = PASSWORD) -> UUID:
    """Somebody with an account."""
    return users.create_user(connection, name, password, new_id=new_id)
