"""git's index of a store, kept at what the branch says, so that a person's `git status` tells of what is not committed.

It is for people alone: raddle reads nothing from it. A second place that wrote it would have it read anew, twenty
thousand names, for each commit of one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from raddle.adapters.files import find_bytes, make_folder, write_note
from raddle.adapters.meanwhile import Meanwhile
from raddle.adapters.memory_repo.git_objects import Changes, hash_name_of
from raddle.adapters.memory_repo.git_streams import index_lines, safe_lines
from raddle.adapters.memory_repo.store_git import answer_of, run_store_git
from raddle.model.errors import StorageError


class GitIndex:
    """The index of the store at `root`. `note`: a file in which is kept what commit it was last brought to."""

    def __init__(self, root: Path, note: Path) -> None:
        self._root = root
        self._file = note.parent.parent / "index"
        self._note = note

    def follow(self, old: str | None, new: str, changes: Changes | None) -> None:
        """Bring it from the commit `old` to `new`, which the branch is at. `changes`: between the two; None: whatever
        they are. One that somebody else has locked is left as it is."""
        with self.following(old, changes) as reach:
            reach(new)

    @contextlib.contextmanager
    def following(self, old: str | None, changes: Changes | None) -> Iterator[Callable[[str], None]]:
        """Begin the same while the commit is being made, which git takes as long for; to be told what it is, once the
        branch is at it. Never told, it has changes that no commit has, and is read anew the next time."""
        if changes is None or old is None or not self._is_at(old):
            yield lambda new: self._note_that(new) if self._read_anew() else None
            return
        changing = Meanwhile(lambda: self._takes(index_lines(changes, hash_name=hash_name_of(old))))
        try:
            yield lambda new: self._note_that(new) if changing.result() or self._read_anew() else None
        finally:
            changing.result()  # nobody else may have the store before git has let go of its index

    def _note_that(self, commit_id: str) -> None:
        try:
            make_folder(self._note.parent)
            write_note(self._note, self._state(commit_id))
        except StorageError:
            return  # the next one reads all of it anew

    def at(self) -> str | None:
        """The commit that it was brought to here; None where somebody else wrote it since."""
        try:
            noted = (find_bytes(self._note) or b"").decode(errors="replace").partition(" ")[0]
        except StorageError:
            return None
        return noted if noted and self._is_at(noted) else None

    def _is_at(self, commit_id: str) -> bool:
        state = self._state(commit_id)
        try:
            return bool(state) and find_bytes(self._note) == state
        except StorageError:
            return False

    def _state(self, commit_id: str) -> bytes:
        """The commit and how the file looks; empty where there is none."""
        try:
            status = self._file.stat()
        except OSError:
            return b""
        return f"{commit_id} {status.st_ino} {status.st_size} {status.st_mtime_ns}\n".encode()

    def _read_anew(self) -> bool:
        """Names that git itself takes into no index (a hostile clone may have pushed `.GIT`) are left out of it, or
        nothing of it would be true any more."""
        if run_store_git(self._root, ["read-tree", "HEAD"]).code == 0:
            return True
        listing = answer_of(self._root, ["ls-tree", "-r", "-z", "--full-tree", "HEAD"])
        run_store_git(self._root, ["read-tree", "--empty"])
        return self._takes(safe_lines(listing))

    def _takes(self, lines: bytes) -> bool:
        return run_store_git(self._root, ["update-index", "-z", "--index-info"], input=lines).code == 0


def changes_between(old: Mapping[str, str], new: Mapping[str, str]) -> Changes:
    """What leads from one tree to another."""
    changed = {path: entry for path, entry in new.items() if old.get(path) != entry}
    return {**dict.fromkeys(old.keys() - new.keys()), **changed}
