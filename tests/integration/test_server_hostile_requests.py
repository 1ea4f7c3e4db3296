"""What a stranger may send: refused with a 4xx that says why, at once, with nothing of it kept. Never a 500."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import socket
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import zstandard
from psycopg import Connection, sql

from raddle.model.protocol.wire import MOST_BODY_BYTES
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.message import Attachment, ToolCall
from raddle.server.http.pace import PacedConnection
from raddle.server.threads import feed
from tests.builders import THREAD_ID, a_message, a_thread
from tests.builders_routes import Asker, all_calls, body_for, new_ids, push_body, rows_of_everybody
from tests.builders_served import Served, a_token, serving
from tests.builders_server import connected, new_id, prepare
from tests.contract.remote_laws import new
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

DELTA = f"/api/threads/{THREAD_ID}/delta"
SECRET = "xyzzy-words-of-somebody"
_PATIENCE_SECONDS = 20


class Door(NamedTuple):
    """A server, its database, and somebody who is let in."""

    served: Served
    connection: Connection
    asker: Asker

    def refuses(self, method: str, path: str, body: bytes | None, **headers: str) -> httpx.Response:
        """A 4xx that repeats nothing, with nothing changed; the answer."""
        before = rows_of_everybody(self.connection)
        answer = self.asker.ask(method, path, body, headers)
        assert 400 <= answer.status_code < 500, (answer.status_code, answer.text[:500])
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["status"] == answer.status_code
        assert problem["code"]
        assert problem["title"]
        assert SECRET not in answer.text
        assert len(answer.content) < 2_000
        assert rows_of_everybody(self.connection) == before
        return answer

    def raw(self, *pieces: bytes, ends: bool = False) -> bytes:
        """What comes back for these bytes on a connection of its own, which then ends from this side, or not."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE_SECONDS)
            connection.connect(str(self.served.socket_path))
            with contextlib.suppress(
                BrokenPipeError, ConnectionResetError
            ):  # it was cut while we still spoke
                for piece in pieces:
                    connection.sendall(piece)
                if ends:
                    connection.shutdown(socket.SHUT_WR)
            found = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := connection.recv(65536):
                    found += piece
        return found


@pytest.fixture
def door(new_database: NewDatabase, tmp_path: Path) -> Iterator[Door]:
    conninfo = new_database(prepare)
    with (
        connected(conninfo) as connection,
        serving(conninfo, tmp_path / "blobs", body_seconds=1) as served,
        Asker(served, a_token(connection)) as asker,
    ):
        feed.hub_epoch(connection, new_id)
        yield Door(served, connection, asker)


def nested(depth: int) -> str:
    return f'{{"append": [{{"id": "m1", "role": "user", "extra": {{"a": {"[" * depth}{"]" * depth}}}}}]}}'


NOT_JSON = {
    "nothing": b"",
    "half": b'{"append": [',
    "text": SECRET.encode(),
    "two values": b"{} {}",
    "not utf-8": b'{"append": "\xff\xfe"}',
    "utf-16": '{"version": 1}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"version": 1}',
    "a lone surrogate": b'{"set": {"title": [[1, "aaaaaaaa", "\\ud800"]]}}',
    "half a pair": b'{"append": [{"id": "\\udc00\\ud800", "role": "user"}]}',
    "too large a number": b'{"version": 1e400}',
    "not a number": b'{"version": NaN}',
    "infinity": b'{"version": -Infinity}',
    "a bare NUL": b'{"set": {"ti\x00tle": 1}}',
    "deep lists": b"[" * 200_000,
    "deep objects": b'{"a":' * 100_000,
}


def test_what_is_no_json_is_refused_by_every_route_that_takes_it(door: Door) -> None:
    for call in all_calls():
        ids = new_ids()
        if call.is_page or call.handler == "put_blob" or body_for(call, ids) in {None, b"{}"}:
            continue
        for body in NOT_JSON.values():
            door.refuses(call.method, ids.fill(call.path), body)


def test_deep_nesting_is_kept_or_refused(door: Door) -> None:
    for depth in (*range(50, 1_200, 25), 5_000, 100_000):
        body, path = nested(depth).encode(), f"/api/threads/{new_ids().thread}"
        if door.asker.ask("POST", f"{path}/delta", body).status_code == 200:
            assert door.asker.ask("GET", path).status_code == 200, depth
            assert door.asker.ask("GET", f"{path}?since=0").status_code == 200, depth
        else:
            door.refuses("POST", f"{path}/delta", body)


STRANGE: list[Any] = [None, True, -1, 1.5, "", "x\0", SECRET, [], {}, [[]], 1 << 63, 10**40, -(10**40), 1e308]


some_forms_or_all = pytest.mark.parametrize(
    "every", [pytest.param(3, id="every third"), pytest.param(1, id="every one", marks=pytest.mark.soak)]
)


def strange_forms(plain: Any) -> Iterator[Any]:
    """`plain` with one part of it, at a time, in the place of which something strange stands; and with it left out."""
    yield from STRANGE
    if isinstance(plain, dict):
        for name, value in plain.items():
            yield {key: each for key, each in plain.items() if key != name}
            yield {("x" * 5_000 if key == name else key): each for key, each in plain.items()}
            for form in strange_forms(value):
                yield {**plain, name: form}
    if isinstance(plain, list):
        for place, value in enumerate(plain):
            for form in strange_forms(value):
                yield [*plain[:place], form, *plain[place + 1 :]]


def a_full_push() -> Any:
    message = a_message(
        content="words",
        tool_calls=(ToolCall(id="c1", tool_name="run", arguments_json={"a": 1}),),
        attachments=(Attachment(sha256="a" * 64, name="x", size=3),),
        extra={"a": 1},
    )
    return json.loads(push_body(new(message, title="a title", is_pinned=True)))


@some_forms_or_all
def test_a_push_with_a_strange_part_is_taken_or_refused_whole(door: Door, every: int) -> None:
    taken, wrong = set(), []
    for form in itertools.islice(strange_forms(a_full_push()), 0, None, every):
        thread = new_ids().thread
        answer = door.asker.ask("POST", f"/api/threads/{thread}/delta", json.dumps(form).encode())
        if answer.status_code == 200:
            taken.add(thread)
            paths = (f"/api/threads/{thread}", f"/api/threads/{thread}?since=0")
            wrong += [(form, path) for path in paths if door.asker.ask("GET", path).status_code != 200]
        elif answer.status_code not in {400, 409, 422} or SECRET in answer.text:
            wrong.append((form, answer.text))
    assert wrong == []
    assert taken
    held = {
        name
        for table in ("messages", "registers", "thread_changes", "thread_blobs")
        for (name,) in door.connection.execute(
            sql.SQL("SELECT thread_id FROM {}").format(sql.Identifier(table))
        )
    }
    assert held <= taken, "nothing is kept of what was refused"
    threads = {name for (name,) in door.connection.execute("SELECT id FROM threads")}
    assert threads == taken
    assert door.asker.ask("GET", "/api/threads?limit=200").status_code == 200


@some_forms_or_all
def test_a_file_with_a_strange_part_is_taken_or_refused_whole(door: Door, every: int) -> None:
    plain = json.loads(encode_thread(a_thread(a_message(), title="a title", tag="x")))
    wrong: list[tuple[Any, ...]] = []
    for form in itertools.islice(strange_forms(plain), 0, None, every):
        answer = door.asker.ask("PUT", f"/api/threads/{THREAD_ID}", json.dumps(form).encode())
        is_named = isinstance(form, dict) and SECRET in (form.get("id"), form.get("format"))
        says_more = SECRET in answer.text and not is_named
        if answer.status_code not in {200, 400, 409, 422} or says_more:
            wrong.append((form, answer.status_code, answer.text))
        read = door.asker.ask("GET", f"/api/threads/{THREAD_ID}")
        if read.status_code not in {200, 404}:
            wrong.append((form, read.text))
    assert wrong == []


def test_strange_fields_are_refused_by_every_route_that_takes_json(door: Door) -> None:
    wrong = []
    for call in all_calls():
        ids = new_ids()
        body = body_for(call, ids)
        if (
            call.is_page
            or body is None
            or call.handler in {"put_blob", "push_delta", "save_thread", "create_thread"}
        ):
            continue
        given = json.loads(body) or {
            "client_name": "x",
            "scope": "threads",
            "scopes": ["threads"],
            "grant_type": "x",
            "device_code": "y",
        }
        for form in strange_forms(given):
            answer = door.asker.ask(call.method, ids.fill(call.path), json.dumps(form).encode())
            if answer.status_code >= 500 or SECRET in answer.text:
                wrong.append((str(call), form, answer.status_code, answer.text))
        if call.handler == "log_out":
            break
    assert wrong == []


def bomb(layers: int, squeeze: Callable[[bytes], bytes]) -> bytes:
    """Twice as many spaces as a body may have bytes, squeezed."""
    body = squeeze(b" " * (2 * MOST_BODY_BYTES))
    for _ in range(layers - 1):
        body = squeeze(body)
    return body


def gzip_of(data: bytes) -> bytes:
    squeezer = zlib.compressobj(9, wbits=31)
    return squeezer.compress(data) + squeezer.flush()


def zstd_of(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3, write_content_size=False).compress(data)


@pytest.mark.parametrize(("coding", "squeeze"), [("gzip", gzip_of), ("zstd", zstd_of)])
def test_a_body_that_expands_too_far_is_refused(
    door: Door, coding: str, squeeze: Callable[[bytes], bytes]
) -> None:
    headers = {"Content-Encoding": coding}
    assert door.refuses("POST", DELTA, bomb(1, squeeze), **headers).status_code == 413
    assert door.refuses("POST", DELTA, bomb(2, squeeze), **headers).status_code == 400
    body = push_body(new(a_message(content="words " * 1_000)))
    whole = squeeze(body)
    for broken in (whole[:-1], whole[: len(whole) // 2], whole[:3], whole + b"x", whole + whole, body):
        assert door.refuses("POST", DELTA, broken, **headers).status_code == 400
    assert door.asker.ask("POST", DELTA, whole, headers).status_code == 200


def test_codings_that_are_not_known_are_refused(door: Door) -> None:
    body = gzip.compress(push_body(new(a_message())))
    for coding in ("br", "gzip, gzip", "gzip,zstd", "deflate", "x" * 500, "gzip;q=1"):
        assert door.refuses("POST", DELTA, body, **{"Content-Encoding": coding}).status_code == 415


@pytest.mark.soak
def test_the_limit_of_a_body_is_exact(door: Door) -> None:
    at_most = push_body(new(a_message())).ljust(MOST_BODY_BYTES)
    assert door.asker.ask("POST", DELTA, at_most).status_code == 200
    assert door.refuses("POST", f"/api/threads/{new_ids().thread}/delta", at_most + b" ").status_code == 413


HEAD = f"POST {DELTA} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


def test_lengths_that_lie_get_nothing_done(door: Door) -> None:
    body = push_body(new(a_message()))
    length = f"Content-Length: {len(body)}\r\n"
    token = door.asker.client.headers["authorization"]
    head = f"{HEAD}Authorization: {token}\r\nContent-Type: application/json\r\n"
    before = rows_of_everybody(door.connection)
    lies = (
        f"Content-Length: {len(body) + 1}\r\n",
        f"Content-Length: {len(body) - 1}\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: x\r\n",
        f"Content-Length: {10**30}\r\n",
        f"Content-Length: {MOST_BODY_BYTES + 1}\r\n",
        f"{length}Content-Length: {len(body) - 5}\r\n",
        "Transfer-Encoding: chunked\r\n",
        f"{length}Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
    )
    for lie in lies:
        answer = door.raw(f"{head}{lie}\r\n".encode(), body, ends=lie == lies[0])
        assert not answer or answer.split(b" ")[1] in {b"400", b"413"}, (lie, answer)
        assert rows_of_everybody(door.connection) == before, lie
    answer = door.raw(f"{head}{length}\r\n".encode(), body)
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_body_that_is_said_to_be_too_large_is_refused_before_it_comes(door: Door) -> None:
    head = f"{HEAD}Content-Length: {MOST_BODY_BYTES + 1}\r\n\r\n"
    assert door.raw(head.encode()).startswith(b"HTTP/1.1 413")


STRANGE_TEXTS = [
    "%00",
    "%ff%fe",
    "%ed%a0%80",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f",
    "....//",
    "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c%00",
    "'%20OR%201=1--",
    "%0d%0aX-Injected:%201",
    "\u202e",
    "a" * 5_000,
    "1e400",
    "-1",
    "9" * 40,
    "%F0%9F%92%A9",
]


def test_strange_names_in_paths_and_queries_are_told_so(door: Door) -> None:
    schema = door.asker.ask("GET", "/openapi.json").json()["paths"]
    wrong = []
    for call in all_calls():
        ids = new_ids()
        described = schema.get(call.path.replace(":str", ""), {}).get(call.method.lower(), {})
        names = [each["name"] for each in described.get("parameters", []) if each["in"] == "query"]
        for text in STRANGE_TEXTS:
            paths = [f"{ids.fill(call.path)}?{name}={text}" for name in names]
            if call.has_ids:
                before, _, rest = call.path.partition("{")
                paths.append(ids.fill(before + text + rest.partition("}")[2]))
            for path in paths:
                answer = door.asker.ask(call.method, path, body_for(call, ids))
                if answer.status_code >= 500 or "x-injected" in answer.headers:
                    wrong.append((call.method, path, answer.status_code))
                if call.has_ids and "?" not in path and answer.status_code < 400:
                    wrong.append((call.method, path, answer.status_code))
    assert wrong == []


def test_strange_headers_are_told_so(door: Door) -> None:
    body = push_body(new(a_message()))
    token = door.asker.client.headers["authorization"]
    length = f"Content-Length: {len(body)}\r\n"
    for line in (
        b"Authorization: Bearer \xff\xfe\r\n",
        b"Authorization: \xff\r\n",
        b"Cookie: raddle=\xff\xfe; \xff=\x80;;;=\r\n",
        b"Cookie: " + b"a=b; " * 3_000 + b"\r\n",
        b"Content-Encoding: \xff\r\n",
        b"Content-Type: \xff\r\n",
        b"If-Match: \xff\r\nIf-None-Match: \xfe\r\nAuthorization: "
        + token.encode()
        + b"\r\nRange: bytes=\xff\r\n",
        b"X-Form-Token: \xff\r\nX-Csrf-Token: \xff\r\nCookie: raddle=" + b"A" * 43 + b"\r\n",
        b"Accept-Encoding: \xff;q=\xfe, gzip;q=x\r\n",
        b"Host: \xff\r\n",
    ):
        for start in (
            f"POST {DELTA}",
            f"PUT /api/threads/{THREAD_ID}",
            f"GET /api/threads/{THREAD_ID}",
            "GET /devices",
            f"GET /api/blobs/{'a' * 64}",
        ):
            answer = door.raw(
                f"{start} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{length}".encode()
                + line
                + b"\r\n"
                + body
            )
            assert answer.startswith(b"HTTP/1.1 "), (start, line)
            assert int(answer.split(b" ")[1]) in {200, 303, 400, 401, 403, 404, 413, 415, 422, 431}, (
                start,
                line,
                answer,
            )


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/threads?limit=0", "limit"),
        ("/api/threads?cursor=AAAA", "cursor"),
        ("/api/threads/search?q=x&cursor=AAAA", "cursor"),
        ("/api/threads/search?q=x&limit=many", "limit"),
        (f"/api/threads/{THREAD_ID}?since=x", "since"),
        ("/api/changes?cursor=zzz", "cursor"),
        ("/api/events?cursor=zzz", "cursor"),
        ("/api/threads?tag=%ff", "tag"),
        ("/api/threads?repo=%00", "repo"),
        ("/api/threads?branch=...", "branch"),
    ],
)
def test_a_parameter_that_does_not_fit_is_bad_input_and_named(door: Door, path: str, name: str) -> None:
    answer = door.refuses("GET", path, None)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_input")
    assert name in problem["detail"]


def test_a_blob_is_sent_whole_or_not_at_all(door: Door) -> None:
    ids = new_ids()
    headers = {"Content-Range": "bytes 0-3/100"}
    told = door.refuses("PUT", f"/api/blobs/{ids.sha256}", ids.data, **headers)
    assert (told.status_code, "content-range" in told.json()["detail"]) == (422, True)


def test_a_version_that_is_none_is_told_so(door: Door) -> None:
    body = encode_thread(a_thread(a_message()))
    for match in ('"x"', '"1', "*", "-1", "1e9", '"99999999999999999999"', '"1", "2"'):
        told = door.refuses("PUT", f"/api/threads/{THREAD_ID}", body, **{"If-Match": match})
        assert "if-match" in told.json()["detail"], match


def test_a_body_that_does_not_come_is_given_up(door: Door) -> None:
    token = door.asker.client.headers["authorization"]
    for line in (f"POST {DELTA}", f"PUT /api/blobs/{'a' * 64}"):
        head = f"{line} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Length: 100000\r\n\r\n"
        answer = door.raw(head.encode(), b'{"version":')
        assert answer.startswith(b"HTTP/1.1 408"), answer
        assert b'"code":"request_timeout"' in answer


def test_a_request_that_does_not_begin_or_never_ends_is_given_up(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert door.raw(b"GET / HTTP/1.1\r\nX: " + b"x" * 400_000).partition(b"\r\n")[0] in (
        b"",
        b"HTTP/1.1 400 Bad Request",
    )
    with monkeypatch.context() as patch:
        patch.setattr(PacedConnection, "head_seconds", 0.2)
        assert door.raw() == b""
        assert door.raw(b"GET / HTTP/1.1\r\nX: x") == b""
        whole = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        answer = door.raw(whole + whole + b"GET / HTTP/1.1\r\nX")
        assert answer.count(b"HTTP/1.1 200") == 2


@pytest.mark.soak
def test_very_much_of_one_thing_is_taken(door: Door) -> None:
    """Distinct words and calls of tools: what makes an index large."""
    words = " ".join(f"w{number:x}" for number in range(700_000))
    calls = tuple(
        ToolCall(id=f"c{number}", tool_name="run", arguments_json={"output": "line of it\n" * 10_000})
        for number in range(300)
    )
    for delta in (new(a_message(content=words)), new(a_message(tool_calls=calls))):
        path = f"/api/threads/{new_ids().thread}"
        answer = door.asker.ask("POST", f"{path}/delta", push_body(delta))
        assert answer.status_code == 200, answer.text[:300]
        assert door.asker.ask("GET", path).status_code == 200
    assert door.asker.ask("GET", "/api/threads/search?q=hello").status_code == 200


def test_thousands_of_registers_are_taken(door: Door) -> None:
    path = f"/api/threads/{THREAD_ID}"
    delta = new(a_message(), **{f"tag/{number}": True for number in range(10_000)})
    assert door.asker.ask("POST", f"{path}/delta", push_body(delta)).status_code == 200
    assert len(door.asker.ask("GET", path).json()["metadata"]["tags"]) == 10_000
    assert door.asker.ask("GET", "/api/threads").status_code == 200


MISFITS: list[tuple[Any, str]] = [
    ({}, "append and set"),
    ({"append": [{"id": "m1", "role": "user", "ts": 5}]}, "append[0].ts"),
    ({"append": [{"id": "m1", "role": "user", "ts": "yesterday"}]}, "append[0].ts"),
    ({"append": [{"id": "m1", "role": "user", "content": 5}]}, "append[0].content"),
    ({"append": [{"id": "m1", "role": "user", "tool_calls": 5}]}, "append[0].tool_calls"),
    ({"append": [{"id": "m1", "role": "r" * 100_000}]}, "append[0].role"),
    ({"append": [{"id": "m1", "role": "user", "parent_id": "m1"}]}, "append[0].parent_id"),
    *(
        ({"set": {path: [[1, "aaaaaaaa", value]]}}, name)
        for path, value, name in (
            ("is_private", "yes", "set.is_private"),
            ("is_pinned", 1, "set.is_pinned"),
            ("visibility", "everyone", "set.visibility"),
            ("title", 5, "set.title"),
            ("deleted", True, "set.deleted"),
            ("tag/kiln", "yes", "set.tag"),
            ("gone/m1", "yes", "set.gone"),
        )
    ),
]
FITTING: list[Any] = [
    {"append": [{"id": "m1", "role": "user", "content": None, "from_a_newer_raddle": 5}]},
    {"append": [{"id": "m1", "role": "critic", "parent_id": "m0"}]},
    {"set": {"from_a_newer_raddle": [[1, "aaaaaaaa", {"a": 1}]]}},
    {"set": {"title": [[1, "aaaaaaaa", None]]}},
    {"set": {"visibility": [[1, "aaaaaaaa", "Public"]]}},
]


def test_a_value_that_is_not_what_its_field_says_is_refused_by_name_and_nothing_is_kept(door: Door) -> None:
    for plain, name in MISFITS:
        thread = new_ids().thread
        answer = door.refuses("POST", f"/api/threads/{thread}/delta", json.dumps(plain).encode())
        assert (answer.status_code, name in answer.json()["detail"]) == (422, True), answer.text
    assert door.connection.execute("SELECT count(*) FROM threads").fetchone() == (0,)


def test_what_a_newer_raddle_writes_and_what_another_device_brings_later_is_taken(door: Door) -> None:
    for plain in FITTING:
        path = f"/api/threads/{new_ids().thread}/delta"
        assert door.asker.ask("POST", path, json.dumps(plain).encode()).status_code == 200, plain


def test_too_many_or_too_long_names_are_refused_by_name(door: Door) -> None:
    for delta, field in (
        (new(a_message("m" * 2_000)), "append[0].id"),
        (new(a_message("")), "append[0].id"),
        (new(a_message(parent_id="p" * 2_000)), "append[0].parent_id"),
        (new(a_message(seq=-1)), "append[0].seq"),
        (new(a_message(rev=1 << 60)), "append[0].rev"),
        (new(a_message(), **{"x" * 3_000: 1}), "set"),
    ):
        assert field in door.refuses("POST", DELTA, push_body(delta)).json()["detail"]
    for body, field in (
        (b'{"base_version": 18014398509481985}', "base_version"),
        (b'{"version": 18014398509481985}', "version"),
        (b'{"base_version": "1"}', "versions"),
        (b'{"append": {}}', "append"),
        (b'{"append": [], "set": []}', "set"),
        (b'{"append": [1]}', "message"),
        (b'{"append": [{"role": "user"}]}', "id"),
        (b'{"set": {"title": 1}}', "register"),
        (b'{"hub_epoch": 1}', "hub_epoch"),
    ):
        assert field in door.refuses("POST", DELTA, body).json()["detail"]
