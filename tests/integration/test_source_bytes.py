"""Files of other agents are read in whole lines, in bounded memory, and only files are."""

from __future__ import annotations

import os
import resource
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.actions.importing.source_reading import Lines, SourceError, TooLong
from raddle.adapters.agent_homes import source_bytes
from raddle.adapters.agent_homes.source_bytes import SourceBytes, first_bytes, first_lines, read_whole
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
