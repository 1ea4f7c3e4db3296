"""What is purged is gone to the last byte, stays gone, and comes back only to whom asks for it."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from raddle.actions.answering.asking import Launch
from raddle.actions.ports import Finding
from raddle.adapters.local_store.launch_book import LaunchBook
from raddle.adapters.local_store.purge_marks import PurgeMarks
from raddle.config import load_config
from raddle.model.errors import StorageError
from raddle.wiring import Stores, purging
from raddle.wiring.import_lock import import_lock
from raddle.wiring.purging import end_jobs, purge_removed, purge_thread
from tests.builders_claude_code import (
    OTHER_SESSION,
    SESSION,
    ClaudeSession,
    a_short_session,
    picture,
)
from tests.builders_import import Machine, add, counts, write
from tests.fakes.responders import ScriptedCouncil
from tests.file_events import deaths_of, some_deaths_or_all, start_child

PICTURE = b"the bytes of a picture of a xylophone"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def a_talk(session: str = SESSION, words: str = "marimba") -> ClaudeSession:
    talk = ClaudeSession(session)
    talk.user("Look at this")
    talk.user([picture(base64.b64encode(PICTURE).decode()), {"type": "text", "text": words}])
    talk.says("I see.", message=f"m_{session}")
    return talk


def thread_of(machine: Machine, words: str = "marimba") -> str:
    (thread_id,) = machine.finds(words)
    return thread_id


def purge(machine: Machine, thread_id: str) -> int:
    with machine.stores() as stores:
        return purge_thread(stores, thread_id)


class TestWhatIsStillWorkedOn:
    @pytest.fixture
    def thread_id(self, machine: Machine) -> str:
        with machine.stores() as stores, stores.threads.create() as editor:
            turn = editor.append("user", "Why is it cold?").id
            editor.launch_job("job-7", turn, "council")
            return editor.thread.id

    def test_a_deliberation_is_cancelled_before_its_thread_goes(
        self, machine: Machine, thread_id: str
    ) -> None:
        council = ScriptedCouncil()
        with machine.stores() as stores:
            end_jobs(stores, thread_id, {"council": council}.get)
        assert council.result("job-7").why == "cancelled"

    def test_one_that_this_machine_launched_is_found_without_its_thread(
        self, machine: Machine, thread_id: str
    ) -> None:
        council = ScriptedCouncil()
        with machine.stores() as stores:
            gone = thread_id[:-4] + "0000"
            launch = Launch(thread_id=gone, job_id="ask-1", responder="council", lives_on=True)
            with LaunchBook(stores.paths.launches_dir).open(launch) as kept:
                kept.taken("job-8")
            end_jobs(stores, gone, {"council": council}.get)
        assert list(council.jobs) == ["job-8"]

    def test_what_cannot_be_cancelled_is_named_and_the_thread_goes_all_the_same(
        self, machine: Machine, thread_id: str
    ) -> None:
        told: list[Finding] = []
        with Stores(load_config(machine.environment), clock=machine.clock, report=told.append) as stores:
            purge_thread(stores, thread_id)
            assert stores.threads.ids() == []
        (finding,) = told
        assert "council may still work on job job-7" in finding.what


class TestAWholeThread:
    def test_not_a_byte_is_left(self, machine: Machine) -> None:
        machine.keep(a_talk())
        machine.bring_in()
        thread_id = thread_of(machine)
        with machine.stores() as stores:
            with stores.threads.edit(thread_id) as editor:
                editor.append("user", "glockenspiel")
            stores.active.set(thread_id, "leaf")
        assert purge(machine, thread_id) == 2
        stored = machine.everything_stored()
        for trace in (PICTURE, b"Look at this", b"marimba", b"glockenspiel", b"I see."):
            assert trace not in stored, trace
        assert machine.finds("marimba") == []
        assert not (machine.folder / "data" / "active-branches.json").read_bytes().count(thread_id.encode())
        assert machine.orphans() == set()

    def test_no_path_of_it_is_left_and_its_file_is_known_all_the_same(self, machine: Machine) -> None:
        talk = a_talk()
        path = machine.keep(talk)
        other = machine.keep(a_talk(OTHER_SESSION, "balafon"))
        machine.bring_in()
        thread_id = thread_of(machine)
        purge(machine, thread_id)
        assert str(other).encode() in machine.everything_stored()

        def nothing_is_told() -> bool:
            stored = machine.everything_stored()
            return not any(one.encode() in stored for one in (str(path), path.name, SESSION))

        assert nothing_is_told()
        again = machine.bring_in()
        assert (again.left_out, again.passed_over.purged) == ([], 1)
        assert nothing_is_told()
        talk.user("and more")
        machine.keep(talk)
        grown = machine.bring_in()
        assert [left.path for left in grown.left_out] == [str(path)]
        copy = path.with_name("copy.jsonl")
        copy.write_bytes(talk.data)
        assert [left.path for left in machine.bring_in(str(copy)).left_out] == [str(copy)]
        assert b"copy.jsonl" not in machine.everything_stored()
        assert nothing_is_told()
        assert machine.bring_in(revive=True).threads == 1
        assert len(machine.source_of(path)) == 1
        assert str(path).encode() in machine.everything_stored()

    def test_paths_that_an_earlier_raddle_left_are_hidden_by_the_next_import(self, machine: Machine) -> None:
        path = machine.keep(a_talk())
        machine.bring_in()
        with machine.stores() as stores:
            left = stores.ledger.entries()
        thread_id = thread_of(machine)
        purge(machine, thread_id)
        with machine.stores() as stores:
            stores.ledger.revive(thread_id)
            stores.ledger.record([(left[str(path)], b"state")], ())
            PurgeMarks(stores.paths.purge_marks, stores.locks).note({thread_id: True})
        assert path.name.encode() in machine.everything_stored()
        machine.bring_in()
        assert path.name.encode() not in machine.everything_stored()

    def test_what_another_thread_has_too_stays(self, machine: Machine) -> None:
        machine.keep(a_talk())
        machine.keep(a_talk(OTHER_SESSION, "glockenspiel"))
        machine.bring_in()
        assert purge(machine, thread_of(machine)) == 1
        (left,) = machine.threads()
        (attachment,) = [one for message in left.messages for one in message.attachments]
        with machine.stores() as stores:
            assert stores.blobs.read(attachment.sha256) == PICTURE

    def test_a_damaged_thread_can_be_purged_and_takes_its_attachments_with_it(self, machine: Machine) -> None:
        machine.keep(a_talk())
        machine.bring_in()
        thread_id = thread_of(machine)
        file = machine.folder / "data" / "threads" / f"{thread_id}.json"
        file.write_bytes(file.read_bytes()[:-200] + b"\0" * 100)
        assert purge(machine, thread_id) == 2
        assert PICTURE not in machine.everything_stored()

    def test_a_damaged_thread_keeps_its_attachments_while_others_are_purged(self, machine: Machine) -> None:
        machine.keep(a_talk())
        machine.keep(a_talk(OTHER_SESSION, "glockenspiel"))
        machine.bring_in()
        thread_id, other = thread_of(machine), thread_of(machine, "glockenspiel")
        file = machine.folder / "data" / "threads" / f"{other}.json"
        file.write_bytes(file.read_bytes()[:-200] + b"\0" * 100)
        purge(machine, thread_id)
        assert PICTURE in machine.everything_stored()

    @some_deaths_or_all
    def test_a_purge_that_was_interrupted_anywhere_can_be_asked_for_again(
        self, machine: Machine, every: int
    ) -> None:
        path = machine.keep(a_talk())
        machine.bring_in()
        thread_id = thread_of(machine)
        backup = {file: file.read_bytes() for file in (machine.folder / "data").rglob("*") if file.is_file()}
        deaths = 0
        for _ in deaths_of(lambda: purge(machine, thread_id), every):
            deaths += every
            with machine.stores() as stores:
                if thread_id in stores.threads.ids():
                    purge_thread(stores, thread_id)
            stored = machine.everything_stored()
            assert b"marimba" not in stored
            assert PICTURE not in stored
            assert machine.bring_in().threads == 0
            for file in (machine.folder / "data").rglob("*"):
                if file.is_file():
                    file.unlink()
            for file, data in backup.items():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        assert deaths > 10
        assert path.exists()

    def test_a_purge_waits_for_an_import_and_says_so(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        machine.keep(a_talk())
        machine.bring_in()
        thread_id = thread_of(machine)
        held, ready = os.pipe()
        wait, let_go = os.pipe()

        def hold() -> None:
            with machine.stores() as stores, import_lock(stores):
                os.write(ready, b".")
                os.read(wait, 1)

        child = start_child(hold)
        os.read(held, 1)
        monkeypatch.setattr(purging, "import_lock", lambda stores: import_lock(stores, wait_seconds=0.05))
        for act in (purge_thread, purge_removed):
            with machine.stores() as stores, pytest.raises(StorageError, match="an import is running"):
                act(stores, thread_id)
        os.write(let_go, b".")
        child.join()
        assert purge(machine, thread_id)


class TestWhatComesLater:
    def test_a_purged_thread_is_not_brought_back(self, machine: Machine) -> None:
        talk = a_talk()
        path = machine.keep(talk)
        machine.bring_in()
        purge(machine, thread_of(machine))
        assert machine.bring_in().threads == 0
        before = len(talk.data)
        talk.user("again")
        add(path, talk.data[before:])
        report = machine.bring_in()
        assert [(one.path, "--revive" in one.reason) for one in report.left_out] == [(str(path), True)]
        assert machine.threads() == []
        assert b"marimba" not in machine.everything_stored()
        assert machine.orphans() == set()

    @pytest.mark.parametrize("how", ["a copy", "a copy and a part", "another file of that name"])
    def test_nor_by_a_copy_under_another_path(self, machine: Machine, how: str) -> None:
        talk = a_talk()
        machine.keep(talk)
        machine.bring_in()
        purge(machine, thread_of(machine))
        if how == "another file of that name":
            write(machine.file(f"{SESSION}.jsonl", "-p"), talk.data)
        else:
            write(machine.file(f"{OTHER_SESSION}.jsonl", "-p"), talk.data)
        if how == "a copy and a part":
            part = ClaudeSession(agent="a1b2c3d")
            part.user("marimba")
            machine.keep(part, "-q")
        report = machine.bring_in()
        assert (report.threads, len(report.left_out)) == (0, 2 if how == "a copy and a part" else 1)
        assert machine.threads() == []
        stored = machine.everything_stored()
        assert b"marimba" not in stored
        assert PICTURE not in stored
        assert machine.orphans() == set()
        assert machine.bring_in().threads == 0

    def test_nor_by_a_file_that_held_another_session_before(self, machine: Machine) -> None:
        machine.keep(a_talk())
        other = a_talk(OTHER_SESSION, "glockenspiel")
        path = machine.file("talk.jsonl", "-p")
        write(path, other.data)
        machine.bring_in()
        purge(machine, thread_of(machine))
        write(path, a_talk().data)
        report = machine.bring_in()
        assert [one.path for one in report.left_out] == [str(path)]
        assert b"marimba" not in machine.everything_stored()
        assert machine.finds("glockenspiel") == [machine.thread().id]

    @pytest.mark.parametrize("grown", [False, True])
    def test_revive_brings_it_back_whole_and_it_grows_again(self, machine: Machine, *, grown: bool) -> None:
        talk = a_talk()
        path = machine.keep(talk)
        machine.bring_in()
        thread_id, before = thread_of(machine), machine.texts()
        purge(machine, thread_id)
        if grown:
            size = len(talk.data)
            talk.user("again")
            add(path, talk.data[size:])
        report = machine.bring_in(revive=True)
        assert counts(report)[0] == 1
        assert machine.thread().id == thread_id
        assert machine.texts() == [*before, *(["again"] if grown else [])]
        assert machine.finds("marimba") == [thread_id]
        assert machine.source_of(path) == [path.read_bytes()]
        size = len(talk.data)
        talk.user("and again")
        add(path, talk.data[size:])
        assert counts(machine.bring_in()) == (0, 1, 0, 1)

    def test_other_threads_do_not_mind(self, machine: Machine) -> None:
        machine.keep(a_talk())
        machine.keep(a_short_session(), "-p")
        write(machine.file(f"{OTHER_SESSION}.jsonl"), a_talk(OTHER_SESSION, "glockenspiel").data)
        machine.bring_in()
        count = len(machine.threads())
        purge(machine, thread_of(machine, "glockenspiel"))
        assert machine.bring_in(revive=False).threads == 0
        assert len(machine.threads()) == count - 1


class TestWhatWasTakenBack:
    def take_back(self, machine: Machine) -> str:
        thread_id = thread_of(machine)
        with machine.stores() as stores:
            with stores.threads.edit(thread_id) as editor:
                editor.undo()
            assert purge_removed(stores, thread_id) == 2
        return thread_id

    def test_the_words_and_the_source_bytes_go_and_the_rest_stays(self, machine: Machine) -> None:
        machine.keep(a_talk())
        machine.bring_in()
        thread_id = self.take_back(machine)
        stored = machine.everything_stored()
        for trace in (b"marimba", b"I see.", PICTURE):
            assert trace not in stored, trace
        assert machine.texts() == ["Look at this", "", ""]
        assert machine.finds("marimba") == []
        assert machine.finds("look") == [thread_id]
        assert machine.orphans() == set()

    @pytest.mark.parametrize("how", ["grown", "rewritten", "copied"])
    def test_no_later_import_brings_the_words_or_the_bytes_back(self, machine: Machine, how: str) -> None:
        talk = a_talk()
        path = machine.keep(talk)
        machine.bring_in()
        self.take_back(machine)
        size = len(talk.data)
        talk.user("again")
        if how == "grown":
            add(path, talk.data[size:])
        elif how == "rewritten":
            write(path, b'{"type":"mode"}\n' + talk.data)
        elif how == "copied":
            write(machine.file(f"{OTHER_SESSION}.jsonl", "-p"), talk.data)
        machine.bring_in()
        assert machine.texts()[-1] == "again"
        stored = machine.everything_stored()
        for trace in (b"marimba", PICTURE):
            assert trace not in stored, trace
        assert machine.orphans() == set()

    def test_where_nothing_was_taken_back_only_the_source_bytes_go(self, machine: Machine) -> None:
        path = machine.keep(a_talk())
        machine.bring_in()
        with machine.stores() as stores:
            assert purge_removed(stores, thread_of(machine)) == 0
        assert machine.source_of(path) == []
        assert "marimba" in machine.texts()
        assert PICTURE in machine.everything_stored()

    def test_of_a_whole_thread_file_no_byte_is_kept_any_more_either(self, machine: Machine) -> None:
        thread_id = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"
        path = machine.home / ".local/share/loom/threads" / f"{thread_id}.json"
        turns = [{"role": "user", "content": "look"}, {"role": "user", "content": "marimba"}]
        for count in (2, 3):
            messages = [*turns, {"role": "user", "content": "again"}][:count]
            write(path, json.dumps({"id": thread_id, "conversation": {"messages": messages}}).encode())
            machine.bring_in()
            if count == 2:
                with machine.stores() as stores:
                    with stores.threads.edit(thread_id) as editor:
                        editor.undo()
                    purge_removed(stores, thread_id)
        assert b"again" in machine.everything_stored()
        assert machine.source_of(path) == []
