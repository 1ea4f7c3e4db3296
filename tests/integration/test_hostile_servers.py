"""What a server that is broken, lost or hostile can do to this device: one error, soon, and no word of the token."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from raddle.adapters.remote.http_hub import HttpHub
from raddle.adapters.remote.http_link import Patience
from raddle.adapters.remote.sign_in import list_devices, who_am_i
from raddle.model.errors import (
    ConflictError,
    Forbidden,
    InvalidInput,
    NetworkError,
    NotFound,
    NotSignedIn,
    Purged,
    RaddleError,
    StorageError,
    TooLarge,
    TooManyRequests,
)
from raddle.model.protocol.hub import Changes
from tests.builders import THREAD_ID, a_message
from tests.contract.remote_laws import BYTES, SHA256, new, segment
from tests.fakes.hostile_server import HostileServer, Says, answer, hostile

TOKEN = "rdl_a-token-that-nobody-is-to-see"
EMPTY_PAGE = json.dumps({"changes": [], "cursor": "c", "hub_epoch": "e", "more": False}).encode()


def asked(server: HostileServer, **options: Any) -> Changes:
    """The feed of that server."""
    with HttpHub(server.link(TOKEN, **options)) as hub:
        return hub.changes("")


def refused(server: HostileServer, **options: Any) -> RaddleError:
    """The error that asking it comes to; it says one short line, and nothing of the token."""
    with pytest.raises(RaddleError) as caught:
        asked(server, **options)
    error = caught.value
    told = f"{error.message} {error.hint}"
    assert TOKEN not in told
    assert "\n" not in told
    assert len(told) < 900
    assert told.isprintable()
    return error


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Welcome to the hotel network</html>",
        b"{",
        b"[]",
        b"null",
        b'"changes"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"changes": 1, "cursor": "c", "hub_epoch": "e"}',
        b'{"changes": [], "cursor": 5, "hub_epoch": "e"}',
        b'{"changes": [], "cursor": "c", "hub_epoch": null}',
        b'{"changes": [{"id": "../../.ssh/id_rsa", "version": 1}], "cursor": "c", "hub_epoch": "e"}',
        b'{"changes": [{"id": "'
        + THREAD_ID.encode()
        + b'", "version": -1}], "cursor": "c", "hub_epoch": "e"}',
        b'{"changes": [], "cursor": "", "hub_epoch": "e", "more": true}',
        b'{"error": "' + TOKEN.encode() + b'"}',
    ],
)
def test_an_answer_that_is_none_of_ours_is_an_error_of_the_network(body: bytes) -> None:
    with hostile(answer(body)) as server:
        assert isinstance(refused(server), NetworkError)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("401 Unauthorized", NotSignedIn),
        ("403 Forbidden", Forbidden),
        ("404 Not Found", NetworkError),
        ("405 Method Not Allowed", NetworkError),
        ("501 Unsupported method", NetworkError),
        ("409 Conflict", ConflictError),
        ("410 Gone", Purged),
        ("413 Content Too Large", TooLarge),
        ("400 Bad Request", InvalidInput),
        ("422 Unprocessable Content", InvalidInput),
        ("429 Too Many Requests", TooManyRequests),
        ("500 Internal Server Error", NetworkError),
        ("502 Bad Gateway", NetworkError),
        ("503 Service Unavailable", NetworkError),
        ("418 I'm a teapot", NetworkError),
        ("204 No Content", NetworkError),
    ],
)
def test_each_refusal_is_an_error_of_its_kind(status: str, kind: type[RaddleError]) -> None:
    problem = {"code": "not_found", "detail": f"no {TOKEN} \x1b[31m\n here" + "x" * 5_000, "hint": "go on"}
    body = b"" if status.startswith("204") else json.dumps(problem).encode()
    with hostile(answer(body, status, "application/problem+json")) as server:
        assert type(refused(server)) is kind


@pytest.mark.parametrize("status", ["401 x", "403 x", "404 x", "410 x", "413 x", "429 x", "500 x", "302 x"])
@pytest.mark.parametrize("body", [b"", b"no", b"[1]", b'{"detail": {"a": 1}, "hint": 5, "code": []}'])
def test_a_refusal_without_a_reason_is_one_all_the_same(status: str, body: bytes) -> None:
    with hostile(answer(body, status)) as server:
        assert refused(server).message


@pytest.mark.parametrize("status", ["404 Not Found", "405 Method Not Allowed", "501 Unsupported method"])
@pytest.mark.parametrize("body", [b"<h1>no</h1>", b'{"code": "not_found", "detail": "no such page"}'])
def test_where_no_raddle_answers_that_is_said_and_the_address_named(status: str, body: bytes) -> None:
    with hostile(answer(body, status)) as server:
        error = refused(server)
    assert isinstance(error, NetworkError)
    assert error.message.startswith("nothing of raddle answers at ")


def test_a_thread_that_is_not_there_is_named() -> None:
    body = json.dumps({"code": "not_found", "detail": "no"}).encode()
    with (
        hostile(answer(body, "404 Not Found")) as server,
        HttpHub(server.link(TOKEN)) as hub,
        pytest.raises(NotFound, match=THREAD_ID),
    ):
        hub.sources(THREAD_ID)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("0", 1), ("99999999", 3600), ("soon", 30), ("-3", 30), ("Mon, 30 Nov 2026 12:00:00 GMT", 30)],
)
def test_how_long_to_wait_is_bounded(header: str, seconds: float) -> None:
    with hostile(answer(b"{}", "429 Too Many Requests", Retry_After=header)) as server:
        error = refused(server)
        assert isinstance(error, TooManyRequests)
        assert error.retry_after == seconds


@pytest.mark.parametrize(
    "there", ["http://192.0.2.1/api", "//192.0.2.1/api", "/api/elsewhere", "file:///etc/passwd"]
)
def test_no_redirect_is_followed(there: str) -> None:
    with hostile(answer(b"", "307 Temporary Redirect", Location=there), answer(EMPTY_PAGE)) as server:
        assert isinstance(refused(server), NetworkError)
        assert len(server.requests) == 1


def test_a_body_without_end_is_cut_off() -> None:
    endless = itertools.chain([b"HTTP/1.1 200 OK\r\n\r\n["], itertools.repeat(b" " * 65_536))
    with hostile(Says(endless)) as server:
        assert "larger" in refused(server).message


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_small_body_that_expands_without_end_is_cut_off(coding: str) -> None:
    plain = b" " * (64 << 20)
    code = gzip.compress if coding == "gzip" else zstandard.ZstdCompressor().compress
    with hostile(answer(code(plain), Content_Encoding=coding)) as server:
        assert "larger" in refused(server).message


@pytest.mark.parametrize("coding", ["gzip", "zstd", "br", "gzip, gzip", "deflate"])
def test_a_body_that_is_not_coded_as_it_says_is_an_error(coding: str) -> None:
    with hostile(answer(EMPTY_PAGE, Content_Encoding=coding)) as server:
        assert isinstance(refused(server), NetworkError)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_coded_body_that_ends_too_early_is_an_error(coding: str) -> None:
    code = gzip.compress if coding == "gzip" else zstandard.ZstdCompressor().compress
    with hostile(answer(code(EMPTY_PAGE)[:-9], Content_Encoding=coding)) as server:
        assert isinstance(refused(server), NetworkError)


@pytest.mark.parametrize("coding", ["gzip", "zstd", "identity"])
def test_an_honest_coded_body_is_read(coding: str) -> None:
    codes: dict[str, Any] = {
        "gzip": gzip.compress,
        "zstd": zstandard.ZstdCompressor().compress,
        "identity": bytes,
    }
    with hostile(answer(codes[coding](EMPTY_PAGE), Content_Encoding=coding)) as server:
        assert asked(server).cursor == "c"


@pytest.mark.parametrize(
    "says",
    [
        Says([], then_hangs=True),
        Says([b"HTTP/1.1 200 OK\r\n"], then_hangs=True),
        Says([b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"], then_hangs=True),
    ],
    ids=["before its answer", "in its head", "in its body"],
)
def test_a_server_that_falls_silent_is_not_waited_for_for_ever(says: Says) -> None:
    with hostile(says) as server:
        assert "in time" in refused(server).message


def test_a_server_that_sends_next_to_nothing_is_not_waited_for_for_ever() -> None:
    def trickle(server: list[HostileServer]) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        while True:
            server[0].is_over.wait(0.05)
            yield b" "

    known: list[HostileServer] = []
    with hostile(Says(trickle(known))) as server:
        known.append(server)
        assert "slowly" in refused(server).message


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b"SSH-2.0-OpenSSH_9.6\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n{}"],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
        [b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 200_000],
        [b"\0" * 10_000],
    ],
    ids=[
        "nothing",
        "another protocol",
        "half a body",
        "a length below none",
        "a bad chunk",
        "endless head",
        "NULs",
    ],
)
def test_a_connection_that_breaks_or_speaks_something_else_is_an_error(pieces: list[bytes]) -> None:
    with hostile(Says(pieces)) as server:
        assert isinstance(refused(server), NetworkError)


def test_a_request_whose_connection_broke_is_made_once_more() -> None:
    with hostile(Says([]), answer(EMPTY_PAGE)) as server:
        assert asked(server).hub_epoch == "e"
        assert len(server.requests) == 2


@pytest.mark.parametrize("says", [answer(BYTES[::-1]), answer(b""), answer(BYTES + b"!")])
def test_a_blob_that_is_another_is_told_at_its_end(says: Says) -> None:
    with hostile(says) as server, HttpHub(server.link(TOKEN)) as hub, pytest.raises(NetworkError):
        list(hub.blob(SHA256))


def test_a_blob_that_breaks_off_is_an_error() -> None:
    says = Says([b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n" + BYTES[:9]])
    with hostile(says) as server, HttpHub(server.link(TOKEN)) as hub, pytest.raises(NetworkError):
        list(hub.blob(SHA256))


@pytest.mark.parametrize("size", [len(BYTES) - 1, len(BYTES) + 1])
def test_a_blob_that_changed_on_the_way_out_is_not_sent_as_another(size: int) -> None:
    with (
        hostile(answer(b"", "204 No Content")) as server,
        HttpHub(server.link(TOKEN)) as hub,
        pytest.raises(StorageError),
    ):
        hub.put_blob(SHA256, iter([BYTES]), size)


def test_a_push_that_is_refused_with_nonsense_is_an_error() -> None:
    for body in (
        b"{}",
        b"[]",
        b'{"code": "version_conflict", "delta": 5, "hub_epoch": "e", "server_version": 1}',
    ):
        with (
            hostile(answer(body, "409 Conflict")) as server,
            HttpHub(server.link(TOKEN)) as hub,
            pytest.raises(NetworkError),
        ):
            hub.push(THREAD_ID, new(a_message()), "")


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "../../.bashrc"},
        {"name": "/etc/passwd"},
        {"name": "a\u0000"},
        {"sha256": "../threads"},
        {"size": 0},
    ],
)
def test_a_list_of_sources_that_would_lead_elsewhere_is_an_error(fields: dict[str, Any]) -> None:
    segments = [{**msgspec.to_builtins(segment()), **fields}]
    body = json.dumps({"sources": [{"device": "aaaaaaaa", "segments": segments}]}).encode()
    with (
        hostile(answer(body)) as server,
        HttpHub(server.link(TOKEN)) as hub,
        pytest.raises(NetworkError, match="cannot be read"),
    ):
        hub.sources(THREAD_ID)


NAMES = ["delta", "append", "set", "hub_epoch", "version", "more", "changes", "id", "base_version"]
NAMES += ["sources", "missing", "segments", "device"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES) | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


def test_whatever_json_comes_is_a_value_or_an_error_of_the_network() -> None:
    with hostile(answer(b"")) as server, HttpHub(server.link()) as hub, server.link() as link:
        calls = (
            lambda: hub.since(THREAD_ID, 0, ""),
            lambda: hub.changes(""),
            lambda: hub.push(THREAD_ID, new(a_message()), ""),
            lambda: hub.sources(THREAD_ID),
            lambda: hub.put_sources(THREAD_ID, "aaaaaaaa", [], 1),
            lambda: who_am_i(link),
            lambda: list_devices(link),
        )

        @given(JSON)
        @settings(max_examples=60)
        def holds(plain: Any) -> None:
            server.answers = [answer(json.dumps(plain).encode())]
            for call in calls:
                with contextlib.suppress(NetworkError):
                    call()

        holds()


def test_what_is_sent_says_who_sends_it_and_is_short() -> None:
    pushed = answer(json.dumps({"version": 1, "hub_epoch": "e"}).encode())
    text = "the same words again and again. " * 1_000
    with hostile(pushed) as server, HttpHub(server.link(TOKEN)) as hub:
        hub.push(THREAD_ID, new(a_message(content=text)), "")
        hub.push(THREAD_ID, new(a_message(content="short")), "")
        large, small = server.requests
    head, _, body = large.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert f"authorization: bearer {TOKEN}".lower().encode() in lines
    assert b"content-encoding: zstd" in lines
    assert b"accept-encoding: zstd, gzip" in lines
    assert any(line.startswith(b"user-agent: raddle/") for line in lines)
    assert len(body) < 1_000 < len(zstandard.ZstdDecompressor().decompress(body, max_output_size=1 << 20))
    assert b"content-encoding" not in small.lower()


def test_a_blob_goes_out_with_its_length_and_as_it_is() -> None:
    with hostile(answer(b"", "204 No Content")) as server, HttpHub(server.link(TOKEN)) as hub:
        hub.put_blob(SHA256, iter([BYTES]), len(BYTES))
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert body == BYTES
    assert f"content-length: {len(BYTES)}".encode() in head.lower()
    assert b"transfer-encoding" not in head.lower()


def test_a_hash_that_is_none_is_not_asked_for() -> None:
    with hostile(answer(b"")) as server, HttpHub(server.link()) as hub:
        for name in ("", "../threads", SHA256.upper(), SHA256 + "/x"):
            with pytest.raises(NotFound):
                hub.has_blob(name)
        assert server.requests == []


def test_time_is_given_to_who_goes_on_sending() -> None:
    data = bytes(300_000)
    sha256 = hashlib.sha256(data).hexdigest()
    patience = Patience(connect_seconds=0.5, read_seconds=5)
    with hostile(answer(data)) as server, HttpHub(server.link(patience=patience)) as hub:
        assert b"".join(hub.blob(sha256)) == data
