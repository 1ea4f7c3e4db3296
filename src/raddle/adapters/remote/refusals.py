"""What a server says no with, as our errors: the only place on this side that knows what a status means.

A server's words are a stranger's: one short line of them is kept, nothing that would draw on a terminal, and never
the token, which a careless server might repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from raddle.model.errors import (
    ConflictError,
    Forbidden,
    InvalidInput,
    NetworkError,
    NotFound,
    NotSignedIn,
    Purged,
    RaddleError,
    TooLarge,
    TooManyRequests,
)

SIGN_IN = "sign in with `raddle login`"
_ADDRESS = (
    "check the server's address: name, port, and nothing behind them where the server has no path of its own"
)
_NOT_RADDLE = frozenset({404, 405, 501, 505})
"""What a web server says of a call that it does not have; ours has all of them."""
LATER = "try again later; what is not synced yet stays on this machine"
_LONGEST = 300
_DEFAULT_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 30.0, 3600.0


class Wanted(NamedTuple):
    """What was asked for, to name it where it is not there: (`thread`, its id)."""

    kind: str
    name: str


def refusal(
    host: str, status: int, headers: Mapping[str, str], plain: Any, wanted: Wanted, *, token: str = ""
) -> RaddleError:
    """The error for an answer that is no success. `plain`: its JSON, None where it has none."""
    problem = plain if isinstance(plain, dict) else {}
    detail, hint = (words_of(problem.get(name), token) for name in ("detail", "hint"))
    if status in {401, 403, 429}:
        return _not_for_this_caller(host, status, headers, detail, hint)
    match status:
        case 404 if problem.get("code") == "not_found" and wanted.name:
            return NotFound(*wanted, hint)
        case 409:
            return ConflictError(detail or f"{host} has something newer", hint or "sync, then try again")
        case 410:
            return Purged(detail or f"the {wanted.kind} is erased for good", hint)
        case 413:
            return TooLarge(detail or f"it is more than {host} takes at once", hint)
        case 400 | 422 if problem:
            return InvalidInput(detail or f"{host} takes it for wrong", hint)
        case _:
            return _no_part_of_ours(host, status, headers, detail)


def _not_for_this_caller(
    host: str, status: int, headers: Mapping[str, str], detail: str, hint: str
) -> RaddleError:
    if status == 401:
        return NotSignedIn(f"{host} does not know this device, or knows it no more", SIGN_IN)
    if status == 403:
        return Forbidden(detail or f"{host} says that this is not yours to do", hint)
    return TooManyRequests(detail or f"{host} was asked too often", _wait(headers))


def _no_part_of_ours(host: str, status: int, headers: Mapping[str, str], detail: str) -> NetworkError:
    if 300 <= status < 400:
        there = words_of(headers.get("location", ""), "")
        hint = (
            f"if your server is there now: `raddle login --server {there}`" if there else "check the address"
        )
        return NetworkError(f"{host} sends raddle to another address, where it does not go by itself", hint)
    if status in _NOT_RADDLE:
        return NetworkError(f"nothing of raddle answers at {host}", _ADDRESS)
    if status >= 500:
        return NetworkError(f"{host} cannot do it now ({status}{f': {detail}' if detail else ''})", LATER)
    return NetworkError(f"{host} answered {status}, which raddle has no use for", _ADDRESS)


def words_of(text: Any, token: str) -> str:
    """A stranger's text as one short line; empty where it is none."""
    if not isinstance(text, str):
        return ""
    line = " ".join(text[: 2 * _LONGEST].split())
    shown = "".join(character for character in line if character.isprintable())
    if token:
        shown = shown.replace(token, "***")
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"


def _wait(headers: Mapping[str, str]) -> float:
    text = headers.get("retry-after", "").strip()
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        return _DEFAULT_WAIT_SECONDS
    return min(max(float(text), 1.0), _LONGEST_WAIT_SECONDS)
