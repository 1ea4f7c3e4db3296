"""The fold, at work and cut short: at every moment the thread is whole, twice over."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from raddle.actions.ports import Finding
from raddle.adapters.local_store.journal import read_journal
from raddle.model.threads.codec import decode_file
from tests.builders import a_line, a_thread, texts
from tests.builders_store import (
    LONG,
    a_store,
    begin,
    equal,
    files_in,
    grow_old,
    is_whole_without_the_file,
    names_in,
    plain_of,
    rewritten_by_the_seed,
)
from tests.file_events import deaths_of, lives_through, opened, start_child


def test_a_journal_that_outgrew_its_file_is_folded(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    files = files_in(tmp_path, thread_id)
    for number in range(5):
        store.append(thread_id, "user", f"{number} {LONG}")
    assert files.journal.stat().st_size < 2 * len(LONG)
    assert len(plain_of(files.json)["conversation"]["messages"]) == 6
    assert [text.split()[0] for text in texts(store.load(thread_id).messages)] == ["hello", *"01234"]


def test_a_small_thread_folds_seldom(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    for number in range(40):
        store.append(thread_id, "user", f"turn {number}")
    assert len(plain_of(files_in(tmp_path, thread_id).json)["conversation"]["messages"]) == 1


def test_a_long_thread_folds_in_proportion(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread = a_thread(*a_line(*[LONG] * 10))
    store.save(thread)
    for _ in range(8):
        store.append(thread.id, "user", LONG)
    assert len(plain_of(files_in(tmp_path, thread.id).json)["conversation"]["messages"]) == 10
    for _ in range(4):
        store.append(thread.id, "user", LONG)
    assert len(plain_of(files_in(tmp_path, thread.id).json)["conversation"]["messages"]) > 10


def test_the_last_revision_and_its_lines_stay(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    files = files_in(tmp_path, thread_id)
    first = files.json.read_bytes()
    store.append(thread_id, "assistant", "hi")
    assert files.previous.read_bytes() == first
    store.fold(thread_id)
    assert files.previous.read_bytes() == first
    assert len(read_journal(files.previous_journal, thread_id).lines) == 1
    assert files.json.stat().st_nlink == 1
    second = files.json.read_bytes()
    store.append(thread_id, "user", "more")
    store.fold(thread_id)
    assert files.previous.read_bytes() == second


def test_the_thread_is_whole_without_its_file_at_every_moment(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    files = files_in(tmp_path, thread_id)
    steps: list[Callable[[], object]] = [
        lambda: store.append(thread_id, "assistant", "hi"),
        lambda: store.fold(thread_id),
        lambda: store.append(thread_id, "user", LONG),
        lambda: store.append(thread_id, "user", LONG),
        lambda: store.append(thread_id, "user", "more"),
        lambda: store.fold(thread_id, anyway=True),
        lambda: store.fold(thread_id, anyway=True),
        lambda: store.save(a_thread(*a_line("elsewhere"), thread_id=thread_id)),
        files.json.unlink,
        lambda: store.load(thread_id),
        lambda: store.append(thread_id, "user", "and more"),
    ]
    for step in steps:
        step()
        assert is_whole_without_the_file(tmp_path, files, store.load(thread_id))


def test_a_first_append_to_a_long_thread_neither_reads_nor_copies_it(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread = a_thread(*a_line(*[LONG] * 40))
    store.save(thread)
    files = files_in(tmp_path, thread.id)
    with opened.listening():
        store.append(thread.id, "user", "first")
    assert {Path(path).name for path in opened.paths if thread.id in path} == {files.journal.name}
    assert files.previous.samefile(files.json)
    store.append(thread.id, "user", LONG)
    assert len(plain_of(files.json)["conversation"]["messages"]) == 40
    store.fold(thread.id)
    assert not files.previous.samefile(files.json)
    assert is_whole_without_the_file(tmp_path, files, store.load(thread.id))


def test_a_reader_in_whose_midst_a_fold_falls_sees_every_edit(tmp_path: Path) -> None:
    store, other = a_store(tmp_path), a_store(tmp_path)
    thread_id = begin(store)
    for at in range(1, 4):
        store.append(thread_id, "user", f"in time {at}")

        def write_and_fold(at: int = at) -> None:
            other.append(thread_id, "assistant", f"meanwhile {at}")
            other.fold(thread_id)

        with opened.listening(at, write_and_fold):
            seen = store.load(thread_id)
        assert f"in time {at}" in texts(seen.messages)
        assert seen.tree.lost() == []


def test_a_fold_that_dies_anywhere_leaves_the_same_thread(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store)
    store.append(thread_id, "user", "after death 0")
    files = files_in(tmp_path, thread_id)
    deaths = 0
    for death in deaths_of(lambda: store.fold(thread_id, anyway=True)):
        deaths = death
        assert store.ids() == [thread_id]
        whole = store.load(thread_id)
        assert is_whole_without_the_file(tmp_path, files, whole)
        store.append(thread_id, "user", "folded, if the last fold stopped half way")
        store.append(thread_id, "user", f"after death {death}")
        seen = texts(a_store(tmp_path).load(thread_id).messages)
        assert seen[1::2] == [f"after death {number}" for number in range(death + 1)]
    assert deaths > 8
    assert found == []


def test_a_fold_that_stopped_half_way_is_done_with_by_the_next_append(tmp_path: Path) -> None:
    """Until then the file and its last revision are one file, and who writes over it writes over both."""
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    files = files_in(tmp_path, thread_id)
    files.previous.unlink()
    os.link(files.json, files.previous)
    store.append(thread_id, "user", "more")
    assert not files.previous.samefile(files.json)
    rewritten_by_the_seed(files.json, title="theirs")
    seen = store.load(thread_id)
    assert (seen.title, texts(seen.messages)) == ("theirs", ["hello", "hi", "more"])


def test_an_append_that_dies_anywhere_is_there_or_not(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "user", "a first line")
    known = store.load(thread_id)
    for death in deaths_of(lambda: store.append(thread_id, "assistant", "perhaps")):
        seen = store.load(thread_id)
        assert {message.id for message in known.messages} <= {message.id for message in seen.messages}
        store.append(thread_id, "user", f"after death {death}")
        known = store.load(thread_id)
        tip = known.tree.tip()
        assert tip is not None
        assert tip.content == f"after death {death}"
        assert known.tree.lost() == []


def test_a_first_edit_that_dies_anywhere_leaves_the_thread_readable(tmp_path: Path) -> None:
    thread = a_thread(*a_line("hello", "hi"))
    for death in range(1, 40):
        folder = tmp_path / str(death)
        store = a_store(folder)
        store.save(thread)
        lived = lives_through(death, lambda store=store: store.append(thread.id, "user", "more"))  # type: ignore[misc]
        assert texts(store.load(thread.id).messages)[:2] == ["hello", "hi"]
        store.append(thread.id, "user", "later")
        assert is_whole_without_the_file(folder, files_in(folder, thread.id), store.load(thread.id))
        if lived:
            return
    raise AssertionError("it never ends")


def test_a_removal_that_dies_anywhere_can_be_asked_for_again(tmp_path: Path) -> None:
    for death in range(1, 40):
        store = a_store(tmp_path / str(death))
        thread_id = begin(store)
        store.append(thread_id, "assistant", "hi")
        store.fold(thread_id)
        lived = lives_through(death, lambda store=store, name=thread_id: store.delete_files(name))  # type: ignore[misc]
        left = store.ids()
        assert left == [] or (left == [thread_id] and not lived)
        assert store.delete_files(thread_id) == bool(left)
        assert names_in(tmp_path / str(death) / "data" / "threads") == []
        if lived:
            return
    raise AssertionError("it never ends")


def test_mending_that_dies_anywhere_is_mended(tmp_path: Path) -> None:
    for death in range(1, 60):
        folder = tmp_path / str(death)
        store = a_store(folder)
        thread_id = begin(store)
        store.append(thread_id, "assistant", "hi")
        whole = store.load(thread_id)
        file = files_in(folder, thread_id).json
        file.write_bytes(b"{ torn")
        grow_old(file)
        lived = lives_through(death, lambda store=store, name=thread_id: store.load(name))  # type: ignore[misc]
        assert equal(store.load(thread_id), whole)
        assert decode_file(file.read_bytes()).id == thread_id
        if lived:
            return
    raise AssertionError("it never ends")


def test_what_a_killed_process_left_half_made_is_swept_when_it_is_old(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "threads"
    folder.mkdir(parents=True)
    old, young = folder / ".raddle-old.tmp", folder / ".raddle-young.tmp"
    for path in (old, young):
        path.write_bytes(b"half")
    grow_old(old)
    begin(a_store(tmp_path))
    assert not old.exists()
    assert young.exists()


def _append_many(folder: Path, thread_id: str, name: str) -> None:
    store = a_store(folder)
    for number in range(40):
        store.append(thread_id, "user", f"{name} {number} {'x' * 2_000}")


def test_processes_that_append_at_once_lose_nothing_and_fork_nothing(tmp_path: Path) -> None:
    thread_id = begin(a_store(tmp_path))
    writers = [start_child(_append_many, tmp_path, thread_id, name) for name in ("one", "other")]
    for writer in writers:
        writer.join()
    seen = a_store(tmp_path).load(thread_id)
    said = {" ".join(text.split()[:2]) for text in texts(seen.messages)}
    assert said == {"hello", *(f"{name} {number}" for name in ("one", "other") for number in range(40))}
    assert len(seen.tree.heads()) == 1
    assert len(seen.tree.branches()) == 1
