"""A folder, buckets in memory and on the disk, and (soak) two servers that speak S3 keep the laws of blobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore, ObjectStore, S3Store

from raddle.adapters.blobs.bucket import Bucket
from raddle.adapters.blobs.directory import BlobDirectory
from raddle.adapters.blobs.object_store import ObjectBlobs, open_object_store
from raddle.model.errors import StorageError
from tests import s3_servers
from tests.contract.blob_store_laws import LARGE, TEXT, BlobStoreLaws, Shelf, put, written
from tests.s3_servers import BUCKET, KEY_ID, SECRET


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.blobs = BlobDirectory(folder)

    def damage(self, sha256: str, data: bytes) -> None:
        self.blobs.paths_of(sha256)[0].write_bytes(data)

    def strays(self) -> list[str]:
        files = (path.name for path in self._folder.rglob("*") if path.is_file())
        return [name for name in files if name.removesuffix(".zst") not in set(self.blobs.ids())]


class _Bucket:
    def __init__(self, store: ObjectStore, blobs: ObjectBlobs | None = None) -> None:
        self.store = store
        self.blobs = blobs or ObjectBlobs(Bucket(store, "the bucket"))

    def damage(self, sha256: str, data: bytes) -> None:
        self.store.put(f"{sha256[:2]}/{sha256}", data)

    def strays(self) -> list[str]:
        keys = [entry["path"] for page in self.store.list() for entry in page]
        return [key for key in keys if key[3:] not in set(self.blobs.ids())]

    def made(self) -> list[tuple[str, object]]:
        """Each object, and what changes when it is written again."""
        return [(entry["path"], entry["last_modified"]) for page in self.store.list() for entry in page]


class TestBlobDirectory(BlobStoreLaws):
    @pytest.fixture
    def shelf(self, tmp_path: Path) -> Shelf:
        return _Folder(tmp_path / "blobs")


class ConditionalLaws(BlobStoreLaws):
    """Of buckets whose store can make writing depend on what is there."""

    @pytest.mark.parametrize("content", [TEXT, LARGE], ids=["text", "large"])
    def test_a_whole_blob_is_never_written_again(self, shelf: _Bucket, content: bytes) -> None:
        put(shelf.blobs, content)
        before = shelf.made()
        put(shelf.blobs, content)
        assert shelf.made() == before

    def test_what_must_be_new_takes_nobodys_place(self, shelf: _Bucket) -> None:
        bucket = Bucket(shelf.store, "the bucket")
        bucket.put("first", b"1", is_new=True)
        bucket.put("second", b"2", is_new=True)
        with pytest.raises(StorageError):
            bucket.put("first", b"3", is_new=True)
        with pytest.raises(StorageError):
            bucket.copy("second", "first", is_new=True)
        assert b"".join(bucket.pieces("first") or ()) == b"1"


class TestBucketInMemory(ConditionalLaws):
    @pytest.fixture
    def shelf(self) -> Shelf:
        return _Bucket(MemoryStore())


class TestBucketOnDisk(ConditionalLaws):
    @pytest.fixture
    def shelf(self, tmp_path: Path) -> Shelf:
        return _Bucket(LocalStore(tmp_path))


def _over_the_wire(address: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> _Bucket:
    """As a server opens it, and behind it: by the variables that people set."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    url = f"s3://{BUCKET}/{prefix}"
    return _Bucket(S3Store.from_url(url, client_options={"allow_http": True}), open_object_store(url))


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with s3_servers.moto() as address:
        yield address


@pytest.fixture(scope="module")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_servers.rclone(tmp_path_factory.mktemp("rclone")) as address:
        yield address


@pytest.mark.soak
class TestMoto(ConditionalLaws):
    @pytest.fixture
    def shelf(self, moto: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
        return _over_the_wire(moto, tmp_path.name, monkeypatch)

    def test_the_bucket_is_checked_without_a_trace(self, shelf: _Bucket) -> None:
        shelf.blobs.check()
        assert shelf.strays() == []


@pytest.mark.soak
class TestRclone(BlobStoreLaws):
    @pytest.fixture
    def shelf(self, rclone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
        return _over_the_wire(rclone, tmp_path.name, monkeypatch)

    def test_a_large_blob_is_never_in_memory_as_a_whole(self, shelf: _Bucket) -> None:
        import resource

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        writer = shelf.blobs.writer()
        for _ in range(20):
            writer.write(LARGE)
        sha256 = writer.finish()
        assert sum(len(piece) for piece in shelf.blobs.chunks(sha256)) == 20 * len(LARGE)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 120 << 10, f"{grown} KiB"
        assert written(shelf.blobs, LARGE).sha256() != sha256
