"""The laws of every place that a server keeps blobs in (`server.blobs.keeping.ServerBlobs`).

A place's test makes a subclass of `BlobStoreLaws` and gives the fixture `shelf`. What only one place can show is in
its own tests.
"""

from __future__ import annotations

import hashlib
import random
import threading
from typing import Protocol

import pytest

from raddle.model.errors import BrokenFormat, InvalidInput, NotFound
from raddle.server.blobs.keeping import NewBlob, ServerBlobs

MEBIBYTE = 1 << 20
TEXT = b"the same words over and over. " * 1_000
LARGE = random.Random(7).randbytes(11 * MEBIBYTE + 5)  # noqa: S311  # more than two parts of an upload
CONTENTS = {"empty": b"", "one": b"x", "text": TEXT, "large": LARGE}
ABSENT = hashlib.sha256(b"nobody gave this").hexdigest()


class Shelf(Protocol):
    """A place for blobs, and a way behind it."""

    @property
    def blobs(self) -> ServerBlobs:
        """The blobs themselves."""

    def damage(self, sha256: str, data: bytes) -> None:
        """Let other bytes lie there, as a broken disk would."""

    def strays(self) -> list[str]:
        """What is kept there and is no blob."""


def name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def written(blobs: ServerBlobs, content: bytes, *, compress: bool = False) -> NewBlob:
    """A blob with all its bytes in, in pieces as a request brings them."""
    writer = blobs.writer(compress=compress)
    for start in range(0, len(content), MEBIBYTE):
        writer.write(content[start : start + MEBIBYTE])
    return writer


def put(blobs: ServerBlobs, content: bytes, *, compress: bool = False) -> str:
    sha256 = written(blobs, content, compress=compress).finish()
    assert sha256 == name_of(content)
    return sha256


def read(blobs: ServerBlobs, sha256: str) -> bytes:
    return b"".join(blobs.chunks(sha256))


class BlobStoreLaws:
    """Inherit, and give the fixture `shelf`."""

    @pytest.mark.parametrize("compress", [False, True])
    @pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
    def test_what_was_given_is_read(self, shelf: Shelf, content: bytes, *, compress: bool) -> None:
        blobs = shelf.blobs
        sha256 = put(blobs, content, compress=compress)
        assert read(blobs, sha256) == content
        assert blobs.size(sha256) == len(content)
        assert blobs.is_whole(sha256)
        assert list(blobs.ids()) == [sha256]
        assert shelf.strays() == []

    def test_the_name_is_known_before_a_blob_is_finished(self, shelf: Shelf) -> None:
        writer = written(shelf.blobs, LARGE)
        assert writer.sha256() == name_of(LARGE)
        assert list(shelf.blobs.ids()) == []
        writer.discard()

    @pytest.mark.parametrize("compress", [False, True])
    def test_a_range_is_a_slice(self, shelf: Shelf, *, compress: bool) -> None:
        blobs = shelf.blobs
        sha256 = put(blobs, LARGE, compress=compress)
        for start, end in (
            (0, 1),
            (0, len(LARGE)),
            (5 * MEBIBYTE - 3, 5 * MEBIBYTE + 3),
            (len(LARGE) - 1, len(LARGE)),
            (MEBIBYTE, 9 * MEBIBYTE),
            (len(LARGE) - 5, len(LARGE) + 100),
            (7, 7),
            (9, 2),
            (len(LARGE), len(LARGE) + 5),
            (len(LARGE) + 5, len(LARGE) + 9),
        ):
            assert b"".join(blobs.range(sha256, start, end)) == LARGE[start:end], (start, end)

    def test_an_empty_blob_has_an_empty_range(self, shelf: Shelf) -> None:
        assert list(shelf.blobs.range(put(shelf.blobs, b""), 0, 5)) == []

    @pytest.mark.parametrize("content", [TEXT, LARGE], ids=["text", "large"])
    def test_what_is_given_twice_is_kept_once(self, shelf: Shelf, content: bytes) -> None:
        put(shelf.blobs, content)
        sha256 = put(shelf.blobs, content)
        assert list(shelf.blobs.ids()) == [sha256]
        assert read(shelf.blobs, sha256) == content
        assert shelf.strays() == []

    @pytest.mark.parametrize("content", [TEXT, LARGE], ids=["text", "large"])
    def test_what_is_dropped_leaves_nothing(self, shelf: Shelf, content: bytes) -> None:
        writer = written(shelf.blobs, content)
        writer.discard()
        writer.discard()
        assert list(shelf.blobs.ids()) == []
        assert shelf.strays() == []

    @pytest.mark.parametrize("content", [TEXT, LARGE], ids=["text", "large"])
    def test_dropping_a_finished_blob_keeps_it(self, shelf: Shelf, content: bytes) -> None:
        writer = written(shelf.blobs, content)
        sha256 = writer.finish()
        writer.discard()
        assert read(shelf.blobs, sha256) == content

    @pytest.mark.parametrize("content", [TEXT, LARGE], ids=["text", "large"])
    def test_no_byte_comes_after_the_end_of_a_blob(self, shelf: Shelf, content: bytes) -> None:
        for ended in (written(shelf.blobs, content), written(shelf.blobs, content)):
            ended.finish()
            with pytest.raises(AssertionError):
                ended.finish()
        assert read(shelf.blobs, name_of(content)) == content

    def test_one_blob_may_be_written_by_several_threads_in_turn(self, shelf: Shelf) -> None:
        writer = shelf.blobs.writer()
        for start in range(0, len(LARGE), MEBIBYTE):
            piece = LARGE[start : start + MEBIBYTE]
            turn = threading.Thread(target=writer.write, args=(piece,))
            turn.start()
            turn.join()
        assert read(shelf.blobs, writer.finish()) == LARGE

    @pytest.mark.parametrize("content", [TEXT, LARGE], ids=["text", "large"])
    def test_many_who_give_the_same_at_once_leave_one_whole_blob(self, shelf: Shelf, content: bytes) -> None:
        names: list[str] = []
        threads = [threading.Thread(target=lambda: names.append(put(shelf.blobs, content))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert names == [name_of(content)] * 4
        assert list(shelf.blobs.ids()) == names[:1]
        assert read(shelf.blobs, names[0]) == content
        assert shelf.strays() == []

    def test_of_a_damaged_blob_the_last_piece_never_comes(self, shelf: Shelf) -> None:
        sha256 = put(shelf.blobs, LARGE)
        damaged = LARGE[:-1] + bytes([LARGE[-1] ^ 1])
        shelf.damage(sha256, damaged)
        got = b""
        with pytest.raises(BrokenFormat, match="damaged"):
            for piece in shelf.blobs.chunks(sha256):
                got += piece
        assert len(got) < len(LARGE)
        assert not shelf.blobs.is_whole(sha256)

    @pytest.mark.parametrize("content", [TEXT, LARGE], ids=["text", "large"])
    def test_a_damaged_blob_is_whole_when_it_is_given_again(self, shelf: Shelf, content: bytes) -> None:
        sha256 = put(shelf.blobs, content)
        shelf.damage(sha256, content[:-1])
        put(shelf.blobs, content)
        assert read(shelf.blobs, sha256) == content
        assert shelf.strays() == []

    def test_a_deleted_blob_is_gone(self, shelf: Shelf) -> None:
        kept, gone = put(shelf.blobs, b"kept"), put(shelf.blobs, TEXT, compress=True)
        assert shelf.blobs.delete(gone)
        assert not shelf.blobs.delete(gone)
        assert shelf.blobs.size(gone) is None
        assert list(shelf.blobs.ids()) == [kept]

    def test_what_was_never_given_is_not_there(self, shelf: Shelf) -> None:
        blobs = shelf.blobs
        assert blobs.size(ABSENT) is None
        assert not blobs.is_whole(ABSENT)
        assert not blobs.delete(ABSENT)
        assert list(blobs.ids()) == []
        with pytest.raises(NotFound):
            list(blobs.chunks(ABSENT))
        with pytest.raises(NotFound):
            list(blobs.range(ABSENT, 0, 5))

    @pytest.mark.parametrize("name", ["", "x" * 64, "../../etc/passwd", ABSENT.upper(), ABSENT + "\n"])
    def test_what_is_no_hash_names_no_blob(self, shelf: Shelf, name: str) -> None:
        blobs = shelf.blobs
        for ask in (blobs.size, blobs.delete, blobs.is_whole, read_of(blobs), range_of(blobs)):
            with pytest.raises(InvalidInput):
                ask(name)

    def test_every_blob_is_listed(self, shelf: Shelf) -> None:
        names = {put(shelf.blobs, b"%d" % number) for number in range(12)}
        assert sorted(shelf.blobs.ids()) == sorted(names)

    def test_a_sweep_leaves_blobs_and_who_is_at_work(self, shelf: Shelf) -> None:
        sha256 = put(shelf.blobs, TEXT)
        writer = written(shelf.blobs, LARGE)
        assert shelf.blobs.sweep() == 0
        assert writer.finish() == name_of(LARGE)
        assert read(shelf.blobs, sha256) == TEXT


class _Asking(Protocol):
    def __call__(self, sha256: str, /) -> object: ...


def read_of(blobs: ServerBlobs) -> _Asking:
    return lambda sha256: read(blobs, sha256)


def range_of(blobs: ServerBlobs) -> _Asking:
    return lambda sha256: list(blobs.range(sha256, 0, 1))
