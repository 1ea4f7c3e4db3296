"""Another agent's memory folder brought in: once, by names that every system holds, and never touched."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.memory.memories import LARGEST_MEMORY
from raddle.actions.memory.memory_import import ImportReport, SourceFile, import_texts, portable
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.adapters.memory_repo.foreign_folder import texts_in
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.memory.repo_layout import check_key, parse_conflict
from tests.builders_memories import RUN, a_folder, lay

NOTE = "---\ntitle: Säntis\ntype: note\npermalink: alps/säntis\n---\n\n# Säntis\n\n- [height] 2502 m #alps\n"


@pytest.fixture
def files(tmp_path: Path) -> StoreFolder:
    return a_folder(tmp_path / "store")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source"


def bring_in(files: StoreFolder, source: Path, *, overwrite: bool = False) -> ImportReport:
    return import_texts(files, "ada", texts_in(source), overwrite=overwrite)


def state_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_every_text_becomes_a_memory_to_the_byte_and_the_folder_is_left_alone(
    files: StoreFolder, source: Path
) -> None:
    lay(source, {"MEMORY.md": "- [a](a.md)\n", "notes/a.md": NOTE, "b.txt": b"\xef\xbb\xbfbom\r\n"})
    before = state_of(source)
    report = bring_in(files, source)
    assert report.added == ("MEMORY.md", "b.txt", "notes/a.md")
    assert files.read("memory/ada/notes/a.md") == NOTE.encode()
    assert files.read("memory/ada/b.txt") == b"\xef\xbb\xbfbom\r\n"
    assert state_of(source) == before


def test_bringing_it_in_again_brings_nothing_new(files: StoreFolder, source: Path) -> None:
    lay(source, {"Foo.md": "1", "foo.md": "2", "what?.md": "3", "con/nul.txt": "4", "a": "5", "A/b": "6"})
    first = bring_in(files, source)
    assert len(first.added) == 6
    stored = state_of(files.root)
    again = bring_in(files, source)
    assert (again.added, again.kept, len(again.same)) == ((), (), 6)
    assert again.renamed == first.renamed
    assert state_of(files.root) == stored


def test_a_memory_that_says_something_else_by_now_stays_unless_it_is_to_be_replaced(
    files: StoreFolder, source: Path
) -> None:
    lay(source, {"a": "old", "b": "same"})
    bring_in(files, source)
    lay(source, {"a": "new"})
    report = bring_in(files, source)
    assert (report.kept, report.same, files.read("memory/ada/a")) == (("a",), ("b",), b"old")
    report = bring_in(files, source, overwrite=True)
    assert (report.replaced, files.read("memory/ada/a")) == (("a",), b"new")


def test_what_is_no_text_is_left_out_and_said(files: StoreFolder, source: Path) -> None:
    lay(source, {"picture.png": b"\x89PNG\0", "latin": b"caf\xe9", "large": b"x" * (LARGEST_MEMORY + 1)})
    lay(source, {".obsidian/app.json": "{}", ".hidden": "x", "empty.md": ""})
    (source / "link.md").symlink_to("/etc/passwd")
    os.mkfifo(source / "pipe")
    report = bring_in(files, source)
    assert report.added == ("empty.md",)
    assert report.skipped == {
        ".hidden": "its name begins with a dot",
        ".obsidian": "its name begins with a dot",
        "large": "it is larger than 1024 KiB",
        "latin": "it is no text",
        "link.md": "it is a link",
        "picture.png": "it is no text",
        "pipe": "it is no file",
    }


def test_names_that_some_system_cannot_hold_are_made_portable(files: StoreFolder, source: Path) -> None:
    lay(source, {"a: b.md": "1", "ends. /x": "2", "aux.md": "3", "notes~1": "4", "d/é.md": "5"})
    assert bring_in(files, source).renamed == {
        "a: b.md": "a- b.md",
        "aux.md": "_aux.md",
        "ends. /x": "ends/x",
        "notes~1": "notes-1",
    }


def test_two_names_that_would_be_one_get_two(files: StoreFolder, source: Path) -> None:
    lay(source, {"Foo.md": "1", "foo.md": "2", "foo-2.md": "3", "a?": "4", "a-": "5"})
    report = bring_in(files, source)
    assert len(report.added) == 5
    assert report.renamed == {"a?": "a--2", "foo.md": "foo-3.md"}


def test_a_file_in_the_place_of_a_folder_gets_another_name(files: StoreFolder, source: Path) -> None:
    lay(files.root, {"memory/ada/notes": "a memory", "memory/ada/Docs/x": "there"})
    lay(source, {"notes/a": "1", "docs/y": "2", "Docs": "3"})
    report = bring_in(files, source)
    assert sorted(report.added) == ["Docs-2", "Docs/y", "notes-2/a"]


def test_one_file_is_brought_in_by_its_name(files: StoreFolder, source: Path) -> None:
    lay(source, {"CLAUDE.md": "be kind"})
    assert bring_in(files, source / "CLAUDE.md").added == ("CLAUDE.md",)
    with pytest.raises(NotFound):
        bring_in(files, source / "nothing")


def test_a_namespace_that_cannot_be_is_refused_before_anything_is_written(
    files: StoreFolder, source: Path
) -> None:
    lay(source, {"a": "x"})
    lay(files.root, {"memory/Team/a": "x"})
    for namespace in ("", "a/b", "..", "team"):
        with pytest.raises(InvalidInput):
            import_texts(files, namespace, texts_in(source))
    assert [path.name for path in (files.root / "memory").iterdir()] == ["Team"]


def test_a_secret_is_told_of(files: StoreFolder, source: Path) -> None:
    lay(source, {"a": "AKIAABCDEFGHIJKLMNOP"})
    assert bring_in(files, source).secrets == {"a": ("an AWS access key",)}


names = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=220
) | st.sampled_from(
    (
        "con",
        "CON.md",
        ".git",
        ".GIT ",
        "git~1",
        ".gitignore",
        "a.",
        " a",
        "..",
        ".",
        "~",
        "a~1.txt",
        "\u200b.git",
        f"a.conflict-b-{RUN}",
        "x" * 300 + ".md",
        "é" * 200,
        "\u202e",
        "a\nb",
    )
)


@given(st.lists(names, min_size=1, max_size=4).map("/".join))
def test_any_path_becomes_a_key_that_can_be_written(path: str) -> None:
    key = portable(path)
    assert parse_conflict(key) is None
    assert len(key.encode()) > 400 or check_key(key) == key
    assert portable(key) == key


@given(st.lists(st.lists(names, min_size=1, max_size=3).map("/".join), max_size=6, unique=True))
def test_any_folder_comes_in_once_and_whole(paths: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = a_folder(Path(folder, "store"))
        sources = [SourceFile(path=path, data=path.encode(errors="replace")) for path in paths]
        first = import_texts(files, "ada", sources)
        again = import_texts(files, "ada", sources)
        assert len(first.added) + len(first.skipped) == len(paths)
        assert (again.added, again.kept) == ((), ())
        assert again.renamed == first.renamed
