"""JSON in and out of the routes."""

from __future__ import annotations

from typing import Any

from litestar import Response

from raddle.model.errors import InvalidInput
from raddle.model.protocol.wire import json_bytes, json_value


def json_response(plain: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response[bytes]:
    """`plain` as a JSON response."""
    return Response(
        json_bytes(plain), status_code=status, media_type="application/json", headers=headers or {}
    )


def sent_json(body: bytes) -> Any:
    """The JSON value that was sent; InvalidInput where nothing was, BrokenFormat where it is no JSON."""
    if not body:
        raise InvalidInput("the body is empty", "send JSON")
    return json_value(body)
