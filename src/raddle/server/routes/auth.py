"""How programs sign in and out: the device flow of RFC 8628, who they are, and the end of their token."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from litestar import Response, get, post
from litestar.params import RawBody

from raddle.model.errors import FormatError, InvalidInput
from raddle.model.protocol.signing_in import (
    DEVICE_GRANT,
    SLOW_DOWN,
    DeviceAuthorization,
    Me,
    TokenAnswer,
    TokenRefusal,
)
from raddle.server.accounts import device_flow, rate_limits
from raddle.server.accounts.device_flow import Refused
from raddle.server.accounts.devices import device_name, parse_scopes, revoke
from raddle.server.accounts.names import parse_device_name
from raddle.server.accounts.sessions import end_session
from raddle.server.http.bodies import MOST_FORM_BYTES, read_fields, text_field
from raddle.server.http.callers import ANY_SCOPE
from raddle.server.http.described import FORM, JSON, Says, operation
from raddle.server.http.given import AnyRequest, GivenCaller, GivenDatabase, GivenIds, GivenWeb
from raddle.server.http.web import client_address, cookie_of, origin_of

_UNNAMED = "a device without a name"
_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_WHY = {
    "authorization_pending": "nobody has let the device in yet",
    "slow_down": "asked too often: wait for longer between two questions",
    "access_denied": "it was said that the device is not to be let in",
    "expired_token": "nobody let the device in while its code was good",
    "invalid_grant": "the code is none of ours, or its token was fetched",
}


_KINDS = (FORM, JSON)
_REFUSED = Says("Why not, in the words of RFC 8628.", "TokenRefusal")


@post(
    "/api/auth/device",
    status_code=200,
    sync_to_thread=True,
    request_max_body_size=MOST_FORM_BYTES,
    operation_class=operation(
        {200: Says("What its person has to do.", "DeviceAuthorization"), 400: _REFUSED},
        takes="DeviceRequest",
        kinds=_KINDS,
        is_open=True,
    ),
)
def ask_to_be_let_in(
    request: AnyRequest,
    body: RawBody,
    database: GivenDatabase,
    web: GivenWeb,
) -> Response[DeviceAuthorization | TokenRefusal]:
    """Begin to sign a device in: the code that its person types, and where."""
    try:
        fields = read_fields(request, body)
        called = text_field(fields, "client_name") or text_field(fields, "client_id") or _UNNAMED
        name = parse_device_name(called)
    except (InvalidInput, FormatError) as error:
        return _refuse("invalid_request", error.message)
    try:
        scopes = parse_scopes(_scope_words(fields))
    except InvalidInput as error:
        return _refuse("invalid_scope", f"{error.message}; {error.hint}" if error.hint else error.message)
    address = client_address(request, web)
    uri = f"{origin_of(request, web)}/device"
    with database.connection() as connection:
        rate_limits.take(connection, rate_limits.DEVICE_BY_ADDRESS, rate_limits.network_of(address))
        issued = device_flow.ask(connection, name, scopes, address)
    answer = DeviceAuthorization(
        device_code=issued.device_code,
        user_code=issued.user_code,
        verification_uri=uri,
        verification_uri_complete=f"{uri}?{urlencode({'user_code': issued.user_code})}",
        expires_in=device_flow.EXPIRES_SECONDS,
        interval=device_flow.INTERVAL_SECONDS,
    )
    return Response(answer, headers=_NO_STORE)


def _scope_words(fields: dict[str, Any]) -> list[str]:
    """Of `scope`, a text as RFC 8628 has it, or of `scopes`, a list of texts."""
    listed = fields.get("scopes")
    if listed is None or isinstance(listed, str):
        return text_field(fields, "scope", listed or "").split()
    if not isinstance(listed, list) or not all(isinstance(word, str) for word in listed):
        raise InvalidInput("scopes: it is not a list of texts")
    return listed


@post(
    "/api/auth/token",
    status_code=200,
    sync_to_thread=True,
    request_max_body_size=MOST_FORM_BYTES,
    operation_class=operation(
        {200: Says("The token, said once.", "TokenAnswer"), 400: _REFUSED},
        takes="TokenRequest",
        kinds=_KINDS,
        is_open=True,
    ),
)
def fetch_token(
    request: AnyRequest,
    body: RawBody,
    database: GivenDatabase,
    new_id: GivenIds,
) -> Response[TokenAnswer | TokenRefusal]:
    """The token of a device, once its person let it in; else why there is none (now), in the words of RFC 8628."""
    try:
        fields = read_fields(request, body)
        grant = text_field(fields, "grant_type")
        code = text_field(fields, "device_code")
    except (InvalidInput, FormatError) as error:
        return _refuse("invalid_request", error.message)
    if not grant or not code:
        return _refuse("invalid_request", "grant_type and device_code are needed")
    if grant != DEVICE_GRANT:
        return _refuse("unsupported_grant_type", f"grant_type is {DEVICE_GRANT}")
    with database.connection() as connection:
        found = device_flow.poll(connection, code, new_id=new_id)
    if isinstance(found, Refused):
        return _refuse(found.error, _WHY[found.error], found.interval)
    answer = TokenAnswer(
        access_token=found.token,
        scope=" ".join(found.scopes),
        device_id=str(found.device),
        device_name=found.name,
    )
    return Response(answer, headers=_NO_STORE)


def _refuse(error: str, why: str, interval: int = 0) -> Response[Any]:
    headers = {**_NO_STORE, "Retry-After": str(interval)} if error == SLOW_DOWN else _NO_STORE
    refusal = TokenRefusal(error=error, error_description=why, interval=interval)
    return Response(refusal, status_code=400, headers=headers)


@post(
    "/api/auth/logout",
    status_code=204,
    sync_to_thread=True,
    opt={ANY_SCOPE: True},
    operation_class=operation({204: Says("It is ended.")}),
)
def log_out(
    request: AnyRequest,
    caller: GivenCaller,
    database: GivenDatabase,
    web: GivenWeb,
) -> None:
    """End the token (in a browser: the session) that asks this."""
    with database.connection() as connection:
        if caller.device is not None:
            revoke(connection, caller.user, caller.device)
            return
        cookie = cookie_of(request, web)
        if cookie is not None:
            end_session(connection, cookie)


@get("/api/me", sync_to_thread=True, operation_class=operation({200: Says("Who asks.", "Me")}))
def show_me(caller: GivenCaller, database: GivenDatabase) -> Response[Me]:
    """Who asks, by which device, and what it may do."""
    called = None
    if caller.device is not None:
        with database.connection() as connection:
            called = device_name(connection, caller.device)
    me = Me(
        user_id=str(caller.user),
        name=caller.name,
        space=str(caller.space),
        spaces=tuple(str(space) for space in caller.spaces),
        device_id=None if caller.device is None else str(caller.device),
        device_name=called,
        scopes=tuple(sorted(caller.scopes)),
        is_admin=caller.is_admin,
    )
    return Response(me, headers=_NO_STORE)


HANDLERS = [ask_to_be_let_in, fetch_token, log_out, show_me]
