"""The doctor of the thread files names what is wrong, changes nothing unasked, and mends what it can."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from raddle.actions.ports import Finding
from raddle.adapters.files import NewFile
from raddle.adapters.local_store.doctor import Beside, examine
from raddle.adapters.local_store.journal import read_journal
from raddle.adapters.locks import LockFiles
from raddle.model.errors import BrokenFormat
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta
from tests.builders import a_line, a_message, a_thread, texts
from tests.builders_store import a_store, a_writer, begin, equal, files_in, grow_old, paths_in
from tests.modes import bound_by_modes

NOTHING = Beside()
OTHER_ID = "T-018e2b3c-0000-7000-8000-000000000000"


def doctor(
    folder: Path, *, fix: bool = False, changed: list[str] | None = None, beside: Beside = NOTHING
) -> list[Finding]:
    paths = paths_in(folder)
    told: list[str] = [] if changed is None else changed
    return examine(paths, LockFiles(paths.locks_dir), a_writer(), fix=fix, changed=told.append, beside=beside)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths_in(folder).threads_dir.iterdir()}


def test_a_healthy_folder_has_nothing_to_say(tmp_path: Path) -> None:
    assert doctor(tmp_path) == doctor(tmp_path, fix=True) == []
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    store.fold(thread_id)
    store.append(thread_id, "user", "more")
    store.save(a_thread(*a_line("imported"), thread_id=OTHER_ID))
    assert doctor(tmp_path) == []


def test_a_doctor_who_fixes_folds_the_journals(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    assert doctor(tmp_path, fix=True) == []
    assert not read_journal(files_in(tmp_path, thread_id).journal, thread_id).has_edits
    assert texts(store.load(thread_id).messages) == ["hello", "hi"]


def damage(folder: Path, kind: str) -> tuple[str, str]:
    """Do it; (id of the thread, name of the file that a doctor should name)."""
    store = a_store(folder)
    thread_id = begin(store, "hello")
    for turn in ("one", "two", "three"):
        store.append(thread_id, "user", turn)
    files = files_in(folder, thread_id)
    if kind == "torn file":
        files.json.write_bytes(files.json.read_bytes()[:-9])
        grow_old(files.json)
        return thread_id, files.json.name
    if kind == "no file":
        files.json.unlink()
        return thread_id, files.json.name
    if kind == "torn journal":
        with files.journal.open("ab") as file:
            file.write(b"1234 {")
        return thread_id, files.journal.name
    if kind == "damaged line":
        data = files.journal.read_bytes()
        files.journal.write_bytes(data.replace(b'"two"', b'"TWO"'))
        return thread_id, files.journal.name
    store.fold(thread_id)
    store.append(thread_id, "user", "four")
    files.previous.write_bytes(b"\0" * 100)
    return thread_id, files.previous.name


KINDS = ("torn file", "no file", "torn journal", "damaged line", "damaged revision")


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_named_and_left_until_somebody_asks_to_fix_it(tmp_path: Path, kind: str) -> None:
    _, name = damage(tmp_path, kind)
    before = contents(tmp_path)
    found = doctor(tmp_path)
    assert name in {Path(finding.path).name for finding in found}
    assert [finding.done for finding in found] == [""] * len(found)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_mended_and_each_mending_is_told(tmp_path: Path, kind: str) -> None:
    thread_id, name = damage(tmp_path, kind)
    told: list[str] = []
    found = doctor(tmp_path, fix=True, changed=told)
    assert name in {Path(finding.path).name for finding in found}
    assert [finding for finding in found if not finding.done] == []
    left = doctor(tmp_path)
    assert [finding for finding in left if "set aside" not in finding.what] == []
    turns = texts(a_store(tmp_path).load(thread_id).messages)
    assert turns[:2] == ["hello", "one"]
    assert ("two" in turns) == (kind != "damaged line")


def test_what_was_set_aside_is_a_note_with_its_reason_once_the_thread_can_be_read(tmp_path: Path) -> None:
    damage(tmp_path, "torn file")
    doctor(tmp_path, fix=True)
    first, second = doctor(tmp_path), doctor(tmp_path, fix=True)
    assert first == second
    assert [Path(finding.path).suffix for finding in first] == [".broken-1"]
    assert first[0].what.startswith("was set aside: not JSON")
    assert "can be read" in first[0].done


def test_what_was_set_aside_is_a_fault_with_what_to_do_while_its_thread_lacks_it(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store, "hello")
    store.append(thread_id, "user", "more")
    files = files_in(tmp_path, thread_id)
    for file in (files.json, files.previous):
        file.write_bytes(b"\0" * 100)
        grow_old(file)
    for _ in range(2):
        left = [finding for finding in doctor(tmp_path, fix=True) if not finding.done]
        assert [Path(finding.path).suffix for finding in left] == [".broken-1"] * 2
        assert all(f"`raddle purge {thread_id}` removes" in finding.what for finding in left)
    assert texts(store.load(thread_id).messages) == ["more"]
    for path in files.json.parent.glob("*.broken-*"):
        path.unlink()
    assert doctor(tmp_path) == []


def test_where_nothing_may_be_written_every_finding_says_why_it_is_left(tmp_path: Path) -> None:
    thread_id, _ = damage(tmp_path, "no file")
    healthy = begin(a_store(tmp_path))
    a_store(tmp_path).append(healthy, "assistant", "hi")
    a_store(tmp_path).fold(healthy)
    folder = paths_in(tmp_path).threads_dir

    def look() -> None:
        found = doctor(tmp_path, fix=True)
        assert found
        assert all(thread_id in finding.path for finding in found)
        assert {finding.done for finding in found} == {""}
        assert all("permission denied" in finding.failed for finding in found)

    for path in (paths_in(tmp_path).locks_dir, folder):
        path.chmod(0o500)
    for path in paths_in(tmp_path).locks_dir.iterdir():
        path.chmod(0o400)
    try:
        bound_by_modes(look)
    finally:
        for path in (paths_in(tmp_path).locks_dir, folder):
            path.chmod(0o700)


def test_lost_messages_become_root_turns(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    lost = a_thread(
        *a_line("hello"),
        a_message("m5", "orphan", parent_id="gone", ts="2026-11-30T12:01:00Z"),
        a_message("m6", "under it", parent_id="m5", ts="2026-11-30T12:02:00Z", branch_id="m5"),
        a_message("m7", "round", parent_id="m8", ts="2026-11-30T12:03:00Z"),
        a_message("m8", "and round", parent_id="m7", ts="2026-11-30T12:04:00Z"),
    )
    store.save(lost)
    found = doctor(tmp_path)
    assert [finding.what.split(":")[0] for finding in found] == [
        "4 messages have no place in the tree (no parent, a circle, an id twice)"
    ]
    assert "m5, m7" in found[0].what

    told: list[str] = []
    assert [finding.done for finding in doctor(tmp_path, fix=True, changed=told)] == ["put right"]
    seen = store.load(lost.id)
    assert seen.tree.lost() == []
    assert [message.id for message in seen.tree.children(None)] == ["m1", "m5", "m7"]
    assert texts(seen.tree.path_to_root("m6")) == ["orphan", "under it"]
    assert set(told) == {lost.id}
    assert doctor(tmp_path) == []
    store.join(lost.id, Delta(messages=tuple(lost.messages)))
    assert store.load(lost.id).tree.lost() == []


def test_two_messages_of_one_id_are_both_kept_and_named(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread = a_thread(*a_line("hello", "hi"))
    data = encode_thread(thread).replace(b'"id": "m2"', b'"id": "m1"')
    store.import_many([(thread.id, data)])
    assert sorted(texts(store.load(thread.id).messages)) == ["hello", "hi"]
    found = doctor(tmp_path)
    assert any("has the id of an earlier one" in finding.what for finding in found)
    doctor(tmp_path, fix=True)
    seen = store.load(thread.id)
    assert texts(seen.messages) == ["hello", "hi"]
    assert seen.messages[1].parent_id == "m1"
    assert doctor(tmp_path) == []


def test_a_second_file_of_one_thread_is_named_and_left(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    copy = files_in(tmp_path, OTHER_ID).json
    copy.write_bytes(files_in(tmp_path, thread_id).json.read_bytes())
    for fix in (False, True):
        found = doctor(tmp_path, fix=fix)
        assert [(finding.path, finding.done) for finding in found] == [(str(copy), "")]
        assert thread_id in found[0].what
    assert equal(store.load(thread_id), a_store(tmp_path).load(thread_id))


def test_a_newer_raddles_file_is_named_and_left(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(file.read_bytes().replace(b'"format": 1', b'"format": 9'))
    before = file.read_bytes()
    assert [Path(finding.path).name for finding in doctor(tmp_path, fix=True)] == [file.name]
    assert file.read_bytes() == before


def test_half_made_files_of_killed_processes_are_named_and_removed(tmp_path: Path) -> None:
    begin(a_store(tmp_path))
    folder = paths_in(tmp_path).threads_dir
    old, young = folder / ".raddle-old.tmp", folder / ".raddle-young.tmp"
    for path in (old, young):
        path.write_bytes(b"half")
    grow_old(old)
    (finding,) = doctor(tmp_path)
    assert (finding.path, finding.done) == (str(old), "the next import removes it"), "that needs nobody"
    assert [finding.done for finding in doctor(tmp_path, fix=True)] == ["removed"]
    assert (old.exists(), young.exists()) == (False, True)


def test_young_ones_too_where_no_import_runs_but_none_that_somebody_is_making(tmp_path: Path) -> None:
    begin(a_store(tmp_path))
    paths = paths_in(tmp_path)
    beside = Beside(no_import_runs=lambda: nullcontext(True), folders=(paths.data_dir,))
    left = [NewFile(folder).set_aside() for folder in (paths.threads_dir, paths.data_dir)]
    with NewFile(paths.threads_dir) as new:
        assert [finding.path for finding in doctor(tmp_path, beside=beside)] == sorted(map(str, left))
        assert [finding.done for finding in doctor(tmp_path, beside=beside, fix=True)] == ["removed"] * 2
        assert new.path.exists()
    assert not any(path.exists() for path in left)


def test_a_journal_whose_thread_is_gone_is_named_and_what_it_holds_is_brought_back(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "user", "more")
    files = files_in(tmp_path, thread_id)
    files.json.unlink()
    files.previous.unlink()
    assert store.ids() == []
    assert "only what the journal holds is left" in " ".join(finding.what for finding in doctor(tmp_path))
    doctor(tmp_path, fix=True)
    assert texts(store.load(thread_id).messages) == ["more"]
    assert store.ids() == [thread_id]


def test_what_is_left_of_a_thread_is_found_by_its_id_and_says_what_is_wrong(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(b"{")
    grow_old(file)
    for _ in range(2):
        with pytest.raises(BrokenFormat, match="is damaged"):
            store.load(store.resolve(thread_id[:14]))
    assert store.ids() == []
    assert store.remains() == [thread_id]
