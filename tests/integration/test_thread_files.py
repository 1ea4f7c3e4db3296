"""The thread files: where they lie, what an append costs, what comes in many and what goes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from raddle.adapters.local_store.journal import read_journal
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.model.errors import NotFound
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Attachment
from tests.builders import a_line, a_thread, texts
from tests.builders_store import (
    LONG,
    a_store,
    a_writer,
    begin,
    equal,
    files_in,
    grow_old,
    paths_in,
    plain_of,
    rewritten_by_the_seed,
)
from tests.file_events import opened


def test_files_are_private_readable_and_where_they_should_be(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store, "hello", title="Größe")
    store.append(thread_id, "assistant", "hi")
    files = files_in(tmp_path, thread_id)
    assert files.json.parent == tmp_path / "data" / "threads"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (files.json, files.journal)] == [0o600, 0o600]
    assert stat.S_IMODE(files.json.parent.stat().st_mode) == 0o700
    assert "Größe" in files.json.read_text(encoding="utf-8")
    assert plain_of(files.json)["conversation"]["messages"][0]["content"] == "hello"


def test_an_append_writes_a_line_and_leaves_the_file_alone(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    files = files_in(tmp_path, thread_id)
    before = files.json.read_bytes()
    for number in range(3):
        store.append(thread_id, "assistant", f"turn {number}")
    assert files.json.read_bytes() == before
    assert len(read_journal(files.journal, thread_id).lines) == 3


def test_an_append_reads_only_the_end_of_the_journal_and_writes_as_little_for_any_length(
    tmp_path: Path,
) -> None:
    grown: list[int] = []
    for length in (2, 2_000):
        store = a_store(tmp_path / str(length))
        thread = a_thread(*a_line(*["words"] * length))
        store.save(thread)
        store.append(thread.id, "user", "first")
        files = files_in(tmp_path / str(length), thread.id)
        size = files.journal.stat().st_size
        with opened.listening():
            store.append(thread.id, "assistant", "second")
        assert {Path(path).name for path in opened.paths if thread.id in path} == {files.journal.name}
        grown.append(files.journal.stat().st_size - size)
    assert abs(grown[0] - grown[1]) < 30  # the digits of a longer thread's version and size


def test_temporary_files_are_taken_over_or_joined(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    there = a_thread(*a_line("one"))
    store.save(there)
    new = a_thread(*a_line("three"), thread_id="T-018e2b3c-0000-7000-8000-000000000000")
    folder = tmp_path / "data" / "threads"
    prepared = [(a_thread(*a_line("one", "two")), "a"), (new, "b")]
    for thread, name in prepared:
        (folder / f".raddle-{name}.tmp").write_bytes(encode_thread(thread))
    placed = store.import_many((thread.id, str(folder / f".raddle-{name}.tmp")) for thread, name in prepared)
    assert [one.is_new for one in placed] == [False, True]
    assert texts(store.load(there.id).messages) == ["one", "two"]
    assert equal(store.load(new.id), new)
    assert [path.name for path in folder.iterdir() if path.suffix == ".tmp"] == []


def test_a_purge_of_words_leaves_none_of_them_on_the_disk(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store, "hello", "a secret")
    store.append(thread_id, "user", "another secret")
    store.fold(thread_id)
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(file.read_bytes()[:-9])
    grow_old(file)
    with store.edit(thread_id) as editor:
        editor.purge([message.id for message in editor.thread.tree if "secret" in message.content])
    store.scrub(thread_id)
    assert [path for path in file.parent.iterdir() if b"secret" in path.read_bytes()] == []
    assert texts(store.load(thread_id).messages) == ["hello", "", ""]


@pytest.mark.parametrize("way", ["a delta", "a file"])
def test_words_that_were_erased_elsewhere_are_in_no_file_and_that_is_told_once(
    tmp_path: Path, way: str
) -> None:
    told: list[tuple[str, frozenset[str]]] = []
    store = a_store(tmp_path, erased=lambda *each: told.append(each))
    thread_id = begin(store, "kept", "thats kept too")
    attached = Attachment(sha256="a" * 64, name="glockenspiel.png")
    said = store.append(thread_id, "user", "glockenspiel " + LONG, attachments=(attached,))
    store.append(thread_id, "assistant", "kept as well " + LONG)
    folder = paths_in(tmp_path).threads_dir
    assert len(list(folder.iterdir())) > 1, "a journal and an earlier revision, which hold the words"
    stub = Delta(messages=(said.purged(),))
    for _ in range(2):
        if way == "a delta":
            store.join(thread_id, stub)
        else:
            elsewhere = store.load(thread_id)
            elsewhere.join(stub)
            store.import_many([(thread_id, encode_thread(elsewhere))])
    assert told == [(thread_id, frozenset({"a" * 64}))]
    assert all(b"glockenspiel" not in path.read_bytes() for path in folder.iterdir())
    assert [turn.content[:4] for turn in store.load(thread_id).tree] == ["kept", "that", "", "kept"]


def test_removing_a_thread_removes_all_of_it(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id, other = begin(store), begin(store)
    for name in (thread_id, other):
        store.append(name, "assistant", "hi")
        store.fold(name)
        store.append(name, "user", "more")
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(b"{ torn")
    grow_old(file)
    store.load(thread_id)
    store.delete_files(thread_id)
    left = {path.name for path in file.parent.iterdir()}
    assert {name for name in left if name.startswith(thread_id)} == set()
    assert texts(store.load(other).messages) == ["hello", "hi", "more"]


def test_a_sweep_sees_every_change(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    seen = [store.revisions()]
    for change in (
        lambda: store.append(thread_id, "assistant", "hi"),
        lambda: store.append(thread_id, "user", "more"),
        lambda: store.fold(thread_id),
        lambda: rewritten_by_the_seed(files_in(tmp_path, thread_id).json, title="theirs"),
    ):
        change()
        assert store.revisions() not in seen
        seen.append(store.revisions())
    store.load(thread_id)
    assert store.revisions() != seen[-1]
    settled = store.revisions()
    store.load(thread_id)
    assert store.revisions() == settled


def test_looking_at_an_empty_place_makes_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    assert store.ids() == []
    assert store.revisions() == {}
    with pytest.raises(NotFound):
        store.resolve("T-0")
    assert not (tmp_path / "data" / "threads").exists()


def test_names_that_are_no_thread_are_not_listed(tmp_path: Path) -> None:
    store: ThreadFiles = a_store(tmp_path)
    thread_id = begin(store)
    folder = files_in(tmp_path, thread_id).json.parent
    for name in (
        "notes.json",
        f"{thread_id}.json.bak",
        f"copy of {thread_id}.json",
        "T-1.json",
        f"{thread_id[:-1]}G.json",
    ):
        (folder / name).write_bytes(b"{}")
    assert store.ids() == [thread_id]


def test_a_device_that_takes_over_a_folder_appends_as_cheaply_and_leaves_the_others_draft(
    tmp_path: Path,
) -> None:
    one, other = a_store(tmp_path), a_store(tmp_path, a_writer("bbbbbbbb"))
    thread_id = begin(one)
    with one.edit(thread_id) as editor:
        editor.set_draft(None, "one's")
    other.append(thread_id, "assistant", "hi")
    with opened.listening():
        other.append(thread_id, "user", "more")
    files = files_in(tmp_path, thread_id)
    assert {Path(path).name for path in opened.paths if thread_id in path} == {files.journal.name}
    assert other.load(thread_id).drafts == {"aaaaaaaa": {"root": "one's"}}
