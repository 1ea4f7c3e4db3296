"""Web sessions: begun at a sign-in, kept alive by use, ended by a sign-out; and the token that proves a form is ours.

A form's token is made of the cookie's value, which no other site can read, and so is nowhere stored. Who is not
signed in has a cookie that means nobody, so that the form they sign in by is guarded by the same rule.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from uuid import UUID

from psycopg import Connection

from raddle.model.ids import new_token
from raddle.server.accounts.callers import token_hash
from raddle.server.tables.queries import queries

SESSION_SECONDS = 30 * 24 * 3600
"""From the last use (give or take an hour) to the end of a session."""

SQL = queries("raddle.server.accounts", "sessions.sql")
_SALT = 16
_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}\Z")


def begin_session(connection: Connection, user: UUID) -> str:
    """Sign `user` in; the value of the cookie, which is never one that a browser came with."""
    value = new_token()
    values = {"hash": token_hash(value), "user": user, "seconds": SESSION_SECONDS}
    connection.execute(SQL["begin"], values)
    return value


def end_session(connection: Connection, cookie: str) -> None:
    """Sign out whoever that cookie means; nothing where it means nobody."""
    connection.execute(SQL["end"], {"hash": token_hash(cookie)})


def end_all_sessions(connection: Connection, user: UUID) -> None:
    """Sign `user` out of every browser."""
    connection.execute(SQL["end_all"], {"user": user})


def is_cookie(value: str) -> bool:
    """Could this server have given a cookie of that value?"""
    return _COOKIE.match(value) is not None


def form_token(cookie: str) -> str:
    """What a form of ours carries for who has that cookie: another each time, or compression would give it away."""
    return _form_token(cookie, new_token()[:_SALT])


def is_form_token(cookie: str, given: str) -> bool:
    """Did a form with the token `given` come from us, for who has that cookie?"""
    expected = _form_token(cookie, given[:_SALT])
    return hmac.compare_digest(expected.encode("utf-8", "replace"), given.encode("utf-8", "replace"))


def _form_token(cookie: str, salt: str) -> str:
    digest = hashlib.sha256(f"raddle form {salt} {cookie}".encode("utf-8", "replace")).digest()
    return salt + base64.urlsafe_b64encode(digest).decode().rstrip("=")
