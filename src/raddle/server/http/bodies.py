"""The small bodies that people and their devices send: a form, or a JSON object, read by the same rules.

Read here and not by the framework, since both kinds come to one address, and since a field that does not fit has to
be named without being repeated.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from raddle.model.errors import InvalidInput
from raddle.model.protocol.wire import json_value
from raddle.server.http.given import AnyRequest

MOST_FORM_BYTES = 64 << 10
"""A larger body of this kind is refused before it is read."""
_MOST_FIELDS = 50
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"


def read_fields(request: AnyRequest, body: bytes) -> dict[str, Any]:
    """The fields of a form (texts) or of a JSON object (any values); none where there is no body.

    InvalidInput, or BrokenFormat for JSON, where it is neither.
    """
    if not body:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == _FORM:
        return dict(read_form(body))
    if kind != _JSON:
        raise InvalidInput(f"Content-Type: it is neither {_FORM} nor {_JSON}")
    plain = json_value(body)
    if not isinstance(plain, dict):
        raise InvalidInput("the body is not a JSON object")
    return plain


def read_form(body: bytes) -> dict[str, str]:
    """The fields of a form; of several with one name the last. InvalidInput where it is none."""
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise InvalidInput("the body is not a form in UTF-8") from error
    return dict(pairs)


def text_field(fields: dict[str, Any], name: str, default: str = "") -> str:
    """The text in a field; InvalidInput where it holds something else."""
    value = fields.get(name, default)
    if not isinstance(value, str):
        raise InvalidInput(f"{name}: it is not a text")
    return value
