"""Addresses of servers: one spelling of each.

Tokens and bases are kept by it: a second spelling of one server would be a second server, with nothing in step.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from raddle.adapters.hosts import is_loopback
from raddle.model.errors import InvalidInput

__all__ = ["is_loopback", "parse_server"]

_LONGEST = 500
_PORTS = {"http": 80, "https": 443}
_HINT = "write it like https://raddle.example.org"


def parse_server(text: str) -> str:
    """The address in its one spelling: `https://raddle.example.org`, with no slash at its end.

    Without `https://` or `http://` it is https, but for this machine itself. InvalidInput where it is none.
    """
    given = text.strip()
    if not given or len(given) > _LONGEST or not given.isprintable() or " " in given or "\\" in given:
        raise InvalidInput("the server's address is empty, too long, or holds what no address does", _HINT)
    try:
        parts = urlsplit(given if "://" in given else f"//{given}")
        name, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise InvalidInput(f"the server's address cannot be read: {error}", _HINT) from error
    scheme = parts.scheme or ("http" if is_loopback(name) else "https")
    _check(parts, scheme, name)
    shown = f"[{name}]" if ":" in name else name
    if port not in (None, _PORTS[scheme]):
        shown += f":{port}"
    return f"{scheme}://{shown}{parts.path.rstrip('/')}"


def _check(parts: SplitResult, scheme: str, name: str) -> None:
    if scheme not in _PORTS:
        raise InvalidInput(
            f"the server's address starts with {scheme}://, which is neither http nor https", _HINT
        )
    if not name:
        raise InvalidInput("the server's address names no server", _HINT)
    if "@" in parts.netloc:
        raise InvalidInput(
            "the server's address holds a name or a password", "sign in with `raddle login` instead"
        )
    if parts.query or parts.fragment:
        raise InvalidInput("the server's address goes on with ? or #", _HINT)
