"""Thread files that another program, a person or a backup wrote: adopted once, and no turn is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.actions.ports import Finding
from raddle.model.threads.codec import decode_file
from tests.builders import a_line, a_thread, texts
from tests.builders_store import (
    LONG,
    a_store,
    a_writer,
    begin,
    equal,
    files_in,
    is_whole_without_the_file,
    plain_of,
    rewritten_by_the_seed,
)
from tests.file_events import opened


def test_a_rewrite_by_another_program_is_taken_over_once(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store, "hello", "hi", title="ours")
    with store.edit(thread_id) as editor:
        editor.set_draft(None, "unsent")
        editor.write("x/vendor", 7)
    store.append(thread_id, "user", "in the journal only")
    before = store.load(thread_id)
    files = files_in(tmp_path, thread_id)
    rewritten_by_the_seed(files.json, title="theirs", turn="said elsewhere")

    seen = store.load(thread_id)
    assert seen.title == "theirs"
    assert texts(seen.messages) == ["hello", "hi", "in the journal only", "said elsewhere"]
    assert {message.id for message in before.messages} <= {message.id for message in seen.messages}
    assert (seen.drafts, seen.shows("x/vendor")) == (before.drafts, 7)
    assert [finding.what for finding in found] == ["was written by another program"]

    assert equal(a_store(tmp_path, a_writer("aaaaaaaa")).load(thread_id), seen)
    assert decode_file(files.json.read_bytes()).is_as_written
    assert is_whole_without_the_file(tmp_path, files, seen)
    store.append(thread_id, "assistant", "goes on")
    assert texts(store.load(thread_id).messages)[-1] == "goes on"


def test_a_rewrite_that_changed_nothing_changes_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store, "hello", "hi", title="ours")
    store.append(thread_id, "user", "more")
    store.fold(thread_id)
    before = store.load(thread_id)
    rewritten_by_the_seed(files_in(tmp_path, thread_id).json)
    assert equal(store.load(thread_id), before)


def test_an_older_copy_put_back_by_hand_takes_nothing_away(tmp_path: Path) -> None:
    """A file that is ours, whole and old: the lines that were folded into its successor are joined again."""
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store)
    files = files_in(tmp_path, thread_id)
    old = files.json.read_bytes()
    store.append(thread_id, "assistant", "hi")
    store.fold(thread_id)
    store.append(thread_id, "user", "more")
    before = store.load(thread_id)
    files.json.write_bytes(old)
    assert equal(store.load(thread_id), before)
    store.append(thread_id, "user", "still here")
    assert texts(a_store(tmp_path).load(thread_id).messages) == ["hello", "hi", "more", "still here"]


def test_a_copied_or_restored_folder_reads_the_same_and_is_written_quietly(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path / "one")
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    whole = store.load(thread_id)
    folder = tmp_path / "other" / "data" / "threads"
    folder.mkdir(parents=True)
    for file in files_in(tmp_path / "one", thread_id):
        if file.exists():
            (folder / file.name).write_bytes(file.read_bytes())
    other = a_store(tmp_path / "other", report=found.append)
    assert equal(other.load(thread_id), whole)
    with opened.listening():
        other.load(thread_id)
    assert [path for path in opened.paths if path.endswith(".lock")] == []
    other.append(thread_id, "user", "more")
    assert texts(other.load(thread_id).messages) == ["hello", "hi", "more"]
    assert found == []


def test_a_file_that_no_raddle_wrote_opens_as_it_is_and_stays_so_until_it_is_edited(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store, "hello", "hi", title="a title")
    file = files_in(tmp_path, thread_id).json
    rewritten_by_the_seed(file)
    bytes_before = file.read_bytes()
    first, second = store.load(thread_id), a_store(tmp_path).load(thread_id)
    assert equal(first, second)
    assert file.read_bytes() == bytes_before
    store.append(thread_id, "user", "more")
    assert texts(store.load(thread_id).messages) == ["hello", "hi", "more"]
    store.fold(thread_id)
    assert plain_of(file)["stamps"]
    assert texts(store.load(thread_id).messages) == ["hello", "hi", "more"]
    assert found == []


def test_a_title_changed_in_a_text_editor_is_an_edit(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store, title="before")
    store.append(thread_id, "assistant", "hi")
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(file.read_bytes().replace(b'"before"', b'"by hand"'))
    seen = store.load(thread_id)
    assert seen.title == "by hand"
    assert len(seen.registers["title"].writes) == 1
    assert equal(store.load(thread_id), seen)


@pytest.mark.parametrize("is_folded", [False, True])
@pytest.mark.parametrize("by_hand", ["AAAA", "zzzz"])
def test_words_changed_by_hand_are_taken_and_the_good_file_put_back_brings_the_good_ones_back(
    tmp_path: Path, by_hand: str, *, is_folded: bool
) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store, "hello", "good")
    store.append(thread_id, "user", "more")
    if is_folded:
        store.fold(thread_id)
    else:
        store.load(thread_id)
    file = files_in(tmp_path, thread_id).json
    good = file.read_bytes()
    for words, data in ((by_hand, good.replace(b'"good"', f'"{by_hand}"'.encode())), ("good", good)) * 2:
        file.write_bytes(data)
        assert texts(store.load(thread_id).messages)[:3] == ["hello", words, "more"]
        assert texts(a_store(tmp_path).load(thread_id).messages)[:3] == ["hello", words, "more"]
        assert words in plain_of(file)["conversation"]["messages"][1]["content"]
        if is_folded:
            store.append(thread_id, "user", "goes on")
            store.fold(thread_id)
    assert texts(store.load(thread_id).messages) == ["hello", "good", "more", *["goes on"] * (4 * is_folded)]


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_rewrite_of_a_long_thread_before_its_first_fold_loses_no_turn(
    tmp_path: Path, *, is_renamed: bool
) -> None:
    """Its last revision is only a second name, which a program that writes over the file writes over as well."""
    store = a_store(tmp_path)
    thread = a_thread(*a_line(*[LONG] * 40))
    store.save(thread)
    store.append(thread.id, "user", "in the journal only")
    files = files_in(tmp_path, thread.id)
    if is_renamed:
        copy = files.json.with_name("copy")
        copy.write_bytes(files.json.read_bytes())
        rewritten_by_the_seed(copy, title="theirs", turn="said elsewhere")
        copy.replace(files.json)
    else:
        rewritten_by_the_seed(files.json, title="theirs", turn="said elsewhere")
    seen = store.load(thread.id)
    for _ in range(2):
        seen = store.load(thread.id)
        assert seen.title == "theirs"
        assert {"in the journal only", "said elsewhere"} <= set(texts(seen.messages))
        assert texts(seen.messages).count(LONG) == 40
    if is_renamed:
        assert {message.id for message in thread.messages} <= {message.id for message in seen.messages}
    store.append(thread.id, "assistant", "goes on")
    store.fold(thread.id)
    assert "goes on" in texts(store.load(thread.id).messages)
