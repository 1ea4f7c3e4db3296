"""Source lists on the server: whose they are, what is refused, and what they leave when they change or go."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest
from psycopg import Connection

from raddle.server.accounts.devices import mint
from raddle.server.threads.holding import Key
from raddle.server.threads.sources import put_sources
from tests.builders import THREAD_ID, a_message, a_thread
from tests.builders_served import ADDRESS, serving
from tests.builders_server import Person, ServerHub, a_person, connected, new_id, prepare
from tests.contract.remote_laws import BYTES, SHA256, new, segment
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

DEVICE, OTHER_DEVICE = "aaaaaaaa", "bbbbbbbb"


class Space(NamedTuple):
    """A person's thread on a server, asked without HTTP."""

    connection: Connection
    person: Person
    key: Key
    version: int

    def put(self, *data: bytes, device: str = DEVICE) -> list[str]:
        return put_sources(self.connection, self.key, device, [segment(each) for each in data], self.version)

    def named(self) -> set[str]:
        """The blobs that stand as the thread's sources."""
        rows = self.connection.execute("SELECT sha256 FROM thread_blobs WHERE is_source")
        return {bytes(sha256).hex() for (sha256,) in rows}


@pytest.fixture
def space(new_database: NewDatabase) -> Iterator[Space]:
    with connected(new_database(prepare)) as connection:
        person = a_person(connection)
        version = ServerHub(connection, person).push(THREAD_ID, new(a_message()), "").version
        yield Space(connection, person, Key(person.space, THREAD_ID), version)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_thread_names_the_blobs_of_all_its_devices_lists_and_no_others(space: Space) -> None:
    space.put(b"a", b"b")
    space.put(b"b", b"c", device=OTHER_DEVICE)
    assert space.named() == {sha(b"a"), sha(b"b"), sha(b"c")}
    space.put(b"d")
    assert space.named() == {sha(b"b"), sha(b"c"), sha(b"d")}
    space.put(device=OTHER_DEVICE)
    assert space.named() == {sha(b"d")}
    space.put()
    assert space.named() == set()
    assert space.connection.execute("SELECT * FROM thread_sources").fetchall() == []


def test_a_list_that_is_there_writes_nothing(space: Space) -> None:
    def written() -> list[Any]:
        queries = (
            b"SELECT xmin::text, ctid::text FROM thread_sources",
            b"SELECT xmin::text, ctid::text FROM thread_blobs",
        )
        return [space.connection.execute(query).fetchall() for query in queries]

    space.put(b"a")
    before = written()
    assert space.put(b"a") == [sha(b"a")]
    assert written() == before


class Asked(NamedTuple):
    """The server over HTTP, as Ada, as Bob, and as a device that may only read."""

    ada: httpx.Client
    bob: httpx.Client
    reader: httpx.Client
    version: int


@pytest.fixture
def asked(new_database: NewDatabase, tmp_path: Path) -> Iterator[Asked]:
    conninfo = new_database(prepare)
    with connected(conninfo) as connection, serving(conninfo, tmp_path / "blobs") as served:
        people = a_person(connection), a_person(connection, "bob")
        thread = new(a_message(), visibility="public")
        version = ServerHub(connection, people[0]).push(THREAD_ID, thread, "").version
        kinds = ((people[0], "threads"), (people[1], "threads"), (people[0], "threads:read"))
        clients = [
            httpx.Client(
                base_url=ADDRESS,
                transport=httpx.HTTPTransport(uds=str(served.socket_path)),
                headers={
                    "Authorization": f"Bearer {mint(connection, person.user, 'laptop', [scope], new_id=new_id)}"
                },
            )
            for person, scope in kinds
        ]
        try:
            yield Asked(clients[0], clients[1], clients[2], version)
        finally:
            for client in clients:
                client.close()


def body(version: int, **fields: Any) -> dict[str, Any]:
    return {"version": version, "segments": [{**msgspec.to_builtins(segment()), **fields}]}


def url(device: str = DEVICE) -> str:
    return f"/api/threads/{THREAD_ID}/sources/{device}"


def test_sources_are_the_owners_alone_also_of_a_public_thread(asked: Asked) -> None:
    assert asked.ada.put(url(), json=body(asked.version)).json() == {"missing": [SHA256]}
    asked.ada.put(f"/api/blobs/{SHA256}", content=BYTES)
    assert asked.ada.put(url(), json=body(asked.version)).json() == {"missing": []}
    listed = f"/api/threads/{THREAD_ID}/sources"
    told = [{"device": DEVICE, "segments": body(0)["segments"]}]
    assert asked.ada.get(listed).json() == {"sources": told}
    assert asked.reader.get(listed).json() == {"sources": told}
    assert asked.bob.get(f"/api/threads/{THREAD_ID}").status_code == 200
    assert "sources" not in asked.bob.get(f"/api/threads/{THREAD_ID}").json()
    assert asked.bob.get(listed).status_code == 403
    assert asked.bob.get(f"/api/blobs/{SHA256}").status_code == 404
    assert asked.bob.put(url(), json=body(asked.version)).status_code == 403
    assert asked.reader.put(url(), json=body(asked.version)).status_code == 403
    assert asked.ada.get(f"/api/blobs/{SHA256}").content == BYTES


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"key": ""}, "key"),
        ({"key": "k" * 65}, "key"),
        ({"key": "ü"}, "key"),
        ({"name": "../../.ssh/id"}, "name"),
        ({"name": "/etc/passwd"}, "name"),
        ({"name": "a//b"}, "name"),
        ({"name": "a\u0000b"}, "name"),
        ({"name": ""}, "name"),
        ({"agent": "\u0000"}, "agent"),
        ({"sha256": SHA256.upper()}, "sha256"),
        ({"sha256": "aa"}, "sha256"),
        ({"start": -1}, "start"),
        ({"generation": 1 << 60}, "generation"),
        ({"size": 1}, "size"),
        ({"start": "0"}, "start"),
    ],
)
def test_what_is_no_segment_is_refused_by_the_name_of_its_field(
    asked: Asked, fields: dict[str, Any], name: str
) -> None:
    answer = asked.ada.put(url(), json=body(asked.version, **fields))
    assert answer.status_code in {400, 422}
    assert name in answer.json()["detail"]


def test_what_is_no_list_of_a_device_is_refused(asked: Asked) -> None:
    no_lists: list[Any] = [[], {}, {"version": 1}, {"version": 1, "segments": [1]}, 3]
    for wrong in (*no_lists, {"version": "1", "segments": []}):
        assert asked.ada.put(url(), json=wrong).status_code == 400
    for device in ("AAAAAAAA", "aaaaaaa", "aaaaaaaaa", "%00aaaaaaa", "zzzzzzzz"):
        assert asked.ada.put(url(device), json=body(asked.version)).status_code == 422
    assert asked.ada.put(url(), json=body(asked.version + 1)).status_code == 409
    missing = f"/api/threads/{a_thread().id[:-1]}0/sources"
    assert asked.ada.get(missing).status_code == 404


def test_a_purge_at_once_takes_everything_and_answers_gone_from_then_on(asked: Asked) -> None:
    asked.ada.put(f"/api/blobs/{SHA256}", content=BYTES)
    asked.ada.put(url(), json=body(asked.version))
    at = f"/api/threads/{THREAD_ID}"
    assert asked.bob.delete(at, params={"purge": "true"}).status_code == 403
    assert asked.reader.delete(at, params={"purge": "true"}).status_code == 403
    assert asked.ada.delete(at, params={"purge": "perhaps"}).status_code == 422
    assert asked.ada.delete(at, params={"purge": "true"}).json() == {"id": THREAD_ID, "purged": True}
    for answer in (
        asked.ada.get(at),
        asked.ada.get(f"{at}/sources"),
        asked.ada.put(url(), json=body(asked.version)),
        asked.ada.delete(at, params={"purge": "true"}),
        asked.ada.delete(at),
        asked.ada.post(f"{at}/restore"),
    ):
        assert answer.status_code == 410
    assert asked.bob.get(at).status_code == 404
