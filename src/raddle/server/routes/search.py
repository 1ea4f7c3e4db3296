"""Search and list over HTTP: the same language and the same answer as `raddle search` gives on a device."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, get
from litestar.params import FromQuery, QueryParameter

from raddle.model.errors import InvalidInput
from raddle.model.threads.search_text import words_of
from raddle.server.http.described import Says, operation
from raddle.server.http.given import GivenCaller, GivenHub
from raddle.server.routes.json_bodies import json_response

_Query = Annotated[str, QueryParameter(max_length=20_000)]
_Cursor = Annotated[str, QueryParameter(max_length=4_000)]
_Limit = Annotated[int, QueryParameter(ge=1, le=200)]
_Name = Annotated[str, QueryParameter(max_length=500)]


@get(
    "/api/threads/search",
    sync_to_thread=True,
    operation_class=operation({200: Says("What was found.", "SearchAnswer")}),
)
def search_threads(
    hub: GivenHub,
    caller: GivenCaller,
    q: _Query = "",
    limit: _Limit = 20,
    cursor: _Cursor = "",
    as_you_type: FromQuery[bool] = False,
) -> Response[bytes]:
    """Threads with a message that hits, best first, in the spaces that I am a member of."""
    answer = hub.search(caller, q, limit=limit, cursor=cursor, as_you_type=as_you_type)
    return json_response(msgspec.to_builtins(answer))


@get(
    "/api/threads",
    sync_to_thread=True,
    operation_class=operation({200: Says("A page of them.", "ThreadList")}),
)
def list_threads(
    hub: GivenHub,
    caller: GivenCaller,
    limit: _Limit = 50,
    cursor: _Cursor = "",
    repo: _Name = "",
    branch: _Name = "",
    tag: _Name = "",
    agent: _Name = "",
) -> Response[bytes]:
    """Threads of my spaces, the newest activity first; the filters are those of search."""
    given: dict[str, Any] = {"repo": repo, "branch": branch, "tag": tag, "agent": agent}
    for key, value in given.items():
        if value and not words_of(value):
            raise InvalidInput(f"{key}: there is no word in it to look for", "leave it out to see all")
    query = " ".join(f'{key}:"{value.replace(chr(34), " ")}"' for key, value in given.items() if value)
    page = hub.listed(caller, query, limit=limit, cursor=cursor)
    return json_response({"threads": msgspec.to_builtins(page.threads), "cursor": page.cursor})


HANDLERS = [search_threads, list_threads]
