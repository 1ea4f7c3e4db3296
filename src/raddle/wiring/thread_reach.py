"""Which threads belong to the place that an agent works in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from raddle.model.threads.reach import Reach


class Surroundings(NamedTuple):
    """The threads of a place, and what the place is called: a repository's slug, else a folder. `is_repository`: is
    there one around it?"""

    reach: Reach
    name: str
    is_repository: bool


_known: dict[tuple[str, str], Surroundings] = {}
_MOST = 256


def surroundings_of(workspace: Path) -> Surroundings:
    """What belongs to the repository around `workspace`, for each of its worktrees; to the folder alone where there is
    none. Asks git once for as long as the repository's settings stay as they are."""
    from raddle.adapters.git import settings_revision  # noqa: PLC0415

    key = (str(workspace), settings_revision(workspace))
    found = _known.get(key)
    if found is None:
        found = _looked_at(workspace)
        if len(_known) >= _MOST:
            _known.clear()
        _known[key] = found
    return found


def _looked_at(workspace: Path) -> Surroundings:
    from raddle.adapters.git import find_root, place_of_relative_remotes, read_remote  # noqa: PLC0415

    root = find_root(workspace)
    if root is None:
        return Surroundings(Reach(folders=_names(workspace)), str(workspace), is_repository=False)
    remote = read_remote(workspace) or ""
    # In the order in which they are found, for a linked worktree the repository's own folder last.
    folders = dict.fromkeys((*_names(root), *_names(place_of_relative_remotes(root))))
    reach = Reach(remote=remote, folders=tuple(folders), is_deep=True)
    return Surroundings(reach, remote or str(root), is_repository=True)


def _names(folder: Path) -> tuple[str, ...]:
    from raddle.adapters.path_names import PathNames  # noqa: PLC0415

    return tuple(name.rstrip("/") or name for name in PathNames()(str(folder)))
