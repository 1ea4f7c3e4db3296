"""The agents' own files over HTTP: what each of my devices keeps of a thread of mine. The bytes are blobs."""

from __future__ import annotations

from litestar import Response, get, put
from litestar.params import FromPath, RawBody

from raddle.model.ids import parse_thread_id
from raddle.model.protocol.sources import decode_source_list, encode_sources, parse_device
from raddle.server.http.described import GONE, NOT_NOW, NOT_THERE, Says, operation
from raddle.server.http.given import GivenCaller, GivenHub
from raddle.server.routes.json_bodies import json_response, sent_json


@put(
    "/api/threads/{thread_id:str}/sources/{device:str}",
    sync_to_thread=True,
    operation_class=operation(
        {200: Says("It is noted.", "Missing"), 404: NOT_THERE, 409: NOT_NOW, 410: GONE}, takes="SourceList"
    ),
)
def put_sources(
    thread_id: FromPath[str], device: FromPath[str], body: RawBody, hub: GivenHub, caller: GivenCaller
) -> Response[bytes]:
    """Replace what a device of mine keeps of a thread of mine: `{"version", "segments"}`.

    Answers `{"missing"}`: those of the blobs that I have not given yet.
    """
    name, known = parse_thread_id(thread_id), parse_device(device)
    sent = decode_source_list(sent_json(body))
    return json_response({"missing": hub.put_sources(caller, name, known, sent)})


@get(
    "/api/threads/{thread_id:str}/sources",
    sync_to_thread=True,
    operation_class=operation({200: Says("What they keep.", "Sources"), 404: NOT_THERE, 410: GONE}),
)
def list_sources(thread_id: FromPath[str], hub: GivenHub, caller: GivenCaller) -> Response[bytes]:
    """What my devices keep of a thread of mine: `{"sources": [{"device", "segments"}]}`."""
    return json_response(encode_sources(hub.sources(caller, parse_thread_id(thread_id))))


HANDLERS = [put_sources, list_sources]
