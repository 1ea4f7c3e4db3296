"""Sessions go on, are rewritten and deleted while people edit the threads made of them; nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.actions.importing.run import ImportReport
from raddle.adapters.agent_homes.source_bytes import SourceBytes
from raddle.wiring.purging import purge_thread
from tests.builders_claude_code import (
    OTHER_SESSION,
    SESSION,
    ClaudeSession,
    a_session_with_everything,
    a_short_session,
    a_sub_agent,
    starts,
)
from tests.builders_import import PROJECT, Machine, add, counts, write


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def more_of(talk: ClaudeSession, *turns: str) -> bytes:
    """What these turns add to the session's file."""
    before = len(talk.data)
    for turn in turns:
        talk.user(turn)
    return talk.data[before:]


def only_thread(machine: Machine) -> str:
    with machine.stores() as stores:
        (thread_id,) = stores.threads.ids()
        return thread_id


class TestGrowth:
    def test_a_grown_session_is_its_thread_with_more_in_it(self, machine: Machine) -> None:
        talk = a_short_session()
        path = machine.keep(talk)
        machine.bring_in()
        add(path, more_of(talk, "Is it warm by now, thermocouple aside?"))
        assert counts(machine.bring_in()) == (0, 1, 0, 1)
        assert machine.texts()[-1] == "Is it warm by now, thermocouple aside?"
        assert machine.finds("thermocouple") == [only_thread(machine)]
        assert machine.source_of(path) == [path.read_bytes()]
        assert machine.orphans() == set()

    def test_only_the_new_end_is_read(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        talk = a_session_with_everything()
        path = machine.keep(talk)
        machine.bring_in()
        more = more_of(talk, "again")
        add(path, more)
        read: list[tuple[int, int]] = []
        whole = SourceBytes._chunks

        def listen(self: SourceBytes, start: int, end: int | None) -> object:
            for chunk in whole(self, start, end):
                read.append((start, len(chunk)))
                yield chunk

        monkeypatch.setattr(SourceBytes, "_chunks", listen)
        machine.bring_in()
        assert read == [(path.stat().st_size - len(more), len(more))]

    def test_growing_step_by_step_gives_the_thread_that_one_import_gives(self, tmp_path: Path) -> None:
        talk, part = a_session_with_everything(), a_sub_agent()
        at_once, step_by_step = Machine(tmp_path / "once"), Machine(tmp_path / "steps")
        for count in range(3, len(talk.lines) + 1, 5):
            step_by_step.keep(talk, lines=count)
            step_by_step.bring_in()
        for count in range(1, len(part.lines) + 1):
            step_by_step.keep(part, lines=count)
            step_by_step.bring_in()
        for machine in (step_by_step, at_once):
            machine.keep(talk)
            machine.keep(part)
            machine.bring_in()
        one, other = at_once.thread(), step_by_step.thread()
        assert one.messages == other.messages
        assert one.registers == other.registers
        with step_by_step.stores() as stores:
            assert stores.index.verify() == []
            assert [row.message_count for row in stores.listed(limit=None)] == [len(one.messages)]

    def test_a_message_that_was_half_written_is_made_whole(self, machine: Machine) -> None:
        talk = ClaudeSession()
        talk.user("why?")
        talk.says("Because", message="msg_1", out=1)
        path = machine.keep(talk)
        machine.bring_in()
        talk.says("of the relay.", message="msg_1", out=9)
        write(path, talk.data)
        assert counts(machine.bring_in()) == (0, 1, 0, 0)
        assert machine.texts() == ["why?", "Because\n\nof the relay."]
        assert machine.thread().messages[1].usage is not None
        assert machine.finds("relay") == [only_thread(machine)]

    @pytest.mark.parametrize("largest", [100, 2_000], ids=["much is new", "its state is lost"])
    def test_a_large_session_that_has_to_be_read_whole_is_read_in_bulk(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, largest: int
    ) -> None:
        talk = a_session_with_everything()
        path = machine.keep(talk)
        machine.bring_in()
        with machine.stores() as stores, stores.threads.edit(only_thread(machine)) as editor:
            editor.rename("Mine")
        monkeypatch.setattr("raddle.wiring.import_desk.LARGEST_GROWTH_BYTES", largest)
        with machine.stores() as stores:
            (entry,) = stores.ledger.entries().values()
            stores.ledger.record([(entry, b"of another version")], [])
        for words in ("again", "and again"):
            add(path, more_of(talk, words))
            assert counts(machine.bring_in()) == (0, 1, 0, 1)
        assert machine.texts()[-2:] == ["again", "and again"]
        assert machine.thread().title == "Mine"
        assert machine.finds("Mine") == [only_thread(machine)]
        assert machine.source_of(path) == [path.read_bytes()]
        assert machine.orphans() == set()

    def test_sessions_new_and_grown_are_brought_in_together(self, machine: Machine) -> None:
        talk = a_short_session()
        path = machine.keep(talk)
        machine.bring_in()
        add(path, more_of(talk, "again"))
        other = ClaudeSession(OTHER_SESSION)
        other.user("hello")
        machine.keep(other)
        assert counts(machine.bring_in()) == (1, 1, 0, 2)
        assert len(machine.threads()) == 2


class TestRewrittenSources:
    @pytest.mark.parametrize(
        "how", ["cut", "emptied", "blanked", "compacted", "deleted", "replaced by another"]
    )
    def test_the_archive_keeps_what_the_source_lost(self, machine: Machine, how: str) -> None:
        talk, part = a_session_with_everything(), a_sub_agent()
        path = machine.keep(talk)
        machine.keep(part)
        machine.bring_in()
        before, data = machine.thread(), path.read_bytes()
        compacted, other = ClaudeSession(), ClaudeSession(OTHER_SESSION)
        compacted.user("So far: bowls.", under=None)
        other.user("something else")
        if how == "deleted":
            path.unlink()
        else:
            rewritten = {
                "cut": b"".join(line + b"\n" for line in talk.lines[:6]),
                "emptied": b"",
                "blanked": data.replace(b"Both read.", b"").replace(b"Fired.", b""),
                "compacted": compacted.data,
                "replaced by another": other.data,
            }[how]
            write(path, rewritten)
        machine.bring_in()
        with machine.stores() as stores:
            after = stores.threads.load(before.id)
            told = stores.notes_on(after)
        kept = {message.id: message for message in after.messages}
        assert all(len(kept[one.id].content) >= len(one.content) for one in before.messages)
        assert any("rewritten" in note for note in told) is (how in ("cut", "blanked", "compacted"))
        assert machine.source_of(path)[0] == data
        assert (
            counts(machine.bring_in())[:2] == (0, 0) if how != "deleted" else machine.bring_in().threads == 0
        )

    def test_a_source_that_comes_back_and_goes_on_is_gone_on_with(self, machine: Machine) -> None:
        talk = a_short_session()
        path = machine.keep(talk)
        machine.bring_in()
        data = path.read_bytes()
        write(path, b"")
        machine.bring_in()
        write(path, data + more_of(talk, "again"))
        machine.bring_in()
        assert machine.texts().count("Why is the kiln cold?") == 1
        assert machine.texts()[-1] == "again"


class TestEditsOfAPerson:
    def test_titles_tags_and_replies_outlive_what_the_agent_writes_later(self, machine: Machine) -> None:
        talk = a_short_session()
        path = machine.keep(talk)
        machine.bring_in()
        thread_id = only_thread(machine)
        with machine.stores() as stores, stores.threads.edit(thread_id) as editor:
            editor.rename("My own title")
            editor.tag("ceramics")
            editor.pin(True)
            mine = editor.append("user", "What if I open the door?")
            editor.undo()
        talk.bare(type="custom-title", customTitle="The agent's title", sessionId=SESSION)
        write(path, talk.data + more_of(talk, "again"))
        machine.bring_in()
        thread = machine.thread()
        assert (thread.title, thread.tags, thread.is_pinned) == ("My own title", ["ceramics"], True)
        assert thread.tree.is_removed(mine.id)
        assert "again" in machine.texts()
        assert thread.conflicts == []
        assert machine.finds("again tag:ceramics") == [thread_id]

    @pytest.mark.parametrize("lost", ["nothing", "ledger"])
    def test_a_deleted_thread_is_not_woken_by_what_comes_later(self, machine: Machine, lost: str) -> None:
        talk = a_short_session()
        path = machine.keep(talk)
        machine.bring_in()
        thread_id = only_thread(machine)
        with machine.stores() as stores, stores.threads.edit(thread_id) as editor:
            editor.delete()
        if lost == "ledger":
            (machine.folder / "data" / "import-ledger.sqlite3").unlink()
        add(path, more_of(talk, "again"))
        machine.bring_in()
        assert machine.thread().is_deleted
        assert machine.finds("relay") == []
        with machine.stores() as stores:
            assert stores.listed(limit=None) == []
            with stores.threads.edit(thread_id) as editor:
                editor.restore()
        assert machine.texts()[-1] == "again"
        assert machine.finds("relay") == [thread_id]

    def test_a_thread_whose_files_somebody_removed_by_hand_comes_back_whole(self, machine: Machine) -> None:
        talk = a_short_session()
        path = machine.keep(talk)
        machine.bring_in()
        before = machine.texts()
        for file in (machine.folder / "data" / "threads").glob("T-*"):
            file.unlink()
        add(path, more_of(talk, "again"))
        assert counts(machine.bring_in()) == (1, 0, 0, len(before) + 1)
        assert machine.texts() == [*before, "again"]
        assert machine.source_of(path) == [path.read_bytes()]

    @pytest.mark.parametrize("lost", ["nothing", "ledger"])
    def test_a_thread_that_is_damaged_costs_itself_and_is_made_again_from_its_source(
        self, machine: Machine, lost: str
    ) -> None:
        talk, other = a_short_session(), ClaudeSession(OTHER_SESSION)
        other.user("hello")
        paths = [machine.keep(talk), machine.keep(other)]
        machine.bring_in()
        (thread_id,) = machine.finds("relay")
        file = machine.folder / "data" / "threads" / f"{thread_id}.json"
        before = file.read_bytes()
        file.write_bytes(before[: len(before) // 2])
        if lost == "ledger":
            (machine.folder / "data" / "import-ledger.sqlite3").unlink()
        for path in paths:
            add(path, more_of(talk if path is paths[0] else other, "again"))
        report = machine.bring_in()
        assert [problem.path for problem in report.problems] == [str(paths[0])]
        assert counts(report)[1] == 1
        assert counts(machine.bring_in())[:2] == (1, 0)
        with machine.stores() as stores:
            found = [message.content for message in stores.threads.load(thread_id).messages]
        assert found[-1] == "again"
        assert "The relay is open." in found
        assert machine.finds("relay") == [thread_id]


class TestPlaces:
    def a_main_file(self) -> ClaudeSession:
        talk = ClaudeSession()
        talk.user("look")
        talk.says(starts("c1", "find the shelf"), message="m1")
        return talk

    @pytest.mark.parametrize(("skew", "lost"), [(600, "nothing"), (-86_400, "nothing"), (600, "ledger")])
    def test_a_sub_agent_that_was_stored_without_its_place_moves_there(
        self, machine: Machine, skew: int, lost: str
    ) -> None:
        """Also where the clocks were so that its earlier, lost form came before the call that started it."""
        talk = self.a_main_file()
        part = ClaudeSession(agent="a1b2c3d", start=talk.now + skew * 1_000_000)
        part.user("find the shelf")
        part.says("It is shelf 4.", message="m2")
        machine.keep(talk, lines=1)
        machine.keep(part)
        machine.bring_in()
        (prompt,) = [one for one in machine.thread().messages if one.content == "find the shelf"]
        assert prompt.parent_id is None
        if lost == "ledger":
            (machine.folder / "data" / "import-ledger.sqlite3").unlink()
        machine.keep(talk)
        machine.bring_in()
        thread = machine.thread()
        (prompt,) = [one for one in thread.messages if one.content == "find the shelf"]
        (call,) = [one for one in thread.messages if one.tool_calls]
        assert prompt.parent_id == call.id
        for message in thread.messages:
            above = thread.tree.get(message.parent_id or "")
            assert above is None or (above.order, above.id) < (message.order, message.id)
        assert thread.tree.lost() == []
        assert machine.bring_in().messages == 0

    def test_a_sub_agent_alone_is_a_thread_and_joins_its_session_when_that_comes(
        self, machine: Machine
    ) -> None:
        machine.keep(a_sub_agent())
        assert machine.bring_in().threads == 1
        machine.keep(self.a_main_file())
        assert machine.bring_in().threads == 0
        thread = machine.thread()
        (prompt,) = [one for one in thread.messages if one.content == "find the shelf"]
        assert prompt.parent_id is not None
        assert thread.title


def test_a_report_tells_sessions_that_only_have_new_bookkeeping_as_unchanged(machine: Machine) -> None:
    talk = a_short_session()
    path = machine.keep(talk)
    machine.bring_in()
    add(path, b'{"type":"mode","mode":"normal"}\n')
    report: ImportReport = machine.bring_in()
    assert counts(report) == (0, 0, 1, 0)
    assert machine.source_of(path) == [path.read_bytes()]
    assert PROJECT in str(path)


@pytest.mark.parametrize(
    ("first", "then", "stands"),
    [
        ("zzz half", "zzz half, and whole", "zzz half, and whole"),
        ("zzz first", "aaa rewritten to more", "aaa rewritten to more"),
        ("zzz said in full", "aaa cut", "zzz said in full"),
    ],
)
def test_of_a_message_that_was_rewritten_in_place_the_fuller_form_stands_and_the_bytes_of_both_are_kept(
    machine: Machine, first: str, then: str, stands: str
) -> None:
    said = {}
    path = machine.file(f"{SESSION}.jsonl")
    for text in (first, then):
        talk = ClaudeSession()
        talk.user("why?")
        talk.says(text, message="msg_1")
        write(path, talk.data)
        machine.bring_in()
        said[text] = talk.data
    assert machine.texts() == ["why?", stands]
    assert machine.finds(stands.replace(",", "")) == [only_thread(machine)]
    assert machine.source_of(path) == [said[first], said[then]]
    assert counts(machine.bring_in()) == (0, 0, 1, 0)


def test_a_file_that_held_another_sessions_lines_before_its_own_keeps_all_its_bytes_and_both_threads(
    machine: Machine,
) -> None:
    """The other session may have no file any more: its thread stays, and its turns count once, for they have one id."""
    resumed = ClaudeSession(SESSION)
    resumed.user("said before")
    path = machine.file(f"{OTHER_SESSION}.jsonl")
    write(path, resumed.data)
    machine.bring_in()
    own = ClaudeSession(OTHER_SESSION)
    own.user("resumed")
    add(path, own.data)
    machine.bring_in()
    before, after = sorted(machine.threads(), key=lambda thread: len(thread.messages))
    assert [message.content for message in before.messages] == ["said before"]
    assert [message.content for message in after.messages] == ["said before", "resumed"]
    assert before.messages[0].id == after.messages[0].id
    with machine.stores() as stores:
        kept = [segment for _, segment in stores.ledger.segments_of(after.id)]
        data = b"".join(
            stores.blobs.read(segment.sha256) for segment in sorted(kept, key=lambda one: one.start)
        )
        assert data == path.read_bytes()
        purge_thread(stores, before.id)
        purge_thread(stores, after.id)
        assert list(stores.blobs.ids()) == []


def test_what_a_file_held_of_another_session_stays_with_it_when_that_is_purged(machine: Machine) -> None:
    resumed = ClaudeSession(SESSION)
    resumed.user("said before")
    path = machine.file(f"{OTHER_SESSION}.jsonl")
    write(path, resumed.data)
    machine.bring_in()
    first = only_thread(machine)
    own = ClaudeSession(OTHER_SESSION)
    own.user("resumed")
    add(path, own.data)
    machine.bring_in()
    with machine.stores() as stores:
        purge_thread(stores, first)
    assert machine.source_of(path) == [path.read_bytes()]
