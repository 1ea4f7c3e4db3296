"""Memories written, read and taken out: what a name is, what a write keeps, which keys stand in each other's way."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.memory.memories import (
    LARGEST_MEMORY,
    Told,
    changed,
    delete_memory,
    get_memory,
    set_memory,
)
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.model.errors import InvalidInput, NotFound, TooLarge
from raddle.model.memory.memory_text import parse_memory
from tests.builders import WoundClock
from tests.builders_memories import RUN, a_folder, a_writer, lay
from tests.property.strategies import texts

NOON, LATER = "2026-11-30T12:00:00.000000Z", "2026-11-30T12:00:01.000000Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def files(root: Path) -> StoreFolder:
    return a_folder(root)


def test_a_new_memory_says_who_wrote_it_and_when(files: StoreFolder, root: Path) -> None:
    done = set_memory(files, a_writer(author="ada"), "team/style", "# Style\n\nshort")
    assert (done.name, done.path, done.state) == ("team/style", "memory/team/style", "created")
    assert (root / done.path).read_text() == (
        f"---\ncreated: '{NOON}'\nupdated: '{NOON}'\nauthor: ada\n---\n\n# Style\n\nshort\n"
    )
    assert get_memory(files, "team/style").text == parse_memory((root / done.path).read_text())


def test_a_rewrite_keeps_what_others_told_of_it_and_their_comments(files: StoreFolder, root: Path) -> None:
    lay(root, {"memory/team/a": "---\n# mine\ntitle: A note\ntags: [x]  # few\npermalink: a\n---\nold\n"})
    clock = WoundClock()
    clock.wind()
    set_memory(files, a_writer(clock=clock), "team/a", "new", Told(description="a line", tags=("y", "x")))
    assert (root / "memory/team/a").read_text() == (
        "---\n# mine\ntitle: A note\ntags:\n- x\n- y\npermalink: a\ndescription: a line\n"
        f"updated: '{LATER}'\n---\n\nnew\n"
    )


def test_a_memory_without_front_matter_stays_without(files: StoreFolder, root: Path) -> None:
    lay(root, {"memory/team/a": "old\n"})
    assert set_memory(files, a_writer(author="ada"), "team/a", "new").state == "changed"
    assert (root / "memory/team/a").read_text() == "new\n"
    set_memory(files, a_writer(), "team/a", None, Told(tags=("x",)))
    assert (root / "memory/team/a").read_text() == f"---\ntags:\n- x\nupdated: '{NOON}'\n---\n\nnew\n"


def test_writing_what_is_there_changes_nothing_not_even_its_time(files: StoreFolder, root: Path) -> None:
    clock = WoundClock()
    set_memory(files, a_writer(clock=clock), "team/a", "same", Told(tags=("x",)))
    before = (root / "memory/team/a").read_bytes()
    clock.wind()
    assert (
        set_memory(files, a_writer(clock=clock), "team/a", "same\n", Told(tags=("x",))).state == "unchanged"
    )
    assert (root / "memory/team/a").read_bytes() == before


def test_front_matter_in_the_text_counts_as_told(files: StoreFolder, root: Path) -> None:
    set_memory(files, a_writer(), "team/a", "old", Told(tags=("x",), description="d"))
    set_memory(files, a_writer(), "team/a", "---\ntags: [y]\nmood: good\n---\n\nnew\n")
    found = get_memory(files, "team/a").text
    assert found is not None
    assert found.body == "new\n"
    said = found.front_matter
    assert (said.tags, said.description, said.unknown, said.created) == (("y",), "d", {"mood": "good"}, NOON)


def test_a_tag_is_taken_off_and_a_description_emptied(files: StoreFolder) -> None:
    set_memory(files, a_writer(), "team/a", "text", Told(tags=("x", "y"), description="d"))
    set_memory(files, a_writer(), "team/a", None, Told(untags=("x",), description=""))
    found = get_memory(files, "team/a").text
    assert found is not None
    assert (found.front_matter.tags, found.front_matter.description) == (("y",), "")


def test_bytes_that_are_no_text_are_read_as_they_are_and_can_be_replaced(
    files: StoreFolder, root: Path
) -> None:
    lay(root, {"memory/team/a": b"\xff\xfe\0"})
    assert (get_memory(files, "team/a").data, get_memory(files, "team/a").text) == (b"\xff\xfe\0", None)
    with pytest.raises(InvalidInput, match="no text"):
        set_memory(files, a_writer(), "team/a", None, Told(tags=("x",)))
    set_memory(files, a_writer(), "team/a", "text")
    assert (root / "memory/team/a").read_text() == "text\n"


@given(texts(40), texts(40), st.lists(texts(6), max_size=2).map(tuple))
def test_what_is_written_is_read_whatever_it_is(old: str, new: str, tags: tuple[str, ...]) -> None:
    first = changed(None, old, Told(tags=tags), a_writer())
    body = parse_memory(changed(first, new, Told(), a_writer()).decode()).body
    expected = parse_memory(new if not new or new.endswith("\n") else f"{new}\n").body
    assert body.lstrip("\n") == expected.lstrip("\n")


@pytest.mark.parametrize(
    ("there", "new", "why"),
    [
        ("team/a", "team/a/b", "folder of"),
        ("team/a/b", "team/a", "folder of"),
        ("team/a/b/c", "team/A/d", "only in case"),
        ("team/Foo", "team/foo", "only in case"),
        ("team/é", "team/e\u0301X", ""),
        ("team/straße", "team/STRASSE", "only in case"),
        ("Team/x", "team/y", "only in case"),
        ("team/x", "team/.git/config", "git's own"),
        ("team/x", "team/../../out", "another folder"),
        ("team/x", f"team/x.conflict-aaaaaaaa-{RUN}", "conflict"),
        ("team/x", "team/con", "device"),
    ],
)
def test_a_key_that_some_system_cannot_hold_is_one_clear_line(
    files: StoreFolder, root: Path, there: str, new: str, why: str
) -> None:
    lay(root, {f"memory/{there}": "text"})
    if not why:
        assert set_memory(files, a_writer(), new, "text").state == "created"
        return
    before = sorted(root.rglob("*"))
    with pytest.raises(InvalidInput, match=why):
        set_memory(files, a_writer(), new, "text")
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("name", ["", "team", "team/", "/a", "no-namespace"])
def test_a_name_is_a_namespace_and_a_key(files: StoreFolder, name: str) -> None:
    for verb in (lambda: set_memory(files, a_writer(), name, "x"), lambda: get_memory(files, name)):
        with pytest.raises(InvalidInput, match="name of a memory"):
            verb()


def test_what_others_named_can_be_read_and_what_leads_out_cannot(files: StoreFolder, root: Path) -> None:
    lay(root, {"memory/team/what?": "x", f"memory/team/a.conflict-bbbbbbbb-{RUN}": "other"})
    assert get_memory(files, "team/what?").data == b"x"
    assert get_memory(files, f"team/a.conflict-bbbbbbbb-{RUN}").data == b"other"
    for name in ("team/../../project.yaml", "../x", "team/.git/config"):
        with pytest.raises(InvalidInput):
            get_memory(files, name)


def test_an_accent_may_be_typed_as_a_character_of_its_own(files: StoreFolder) -> None:
    set_memory(files, a_writer(), "team/cafe\u0301", "text")
    assert get_memory(files, "team/cafe\u0301").key == "caf\u00e9"
    assert get_memory(files, "team/caf\u00e9").key == "caf\u00e9"


def test_a_link_is_never_written_through(files: StoreFolder, root: Path, tmp_path: Path) -> None:
    lay(root, {"memory/team/a": "x"})
    (tmp_path / "outside").mkdir()
    (root / "memory/linked").symlink_to(tmp_path / "outside")
    (root / "memory/team/link").symlink_to(tmp_path / "outside/file")
    for name in ("linked/a", "team/link"):
        with pytest.raises((InvalidInput, NotFound)):
            set_memory(files, a_writer(), name, "text")
    assert not any((tmp_path / "outside").iterdir())


def test_what_is_taken_out_is_gone_and_what_is_not_there_is_said(files: StoreFolder, root: Path) -> None:
    set_memory(files, a_writer(), "team/deep/a", "text")
    assert delete_memory(files, "team/deep/a").name == "team/deep/a"
    assert not (root / "memory/team/deep").exists()
    for verb in (get_memory, delete_memory):
        with pytest.raises(NotFound, match="team/deep/a"):
            verb(files, "team/deep/a")
    with pytest.raises(NotFound):
        set_memory(files, a_writer(), "team/deep/a", None, Told(tags=("x",)))


def test_a_text_that_nobody_reads_is_refused(files: StoreFolder) -> None:
    with pytest.raises(TooLarge, match="1024 KiB"):
        set_memory(files, a_writer(), "team/a", "x" * (LARGEST_MEMORY + 1))


def test_a_secret_is_told_of_and_kept(files: StoreFolder) -> None:
    done = set_memory(files, a_writer(), "team/a", "key AKIAABCDEFGHIJKLMNOP")
    assert done.secrets == ("an AWS access key",)
    assert set_memory(files, a_writer(), "team/a", "nothing here").secrets == ()
