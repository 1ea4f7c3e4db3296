"""A look at all of a store: what was hashed is not read again, and nothing that changed is missed."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.adapters.locks import LockFiles
from raddle.adapters.memory_repo import folder as folder_module
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.adapters.memory_repo.scan_cache import ScanCache
from tests.builders_memories import lay


def opened(root: Path) -> StoreFolder:
    """The folder as a process that has just started opens it."""
    root.mkdir(exist_ok=True)
    own = root.parent / "own"
    return StoreFolder(root, LockFiles(own / "locks", stripes=1), cache=ScanCache(own / "scan"))


def settled(root: Path) -> None:
    """Have every file look as if it had been written long ago."""
    for file in root.rglob("*"):
        if file.is_file():
            os.utime(file, ns=(10**18, 10**18))


def plainly(root: Path) -> dict[str, str]:
    found = {}
    for file in root.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            digest = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False)
            found[file.relative_to(root).as_posix()] = digest.hexdigest()
    return found


PATHS = ("project.yaml", "memory/team/a", "memory/team/b", "memory/ada/deep/c", "runs/x")
steps = st.lists(
    st.tuples(st.sampled_from(PATHS), st.sampled_from((b"", b"one", b"two", b"other", None))), max_size=8
)


@given(st.lists(steps, min_size=1, max_size=4))
def test_a_look_tells_what_the_files_hold_whatever_happened_since_the_last(
    turns: list[list[tuple[str, bytes | None]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "store")
        for turn in turns:
            files = opened(root)
            for path, data in turn:
                if data is not None:
                    lay(root, {path: data})
                elif (root / path).exists():
                    (root / path).unlink()
            assert files.scan().files == plainly(root)
            assert files.scan().files == plainly(root)


def test_a_file_that_did_not_change_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, read = tmp_path / "store", []
    lay(root, {f"memory/team/{number}": f"{number}" for number in range(10)})
    settled(root)
    is_settled = "raddle.adapters.memory_repo.scanning.is_settled"
    monkeypatch.setattr(is_settled, lambda times, at: True)
    really = folder_module._read

    def noted(file: str) -> bytes | None:
        read.append(file.rpartition("/")[2])
        return really(file)

    monkeypatch.setattr(folder_module, "_read", noted)
    first = opened(root).scan()
    assert len(read) == 10
    read.clear()
    assert opened(root).scan() == first
    assert read == []
    lay(root, {"memory/team/3": "other", "memory/team/new": "x"})
    assert opened(root).scan().files == plainly(root)
    assert sorted(read) == ["3", "new"]


def test_a_file_that_was_written_just_now_is_read_again(tmp_path: Path) -> None:
    root = tmp_path / "store"
    for number in range(20):
        lay(root, {"memory/team/a": f"{number:04d}"})
        assert opened(root).scan().files == plainly(root)


def test_what_git_should_not_hold_is_told_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "LARGEST_IN_GIT", 10)
    root = tmp_path / "store"
    lay(root, {"memory/team/large": "x" * 11, "memory/team/a": "x", ".git/config": "x", "memory/.git/x": "x"})
    lay(root, {"memory/team/.raddle-0123.tmp": "half", "memory/team/.raddle-mine": "whole"})
    (root / "memory/team/link").symlink_to("a")
    (root / "memory/linked").symlink_to("team")
    os.mkfifo(root / "memory/team/pipe")
    for _ in range(2):
        scan = opened(root).scan()
        assert sorted(scan.files) == ["memory/team/.raddle-mine", "memory/team/a"]
        assert sorted(scan.blocked) == [
            "memory/linked",
            "memory/team/large",
            "memory/team/link",
            "memory/team/pipe",
        ]


def test_a_damaged_cache_is_an_empty_one(tmp_path: Path) -> None:
    root = tmp_path / "store"
    lay(root, {"memory/team/a": "x"})
    files = opened(root)
    files.scan()
    for damage in (b"", b"\xff", b"\x81\xa0\x93\x91\xa1a\x90\x90"):
        (tmp_path / "own/scan").write_bytes(damage)
        assert files.scan().files == plainly(root)
