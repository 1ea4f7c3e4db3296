"""Gemini CLI's own folder, with all that lies in it, becomes threads; also where a session of it lies elsewhere."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.builders_claude_code import a_short_session as a_claude_session
from tests.builders_gemini_cli import (
    SESSION,
    SUB_AGENT,
    GeminiSession,
    a_session_resumed_elsewhere,
    a_short_session,
    a_sub_agent,
    an_old_session,
)
from tests.builders_import import Machine, reasons

STEM = f"session-2026-06-03T08-00-{SESSION[:8]}"


class GeminiMachine(Machine):
    """A machine on which Gemini CLI was used, in one project."""

    def __init__(self, folder: Path, *, home: Path | None = None) -> None:
        super().__init__(folder, home=home)
        self.variables: dict[str, str] = {}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that raddle is started with."""
        return super().environment | self.variables

    @property
    def gemini(self) -> Path:
        """The program's own folder."""
        return self.home / ".gemini"

    def put(self, data: bytes, name: str, *folders: str) -> Path:
        """A file among the sessions of a project."""
        path = self.gemini.joinpath("tmp", *(folders or ("kiln", "chats")), name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


@pytest.fixture
def machine(tmp_path: Path) -> GeminiMachine:
    return GeminiMachine(tmp_path)


def test_a_session_its_growth_and_a_second_file_of_it_are_one_thread(machine: GeminiMachine) -> None:
    whole = a_session_resumed_elsewhere()
    machine.put(b"".join(line + b"\n" for line in whole.lines[:7]), f"{STEM}.jsonl")
    machine.bring_in()
    first = machine.texts()
    stub = GeminiSession()
    stub.begins("/home/dev/away/kiln")
    machine.put(stub.data, "session-2026-06-03T09-00-4d1f0c2e.jsonl")
    machine.put(whole.data, f"{STEM}.jsonl")
    report = machine.bring_in()
    assert report.agents["gemini-cli"].grown == 1
    assert report.problems == []
    assert machine.texts()[: len(first)] == first
    assert "It is warm now." in machine.texts()
    again = machine.bring_in()
    assert (again.messages, again.threads) == (0, 0)


def test_a_session_that_its_program_deleted_or_emptied_stays(machine: GeminiMachine) -> None:
    path = machine.put(a_short_session().data, f"{STEM}.jsonl")
    machine.bring_in()
    texts = machine.texts()
    stub = GeminiSession()
    stub.begins()
    path.write_bytes(stub.data)
    machine.bring_in()
    assert machine.texts() == texts
    path.unlink()
    machine.bring_in()
    assert machine.texts() == texts


def test_a_document_and_the_lines_it_was_moved_to_are_one_thread(machine: GeminiMachine) -> None:
    session = an_old_session()
    machine.put(b"\n".join(session.document()), f"{STEM}.json")
    machine.bring_in()
    before = machine.texts()
    session.says("Closed, as you wished.")
    machine.put(session.data, f"{STEM}.jsonl")
    report = machine.bring_in()
    assert machine.texts() == [*before, "Closed, as you wished."]
    assert (report.messages, report.problems) == (1, [])


def test_a_sub_agent_is_in_its_sessions_thread(machine: GeminiMachine) -> None:
    session = a_short_session()
    session.says("I'll ask.")
    session.calls(("c1", "invoke_agent", {}, {"output": "done"}), agentId=SUB_AGENT)
    machine.put(session.data, f"{STEM}.jsonl")
    machine.put(a_sub_agent().data, f"{SUB_AGENT}.jsonl", "kiln", "chats", SESSION)
    machine.bring_in()
    thread = machine.thread()
    (first,) = [message for message in thread.messages if message.content == "find the shelf"]
    above = thread.tree.get(first.parent_id or "")
    assert above is not None
    assert (first.is_sidechain, above.content) == (True, "I'll ask.")


def test_the_workspace_comes_from_the_files_around_a_session(machine: GeminiMachine) -> None:
    folder = "/home/dev/src/kiln"
    session = GeminiSession(projectHash=hashlib.sha256(folder.encode()).hexdigest())
    session.user("hello")
    machine.put(session.data, f"{STEM}.jsonl", str(session.header["projectHash"]), "chats")
    (machine.gemini / "projects.json").write_text(json.dumps({"projects": {folder: "kiln"}}))
    machine.bring_in()
    assert machine.thread().plain("workspace_root") == folder
    assert machine.thread().plain("cwd") == folder


def test_the_mark_in_a_projects_folder_names_its_workspace(machine: GeminiMachine) -> None:
    session = an_old_session()
    machine.put(b"\n".join(session.document()), f"{STEM}.json")
    machine.put(b"/home/dev/kiln2\n", ".project_root", "kiln")
    machine.bring_in()
    assert machine.thread().plain("workspace_root") == "/home/dev/kiln2"


def test_a_rule_leaves_out_a_workspace_that_only_a_mark_names(machine: GeminiMachine) -> None:
    machine.put(b"\n".join(an_old_session().document()), f"{STEM}.json")
    machine.put(b"/home/dev/secret/kiln\n", ".project_root", "kiln")
    other = GeminiSession("00000000-0000-4000-8000-000000000001")
    other.begins("/home/dev/secret/tile")
    other.user("hello")
    machine.put(other.data, "session-2026-06-03T08-00-00000000.jsonl", "tile", "chats")
    machine.configure('[import]\nexclude = ["/home/dev/secret"]\n')
    report = machine.bring_in()
    assert machine.threads() == []
    assert [one.reason for one in report.left_out] == ["[import] exclude '/home/dev/secret'"] * 2


def test_a_session_in_the_folder_of_another_agent_is_given_to_its_own(machine: GeminiMachine) -> None:
    for name, data in (
        ("aaaa.jsonl", b"\n".join(an_old_session().document(kind="main"))),
        ("bbbb.jsonl", a_short_session().data.replace(SESSION.encode(), b"another")),
    ):
        machine.file(name).write_bytes(data)
    machine.keep(a_claude_session())
    report = machine.bring_in()
    assert {agent: counts.new for agent, counts in report.agents.items()} == {
        "claude-code": 1,
        "gemini-cli": 2,
    }
    assert report.problems == []
    assert machine.bring_in().messages == 0


def test_a_session_in_the_folder_of_another_agent_is_named_where_its_own_is_not_wanted(
    machine: GeminiMachine,
) -> None:
    machine.file("aaaa.jsonl").write_bytes(b"\n".join(an_old_session().document()))
    report = machine.bring_in("claude-code")
    assert machine.threads() == []
    assert reasons(report) == ["this is a session of gemini-cli, not of Claude Code: not read here"]


def test_a_session_at_a_path_that_is_named_is_read_whatever_it_is_called(
    machine: GeminiMachine, tmp_path: Path
) -> None:
    for name, data in (
        ("one.json", b"\n".join(an_old_session().document())),
        ("two.jsonl", a_sub_agent().data),
    ):
        (tmp_path / name).write_bytes(data)
        machine.bring_in(str(tmp_path / name))
    assert [thread.plain("source")["agent"] for thread in machine.threads()] == ["gemini-cli"] * 2


def test_other_files_of_the_program_are_passed_over(machine: GeminiMachine) -> None:
    for name, *folders in (
        ("logs.json", "kiln"),
        ("checkpoint-x.json", "kiln"),
        (f"{STEM}.jsonl.unreadable-1", "kiln", "chats"),
        (f"{STEM}.jsonl.tmp-1", "kiln", "chats"),
        ("notes.json", "kiln", "chats"),
    ):
        machine.put(b'[{"sessionId":"x","type":"user","message":"hello"}]', name, *folders)
    report = machine.bring_in()
    assert (report.agents, report.problems) == ({}, [])


def test_the_programs_own_variable_says_where_it_lies(machine: GeminiMachine, tmp_path: Path) -> None:
    elsewhere = GeminiMachine(tmp_path / "b", home=tmp_path / "elsewhere")
    elsewhere.put(a_short_session().data, f"{STEM}.jsonl")
    machine.variables = {"GEMINI_CLI_HOME": str(elsewhere.home)}
    machine.bring_in()
    assert "The relay is open." in machine.texts()


LATE = b"\0" * (1 << 17)
"""So much damage in front that the first bytes do not tell whose file it is."""


def test_a_session_whose_records_alone_tell_whose_it_is_is_read_as_that(
    machine: GeminiMachine, tmp_path: Path
) -> None:
    path, whole = tmp_path / "saved.jsonl", a_short_session()
    path.write_bytes(LATE + b"".join(line + b"\n" for line in whole.lines[:3]))
    report = machine.bring_in(str(path))
    assert (set(report.agents), report.threads, report.unread) == ({"gemini-cli"}, 1, [])
    assert reasons(report) == ["NUL bytes"]
    before = machine.texts()
    path.write_bytes(LATE + whole.data)
    assert set(machine.bring_in(str(path)).agents) == {"gemini-cli"}
    assert len(machine.texts()) > len(before)
    assert machine.source_of(path) == [LATE + whole.data]
    assert machine.bring_in(str(path)).agents["gemini-cli"].unchanged == 1
    assert machine.orphans() == set()


def test_a_session_without_its_header_is_still_known(machine: GeminiMachine, tmp_path: Path) -> None:
    path = tmp_path / "saved.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in a_short_session().lines[1:]))
    assert machine.bring_in(str(path)).agents["gemini-cli"].new == 1


def test_a_session_that_is_known_late_is_read_by_its_own_only_where_that_is_wanted(
    machine: GeminiMachine,
) -> None:
    machine.file("aaaa.jsonl").write_bytes(LATE + a_short_session().data)
    report = machine.bring_in("claude-code")
    assert reasons(report) == ["this is a session of gemini-cli, not of Claude Code: not read here"]
    assert (machine.threads(), machine.orphans()) == ([], set())


def test_a_rule_holds_for_a_session_that_is_known_late(machine: GeminiMachine, tmp_path: Path) -> None:
    path = tmp_path / "saved.jsonl"
    path.write_bytes(LATE + a_short_session().data)
    machine.configure('[import]\nexclude = ["/home/dev/src/kiln"]\n')
    for _ in range(2):
        report = machine.bring_in(str(path))
        assert [one.path for one in report.left_out] == [str(path)]
        assert (machine.threads(), machine.orphans(), report.unread) == ([], set(), [])
