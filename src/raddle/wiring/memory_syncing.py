"""A project's memory brought into step with its remote, checked and mended: the verbs joined to this machine."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from raddle.model.errors import FormatError, UserError
from raddle.wiring.memory import ProjectMemory

if TYPE_CHECKING:
    from raddle.actions.memory.committing import Removals
    from raddle.actions.memory.syncing import SyncReport
    from raddle.actions.memory.verifying import Checked
    from raddle.wiring.memory_blobs import MemoryBlobs


def sync_memory(
    memory: ProjectMemory,
    *,
    may_publish: bool = False,
    may_refill: bool = False,
    removals: Removals = "few",
) -> SyncReport:
    """Bring a memory and its remote into step, as far as the person's settings allow it."""
    from raddle.actions.memory.syncing import sync  # noqa: PLC0415
    from raddle.wiring.memory_status import note_sync  # noqa: PLC0415

    report = sync(
        memory.files,
        memory.repository,
        memory.repository,
        memory.writer(),
        pause=time.sleep,
        may_publish=may_publish,
        may_refill=may_refill,
        removals=removals,
        is_offline=memory.stores.config.is_offline,
    )
    if report.state == "in_step":
        note_sync(memory)
    return report


def sync_and_keep(memory: ProjectMemory) -> SyncReport:
    """A sync as the daemon does it: asking nobody, and with git's upkeep after one that brought something."""
    report = sync_memory(memory)
    tidy_after(memory, report)
    return report


def tidy_after(memory: ProjectMemory, report: SyncReport) -> None:
    """Clear away what killed processes left, and have git pack what has gathered, where a sync brought something."""
    if report.committed or report.pulled:
        memory.files.sweep()
        memory.repository.maintain()


def versions_kept(memory: ProjectMemory, paths: Iterable[str] | None = None) -> AbstractContextManager[None]:
    """Around a write of these files (None: of any): what they said before and say after stays in the history."""
    from raddle.actions.memory.committing import every_version_kept  # noqa: PLC0415

    return every_version_kept(memory.files, memory.repository, memory.writer(), paths)


def verify_memory(memory: ProjectMemory, *, mends: bool, with_blobs: bool) -> Checked:
    """Look at every file of a memory; `mends`: put right what can be. `with_blobs`: ask the stores of blobs too, and
    read each blob of this machine."""
    from raddle.actions.memory.verifying import mend, verify  # noqa: PLC0415
    from raddle.wiring.memory_blobs import MemoryBlobs  # noqa: PLC0415

    memory.files.sweep()
    with MemoryBlobs(memory) as blobs:
        trouble = _looking_at(blobs, asks=with_blobs)
        if not mends:
            return verify(memory.files, trouble=trouble)
        return mend(
            memory.files, trouble=trouble, earlier=lambda path: _earlier(memory, path), keep=_keeper(memory)
        )


def _looking_at(blobs: MemoryBlobs, *, asks: bool) -> Callable[[str, str, int], str]:
    def trouble(name: str, sha256: str, size: int) -> str:
        """What is wrong with a blob; empty where nothing is known to be."""
        try:
            if blobs.is_here(name, sha256, asks=asks) is False:
                return "is not here"
            if not asks:
                return ""
            digest, store = hashlib.sha256(), blobs.for_reading(name)
            for piece in store.pieces(sha256, 0, size):
                digest.update(piece)
        except (UserError, FormatError) as error:
            return f"cannot be had: {error.message}"
        return "" if digest.hexdigest() == sha256 else "is damaged"

    return trouble


def _earlier(memory: ProjectMemory, path: str) -> Iterable[bytes]:
    from raddle.adapters.memory_repo.versions import contents_of  # noqa: PLC0415

    return contents_of(memory.root, path)


def _keeper(memory: ProjectMemory) -> Callable[[str, bytes], str]:
    from raddle.adapters.files import make_folder, write_atomic  # noqa: PLC0415

    def keep(path: str, data: bytes) -> str:
        folder = memory.own_folder / "damaged"
        make_folder(folder)
        file = folder / f"{hashlib.sha256(data).hexdigest()[:12]}-{path.rpartition('/')[2]}"
        write_atomic(file, data)
        return str(file)

    return keep
