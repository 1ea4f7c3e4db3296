"""Blobs over HTTP, in pieces both ways: no request holds a whole one in memory."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Annotated

import anyio.to_thread
from litestar import Response, delete, get, head, put
from litestar.params import FromPath, QueryParameter
from litestar.response import Stream

from raddle.model.errors import InvalidInput, TooLarge
from raddle.server.accounts.callers import Caller
from raddle.server.blobs.keeping import NewBlob
from raddle.server.blobs.uploads import holding, is_kept, keep_no_longer, note_upload, parse_sha256, size_for
from raddle.server.http.described import BYTES, NOT_THERE, Says, operation
from raddle.server.http.given import AnyRequest, GivenCaller, GivenHub, GivenVisitor
from raddle.server.http.problems import problem, problem_response
from raddle.server.hub import Hub

MOST_BLOB_BYTES = 4 << 30
_PIECE = 1 << 20
_COMPRESSED_AT_MOST = 64 << 20
"""Larger ones lie plain, so that a range of one is not unpacked from its beginning."""
_Flag = Annotated[bool, QueryParameter()]
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z")


@put(
    "/api/blobs/{sha256:str}",
    status_code=204,
    request_max_body_size=None,
    operation_class=operation({204: Says("They are kept.")}, takes="Bytes", kinds=(BYTES,)),
)
async def put_blob(
    sha256: FromPath[str], request: AnyRequest, hub: GivenHub, caller: GivenCaller, keep: _Flag = False
) -> None:
    """Keep bytes under their SHA-256; what they are not is refused, and nothing of it is kept.

    Where no thread of mine names them a day later they go, unless I said `keep=true`.
    """
    name = parse_sha256(sha256)
    length = _length_of(request)
    may_compress = length <= _COMPRESSED_AT_MOST
    writer = await anyio.to_thread.run_sync(lambda: hub.blobs.writer(compress=may_compress))
    received = 0
    try:
        async for piece in _in_large_pieces(request.stream()):
            received += len(piece)
            if received > length:
                raise TooLarge("the body is longer than its Content-Length")
            await anyio.to_thread.run_sync(writer.write, piece)
        if received != length:
            raise InvalidInput("the body is shorter than its Content-Length", "send it again")
        if writer.sha256() != name:
            raise InvalidInput(
                "sha256: the bytes are others than the URL says", "send what it is the hash of"
            )
        await anyio.to_thread.run_sync(_keep, hub, caller, writer, received, keep)
    finally:
        await anyio.to_thread.run_sync(writer.discard)


@head(
    "/api/blobs/{sha256:str}",
    sync_to_thread=True,
    operation_class=operation(
        {
            200: Says("It is here; X-Blob-Size says how long, X-Blob-Kept whether I want it kept."),
            404: Says("Not for me."),
        },
        is_open=True,
    ),
)
def look_for_blob(sha256: FromPath[str], hub: GivenHub, visitor: GivenVisitor) -> Response[None]:
    """Is it here for me, and how long?"""
    name = parse_sha256(sha256)
    with hub.database.connection() as connection:
        size = size_for(connection, visitor, name)
        kept = visitor is not None and is_kept(connection, visitor, name)
    told = {"X-Blob-Size": str(size), "X-Blob-Kept": "true" if kept else "false"}
    return Response(None, status_code=200, headers={**_HEADERS, **told})


@delete(
    "/api/blobs/{sha256:str}",
    status_code=204,
    sync_to_thread=True,
    operation_class=operation({204: Says("It goes when no thread of mine names it."), 404: NOT_THERE}),
)
def let_go_of_blob(sha256: FromPath[str], hub: GivenHub, caller: GivenCaller) -> None:
    """Take back `keep=true`: what no thread of mine names goes within a day or two."""
    with hub.database.connection() as connection:
        keep_no_longer(connection, caller, parse_sha256(sha256))


@get(
    "/api/blobs/{sha256:str}",
    sync_to_thread=True,
    operation_class=operation(
        {
            200: Says("All of it.", "Bytes", BYTES),
            206: Says("The range that was asked for.", "Bytes", BYTES),
            404: NOT_THERE,
        },
        is_open=True,
    ),
)
def get_blob(
    sha256: FromPath[str],
    request: AnyRequest,
    hub: GivenHub,
    visitor: GivenVisitor,
) -> Stream | Response[bytes]:
    """The bytes, or a range of them."""
    name = parse_sha256(sha256)
    size = _size(hub, visitor, name)
    wanted = _range_of(request.headers.get("range", ""), size)
    if wanted is None:
        return Stream(
            hub.blobs.chunks(name), headers={**_HEADERS, "Content-Length": str(size)}, media_type=_BYTES
        )
    start, end = wanted
    if start >= end:
        plain = problem(416, "range_not_satisfiable", f"it is {size} bytes long")
        return problem_response(416, plain, {"Content-Range": f"bytes */{size}"})
    headers = {
        **_HEADERS,
        "Content-Length": str(end - start),
        "Content-Range": f"bytes {start}-{end - 1}/{size}",
    }
    return Stream(hub.blobs.range(name, start, end), status_code=206, headers=headers, media_type=_BYTES)


_BYTES = "application/octet-stream"
_HEADERS = {
    "Accept-Ranges": "bytes",
    "Cache-Control": "private, max-age=31536000, immutable",
    "Content-Disposition": "attachment",
    "X-Content-Type-Options": "nosniff",
}


def _size(hub: Hub, visitor: Caller | None, sha256: str) -> int:
    with hub.database.connection() as connection:
        return size_for(connection, visitor, sha256)


def _keep(hub: Hub, caller: Caller, writer: NewBlob, size: int, keep: bool) -> None:
    """Bytes, then row; and no job that lets go of the same bytes between the two."""
    with hub.database.connection() as connection, holding(connection, writer.sha256()):
        name = writer.finish()
        note_upload(connection, caller.space, name, size, is_kept=keep)


def _length_of(request: AnyRequest) -> int:
    text = request.headers.get("content-length", "")
    if "content-range" in request.headers:
        raise InvalidInput("content-range: blobs are sent whole", "leave it out, and send all of it")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise InvalidInput("content-encoding: blobs are sent as they are", "leave it out")
    if not text.isascii() or not text.isdigit():
        raise InvalidInput("content-length: it is missing", "say how many bytes will come")
    if int(text) > MOST_BLOB_BYTES:
        raise TooLarge(f"the blob is larger than {MOST_BLOB_BYTES} bytes")
    return int(text)


async def _in_large_pieces(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """So that a worker thread is called once a mebibyte, not once a packet."""
    waiting: list[bytes] = []
    size = 0
    async for piece in stream:
        waiting.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def _range_of(header: str, size: int) -> tuple[int, int] | None:
    """(Start, end) of a single range; None where there is none that is understood, and all is sent."""
    found = _RANGE.match(header.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        return max(size - int(last), 0), size
    return int(first), min(int(last) + 1, size) if last else size


HANDLERS = [put_blob, look_for_blob, get_blob, let_go_of_blob]
