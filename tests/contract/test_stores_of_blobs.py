"""Every place that an artifact's bytes can go to keeps the same laws: folders, buckets, a server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore

from raddle.actions.memory.artifacts import StoreOfBlobs
from raddle.adapters.blobs.bucket import Bucket
from raddle.adapters.blobs.by_hash import BlobsByHash, blobs_in_bucket, blobs_in_folder
from raddle.adapters.blobs.object_store import ObjectBlobs
from raddle.adapters.blobs.own_directory import OwnDirectory
from raddle.adapters.remote.kept_blobs import KeptBlobs
from raddle.model.errors import ConflictError, InvalidInput, NotFound, StorageError
from tests import s3_servers
from tests.builders_served import a_token, serving
from tests.builders_server import connected, prepare
from tests.memory_artifacts import HUGE
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

CONTENTS = {"empty": b"", "one": b"x", "large": HUGE[: (11 << 20) + 5]}
ABSENT = hashlib.sha256(b"nobody gave this").hexdigest()


def name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def cut(data: bytes) -> Iterator[bytes]:
    return (data[start : start + (1 << 20)] for start in range(0, len(data), 1 << 20))


def put(store: StoreOfBlobs, data: bytes) -> str:
    store.put(name_of(data), len(data), cut(data))
    return name_of(data)


class StoreLaws:
    """Inherit, and give the fixture `store`."""

    def test_what_was_put_is_there_whole_and_in_parts(self, store: StoreOfBlobs) -> None:
        for data in CONTENTS.values():
            name = put(store, data)
            assert put(store, data) == name
            assert store.size(name) == len(data)
            for start, end in ((0, len(data)), (0, 1), (len(data) // 2, len(data)), (3, 3)):
                assert b"".join(store.pieces(name, start, end)) == data[start:end]

    def test_what_was_never_put_is_not_there(self, store: StoreOfBlobs) -> None:
        assert store.size(ABSENT) is None
        for part in ((0, 5), (0, 0)):
            with pytest.raises(NotFound):
                list(store.pieces(ABSENT, *part))

    def test_other_bytes_than_the_hash_says_are_not_kept(self, store: StoreOfBlobs) -> None:
        data = CONTENTS["large"]
        for other in (data[:-1], data + b"x", b""):
            with pytest.raises(ConflictError):
                store.put(name_of(data), len(data), cut(other))
            assert store.size(name_of(data)) is None
            assert store.size(name_of(other)) is None

    def test_a_source_that_fails_leaves_nothing(self, store: StoreOfBlobs) -> None:
        def failing() -> Iterator[bytes]:
            yield HUGE[: 6 << 20]
            raise StorageError("the disk went away")

        with pytest.raises(StorageError, match="went away"):
            store.put(name_of(HUGE), len(HUGE), failing())
        assert store.size(name_of(HUGE)) is None

    def test_what_is_no_hash_is_refused(self, store: StoreOfBlobs) -> None:
        for name in ("", "x" * 64, "../../etc/passwd", ABSENT.upper(), ABSENT + "\n"):
            with pytest.raises(InvalidInput):
                store.size(name)
            with pytest.raises((InvalidInput, ConflictError)):
                store.put(name, 1, iter([b"x"]))
            with pytest.raises(InvalidInput):
                list(store.pieces(name, 0, 1))


class TestFolder(StoreLaws):
    @pytest.fixture
    def store(self, tmp_path: Path) -> StoreOfBlobs:
        return blobs_in_folder(tmp_path / "blobs")


class TestOwnDirectory(StoreLaws):
    @pytest.fixture
    def store(self, tmp_path: Path) -> StoreOfBlobs:
        return OwnDirectory(tmp_path / "blobs", tmp_path / "memory")


class TestBucketInMemory(StoreLaws):
    @pytest.fixture
    def store(self) -> StoreOfBlobs:
        return BlobsByHash(ObjectBlobs(Bucket(MemoryStore(), "the bucket")), is_near=False)


class TestBucketOnDisk(StoreLaws):
    @pytest.fixture
    def store(self, tmp_path: Path) -> StoreOfBlobs:
        return BlobsByHash(ObjectBlobs(Bucket(LocalStore(tmp_path), "the bucket")), is_near=False)


class TestServer(StoreLaws):
    @pytest.fixture
    def store(self, new_database: NewDatabase, tmp_path: Path) -> Iterator[StoreOfBlobs]:
        conninfo = new_database(prepare)
        with connected(conninfo) as connection:
            token = a_token(connection)
        with serving(conninfo, tmp_path / "blobs") as served, served.link(token) as link:
            yield KeptBlobs(link)


def _bucket(address: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> StoreOfBlobs:
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_servers.KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_servers.SECRET)
    return blobs_in_bucket(f"s3://{s3_servers.BUCKET}/{prefix}")


@pytest.mark.soak
class TestMoto(StoreLaws):
    @pytest.fixture
    def store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreOfBlobs]:
        with s3_servers.moto() as address:
            yield _bucket(address, tmp_path.name, monkeypatch)


@pytest.mark.soak
class TestRclone(StoreLaws):
    @pytest.fixture
    def store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreOfBlobs]:
        with s3_servers.rclone(tmp_path / "served") as address:
            yield _bucket(address, "some/prefix", monkeypatch)
