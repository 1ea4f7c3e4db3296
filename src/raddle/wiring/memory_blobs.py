"""Where the large artifacts of a project's memory are: a name in `project.yaml`, and what it comes to on this machine.

`project.yaml` is written by whoever can push. So the one place that makes a name into a folder, a bucket or a server
also asks whether this machine's person agreed that bytes go there. A second one would send them to a stranger.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from raddle.adapters.blobs.object_urls import parse_object_url
from raddle.adapters.files import find_bytes, make_folder, write_atomic
from raddle.adapters.remote.addresses import parse_server
from raddle.model.errors import InvalidInput, NotFound, NotSignedIn, UserError
from raddle.wiring.memory import ProjectMemory, read_project

if TYPE_CHECKING:
    from raddle.actions.memory.blob_ports import StoreOfBlobs
    from raddle.adapters.blobs.own_directory import OwnDirectory
    from raddle.model.memory.project import Project
    from raddle.wiring import Stores

LOCAL = "local"
"""The store of blobs that every machine has: a folder of its own, which `project.yaml` need not name."""

_LONGEST_URL = 1000
_BUCKETS = ("s3", "gs", "az")
_PASSWORD = re.compile(r"//[^/?#]*@")
_REACHED = "name a folder (/…, ~/…, file://), s3://, gs://, az:// or a raddle server (raddle://, https://)"


class BlobPlace(NamedTuple):
    """What a URL comes to. `where`: a whole path, a bucket's URL, or a server's address in its one spelling."""

    kind: Literal["folder", "bucket", "server"]
    where: str


class MemoryBlobs:
    """The `StoresOfBlobs` of one memory. `name`: the one that is meant for new bytes; empty: the project's first one.

    `agrees`: the person says that bytes may go there. `ask`: puts the question to them; None where nobody is there.
    Use as a context manager: connections to servers are closed with it.
    """

    def __init__(
        self,
        memory: ProjectMemory,
        *,
        name: str = "",
        agrees: bool = False,
        ask: Callable[[str], bool] | None = None,
    ) -> None:
        self._memory = memory
        self._name = name
        self._agrees = agrees
        self._ask = ask
        self._opened = contextlib.ExitStack()
        self._agreed_file = memory.own_folder / "agreed-blobs"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def chosen(self) -> str:
        """The name of the one that new bytes go to."""
        return self._name or next(iter(self._project.blobs), LOCAL)

    def own(self) -> StoreOfBlobs:
        """This machine's own folder."""
        return self._own

    def for_writing(self, name: str) -> StoreOfBlobs:
        """UserError where nobody has agreed that bytes of this memory go there, or the memory stays on this machine."""
        url = self._project.blobs.get(name)
        if url is None:
            if name != LOCAL:
                raise self._unknown(name)
            return self._own
        place = parse_blob_url(url)
        self._refuse_what_stays(place, name)
        self._refuse_own_folder(place)
        folder = Path(place.where) if place.kind == "folder" else None
        if folder is not None and not folder.parent.is_dir():
            raise self._not_mounted(place)
        is_first = self._expect_agreement(name, place)
        if folder is not None and not is_first and not folder.is_dir():
            raise self._not_mounted(place)  # it was there when it was agreed to
        return self._open(place)

    @staticmethod
    def _not_mounted(place: BlobPlace) -> NotFound:
        """A share that is not mounted looks so: what is put there would be on this disk, and nobody else's."""
        return NotFound("folder", place.where, f"mount it, or make it: mkdir -p {place.where}")

    def for_reading(self, name: str) -> StoreOfBlobs:
        """This machine's own folder, then the one of that name: bytes that have the hash are the bytes."""
        url = self._project.blobs.get(name)
        if url is None:
            return _First((lambda: self._own,), self._unknown(name) if name != LOCAL else None)
        return _First((lambda: self._own, lambda: self._open(parse_blob_url(url))))

    def is_here(self, name: str, sha256: str, *, asks: bool = False) -> bool | None:
        """Can the bytes be had on this machine without a network? None: only the network knows, unless it `asks`."""
        if self._own.size(sha256) is not None:
            return True
        url = self._project.blobs.get(name)
        if url is None:
            return False
        try:
            place = parse_blob_url(url)
        except InvalidInput:  # out of this raddle's reach: it may well be there
            return None
        if place.kind != "folder" and not asks:
            return None
        return self._open(place).size(sha256) is not None

    @functools.cached_property
    def _project(self) -> Project:
        return read_project(self._memory.root)

    @functools.cached_property
    def _own(self) -> OwnDirectory:
        from raddle.adapters.blobs.own_directory import OwnDirectory  # noqa: PLC0415

        return OwnDirectory(self._memory.stores.paths.memory_blobs_dir, self._memory.root)

    def _unknown(self, name: str) -> NotFound:
        known = ", ".join([*self._project.blobs, LOCAL])
        return NotFound("store of blobs", name, f"project.yaml names them under `blobs:`; there are {known}")

    def _refuse_what_stays(self, place: BlobPlace, name: str) -> None:
        if self._project.publish is False and place.kind != "folder":
            raise UserError(
                f"the store of blobs {name!r} is not on this machine, and this memory stays here (publish: false)",
                f"keep the bytes here: --blobs {LOCAL}; or change project.yaml",
            )

    def _refuse_own_folder(self, place: BlobPlace) -> None:
        if place.kind == "folder" and is_inside(Path(place.where), self._memory.root):
            raise InvalidInput(
                f"{place.where} lies in the memory itself: what is put there would be committed and pushed",
                "name a folder outside of it in project.yaml",
            )

    def _expect_agreement(self, name: str, place: BlobPlace) -> bool:
        """Once for each URL, kept beside the store on this machine; was this the first time?"""
        agreed = [line for line in (find_bytes(self._agreed_file) or b"").split(b"\n") if line]
        line = os.fsencode(place.where)
        if line in agreed:
            return False
        question = f"project.yaml says that large artifacts go to {place.where} ({name}). Send them there?"
        if not self._agrees and (self._ask is None or not self._ask(question)):
            raise UserError(
                f"nobody on this machine has agreed that artifacts go to {place.where} ({name}), as project.yaml says",
                f"say --trust-blobs once, or keep them here: --blobs {LOCAL}",
            )
        make_folder(self._agreed_file.parent)
        write_atomic(self._agreed_file, b"\n".join([*agreed, line]) + b"\n")
        return True

    def _open(self, place: BlobPlace) -> StoreOfBlobs:
        from raddle.adapters.blobs.by_hash import blobs_in_bucket, blobs_in_folder  # noqa: PLC0415

        if place.kind == "folder":
            return blobs_in_folder(Path(place.where))
        if self._memory.stores.config.is_offline:
            raise UserError(
                "RADDLE_OFFLINE says that the network is not to be asked", "unset it, then try again"
            )
        if place.kind == "bucket":
            return blobs_in_bucket(place.where)
        return self._opened.enter_context(_server_blobs(self._memory.stores, place.where))


class _First:
    """A `StoreOfBlobs` to read from: the first of several that has the bytes, each opened when it is its turn."""

    def __init__(
        self, stores: Iterable[Callable[[], StoreOfBlobs]], otherwise: NotFound | None = None
    ) -> None:
        self._stores = tuple(stores)
        self._otherwise = otherwise

    def size(self, sha256: str) -> int | None:
        """How many bytes it is, where anybody has it."""
        sizes = (open_store().size(sha256) for open_store in self._stores)
        return next((size for size in sizes if size is not None), None)

    def put(self, sha256: str, size: int, pieces: Iterable[bytes]) -> None:
        """Never asked of it."""
        raise AssertionError("opened for reading")

    def pieces(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        """Bytes `start` up to `end`, unchecked. NotFound where nobody has them."""
        for open_store in self._stores:
            store = open_store()
            if store.size(sha256) is not None:
                return store.pieces(sha256, start, end)
        raise self._otherwise or NotFound(
            "blob",
            sha256[:16],
            "it is neither on this machine nor where project.yaml says; another machine may have it",
        )


def parse_blob_url(url: str) -> BlobPlace:
    """What a URL of `project.yaml` comes to. InvalidInput for what is out of reach, and for one with a password."""
    if not url or len(url) > _LONGEST_URL or not url.isprintable():
        raise InvalidInput("a store of blobs in project.yaml has no URL that could be read", _REACHED)
    if _PASSWORD.search(url) is not None:
        raise InvalidInput(
            "a store of blobs in project.yaml holds a name or a password, and everybody who has the memory can read it",
            "take it out, and change it; credentials go into variables such as AWS_ACCESS_KEY_ID, or `raddle login`",
        )
    scheme, found, rest = url.partition("://")
    if not found:
        return BlobPlace("folder", _whole_path(url, url))
    if scheme == "file":
        return BlobPlace("folder", _path_of(url))
    if scheme in _BUCKETS:
        return BlobPlace("bucket", parse_object_url(url, "a store of blobs in project.yaml"))
    if scheme in ("raddle", "http", "https"):
        return BlobPlace("server", parse_server(rest if scheme == "raddle" else url))
    raise InvalidInput(
        f"a store of blobs in project.yaml is at {url[:80]!r}, where raddle does not reach", _REACHED
    )


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise InvalidInput(f"{url[:80]!r} is no folder of this machine", "write file:///the/folder")
    return _whole_path(unquote(parts.path), url)


def _whole_path(text: str, url: str) -> str:
    """The folder, with no `..` in it; whose home `~` is, depends on who asks."""
    path = Path(text).expanduser() if text.startswith("~/") else Path(text)
    if not path.is_absolute() or ".." in path.parts or "\0" in text or len(path.parts) < 2:
        raise InvalidInput(
            f"a store of blobs in project.yaml is at {url[:80]!r}, which is no whole path", _REACHED
        )
    return str(path)


def is_inside(path: Path, root: Path) -> bool:
    """Does the path lead into the folder, through whatever links?"""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


@contextlib.contextmanager
def _server_blobs(stores: Stores, server: str) -> Iterator[StoreOfBlobs]:
    """The server at that address, asked by the token that this device has for it and for no other."""
    from raddle.adapters.credentials import Credentials  # noqa: PLC0415
    from raddle.adapters.remote.http_link import HttpLink  # noqa: PLC0415  heavy: httpx
    from raddle.adapters.remote.kept_blobs import KeptBlobs  # noqa: PLC0415
    from raddle.wiring.remote import server_of  # noqa: PLC0415

    kept = Credentials(stores.paths.credentials_file, stores.paths.credentials_locks_dir)
    if stores.config.token is not None and server_of(stores, is_needed=False) == server:
        token, is_insecure = stores.config.token.reveal(), kept.is_insecure(server)
    else:
        login = kept.login(server)
        if login is None:
            raise NotSignedIn(
                f"this device is not signed in to {server}", f"`raddle login --server {server}` signs in"
            )
        token, is_insecure = login.token, login.is_insecure
    with HttpLink(server, token, is_insecure=is_insecure) as link:
        yield KeptBlobs(link)
