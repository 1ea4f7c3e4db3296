"""How this device signs in to a server (RFC 8628) and out, and what the server says of who asks.

Nothing is kept here: where a token goes is `credentials.py`. A code and a token are never part of an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from raddle.adapters.remote.http_link import HttpLink
from raddle.adapters.remote.refusals import Wanted
from raddle.model.errors import Forbidden, NetworkError, NotSignedIn, TooManyRequests, UserError
from raddle.model.protocol.signing_in import (
    DENIED,
    DEVICE_GRANT,
    EXPIRED,
    PENDING,
    SLOW_DOWN,
    DeviceAuthorization,
    DeviceShown,
    Me,
    TokenAnswer,
    TokenRefusal,
)

_LEAST_INTERVAL_SECONDS, _LONGEST_INTERVAL_SECONDS = 1.0, 60.0
_SLOWER_SECONDS = 5.0
_LONGEST_SECONDS = 3600
_MOST_FAILURES = 5
"""So many times in a row the network may fail while a person types the code."""
_LONGEST_SHOWN = 500
_Value = TypeVar("_Value")


def ask_to_be_let_in(link: HttpLink, device_name: str) -> DeviceAuthorization:
    """Begin: the code that a person types, and where."""
    reply = link.ask("POST", "/api/auth/device", plain={"client_name": device_name}, accepted=(200, 400))
    if reply.status == 400:
        refused = _read(link, reply.plain, TokenRefusal)
        raise UserError(f"{link.host} does not let this device ask: {_shown(link, refused.error)}")
    begun = _read(link, reply.plain, DeviceAuthorization)
    for shown in (begun.user_code, begun.verification_uri, begun.verification_uri_complete):
        _shown(link, shown)
    if not begun.verification_uri.startswith(("https://", "http://")):
        raise link.nonsense("the page to open is none")
    return begun


def _shown(link: HttpLink, text: str) -> str:
    """`text` itself, which a person is to read and type: nothing in it may draw on a terminal."""
    if not text or len(text) > _LONGEST_SHOWN or not text.isprintable() or text.split() != [text]:
        raise link.nonsense("it holds what cannot be shown")
    return text


def wait_for_token(
    link: HttpLink, begun: DeviceAuthorization, *, wait: Callable[[float], object]
) -> TokenAnswer:
    """Ask again and again until the person let this device in. `wait`: lets so many seconds pass.

    Forbidden where they said no, UserError where the code ran out, NetworkError where the server was away five
    times in a row.
    """
    interval = _bounded(float(begun.interval))
    left, failures = float(min(begun.expires_in, _LONGEST_SECONDS)), 0
    while left > 0:
        wait(interval)
        left -= interval
        try:
            found = ask_for_token(link, begun.device_code)
            failures = 0
        except TooManyRequests as error:
            interval = _bounded(error.retry_after)
            continue
        except NetworkError:
            failures += 1
            if failures == _MOST_FAILURES:
                raise
            interval = _bounded(2 * interval)
            continue
        if isinstance(found, TokenAnswer):
            return found
        interval = _next_interval(link, found, interval)
    raise _expired()


def ask_for_token(link: HttpLink, device_code: str) -> TokenAnswer | TokenRefusal:
    """The token, or why there is none (now)."""
    plain = {"grant_type": DEVICE_GRANT, "device_code": device_code}
    reply = link.ask("POST", "/api/auth/token", plain=plain, accepted=(200, 400))
    if reply.status == 400:
        return _read(link, reply.plain, TokenRefusal)
    answer = _read(link, reply.plain, TokenAnswer)
    if answer.token_type.lower() != "bearer" or not answer.access_token:
        raise link.nonsense("the token is of a kind that raddle does not know")
    return answer


def _next_interval(link: HttpLink, refused: TokenRefusal, interval: float) -> float:
    """How long to wait before the next question; an error where there is none to ask."""
    match refused.error:
        case error if error == PENDING:
            return interval
        case error if error == SLOW_DOWN:
            return _bounded(max(interval + _SLOWER_SECONDS, float(refused.interval)))
        case error if error == DENIED:
            raise Forbidden("this device was not let in", "`raddle login` asks again")
        case error if error == EXPIRED:
            raise _expired()
    raise UserError(f"{link.host} gives no token: {_shown(link, refused.error)}", "`raddle login` asks again")


def _expired() -> UserError:
    return UserError("nobody let this device in while its code was good", "`raddle login` gives another code")


def _bounded(seconds: float) -> float:
    return min(max(seconds, _LEAST_INTERVAL_SECONDS), _LONGEST_INTERVAL_SECONDS)


def log_out(link: HttpLink) -> None:
    """End this link's token; that it means nobody any more is just as well."""
    try:
        link.ask("POST", "/api/auth/logout", accepted=(200, 204))
    except NotSignedIn:
        return


def who_am_i(link: HttpLink) -> Me:
    """Whose token it is."""
    return _read(link, link.ask("GET", "/api/me").plain, Me)


def list_devices(link: HttpLink) -> list[DeviceShown]:
    """The devices that this person has let in, newest first."""
    return _read(link, link.ask("GET", "/api/devices").plain, list[DeviceShown])


def revoke_device(link: HttpLink, device_id: str) -> None:
    """Let a device in no more."""
    # Whatever an id holds, it stays one part of the path.
    part = "".join(character for character in device_id if character.isalnum() or character == "-")
    link.ask("DELETE", f"/api/devices/{part}", accepted=(200, 204), wanted=Wanted("device", device_id))


def _read(link: HttpLink, plain: Any, kind: type[_Value]) -> _Value:
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise link.nonsense(str(error)) from error
