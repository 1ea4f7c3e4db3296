"""The JSON of what a device and a hub exchange, both ways: docs/reference/http-api.md shows each body.

Decoding trusts nobody: what does not fit is BrokenFormat, which names the field; a body of a hub that is newer
may hold fields that are not known here, and they are passed over.
"""

from __future__ import annotations

from typing import Any

import msgspec

from raddle.model.errors import BrokenFormat
from raddle.model.protocol.hub import GONE, PUT, Answer, Change, Changes, Pushed
from raddle.model.threads.delta import Delta, decode_delta, encode_delta

MOST_DELTA_BYTES = 8 << 20
"""A device sends no more in one push, unless one message alone is larger."""
MOST_BODY_BYTES = 64 << 20
"""A hub takes no larger body, expanded (blobs excepted, which are streamed)."""

VERSION_CONFLICT = "version_conflict"
"""The code of a refused compare-and-set."""


def encode_push(delta: Delta, hub_epoch: str) -> dict[str, Any]:
    """The body of a push: the Delta, and the epoch of the hub that its base was made with."""
    return {**encode_delta(delta), "hub_epoch": hub_epoch}


def decode_push(plain: Any) -> tuple[Delta, str]:
    """(Delta, hub epoch) of a push."""
    delta = decode_delta(plain)
    return delta, _text(plain, "hub_epoch", "")


def encode_answer(answer: Answer) -> dict[str, Any]:
    """`{"hub_epoch", "delta", "more"}`."""
    return {"hub_epoch": answer.hub_epoch, "delta": encode_delta(answer.delta), "more": answer.has_more}


def decode_answer(plain: Any) -> Answer:
    """An answer to "what is new since", or the one within a 409."""
    _expect_object(plain, "an answer")
    return Answer(
        delta=decode_delta(plain.get("delta")),
        hub_epoch=_text(plain, "hub_epoch"),
        has_more=_flag(plain, "more"),
    )


def encode_pushed(pushed: Pushed) -> dict[str, Any]:
    """The body of an accepted push."""
    return {"version": pushed.version, "hub_epoch": pushed.hub_epoch}


def decode_pushed(plain: Any) -> Pushed:
    """What an accepted push was answered with."""
    _expect_object(plain, "the answer to a push")
    return Pushed(version=_number(plain, "version"), hub_epoch=_text(plain, "hub_epoch"))


def encode_conflict(pushed: Pushed, client_version: int) -> dict[str, Any]:
    """The members of a 409 besides those that every problem has."""
    if pushed.answer is None:
        raise TypeError("an accepted push is no conflict")
    return {
        "code": VERSION_CONFLICT,
        "server_version": pushed.version,
        "client_version": client_version,
        **encode_answer(pushed.answer),
    }


def decode_conflict(plain: Any) -> Pushed:
    """A 409 as what the push came to."""
    answer = decode_answer(plain)
    return Pushed(version=_number(plain, "server_version"), hub_epoch=answer.hub_epoch, answer=answer)


def encode_changes(page: Changes) -> dict[str, Any]:
    """`{"changes": [{"id", "version", "kind", "space", "deleted"}], "cursor", "hub_epoch", "more"}`."""
    return {
        "changes": [
            {
                "id": each.thread_id,
                "version": each.version,
                "kind": each.kind,
                "space": each.space,
                "deleted": each.is_deleted,
            }
            for each in page.changes
        ],
        "cursor": page.cursor,
        "hub_epoch": page.hub_epoch,
        "more": page.has_more,
    }


def decode_changes(plain: Any) -> Changes:
    """A page of the feed."""
    _expect_object(plain, "a page of changes")
    changes = plain.get("changes")
    if not isinstance(changes, list):
        raise BrokenFormat("changes is not a list")
    return Changes(
        changes=tuple(_change(each) for each in changes),
        cursor=_text(plain, "cursor"),
        hub_epoch=_text(plain, "hub_epoch"),
        has_more=_flag(plain, "more"),
    )


def _change(plain: Any) -> Change:
    _expect_object(plain, "a change")
    kind = _text(plain, "kind", PUT)
    return Change(
        thread_id=_text(plain, "id"),
        version=_number(plain, "version"),
        kind=kind if kind in {PUT, GONE} else PUT,
        space=_text(plain, "space", ""),
        is_deleted=_flag(plain, "deleted"),
    )


def json_bytes(plain: Any) -> bytes:
    """A body as compact UTF-8 JSON."""
    return msgspec.json.encode(plain)


def json_value(data: bytes) -> Any:
    """The JSON value of a body; BrokenFormat where it is none, or nested deeper than can be read."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BrokenFormat(f"the body is not JSON: {error}") from error


def _expect_object(plain: Any, what: str) -> None:
    if not isinstance(plain, dict):
        raise BrokenFormat(f"{what} is not a JSON object")


def _text(plain: dict[str, Any], name: str, default: str | None = None) -> str:
    value = plain.get(name, default)
    if not isinstance(value, str):
        raise BrokenFormat(f"{name} is not a text")
    return value


def _number(plain: dict[str, Any], name: str) -> int:
    value = plain.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BrokenFormat(f"{name} is not a whole number")
    return value


def _flag(plain: dict[str, Any], name: str) -> bool:
    value = plain.get(name, False)
    if not isinstance(value, bool):
        raise BrokenFormat(f"{name} is neither true nor false")
    return value
