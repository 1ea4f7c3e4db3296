"""Every place that an artifact's bytes can go to keeps the same laws: folders, buckets, a server."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore

from raddle.actions.memory.blob_ports import StoreOfBlobs
from raddle.adapters.blobs.bucket import Bucket, open_bucket
from raddle.adapters.blobs.by_hash import BlobsByHash, blobs_in_folder
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


Spoil = Callable[[str, bytes], object]
"""SHA-256, bytes -> these lie under that name from now on, whatever they are."""


def _spoils_in(folder: Path) -> Spoil:
    return lambda name, data: (folder / name[:2] / name).write_bytes(data)


def _spoils_bucket(bucket: Bucket) -> Spoil:
    return lambda name, data: bucket.put(f"{name[:2]}/{name}", data, is_new=False)


class StoreLaws:
    """Inherit, and give the fixtures `store` and `spoil`."""

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

    def test_what_lies_there_damaged_is_whole_when_it_is_given_again(
        self, store: StoreOfBlobs, spoil: Spoil
    ) -> None:
        data = CONTENTS["large"]
        name = put(store, data)
        for damaged in (data[:-1] + b"?", data[:-1], b""):
            spoil(name, damaged)
            put(store, data)
            assert store.size(name) == len(data)
            assert b"".join(store.pieces(name, 0, len(data))) == data

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

    @pytest.fixture
    def spoil(self, tmp_path: Path) -> Spoil:
        return _spoils_in(tmp_path / "blobs")


class TestOwnDirectory(StoreLaws):
    @pytest.fixture
    def store(self, tmp_path: Path) -> StoreOfBlobs:
        return OwnDirectory(tmp_path / "blobs", tmp_path / "memory")

    @pytest.fixture
    def spoil(self, tmp_path: Path) -> Spoil:
        return _spoils_in(tmp_path / "blobs")


class BucketLaws(StoreLaws):
    """Inherit, and give the fixture `bucket`."""

    @pytest.fixture
    def store(self, bucket: Bucket) -> StoreOfBlobs:
        return BlobsByHash(ObjectBlobs(bucket))

    @pytest.fixture
    def spoil(self, bucket: Bucket) -> Spoil:
        return _spoils_bucket(bucket)


class TestBucketInMemory(BucketLaws):
    @pytest.fixture
    def bucket(self) -> Bucket:
        return Bucket(MemoryStore(), "the bucket")


class TestBucketOnDisk(BucketLaws):
    @pytest.fixture
    def bucket(self, tmp_path: Path) -> Bucket:
        return Bucket(LocalStore(tmp_path), "the bucket")


class TestServer(StoreLaws):
    @pytest.fixture
    def store(self, new_database: NewDatabase, tmp_path: Path) -> Iterator[StoreOfBlobs]:
        conninfo = new_database(prepare)
        with connected(conninfo) as connection:
            token = a_token(connection)
        with serving(conninfo, tmp_path / "blobs") as served, served.link(token) as link:
            yield KeptBlobs(link)

    @pytest.fixture
    def spoil(self, tmp_path: Path) -> Spoil:
        def spoil(name: str, data: bytes) -> None:
            (path,) = (tmp_path / "blobs").rglob(f"{name}*")
            path.unlink()
            (path.parent / name).write_bytes(data)

        return spoil


def _bucket(address: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_servers.KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_servers.SECRET)
    return open_bucket(f"s3://{s3_servers.BUCKET}/{prefix}")


@pytest.mark.soak
class TestMoto(BucketLaws):
    @pytest.fixture
    def bucket(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
        with s3_servers.moto() as address:
            yield _bucket(address, tmp_path.name, monkeypatch)


@pytest.mark.soak
class TestRclone(BucketLaws):
    @pytest.fixture
    def bucket(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
        with s3_servers.rclone(tmp_path / "served") as address:
            yield _bucket(address, "some/prefix", monkeypatch)
