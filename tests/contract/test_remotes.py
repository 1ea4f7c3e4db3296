"""The hub in memory, the server's own functions, and the server over HTTP keep the laws of every hub."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from psycopg import Connection

from raddle.actions.sync.ports import Remote
from raddle.adapters.blobs.directory import BlobDirectory
from raddle.adapters.remote.http_hub import HttpHub
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.protocol.hub import Changes
from raddle.model.protocol.sources import DeviceSources, SourceSegment
from raddle.server.accounts.access import find_thread
from raddle.server.accounts.callers import Caller
from raddle.server.blobs.uploads import note_upload, size_for
from raddle.server.threads import feed, purging, sources
from raddle.server.threads.holding import Key
from tests.builders_served import Served, a_token, serving
from tests.builders_server import Person, ServerHub, a_person, connected, new_id, prepare
from tests.contract.remote_laws import PAGE, Hubs, RemoteLaws
from tests.fakes.memory_remote import MemoryRemote
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)


class _InMemory:
    def __init__(self) -> None:
        self._mine, self._theirs = MemoryRemote("mine", page=PAGE), MemoryRemote("theirs", page=PAGE)

    def mine(self) -> Remote:
        return self._mine

    def theirs(self) -> Remote:
        return self._theirs

    def begin_epoch(self) -> None:
        self._mine.begin_epoch()


class TestMemoryRemote(RemoteLaws):
    @pytest.fixture
    def hubs(self) -> Hubs:
        return _InMemory()


class _ServerRemote(ServerHub):
    """The server's functions for threads, feed and blobs, asked without HTTP as one person."""

    def __init__(self, connection: Connection, person: Person, blobs: BlobDirectory) -> None:
        super().__init__(connection, person)
        self._blobs = blobs
        self._caller = Caller(
            user=person.user,
            name="",
            space=person.space,
            spaces=(person.space,),
            device=None,
            scopes=frozenset(),
        )

    def changes(self, cursor: str) -> Changes:
        return feed.changes(self.connection, (self.person.space,), cursor, limit=PAGE, epoch=self.epoch)

    def has_blob(self, sha256: str) -> bool:
        try:
            size_for(self.connection, self._caller, sha256)
        except NotFound:
            return False
        return True

    def put_blob(self, sha256: str, pieces: Iterable[bytes], size: int) -> None:
        data = b"".join(pieces)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise InvalidInput("the bytes are others than the hash says")
        self._blobs.put(data)
        note_upload(self.connection, self.person.space, sha256, size)

    def blob(self, sha256: str) -> Iterator[bytes]:
        size_for(self.connection, self._caller, sha256)
        yield from self._blobs.chunks(sha256)

    def put_sources(
        self, thread_id: str, device: str, segments: Sequence[SourceSegment], version: int
    ) -> tuple[str, ...]:
        key = Key(self.person.space, thread_id)
        return tuple(sources.put_sources(self.connection, key, device, segments, version))

    def sources(self, thread_id: str) -> tuple[DeviceSources, ...]:
        facts = find_thread(self.connection, self._caller, thread_id)
        return tuple(sources.sources(self.connection, Key(facts.space_id, thread_id)))

    def purge(self, thread_id: str) -> None:
        facts = find_thread(self.connection, self._caller, thread_id)
        purging.purge(self.connection, Key(facts.space_id, thread_id), self.index)


class _OnServer:
    def __init__(self, connection: Connection, folder: Path) -> None:
        self._connection = connection
        self._blobs = BlobDirectory(folder)
        self._people = a_person(connection), a_person(connection, "bob")

    def mine(self) -> Remote:
        return _ServerRemote(self._connection, self._people[0], self._blobs)

    def theirs(self) -> Remote:
        return _ServerRemote(self._connection, self._people[1], self._blobs)

    def begin_epoch(self) -> None:
        feed.begin_epoch(self._connection, new_id)


class TestServerWithoutHttp(RemoteLaws):
    @pytest.fixture
    def hubs(self, new_database: NewDatabase, tmp_path: Path) -> Iterator[Hubs]:
        with connected(new_database(prepare)) as connection:
            yield _OnServer(connection, tmp_path / "blobs")


class _OverHttp:
    """Every device has connections of its own."""

    def __init__(self, served: Served, tokens: tuple[str, str], stack: contextlib.ExitStack) -> None:
        self._served = served
        self._tokens = tokens
        self._stack = stack

    def mine(self) -> Remote:
        return self._hub(self._tokens[0])

    def theirs(self) -> Remote:
        return self._hub(self._tokens[1])

    def _hub(self, token: str) -> HttpHub:
        return self._stack.enter_context(HttpHub(self._served.link(token), page=PAGE))

    def begin_epoch(self) -> None:
        self._served.stop()
        with connected(self._served.conninfo) as connection:
            feed.begin_epoch(connection, new_id)
        self._served.start()


@pytest.fixture(scope="module")
def served(new_shared_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(new_shared_database(prepare), tmp_path_factory.mktemp("hub") / "blobs") as served:
        yield served


class TestHttpHub(RemoteLaws):
    """One server for all of them: each law is kept among people of its own, beside all that others have there."""

    @pytest.fixture
    def hubs(self, served: Served) -> Iterator[Hubs]:
        with connected(served.conninfo) as connection:
            tokens = a_token(connection, f"ada-{new_id()}"), a_token(connection, f"bob-{new_id()}")
        with contextlib.ExitStack() as stack:
            yield _OverHttp(served, tokens, stack)
