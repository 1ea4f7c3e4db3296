"""A look at all of a store's folder: what each file holds, by git's id of it, reading only what changed since.

Folder by folder, and where a folder is as it was, all of it at once: at ten thousand files, a turn of Python for each
would take as long as to ask the system about it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from raddle.actions.memory.ports import Scan
from raddle.adapters.files import storage_error
from raddle.adapters.memory_repo.folder_look import Facts, Look, is_settled, is_text, look_at
from raddle.adapters.memory_repo.scan_cache import HashedFolder, Known
from raddle.model.memory.names import is_dangerous

IdOf = Callable[[bytes], str]
Read = Callable[[str], bytes | None]
_HANDED_ON = 8 * 1024 * 1024
"""Bytes that are kept of what was read, for who goes on to commit it; the rest is read once more."""


def scan_folder(
    root: Path, known: Mapping[str, HashedFolder], *, id_of: IdOf, read: Read, largest: int
) -> tuple[Scan, Known, dict[str, bytes]]:
    """What the folder `root` holds, what is known of it now, and path -> bytes of what was read for that (8 MiB of it).
    `read`: all bytes of a file, None where it is none any more. `largest`: bytes of a file that is taken."""
    scanner = _Scanner(root, known, id_of, read, largest)
    waiting = [""]
    while waiting:
        look = look_at(root, waiting.pop())
        if look is not None:
            scanner.take(look)
            waiting += [_join(look.folder, name) for name in look.folders if not is_dangerous(name)]
    return Scan(files=scanner.files, blocked=scanner.blocked), scanner.seen, scanner.contents


class _Scanner:
    def __init__(
        self, root: Path, known: Mapping[str, HashedFolder], id_of: IdOf, read: Read, largest: int
    ) -> None:
        self.files: dict[str, str] = {}
        self.blocked: dict[str, str] = {}
        self.contents: dict[str, bytes] = {}
        self.seen: Known = {}
        self._root = root
        self._known = known
        self._id_of = id_of
        self._read = read
        self._largest = largest
        self._room = _HANDED_ON

    def take(self, look: Look) -> None:
        """What is right in one folder."""
        prefix = f"{look.folder}/" if look.folder else ""
        for name in look.others:
            if not is_text(name):
                shown = os.fsencode(prefix + name).decode(errors="replace")
                self.blocked[shown] = "its name is not UTF-8"
            elif not is_dangerous(name):
                is_link = (self._root / prefix / name).is_symlink()
                self.blocked[prefix + name] = "it is a link" if is_link else "it is no file"
        before = self._known.get(look.folder)
        if before is not None and before.names == look.names and before.facts == look.facts:
            ids = before.ids
        else:
            ids = self._compared(look, before)
        paths = [prefix + name for name in look.names]
        if "" in ids:
            self._take_one_by_one(look, paths, ids)
        else:
            self.files.update(zip(paths, ids, strict=True))
            self.seen[look.folder] = HashedFolder(look.names, look.facts, ids)

    def _compared(self, look: Look, before: HashedFolder | None) -> list[str]:
        """The ids of what is as it was; empty for the others."""
        noted = (
            dict(zip(before.names, zip(before.facts, before.ids, strict=True), strict=True)) if before else {}
        )
        pairs = map(noted.get, look.names)
        return [
            pair[1] if pair is not None and pair[0] == facts else ""
            for pair, facts in zip(pairs, look.facts, strict=True)
        ]

    def _take_one_by_one(self, look: Look, paths: list[str], ids: list[str]) -> None:
        noted = list(ids)
        for at, path in enumerate(paths):
            content_id = ids[at]
            if not content_id:
                content_id = self._hashed(path, look.names[at], look.facts[at])
                if content_id and is_settled(look.facts[at][1:3], look.at):
                    noted[at] = content_id
            if content_id:
                self.files[path] = content_id
        self.seen[look.folder] = HashedFolder(look.names, look.facts, noted)

    def _hashed(self, path: str, name: str, facts: Facts) -> str:
        """The id of a file's content; empty where it is not taken."""
        if is_dangerous(name):
            if name != ".git":
                self.blocked[path] = "its name is one that no store may hold"
            return ""
        if facts[0] > self._largest:
            self.blocked[path] = (
                f"it is larger than {self._largest // 1024 // 1024} MiB; add it as an artifact"
            )
            return ""
        try:
            data = self._read(f"{self._root}/{path}")
        except OSError as error:
            self.blocked[path] = storage_error(error, self._root / path, "read").message
            return ""
        if data is None:
            return ""
        if len(data) <= self._room:
            self._room -= len(data)
            self.contents[path] = data
        return self._id_of(data)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
