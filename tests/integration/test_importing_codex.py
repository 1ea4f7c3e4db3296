"""Codex's sessions on a whole machine: where they move to, and how they lie there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import zstandard

from raddle.actions.importing.importer import thread_id_of
from raddle.model.threads.thread import Thread
from raddle.wiring.care import check
from raddle.wiring.purging import purge_thread
from tests.builders_codex import CodexSession, a_fork_that_names_its_base, a_short_session
from tests.builders_import import Machine, add, counts, write


def kept(machine: Machine, folder: str = "sessions/2026/02/01") -> Path:
    """A session where Codex keeps it."""
    session = a_short_session()
    path = machine.home / ".codex" / folder / session.name
    write(path, session.data)
    return path


def test_a_rollout_that_codex_compressed_is_the_session_it_was(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    path = kept(machine)
    machine.bring_in()
    before = machine.thread().whole()
    compressed = path.with_name(f"{path.name}.zst")
    compressed.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    path.unlink()
    assert counts(machine.bring_in(), "codex") == (0, 0, 1, 0)
    assert machine.thread().whole() == before
    assert machine.source_of(compressed) == [zstandard.ZstdDecompressor().decompress(compressed.read_bytes())]
    assert counts(machine.bring_in(), "codex") == (0, 0, 1, 0)


def test_a_compressed_rollout_is_read_where_none_was_read_before(tmp_path: Path) -> None:
    machine, other = Machine(tmp_path / "one"), Machine(tmp_path / "other")
    path = kept(machine)
    machine.bring_in()
    write(
        other.home / ".codex" / "archived_sessions" / f"{path.name}.zst",
        zstandard.ZstdCompressor().compress(path.read_bytes()),
    )
    other.bring_in()
    assert other.thread().whole() == machine.thread().whole()


@pytest.mark.parametrize("left", [0.6, 0.97])
def test_a_compressed_rollout_that_was_cut_is_named_and_read_as_far_as_it_goes(
    tmp_path: Path, left: float
) -> None:
    machine = Machine(tmp_path)
    session = a_short_session()
    for number in range(4_000):
        session.user(f"turn {number}: {hashlib.sha256(b'%d' % number).hexdigest()}")
    packed = zstandard.ZstdCompressor().compress(session.data)
    path = machine.home / ".codex" / "sessions" / f"{session.name}.zst"
    write(path, packed[: int(len(packed) * left)])
    report = machine.bring_in()
    assert any("it ends in the middle" in problem.reason for problem in report.problems)
    assert report.agents["codex"].partial == 1
    assert 1_000 < len(machine.texts()) < 4_000
    assert machine.bring_in().problems == []
    write(path, packed)
    assert machine.bring_in().problems == []
    assert machine.texts()[-1].startswith("turn 3999")


def test_a_compressed_rollout_of_which_nothing_is_left_is_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    session = a_short_session()
    packed = zstandard.ZstdCompressor().compress(session.data)
    write(machine.home / ".codex" / "sessions" / f"{session.name}.zst", packed[:-20])
    (problem,) = machine.bring_in().problems
    assert "it ends in the middle" in problem.reason


def test_a_session_that_codex_archived_goes_on_being_one(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    path = kept(machine)
    machine.bring_in()
    archived = machine.home / ".codex" / "archived_sessions" / path.name
    archived.parent.mkdir(parents=True)
    path.rename(archived)
    more = a_short_session()
    more.user("and then?")
    add(archived, more.data[len(a_short_session().data) :])
    machine.bring_in()
    assert machine.texts().count("and then?") == 1
    assert len(machine.threads()) == 1


def keep(machine: Machine, *sessions: CodexSession) -> None:
    for session in sessions:
        write(machine.home / ".codex" / "sessions" / session.name, session.data)


def thread_of(machine: Machine, session: CodexSession) -> Thread:
    with machine.stores() as stores:
        return stores.threads.load(thread_id_of("codex", session.session))


def path(thread: Thread) -> list[str]:
    tip = thread.tree.tip()
    return [
        message.content for message in thread.tree.path_to_root(tip.id if tip else None) if message.content
    ]


def two_turns() -> CodexSession:
    first = a_short_session()
    first.begin_turn()
    first.types("Fire them")
    first.says("Fired.")
    first.end_turn()
    return first


class TestAForkThatNamesWhatItGoesOnFrom:
    """As Codex writes it since 0.154: the turns before it stand in the first session's file alone."""

    def test_it_has_the_turns_before_it_under_the_ids_of_the_first_session(self, tmp_path: Path) -> None:
        machine, first = Machine(tmp_path), two_turns()
        fork = a_fork_that_names_its_base(first)
        again = a_fork_that_names_its_base(fork, name="again")
        keep(machine, again, fork, first)
        machine.bring_in()
        before, after, last = (thread_of(machine, one) for one in (first, fork, again))
        assert path(after) == [*path(before), "And now, based?", "Now based."]
        assert path(last) == [*path(after), "And now, again?", "Now again."]
        assert (
            {turn.id for turn in before.tree}
            <= {turn.id for turn in after.tree}
            <= {turn.id for turn in last.tree}
        )
        assert all(after.tree.get(turn.id) == turn for turn in before.tree)
        assert machine.finds("relay") != []
        report = machine.bring_in()
        assert (report.messages, counts(report, "codex")) == (0, (0, 0, 3, 0))

    def test_one_that_was_forked_earlier_has_no_later_turn(self, tmp_path: Path) -> None:
        machine, first = Machine(tmp_path), two_turns()
        fork = a_fork_that_names_its_base(first, end=a_short_session().ordinal)
        keep(machine, first, fork)
        machine.bring_in()
        assert "Fire them" not in path(thread_of(machine, fork))
        assert path(thread_of(machine, fork))[-3:] == ["The relay is open.", "And now, based?", "Now based."]

    def test_whichever_comes_first_it_is_the_same_thread(self, tmp_path: Path) -> None:
        first = two_turns()
        fork = a_fork_that_names_its_base(first)
        threads = []
        for number, order in enumerate([(first, fork), (fork, first)]):
            machine = Machine(tmp_path / str(number))
            for session in order:
                keep(machine, session)
                machine.bring_in()
            threads.append(thread_of(machine, fork))
            assert counts(machine.bring_in(), "codex") == (0, 0, 2, 0)
        assert path(threads[0]) == path(threads[1])
        assert [turn.id for turn in threads[0].messages] == [turn.id for turn in threads[1].messages]

    def test_it_goes_on_growing_and_so_does_the_first_session(self, tmp_path: Path) -> None:
        machine, first = Machine(tmp_path), two_turns()
        fork = a_fork_that_names_its_base(first)
        keep(machine, first, fork)
        machine.bring_in()
        for session in (first, fork):
            session.begin_turn()
            session.types(f"More of {session.session}")
        keep(machine, first, fork)
        assert machine.bring_in().messages == 2
        assert path(thread_of(machine, fork))[-2:] == ["Now based.", f"More of {fork.session}"]

    def test_one_whose_thread_was_damaged_is_built_anew_with_them(self, tmp_path: Path) -> None:
        machine, first = Machine(tmp_path), two_turns()
        fork = a_fork_that_names_its_base(first)
        keep(machine, first, fork)
        machine.bring_in()
        before = thread_of(machine, fork)
        with machine.stores() as stores:
            for file in stores.paths.threads_dir.glob(f"{before.id}*"):
                file.unlink()
            stores.paths.thread_file(before.id).write_bytes(b"damage")
            check(stores, fix=True)
        assert path(thread_of(machine, fork)) == path(before)

    def test_without_the_first_session_it_begins_where_it_was_forked(self, tmp_path: Path) -> None:
        machine, fork = Machine(tmp_path), a_fork_that_names_its_base(two_turns())
        keep(machine, fork)
        machine.bring_in()
        assert path(thread_of(machine, fork)) == ["And now, based?", "Now based."]
        assert counts(machine.bring_in(), "codex") == (0, 0, 1, 0)

    def test_what_was_purged_does_not_come_in_with_a_fork(self, tmp_path: Path) -> None:
        machine, first = Machine(tmp_path), two_turns()
        keep(machine, first)
        machine.bring_in()
        with machine.stores() as stores:
            purge_thread(stores, thread_id_of("codex", first.session))
        fork = a_fork_that_names_its_base(first)
        keep(machine, fork)
        machine.bring_in()
        assert path(thread_of(machine, fork)) == ["And now, based?", "Now based."]

    def test_what_was_private_stays_private_in_a_fork(self, tmp_path: Path) -> None:
        machine, first = Machine(tmp_path), two_turns()
        keep(machine, first)
        machine.bring_in()
        with machine.stores() as stores, stores.threads.edit(thread_id_of("codex", first.session)) as editor:
            editor.set_private(True)
        fork = a_fork_that_names_its_base(first)
        keep(machine, fork)
        machine.bring_in()
        assert thread_of(machine, fork).is_private
