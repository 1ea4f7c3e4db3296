"""Errors as RFC 9457 problem+json, each with a stable `code`; what nobody foresaw says nothing but that.

The only place that knows an HTTP status of an error. A message of ours names a field or an id; it never
repeats a body.
"""

from __future__ import annotations

import logging
import traceback
from typing import Any

import msgspec
from litestar import Response
from litestar.exceptions import HTTPException
from litestar.types import ExceptionHandlersMap

from raddle.model.errors import (
    Ambiguous,
    ConflictError,
    Forbidden,
    FormatError,
    InvalidInput,
    NotFound,
    NotSignedIn,
    Purged,
    RaddleError,
    StorageError,
    TooLarge,
    TooManyRequests,
    UserError,
)
from raddle.model.protocol.hub import Pushed
from raddle.model.protocol.wire import VERSION_CONFLICT, encode_conflict
from raddle.server.http.given import AnyRequest

MEDIA_TYPE = "application/problem+json"
_LOG = logging.getLogger("raddle.server")
_MOST_WORDS = 400
"""Characters of one text in a problem: a field that was sent may be named in it, and be as long as a body."""
_STATUSES: tuple[tuple[type[RaddleError], int], ...] = (
    (NotSignedIn, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (Purged, 410),
    (TooLarge, 413),
    (Ambiguous, 409),
    (FormatError, 400),
    (InvalidInput, 422),
    (ConflictError, 409),
    (TooManyRequests, 429),
    (UserError, 400),
    (StorageError, 503),
)
_TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "Request timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length required",
    413: "Too large",
    415: "Unsupported media type",
    416: "Range not satisfiable",
    422: "Cannot be processed",
    429: "Too many requests",
    500: "Internal error",
    503: "Unavailable",
}


class VersionConflict(ConflictError):
    """A push that was not made on the newest version; its answer holds what is missing."""

    code = VERSION_CONFLICT

    def __init__(self, pushed: Pushed, client_version: int) -> None:
        super().__init__(
            f"the thread is at version {pushed.version} here, and not at {client_version}",
            "take in the delta, then push again",
        )
        self.pushed = pushed
        self.client_version = client_version


def status_of(error: RaddleError) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def problem(status: int, code: str, detail: str, **members: Any) -> dict[str, Any]:
    """The members of a problem; empty ones are left out."""
    plain = {
        "type": "about:blank",
        "title": _TITLES.get(status, "Error"),
        "status": status,
        "code": code,
        "detail": detail,
        **members,
    }
    return {name: _short(value) for name, value in plain.items() if value not in (None, "")}


def _short(value: Any) -> Any:
    return f"{value[:_MOST_WORDS]}…" if isinstance(value, str) and len(value) > _MOST_WORDS else value


def problem_response(
    status: int, plain: dict[str, Any], headers: dict[str, str] | None = None
) -> Response[bytes]:
    """A problem as a response."""
    return Response(
        msgspec.json.encode(plain), status_code=status, media_type=MEDIA_TYPE, headers=headers or {}
    )


def tell_raddle_error(_: AnyRequest, error: RaddleError) -> Response[bytes]:
    """An error of ours."""
    status = status_of(error)
    members: dict[str, Any] = {"hint": error.hint}
    headers: dict[str, str] = {}
    if isinstance(error, VersionConflict):
        members |= encode_conflict(error.pushed, error.client_version)
        del members["code"]
    if isinstance(error, TooManyRequests):
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    if isinstance(error, StorageError):
        headers["Retry-After"] = "1"
        _LOG.warning("%s: %s", error.code, error.message)
    if isinstance(error, NotSignedIn):
        headers["WWW-Authenticate"] = "Bearer"
    return problem_response(status, problem(status, error.code, error.message, **members), headers)


def tell_http_error(_: AnyRequest, error: HTTPException) -> Response[bytes]:
    """An error that the framework raised: no such route, a parameter that does not fit."""
    status, detail = min(500, error.status_code), error.detail
    code = _TITLES.get(status, "error").lower().replace(" ", "_")
    if isinstance(error.extra, list):
        fields = [
            f"{each.get('key', '')}: {each.get('message', '')}"
            for each in error.extra
            if isinstance(each, dict)
        ]
        detail = "; ".join(fields) or detail
        if status == 400:  # a parameter that does not fit is told as a field of a body is
            status, code = status_of(InvalidInput("")), InvalidInput.code
    plain = problem(status, code, detail if status < 500 else "")
    return problem_response(status, plain, dict(error.headers or {}))


def tell_bug(request: AnyRequest, error: Exception) -> Response[bytes]:
    """What should not have happened: its kind and place go to the log; its words may be somebody's, and go nowhere."""
    where = "".join(traceback.format_tb(error.__traceback__))
    _LOG.error(
        "%s in %s %s\n%s", type(error).__name__, request.method, request.scope.get("path_template", ""), where
    )
    return problem_response(
        500, problem(500, "internal_error", "the server made a mistake; it is in its log")
    )


EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    RaddleError: tell_raddle_error,
    HTTPException: tell_http_error,
    Exception: tell_bug,
}
"""For an application: every error as a problem."""
