"""Commands that keep threads in order, take them away and write them out."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from raddle.config import load_config
from tests.command_line import done, new, raddle, terminal


def test_a_title_is_set_and_taken_away() -> None:
    thread = new("hello\nand more", "--title", "Greetings")
    assert done("rename", thread, "  The\nlock ").out == "The lock\n"
    assert done("rename", thread, "Lock", "--json").json == {"id": thread, "title": "Lock"}
    assert done("rename", thread, " ").out == "hello\n"
    assert done("list", "--json").json[0]["title"] == "hello"


def test_tags_are_added_taken_away_and_printed() -> None:
    thread = new("hello")
    assert done("tag", thread).out == "(no tags)\n"
    assert done("tag", thread, "bug", "#later", "two words").out == "#bug #later #two words\n"
    assert done("tag", thread, "-r", "bug", "--remove", "later", "--json").json == {
        "id": thread,
        "tags": ["two words"],
    }
    answer = done("tag", thread, "-r", "never there", "-r", "two  words", "new")
    assert (answer.out, answer.err) == ("#new\n", "note: it had no tag #never there\n")
    assert raddle("tag", thread, " ").code == 2


@pytest.mark.parametrize(
    ("command", "field"), [("pin", "is_pinned"), ("archive", "is_archived"), ("private", "is_private")]
)
def test_a_mark_is_set_twice_and_taken_back(command: str, field: str) -> None:
    thread = new("hello")
    for _ in range(2):
        assert done(command, thread, "--json").json[field] is True
    assert done(command, thread).out
    assert done(command, thread, "--off", "--json").json[field] is False
    assert done("show", thread, "--json").json.get(field, False) is False


def test_what_was_private_stays_for_your_eyes_when_it_may_leave_again() -> None:
    thread = new("hello")
    assert done("private", thread, "--json").json["visibility"] == "private"
    assert done("private", thread, "--off", "--json").json["visibility"] == "private"


def test_private_without_an_id_starts_a_private_conversation() -> None:
    made = done("private", "--json", stdin=b"between us\n").json
    assert made["is_private"] is True
    assert done("show", made["id"], "--json").json["is_private"] is True
    assert raddle("private", stdin=b"").code == 2
    assert raddle("private", "--off").code == 2


def test_several_threads_are_deleted_and_restored_at_once() -> None:
    one, other = new("one"), new("other")
    assert done("delete", one, other, one, "--json").json == {"deleted": [one, other]}
    assert done("list", "--json").json == []
    assert done("restore", one, other, "--json").json == {"restored": [one, other]}
    assert done("restore", one).out == "restored 0 threads\n"
    assert len(done("list", "--json").json) == 2


def test_nothing_is_deleted_where_one_of_them_is_unknown() -> None:
    thread = new("one")
    assert raddle("delete", thread, "T-018e2b3c").code == 3
    assert len(done("list", "--json").json) == 1


def test_a_turn_that_is_added_brings_a_deleted_thread_back() -> None:
    thread = new("one")
    done("delete", thread)
    done("reply", thread, "two")
    assert len(done("list", "--json").json) == 1


def test_a_purge_erases_every_byte() -> None:
    thread = new("zanzibar")
    done("reply", thread, "more of zanzibar")
    done("search", "zanzibar")
    answer = done("purge", thread, "-y", "--json").json
    assert answer == {"id": thread, "purged": True, "blobs": 0, "from_server": False}
    assert raddle("show", thread).code == 3
    assert done("search", "zanzibar", "--json").json["total_threads"] == 0
    assert bytes_in(load_config().data_dir, b"zanzibar") == []
    assert bytes_in(load_config().cache_dir, b"zanzibar") == []


def test_a_purge_of_removed_turns_erases_their_words_and_keeps_the_rest() -> None:
    thread = new("keep this")
    done("reply", thread, "zanzibar")
    done("search", "zanzibar")
    done("undo", thread)
    assert done("purge", thread, "--removed", "-y", "--json").json == {"id": thread, "purged_messages": 1}
    assert bytes_in(load_config().data_dir, b"zanzibar") == []
    assert bytes_in(load_config().cache_dir, b"zanzibar") == []
    assert "keep this" in done("show", thread).out
    assert "(erased)" in done("show", thread, "--removed").out


def test_a_purge_names_the_threads_that_keep_copies() -> None:
    thread = new("zanzibar")
    done("reply", thread, "more of zanzibar")
    copy = done("fork", thread).out.strip()
    done("undo", thread)
    told = done("purge", thread, "--removed", "-y", "--json").err
    assert copy.startswith(told.split()[-1])
    answer = done("purge", thread, "-y")
    assert answer.err.startswith("note: copies of these turns stay in 1 other thread: T-")
    assert done("purge", copy, "-y").err == ""


def bytes_in(folder: Path, needle: bytes) -> list[Path]:
    """The files below a folder that hold these bytes."""
    return [path for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes()]


def test_a_purge_asks_nobody_and_erases_nothing_without_a_terminal() -> None:
    thread = new("hello")
    answer = raddle("purge", thread, stdin=b"y\n")
    assert answer.code == 2
    assert "-y" in answer.err
    assert len(done("list", "--json").json) == 1


@pytest.mark.parametrize(("keys", "is_gone"), [("n\n", False), ("\n", False), ("y\n", True)])
def test_a_purge_asks_the_person_at_the_terminal(keys: str, is_gone: bool) -> None:
    thread = new("hello", "--title", "Greetings")
    with terminal("purge", thread) as screen:
        screen.wait_for("[y/N]")
        assert "'Greetings' (1 message)" in screen.shown
        screen.type(keys)
        assert screen.end() == 0
    assert (done("list", "--json").json == []) is is_gone


@pytest.mark.parametrize("kind", ["markdown", "text", "json", "jsonl", "loom", "quorum"])
@pytest.mark.parametrize("is_branch", [False, True])
def test_a_thread_is_written_out_in_every_form(kind: str, is_branch: bool, tmp_path: Path) -> None:
    thread = new("a question")
    root = done("show", thread, "--json").json["conversation"]["messages"][0]["id"]
    done("reply", thread, "first answer", "--role", "assistant")
    other = done("reply", thread, "second answer", "--role", "assistant", "--parent", root).out.strip()
    words = ["export", thread, "--format", kind, *(["--branch", other] if is_branch else [])]
    data = done(*words).data
    assert b"a question" in data
    assert b"second answer" in data
    if is_branch:
        assert b"first answer" not in data
    file = tmp_path / "out"
    assert f"to {file}" in done(*words, "-o", str(file)).err
    assert file.read_bytes() == data
    assert done(*words, "-o", "-").data == data
    if kind == "jsonl":
        assert [json.loads(line) for line in data.splitlines()]
    elif kind in {"json", "loom", "quorum"}:
        assert json.loads(data)


def test_an_export_as_json_is_the_thread_file() -> None:
    thread = new("hello")
    assert done("export", thread, "--json").data == done("show", thread, "--json").data


def test_an_export_goes_through_a_link_and_leaves_a_device_what_it_is(tmp_path: Path) -> None:
    thread = new("hello")
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    done("export", thread, "-o", str(link))
    assert link.is_symlink()
    assert b"hello" in target.read_bytes()
    done("export", thread, "-o", os.devnull)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.parametrize(("kind", "suffix"), [("markdown", ".md"), ("text", ".txt"), ("loom", ".json")])
@pytest.mark.parametrize("folder", ["there", "not/there/", "there/"])
def test_an_export_into_a_folder_is_a_file_named_for_its_thread(
    kind: str, suffix: str, folder: str, tmp_path: Path
) -> None:
    thread = new("hello")
    (tmp_path / "there").mkdir()
    told = done("export", thread, "--format", kind, "-o", f"{tmp_path}/{folder}").err
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file == tmp_path / folder / f"{thread}{suffix}"
    assert f"to {file}" in told
    assert b"hello" in file.read_bytes()


def test_an_export_asked_for_in_two_forms_is_refused() -> None:
    thread = new("hello")
    answer = raddle("export", thread, "--json", "--format", "text")
    assert (answer.code, answer.data) == (2, b"")
    assert done("export", thread, "--json", "--format", "json").data


@pytest.mark.parametrize("path", ["no/such/folder/file", "folder/file/"])
def test_an_export_that_cannot_be_written_is_one_error(path: str, tmp_path: Path) -> None:
    thread = new("hello")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").touch()
    answer = raddle("export", thread, "-o", f"{tmp_path}/{path}")
    assert answer.code == 6
    assert len(answer.err.splitlines()) == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
