"""Pages as responses: templates filled, and the headers that keep a page to itself.

No page is made anywhere else, so that none goes out without its Content-Security-Policy or into anybody's cache.
"""

from __future__ import annotations

import functools
import hashlib
import re
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import MediaType, Response
from litestar.datastructures import Cookie
from litestar.exceptions import HTTPException

from raddle.model.errors import NotSignedIn, RaddleError, TooManyRequests
from raddle.server.accounts.sessions import SESSION_SECONDS, form_token
from raddle.server.http.given import AnyRequest
from raddle.server.http.problems import status_of, tell_bug
from raddle.server.http.web import cookie_name
from raddle.server.pages.visits import FORM_FIELD, Visit

HOME = "/devices"
"""The page that a sign-in goes on to, if to no other."""
_THEN = re.compile(r"/(?:devices|device(?:\?user_code=[A-Za-z0-9%+. -]{0,60})?)?\Z")
_POLICY = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_PRIVATE = {**HEADERS, "Cache-Control": "no-store"}
_WORDS = {
    400: "That does not fit",
    403: "Not allowed",
    404: "Not found",
    405: "Not found",
    413: "Too large",
    422: "That does not fit",
    429: "Too often",
    503: "Away for a moment",
}


@functools.cache
def style() -> bytes:
    """The one style sheet of all pages."""
    return resources.files("raddle.server.pages").joinpath("pages.css").read_bytes()


@functools.cache
def style_path() -> str:
    """Its address, another for each version, so that browsers may keep it for good."""
    return f"/static/{hashlib.sha256(style()).hexdigest()[:12]}/pages.css"


@functools.cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("raddle.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(
    visit: Visit, template: str, *, status: int = 200, headers: dict[str, str] | None = None, **values: Any
) -> Response[str]:
    """A page for who visits; their cookie goes with it, so that a session lasts from the last visit on."""
    html = (
        _templates()
        .get_template(template)
        .render(
            values,
            caller=visit.caller,
            style_path=style_path(),
            form_field=FORM_FIELD,
            form_token=form_token(visit.cookie),
        )
    )
    return Response(
        html,
        media_type=MediaType.HTML,
        status_code=status,
        headers={**_PRIVATE, **(headers or {})},
        cookies=[_cookie(visit.cookie, is_secure=visit.is_secure, is_session=visit.caller is not None)],
    )


def to_page(path: str) -> Response[str]:
    """Go on to `path`, of this server, with GET."""
    return Response("", media_type=MediaType.HTML, status_code=303, headers={**_PRIVATE, "Location": path})


def to_page_with_session(visit: Visit, path: str, session: str | None) -> Response[str]:
    """Go on to `path`, signed in by `session`; None: signed out."""
    response = to_page(path)
    if session is None:
        cookie = _cookie("", is_secure=visit.is_secure, is_session=False)
        cookie.max_age = 0
    else:
        cookie = _cookie(session, is_secure=visit.is_secure, is_session=True)
    response.set_cookie(cookie)
    return response


def _cookie(value: str, *, is_secure: bool, is_session: bool) -> Cookie:
    return Cookie(
        key=cookie_name(is_secure=is_secure),
        value=value,
        path="/",
        max_age=SESSION_SECONDS if is_session else None,
        httponly=True,
        secure=is_secure,
        samesite="lax",
    )


def local_path(then: str) -> str:
    """`then` where it is a page of ours that a sign-in may go on to; else, whatever a stranger wrote, the home page."""
    return then if _THEN.match(then) is not None else HOME


def path_to_sign_in(then: str) -> str:
    """The address of the sign-in that goes on to `then`."""
    return f"/sign-in?{urlencode({'next': local_path(then)}, quote_via=quote)}"


def show_error(request: AnyRequest, error: RaddleError) -> Response[str]:
    """An error of ours as a page; who has to sign in first is sent there, and comes back."""
    if isinstance(error, NotSignedIn):
        query = request.url.query
        is_get = request.method == "GET"
        return to_page(path_to_sign_in(request.url.path + (f"?{query}" if query else "") if is_get else ""))
    headers = {}
    if isinstance(error, TooManyRequests):
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    return _error_page(status_of(error), error.message, error.hint, headers)


def show_http_error(_: AnyRequest, error: HTTPException) -> Response[str]:
    """An error that the framework raised, as a page, in words of ours."""
    status = error.status_code if 400 <= error.status_code < 500 else 500
    return _error_page(status, "the server cannot do anything with what was sent", "")


def show_bug(request: AnyRequest, error: Exception) -> Response[str]:
    """What should not have happened, as a page that says no more than that."""
    tell_bug(request, error)
    return _error_page(500, "the server made a mistake; it is in its log", "")


def _error_page(status: int, message: str, hint: str, headers: dict[str, str] | None = None) -> Response[str]:
    html = (
        _templates()
        .get_template("error.html")
        .render(
            title=_WORDS.get(status, "Something went wrong"),
            message=message,
            hint=hint,
            caller=None,
            style_path=style_path(),
        )
    )
    return Response(
        html, media_type=MediaType.HTML, status_code=status, headers={**_PRIVATE, **(headers or {})}
    )
