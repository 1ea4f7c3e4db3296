"""Blobs in a folder: `ab/abcd…` by the SHA-256 of what they are, with `.zst` behind it where compressed.

The name is always the hash of the original bytes, so that one content has one name whoever compresses it, and
every read is checked against it. A second way of writing here could put a name on bytes that are not its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raddle.adapters.blobs.pieces import cut
from raddle.adapters.files import NewFile, make_folder, storage_error
from raddle.adapters.temporaries import sweep_temporaries
from raddle.model.errors import BrokenFormat, InvalidInput, NotFound, StorageError

if TYPE_CHECKING:
    import zstandard

_PIECE = 1 << 20
_LEVEL = 3
_TRIES = 100
_NAME = re.compile(r"([0-9a-f]{64})(?:\.zst)?\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class BlobDirectory:
    """A `BlobStore` on the local disk, shared by any number of processes without a lock.

    `syncs` False leaves the wait for the disk to the caller, who says `sync` once for many; a blob that a
    power cut caught before that is found damaged when it is read, and whole again when it is next put.
    """

    def __init__(self, folder: Path, *, syncs: bool = True) -> None:
        self._folder = folder
        self._syncs = syncs

    def put(self, content: bytes | Iterable[bytes], *, compress: bool = False) -> str:
        """Keep `content`; its SHA-256. One that is here, in either form, and whole, is left as it is."""
        if isinstance(content, bytes):
            sha256 = hashlib.sha256(content).hexdigest()
            if self.is_whole(sha256):
                return sha256
            content = (content,)
        writer = self.writer(compress=compress)
        try:
            for piece in content:
                writer.write(piece)
            return writer.finish()
        finally:
            writer.discard()

    def writer(self, *, compress: bool = True) -> BlobWriter:
        """For bytes that come in pieces; compressed unless said otherwise."""
        return BlobWriter(self, self._folder, compress=compress, syncs=self._syncs)

    def read(self, sha256: str) -> bytes:
        """All of it, checked. NotFound; BrokenFormat where the bytes are not what their name says."""
        return b"".join(self.chunks(sha256))

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """The same in pieces of a mebibyte; the last one comes only after the check."""
        path = self._find(sha256)
        if path is None:
            raise NotFound("blob", sha256, "it was purged, or never came to this machine")
        digest = hashlib.sha256()
        held = b""
        for piece in _pieces(path):
            digest.update(piece)
            if held:
                yield held
            held = piece
        if digest.hexdigest() != sha256:
            raise _damaged(path)
        yield held

    def range(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        """Bytes `start` up to `end`, as a slice has them, in pieces; a part cannot be checked. NotFound.

        A plain one is read from there on; of a compressed one all that comes before is unpacked too.
        """
        path = self._find(sha256)
        if path is None:
            raise NotFound("blob", sha256, "it was purged, or never came to this machine")
        yield from _part(path, start, end)

    def is_whole(self, sha256: str) -> bool:
        """Is it here, and what its name says?"""
        try:
            for _ in self.chunks(sha256):
                pass
        except (NotFound, BrokenFormat):
            return False
        return True

    def size(self, sha256: str) -> int | None:
        """How many bytes it is; None where it is not here."""
        path = self._find(sha256)
        if path is None:
            return None
        if path.suffix != ".zst":
            return _stored_size(path)
        return _size_in_frame(path) or sum(len(piece) for piece in _pieces(path))

    def stored_size(self, sha256: str) -> int | None:
        """How many bytes it takes on the disk; None where it is not here."""
        path = self._find(sha256)
        return None if path is None else _stored_size(path)

    def delete(self, sha256: str) -> bool:
        """Remove it; was it here?"""
        is_removed = False
        for path in self.paths_of(sha256):
            try:
                path.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(error, path, "remove") from error
            is_removed = True
        if is_removed:
            with contextlib.suppress(OSError):  # others are in it still, or it is gone
                path.parent.rmdir()
        return is_removed

    def ids(self) -> Iterator[str]:
        """Every SHA-256 that is here, once, folder by folder."""
        for folder in _entries(self._folder):
            if len(folder.name) == 2 and folder.is_dir():
                names = (_NAME.match(entry.name) for entry in _entries(Path(folder.path)))
                yield from sorted({name[1] for name in names if name is not None})

    def sync(self) -> None:
        """Wait until everything written so far is on the disk."""
        os.sync()

    def sweep(self) -> int:
        """Remove what killed processes left half-made, an hour ago or longer; how many files went."""
        return sweep_temporaries(self._folder)

    def paths_of(self, sha256: str) -> tuple[Path, Path]:
        """Where it lies plain, and where compressed; InvalidInput where this is no SHA-256."""
        if _SHA256.match(sha256) is None:
            raise InvalidInput(f"{sha256[:80]!r} is not a SHA-256", "it is 64 hex digits, in lower case")
        plain = self._folder / sha256[:2] / sha256
        return plain, plain.with_name(f"{sha256}.zst")

    def _find(self, sha256: str) -> Path | None:
        for path in self.paths_of(sha256):
            try:
                path.stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(error, path, "look at") from error
            return path
        return None


class BlobWriter:
    """A blob in the making. `finish` gives it its name; `discard` drops it, unless it is finished."""

    def __init__(self, blobs: BlobDirectory, folder: Path, *, compress: bool, syncs: bool) -> None:
        self._blobs = blobs
        self._digest = hashlib.sha256()
        self._compress = compress
        self._syncs = syncs
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._frame: zstandard.ZstdCompressionObj | None = None
        make_folder(folder)
        self._file: NewFile | None = NewFile(folder)

    def write(self, data: bytes) -> None:
        """Add `data` at the end."""
        self._digest.update(data)
        self._waiting.append(bytes(data))
        self._waiting_size += len(data)
        if self._waiting_size >= _PIECE:
            self._flush()

    def sha256(self) -> str:
        """The SHA-256 of what was written so far."""
        return self._digest.hexdigest()

    def finish(self) -> str:
        """Put it in its place, durably unless the directory does not sync; its SHA-256."""
        file = self._open_file()
        sha256 = self._digest.hexdigest()
        if self._blobs.is_whole(sha256):
            self.discard()
            return sha256
        self._end(file)
        plain, compressed = self._blobs.paths_of(sha256)
        path, other = (compressed, plain) if self._compress else (plain, compressed)
        self._place(file, path)
        self._file = None
        _drop_damaged(other)
        return sha256

    def _place(self, file: NewFile, path: Path) -> None:
        """Whoever deletes the last blob of the folder takes the folder away, it may be between these two lines."""
        for tries_left in reversed(range(_TRIES)):
            make_folder(path.parent)
            try:
                if self._syncs:
                    file.publish(path)
                else:
                    _move(file.set_aside(), path)
            except StorageError as error:
                if not tries_left or not isinstance(error.__cause__, FileNotFoundError):
                    raise
            else:
                return

    def discard(self) -> None:
        """Keep nothing of it, unless it is finished."""
        if self._file is not None:
            self._file.discard()
            self._file = None
        self._waiting.clear()

    def _open_file(self) -> NewFile:
        if self._file is None:
            raise AssertionError("this blob is finished or dropped")
        return self._file

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_size = 0
        if self._compress:
            if self._frame is None:
                self._frame = _compressor().compressobj()
            data = self._frame.compress(data)
        self._open_file().write(data)

    def _end(self, file: NewFile) -> None:
        if self._compress and self._frame is None:
            # Small enough to be compressed in one go: the frame then says how long the content is.
            file.write(_compressor().compress(b"".join(self._waiting)))
            self._waiting.clear()
            return
        self._flush()
        if self._frame is not None:
            file.write(self._frame.flush())


def _compressor() -> zstandard.ZstdCompressor:
    import zstandard  # noqa: PLC0415  # a tenth of the start of a command that compresses nothing

    return zstandard.ZstdCompressor(level=_LEVEL)


def _pieces(path: Path) -> Iterator[bytes]:
    """The original bytes of the file, unchecked; BrokenFormat where a compressed one cannot be read."""
    try:
        with path.open("rb") as file:
            if path.suffix == ".zst":
                yield from _decompressed(file, path)
            else:
                while piece := file.read(_PIECE):
                    yield piece
    except OSError as error:
        raise storage_error(error, path, "read") from error


def _part(path: Path, start: int, end: int) -> Iterator[bytes]:
    """Bytes `start` up to `end` of the original ones."""
    if path.suffix == ".zst":
        yield from cut(_pieces(path), start, end)
        return
    try:
        with path.open("rb") as file:
            file.seek(start)
            while piece := file.read(min(_PIECE, max(end - file.tell(), 0))):
                yield piece
    except OSError as error:
        raise storage_error(error, path, "read") from error


def _decompressed(file: Any, path: Path) -> Iterator[bytes]:
    import zstandard  # noqa: PLC0415

    try:
        with zstandard.ZstdDecompressor().stream_reader(file, closefd=False) as reader:
            while piece := reader.read(_PIECE):
                yield piece
    except zstandard.ZstdError as error:
        raise _damaged(path) from error


def _size_in_frame(path: Path) -> int:
    """What the frame says of its content's size in bytes; 0 where it does not say."""
    import zstandard  # noqa: PLC0415

    try:
        with path.open("rb") as file:
            head = file.read(32)
        size = zstandard.frame_content_size(head)
    except zstandard.ZstdError as error:
        raise _damaged(path) from error
    except OSError as error:
        raise storage_error(error, path, "read") from error
    return max(int(size), 0)


def _stored_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise storage_error(error, path, "look at") from error


def _move(temporary: Path, path: Path) -> None:
    try:
        temporary.replace(path)
    except OSError as error:
        raise storage_error(error, path, "write") from error


def _drop_damaged(other: Path) -> None:
    """The form that a blob was kept in before, and was damaged in, or it would not have been written anew."""
    try:
        other.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, other, "remove") from error


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, folder, "list") from error


def _damaged(path: Path) -> BrokenFormat:
    return BrokenFormat(
        f"{path} is damaged: its bytes are not those of its name",
        "restore it from a backup, or import it again",
    )
