"""A store's folder for tests, and who writes in it: real files on tmp_path, without git."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from raddle.actions.memory.ports import Writer
from raddle.adapters.locks import LockFiles
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.model.clock import Clock
from raddle.model.ids import MonotonicIds
from tests.builders import WoundClock

RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"


def a_folder(root: Path) -> StoreFolder:
    """The files of an empty store at `root`."""
    root.mkdir(parents=True, exist_ok=True)
    return StoreFolder(root, LockFiles(root.parent / f"{root.name}-locks", stripes=1))


def a_writer(node_id: str = "aaaaaaaa", clock: Clock | None = None, *, author: str = "") -> Writer:
    """Somebody who writes at noon."""
    now = clock or WoundClock()
    return Writer(node_id=node_id, now=now, new_id=MonotonicIds(now), author=author)


def lay(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Put files there as another program would."""
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
