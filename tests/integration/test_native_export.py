"""A session that was imported is given back as its agent wrote it, to the byte, and with what was added here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from raddle.actions.threads import reply, undo
from raddle.model.errors import BrokenFormat, InvalidInput
from raddle.model.threads.message import Message
from raddle.wiring.native_export import NativeSession, check_whole, chunks_of, native_session, write_session
from raddle.wiring.purging import purge_removed
from tests.builders_claude_code import ClaudeSession, a_session_with_everything, a_short_session, a_sub_agent
from tests.builders_codex import a_bare_session
from tests.builders_codex import a_session_with_a_sub_agent as codex_with_a_sub_agent
from tests.builders_codex import a_session_with_everything as codex_session
from tests.builders_gemini_cli import a_session_with_everything as gemini_session
from tests.builders_gemini_cli import an_old_session
from tests.builders_import import Machine, add, reasons, write


class Kind(NamedTuple):
    """A session of one agent: the form, where its file lies below the home, the file's bytes."""

    form: str
    place: str
    data: bytes


_CODEX, _PLAIN, _BARE = codex_session(), codex_session("plain"), a_bare_session()
_CLAUDE = a_session_with_everything()
_GEMINI = ".gemini/tmp/kiln/chats/session-2026-06-03T08-00-4d1f0c2e"
KINDS = {
    "claude": Kind("claude-code", f".claude/projects/-p/{_CLAUDE.session}.jsonl", _CLAUDE.data),
    "codex": Kind("codex", f".codex/sessions/2026/02/01/{_CODEX.name}", _CODEX.data),
    "codex 2025": Kind("codex", f".codex/sessions/2026/02/01/{_PLAIN.name}", _PLAIN.data),
    "codex, bare": Kind("codex", f".codex/sessions/2026/02/01/{_BARE.name}", _BARE.data),
    "gemini": Kind("gemini", f"{_GEMINI}.jsonl", gemini_session().data),
    "gemini 2025": Kind("gemini", f"{_GEMINI}.json", b"\n".join(an_old_session().document())),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "one")


def settled(machine: Machine, form: str = "claude-code", **asked: object) -> tuple[NativeSession, bytes]:
    """What an export of the only thread gives."""
    with machine.stores() as stores:
        thread = stores.threads.load(stores.threads.ids()[0])
        session = native_session(stores, thread, form, **asked)  # type: ignore[arg-type]
        check_whole(stores, session.main)
        return session, b"".join(chunks_of(stores, session.main))


def exported(machine: Machine, form: str = "claude-code", **asked: object) -> bytes:
    return settled(machine, form, **asked)[1]


def add_turns(machine: Machine, *, under: str = "tip") -> list[Message]:
    """A person goes on here, with two turns."""
    machine.clock.wind()  # type: ignore[attr-defined]
    with machine.stores() as stores:
        thread_id = stores.threads.ids()[0]
        asked = reply(stores.threads, thread_id, "And the glaze?\n", parent=under)
        return [asked, reply(stores.threads, thread_id, "Blue — ‹青›.", parent=asked.id, role="assistant")]


@every_kind
def test_what_was_imported_is_given_back(machine: Machine, kind: Kind) -> None:
    write(machine.home / kind.place, kind.data)
    machine.bring_in()
    assert exported(machine, kind.form) == kind.data


@every_kind
def test_what_was_added_comes_back_as_the_same_messages(machine: Machine, kind: Kind, tmp_path: Path) -> None:
    write(machine.home / kind.place, kind.data)
    machine.bring_in()
    add_turns(machine)
    fork = add_turns(machine, under=machine.thread().messages[1].id)[0]
    leaf = None if kind.form == "claude-code" else machine.thread().messages[-3].id
    session, made = settled(machine, kind.form, leaf=leaf)
    whole = machine.thread()
    known = (
        whole.messages if kind.form == "claude-code" else [m for m in whole.messages if m.id != fork.id][:-1]
    )
    assert session.added == (4 if kind.form == "claude-code" else 2)
    assert session.elsewhere == (0 if kind.form == "claude-code" else 2)
    if not kind.place.endswith(".json"):
        assert made.startswith(kind.data)

    as_it_was, other = Machine(tmp_path / "plain"), Machine(tmp_path / "two")
    write(as_it_was.home / kind.place, kind.data)
    write(other.home / kind.place, made)
    assert reasons(other.bring_in()) == reasons(as_it_was.bring_in())
    assert other.thread().messages == known
    assert exported(other, kind.form) == made, "a turn that came with the file is no turn added here"

    write(machine.home / kind.place, made)
    machine.bring_in()
    assert machine.thread().messages == whole.messages


class TestGrowth:
    def test_a_file_that_grew_in_many_imports_is_one_file(self, machine: Machine) -> None:
        session = a_session_with_everything()
        path = machine.keep(session, lines=1)
        for line in session.lines[1:]:
            machine.bring_in()
            add(path, line + b"\n")
        machine.bring_in()
        assert exported(machine) == session.data

    def test_a_torn_last_line_is_given_as_it_stands_and_once_when_it_is_whole(self, machine: Machine) -> None:
        session = a_short_session()
        path = machine.keep(session, lines=2)
        add(path, session.lines[2][:30])
        machine.bring_in()
        assert exported(machine) == path.read_bytes()
        add(path, session.lines[2][30:] + b"\n")
        machine.bring_in()
        assert exported(machine) == path.read_bytes()

    def test_a_torn_line_is_ended_before_what_was_added(self, machine: Machine, tmp_path: Path) -> None:
        session = a_short_session()
        path = machine.keep(session)
        torn = session.data + b'{"type":"user","mess'
        write(path, torn)
        machine.bring_in()
        add_turns(machine)
        made = exported(machine)
        assert made.startswith(torn + b'\n{"parentUuid"')
        other = Machine(tmp_path / "two")
        write(other.file(path.name), made)
        other.bring_in()
        assert other.thread().messages == machine.thread().messages

    def test_a_torn_line_that_was_written_anew_and_shorter_is_given_as_it_is_now(
        self, machine: Machine
    ) -> None:
        session = a_short_session()
        path = machine.keep(session)
        add(path, b'{"type":"user","message":{"role":"user","content":"a long line that was torn')
        machine.bring_in()
        write(path, session.data + b'{"type":"last-prompt"}\n')
        machine.bring_in()
        assert exported(machine) == path.read_bytes()

    def test_a_file_that_is_read_once_more_from_its_start_is_whole(self, machine: Machine) -> None:
        session = a_session_with_everything()
        path = machine.keep(session, lines=4)
        for cut in (7, 9):
            machine.bring_in()
            write(path, b"".join(line + b"\n" for line in session.lines[:cut]))
        machine.bring_in()
        with machine.stores() as stores:
            stores.ledger.revive(stores.threads.ids()[0])  # what it knows of the file is forgotten
        write(path, session.data)
        machine.bring_in()
        assert exported(machine) == session.data

    def test_a_rewritten_file_is_given_as_it_is_and_as_it_was(self, machine: Machine) -> None:
        first, then = a_session_with_everything(), a_session_with_everything()
        path = machine.keep(first)
        machine.bring_in()
        then.lines = then.lines[3:]
        write(path, then.data)
        machine.bring_in()
        add_turns(machine)
        session, made = settled(machine)
        assert made.startswith(then.data)
        assert (session.generations, session.generation, session.added) == ((1, 2), 2, 2)
        assert exported(machine, generation=1) == first.data
        assert exported(machine, generation=2) == then.data
        with pytest.raises(InvalidInput, match="generation 3"):
            exported(machine, generation=3)

    def test_what_was_added_can_go_on_in_the_agent(self, machine: Machine, tmp_path: Path) -> None:
        """The agent resumes the exported file; its next turn answers the added one, wherever that is read."""
        session = a_short_session()
        path = machine.keep(session)
        machine.bring_in()
        asked, answered = add_turns(machine)
        write(path, exported(machine))
        session.last = json.loads(path.read_bytes().splitlines()[-1])["uuid"]
        session.now += 10**15
        session.user("Then fire them")
        add(path, session.lines[-1] + b"\n")
        machine.bring_in()
        last = machine.thread().messages[-1]
        assert (last.content, last.parent_id) == ("Then fire them", answered.id)
        assert exported(machine) == path.read_bytes()
        other = Machine(tmp_path / "two")
        write(other.file(path.name), path.read_bytes())
        other.bring_in()
        assert other.thread().messages == machine.thread().messages
        assert asked in other.thread().messages


class TestBranches:
    def test_a_branch_takes_the_added_turns_on_its_path(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        machine.bring_in()
        first = machine.thread().messages[0].id
        one, other = add_turns(machine), add_turns(machine, under=first)
        session, made = settled(machine, leaf=other[0].id)
        assert (session.added, session.elsewhere) == (1, 3)
        (line,) = made.removeprefix(a_short_session().data).splitlines()
        assert json.loads(line)["raddle"]["id"] == other[0].id
        assert settled(machine, leaf=first)[0].added == 0
        assert settled(machine)[0].added == len(one) + len(other)

    def test_what_was_taken_back_stays_away(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        machine.bring_in()
        add_turns(machine)
        with machine.stores() as stores:
            undo(stores.threads, stores.threads.ids()[0], 1)
        assert exported(machine) == a_short_session().data

    def test_a_private_thread_is_its_owners_to_export(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        machine.bring_in()
        with machine.stores() as stores, stores.threads.edit(stores.threads.ids()[0]) as editor:
            editor.set_private(True)
        assert exported(machine) == a_short_session().data


class TestSubAgents:
    def write_all(self, machine: Machine, form: str, folder: Path) -> dict[str, bytes]:
        with machine.stores() as stores:
            thread = stores.threads.load(stores.threads.ids()[0])
            written = write_session(stores, native_session(stores, thread, form), folder)
        assert all(path.stat().st_size == size for path, size in written)
        return {str(path.relative_to(folder)): path.read_bytes() for path, _ in written}

    def test_every_file_is_written_under_its_own_name(self, machine: Machine, tmp_path: Path) -> None:
        main, agent = a_session_with_everything(), a_sub_agent()
        machine.keep(main)
        machine.keep(agent)
        machine.bring_in()
        files = self.write_all(machine, "claude-code", tmp_path / "out" / "new")
        assert files == {
            f"{main.session}.jsonl": main.data,
            f"{main.session}/subagents/agent-{agent.agent}.jsonl": agent.data,
        }
        assert exported(machine) == main.data

    def test_rollouts_of_sub_agents_are_beside_their_session(self, machine: Machine, tmp_path: Path) -> None:
        main, agent = codex_with_a_sub_agent()
        for made, day in ((main, "01"), (agent, "02")):
            write(machine.home / ".codex/sessions/2026/02" / day / made.name, made.data)
        machine.bring_in()
        assert self.write_all(machine, "codex", tmp_path / "out") == {
            main.name: main.data,
            agent.name: agent.data,
        }

    def test_of_two_copies_the_one_that_says_more_is_given(self, machine: Machine, tmp_path: Path) -> None:
        session = a_session_with_everything()
        machine.keep(session, "-copy", lines=5)
        machine.keep(session)
        machine.keep(session, "-another", lines=4)
        machine.bring_in()
        assert exported(machine) == session.data
        assert len(self.write_all(machine, "claude-code", tmp_path / "out")) == 1

    def test_the_agents_own_file_is_given_though_an_export_that_was_brought_in_is_larger(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        path, copy, session = self.an_export_that_came_back(machine, tmp_path)
        session.says("here the agent went on", message="msg_new")
        write(path, session.data)
        machine.bring_in()
        data = exported(machine)
        assert copy.stat().st_size > len(session.data)
        assert data.startswith(session.data)
        assert b"And the glaze?" in data

    def test_of_copies_in_other_folders_the_one_with_more_turns_of_the_agent_is_given(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        path, _, session = self.an_export_that_came_back(machine, tmp_path)
        session.says("here the agent went on", message="msg_new")
        path.unlink()
        write(tmp_path / "backup" / path.name, session.data)
        machine.bring_in(str(tmp_path / "backup"))
        assert exported(machine).startswith(session.data)

    def an_export_that_came_back(self, machine: Machine, tmp_path: Path) -> tuple[Path, Path, ClaudeSession]:
        session = a_short_session()
        path = machine.keep(session)
        machine.bring_in()
        add_turns(machine)
        copy = tmp_path / "x.jsonl"
        write(copy, exported(machine))
        machine.bring_in(str(copy))
        return path, copy, session

    def test_a_file_that_is_garbage_now_is_given_as_it_was_when_it_could_be_read(
        self, machine: Machine
    ) -> None:
        main, agent = a_session_with_everything(), a_sub_agent()
        paths = machine.keep(main), machine.keep(agent)
        machine.bring_in()
        for path in paths:
            write(path, b"\x00\xff garbage\n" * 9)
        machine.bring_in()
        session, data = settled(machine)
        assert (session.generations, session.generation, data) == ((1, 2), 1, main.data)
        assert exported(machine, generation=2) == b"\x00\xff garbage\n" * 9

    def test_nothing_is_written_where_a_part_is_damaged(self, machine: Machine, tmp_path: Path) -> None:
        machine.keep(a_session_with_everything())
        machine.keep(a_sub_agent())
        machine.bring_in()
        with machine.stores() as stores:
            thread = stores.threads.load(stores.threads.ids()[0])
            session = native_session(stores, thread, "claude-code")
            _, path = stores.blobs.paths_of(session.others[0].segments[0].sha256)
            path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\0")
            with pytest.raises(BrokenFormat):
                write_session(stores, session, tmp_path / "out")
        assert not [file for file in (tmp_path / "out").rglob("*") if file.is_file()]


class TestWhatCannotBe:
    def test_a_thread_of_our_own_has_no_file(self, machine: Machine) -> None:
        with machine.stores() as stores:
            with stores.threads.create() as editor:
                editor.append("user", "hello")
            with pytest.raises(InvalidInput, match="did not come from Codex") as told:
                native_session(stores, editor.thread, "codex")
        assert "json and markdown" in told.value.hint

    def test_a_thread_of_another_agent_names_its_own_form(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        machine.bring_in()
        with pytest.raises(InvalidInput, match="came from claude-code, not from Gemini CLI") as told:
            exported(machine, "gemini")
        assert "--format claude-code" in told.value.hint

    def test_bytes_that_a_purge_erased_are_named_as_such(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        machine.bring_in()
        with machine.stores() as stores:
            undo(stores.threads, stores.threads.ids()[0], 1)
            purge_removed(stores, stores.threads.ids()[0])
        with pytest.raises(InvalidInput, match="erased by a purge"):
            exported(machine)

    def test_bytes_that_never_came_here_are_named_as_such(self, machine: Machine, tmp_path: Path) -> None:
        machine.keep(a_short_session())
        machine.bring_in()
        for path in (machine.folder / "data").glob("import-ledger*"):
            path.unlink()
        with pytest.raises(InvalidInput, match="not kept here"):
            exported(machine)

    def test_a_lost_segment_is_told_before_anything_is_given(self, machine: Machine) -> None:
        session = a_short_session()
        path = machine.keep(session, lines=2)
        machine.bring_in()
        add(path, session.lines[2] + b"\n")
        machine.bring_in()
        with machine.stores() as stores:
            thread = stores.threads.load(stores.threads.ids()[0])
            first = native_session(stores, thread, "claude-code").main.segments[0]
            stores.blobs.delete(first.sha256)
            with pytest.raises(InvalidInput, match="are lost"):
                native_session(stores, thread, "claude-code")
            stores.ledger.forget_blob(first.sha256)
            with pytest.raises(InvalidInput, match="are lost"):
                native_session(stores, thread, "claude-code")


def test_two_sessions_of_one_folder_do_not_give_each_others_lines(machine: Machine) -> None:
    one, other = ClaudeSession(), ClaudeSession("00000001-0000-4000-8000-000000000000")
    for session, word in ((one, "one"), (other, "other")):
        session.user(word)
        machine.keep(session)
    machine.bring_in()
    with machine.stores() as stores:
        given = {
            b"".join(chunks_of(stores, native_session(stores, stores.threads.load(name), "claude-code").main))
            for name in stores.threads.ids()
        }
    assert given == {one.data, other.data}
