"""Who asks, as handlers get it: `caller` (somebody, or NotSignedIn) and `visitor` (somebody or None).

The only place that reads a token or a cookie for the API. A cookie counts where no other site could have sent the
request: to read, or together with the token of a form. A token that may only read is refused all else here.
"""

from __future__ import annotations

from raddle.model.errors import Forbidden, NotSignedIn
from raddle.model.protocol.signing_in import THREADS
from raddle.server.accounts.callers import Caller, caller_of_session, caller_of_token
from raddle.server.accounts.sessions import SESSION_SECONDS, is_form_token
from raddle.server.http.given import AnyRequest, GivenDatabase, GivenVisitor, GivenWeb
from raddle.server.http.web import cookie_of
from raddle.server.tables.database import Database

FORM_HEADER = "x-csrf-token"
ANY_SCOPE = "any_scope"
"""In a handler's `opt`, with True: also a token that may only read may call it, though it is no GET."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_HINT = "sign in with `raddle login`"


def provide_visitor(request: AnyRequest, database: GivenDatabase, web: GivenWeb) -> Caller | None:
    """Who asks; None where there is neither token nor cookie. NotSignedIn where a token means nobody (any more)."""
    header = request.headers.get("authorization")
    is_reading = request.method in _READING
    if header is not None:
        caller = caller_by_header(database, header)
        if not is_reading and THREADS not in caller.scopes and not request.route_handler.opt.get(ANY_SCOPE):
            raise Forbidden("this device may only read", "let it in anew with the scope `threads`")
        return caller
    cookie = cookie_of(request, web)
    if cookie is None:
        return None
    if not is_reading and not is_form_token(cookie, request.headers.get(FORM_HEADER, "")):
        return None
    with database.connection() as connection:
        return caller_of_session(connection, cookie, lasts_seconds=SESSION_SECONDS)


def caller_by_header(database: Database, header: str) -> Caller:
    """Who the `Authorization` header stands for; NotSignedIn where it is nobody (any more)."""
    kind, _, token = header.partition(" ")
    token = token.strip()
    if kind.lower() != "bearer" or not token:
        raise NotSignedIn("Authorization: it is not `Bearer` and a token", _HINT)
    with database.connection() as connection:
        caller = caller_of_token(connection, token)
    if caller is None:
        raise NotSignedIn("the token means nobody, or nobody any more", _HINT)
    return caller


def provide_caller(visitor: GivenVisitor) -> Caller:
    """Who asks; NotSignedIn where nobody is signed in."""
    if visitor is None:
        raise NotSignedIn("this needs somebody who is signed in", _HINT)
    return visitor
