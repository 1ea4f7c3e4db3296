"""A thread goes on in an agent of this machine: where its session lies, under which id, and what nothing may change."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from raddle.actions.resuming.registry import AGENTS
from raddle.actions.threads import reply, start_thread
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.thread import Thread
from raddle.wiring.purging import purge_thread
from raddle.wiring.resuming import Resumed, prepare_session
from raddle.wiring.usage import usage_of
from tests.builders_claude_code import a_session_with_everything, a_sub_agent
from tests.builders_claude_code import a_short_session as claude_session
from tests.builders_codex import a_session_with_everything as codex_with_everything
from tests.builders_codex import a_short_session as codex_session
from tests.builders_gemini_cli import a_short_session as gemini_session
from tests.builders_gemini_cli import an_old_session
from tests.builders_import import Machine, add, reasons, write
from tests.builders_opencode import a_short_session as opencode_session
from tests.builders_opencode_stores import connected, store
from tests.fakes.opencode_program import install

_CLAUDE, _CODEX, _OLD = claude_session(), codex_session(), codex_session("plain")
_GEMINI = ".gemini/tmp/kiln/chats/session-2026-06-03T08-00-4d1f0c2e"


class Kind(NamedTuple):
    """A session of an agent that keeps files: where it lies below the home, and its bytes."""

    agent: str
    place: str
    data: bytes


KINDS = {
    "claude": Kind(
        "claude-code", f".claude/projects/-home-dev-src-kiln/{_CLAUDE.session}.jsonl", _CLAUDE.data
    ),
    "codex": Kind("codex", f".codex/sessions/2026/02/01/{_CODEX.name}", _CODEX.data),
    "codex 2025": Kind("codex", f".codex/sessions/2026/02/01/{_OLD.name}", _OLD.data),
    "gemini": Kind("gemini", f"{_GEMINI}.jsonl", gemini_session().data),
    "gemini 2025": Kind("gemini", f"{_GEMINI}.json", b"\n".join(an_old_session().document())),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
every_agent = pytest.mark.parametrize("agent", AGENTS)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Another place than the session's own."""
    folder = tmp_path / "work" / "Kiln 2"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def with_opencode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")


def elsewhere(machine: Machine, tmp_path: Path, name: str = "other") -> Machine:
    """A machine that has the same threads and their source bytes, and nothing of any agent."""
    shutil.copytree(machine.folder / "data", tmp_path / name / "data")
    shutil.copytree(machine.folder / "state", tmp_path / name / "state")
    return Machine(tmp_path / name, clock=machine.clock)


def go_on(
    machine: Machine, agent: str, workspace: Path, leaf: str | None = None, thread_id: str = ""
) -> Resumed:
    with machine.stores() as stores:
        thread = stores.threads.load(thread_id or stores.threads.ids()[0])
        return prepare_session(stores, thread, agent, leaf=leaf, workspace=workspace)


def say(resumed: Resumed, agent: str) -> None:
    """Somebody goes on with the session in its agent."""
    assert resumed.path is not None
    text, at = "And the lid?", "2027-06-01T10:00:00.000Z"
    lines: dict[str, dict[str, Any]] = {
        "claude-code": {
            "type": "user",
            "uuid": "0d2f3c1e-aaaa-4bbb-8ccc-1234567890ab",
            "parentUuid": None,
            "sessionId": resumed.session_id,
            "timestamp": at,
            "message": {"role": "user", "content": text},
        },
        "codex": {
            "timestamp": at,
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": text}],
            },
        },
        "gemini": {"id": "m-lid", "timestamp": at, "type": "user", "content": [{"text": text}]},
    }
    add(resumed.path, json.dumps(lines[agent]).encode() + b"\n")


def importer_named(agent: str) -> str:
    return "gemini-cli" if agent == "gemini" else agent


def add_turns(machine: Machine, under: str = "tip") -> list[str]:
    machine.clock.wind()  # type: ignore[attr-defined]
    with machine.stores() as stores:
        thread_id = stores.threads.ids()[0]
        asked = reply(stores.threads, thread_id, "And the glaze?", parent=under)
        return [asked.id, reply(stores.threads, thread_id, "Blue.", parent=asked.id, role="assistant").id]


def ids(thread: Thread) -> list[str]:
    return [message.id for message in thread.messages]


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "Kiln 2" not in str(path)
    }


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "one")


class TestItsOwnAgentOnAnotherMachine:
    @every_kind
    def test_it_gets_its_own_lines_under_its_own_id(
        self, machine: Machine, kind: Kind, tmp_path: Path, workspace: Path
    ) -> None:
        write(machine.home / kind.place, kind.data)
        machine.bring_in()
        other = elsewhere(machine, tmp_path)
        resumed = go_on(other, kind.agent, workspace)
        source = machine.thread().source
        assert source is not None
        assert (resumed.is_own, resumed.session_id, resumed.cwd) == (True, source.session_id, workspace)
        assert resumed.argv[-1] == source.session_id
        assert resumed.path is not None
        assert resumed.path.is_relative_to(other.home)
        assert len(resumed.path.read_bytes().splitlines()) == len(kind.data.splitlines())

    @every_kind
    def test_imported_there_it_is_the_same_thread_and_no_turn_is_doubled(
        self, machine: Machine, kind: Kind, tmp_path: Path, workspace: Path
    ) -> None:
        write(machine.home / kind.place, kind.data)
        machine.bring_in()
        add_turns(machine)
        other = elsewhere(machine, tmp_path)
        before = ids(other.thread())
        resumed = go_on(other, kind.agent, workspace)
        assert resumed.is_own
        assert resumed.path is not None
        assert b"And the glaze?" in resumed.path.read_bytes()
        assert reasons(other.bring_in()) == []
        assert ids(other.thread()) == before

    @every_kind
    def test_asked_twice_it_is_written_once(
        self, machine: Machine, kind: Kind, tmp_path: Path, workspace: Path
    ) -> None:
        write(machine.home / kind.place, kind.data)
        machine.bring_in()
        other = elsewhere(machine, tmp_path)
        first = go_on(other, kind.agent, workspace)
        assert first.path is not None
        kept = everything_in(other.home)
        again = go_on(other, kind.agent, workspace)
        assert (again.path, again.session_id, again.cwd) == (first.path, first.session_id, first.cwd)
        assert everything_in(other.home) == kept

    def test_claude_codes_lines_tell_the_folder_here(
        self, machine: Machine, tmp_path: Path, workspace: Path
    ) -> None:
        session, sub_agent = a_session_with_everything(), a_sub_agent()
        machine.keep(session)
        machine.keep(sub_agent)
        machine.bring_in()
        other = elsewhere(machine, tmp_path)
        resumed = go_on(other, "claude-code", workspace)
        assert resumed.path is not None
        assert resumed.path.parent.name.endswith("-work-Kiln-2")
        found = [json.loads(line) for line in resumed.path.read_bytes().splitlines()]
        assert {line["cwd"] for line in found if "cwd" in line} == {str(workspace)}
        for moved, line in zip(found, map(json.loads, session.lines), strict=True):
            assert {**moved, "cwd": line.get("cwd")} == {"cwd": None, **line}
        beside = list((resumed.path.with_suffix("") / "subagents").iterdir())
        assert [path.name for path in beside] == [f"agent-{sub_agent.agent}.jsonl"]

    def test_gemini_finds_the_folder_by_its_mark(
        self, machine: Machine, tmp_path: Path, workspace: Path
    ) -> None:
        kind = KINDS["gemini"]
        write(machine.home / kind.place, kind.data)
        machine.bring_in()
        other = elsewhere(machine, tmp_path)
        taken = other.home / ".gemini" / "tmp" / "kiln-2"
        write(taken / ".project_root", b"/somebody/elses/Kiln 2")
        resumed = go_on(other, "gemini", workspace)
        assert resumed.path is not None
        assert resumed.path.parent.parent.name == "kiln-2-1"
        assert (resumed.path.parent.parent / ".project_root").read_text() == str(workspace)
        assert (taken / ".project_root").read_text() == "/somebody/elses/Kiln 2"

    def test_an_older_gemini_keeps_its_folder(
        self, machine: Machine, tmp_path: Path, workspace: Path
    ) -> None:
        from raddle.actions.resuming.gemini_cli import project_hash

        kind = KINDS["gemini"]
        write(machine.home / kind.place, kind.data)
        machine.bring_in()
        other = elsewhere(machine, tmp_path)
        old = other.home / ".gemini" / "tmp" / project_hash(str(workspace))
        (old / "chats").mkdir(parents=True)
        resumed = go_on(other, "gemini", workspace)
        assert resumed.path is not None
        assert resumed.path.parent == old / "chats"


class TestItsOwnAgentHere:
    @every_kind
    def test_a_session_that_is_there_is_used_and_not_touched(
        self, machine: Machine, kind: Kind, workspace: Path
    ) -> None:
        write(machine.home / kind.place, kind.data)
        mark = (machine.home / kind.place).parent.parent / ".project_root"
        if kind.agent == "gemini":
            write(mark, str(workspace).encode())
        machine.bring_in()
        kept = everything_in(machine.home)
        resumed = go_on(machine, kind.agent, workspace)
        assert resumed.is_own
        after = everything_in(machine.home)
        assert {name: after[name] for name in kept} == kept
        if kind.agent != "claude-code":
            assert after == kept

    @every_kind
    def test_what_was_added_goes_into_a_session_of_its_own_and_shares_its_turns(
        self, machine: Machine, kind: Kind, workspace: Path
    ) -> None:
        write(machine.home / kind.place, kind.data)
        machine.bring_in()
        add_turns(machine)
        before = machine.thread()
        kept = everything_in(machine.home)
        resumed = go_on(machine, kind.agent, workspace)
        source = before.source
        assert source is not None
        assert resumed.is_own
        assert resumed.session_id != source.session_id
        after = everything_in(machine.home)
        assert {name: after[name] for name in kept} == kept
        assert resumed.path is not None
        assert any("a thread of its own" in warning for warning in resumed.warnings)
        if resumed.path.suffix == ".jsonl":
            assert reasons(machine.bring_in()) == []
            assert [thread.id for thread in machine.threads()] == [before.id]
            say(resumed, kind.agent)
        assert reasons(machine.bring_in()) == []
        threads = {thread.id: thread for thread in machine.threads()}
        assert ids(threads.pop(before.id)) == ids(before)
        (fork,) = threads.values()
        told = {message.id for message in before.messages if message.kind != "notice"}
        assert told <= set(ids(fork))
        news = [message for message in fork.messages if message.kind != "notice" and message.id not in told]
        assert [message.content for message in news] in ([], ["And the lid?"])

    def test_a_session_that_its_agent_went_on_with_is_used(self, machine: Machine, workspace: Path) -> None:
        kind = KINDS["codex"]
        path = machine.home / kind.place
        write(path, kind.data)
        machine.bring_in()
        add(path, b'{"timestamp":"2026-02-02T09:00:00Z","type":"event_msg","payload":{"type":"x"}}\n')
        resumed = go_on(machine, "codex", workspace)
        assert (resumed.path, resumed.is_own) == (path, True)

    def test_a_branch_that_the_agents_session_does_not_end_with_is_told_anew(
        self, machine: Machine, workspace: Path
    ) -> None:
        session = codex_with_everything()
        write(machine.home / ".codex" / "sessions" / "2026" / "02" / "01" / session.name, session.data)
        machine.bring_in()
        thread = machine.thread()
        tip = thread.tree.tip()
        assert tip is not None
        early = next(message for message in thread.tree.path_to_root(tip.id) if message.kind == "turn")
        added = add_turns(machine, under=early.id)
        resumed = go_on(machine, "codex", workspace, leaf=added[-1])
        assert (resumed.is_own, resumed.messages) == (False, 3)
        assert any("told anew" in warning for warning in resumed.warnings)
        assert resumed.path is not None
        assert b"Blue." in resumed.path.read_bytes()

    def test_without_its_bytes_it_is_told_anew(
        self, machine: Machine, tmp_path: Path, workspace: Path
    ) -> None:
        kind = KINDS["codex"]
        write(machine.home / kind.place, kind.data)
        machine.bring_in()
        other = elsewhere(machine, tmp_path)
        shutil.rmtree(other.folder / "data" / "blobs", ignore_errors=True)
        for blobs in other.folder.rglob("blobs"):
            shutil.rmtree(blobs)
        resumed = go_on(other, "codex", workspace)
        assert not resumed.is_own
        assert resumed.warnings

    def test_a_call_that_gemini_would_send_without_a_result_gets_one(
        self, machine: Machine, tmp_path: Path, workspace: Path
    ) -> None:
        session = gemini_session()
        asked = {
            "id": "m-last",
            "timestamp": "2026-06-04T08:00:00.000Z",
            "type": "gemini",
            "content": "",
            "toolCalls": [{"id": "late", "name": "shell", "args": {}, "status": "executing"}],
        }
        write(machine.home / KINDS["gemini"].place, session.data + json.dumps(asked).encode() + b"\n")
        machine.bring_in()
        other = elsewhere(machine, tmp_path)
        resumed = go_on(other, "gemini", workspace)
        assert resumed.is_own
        assert resumed.path is not None
        last = json.loads(resumed.path.read_bytes().splitlines()[-1])
        assert last["content"][0]["functionResponse"]["id"] == "late"
        assert last["content"][0]["functionResponse"]["response"] == {"error": "no result recorded"}


class TestOpenCode:
    def bring_in(self, machine: Machine) -> None:
        path = machine.home / ".local" / "share" / "opencode" / "opencode.db"
        path.parent.mkdir(parents=True)
        store(connected(path), opencode_session())
        machine.bring_in()

    @pytest.mark.usefixtures("with_opencode")
    def test_its_own_session_is_brought_in_with_what_was_added(
        self, machine: Machine, tmp_path: Path, workspace: Path
    ) -> None:
        self.bring_in(machine)
        add_turns(machine)
        other = elsewhere(machine, tmp_path)
        before = other.thread()
        assert before.source is not None
        resumed = go_on(other, "opencode", workspace)
        assert (resumed.is_own, resumed.session_id) == (True, before.source.session_id)
        assert (resumed.path, resumed.argv[1]) == (None, "--session")
        assert reasons(other.bring_in()) == []
        assert ids(other.thread()) == ids(before)
        again = go_on(other, "opencode", workspace)
        assert again.session_id == resumed.session_id
        assert "OpenCode has this session already: nothing was written" in again.warnings

    @pytest.mark.usefixtures("with_opencode")
    def test_a_session_that_is_there_is_used(self, machine: Machine, workspace: Path) -> None:
        self.bring_in(machine)
        resumed = go_on(machine, "opencode", workspace)
        assert resumed.is_own
        assert "OpenCode has this session already: nothing was written" in resumed.warnings

    @pytest.mark.usefixtures("with_opencode")
    def test_what_was_added_to_one_that_is_there_goes_into_another(
        self, machine: Machine, workspace: Path
    ) -> None:
        self.bring_in(machine)
        added = add_turns(machine)
        before = machine.thread()
        resumed = go_on(machine, "opencode", workspace)
        assert before.source is not None
        assert resumed.session_id != before.source.session_id
        assert added[-1] in ids(before)
        assert any("a thread of its own" in warning for warning in resumed.warnings)
        assert reasons(machine.bring_in()) == []
        assert [thread.id for thread in machine.threads()] == [before.id]

    def test_without_its_program_the_file_and_both_commands_are_given(
        self, machine: Machine, workspace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        machine.keep(claude_session())
        machine.bring_in()
        resumed = go_on(machine, "opencode", workspace)
        assert resumed.path is not None
        assert resumed.argv == ("opencode", "import", str(resumed.path))
        assert json.loads(resumed.path.read_bytes())["info"]["id"] == resumed.session_id
        assert any(f"opencode --session {resumed.session_id}" in one for one in resumed.warnings)


class TestAnotherAgent:
    @pytest.mark.parametrize(
        ("kind", "agent"),
        [
            pytest.param(kind, agent, id=f"{name} to {agent}")
            for name, kind in KINDS.items()
            for agent in AGENTS
            if agent != kind.agent
        ],
    )
    @pytest.mark.usefixtures("with_opencode")
    def test_a_conversation_goes_on_there_and_its_turns_are_the_same_messages(
        self, machine: Machine, kind: Kind, agent: str, workspace: Path
    ) -> None:
        write(machine.home / kind.place, kind.data)
        machine.bring_in()
        before = machine.thread()
        kept = everything_in(machine.home)
        resumed = go_on(machine, agent, workspace)
        assert not resumed.is_own
        after = everything_in(machine.home)
        assert {name: after[name] for name in kept} == kept
        assert reasons(machine.bring_in()) == []
        assert [thread.id for thread in machine.threads()] == [before.id]
        if agent == "opencode":
            return
        say(resumed, agent)
        assert reasons(machine.bring_in()) == []
        threads = {thread.id: thread for thread in machine.threads()}
        assert ids(threads.pop(before.id)) == ids(before)
        (told,) = threads.values()
        assert told.source is not None
        assert told.source.session_id == resumed.session_id
        tip = before.tree.tip()
        assert tip is not None
        path = [m.id for m in before.tree.path_to_root(tip.id) if m.kind != "notice"]
        assert [name for name in ids(told) if name in path] == path
        assert resumed.messages == len(path)

    @every_agent
    @pytest.mark.usefixtures("with_opencode")
    def test_our_own_thread_goes_on_there(self, machine: Machine, agent: str, workspace: Path) -> None:
        with machine.stores() as stores:
            thread_id, _ = start_thread(stores.threads, "Why is it cold?")
            reply(stores.threads, thread_id, "No gas.", role="assistant")
        resumed = go_on(machine, agent, workspace)
        assert (resumed.is_own, resumed.messages) == (False, 2)
        report = machine.bring_in()
        assert [thread.id for thread in machine.threads()] == [thread_id]
        assert (report.threads, report.agents[importer_named(agent)].unchanged) == (0, 1)
        if agent == "opencode":
            return
        say(resumed, agent)
        assert machine.bring_in().threads == 1
        (_, told) = sorted(machine.threads(), key=lambda thread: thread.id != thread_id)
        said = [message.content for message in told.messages if message.kind != "notice"]
        assert said == ["Why is it cold?", "No gas.", "And the lid?"]

    def test_a_copy_is_imported_where_what_it_was_copied_from_is_not(
        self, machine: Machine, tmp_path: Path, workspace: Path
    ) -> None:
        machine.keep(claude_session())
        machine.bring_in()
        resumed = go_on(machine, "codex", workspace)
        assert resumed.path is not None
        other = Machine(tmp_path / "fresh", clock=machine.clock)
        write(other.home / resumed.path.relative_to(machine.home), resumed.path.read_bytes())
        assert other.bring_in().threads == 1

    def test_what_was_purged_does_not_come_back_by_its_copy(self, machine: Machine, workspace: Path) -> None:
        machine.keep(claude_session())
        machine.bring_in()
        go_on(machine, "codex", workspace)
        with machine.stores() as stores:
            purge_thread(stores, stores.threads.ids()[0])
        machine.bring_in()
        assert machine.threads() == []

    def test_what_was_used_before_counts_for_the_agent_that_used_it(
        self, machine: Machine, workspace: Path
    ) -> None:
        machine.keep(claude_session())
        machine.bring_in()
        with machine.stores() as stores:
            before = usage_of(stores, by="agent").tally.rows
        assert [row.key for row in before] == ["claude-code"]
        say(go_on(machine, "codex", workspace), "codex")
        assert machine.bring_in().threads == 1
        with machine.stores() as stores:
            assert usage_of(stores, by="agent").tally.rows == before

    def test_a_session_of_the_same_conversation_is_not_written_twice_and_never_over_one_that_went_on(
        self, machine: Machine, workspace: Path
    ) -> None:
        machine.keep(claude_session())
        machine.bring_in()
        first, again = go_on(machine, "codex", workspace), go_on(machine, "codex", workspace)
        assert first == again
        assert first.path is not None
        add(first.path, b"{}\n")
        third = go_on(machine, "codex", workspace)
        assert third.session_id != first.session_id
        assert third.path is not None
        assert third.path.exists()


class TestWhatCannotBeDone:
    @pytest.fixture
    def kept(self, machine: Machine) -> Callable[..., Resumed]:
        machine.keep(claude_session())
        machine.bring_in()
        return lambda *what, **how: go_on(machine, *what, **how)

    def test_an_agent_that_is_not_known(self, kept: Callable[..., Resumed], workspace: Path) -> None:
        with pytest.raises(NotFound) as refused:
            kept("vi", workspace)
        assert "claude-code" in refused.value.hint

    def test_a_message_that_is_not_there(self, kept: Callable[..., Resumed], workspace: Path) -> None:
        with pytest.raises(NotFound):
            kept("codex", workspace, leaf="m99")

    def test_a_folder_that_is_not_there(self, kept: Callable[..., Resumed], workspace: Path) -> None:
        with pytest.raises(InvalidInput):
            kept("codex", workspace / "gone")
