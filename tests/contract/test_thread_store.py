"""The store of this machine and the one in memory keep the laws of every store of threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from raddle.model.threads.edits import Author
from tests.builders_store import a_store, a_writer
from tests.contract.thread_store_laws import OpenStore, Store, ThreadStoreLaws
from tests.fakes.memory_store import MemoryFolder, MemoryStore


def _ignore(_: str) -> None:
    """Nobody listens."""


class TestThreadFiles(ThreadStoreLaws):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        def open_store(*, author: Author | None = None, changed: Callable[[str], None] = _ignore) -> Store:
            return a_store(tmp_path, author, changed=changed)

        return open_store


class TestMemoryStore(ThreadStoreLaws):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        folder = MemoryFolder()

        def open_store(*, author: Author | None = None, changed: Callable[[str], None] = _ignore) -> Store:
            return MemoryStore(author or a_writer(), folder, changed=changed)

        return open_store
