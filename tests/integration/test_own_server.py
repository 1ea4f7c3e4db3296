"""The server that `raddle up` runs: one for a data folder, however many ask for it at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from raddle.config import Config
from raddle.model.errors import ConflictError
from raddle.wiring.own_server import (
    being_own_server,
    find_own_server,
    last_address,
    note_address,
    start_own_server,
)
from tests.builders_import import Machine

ADDRESS = "http://127.0.0.1:7370"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    with Machine(tmp_path).stores() as stores:
        return stores.config


@contextmanager
def starting(config: Config, listens: threading.Event) -> Iterator[None]:
    """Another one is starting; it says where it listens once `listens` is set."""
    holds, ends = threading.Event(), threading.Event()

    def run() -> None:
        with being_own_server(config.paths):
            holds.set()
            listens.wait(30)
            note_address(config.paths, ADDRESS)
            ends.wait(30)

    thread = threading.Thread(target=run)
    thread.start()
    assert holds.wait(30)
    try:
        yield
    finally:
        listens.set()
        ends.set()
        thread.join()


def test_who_asks_while_it_is_starting_waits_for_it(config: Config) -> None:
    listens = threading.Event()
    with starting(config, listens):
        found = find_own_server(config.paths)
        assert found is not None
        assert found.address == ""
        threading.Timer(0.1, listens.set).start()
        running = start_own_server(config, config.paths, port=0)
        assert (running.pid, running.address) == (os.getpid(), ADDRESS)
        assert start_own_server(config, config.paths, port=0) == running
    assert find_own_server(config.paths) is None
    assert last_address(config.paths) == ADDRESS


def test_there_is_one_for_a_data_folder(config: Config) -> None:
    with starting(config, threading.Event()), pytest.raises(ConflictError), being_own_server(config.paths):
        pass
