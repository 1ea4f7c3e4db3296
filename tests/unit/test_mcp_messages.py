"""What a client says, line by line: understood, or answered so that it does not wait for ever."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage

from raddle.apps.mcp_server.messages import read_message

CALL = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"query":"%s"}}}'


def understood(line: bytes) -> Any:
    """The message, plain."""
    found = read_message(line)
    assert isinstance(found, SessionMessage), found
    return found.message.model_dump(by_alias=True, exclude_unset=True)


def refused(line: bytes) -> tuple[int | str | None, int]:
    """(id, code) of the answer to a line that is none."""
    found = read_message(line)
    assert isinstance(found, bytes)
    assert found.endswith(b"\n")
    assert found.count(b"\n") == 1
    answer = json.loads(found)
    assert answer["error"]["message"]
    return answer["id"], answer["error"]["code"]


@pytest.mark.parametrize("half", [r"\ud83d", r"a\udc00b", r"\ud83d\ud83d"])
def test_half_a_character_costs_itself_alone(half: str) -> None:
    told = understood((CALL % half).encode())
    said = told["params"]["arguments"]["query"]
    assert said.encode().decode() == said
    assert told["id"] == 7


def test_bytes_that_are_no_text_cost_themselves_alone() -> None:
    assert (
        understood((CALL % "a\x7f").encode().replace(b"\x7f", b"\xff"))["params"]["arguments"]["query"]
        == "a\ufffd"
    )


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (b'{"jsonrpc":"2.0","id":1,', None, types.PARSE_ERROR),
        (b"garbage", None, types.PARSE_ERROR),
        (b'{"a":' * 100_000, None, types.PARSE_ERROR),
        (b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', None, types.INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":12,"method":"ping"}', 12, types.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":true,"method":5}', None, types.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":"x","method":5}', "x", types.INVALID_REQUEST),
        (b"null", None, types.INVALID_REQUEST),
    ],
)
def test_what_is_no_message_is_answered(line: bytes, number: int | str | None, code: int) -> None:
    assert refused(line) == (number, code)


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_every_line_is_understood_or_answered(line: bytes) -> None:
    found = read_message(line)
    assert isinstance(found, SessionMessage) or json.loads(found)["error"]["code"] < 0
