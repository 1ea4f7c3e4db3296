"""Which threads belong to one repository or folder: what an agent that works there is shown.

One rule for the index, which leaves the others out before it counts or ranks, and for whoever opens a thread by its
id. With two of them a thread could be hidden from lists and be read all the same.
"""

from __future__ import annotations

from msgspec import Struct


class Reach(Struct, frozen=True, kw_only=True):
    """The threads of one place: those written against the repository `remote` (a slug; empty: it has none), and those
    that name no repository and were written in one of `folders`, the names of one folder.

    `is_deep`: or anywhere below it, where the folder is a repository's.
    """

    remote: str = ""
    folders: tuple[str, ...] = ()
    is_deep: bool = False

    def holds(self, remote: str | None, workspace: str | None) -> bool:
        """Does a thread with this repository, written in this folder, belong there?"""
        if remote:
            return remote == self.remote
        place = (workspace or "").rstrip("/") or workspace or ""
        return any(place == folder or (self.is_deep and _is_below(place, folder)) for folder in self.folders)


def _is_below(place: str, folder: str) -> bool:
    return place.startswith(folder if folder.endswith("/") else f"{folder}/")
