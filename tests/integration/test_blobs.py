"""Blobs on the local disk are what their names say, or an error says they are not."""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.ports import BlobStore
from raddle.adapters.blobs.directory import BlobDirectory
from raddle.model.errors import BrokenFormat, InvalidInput, NotFound, StorageError
from tests.builders_store import grow_old
from tests.file_events import start_child

TEXT = b"the same words over and over. " * 1_000


def name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def blobs(tmp_path: Path) -> BlobDirectory:
    return BlobDirectory(tmp_path / "blobs")


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(
    "content", [b"", b"x", TEXT, os.urandom(3_000_000)], ids=["empty", "one", "text", "random"]
)
def test_what_was_put_is_read(tmp_path: Path, content: bytes, *, compress: bool) -> None:
    store: BlobStore = BlobDirectory(tmp_path / "blobs")
    sha256 = store.put(content, compress=compress)
    assert sha256 == name_of(content)
    assert store.read(sha256) == content
    assert b"".join(store.chunks(sha256)) == content
    assert store.size(sha256) == len(content)
    assert list(store.ids()) == [sha256]


@given(st.lists(st.binary(max_size=200)), st.booleans())
def test_a_blob_in_pieces_is_the_blob_in_one(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], compress: bool
) -> None:
    blobs = BlobDirectory(tmp_path_factory.mktemp("blobs"), syncs=False)
    sha256 = blobs.put(iter(pieces), compress=compress)
    assert sha256 == name_of(b"".join(pieces))
    assert blobs.read(sha256) == b"".join(pieces)


def test_a_blob_lies_private_under_the_hash_of_what_it_is(blobs: BlobDirectory, tmp_path: Path) -> None:
    plain, packed = blobs.put(b"x"), blobs.put(TEXT, compress=True)
    assert files_in(tmp_path / "blobs") == sorted([f"{plain[:2]}/{plain}", f"{packed[:2]}/{packed}.zst"])
    file = tmp_path / "blobs" / plain[:2] / plain
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    stored = blobs.stored_size(packed)
    assert stored is not None
    assert stored < len(TEXT) // 50


def test_one_content_is_kept_once_in_whichever_form_came_first(blobs: BlobDirectory, tmp_path: Path) -> None:
    for compress in (True, False, True):
        blobs.put(TEXT, compress=compress)
    assert files_in(tmp_path / "blobs") == [f"{name_of(TEXT)[:2]}/{name_of(TEXT)}.zst"]


@pytest.mark.parametrize(
    ("damage", "compress"),
    [
        (damage, compress)
        for damage in ("flipped", "torn", "empty", "longer")
        for compress in (False, True)
        if not (damage == "longer" and compress)  # what stands behind a frame is none of its content
    ],
)
def test_damage_is_told_and_the_next_put_mends_it(
    blobs: BlobDirectory, tmp_path: Path, damage: str, *, compress: bool
) -> None:
    sha256 = blobs.put(TEXT, compress=compress)
    file = tmp_path / "blobs" / files_in(tmp_path / "blobs")[0]
    data = file.read_bytes()
    changed = {
        "flipped": data[:20] + bytes([data[20] ^ 1]) + data[21:],
        "torn": data[: len(data) // 2],
        "empty": b"",
        "longer": data + b"x",
    }
    file.write_bytes(changed[damage])
    assert not blobs.is_whole(sha256)
    with pytest.raises(BrokenFormat, match=sha256):
        blobs.read(sha256)
    assert blobs.put(TEXT, compress=not compress) == sha256
    assert blobs.read(sha256) == TEXT
    assert len(files_in(tmp_path / "blobs")) == 1


def test_a_reader_of_pieces_never_gets_to_the_end_of_a_damaged_blob(
    blobs: BlobDirectory, tmp_path: Path
) -> None:
    content = os.urandom(5 << 20)
    sha256 = blobs.put(content)
    file = tmp_path / "blobs" / files_in(tmp_path / "blobs")[0]
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    got: list[bytes] = []
    with pytest.raises(BrokenFormat):
        got.extend(blobs.chunks(sha256))
    assert sum(map(len, got)) < len(content)


def test_what_is_not_here_is_not_found(blobs: BlobDirectory) -> None:
    sha256 = name_of(b"never put")
    with pytest.raises(NotFound):
        blobs.read(sha256)
    assert (blobs.size(sha256), blobs.stored_size(sha256)) == (None, None)
    assert not blobs.is_whole(sha256)
    assert not blobs.delete(sha256)
    assert list(blobs.ids()) == []


@pytest.mark.parametrize(
    "name", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 65, "a" * 64 + "\n", "é" * 64]
)
def test_what_is_no_hash_reaches_no_file(blobs: BlobDirectory, name: str) -> None:
    for ask in (blobs.read, blobs.size, blobs.stored_size, blobs.delete, blobs.is_whole):
        with pytest.raises(InvalidInput):
            ask(name)


def test_a_removed_blob_is_gone_and_can_come_again(blobs: BlobDirectory, tmp_path: Path) -> None:
    kept, gone = blobs.put(b"kept"), blobs.put(TEXT, compress=True)
    assert blobs.delete(gone)
    assert list(blobs.ids()) == [kept]
    assert blobs.put(TEXT) == gone
    assert sorted(blobs.ids()) == sorted([kept, gone])
    assert len(files_in(tmp_path / "blobs")) == 2


def test_the_last_blob_of_a_folder_takes_the_folder_with_it(blobs: BlobDirectory, tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    names = {content: name_of(content) for content in (str(number).encode() for number in range(2_000))}
    same = [content for content, name in names.items() if name.startswith("00")]
    one, other = (blobs.put(content) for content in same[:2])
    assert blobs.delete(one)
    assert blobs.read(other) == same[1]
    assert blobs.delete(other)
    assert list(folder.iterdir()) == []
    assert not blobs.delete(other)


def test_a_folder_that_is_removed_while_a_blob_is_made_is_made_again(tmp_path: Path) -> None:
    blobs = BlobDirectory(tmp_path / "blobs", syncs=False)
    folder = tmp_path / "blobs" / name_of(b"x")[:2]
    is_over = threading.Event()

    def remove() -> None:
        while not is_over.wait(0.0005):
            with contextlib.suppress(OSError):
                folder.rmdir()

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for _ in range(300):
            assert blobs.read(blobs.put(b"x")) == b"x"
            assert blobs.delete(name_of(b"x"))
    finally:
        is_over.set()
        remover.join()


def test_a_blob_that_was_dropped_leaves_nothing(blobs: BlobDirectory, tmp_path: Path) -> None:
    writer = blobs.writer()
    writer.write(b"x" * (3 << 20))
    writer.discard()
    writer.discard()

    def broken() -> Iterator[bytes]:
        yield b"x" * (3 << 20)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        blobs.put(broken())
    assert files_in(tmp_path / "blobs") == []


def test_a_finished_blob_stays_when_its_writer_is_dropped(blobs: BlobDirectory) -> None:
    writer = blobs.writer()
    writer.write(b"kept")
    sha256 = writer.finish()
    writer.discard()
    assert blobs.read(sha256) == b"kept"


def test_what_killed_writers_left_is_swept_when_it_is_old(blobs: BlobDirectory, tmp_path: Path) -> None:
    def die() -> None:
        writers = [blobs.writer(), blobs.writer()]
        os._exit(len(writers))

    start_child(die).join()
    left = sorted((tmp_path / "blobs").glob(".raddle-*.tmp"))
    assert len(left) == 2
    grow_old(left[0])
    assert blobs.sweep() == 1
    assert list(blobs.ids()) == []


def test_other_files_in_the_folder_are_no_blobs(blobs: BlobDirectory, tmp_path: Path) -> None:
    sha256 = blobs.put(b"x")
    (tmp_path / "blobs" / "README").write_bytes(b"")
    (tmp_path / "blobs" / sha256[:2] / "notes.txt").write_bytes(b"")
    (tmp_path / "blobs" / "zz").mkdir()
    assert list(blobs.ids()) == [sha256]


def _put_many(folder: Path) -> None:
    blobs = BlobDirectory(folder)
    for number in range(30):
        blobs.put(b"%d" % (number % 10) * 100, compress=bool(number % 2))


def test_processes_that_put_the_same_at_once_agree(tmp_path: Path) -> None:
    writers = [start_child(_put_many, tmp_path) for _ in range(3)]
    for writer in writers:
        writer.join()
    blobs = BlobDirectory(tmp_path)
    assert sorted(blobs.ids()) == sorted(name_of(b"%d" % number * 100) for number in range(10))
    assert all(blobs.is_whole(sha256) for sha256 in blobs.ids())


@pytest.mark.parametrize("compress", [False, True])
def test_a_full_disk_leaves_no_half_blob(blobs: BlobDirectory, tmp_path: Path, *, compress: bool) -> None:
    blobs.put(b"x")
    before = files_in(tmp_path / "blobs")

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))
        try:
            blobs.put(os.urandom(4 << 20), compress=compress)
        except StorageError as error:
            os._exit(0 if str(tmp_path / "blobs") in error.message else 1)
        os._exit(1)

    process = start_child(child)
    process.join()
    assert process.exitcode == 0
    assert files_in(tmp_path / "blobs") == before


def test_many_small_blobs_can_share_one_wait_for_the_disk(tmp_path: Path) -> None:
    blobs = BlobDirectory(tmp_path, syncs=False)
    names = [blobs.put(b"%d" % number) for number in range(20)]
    blobs.sync()
    assert sorted(BlobDirectory(tmp_path).ids()) == sorted(names)
