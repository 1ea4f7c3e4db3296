"""The index of a project's memory, and what is asked of it and of the store's history beside the verbs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from raddle.wiring.memory import ProjectMemory

if TYPE_CHECKING:
    from raddle.actions.memory.entries import Entries
    from raddle.actions.memory.memory_import import ImportReport, SourceFile
    from raddle.actions.memory.memory_search import DocumentKind, MemoryAnswer
    from raddle.adapters.memory_repo.shelf import Shelf
    from raddle.adapters.memory_repo.versions import FileVersion


def open_shelf(memory: ProjectMemory) -> Shelf:
    """The index of the store; a context manager, which lets go of its file."""
    from raddle.adapters.memory_repo.shelf import Shelf  # noqa: PLC0415

    return Shelf(memory.stores.paths.memory_index(memory.root), memory.root, clock=memory.stores.clock)


class IndexedEntries:
    """An `EntryReader` that asks the index, and keeps nothing open in between."""

    def __init__(self, memory: ProjectMemory) -> None:
        self._memory = memory

    def entries(self, run_id: str, phase: str | None = None) -> Entries:
        """Those of a run, or of one of its phases."""
        with open_shelf(self._memory) as shelf:
            return shelf.entries(run_id, phase)

    def resting_on(self, thread_id: str) -> Entries:
        """Those of any run that name this thread."""
        with open_shelf(self._memory) as shelf:
            return shelf.resting_on(thread_id)


def search_memory(
    memory: ProjectMemory,
    text: str,
    *,
    limit: int,
    kinds: Collection[DocumentKind] | None = None,
    namespace: str | None = None,
    as_you_type: bool = False,
) -> MemoryAnswer:
    """What a query as typed finds in a memory; `namespace`: among its memories alone."""
    from raddle.actions.memory.memory_search import KINDS  # noqa: PLC0415
    from raddle.model.threads.query import parse  # noqa: PLC0415

    query = parse(text, now=memory.stores.clock(), as_you_type=as_you_type)
    with open_shelf(memory) as shelf:
        return shelf.search(query, limit=limit, kinds=KINDS if kinds is None else kinds, namespace=namespace)


def import_folder(
    memory: ProjectMemory,
    folder: Path,
    namespace: str,
    *,
    overwrite: bool,
    is_dry_run: bool = False,
    is_deep: bool = True,
    told: Callable[[int], None] = lambda read: None,
) -> ImportReport:
    """Bring the texts of a folder in; the folder is only read. `is_deep`: and those of the folders below. `told` hears
    how many were read so far, before anything is written: what it raises gives all of it up."""
    from raddle.actions.memory.memory_import import import_texts  # noqa: PLC0415
    from raddle.adapters.memory_repo.foreign_folder import texts_in  # noqa: PLC0415

    def counted() -> Iterator[SourceFile]:
        for read, text in enumerate(texts_in(folder, without=memory.root), 1):
            told(read)
            if is_deep or "/" not in text.path:
                yield text

    return import_texts(memory.files, namespace, counted(), overwrite=overwrite, is_dry_run=is_dry_run)


def versions(memory: ProjectMemory, path: str, *, limit: int | None = None) -> list[FileVersion]:
    """The committed versions of a file of the store, the newest first."""
    from raddle.adapters.memory_repo.versions import versions_of  # noqa: PLC0415

    return versions_of(memory.root, path, limit=limit)


def version(memory: ProjectMemory, path: str, commit: str) -> bytes:
    """A file of the store as a commit has it; NotFound."""
    from raddle.adapters.memory_repo.versions import version_at  # noqa: PLC0415

    return version_at(memory.root, path, commit)


def committed(memory: ProjectMemory, path: str) -> bytes | None:
    """A file of the store as the newest commit has it; None where it has none."""
    from raddle.adapters.memory_repo.versions import committed as read_committed  # noqa: PLC0415

    return read_committed(memory.root, path)
