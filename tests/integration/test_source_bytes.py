"""Files of other agents are read in whole lines, in bounded memory, and only files are."""

from __future__ import annotations

import os
import resource
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from raddle.actions.importing.source_reading import Broken, Lines, SourceError, Tail, TooLong
from raddle.adapters.agent_homes import source_bytes
from raddle.adapters.agent_homes.source_bytes import (
    SourceBytes,
    first_bytes,
    first_lines,
    open_file,
    read_whole,
)
from tests.contract.source_laws import LONGEST, SourceLaws
from tests.file_events import start_child


class TestSourceBytes(SourceLaws):
    """With small chunks and short lines, so that every seam is met."""

    @pytest.fixture(autouse=True)
    def in_small_pieces(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
        monkeypatch.setattr(source_bytes, "CHUNK_BYTES", 7)
        monkeypatch.setattr(source_bytes, "MAX_LINE_BYTES", LONGEST)
        with tempfile.NamedTemporaryFile(dir=tmp_path) as file:
            self.path = file.name
            yield

    def open(self, data: bytes) -> SourceBytes:
        Path(self.path).write_bytes(data)
        return SourceBytes(self.path)


def test_a_line_over_64_mebibytes_is_told_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("wb") as file:
        file.write(b"first\n")
        for _ in range(70):
            file.write(b"x" * (1 << 20))
        file.write(b"\nlast\n")

    def read() -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = 0

        def keep(data: bytes) -> None:
            nonlocal size
            size += len(data)

        told = [
            (batch.first, batch.lines) if isinstance(batch, Lines) else batch
            for batch in SourceBytes(str(path)).read(0, 1, keep)
        ]
        assert told == [(1, [b"first"]), TooLong(2, 70 << 20, (70 << 20) + 7), (3, [b"last"])]
        assert size == path.stat().st_size
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 100

    child = start_child(read)
    child.join()
    assert child.exitcode == 0


@pytest.mark.parametrize(
    "read", [SourceBytes, read_whole, lambda path: first_bytes(path, 1), lambda path: list(first_lines(path))]
)
def test_what_is_no_file_is_named_and_never_waited_for(tmp_path: Path, read: object) -> None:
    assert callable(read)
    pipe, folder, link = tmp_path / "pipe", tmp_path / "folder", tmp_path / "link"
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path in (pipe, folder, link, tmp_path / "socket", tmp_path / "absent"):
            with pytest.raises(SourceError, match=str(path)):
                read(str(path))


def test_first_lines_come_in_pieces_where_they_are_long(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"a\n" + b"b" * 10 + b"\nc")
    assert list(first_lines(str(path), longest=4)) == [b"a\n", b"bbbb", b"bbbb", b"bb\n", b"c"]
    assert first_bytes(str(path), 3) == b"a\nb"
    assert read_whole(str(path)) == path.read_bytes()


def read_packed(folder: Path, packed: bytes) -> tuple[list[bytes], bytes, Broken | None]:
    """(whole lines, tail, what is told of damage) of a compressed file."""
    path = folder / "p.jsonl.zst"
    path.write_bytes(packed)
    lines: list[bytes] = []
    tail, broken = b"", None
    for batch in open_file(str(path)).read(0, 1, lambda _: None):
        match batch:
            case Lines():
                lines += batch.lines
            case Tail():
                tail = batch.data
            case Broken():
                broken = batch
            case TooLong():
                raise AssertionError(batch)
    return lines, tail, broken


class TestAFileThatItsAgentHasCompressed:
    """Its lines, offsets and hashes are those of the file as it was."""

    @pytest.fixture
    def both(self, tmp_path: Path) -> tuple[SourceBytes, SourceBytes]:
        plain, compressed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.zst"
        data = (
            b"".join(b"line %d %s\n" % (number, b"x" * (number % 700)) for number in range(9_000)) + b"an end"
        )
        plain.write_bytes(data)
        cut = 1_000_000
        compressor = zstandard.ZstdCompressor()
        compressed.write_bytes(
            compressor.compress(data[:cut]) + compressor.compress(data[cut:])
        )  # two frames
        return open_file(str(plain)), open_file(str(compressed))

    @pytest.mark.parametrize("start", [0, 1, 700, 1_048_576, 3_000_000])
    @pytest.mark.parametrize("end", [None, 3_000_001])
    def test_it_is_read_like_the_file_it_was(
        self, both: tuple[SourceBytes, SourceBytes], start: int, end: int | None
    ) -> None:
        told = []
        for source in both:
            kept: list[bytes] = []
            lines: list[bytes] = []
            for batch in source.read(start, 1, kept.append, end=end):
                lines += (
                    batch.lines
                    if isinstance(batch, Lines)
                    else [batch.data]
                    if isinstance(batch, Tail)
                    else []
                )
            told.append((lines, b"".join(kept)))
        assert told[0] == told[1]
        assert told[0][0]

    @pytest.mark.parametrize("read_to", [0, 10, 4_096, 2_500_000])
    def test_it_is_known_again_by_the_same_hashes(
        self, both: tuple[SourceBytes, SourceBytes], read_to: int
    ) -> None:
        plain, compressed = both
        assert plain.head(read_to) == compressed.head(read_to)
        assert plain.tail(read_to) == compressed.tail(read_to)

    def test_its_first_lines_are_found(self, tmp_path: Path) -> None:
        path = tmp_path / "c.jsonl.zst"
        path.write_bytes(zstandard.ZstdCompressor().compress(b"one\ntwo\n"))
        assert list(first_lines(str(path))) == [b"one\n", b"two\n"]
        assert first_bytes(str(path), 5) == b"one\nt"

    @pytest.mark.parametrize("left", [0.99, 0.5, 0.2])
    def test_one_that_was_cut_is_read_as_far_as_it_goes_and_that_is_told(
        self, tmp_path: Path, left: float
    ) -> None:
        data = b"".join(b"line %d %s\n" % (number, os.urandom(60).hex().encode()) for number in range(9_000))
        packed = zstandard.ZstdCompressor().compress(data)
        lines, tail, broken = read_packed(tmp_path, packed[: int(len(packed) * left)])
        whole = data.split(b"\n")
        assert lines == whole[: len(lines)]
        assert whole[len(lines)].startswith(tail)
        assert len(lines) > 9_000 * left - 2_500
        assert broken is not None
        assert broken.number == len(lines) + 1
        assert "it ends in the middle" in broken.reason

    def test_a_damaged_byte_costs_no_line_that_stands_before_it(self, tmp_path: Path) -> None:
        compressor = zstandard.ZstdCompressor(write_checksum=True)
        packed = bytearray(compressor.compress(b"first\n" * 9_000) + compressor.compress(b"then\n" * 5_000))
        second = packed.index(b"\x28\xb5\x2f\xfd", 4)
        packed[second + 12] ^= 0xFF
        lines, _, broken = read_packed(tmp_path, bytes(packed))
        assert lines[:9_000] == [b"first"] * 9_000
        assert broken is not None
        assert "damaged" in broken.reason

    def test_a_wrong_checksum_costs_no_line(self, tmp_path: Path) -> None:
        packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(b"line\n" * 50_000))
        packed[-1] ^= 0xFF
        lines, tail, broken = read_packed(tmp_path, bytes(packed))
        assert [*lines, tail] == [b"line"] * 50_000
        assert broken is not None
        assert "checksum" in broken.reason

    @pytest.mark.parametrize("sizes", [True, False])
    def test_frames_of_every_kind_that_are_whole_are_no_damage(self, tmp_path: Path, *, sizes: bool) -> None:
        plain = zstandard.ZstdCompressor(write_content_size=sizes, write_checksum=sizes)
        skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
        parts = (b"one\n", b"", b"x" * 300_000 + b"\n", os.urandom(200_000).replace(b"\n", b"") + b"\n")
        packed = skipped + b"".join(map(plain.compress, parts)) + skipped
        lines, tail, broken = read_packed(tmp_path, packed)
        assert (b"\n".join(lines) + b"\n", tail, broken) == (b"".join(parts), b"", None)

    def test_damage_is_told_with_its_reason(self, tmp_path: Path) -> None:
        path = tmp_path / "c.jsonl.zst"
        path.write_bytes(zstandard.ZstdCompressor().compress(b"one\n" * 100)[:-3] + b"\0\0\0\0\0")
        with pytest.raises(SourceError, match="compressed bytes are damaged"):
            list(open_file(str(path)).read(0, 1, lambda _: None))
