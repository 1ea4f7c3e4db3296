"""A browser's visit: who it is, the cookie that its forms are tied to, and the proof that a form is ours.

Every page gets its visit here and every form is checked here; a page that read a cookie by itself could forget to.
"""

from __future__ import annotations

from typing import NamedTuple

from raddle.model.errors import Forbidden, InvalidInput, NotSignedIn
from raddle.model.ids import new_token
from raddle.server.accounts.callers import Caller, caller_of_session
from raddle.server.accounts.sessions import SESSION_SECONDS, is_form_token
from raddle.server.http.bodies import read_form
from raddle.server.http.given import AnyRequest, GivenDatabase, GivenWeb
from raddle.server.http.web import client_address, cookie_of, is_https

FORM_FIELD = "form_token"
_FORM = "application/x-www-form-urlencoded"
_OURS = frozenset({"same-origin", "none"})


class Visit(NamedTuple):
    """One request of a browser."""

    caller: Caller | None
    cookie: str
    """Its value: of a session where somebody is signed in, else one that means nobody."""
    is_secure: bool
    address: str


def provide_visit(request: AnyRequest, database: GivenDatabase, web: GivenWeb) -> Visit:
    """Who comes; with a new cookie that means nobody where they came with none of ours."""
    cookie = cookie_of(request, web)
    caller = None
    if cookie is not None:
        with database.connection() as connection:
            caller = caller_of_session(connection, cookie, lasts_seconds=SESSION_SECONDS)
    return Visit(
        caller=caller,
        cookie=cookie or new_token(),
        is_secure=is_https(request, web),
        address=client_address(request, web),
    )


def signed_in(visit: Visit) -> Caller:
    """Who is signed in; NotSignedIn where nobody is."""
    if visit.caller is None:
        raise NotSignedIn("sign in first")
    return visit.caller


def checked_form(request: AnyRequest, visit: Visit, body: bytes) -> dict[str, str]:
    """The fields of a form of ours; Forbidden where another site sent it, or its page is of an earlier sign-in."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise InvalidInput(f"Content-Type: it is not {_FORM}")
    fields = read_form(body)
    is_ours = request.headers.get("sec-fetch-site", "none") in _OURS
    if not is_ours or not is_form_token(visit.cookie, fields.get(FORM_FIELD, "")):
        raise Forbidden(
            "this form is not one of this page's, or it is from before you signed in or out",
            "go back, load the page anew and send it again (the browser has to keep cookies)",
        )
    return fields
