"""Two machines and their hub: what each says it did is what is so, on the disk and on the hub."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.actions.sync.run import Done, Plan
from raddle.actions.threads import reply, start_thread, undo
from raddle.model.errors import InvalidInput
from raddle.wiring.purging import purge_removed, purge_thread
from raddle.wiring.syncing import Syncing, states
from tests.builders_claude_code import ClaudeSession
from tests.builders_import import Machine
from tests.fakes.memory_remote import MemoryRemote

SERVER = "https://hub.example"


@pytest.fixture
def remote() -> MemoryRemote:
    return MemoryRemote()


@pytest.fixture
def one(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "one")


@pytest.fixture
def other(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "other")


@contextlib.contextmanager
def syncing(machine: Machine, remote: MemoryRemote) -> Iterator[Syncing]:
    machine.clock.wind()  # type: ignore[attr-defined]
    with machine.stores() as stores:
        work = Syncing(stores, remote, SERVER)
        try:
            yield work
        finally:
            work.bases.close()


def sync(machine: Machine, remote: MemoryRemote) -> Done:
    with syncing(machine, remote) as work:
        return work.carry_out(work.plan(anyway=True))


def plan(machine: Machine, remote: MemoryRemote) -> Plan:
    with syncing(machine, remote) as work:
        return work.plan(anyway=True)


def begun(machine: Machine, text: str = "marimba") -> str:
    machine.clock.wind()  # type: ignore[attr-defined]
    with machine.stores() as stores:
        return start_thread(stores.threads, text)[0]


def shared(one: Machine, other: Machine, remote: MemoryRemote) -> str:
    """A thread that both machines have, in step."""
    thread_id = begun(one)
    for machine in (one, other):
        sync(machine, remote)
    return thread_id


def folder_of_threads(machine: Machine) -> Path:
    with machine.stores() as stores:
        return stores.paths.threads_dir


class TestWhoMayRead:
    def test_who_closes_a_thread_closes_what_another_machine_opened_meanwhile(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        thread_id = shared(one, other, remote)
        with syncing(one, remote) as work:
            work.share(thread_id, "private")
        with syncing(other, remote) as work:
            assert work.share(thread_id, "public").visibility == "public"
        with syncing(one, remote) as work:
            assert work.share(thread_id, "private").visibility == "private"
        assert remote.hub.holding(thread_id).thread.visibility == "private"

    def test_it_closes_it_too_where_it_could_not_hear_of_that_first(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        thread_id = shared(one, other, remote)
        with syncing(one, remote) as work:
            work.share(thread_id, "private")
        with syncing(other, remote) as work:
            work.share(thread_id, "public")
        with one.stores() as stores, stores.threads.edit(thread_id) as editor:
            editor.set_visibility("private")
        sync(one, remote)
        assert remote.hub.holding(thread_id).thread.visibility == "private"

    def test_a_thread_that_another_machine_made_private_is_not_opened(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        thread_id = shared(one, other, remote)
        with one.stores() as stores, stores.threads.edit(thread_id) as editor:
            editor.set_private(True)
        sync(one, remote)
        with syncing(other, remote) as work, pytest.raises(InvalidInput, match="private"):
            work.share(thread_id, "public")
        assert remote.hub.holding(thread_id).thread.is_private

    def test_a_thread_is_private_again_though_another_machine_let_it_go_meanwhile(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        thread_id = shared(one, other, remote)
        for is_private in (True, False):
            machine = one if is_private else other
            with machine.stores() as stores, stores.threads.edit(thread_id) as editor:
                editor.set_private(is_private)
            sync(machine, remote)
            sync(other, remote)
        assert not remote.hub.holding(thread_id).thread.is_private
        with one.stores() as stores, stores.threads.edit(thread_id) as editor:
            editor.set_private(True)
        sync(one, remote)
        assert remote.hub.holding(thread_id).thread.is_private
        assert not len(remote.hub.holding(thread_id).thread.tree)


class TestFilesThatAreGone:
    def test_threads_whose_files_are_gone_are_taken_in_again_and_that_is_said(
        self, one: Machine, remote: MemoryRemote
    ) -> None:
        ids = {begun(one, word) for word in ("marimba", "celesta", "vibraphone")}
        sync(one, remote)
        shutil.rmtree(folder_of_threads(one))
        assert plan(one, remote).missing == ids
        done = sync(one, remote)
        assert (done.brought_back, done.pushed) == (3, 0)
        with one.stores() as stores:
            assert set(stores.threads.ids()) == ids
        assert (sync(one, remote).pulled, plan(one, remote).missing) == (0, frozenset())

    def test_one_file_that_is_gone_comes_back_whole(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        thread_id = shared(one, other, remote)
        with other.stores() as stores:
            reply(stores.threads, thread_id, "celesta")
        sync(other, remote)
        for file in folder_of_threads(one).glob(f"{thread_id}.*"):
            file.unlink()
        assert sync(one, remote).brought_back == 1
        with one.stores() as stores:
            assert [turn.content for turn in stores.threads.load(thread_id).tree] == ["marimba", "celesta"]

    def test_what_was_purged_here_stays_gone(self, one: Machine, remote: MemoryRemote) -> None:
        thread_id = begun(one)
        sync(one, remote)
        with one.stores() as stores:
            purge_thread(stores, thread_id)
        assert sync(one, remote).brought_back == 0
        assert not list(folder_of_threads(one).glob(f"{thread_id}.*"))

    def test_what_never_left_this_machine_is_not_asked_for(self, one: Machine, remote: MemoryRemote) -> None:
        thread_id = begun(one)
        with one.stores() as stores, stores.threads.edit(thread_id) as editor:
            editor.set_private(True)
        sync(one, remote)
        shutil.rmtree(folder_of_threads(one))
        assert plan(one, remote).pulls == ()


class TestErasedWords:
    def test_words_that_are_erased_on_one_machine_are_on_no_file_of_the_other(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        thread_id = shared(one, other, remote)
        with one.stores() as stores:
            reply(stores.threads, thread_id, "glockenspiel")
        sync(one, remote)
        sync(other, remote)
        with other.stores() as stores:
            assert stores.find("glockenspiel", limit=5).total_threads == 1
            stores.threads.fold(thread_id)
        with one.stores() as stores:
            undo(stores.threads, thread_id, 1)
            assert purge_removed(stores, thread_id) == 1
        sync(one, remote)
        assert b"glockenspiel" in other.everything_stored()
        sync(other, remote)
        assert b"glockenspiel" not in other.everything_stored()
        with other.stores() as stores:
            assert stores.find("glockenspiel", limit=5).total_threads == 0
            assert stores.find("marimba", limit=5).total_threads == 1
        assert (sync(other, remote).pulled, plan(other, remote).pushes) == (0, ())

    def test_the_other_machine_lets_go_of_the_source_bytes_too_and_keeps_none_later(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        talk = ClaudeSession()
        talk.user("marimba")
        talk.says("I see.")
        talk.user("glockenspiel")
        for machine in (one, other):
            machine.keep(talk)
            machine.bring_in()
            sync(machine, remote)
        (thread_id,) = one.finds("glockenspiel")
        with one.stores() as stores:
            undo(stores.threads, thread_id, 1)
            purge_removed(stores, thread_id)
        sync(one, remote)
        sync(other, remote)
        with other.stores() as stores:
            assert stores.ledger.segments_of(thread_id) == []
            assert thread_id in stores.ledger.without_bytes()
        assert b"glockenspiel" not in other.everything_stored()

    def test_an_erasure_that_was_not_finished_is_finished_by_the_next_import(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        talk = ClaudeSession()
        talk.user("glockenspiel")
        other.keep(talk)
        other.bring_in()
        sync(other, remote)
        (thread_id,) = other.finds("glockenspiel")
        with other.stores() as stores:
            stores.note_erased(thread_id, frozenset())  # and here the process dies
        other.bring_in()
        with other.stores() as stores:
            assert stores.ledger.segments_of(thread_id) == []


class TestWhatIsPlanned:
    def test_threads_that_no_look_noted_yet_do_not_count_as_deleted(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        for number in range(12):
            begun(one, f"marimba {number}")
        sync(one, remote)
        with syncing(other, remote) as work:
            assert work.stores.index.ids() == set()
            work.carry_out(work.plan())
        with other.stores() as stores:
            for thread_id in stores.threads.ids():
                stores.threads.fold(thread_id, anyway=True)
        planned = plan(other, remote)
        assert (planned.deletes_there, planned.is_alarming) == (0, False)

    def test_what_would_be_sent_is_counted_without_private_threads_and_what_is_there(
        self, one: Machine, remote: MemoryRemote
    ) -> None:
        begun(one)
        private = begun(one, "celesta")
        with one.stores() as stores, stores.threads.edit(private) as editor:
            editor.set_private(True)
        with syncing(one, remote) as work:
            assert work.to_send(work.plan()) == 1
        sync(one, remote)
        with one.stores() as stores:
            stores.threads.fold(stores.threads.ids()[0], anyway=True)
        with syncing(one, remote) as work:
            assert work.to_send(work.plan()) == 0

    def test_a_thread_that_was_erased_for_good_elsewhere_is_told_once(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        thread_id = shared(one, other, remote)
        remote.purge(thread_id)
        assert sync(other, remote).trouble.keys() == {thread_id}
        assert sync(other, remote).trouble == {}
        with other.stores() as stores:
            stores.threads.append(thread_id, "user", "celesta")
        assert sync(other, remote).trouble == {}, "not even when it is edited: nobody can send it"

    def test_and_not_at_all_where_it_never_was(
        self, one: Machine, other: Machine, remote: MemoryRemote
    ) -> None:
        thread_id = begun(one)
        sync(one, remote)
        remote.purge(thread_id)
        assert sync(other, remote).trouble == {}


def test_few_threads_stand_to_the_server_as_many_do(
    one: Machine, remote: MemoryRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [begun(one, f"marimba {number}") for number in range(3)]
    sync(one, remote)
    with one.stores() as stores:
        stores.threads.append(ids[0], "user", "celesta")
    one.variables["RADDLE_SERVER"] = SERVER
    with one.stores() as stores:
        rows = stores.listed(limit=None)
        few = [(each.id, each.state) for each in states(stores, rows)]
        monkeypatch.setattr("raddle.wiring.syncing._FEW", 0)
        assert [(each.id, each.state) for each in states(stores, rows)] == few
        assert dict(few) == {ids[0]: "pending", ids[1]: "in_step", ids[2]: "in_step"}
