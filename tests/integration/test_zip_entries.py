"""Files inside a zip are read from anywhere in them, and what cannot be read is told."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from hashlib import shake_128
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes import zip_entries
from raddle.adapters.agent_homes.zip_entries import ZipEntry, entries_of

DATA = shake_128(b"zip").hexdigest(10_000).encode() + b"the same again " * 2_000


@pytest.fixture(scope="module", params=[zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        with zipfile.ZipFile(file, "w", request.param) as made:
            made.writestr("before.txt", "x" * 500)
            made.writestr("data.txt", DATA)
            made.writestr("after.txt", "y")
        file.flush()
        yield file.name


def entry_of(path: str) -> ZipEntry:
    (found,) = [entry for entry in entries_of(path) if entry.filename == "data.txt"]
    return ZipEntry(path, found)


@given(reads=st.lists(st.tuples(st.integers(0, len(DATA) + 10), st.integers(0, 9_000)), max_size=12))
def test_any_part_can_be_read_after_any_other(path: str, reads: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zip_entries, "_CHUNK_BYTES", 100)
        patch.setattr(zip_entries, "_PIECE_BYTES", 300)
        patch.setattr(zip_entries, "_STEP_BYTES", 2_000)
        entry = entry_of(path)
        for offset, size in reads:
            assert entry.read(offset, size) == DATA[offset : offset + size]


def test_its_size_is_that_of_what_it_holds(path: str) -> None:
    assert (entry_of(path).name, entry_of(path).size) == ("data.txt", len(DATA))


def test_a_stream_that_ends_too_early_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("data.txt", DATA)
    (entry,) = entries_of(str(path))
    entry.compress_size //= 2
    with pytest.raises(SourceError, match=r"data\.txt in it cannot be read: what it holds ends too early"):
        ZipEntry(str(path), entry).read(0, len(DATA))


def test_an_encrypted_entry_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("data.txt", DATA)
    (entry,) = entries_of(str(path))
    entry.flag_bits |= 1
    with pytest.raises(SourceError, match="it is encrypted"):
        ZipEntry(str(path), entry)


def test_what_is_no_zip_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(SourceError, match="it is no whole zip file"):
        entries_of(str(path))
    with pytest.raises(SourceError):
        entries_of(str(path) + ".gone")
