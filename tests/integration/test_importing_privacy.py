"""What a person left out is nowhere; what is private is so from its first byte."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.importing.run import ImportReport
from raddle.config import load_config
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.importing import import_sessions
from tests.builders_claude_code import OTHER_SESSION, SESSION, ClaudeSession, starts
from tests.builders_import import PROJECT, Machine, add, write

SECRET = "/home/dev/clients/acme"
LOOM_ID = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def a_talk_in(folder: str, session: str = SESSION, words: str = "xylophone") -> ClaudeSession:
    talk = ClaudeSession(session)
    talk.fields["cwd"] = folder
    talk.user(words)
    talk.says(starts("c1", f"find the {words}"), message=f"m_{session}")
    return talk


def a_loom_file(*turns: str, **says: Any) -> bytes:
    """A linear thread, as the first seed's program writes it, that names its workspace at the end."""
    messages = [{"role": "user", "content": turn} for turn in turns]
    return json.dumps(
        {"id": LOOM_ID, **says, "conversation": {"messages": messages}, "workspace_root": SECRET}
    ).encode()


class TestExclude:
    def test_nothing_of_a_session_that_is_left_out_by_its_workspace_is_anywhere(
        self, machine: Machine
    ) -> None:
        machine.configure(f'[import]\nexclude = ["{SECRET}/**"]\n')
        left = machine.keep(a_talk_in(SECRET), "-home-dev-clients-acme")
        part = ClaudeSession(agent="a1b2c3d")
        part.fields["cwd"] = "/tmp/worktree"
        part.user("find the xylophone")
        left_part = machine.keep(part, "-home-dev-clients-acme")
        machine.keep(a_talk_in("/home/dev/open", OTHER_SESSION, "marimba"))
        report = machine.bring_in()
        assert report.threads == 1
        assert {one.path for one in report.left_out} == {str(left), str(left_part)}
        assert {one.reason for one in report.left_out} == {f"[import] exclude '{SECRET}/**'"}
        stored = machine.everything_stored().replace(machine.config_file.read_bytes(), b"")
        for trace in ("xylophone", SESSION, "clients", "acme", "a1b2c3d"):
            assert trace.encode() not in stored, trace
        assert machine.finds("xylophone") == []
        assert len(machine.finds("marimba")) == 1
        assert machine.bring_in().left_out == report.left_out

    def test_the_workspace_counts_however_late_in_the_file_it_is_named(self, machine: Machine) -> None:
        machine.configure(f'[import]\nexclude = ["{SECRET}"]\n')
        path = machine.file(f"{SESSION}.jsonl")
        filler = b'{"type":"file-history-snapshot","snapshot":{"x":"' + b"y" * 200_000 + b'"}}\n'
        write(path, filler * 3 + a_talk_in(SECRET).data)
        assert [one.path for one in machine.bring_in().left_out] == [str(path)]
        assert machine.threads() == []
        assert b"xylophone" not in machine.everything_stored()

    def test_a_rule_on_paths_leaves_out_files_without_opening_them(self, machine: Machine) -> None:
        machine.configure('[import]\nexclude = ["*/-old/*"]\n')
        path = machine.keep(a_talk_in("/home/dev"), "-old")
        assert [one.path for one in machine.bring_in().left_out] == [str(path)]
        assert machine.threads() == []

    def test_a_rule_made_later_lets_nothing_more_in_and_takes_nothing_away(self, machine: Machine) -> None:
        talk = a_talk_in(SECRET)
        path = machine.keep(talk)
        machine.bring_in()
        before = machine.texts()
        machine.configure(f'[import]\nexclude = ["{SECRET}"]\n')
        more = len(talk.data)
        talk.user("glockenspiel")
        add(path, talk.data[more:])
        assert [one.path for one in machine.bring_in().left_out] == [str(path)]
        assert machine.texts() == before
        assert b"glockenspiel" not in machine.everything_stored()
        machine.configure("")
        machine.bring_in()
        assert machine.texts() == [*before, "glockenspiel"]

    def test_a_thread_of_another_program_is_left_out_wherever_it_names_its_workspace(
        self, machine: Machine
    ) -> None:
        machine.configure(f'[import]\nexclude = ["{SECRET}"]\n')
        path = machine.home / ".local/share/loom/threads" / f"{LOOM_ID}.json"
        write(path, a_loom_file("xylophone"))
        assert [one.path for one in machine.bring_in().left_out] == [str(path)]
        assert b"xylophone" not in machine.everything_stored()
        assert LOOM_ID.encode() not in machine.everything_stored()


class TestNoWayAround:
    """`..` and links lead around no rule, whichever way they come in."""

    @pytest.fixture
    def clients(self, machine: Machine) -> Path:
        """A folder that is left out, with a session's file in it, and a link to it from beside it."""
        machine.configure('[import]\nexclude = ["~/clients/**"]\n')
        folder = machine.home / "clients"
        write(folder / "projects" / PROJECT / f"{SESSION}.jsonl", a_talk_in("/w").data)
        (machine.home / "alias").symlink_to("clients")
        (machine.home / "x").mkdir()
        return folder

    def must_be_left_out(self, report: ImportReport, machine: Machine) -> None:
        assert len(report.left_out) == 1
        assert machine.threads() == []
        assert b"xylophone" not in machine.everything_stored()

    @pytest.mark.parametrize("way", ["clients", "x/../clients", "alias", "x/../alias/projects"])
    def test_of_a_path_that_is_named(self, machine: Machine, clients: Path, way: str) -> None:
        self.must_be_left_out(machine.bring_in(f"{machine.home}/{way}"), machine)

    def test_of_a_link_inside_a_folder_that_is_named(self, machine: Machine, clients: Path) -> None:
        (machine.home / "x/s.jsonl").symlink_to(clients / "projects" / PROJECT / f"{SESSION}.jsonl")
        self.must_be_left_out(machine.bring_in(f"{machine.home}/x"), machine)

    def test_of_a_link_inside_an_agents_home(self, machine: Machine, clients: Path) -> None:
        machine.claude.mkdir(parents=True)
        (machine.claude / PROJECT).symlink_to(clients / "projects" / PROJECT)
        self.must_be_left_out(machine.bring_in(), machine)

    @pytest.mark.parametrize("way", ["x/../clients", "alias"])
    def test_of_an_agents_home_that_a_variable_names(self, machine: Machine, clients: Path, way: str) -> None:
        variables = {**machine.environment, "CLAUDE_CONFIG_DIR": f"{machine.home}/{way}"}
        with Stores(load_config(variables), clock=machine.clock) as stores:
            report = import_sessions(stores, ())
        self.must_be_left_out(report, machine)

    @pytest.mark.parametrize("way", ["clients/z", "x/../clients/z", "alias/z", "/clients"])
    def test_of_the_workspace_that_a_record_names(self, machine: Machine, clients: Path, way: str) -> None:
        machine.keep(a_talk_in(f"{machine.home}/{way}"))
        self.must_be_left_out(machine.bring_in(), machine)

    @pytest.mark.parametrize("way", ["secret", "x/../secret", "link", "x/../link/deep"])
    def test_of_a_workspace_that_is_private(self, machine: Machine, way: str) -> None:
        machine.configure('[private]\nworkspaces = ["~/secret"]\n')
        (machine.home / "secret/deep").mkdir(parents=True)
        (machine.home / "link").symlink_to("secret")
        machine.keep(a_talk_in(f"{machine.home}/{way}"))
        machine.bring_in()
        assert machine.thread().is_private
        assert machine.thread().plain("workspace_root") == f"{machine.home}/{way.removeprefix('x/../')}"


class TestPrivate:
    def first_bytes(self, machine: Machine) -> bytes:
        """The thread file as the import put it in its place; nothing was appended to it yet."""
        (file,) = (machine.folder / "data" / "threads").glob("T-*")
        return file.read_bytes()

    def must_be_private(self, thread: Thread) -> None:
        assert (thread.is_private, thread.visibility) == (True, "private")

    def test_a_workspace_makes_its_threads_private_from_their_first_byte(self, machine: Machine) -> None:
        machine.configure(f'[private]\nworkspaces = ["{SECRET}/**"]\n')
        machine.keep(a_talk_in(SECRET + "/deep"))
        machine.bring_in()
        assert b'"is_private": true' in self.first_bytes(machine)
        self.must_be_private(machine.thread())
        with machine.stores() as stores:
            (row,) = stores.listed(limit=None)
            assert row.is_private
            assert stores.index.search("xylophone", include_private=False).hits == ()

    def test_a_repository_makes_its_threads_private(self, machine: Machine, tmp_path: Path) -> None:
        repository = tmp_path / "repository"
        repository.mkdir()
        for words in (["init", "-q"], ["remote", "add", "origin", "git@github.com:acme/rocket.git"]):
            subprocess.run(["git", *words], cwd=repository, check=True)
        machine.configure('[private]\nremotes = ["github.com/acme/*"]\n')
        machine.keep(a_talk_in(str(repository)))
        machine.keep(a_talk_in("/home/dev/open", OTHER_SESSION))
        machine.bring_in()
        private = {thread.plain("git_remote_url"): thread.is_private for thread in machine.threads()}
        assert private == {"github.com/acme/rocket": True, None: False}

    def test_what_a_person_said_otherwise_stays_said(self, machine: Machine) -> None:
        machine.configure(f'[private]\nworkspaces = ["{SECRET}"]\n')
        talk = a_talk_in(SECRET)
        path = machine.keep(talk)
        machine.bring_in()
        thread_id = machine.thread().id
        with machine.stores() as stores, stores.threads.edit(thread_id) as editor:
            editor.set_private(False)
        more = len(talk.data)
        talk.user("again")
        add(path, talk.data[more:])
        machine.bring_in()
        assert machine.thread().is_private is False

    def test_a_rule_made_later_makes_a_thread_private_when_it_grows(self, machine: Machine) -> None:
        talk = a_talk_in(SECRET)
        path = machine.keep(talk)
        machine.bring_in()
        machine.configure(f'[private]\nworkspaces = ["{SECRET}"]\n')
        more = len(talk.data)
        talk.user("again")
        add(path, talk.data[more:])
        machine.bring_in()
        self.must_be_private(machine.thread())

    @pytest.mark.parametrize("says", [{}, {"is_private": False, "visibility": "public"}])
    def test_a_thread_of_another_program_is_private_whatever_its_file_says(
        self, machine: Machine, says: dict[str, Any]
    ) -> None:
        machine.configure(f'[private]\nworkspaces = ["{SECRET}"]\n')
        path = machine.home / ".local/share/loom/threads" / f"{LOOM_ID}.json"
        for turns in (1, 2):
            write(path, a_loom_file(*(f"turn {n}" for n in range(turns)), **says))
            machine.bring_in()
            assert len(machine.texts()) == turns
            self.must_be_private(machine.thread())
