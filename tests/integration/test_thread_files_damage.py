"""Damaged thread files and disks that refuse: the last good revision is read, nothing is half-written."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from raddle.actions.ports import Finding
from raddle.model.errors import BrokenFormat, FormatError, NewerFormat, OlderFormat, StorageError
from raddle.model.threads.codec import encode_thread
from tests.builders import a_line, a_thread, texts
from tests.builders_store import (
    LONG,
    a_store,
    begin,
    equal,
    files_in,
    grow_old,
    names_in,
    plain_of,
    rewritten_by_the_seed,
)
from tests.file_events import opened, start_child


def _tear(data: bytes) -> bytes:
    return data[: len(data) // 2]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "torn": _tear,
    "cut before its end": lambda data: data[:-3],
    "zeros": lambda data: b"\0" * len(data),
    "empty": lambda _: b"",
    "zeros at its end": lambda data: _tear(data) + b"\0" * (len(data) - len(data) // 2),
    "zeros inside a text": lambda data: data.replace(b"hello", b"\0" * 5),
    "a torn name": lambda data: data.replace(b'"content"', b'"con\0\0\0\0"'),
    "another kind of file": lambda _: b"\x7fELF\x02\x01",
    "no thread": lambda _: b'{"hello": 1}',
    "a list": lambda _: b"[]",
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("is_folded", [False, True])
def test_a_damaged_file_is_set_aside_and_the_thread_is_read_from_its_last_revision(
    tmp_path: Path, kind: str, *, is_folded: bool
) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store, "hello", "hi", title="a title")
    store.append(thread_id, "user", "before the fold")
    if is_folded:
        store.fold(thread_id)
    store.append(thread_id, "assistant", "after it")
    whole = store.load(thread_id)
    files = files_in(tmp_path, thread_id)
    damaged = DAMAGE[kind](files.json.read_bytes())
    files.json.write_bytes(damaged)
    grow_old(files.json)

    assert equal(store.load(thread_id), whole)
    kept = files.json.with_name(f"{files.json.name}.broken-1")
    assert kept.read_bytes() == damaged
    assert kept.with_name(f"{kept.name}.reason").read_text(encoding="utf-8").strip() == found[0].what
    assert [finding.path for finding in found] == [str(files.json)] * 2
    assert found[0].done == f"set aside as {kept.name}"
    assert "restored" in found[1].done
    assert store.ids() == [thread_id]

    found.clear()
    assert equal(a_store(tmp_path, report=found.append).load(thread_id), whole)
    store.append(thread_id, "user", "goes on")
    assert texts(store.load(thread_id).messages)[-1] == "goes on"
    assert found == []


def test_a_file_damaged_again_is_set_aside_beside_the_first(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    whole = store.load(thread_id)
    file = files_in(tmp_path, thread_id).json
    for damage in (b"first", b"second"):
        file.write_bytes(damage)
        grow_old(file)
        assert equal(store.load(thread_id), whole)
    kept = [file.with_name(f"{file.name}.broken-{number}").read_bytes() for number in (1, 2)]
    assert kept == [b"first", b"second"]


def test_where_nothing_is_left_the_error_names_what_was_set_aside(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread = a_thread(*a_line("hello"))
    store.import_many([(thread.id, encode_thread(thread))])
    file = files_in(tmp_path, thread.id).json
    file.write_bytes(b"{ torn")
    grow_old(file)
    for _ in range(2):
        with pytest.raises(BrokenFormat) as error:
            store.load(thread.id)
        assert str(file.with_name(f"{file.name}.broken-1")) in error.value.hint
    assert store.ids() == []
    store.import_many([(thread.id, encode_thread(thread))])
    assert equal(store.load(thread.id), thread)


def test_a_damaged_line_costs_that_edit_and_is_named(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store)
    for tag in ("one", "two", "three"):
        with store.edit(thread_id) as editor:
            editor.tag(tag)
    journal = files_in(tmp_path, thread_id).journal
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + lines[1].replace(b"two", b"2wo") + lines[2])
    assert store.load(thread_id).tags == ["one", "three"]
    assert [(finding.path, finding.what.split(":")[0]) for finding in found] == [
        (str(journal), "line 2 is damaged (the checksum does not fit)")
    ]
    store.append(thread_id, "assistant", "hi")
    assert store.fold(thread_id)
    assert b"2wo" in journal.with_name(f"{journal.name}.broken-1").read_bytes()
    found.clear()
    assert store.load(thread_id).tags == ["one", "three"]
    assert found == []


def test_bytes_that_are_not_utf_8_cost_a_character_not_the_thread(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store, "caf\u00e9")
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(file.read_bytes().replace("\u00e9".encode(), b"\xe9"))
    assert texts(store.load(thread_id).messages) == ["caf\ufffd"]
    assert [finding.path for finding in found] == [str(file)]


def test_a_file_that_another_program_is_just_writing_is_waited_for(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store, title="ours")
    store.append(thread_id, "assistant", "hi")
    file = files_in(tmp_path, thread_id).json
    rewritten_by_the_seed(file, title="theirs")
    theirs = file.read_bytes()
    file.write_bytes(theirs[:100])
    with opened.listening(7, lambda: file.write_bytes(theirs)):
        seen = store.load(thread_id)
    assert len(opened.paths) > 7
    assert (seen.title, texts(seen.messages)) == ("theirs", ["hello", "hi"])
    assert [finding.what for finding in found] == ["was written by another program"]


@pytest.mark.parametrize(
    ("found_format", "error"), [(2, NewerFormat), (0, OlderFormat), ("old", OlderFormat)]
)
def test_a_file_of_another_format_is_an_error_and_is_not_touched(
    tmp_path: Path, found_format: object, error: type[FormatError]
) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(msgspec.json.encode(plain_of(file) | {"format": found_format}))
    before = {path.name: path.read_bytes() for path in file.parent.iterdir()}
    for verb in (
        lambda: store.load(thread_id),
        lambda: store.append(thread_id, "user", "no"),
        lambda: store.fold(thread_id),
        lambda: store.save(a_thread(*a_line("x"), thread_id=thread_id)),
    ):
        with pytest.raises(error):
            verb()
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == before


def test_a_file_under_another_threads_name_is_named_and_left(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    other = "T-018e2b3c-0000-7000-8000-000000000000"
    file, copy = files_in(tmp_path, thread_id).json, files_in(tmp_path, other).json
    copy.write_bytes(file.read_bytes())
    with pytest.raises(FormatError, match=thread_id):
        store.load(other)
    assert copy.read_bytes() == file.read_bytes()


def test_a_full_disk_is_one_error_that_names_the_path_and_leaves_the_thread(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    before = store.load(thread_id)
    files = files_in(tmp_path, thread_id)

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))
        for change, path in (
            (lambda: store.append(thread_id, "user", LONG), files.journal),
            (lambda: store.save(a_thread(*a_line(LONG))), files.json.parent),
        ):
            try:
                change()
            except StorageError as error:
                if str(path) in error.message:
                    continue
            os._exit(1)
        os._exit(0)

    process = start_child(child)
    process.join()
    assert process.exitcode == 0
    assert equal(store.load(thread_id), before)
    assert names_in(files.json.parent) == ["journal", "json", "prev"]
    store.append(thread_id, "user", "room again")


def test_half_a_character_is_stored_as_a_mark_and_told(tmp_path: Path) -> None:
    """Arguments of a command that are not UTF-8 reach Python as such halves."""
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store, "caf\udce9")
    store.append(thread_id, "assistant", "na\udcefve")
    store.append(thread_id, "user", "na\udcefve again", extra={"\udcff": ["\udcff"]})
    seen = store.load(thread_id)
    assert texts(seen.messages) == ["caf\ufffd", "na\ufffdve", "na\ufffdve again"]
    assert seen.messages[2].extra == {"\ufffd": ["\ufffd"]}
    assert [finding.done for finding in found] == ["stored as U+FFFD"] * 3


def test_a_store_that_cannot_be_locked_is_read_as_it_is(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    whole = store.load(thread_id)
    files = files_in(tmp_path, thread_id)
    files.json.write_bytes(b"{ torn")
    grow_old(files.json)
    locks = tmp_path / "data" / "locks"
    locks.rename(tmp_path / "data" / "elsewhere")
    locks.write_bytes(b"not a folder")
    before = {path.name: path.read_bytes() for path in files.json.parent.iterdir()}
    assert equal(a_store(tmp_path, report=found.append).load(thread_id), whole)
    assert {path.name: path.read_bytes() for path in files.json.parent.iterdir()} == before
    assert [finding.done for finding in found] == ["", ""]
    with pytest.raises(StorageError):
        store.append(thread_id, "user", "more")


def test_a_fold_that_fails_does_not_fail_the_append(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    files = files_in(tmp_path, thread_id)
    files.previous.unlink()
    files.previous.mkdir()  # nothing can be put in its place
    store.append(thread_id, "user", LONG)
    store.append(thread_id, "user", LONG)
    assert [finding.path for finding in found] == [str(files.journal)]
    assert len(store.load(thread_id).messages) == 4


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "threads").write_bytes(b"a file")
    with pytest.raises(StorageError, match="threads"):
        begin(a_store(tmp_path))


def test_an_index_that_cannot_be_told_does_not_fail_the_write(tmp_path: Path) -> None:
    found: list[Finding] = []

    def refuse(_: str) -> None:
        raise StorageError("the list is full")

    store = a_store(tmp_path, changed=refuse, report=found.append)
    thread_id = begin(store)
    assert texts(store.load(thread_id).messages) == ["hello"]
    assert ["the list is full" in finding.what for finding in found] == [True]
