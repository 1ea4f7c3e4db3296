"""Threads over HTTP: push, pull, save whole, delete, bring back; and the feed."""

from __future__ import annotations

import re
from typing import Annotated
from uuid import UUID

from litestar import Response, delete, get, post, put
from litestar.params import FromPath, FromQuery, QueryParameter, RawBody

from raddle.model.errors import InvalidInput
from raddle.model.ids import parse_thread_id
from raddle.model.protocol.hub import Pushed
from raddle.model.protocol.wire import decode_push, encode_answer, encode_changes, encode_pushed
from raddle.model.threads.codec import Decoded, decode_file, encode_thread
from raddle.server.accounts.callers import Caller
from raddle.server.http.callers import provide_caller
from raddle.server.http.described import CONFLICT, GONE, NOT_MINE, NOT_THERE, Says, operation
from raddle.server.http.given import AnyRequest, GivenCaller, GivenHub, GivenVisitor
from raddle.server.http.problems import VersionConflict
from raddle.server.hub import Hub
from raddle.server.routes.json_bodies import json_response, sent_json

_MOST_CHANGES = 1_000
_VERSION_TAG = re.compile(r'(?:W/)?"([0-9]{1,16})"\Z')
_Version = Annotated[int | None, QueryParameter(ge=0, le=1 << 53)]
_Flag = Annotated[bool, QueryParameter()]
_Epoch = Annotated[str, QueryParameter(max_length=200)]
_PUSHED = {200: Says("It was taken.", "Pushed"), 409: CONFLICT, 410: GONE}
_EDITED = {**_PUSHED, 403: NOT_MINE, 404: NOT_THERE}


@post(
    "/api/threads/{thread_id:str}/delta",
    status_code=200,
    sync_to_thread=True,
    operation_class=operation(_PUSHED, takes="Push"),
)
def push_delta(
    thread_id: FromPath[str], body: RawBody, hub: GivenHub, caller: GivenCaller
) -> Response[bytes]:
    """Apply a Delta that was made on the newest version; else 409 with what its maker lacks."""
    name = parse_thread_id(thread_id)
    delta, hub_epoch = decode_push(sent_json(body))
    return _answer_push(hub.push(caller, name, delta, hub_epoch), delta.base_version)


@put(
    "/api/threads/{thread_id:str}",
    sync_to_thread=True,
    operation_class=operation({201: Says("It is new.", "Pushed"), **_PUSHED}, takes="ThreadFile"),
)
def save_thread(
    thread_id: FromPath[str],
    body: RawBody,
    request: AnyRequest,
    hub: GivenHub,
    caller: GivenCaller,
) -> Response[bytes]:
    """Save a whole thread: what it holds is joined, and nothing is removed for its absence.

    `If-Match: "<base version>"` for one that is here, `If-None-Match: *` for a new one.
    """
    sent = _sent_thread(body)
    if sent.id != parse_thread_id(thread_id):
        raise InvalidInput("id: the body is another thread's", "send it to its own URL")
    return _save(hub, caller, sent, _base_version(request))


@post(
    "/api/threads",
    sync_to_thread=True,
    operation_class=operation(
        {201: Says("It is kept.", "Pushed"), 409: CONFLICT, 410: GONE}, takes="ThreadFile"
    ),
)
def create_thread(body: RawBody, hub: GivenHub, caller: GivenCaller) -> Response[bytes]:
    """Keep a whole thread that is new; 409 where it is here."""
    return _save(hub, caller, _sent_thread(body), 0)


@get(
    "/api/threads/{thread_id:str}",
    sync_to_thread=True,
    operation_class=operation(
        {
            200: Says("It, or what came after `since`.", "ThreadOrAnswer"),
            304: Says("`If-None-Match` names its version."),
            404: NOT_THERE,
            410: GONE,
        },
        is_open=True,
    ),
)
def show_thread(
    thread_id: FromPath[str],
    request: AnyRequest,
    hub: GivenHub,
    visitor: GivenVisitor,
    since: _Version = None,
    epoch: _Epoch = "",
    space: FromQuery[UUID | None] = None,
) -> Response[bytes]:
    """A thread that I may read, whole, as its file; or, with `since`, what one of mine has since a version, in pages.

    Of several threads of that id mine comes first; `space` names another.
    """
    name = parse_thread_id(thread_id)
    if since is not None:
        return json_response(encode_answer(hub.since(provide_caller(visitor), name, since, epoch)))
    thread = hub.read(visitor, name, space)
    headers = {"ETag": f'"{thread.version}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(b"", status_code=304, headers=headers)
    return Response(encode_thread(thread), media_type="application/json", headers=headers)


@delete(
    "/api/threads/{thread_id:str}",
    status_code=200,
    sync_to_thread=True,
    operation_class=operation({**_EDITED, 200: Says("It is deleted.", "Deleted")}),
)
def delete_thread(
    thread_id: FromPath[str], hub: GivenHub, caller: GivenCaller, purge: _Flag = False
) -> Response[bytes]:
    """Delete a thread of mine: it can be brought back for 90 days; then its words are erased for good.

    With `purge=true` they are erased now, and nothing brings it back.
    """
    name = parse_thread_id(thread_id)
    if purge:
        hub.purge(caller, name)
        return json_response({"id": name, "purged": True})
    return _answer_push(hub.delete(caller, name), 0)


@post(
    "/api/threads/{thread_id:str}/restore",
    status_code=200,
    sync_to_thread=True,
    operation_class=operation(_EDITED),
)
def restore_thread(thread_id: FromPath[str], hub: GivenHub, caller: GivenCaller) -> Response[bytes]:
    """Bring a deleted thread back."""
    return _answer_push(hub.restore(caller, parse_thread_id(thread_id)), 0)


@post(
    "/api/threads/{thread_id:str}/visibility",
    status_code=200,
    sync_to_thread=True,
    operation_class=operation(_EDITED, takes="Visibility"),
)
def set_visibility(
    thread_id: FromPath[str], body: RawBody, hub: GivenHub, caller: GivenCaller
) -> Response[bytes]:
    """Say who may read a thread of mine: `{"visibility": "private" | "organization" | "public"}`."""
    sent = sent_json(body)
    visibility = sent.get("visibility") if isinstance(sent, dict) else None
    if not isinstance(visibility, str):
        raise InvalidInput("visibility is not a text", "it is private, organization or public")
    return _answer_push(hub.set_visibility(caller, parse_thread_id(thread_id), visibility), 0)


@get(
    "/api/changes",
    sync_to_thread=True,
    operation_class=operation({200: Says("A page, empty at the end.", "Changes")}),
)
def list_changes(
    hub: GivenHub,
    caller: GivenCaller,
    cursor: Annotated[str, QueryParameter(max_length=4_000)] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=_MOST_CHANGES)] = 500,
) -> Response[bytes]:
    """What changed in my space, in commit order, after `cursor`."""
    return json_response(encode_changes(hub.changes(caller, cursor, limit)))


def _save(hub: Hub, caller: Caller, sent: Decoded, base_version: int | None) -> Response[bytes]:
    pushed = hub.save(caller, sent, base_version)
    return _answer_push(pushed, base_version or 0, created=base_version == 0)


def _answer_push(pushed: Pushed, base_version: int, *, created: bool = False) -> Response[bytes]:
    if not pushed.is_accepted:
        raise VersionConflict(pushed, base_version)
    headers = {"ETag": f'"{pushed.version}"'}
    return json_response(encode_pushed(pushed), status=201 if created else 200, headers=headers)


def _sent_thread(body: bytes) -> Decoded:
    sent_json(body)
    return decode_file(body)


def _base_version(request: AnyRequest) -> int | None:
    """The version that `If-Match` names, 0 for `If-None-Match: *`, None where neither is sent."""
    match = request.headers.get("if-match")
    if match is not None:
        version = _VERSION_TAG.match(match.strip())
        if version is None:
            raise InvalidInput("if-match is no version", 'send the version in quotes: If-Match: "41"')
        return int(version[1])
    return 0 if request.headers.get("if-none-match", "").strip() == "*" else None


HANDLERS = [
    push_delta,
    save_thread,
    create_thread,
    show_thread,
    delete_thread,
    restore_thread,
    set_visibility,
    list_changes,
]
