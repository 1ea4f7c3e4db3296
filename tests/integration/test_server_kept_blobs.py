"""Blobs on a server that no thread names: kept because their giver said so, given back to them and to nobody else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import Connection

from raddle.adapters.blobs.directory import BlobDirectory
from raddle.adapters.remote.http_link import HttpLink
from raddle.adapters.remote.kept_blobs import KeptBlobs
from raddle.adapters.remote.refusals import Wanted
from raddle.model.errors import NotFound, NotSignedIn, TooLarge
from raddle.server.blobs.uploads import forget, unnamed
from tests.builders_served import Served, a_token, serving
from tests.builders_server import connected, prepare
from tests.memory_artifacts import LARGE
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

NAME = hashlib.sha256(LARGE).hexdigest()
SIZE = len(LARGE)


def pieces(data: bytes = LARGE) -> Iterator[bytes]:
    return (data[start : start + (1 << 20)] for start in range(0, len(data), 1 << 20))


@pytest.fixture
def connection(new_database: NewDatabase) -> Iterator[Connection]:
    with connected(new_database(prepare)) as opened:
        yield opened


@pytest.fixture
def served(connection: Connection, tmp_path: Path) -> Iterator[Served]:
    conninfo = connection.info.dsn
    with serving(conninfo, tmp_path / "blobs") as started:
        yield started


@pytest.fixture
def link(served: Served, connection: Connection) -> Iterator[HttpLink]:
    with served.link(a_token(connection)) as opened:
        yield opened


def drop_unnamed(connection: Connection, folder: Path) -> None:
    """What the server's job does a day after an upload."""
    for one in unnamed(connection, older_than_seconds=0):
        if forget(connection, one, older_than_seconds=0):
            BlobDirectory(folder).delete(one.sha256.hex())


def test_what_no_thread_names_goes_after_a_day_unless_it_is_kept(
    link: HttpLink, connection: Connection, tmp_path: Path
) -> None:
    blobs = KeptBlobs(link)
    blobs.put(NAME, SIZE, pieces())
    other = hashlib.sha256(b"other").hexdigest()
    link.send(f"/api/blobs/{other}", iter([b"other"]), 5, wanted=Wanted("blob", other))
    assert blobs.size(other) == 5
    drop_unnamed(connection, tmp_path / "blobs")
    assert (blobs.size(NAME), blobs.size(other)) == (SIZE, None)
    assert b"".join(blobs.pieces(NAME, 0, SIZE)) == LARGE


def test_what_is_kept_no_longer_goes_like_any_other(
    link: HttpLink, connection: Connection, tmp_path: Path
) -> None:
    blobs, wanted = KeptBlobs(link), Wanted("blob", NAME)
    with pytest.raises(NotFound):
        link.ask("DELETE", f"/api/blobs/{NAME}", accepted=(204,), wanted=wanted)
    blobs.put(NAME, SIZE, pieces())
    link.ask("DELETE", f"/api/blobs/{NAME}", accepted=(204,), wanted=wanted)
    assert blobs.size(NAME) == SIZE
    drop_unnamed(connection, tmp_path / "blobs")
    assert blobs.size(NAME) is None


def test_what_was_uploaded_for_a_thread_is_kept_once_somebody_says_so(
    link: HttpLink, connection: Connection, tmp_path: Path
) -> None:
    blobs, wanted = KeptBlobs(link), Wanted("blob", NAME)
    link.send(f"/api/blobs/{NAME}", pieces(), SIZE, wanted=wanted)
    blobs.put(NAME, SIZE, pieces())
    link.send(f"/api/blobs/{NAME}", pieces(), SIZE, wanted=wanted)
    drop_unnamed(connection, tmp_path / "blobs")
    assert blobs.size(NAME) == SIZE


def test_what_is_there_and_kept_is_not_sent_again(link: HttpLink) -> None:
    blobs = KeptBlobs(link)
    blobs.put(NAME, SIZE, pieces())

    def never() -> Iterator[bytes]:
        yield b""
        raise AssertionError("it was read")

    blobs.put(NAME, SIZE, never())


def test_nobody_but_their_giver_gets_kept_bytes(
    served: Served, link: HttpLink, connection: Connection
) -> None:
    KeptBlobs(link).put(NAME, SIZE, pieces())
    with served.link(a_token(connection, "bob")) as other, served.link("") as nobody:
        for stranger in (KeptBlobs(other), KeptBlobs(nobody)):
            assert stranger.size(NAME) is None
            with pytest.raises(NotFound):
                list(stranger.pieces(NAME, 0, SIZE))
        with pytest.raises(NotFound):
            other.ask("DELETE", f"/api/blobs/{NAME}", accepted=(204,), wanted=Wanted("blob", NAME))
        with pytest.raises(NotSignedIn):
            KeptBlobs(nobody).put(NAME, SIZE, pieces())
    assert KeptBlobs(link).size(NAME) == SIZE


def test_what_is_larger_than_a_server_takes_is_not_sent(link: HttpLink) -> None:
    with pytest.raises(TooLarge, match="4 GiB") as caught:
        KeptBlobs(link).put(NAME, (4 << 30) + 1, pieces())
    assert "--blobs" in caught.value.hint
