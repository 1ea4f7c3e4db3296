"""A client's message out of its bytes, or the answer to bytes that are none.

The SDK logs what it cannot read over stdio, and over HTTP quotes it with the pages of a validation library.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

import mcp_types as types
from mcp.shared.message import SessionMessage


def read_message(line: bytes) -> SessionMessage | bytes:
    """The message in a line; else the line that answers it, for a client would wait for ever on one that is only
    logged.

    Half of a character outside of the basic plane, which a client makes by cutting a text in JavaScript, counts as
    U+FFFD; so do bytes that are no UTF-8.
    """
    text = line.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    try:
        plain: Any = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return refusal(
            types.PARSE_ERROR, "this is no JSON, or nested too deep: a message is one object on a line"
        )
    with contextlib.suppress(ValueError, RecursionError):
        whole = json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace").decode()
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(whole, by_name=False))
    number = plain.get("id") if isinstance(plain, dict) else None
    known = number if isinstance(number, str | int) and not isinstance(number, bool) else None
    return refusal(types.INVALID_REQUEST, "this is no message of JSON-RPC 2.0, or nested too deep", known)


def _no_number(name: str) -> float:
    raise ValueError(name)


def refusal(code: int, what: str, number: str | int | None = None) -> bytes:
    """The line that says of a message what is wrong with it."""
    answer = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": what}}
    return json.dumps(answer).encode("utf-8", "replace") + b"\n"
