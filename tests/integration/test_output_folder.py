"""A folder that is written again: what was ours is replaced, what is not is left alone, whenever it breaks off."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from raddle.adapters import output_folder
from raddle.adapters.file_batches import FileBatch
from raddle.adapters.output_folder import NOTE, replace_output
from raddle.model.errors import ConflictError, InvalidInput, StorageError

FIRST = {"report": {"report.md": b"one", "figures/a.png": b"a"}, "site": {"site/docs/index.md": b"index"}}


def held(folder: Path) -> dict[str, bytes]:
    """Path -> bytes of all files but the note."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != NOTE
    }


def test_the_second_time_replaces_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    assert replace_output(folder, FIRST).removed == ()
    replaced = replace_output(folder, {"report": {"report.md": b"two", "figures/b.png": b"b"}})
    assert replaced.removed == ("figures/a.png",)
    assert held(folder) == {"report.md": b"two", "figures/b.png": b"b", "site/docs/index.md": b"index"}
    replace_output(folder, {"report": {"report.md": b"three"}})
    assert not (folder / "figures").exists()


def test_the_same_again_touches_nothing(tmp_path: Path) -> None:
    replace_output(tmp_path, FIRST)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    replace_output(tmp_path, FIRST)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_file_of_somebody_elses_is_left_alone_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("theirs")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "own.png").write_text("theirs too")
    with pytest.raises(ConflictError, match="was not written by this command"):
        replace_output(tmp_path, FIRST)
    assert held(tmp_path) == {"report.md": b"theirs", "figures/own.png": b"theirs too"}
    replace_output(tmp_path, FIRST, may_overwrite=True)
    replace_output(tmp_path, {"report": {"other.md": b"x"}})
    assert held(tmp_path) == {
        "other.md": b"x",
        "figures/own.png": b"theirs too",
        "site/docs/index.md": b"index",
    }


def test_what_somebody_has_changed_is_theirs_from_then_on(tmp_path: Path) -> None:
    replace_output(tmp_path, FIRST)
    (tmp_path / "report.md").write_text("one, and a word of mine")
    with pytest.raises(ConflictError, match="was changed since"):
        replace_output(tmp_path, {"report": {"report.md": b"two"}})
    replaced = replace_output(tmp_path, {"report": {"other.md": b"x"}})
    assert replaced.kept == ("report.md",)
    assert (tmp_path / "report.md").read_text() == "one, and a word of mine"


def test_a_file_that_has_just_the_bytes_is_no_clash(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_bytes(b"one")
    replace_output(tmp_path, FIRST)
    assert replace_output(tmp_path, {"report": {"report.md": b"two"}}).files == ("report.md",)


@pytest.mark.parametrize("at", ["write", "_rename_all", "remove", "note"])
def test_whatever_moment_it_breaks_at_the_next_time_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    replace_output(tmp_path, FIRST)

    def broken(*_: object, **__: object) -> None:
        raise StorageError("the disk is full")

    second = {"report": {"report.md": b"two", "figures/b.png": b"b"}}
    with monkeypatch.context() as patched, pytest.raises(StorageError):
        if at == "remove":
            patched.setattr(output_folder, "_remove", broken)
        elif at == "note":
            real, calls = output_folder._write_note, iter([True, False])
            patched.setattr(
                output_folder, "_write_note", lambda *given: real(*given) if next(calls) else broken()
            )
        else:
            patched.setattr(FileBatch, at, broken)
        replace_output(tmp_path, second)
    replace_output(tmp_path, second)
    assert held(tmp_path) == {"report.md": b"two", "figures/b.png": b"b", "site/docs/index.md": b"index"}


def test_a_link_among_the_folders_is_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "figures").symlink_to(elsewhere)
    with pytest.raises(InvalidInput, match="is a link"):
        replace_output(folder, FIRST, may_overwrite=True)
    assert list(elsewhere.iterdir()) == []


def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.md").symlink_to(theirs)
    with pytest.raises(ConflictError):
        replace_output(tmp_path / "out", FIRST)
    replace_output(tmp_path / "out", FIRST, may_overwrite=True)
    assert theirs.read_text() == "theirs"
    assert not (tmp_path / "out" / "report.md").is_symlink()


def test_a_pipe_in_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "report.md")
    with pytest.raises(ConflictError):
        replace_output(tmp_path, FIRST)


def test_a_folder_in_place_of_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "report.md").mkdir()
    with pytest.raises(ConflictError, match="is a folder"):
        replace_output(tmp_path, FIRST, may_overwrite=True)


@pytest.mark.parametrize(
    "path", ["../victim", "/etc/passwd", "a/../../victim", ".git/config", "link/victim", "victim\0"]
)
def test_a_note_that_came_with_a_clone_removes_nothing_outside(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    victim = tmp_path / "victim"
    victim.write_bytes(b"a")
    (folder / "link").symlink_to(tmp_path)
    digest = output_folder._hash(b"a")
    note = {"schema_version": 1, "files": {path: {"part": "report", "sha256": [digest]}}}
    (folder / NOTE).write_text(json.dumps(note))
    assert replace_output(folder, FIRST).removed == ()
    assert victim.read_bytes() == b"a"


@pytest.mark.parametrize(
    "note", ["", "{", "[]", '{"schema_version": 2}', '{"schema_version": 1, "files": {"a": 1}}']
)
def test_a_note_that_cannot_be_read_claims_nothing(tmp_path: Path, note: str) -> None:
    (tmp_path / NOTE).write_text(note)
    (tmp_path / "report.md").write_text("theirs")
    with pytest.raises(ConflictError):
        replace_output(tmp_path, FIRST)


def test_who_may_read_the_folder_around_may_read_what_is_made_there(tmp_path: Path) -> None:
    for mode, folder_mode, file_mode in ((0o755, 0o755, 0o644), (0o700, 0o700, 0o600), (0o777, 0o755, 0o644)):
        around = tmp_path / f"{mode:o}"
        around.mkdir()
        around.chmod(mode)
        replace_output(around / "a" / "b", {"report": {"in/report.md": b"text"}})
        made = around / "a" / "b" / "in"
        assert made.stat().st_mode & 0o777 == folder_mode
        assert (made / "report.md").stat().st_mode & 0o777 == file_mode
