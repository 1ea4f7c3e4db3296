"""The threads of this machine and those of a server keep the laws of every shelf."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from raddle.apps.mcp_server.server_shelf import ServerShelf
from raddle.apps.mcp_server.thread_shelf import local_shelf
from raddle.config import load_config
from raddle.model.clock import system_clock
from raddle.model.protocol.signing_in import THREADS
from raddle.model.secret import Secret
from raddle.model.threads.delta import Delta
from raddle.model.threads.thread import Thread
from raddle.server.accounts.callers import Caller
from raddle.server.blobs.keeping import open_blobs
from raddle.server.hub import Hub
from raddle.server.search.waiting import WaitingIndex
from raddle.server.tables.database import Database
from raddle.wiring import Stores
from tests.builders_server import a_person, connected, new_id, prepare
from tests.contract.thread_shelf_laws import Shelves, ThreadShelfLaws
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)


class TestLocalShelf(ThreadShelfLaws):
    @pytest.fixture
    def shelves(self, tmp_path: Path) -> Iterator[Shelves]:
        config = load_config({"HOME": str(tmp_path), "RADDLE_WORKSPACE": str(tmp_path)})
        with Stores(config) as stores:
            shelf = local_shelf(stores, all_repositories=True, include_private=False)
            yield Shelves(shelf, lambda thread: _saved(stores, thread))


def _saved(stores: Stores, thread: Thread) -> None:
    stores.threads.save(thread)


class TestServerShelf(ThreadShelfLaws):
    @pytest.fixture
    def shelves(self, new_database: NewDatabase, tmp_path: Path) -> Iterator[Shelves]:
        conninfo = new_database(prepare)
        with closing(connected(conninfo)) as connection:
            ada = a_person(connection)
        database = Database(Secret(conninfo), size=2)
        database.open()
        hub = Hub(database, WaitingIndex(), open_blobs(tmp_path), clock=system_clock, new_id=new_id)
        caller = Caller(ada.user, "ada", ada.space, (ada.space,), None, frozenset({THREADS}))

        def keep(thread: Thread) -> None:
            whole = thread.whole()
            made = Delta(version=thread.version, messages=whole.messages, registers=whole.registers)
            assert hub.push(caller, thread.id, made, hub.epoch).is_accepted

        yield Shelves(ServerShelf(hub, caller), keep)
        database.close()
