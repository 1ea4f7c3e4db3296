"""A thread whose files are all lost is built anew from the source bytes that its import kept; where that cannot be,
what is said to do makes nothing worse."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path

import pytest

from raddle.actions.ports import Finding
from raddle.model.errors import BrokenFormat, NotFound
from raddle.model.threads.thread import Thread
from raddle.wiring import care
from raddle.wiring.care import check
from raddle.wiring.import_lock import import_lock
from raddle.wiring.purging import purge_removed, purge_thread, purgeable
from tests.builders_claude_code import (
    ClaudeSession,
    a_session_with_everything,
    a_short_session,
    a_sub_agent,
    uuid_of,
)
from tests.builders_import import Machine, add, write
from tests.builders_store import grow_old
from tests.file_events import start_child

LOOM_ID = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def files_of(machine: Machine, thread_id: str = "") -> list[Path]:
    return sorted((machine.folder / "data" / "threads").glob(f"{thread_id}*"))


def lose_the_agents(machine: Machine) -> None:
    """Every agent's own files are gone."""
    shutil.rmtree(machine.home)
    machine.home.mkdir()


def break_all(machine: Machine, thread_id: str = "T-") -> None:
    """Every thread file is zeros, as a power cut leaves it; journals and earlier revisions are gone."""
    for path in files_of(machine, thread_id):
        if path.suffix == ".json":
            path.write_bytes(b"\0" * path.stat().st_size)
            grow_old(path)
        else:
            path.unlink()


def findings(machine: Machine, *, fix: bool = False) -> list[Finding]:
    with machine.stores() as stores:
        return check(stores, fix=fix)


def left(found: list[Finding]) -> list[Finding]:
    return [finding for finding in found if not finding.done]


def same(one: Thread, other: Thread) -> bool:
    return (one.id, one.messages, one.registers) == (other.id, other.messages, other.registers)


class TestBuiltAnew:
    def rebuilt(self, machine: Machine) -> None:
        """Break everything, mend it; it is what it was."""
        before = machine.threads()
        lose_the_agents(machine)
        break_all(machine)
        assert any("can be built anew" in finding.what for finding in left(findings(machine)))
        assert left(findings(machine, fix=True)) == []
        after = machine.threads()
        assert [thread.id for thread in after] == [thread.id for thread in before]
        assert all(same(one, other) for one, other in zip(before, after, strict=True))
        assert left(findings(machine)) == []

    def test_a_session_with_everything_and_its_sub_agent(self, machine: Machine) -> None:
        machine.keep(a_session_with_everything())
        machine.keep(a_sub_agent())
        machine.bring_in()
        self.rebuilt(machine)
        assert machine.finds("bowls") == [machine.thread().id]

    def test_a_session_that_grew_in_the_middle_of_a_line(self, machine: Machine) -> None:
        talk = a_short_session()
        path = machine.file(f"{talk.session}.jsonl")
        cuts = (0, 700, 1500, len(talk.data))
        for start, end in itertools.pairwise(cuts):
            if path.exists():
                add(path, talk.data[start:end])
            else:
                write(path, talk.data[start:end])
            machine.bring_in()
        self.rebuilt(machine)

    def test_a_session_that_was_rewritten_keeps_what_both_generations_say(self, machine: Machine) -> None:
        talk = a_short_session()
        path = machine.keep(talk)
        machine.bring_in()
        shorter = ClaudeSession()
        shorter.user("Begin again", uuid=uuid_of("again"))
        write(path, shorter.data)
        machine.bring_in()
        assert {"Why is the kiln cold?", "Begin again", "The relay is open."} <= set(machine.texts())
        self.rebuilt(machine)

    def test_a_thread_file_of_another_program(self, machine: Machine) -> None:
        path = machine.home / ".local/share/loom/threads" / f"{LOOM_ID}.json"
        for count in (1, 2):
            turns = [{"role": "user", "content": "look"}, {"role": "user", "content": "marimba"}][:count]
            write(path, json.dumps({"id": LOOM_ID, "conversation": {"messages": turns}}).encode())
            machine.bring_in()
        before = machine.texts()
        lose_the_agents(machine)
        break_all(machine)
        assert left(findings(machine, fix=True)) == []
        assert machine.thread().id == LOOM_ID
        assert machine.texts() == before == ["look", "marimba"]

    def test_a_session_of_which_the_ledger_forgot_the_file(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        machine.bring_in()
        thread_id = machine.thread().id
        with machine.stores() as stores:
            kept = stores.ledger.segments_of(thread_id)
            stores.ledger.revive(thread_id)
            assert stores.ledger.segments_of(thread_id) == kept
        self.rebuilt(machine)

    def test_it_was_set_aside_long_before_by_somebody_who_only_read(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        machine.bring_in()
        before = machine.thread()
        lose_the_agents(machine)
        break_all(machine)
        with machine.stores() as stores, pytest.raises(BrokenFormat) as raised:
            stores.threads.load(before.id)
        assert "doctor --fix" in raised.value.hint
        assert "purge" not in raised.value.hint
        assert left(findings(machine, fix=True)) == []
        assert same(machine.thread(), before)


def test_edits_in_a_journal_that_can_be_read_are_on_top_of_what_is_built_anew(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    thread_id = machine.thread().id
    with machine.stores() as stores:
        stores.threads.append(thread_id, "user", "typed here")
        with stores.threads.edit(thread_id) as editor:
            editor.rename("Renamed here")
    before = machine.thread()
    lose_the_agents(machine)
    for path in files_of(machine, thread_id):
        if path.suffix in (".json", ".prev"):
            path.write_bytes(b"{")
            grow_old(path)
    found = findings(machine, fix=True)
    assert left(found) == []
    after = machine.thread()
    assert after.title == "Renamed here"
    assert same(after, before)
    assert left(findings(machine)) == []


def test_what_a_reader_brought_back_from_the_journal_alone_is_made_whole_by_the_doctor(
    machine: Machine,
) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    thread_id = machine.thread().id
    with machine.stores() as stores:
        stores.threads.append(thread_id, "user", "typed here")
    before = machine.thread()
    for path in files_of(machine, thread_id):
        if path.suffix in (".json", ".prev"):
            path.write_bytes(b"{")
            grow_old(path)
    assert machine.texts() == ["typed here"]
    (*_, last) = left(findings(machine))
    assert "doctor --fix" in last.what
    assert left(findings(machine, fix=True)) == []
    assert same(machine.thread(), before)


def test_lines_lost_in_a_journal_come_back_too(machine: Machine) -> None:
    talk = a_short_session()
    path = machine.keep(talk, lines=2)
    machine.bring_in()
    add(path, talk.data[path.stat().st_size :])
    machine.bring_in()
    before = machine.texts()
    (journal,) = (path for path in files_of(machine) if path.suffix == ".journal")
    journal.write_bytes(journal.read_bytes().replace(b"relay", b"\0\0\0\0\0"))
    assert machine.texts() != before
    assert left(findings(machine, fix=True)) == []
    assert machine.texts() == before


def test_a_file_that_was_removed_by_hand_is_built_anew_as_the_next_import_would(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    before = machine.thread()
    lose_the_agents(machine)
    for path in files_of(machine, before.id):
        path.unlink()
    assert any("is gone" in finding.what for finding in left(findings(machine)))
    assert left(findings(machine, fix=True)) == []
    assert same(machine.thread(), before)


def test_of_bytes_that_are_partly_gone_the_rest_is_brought_back(machine: Machine) -> None:
    talk = a_short_session()
    path = machine.keep(talk, lines=2)
    machine.bring_in()
    thread_id = machine.thread().id
    add(path, talk.data[path.stat().st_size :])
    machine.bring_in()
    with machine.stores() as stores:
        (first, _) = stores.ledger.segments_of(thread_id)
        stores.blobs.delete(first[1].sha256)
    lose_the_agents(machine)
    break_all(machine)
    assert any("some are gone" in finding.done for finding in findings(machine, fix=True))
    assert "The relay is open." in machine.texts()
    assert "Why is the kiln cold?" not in machine.texts()


def test_what_was_purged_is_never_built_anew(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    thread_id = machine.thread().id
    with machine.stores() as stores:
        segments = stores.ledger.segments_of(thread_id)
        data = [stores.blobs.read(segment.sha256) for _, segment in segments]
        purge_thread(stores, thread_id)
        for piece in data:
            stores.blobs.put(piece)
        stores.ledger.record([], segments)
    findings(machine, fix=True)
    assert machine.threads() == []


def test_turns_that_were_purged_are_not_either(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    thread_id = machine.thread().id
    with machine.stores() as stores:
        with stores.threads.edit(thread_id) as editor:
            editor.undo()
        purge_removed(stores, thread_id)
    break_all(machine)
    assert [finding for finding in findings(machine, fix=True) if "built anew" in finding.done] == []
    assert machine.threads() == []


def test_a_thread_that_was_private_stays_so(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    thread_id = machine.thread().id
    with machine.stores() as stores:
        with stores.threads.edit(thread_id) as editor:
            editor.set_private(True)
        stores.threads.fold(thread_id)
        stores.index.refresh()
    break_all(machine)
    assert left(findings(machine, fix=True)) == []
    assert machine.thread().is_private


def test_looking_leaves_no_trace(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    break_all(machine)
    before = {path: path.read_bytes() for path in machine.folder.rglob("*") if path.is_file()}
    assert left(findings(machine)) != []
    after = {path: path.read_bytes() for path in machine.folder.rglob("*") if path.is_file()}
    assert {path.suffix for path in after.keys() ^ before.keys()} <= {".lock"}
    assert [path for path in before if before[path] != after[path] and path.suffix != ".lock"] == []


def test_while_an_import_runs_nothing_is_built_and_that_is_said(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    break_all(machine)
    held, ready = os.pipe()
    wait, let_go = os.pipe()

    def hold() -> None:
        with machine.stores() as stores, import_lock(stores):
            os.write(ready, b".")
            os.read(wait, 1)

    child = start_child(hold)
    os.read(held, 1)
    monkeypatch.setattr(care, "import_lock", lambda stores, **_: import_lock(stores, wait_seconds=0.05))
    found = findings(machine, fix=True)
    os.write(let_go, b".")
    child.join()
    assert any("an import is running" in finding.failed for finding in found)
    assert left(findings(machine, fix=True)) == []


class TestWhereNothingCanRebuild:
    def broken(self, machine: Machine) -> str:
        with machine.stores() as stores:
            with stores.threads.create() as editor:
                editor.append("user", "marimba")
            thread_id = editor.thread.id
        assert machine.finds("marimba") == [thread_id]
        break_all(machine, thread_id)
        return thread_id

    def test_the_advice_names_what_helps(self, machine: Machine) -> None:
        thread_id = self.broken(machine)
        for fix in (False, True, True):
            told = " ".join(finding.what for finding in left(findings(machine, fix=fix)))
            assert "from a backup" in told
            assert f"raddle purge {thread_id}" in told

    def test_what_was_set_aside_can_be_purged_by_its_id(self, machine: Machine) -> None:
        thread_id = self.broken(machine)
        findings(machine, fix=True)
        with machine.stores() as stores:
            assert purgeable(stores, thread_id[:12]) == thread_id
            purge_thread(stores, thread_id)
            with pytest.raises(NotFound):
                purgeable(stores, thread_id)
        assert files_of(machine, thread_id) == []
        assert findings(machine) == []

    def test_a_backup_put_back_settles_it(self, machine: Machine) -> None:
        with machine.stores() as stores, stores.threads.create() as editor:
            editor.append("user", "marimba")
        (file,) = files_of(machine, editor.thread.id)
        backup = file.read_bytes()
        break_all(machine)
        findings(machine, fix=True)
        file.write_bytes(backup)
        assert left(findings(machine, fix=True)) == []
        assert machine.finds("marimba") == [editor.thread.id]


def test_a_thread_file_removed_by_hand_is_purged_by_its_id_with_its_source_bytes(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    thread_id = machine.thread().id
    for path in files_of(machine, thread_id):
        path.unlink()
    with machine.stores() as stores:
        purge_thread(stores, purgeable(stores, thread_id))
    assert b"relay" not in machine.everything_stored()
    assert machine.finds("relay") == []
    assert machine.bring_in().threads == 0
