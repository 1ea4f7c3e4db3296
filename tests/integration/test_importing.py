"""Sessions on a disk become threads, words to be found, kept bytes and ledger rows; again changes nothing."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from raddle.config import load_config
from raddle.model.errors import UserError
from raddle.model.threads.codec import encode_thread
from raddle.wiring import Stores
from raddle.wiring.importing import dry_run, import_sessions
from tests.builders_claude_code import (
    OTHER_SESSION,
    SESSION,
    ClaudeSession,
    a_session_with_everything,
    a_short_session,
    a_sub_agent,
    starts,
)
from tests.builders_import import Machine, counts, reasons, write


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def a_talk(session: str, *turns: str) -> ClaudeSession:
    talk = ClaudeSession(session)
    for number, turn in enumerate(turns):
        if number % 2:
            talk.says(turn, message=f"msg_{session}_{number}")
        else:
            talk.user(turn)
    return talk


class TestOnce:
    def test_a_session_becomes_a_thread_that_is_listed_found_and_read(self, machine: Machine) -> None:
        path = machine.keep(a_short_session())
        report = machine.bring_in()
        thread = machine.thread()
        assert counts(report) == (1, 0, 0, len(thread.messages))
        assert (report.threads, report.messages, report.problems) == (1, len(thread.messages), [])
        assert "Why is the kiln cold?" in machine.texts()
        assert machine.finds("relay") == [thread.id]
        with machine.stores() as stores:
            (summary,) = stores.listed(limit=None)
            assert summary == thread.summary()
        assert machine.source_of(path) == [path.read_bytes()]
        assert machine.orphans() == set()

    def test_the_index_holds_what_a_rebuilt_one_holds(self, machine: Machine) -> None:
        machine.keep(a_session_with_everything())
        machine.keep(a_sub_agent())
        machine.bring_in()
        with machine.stores() as stores:
            imported = stores.listed(limit=None)
            assert stores.index.verify() == []
        shutil.rmtree(machine.folder / "cache")
        with machine.stores() as stores:
            assert stores.listed(limit=None) == imported

    def test_the_thread_file_is_the_one_that_a_save_would_write(self, machine: Machine) -> None:
        machine.keep(a_session_with_everything())
        machine.keep(a_sub_agent())
        machine.bring_in()
        thread = machine.thread()
        file = machine.folder / "data" / "threads" / f"{thread.id}.json"
        assert file.read_bytes() == encode_thread(thread)

    def test_what_is_stored_is_the_owners_alone(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        machine.bring_in()
        for path in (machine.folder / "data").rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path

    def test_many_sessions_are_read_by_workers(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("raddle.wiring.import_desk.SMALL_BYTES", 0)
        talks = [a_talk(f"{n:08d}-0000-4000-8000-000000000000", f"question {n}", "yes") for n in range(40)]
        for talk in talks:
            machine.keep(talk)
        report = machine.bring_in()
        assert counts(report) == (40, 0, 0, 80)
        assert {thread.messages[0].content for thread in machine.threads()} == {
            f"question {n}" for n in range(40)
        }
        assert len(machine.finds("yes")) == 20

    def test_words_come_to_the_index_in_any_number_of_pieces(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("raddle.adapters.local_store.search_ready.MOST_CHARACTERS", 50)
        machine.keep(a_session_with_everything())
        machine.bring_in()
        with machine.stores() as stores:
            assert stores.index.verify() == []
        assert len(machine.finds("bowls")) == 1

    def test_a_thread_that_somebody_brings_meanwhile_is_joined(self, machine: Machine) -> None:
        """A sync, for instance: between the reading of a session and the placing of its file."""
        machine.keep(a_short_session())
        machine.bring_in()
        thread = machine.thread()
        again = Machine(machine.folder / "again", home=machine.home)

        def bring(done: int, total: int, messages: int) -> None:
            with again.stores() as other:
                other.threads.save(thread)
                other.threads.append(thread.id, "user", "from elsewhere")

        with again.stores() as stores:
            import_sessions(stores, (), since=None, revive=False, progress=bring)
        assert again.texts() == [*(message.content for message in thread.messages), "from elsewhere"]
        assert again.finds("elsewhere") == [thread.id]

    @pytest.mark.parametrize(
        ("what", "since"), [(("cursor-of-tomorrow",), None), ((), "the day before"), (("",), None)]
    )
    def test_what_cannot_be_meant_is_refused(
        self, machine: Machine, what: tuple[str, ...], since: str | None
    ) -> None:
        with pytest.raises(UserError):
            machine.bring_in(*what, since=since)

    def test_nothing_is_written_where_the_agent_keeps_its_own(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        before = {path: path.stat().st_mtime_ns for path in machine.home.rglob("*")}
        machine.bring_in()
        assert {path: path.stat().st_mtime_ns for path in machine.home.rglob("*")} == before

    def test_a_machine_without_agents_has_nothing_to_bring_in(self, machine: Machine) -> None:
        report = machine.bring_in()
        assert (report.agents, report.problems, report.threads) == ({}, [], 0)

    def test_a_look_at_what_would_be_read_stores_nothing(self, machine: Machine) -> None:
        path = machine.keep(a_short_session())
        with machine.stores() as stores:
            (planned,) = dry_run(stores, (), since=None).agents
        assert (planned.agent, planned.sessions, planned.size) == ("claude-code", 1, path.stat().st_size)
        assert not (machine.folder / "data").exists()

    def test_an_empty_file_and_one_that_says_nothing_make_no_thread_and_leave_no_bytes(
        self, machine: Machine
    ) -> None:
        machine.file(f"{SESSION}.jsonl").touch()
        silent = ClaudeSession(OTHER_SESSION)
        silent.bare(type="summary", summary="Of another session", leafUuid="x")
        silent.bare(type="custom-title", customTitle="Only a title", sessionId=OTHER_SESSION)
        machine.keep(silent)
        report = machine.bring_in()
        assert (counts(report), report.problems) == ((0, 0, 0, 0), [])
        assert machine.bring_in().agents == {}
        assert machine.threads() == []
        with machine.stores() as stores:
            assert list(stores.blobs.ids()) == []

    def test_a_file_that_said_nothing_is_read_whole_when_it_says_something(self, machine: Machine) -> None:
        talk = ClaudeSession()
        talk.bare(type="custom-title", customTitle="Bowls", sessionId=SESSION)
        machine.keep(talk)
        machine.bring_in()
        talk.user("hello")
        path = machine.keep(talk)
        assert counts(machine.bring_in()) == (1, 0, 0, 1)
        assert machine.thread().title == "Bowls"
        assert machine.source_of(path) == [path.read_bytes()]


class TestTwice:
    def test_a_second_import_opens_no_file_and_changes_nothing(self, machine: Machine) -> None:
        path = machine.keep(a_session_with_everything())
        part = machine.keep(a_sub_agent())
        machine.bring_in()
        before = machine.thread()
        for source in (path, part):
            source.chmod(0)
        assert counts(machine.bring_in()) == (0, 0, 1, 0)
        assert machine.thread().messages == before.messages

    @pytest.mark.parametrize("lost", ["ledger", "index", "both"])
    def test_ledger_or_index_may_be_lost(self, machine: Machine, lost: str) -> None:
        machine.keep(a_session_with_everything())
        machine.keep(a_sub_agent())
        machine.bring_in()
        with machine.stores() as stores:
            (thread_id,) = stores.threads.ids()
            with stores.threads.edit(thread_id) as editor:
                editor.rename("My own title")
        before = machine.thread()
        if lost in ("ledger", "both"):
            (machine.folder / "data" / "import-ledger.sqlite3").unlink()
        if lost in ("index", "both"):
            shutil.rmtree(machine.folder / "cache")
        report = machine.bring_in()
        assert (report.threads, report.messages) == (0, 0)
        after = machine.thread()
        assert (after.messages, after.registers) == (before.messages, before.registers)
        assert machine.finds('"My own title"') == [thread_id]
        assert machine.finds("青") == [thread_id]
        with machine.stores() as stores:
            assert stores.index.verify() == []
        assert machine.orphans() == set()
        assert counts(machine.bring_in()) == (0, 0, 1, 0)

    def test_two_machines_make_the_same_files_of_the_same_sessions(self, tmp_path: Path) -> None:
        one = Machine(tmp_path / "one")
        for talk in (a_session_with_everything(), a_sub_agent(), a_talk(OTHER_SESSION, "hello", "hi")):
            one.keep(talk)
        two = Machine(tmp_path / "two", home=tmp_path / "two" / "copied")
        shutil.copytree(one.home, two.home, dirs_exist_ok=True)
        one.bring_in()
        two.bring_in()
        files = [
            {path.name: path.read_bytes() for path in (at.folder / "data" / "threads").glob("T-*")}
            for at in (one, two)
        ]
        assert files[0] == files[1]
        assert len(files[0]) == 2

    def test_the_order_in_which_copies_are_met_does_not_matter(self, tmp_path: Path) -> None:
        whole = a_session_with_everything()
        found = []
        for order in ((3, 1, 2), (1, 2, 3), (2, 3, 1)):
            machine = Machine(tmp_path / "".join(map(str, order)))
            copies = {
                1: (whole.data, SESSION),
                2: (b"".join(line + b"\n" for line in whole.lines[4:-3]), OTHER_SESSION),
                3: (b"".join(line + b"\n" for line in whole.lines[:9]), "copy of it"),
            }
            for number in order:
                data, name = copies[number]
                write(machine.file(f"{name}.jsonl"), data)
                machine.bring_in()
            found.append(machine.thread())
        for thread in found[1:]:
            assert thread.messages == found[0].messages
            assert thread.registers == found[0].registers


class TestSessionsAndFiles:
    def test_copies_of_a_session_are_one_thread(self, machine: Machine) -> None:
        talk = a_short_session()
        machine.keep(talk)
        machine.keep(talk, "-home-dev-moved")
        write(machine.file(f"{OTHER_SESSION}.jsonl", "-backup"), talk.data)
        report = machine.bring_in()
        thread = machine.thread()
        assert (report.threads, report.messages) == (1, len(thread.messages))
        assert machine.finds("relay") == [thread.id]
        with machine.stores() as stores:
            assert len(stores.ledger.segments_of(thread.id)) == 3
            assert len(list(stores.blobs.ids())) == 1

    def test_two_files_of_one_name_that_hold_two_sessions_are_two_threads(self, machine: Machine) -> None:
        one, other = a_talk(SESSION, "first"), a_talk(OTHER_SESSION, "second")
        machine.keep(one)
        write(machine.file(f"{SESSION}.jsonl", "-elsewhere"), other.data)
        report = machine.bring_in()
        assert report.threads == 2
        assert sorted(thread.messages[0].content for thread in machine.threads()) == ["first", "second"]

    def test_parts_go_with_the_main_file_they_lie_beside(self, machine: Machine) -> None:
        for session, project in ((SESSION, "-one"), (OTHER_SESSION, "-two")):
            talk = ClaudeSession(session)
            talk.user(f"look in {project}")
            talk.says(starts("c1", f"find it in {project}"), message=f"m{project}")
            write(machine.file(f"{SESSION}.jsonl", project), talk.data)
            part = a_sub_agent(f"find it in {project}", agent=f"a1b2c3{project[1]}", session=session)
            write(machine.file(f"agent-{part.agent}.jsonl", project, SESSION, "subagents"), part.data)
        machine.bring_in()
        for thread in machine.threads():
            (asked,) = [message for message in thread.messages if message.content.startswith("look in")]
            (prompt,) = [message for message in thread.messages if message.content.startswith("find it")]
            assert asked.content.removeprefix("look") == prompt.content.removeprefix("find it")
            assert prompt.parent_id is not None

    def test_the_files_of_a_session_may_lie_in_two_homes(self, machine: Machine) -> None:
        talk = ClaudeSession()
        talk.user("look")
        talk.says(starts("c1", "find the shelf"), message="m1")
        machine.keep(talk)
        part = a_sub_agent()
        other_home = machine.home / ".config" / "claude" / "projects"
        write(other_home / "-p" / SESSION / "subagents" / f"agent-{part.agent}.jsonl", part.data)
        machine.bring_in()
        thread = machine.thread()
        (prompt,) = [message for message in thread.messages if message.content == "find the shelf"]
        assert prompt.parent_id is not None

    def test_a_folder_under_two_names_is_read_once(self, machine: Machine) -> None:
        path = machine.keep(a_short_session())
        (machine.home / ".config").mkdir()
        (machine.home / ".config" / "claude").symlink_to(machine.home / ".claude")
        (machine.claude / "-linked").mkdir()
        (machine.claude / "-linked" / path.name).symlink_to(path)
        assert counts(machine.bring_in())[0] == 1
        with machine.stores() as stores:
            assert len(stores.ledger.entries()) == 1

    def test_the_agents_own_variable_says_where_to_look(self, machine: Machine, tmp_path: Path) -> None:
        machine.keep(a_short_session())
        elsewhere = tmp_path / "elsewhere"
        write(elsewhere / "projects" / "-p" / f"{OTHER_SESSION}.jsonl", a_talk(OTHER_SESSION, "hello").data)
        config = load_config({**machine.environment, "CLAUDE_CONFIG_DIR": str(elsewhere)})
        with Stores(config) as stores:
            import_sessions(stores, (), since=None, revive=False, progress=lambda *_: None)
        assert machine.texts() == ["hello"]

    def test_a_path_may_be_named_a_file_or_a_folder(self, machine: Machine, tmp_path: Path) -> None:
        talk, other = a_short_session(), a_talk(OTHER_SESSION, "hello")
        file = tmp_path / "some" / "talk.jsonl"
        write(file, talk.data)
        write(tmp_path / "more" / "deep" / f"{OTHER_SESSION}.jsonl", other.data)
        assert machine.bring_in(str(file)).threads == 1
        report = machine.bring_in(str(tmp_path / "more"), str(tmp_path / "some"))
        assert (report.threads, counts(report)) == (1, (1, 0, 1, 1))
        assert machine.bring_in("claude-code").threads == 0

    def test_a_named_place_without_a_session_is_told(self, machine: Machine, tmp_path: Path) -> None:
        write(tmp_path / "notes" / "notes.txt", b"hello")
        for place in (tmp_path / "notes", tmp_path / "notes" / "notes.txt"):
            report = machine.bring_in(str(place))
            (reason,) = reasons(report)
            assert reason.startswith("no session of an agent that is known was found here")

    def test_only_what_changed_since_is_read_with_all_its_session(self, machine: Machine) -> None:
        old, new = a_talk(OTHER_SESSION, "old"), ClaudeSession()
        new.user("look")
        new.says(starts("c1", "find the shelf"), message="m1")
        paths = [machine.keep(old), machine.keep(new)]
        for path in paths:
            os.utime(path, (1_000_000_000, 1_000_000_000))
        machine.keep(a_sub_agent())
        report = machine.bring_in(since="2020-01-01")
        assert report.threads == 1
        assert "look" in machine.texts()
