"""Sources of artifacts and a store of blobs for tests, over bytes and a folder of the test's own."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raddle.actions.memory.artifacts import Added, add_artifact
from raddle.actions.memory.blob_ports import StoreOfBlobs
from raddle.actions.memory.runs import start_run
from raddle.adapters.blobs.by_hash import blobs_in_folder
from raddle.model.memory.artifact import INLINE_BELOW
from tests.memory_clones import Clone

HUGE = random.Random(3).randbytes(20 << 20)  # noqa: S311
LARGE = HUGE[: 3 << 20]
CRLF = b"one\r\ntwo\r\n\xc3\xbc\r"


class Given:
    """A source that gives what it is told to: other bytes the second time, or an error after so many pieces."""

    def __init__(self, *versions: bytes, name: str = "file.txt", fails_after: int = -1) -> None:
        self.name = name
        self._versions = list(versions)
        self._fails_after = fails_after
        self.times = 0

    def pieces(self) -> Iterator[bytes]:
        data = self._versions[min(self.times, len(self._versions) - 1)]
        self.times += 1
        for number, start in enumerate(range(0, max(len(data), 1), 1 << 20)):
            if self.times > 1 and number == self._fails_after:
                raise OSError("the disk went away")
            yield data[start : start + (1 << 20)]


class Shelves:
    """`StoresOfBlobs` in folders below one; `name` takes what is new."""

    def __init__(self, folder: Path, name: str = "objects") -> None:
        self.folder = folder
        self.name = name

    def chosen(self) -> str:
        return self.name

    def own(self) -> StoreOfBlobs:
        return blobs_in_folder(self.folder / "own")

    def for_writing(self, name: str) -> StoreOfBlobs:
        return blobs_in_folder(self.folder / name)

    def for_reading(self, name: str) -> StoreOfBlobs:
        return blobs_in_folder(self.folder / name)

    def held(self) -> list[str]:
        """The names of all files in them."""
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file())


def a_run(clone: Clone) -> str:
    """The id of a run that has just begun."""
    return start_run(clone.files, clone.writer).run_id


def add(
    clone: Clone,
    shelves: Any,
    run_id: str,
    artifact_id: str,
    source: bytes | Given,
    *,
    name: str = "file.txt",
    kind: str = "file",
    phase: str = "build",
    inline_below: int = INLINE_BELOW,
) -> Added:
    return add_artifact(
        clone.files,
        shelves,
        clone.writer,
        run_id=run_id,
        phase=phase,
        artifact_id=artifact_id,
        kind=kind,
        source=Given(source, name=name) if isinstance(source, bytes) else source,
        inline_below=inline_below,
    )


def everything(root: Path) -> dict[str, str]:
    """Path -> hash of every file below a folder, git's own left out."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }
