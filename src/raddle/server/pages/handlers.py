"""The pages of an account: the first set-up, sign in and out, letting a device in, and the devices that are."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar import Response, Router, get, post
from litestar.di import NamedDependency, Provide
from litestar.exceptions import HTTPException
from litestar.params import FromPath, QueryParameter, RawBody

from raddle.model.errors import InvalidInput, RaddleError, TooManyRequests
from raddle.server.accounts import device_flow, devices, rate_limits
from raddle.server.accounts.names import parse_user_name
from raddle.server.accounts.passwords import LONGEST, SHORTEST
from raddle.server.accounts.rate_limits import network_of
from raddle.server.accounts.sessions import begin_session, end_session
from raddle.server.accounts.setup import require_open_link, use_link
from raddle.server.accounts.users import check_password
from raddle.server.http.bodies import MOST_FORM_BYTES
from raddle.server.http.given import AnyRequest, GivenDatabase, GivenIds, GivenWeb
from raddle.server.http.web import origin_of
from raddle.server.pages.rendering import (
    HEADERS,
    HOME,
    local_path,
    page,
    show_bug,
    show_error,
    show_http_error,
    style,
    style_path,
    to_page,
    to_page_with_session,
)
from raddle.server.pages.visits import Visit, checked_form, provide_visit, signed_in

_Query = Annotated[str, QueryParameter(max_length=200)]
_WRONG = "Name and password do not fit together."
_NOT_TWICE = "The two passwords are not the same."
_NOBODY_WAITS = "No device waits under that code. A code is good for a quarter of an hour, and once."


@get(style_path(), sync_to_thread=False)
def show_style() -> Response[bytes]:
    """The style sheet."""
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(style(), media_type="text/css; charset=utf-8", headers=headers)


@get("/", sync_to_thread=False)
def show_home() -> Response[str]:
    """The page that people begin at."""
    return to_page(HOME)


@get("/setup", sync_to_thread=True)
def show_setup(visit: NamedDependency[Visit], database: GivenDatabase, token: _Query = "") -> Response[str]:
    """The form by which the first person makes an account."""
    with database.connection() as connection:
        require_open_link(connection, token)
    return _setup_page(visit, token)


@post("/setup", sync_to_thread=True)
def set_up(
    request: AnyRequest,
    visit: NamedDependency[Visit],
    body: RawBody,
    database: GivenDatabase,
    new_id: GivenIds,
) -> Response[str]:
    """Make the first account, and sign in by it."""
    fields = checked_form(request, visit, body)
    token, name, password = (fields.get(field, "") for field in ("token", "name", "password"))
    with database.connection() as connection:
        require_open_link(connection, token)
        if password != fields.get("password_again", ""):
            return _setup_page(visit, token, name=name[:200], error=_NOT_TWICE)
        try:
            user = use_link(connection, token, name, password, new_id=new_id)
        except InvalidInput as error:
            return _setup_page(visit, token, name=name[:200], error=_sentence(error))
        return to_page_with_session(visit, HOME, begin_session(connection, user))


def _setup_page(visit: Visit, token: str, *, name: str = "", error: str = "") -> Response[str]:
    return page(
        visit,
        "setup.html",
        status=422 if error else 200,
        token=token,
        name=_shown(name),
        error=error,
        shortest=SHORTEST,
        longest=LONGEST,
    )


@get("/sign-in", sync_to_thread=True)
def show_sign_in(
    visit: NamedDependency[Visit], then: Annotated[str, QueryParameter(name="next", max_length=200)] = ""
) -> Response[str]:
    """The form to sign in by."""
    if visit.caller is not None:
        return to_page(local_path(then))
    return page(visit, "sign_in.html", name="", then=local_path(then), error="")


@post("/sign-in", sync_to_thread=True)
def sign_in(
    request: AnyRequest, visit: NamedDependency[Visit], body: RawBody, database: GivenDatabase
) -> Response[str]:
    """Sign in by name and password: a new session, whatever cookie the browser came with."""
    fields = checked_form(request, visit, body)
    name, then = fields.get("name", ""), local_path(fields.get("next", ""))
    with database.connection() as connection:
        try:
            rate_limits.take(connection, rate_limits.SIGN_IN_BY_ADDRESS, network_of(visit.address))
            rate_limits.take(connection, rate_limits.SIGN_IN_BY_NAME, _name_key(name))
            user = check_password(connection, name, fields.get("password", ""))
        except TooManyRequests as error:
            wait = str(max(1, round(error.retry_after)))
            return page(
                visit,
                "sign_in.html",
                status=429,
                headers={"Retry-After": wait},
                name=_shown(name[:200]),
                then=then,
                error=_sentence(error),
            )
        if user is None:
            return page(visit, "sign_in.html", status=422, name=_shown(name[:200]), then=then, error=_WRONG)
        end_session(connection, visit.cookie)
        return to_page_with_session(visit, then, begin_session(connection, user))


@post("/sign-out", sync_to_thread=True)
def sign_out(
    request: AnyRequest, visit: NamedDependency[Visit], body: RawBody, database: GivenDatabase
) -> Response[str]:
    """End the session of this browser."""
    checked_form(request, visit, body)
    with database.connection() as connection:
        end_session(connection, visit.cookie)
    return to_page_with_session(visit, "/sign-in", None)


@get("/device", sync_to_thread=True)
def show_device(
    visit: NamedDependency[Visit], database: GivenDatabase, user_code: _Query = ""
) -> Response[str]:
    """Ask for the code that a device shows; with a code, ask whether that device is to be let in."""
    signed_in(visit)
    if not user_code:
        return _code_page(visit, "", "")
    try:
        code = device_flow.parse_user_code(user_code)
    except InvalidInput as error:
        return _code_page(visit, _shown(user_code), _sentence(error))
    with database.connection() as connection:
        rate_limits.take(connection, rate_limits.USER_CODE_BY_ADDRESS, network_of(visit.address))
        found = device_flow.find_request(connection, code)
    if found is None:
        return _code_page(visit, code, _NOBODY_WAITS)
    return page(visit, "device_confirm.html", code=code, device=found, asked_at=_moment(found.asked_at))


@post("/device", sync_to_thread=True)
def decide_device(
    request: AnyRequest, visit: NamedDependency[Visit], body: RawBody, database: GivenDatabase
) -> Response[str]:
    """Let the device in, or do not."""
    fields = checked_form(request, visit, body)
    caller = signed_in(visit)
    code = device_flow.parse_user_code(fields.get("user_code", ""))
    decision = fields.get("decision", "")
    if decision not in {"approve", "deny"}:
        raise InvalidInput("decision: it is neither approve nor deny")
    with database.connection() as connection:
        rate_limits.take(connection, rate_limits.USER_CODE_BY_ADDRESS, network_of(visit.address))
        if decision == "approve":
            name = device_flow.approve(connection, code, caller.user)
        else:
            name = device_flow.deny(connection, code)
    if name is None:
        return _code_page(visit, code, _NOBODY_WAITS)
    return page(visit, "device_done.html", name=name, is_approved=decision == "approve")


def _code_page(visit: Visit, code: str, error: str) -> Response[str]:
    return page(visit, "device.html", status=422 if error else 200, code=code, error=error)


@get("/devices", sync_to_thread=True)
def show_devices(
    request: AnyRequest,
    visit: NamedDependency[Visit],
    database: GivenDatabase,
    web: GivenWeb,
    done: _Query = "",
) -> Response[str]:
    """My devices, each with a way to let it in no more."""
    caller = signed_in(visit)
    with database.connection() as connection:
        found = devices.list_devices(connection, caller.user)
    listed = [
        {
            "id": str(device.id),
            "name": device.name,
            "may_write": "threads" in device.scopes,
            "created_at": _moment(device.created_at),
            "last_used_at": None if device.last_used_at is None else _moment(device.last_used_at),
        }
        for device in found
    ]
    return page(
        visit,
        "devices.html",
        devices=listed,
        origin=origin_of(request, web),
        is_revoked=done == "revoked",
    )


@post("/devices/{device_id:str}/revoke", sync_to_thread=True)
def revoke_device(
    request: AnyRequest,
    visit: NamedDependency[Visit],
    device_id: FromPath[str],
    body: RawBody,
    database: GivenDatabase,
) -> Response[str]:
    """Let a device of mine in no more."""
    checked_form(request, visit, body)
    caller = signed_in(visit)
    device = devices.parse_device_id(device_id)
    with database.connection() as connection:
        devices.revoke(connection, caller.user, device)
    return to_page(f"{HOME}?done=revoked")


def _name_key(name: str) -> str:
    """What a name is counted under: one for all its spellings, and one for all that are none."""
    try:
        return parse_user_name(name)
    except InvalidInput:
        return ""


def _sentence(error: RaddleError) -> str:
    words = f"{error.message}; {error.hint}" if error.hint else error.message
    return f"{words[:1].upper()}{words[1:]}."


def _shown(text: str) -> str:
    """What was typed, fit to be put back into its field."""
    return text.encode("utf-8", "replace").decode().replace("\0", "�")


def _moment(moment: datetime) -> dict[str, str]:
    return {"iso": f"{moment:%Y-%m-%dT%H:%M:%SZ}", "shown": f"{moment:%Y-%m-%d %H:%M} UTC"}


HANDLERS = [
    Router(
        path="/",
        route_handlers=[
            show_style,
            show_home,
            show_setup,
            set_up,
            show_sign_in,
            sign_in,
            sign_out,
            show_device,
            decide_device,
            show_devices,
            revoke_device,
        ],
        dependencies={"visit": Provide(provide_visit, sync_to_thread=True)},
        exception_handlers={RaddleError: show_error, HTTPException: show_http_error, Exception: show_bug},
        request_max_body_size=MOST_FORM_BYTES,
        include_in_schema=False,
    )
]
