"""Where each agent looks for a session, and that nothing which is there is written over."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from raddle.adapters.agent_homes.session_places import (
    ClaudeCodePlaces,
    CodexPlaces,
    GeminiCliPlaces,
    home_folder,
    opencode_session,
    project_name,
    same_start,
)
from raddle.adapters.files import NewFile
from raddle.model.errors import NotFound
from raddle.wiring.resumed import Resumed
from raddle.wiring.resuming import run_agent
from raddle.wiring.resuming_files import whole_lines
from tests.builders import NOON
from tests.builders_opencode import a_short_session
from tests.builders_opencode_stores import connected, store

SESSION = "01a22dde-0000-7000-8000-000000000001"


def test_a_file_gets_a_name_that_nothing_has_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for text, is_new in ((b"one", True), (b"two", False)):
        with NewFile(tmp_path) as new:
            new.write(text)
            assert new.publish_new(path) is is_new
    assert path.read_bytes() == b"one"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


class TestClaudeCode:
    def test_a_folder_is_named_as_the_program_names_it(self) -> None:
        assert project_name("/home/dev/src/my_kiln.v2") == "-home-dev-src-my-kiln-v2"

    def test_a_session_is_found_in_any_project_and_opened_from_its_own(self, tmp_path: Path) -> None:
        places = ClaudeCodePlaces(tmp_path)
        path = places.place(SESSION, "/a/b", NOON)
        assert places.find(SESSION) is None
        path.write_bytes(b"{}\n")
        found = places.find(SESSION)
        assert found is not None
        assert found.path == path
        assert places.is_found_from(path, "/a/b")
        assert not places.is_found_from(path, "/a/c")
        assert places.find("*") is None


class TestCodex:
    def test_a_rollout_lies_in_the_folder_of_its_day(self, tmp_path: Path) -> None:
        places = CodexPlaces(tmp_path)
        path = places.place(SESSION, "/a", NOON)
        assert path.parent.parent.parent.parent == tmp_path / "sessions"
        kept = f"rollout-2025-12-24T18-00-00-{SESSION}.jsonl"
        assert places.place(SESSION, "/a", NOON, f"{kept}.zst") == tmp_path / "sessions/2025/12/24" / kept
        assert places.place(SESSION, "/a", NOON, "mine.jsonl") == path

    def test_what_is_in_the_archive_is_there_and_cannot_be_opened(self, tmp_path: Path) -> None:
        places = CodexPlaces(tmp_path)
        path = tmp_path / "archived_sessions" / f"rollout-2025-12-24T18-00-00-{SESSION}.jsonl"
        path.parent.mkdir()
        path.write_bytes(b"")
        found = places.find(SESSION)
        assert found is not None
        assert not places.is_found_from(found.path, "/a")


class TestGemini:
    def test_a_project_that_is_noted_keeps_its_folder(self, tmp_path: Path) -> None:
        tmp = tmp_path / "tmp"
        (tmp / "b").mkdir(parents=True)
        (tmp / "b" / ".project_root").write_text("/a/b")
        (tmp_path / "projects.json").write_text('{"projects": {"/a/b": "b", "/evil": "../x"}}')
        places = GeminiCliPlaces(tmp)
        assert places.place(SESSION, "/a/b", NOON).parent == tmp / "b" / "chats"
        assert places.place(SESSION, "/evil", NOON).parent == tmp / "evil" / "chats"
        assert places.place(SESSION, "/c/b", NOON).parent == tmp / "b-1" / "chats"

    def test_a_damaged_list_of_projects_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "projects.json").write_text("{")
        places = GeminiCliPlaces(tmp_path / "tmp")
        assert places.place(SESSION, "/a/b", NOON).parent == tmp_path / "tmp" / "b" / "chats"
        assert places.place(SESSION, "/a/b", NOON).parent == tmp_path / "tmp" / "b" / "chats"


def test_a_session_of_opencode_is_looked_up_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    assert opencode_session(path, "ses_x") is None
    session = a_short_session()
    connection = connected(path)
    store(connection, session)
    connection.close()
    before = path.read_bytes()
    found = opencode_session(path, session.session)
    assert found is not None
    assert len(found.messages) == len(session.messages)
    assert opencode_session(path, "ses_x") is None
    assert path.read_bytes() == before


def test_variables_say_where_an_agent_is(tmp_path: Path) -> None:
    from raddle.actions.importing.registry import importer_of

    home = importer_of("claude-code").home
    assert home_folder(home, lambda _: None, tmp_path) == tmp_path / ".claude" / "projects"
    (tmp_path / ".config" / "claude" / "projects").mkdir(parents=True)
    assert home_folder(home, lambda _: None, tmp_path) == tmp_path / ".config" / "claude" / "projects"
    assert home_folder(home, lambda _: "/elsewhere", tmp_path) == Path("/elsewhere/projects")


def test_a_file_is_the_same_where_it_begins_so(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\n")
    assert same_start(path, iter((b"one\n", b"two\n"))) == (True, True)
    assert same_start(path, iter((b"one\n",))) == (True, False)
    assert same_start(path, iter((b"one\n", b"six\n"))) == (False, False)
    assert same_start(tmp_path / "b", iter(())) == (False, False)


def test_lines_come_whole_whatever_pieces_they_came_in() -> None:
    data = b"one\n\ntwo\nthree"
    for size in range(1, len(data) + 1):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        found = list(whole_lines(iter(pieces)))
        assert b"".join(line for line, _ in found) == data
        assert [line for line, is_whole in found if is_whole and line] == [b"one", b"two", b"three"]


def test_an_agent_is_run_in_its_folder_and_its_exit_code_is_ours(tmp_path: Path) -> None:
    code = "import os, sys; sys.exit(7 if os.getcwd() == sys.argv[1] else 1)"
    session = Resumed(
        agent="codex",
        session_id="s",
        path=None,
        argv=(sys.executable, "-c", code, str(tmp_path)),
        cwd=tmp_path,
        is_own=True,
        messages=1,
    )
    assert run_agent(session) == 7
    with pytest.raises(NotFound):
        run_agent(replace(session, argv=("no-such-agent",)))
    with pytest.raises(NotFound):
        run_agent(replace(session, cwd=tmp_path / "gone"))
