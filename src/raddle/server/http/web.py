"""What a request says of where it came from and by what way, as far as the server was told to believe it.

A header that anybody can write is believed only behind a proxy that the operator named; if one route read it by
itself, a guesser would have as many addresses as they can spell.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from litestar.connection import ASGIConnection
from msgspec import Struct

from raddle.model.errors import InvalidInput
from raddle.server.accounts.sessions import is_cookie

AnyConnection = ASGIConnection[Any, Any, Any, Any]

_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?\Z")


class WebSettings(Struct, frozen=True, kw_only=True):
    """How people reach this server. `public_url`: `https://raddle.example.org`; empty: as each request says."""

    public_url: str = ""
    is_behind_proxy: bool = False
    """Is everything that comes in passed on by a proxy, which writes the last of X-Forwarded-For and -Proto?"""


def client_address(connection: AnyConnection, web: WebSettings) -> str:
    """The address of who asks, as text; `local` where there is none (a socket in the file system)."""
    peer = _address(connection.client.host if connection.client is not None else "")
    if not web.is_behind_proxy:
        return peer
    hops = ",".join(connection.headers.getall("x-forwarded-for", [])).split(",")
    forwarded = _address(hops[-1].strip())
    return peer if forwarded == "local" else forwarded


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return "local"


def is_https(connection: AnyConnection, web: WebSettings) -> bool:
    """Do people reach this server by https?"""
    if web.public_url:
        return web.public_url.lower().startswith("https://")
    if connection.scope["scheme"] == "https":
        return True
    return web.is_behind_proxy and _last_word(connection, "x-forwarded-proto").lower() == "https"


def origin_of(connection: AnyConnection, web: WebSettings) -> str:
    """The start of this server's addresses, as `https://raddle.example.org`; InvalidInput where Host is none."""
    if web.public_url:
        return web.public_url.rstrip("/")
    host = connection.headers.get("host", "")
    if web.is_behind_proxy:
        host = _last_word(connection, "x-forwarded-host") or host
    if _HOST.match(host) is None:
        raise InvalidInput("Host: it is not the name of a server")
    return f"{'https' if is_https(connection, web) else 'http'}://{host}"


def _last_word(connection: AnyConnection, header: str) -> str:
    return ",".join(connection.headers.getall(header, [])).split(",")[-1].strip()


def cookie_name(*, is_secure: bool) -> str:
    """What the cookie is called: by https a name that no other host, and no http page, can set."""
    return "__Host-raddle" if is_secure else "raddle"


def cookie_of(connection: AnyConnection, web: WebSettings) -> str | None:
    """The value of our cookie; None where there is none, or one that cannot be ours."""
    value = connection.cookies.get(cookie_name(is_secure=is_https(connection, web)))
    return value if value is not None and is_cookie(value) else None
