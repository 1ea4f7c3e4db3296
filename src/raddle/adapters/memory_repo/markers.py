"""The marker in a code repository, on the disk: read with distrust, written with the comments that are in it.

The one place that follows a marker's path to a folder. A second one would forget that whoever can push a marker can
also push a link, and a store would be read from, or written to, wherever that leads.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from msgspec import Struct

from raddle.adapters.files import storage_error
from raddle.adapters.memory_repo.host_repository import write_readable
from raddle.model.errors import BrokenFormat, InvalidInput, NotFound
from raddle.model.memory.marker import Marker, StorePlace, decode_marker, encode_marker, path_below_host
from raddle.model.memory.names import shown
from raddle.model.memory.repo_layout import MARKER_FILE, PEER_MARKER_FILE

_MOST_BYTES = 64 * 1024
_EARLIER = (
    "`git log -p` in the code shows earlier versions of it; `raddle store init` and `adopt` write one anew"
)
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class FoundMarker(Struct, frozen=True, kw_only=True):
    """A marker that was read. `folder`: the real path of the folder that it lies in. `owner`: the file's user id."""

    folder: Path
    file: Path
    marker: Marker
    data: bytes
    owner: int

    @property
    def store(self) -> StorePlace:
        """What it says."""
        return self.marker.store

    @property
    def is_peers(self) -> bool:
        """Is it another program's, which we only read?"""
        return self.file.name == PEER_MARKER_FILE


def read_marker(folder: Path) -> FoundMarker | None:
    """The marker in `folder`, ours before the peer's; None where there is none.

    A FormatError where it cannot be read, InvalidInput where it is a link, or asks for what is never done.
    """
    for name in (MARKER_FILE, PEER_MARKER_FILE):
        file = folder / name
        if not os.path.lexists(file):
            continue
        data, owner = _bytes_of(file)
        try:
            marker = decode_marker(data, str(file))
        except InvalidInput as error:
            raise InvalidInput(f"{file}: {error.message}", error.hint) from error
        except BrokenFormat as error:
            raise BrokenFormat(error.message, error.hint or _EARLIER) from error
        return FoundMarker(
            folder=Path(os.path.realpath(folder)), file=file, marker=marker, data=data, owner=owner
        )
    return None


def marker_above(start: Path) -> FoundMarker | None:
    """The nearest marker at or above `start`; None where there is none."""
    for folder in (start, *start.parents):
        found = read_marker(folder)
        if found is not None:
            return found
    return None


def needed_marker(folder: Path) -> FoundMarker:
    """The nearest marker at or above `folder`; NotFound where there is none."""
    found = marker_above(folder)
    if found is None:
        raise NotFound(
            f"{MARKER_FILE} at or above",
            str(folder),
            "`raddle store init PROJECT --worktree-repo .` makes one; for a store that is there: `raddle store adopt "
            "PATH --host-repo .`",
        )
    return found


def place_below(found: FoundMarker) -> Path | None:
    """The folder that a marker's path leads to, below the marker's own; None where it leads elsewhere.

    InvalidInput where a link is in the way: a committed file does not choose a place by one.
    """
    inner = path_below_host(found.store.path)
    if inner is None:
        return None
    place = found.folder / inner
    if os.path.realpath(place) != str(place):
        raise InvalidInput(
            f"{found.file}: {shown(found.store.path)} is a link, or leads through one",
            "remove the link, or say with --store where the store is",
        )
    return place


def place_outside(found: FoundMarker) -> Path:
    """The same for a path that leads anywhere: to be compared with what a person said, never taken for itself."""
    return Path(os.path.realpath(found.folder / os.path.expanduser(found.store.path)))  # noqa: PTH111  no Path yet


def leads_outside(found: FoundMarker) -> InvalidInput:
    """What to say of a marker whose store is not below its folder, where no person said that it is there."""
    return InvalidInput(
        f"{found.file} names a store outside of {found.folder}: {shown(found.store.path)}",
        f"if you trust it: raddle store attach --store {place_outside(found)}"
        + (" --allow-clone" if found.store.mode == "repo" and found.store.url else ""),
    )


def path_from(folder: Path, root: Path) -> str:
    """The path of the store at `root`, as a marker in `folder` says it: `./…` below it, `../…` beside it."""
    path = os.path.relpath(root, folder)
    return path if path.startswith("..") else f"./{path}"


def write_marker(folder: Path, place: StorePlace) -> Path:
    """Put `place` into the marker of `folder`, which is made where there is none; the file.

    What else is in it stays, comments too. A peer's marker is left alone, and ours written beside it.
    """
    found = read_marker(folder)
    marker = Marker(store=place)
    if found is not None:
        kept = {"unknown": {**found.store.unknown, **place.unknown}}
        both = StorePlace(mode=place.mode, path=place.path, branch=place.branch, url=place.url, **kept)
        marker = Marker(schema_version=found.marker.schema_version, store=both, unknown=found.marker.unknown)
    data = encode_marker(marker, found.data if found is not None else None)
    file = folder / MARKER_FILE
    if found is None or found.file != file or data != found.data:
        write_readable(file, data)
    return file


def _bytes_of(file: Path) -> tuple[bytes, int]:
    if file.is_symlink():
        raise InvalidInput(
            f"{file} is a link", "a marker is a file of its own; check where the repository came from"
        )
    try:
        fd = os.open(file, _READ)
        try:
            status = os.fstat(fd)
            is_file = stat.S_ISREG(status.st_mode)
            data = os.read(fd, _MOST_BYTES + 1) if is_file else b""
        finally:
            os.close(fd)
    except OSError as error:
        raise storage_error(error, file, "read") from error
    if not is_file or len(data) > _MOST_BYTES:
        raise BrokenFormat(
            f"{file} is no marker: it is no file, or larger than {_MOST_BYTES // 1024} KiB", _EARLIER
        )
    return data, status.st_uid
