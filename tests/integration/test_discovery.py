"""Sessions are found where their agents keep them; what cannot be looked at is named, never passed over."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from raddle.actions.importing.claude_code import ClaudeCode
from raddle.actions.importing.rules import workspace_in
from raddle.actions.importing.run_plan import FileProblem, SourceEntry, SourceFile
from raddle.actions.importing.source_reading import SourceError
from raddle.actions.importing.thread_files import THREAD_FILES
from raddle.adapters.agent_homes.discovery import Agent, Discovery, name_of
from raddle.model.errors import NotFound, StorageError
from tests.builders_claude_code import FOLDER, SESSION, a_short_session, a_sub_agent
from tests.file_events import start_child
from tests.modes import bound_by_modes

AGENTS: tuple[Agent, ...] = (ClaudeCode(), *THREAD_FILES)


def in_homes(home: Path, known: dict[str, SourceEntry] | None = None, **variables: str) -> list[object]:
    return list(Discovery(known or {}).in_homes(AGENTS, variables.get, home))


def files(found: Iterable[object]) -> list[SourceFile]:
    return [one for one in found if isinstance(one, SourceFile)]


def problems(found: Iterable[object]) -> list[tuple[str, str]]:
    return [(Path(one.path).name, one.reason) for one in found if isinstance(one, FileProblem)]


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    folder = tmp_path / ".claude" / "projects" / "-kiln"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_bytes(a_short_session().data)
    return folder


def test_sessions_are_found_in_every_home_there_is(tmp_path: Path, projects: Path) -> None:
    part = projects / SESSION / "subagents" / "agent-a1b2c3d.jsonl"
    part.parent.mkdir(parents=True)
    part.write_bytes(a_sub_agent().data)
    loom = tmp_path / ".local/share/loom/threads" / "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c.json"
    loom.parent.mkdir(parents=True)
    loom.write_text('{"id": "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c", "conversation": {"messages": []}}')
    quorum = tmp_path / ".nsed/threads" / "one.json"
    quorum.parent.mkdir(parents=True)
    quorum.write_text('{"id": "one", "subject": "x", "messages": []}')
    found = files(in_homes(tmp_path))
    assert [(file.agent, file.session, file.is_main) for file in found] == [
        ("claude-code", SESSION, False),
        ("claude-code", SESSION, True),
        ("loom", loom.name, True),
        ("quorum", "one.json", True),
    ]
    main = found[1]
    assert (main.size, main.root) == (Path(main.path).stat().st_size, str(tmp_path / ".claude/projects"))
    name = name_of(ClaudeCode(), found[0])
    assert (name.name, name.folders) == (part.name, ("-kiln", SESSION, "subagents"))


def test_a_variable_of_the_agent_goes_before_its_usual_folders(tmp_path: Path, projects: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "projects").mkdir(parents=True)
    (elsewhere / "projects" / "talk.jsonl").write_bytes(a_short_session().data)
    found = files(in_homes(tmp_path, CLAUDE_CONFIG_DIR=str(elsewhere)))
    assert [Path(file.path).name for file in found] == ["talk.jsonl"]
    assert in_homes(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "nowhere")) == []
    assert in_homes(tmp_path, CLAUDE_CONFIG_DIR="~nobody-of-that-name/x") == []


def test_a_file_under_two_names_is_told_once(tmp_path: Path, projects: Path) -> None:
    (projects.parent / "-link").symlink_to(projects)
    (projects / "copy.jsonl").symlink_to(f"{SESSION}.jsonl")
    os.link(projects / f"{SESSION}.jsonl", projects / "linked.jsonl")
    other = tmp_path / ".config" / "claude"
    other.parent.mkdir()
    other.symlink_to(tmp_path / ".claude")
    (projects / "round").symlink_to(projects.parent)
    assert len(files(in_homes(tmp_path))) == 1


def test_a_project_that_somebody_moved_and_linked_is_found_and_circles_end(
    tmp_path: Path, projects: Path
) -> None:
    moved = tmp_path / "large disk" / "-kiln"
    moved.parent.mkdir()
    projects.rename(moved)
    projects.symlink_to(moved)
    (moved / "round").symlink_to(projects.parent)
    (moved / "here").symlink_to(".")
    (file,) = files(in_homes(tmp_path))
    assert file.path == str(projects / f"{SESSION}.jsonl")
    for named in (projects.parent, projects, tmp_path / ".claude"):
        (file,) = files(Discovery({}).at(AGENTS, str(named)))
        assert file.path == str(projects / f"{SESSION}.jsonl")


def test_a_file_keeps_its_own_path_whatever_links_lead_to_it(tmp_path: Path, projects: Path) -> None:
    """The ledger knows files by their paths: a link that was made later must not make it read them again."""
    (projects.parent / "-a-link-that-sorts-first").symlink_to(projects)
    for found in (in_homes(tmp_path), Discovery({}).at(AGENTS, str(tmp_path))):
        (file,) = files(found)
        assert file.path == str(projects / f"{SESSION}.jsonl")


def test_a_link_where_a_folder_of_sessions_should_be_is_told_when_it_leads_nowhere(
    tmp_path: Path, projects: Path
) -> None:
    (projects.parent / "-gone").symlink_to(tmp_path / "unplugged disk")
    (projects.parent / "-loop").symlink_to("-loop")
    told = dict(problems(in_homes(tmp_path)))
    assert told == {"-gone": "it is a link that leads nowhere", "-loop": told["-loop"]}
    assert "lead in a circle" in told["-loop"]
    assert problems(Discovery({}).at(AGENTS, str(projects.parent))) == []


def test_links_that_lead_to_each_other_are_walked_in_bounded_time(tmp_path: Path, projects: Path) -> None:
    folders = [projects.parent / f"-{number}" for number in range(30)]
    for folder in folders:
        folder.mkdir()
    for folder in folders:
        for other in folders:
            (folder / f"to{other.name}").symlink_to(other)
    assert len(files(Discovery({}).at(AGENTS, str(tmp_path)))) == 1
    assert len(files(in_homes(tmp_path))) == 1


def test_no_reason_names_its_path_again(tmp_path: Path, projects: Path) -> None:
    (projects / "closed.jsonl").write_bytes(a_short_session().data)
    (projects / "closed.jsonl").chmod(0)
    (projects.parent / "-closed").mkdir(mode=0)
    (tmp_path / ".nsed").mkdir(mode=0)

    def look() -> None:
        found = [one for one in in_homes(tmp_path) if isinstance(one, FileProblem)]
        assert {one.reason for one in found} == {"it cannot be read: permission denied"}
        for path in (projects / "closed.jsonl", projects.parent / "-closed", tmp_path / "absent"):
            with pytest.raises(NotFound) as error:
                list(Discovery({}).at(AGENTS, str(path)))
            assert f"{error.value.message} {error.value.hint}".count(str(path)) == 1

    bound_by_modes(look)


def test_a_current_folder_that_is_gone_is_named_as_what_is_wrong(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()

    def look() -> None:
        os.chdir(gone)
        gone.rmdir()
        for named in ("./x", "."):
            with pytest.raises(StorageError, match="the current folder is gone"):
                list(Discovery({}).at(AGENTS, named))
        with pytest.raises(StorageError, match="the current folder is gone"):
            in_homes(tmp_path, CLAUDE_CONFIG_DIR="below/it")

    child = start_child(look)
    child.join()
    assert child.exitcode == 0


def test_what_is_known_and_unchanged_is_not_opened(tmp_path: Path, projects: Path) -> None:
    (file,) = files(in_homes(tmp_path))
    entry = SourceEntry(
        path=file.path,
        agent=file.agent,
        session="as it was placed then",
        is_main=False,
        thread_id="T-1",
        size=file.size,
        mtime_ns=file.mtime_ns,
        inode=file.inode,
        read_to=0,
        lines=0,
        head="",
        tail="",
        generation=0,
    )
    os.truncate(file.path, 0)
    Path(file.path).write_bytes(b"x" * file.size)
    os.utime(file.path, ns=(file.mtime_ns, file.mtime_ns))
    (again,) = files(in_homes(tmp_path, {file.path: entry}))
    assert (again.session, again.is_main) == ("as it was placed then", False)


def test_what_has_a_sessions_name_and_is_no_file_is_named(tmp_path: Path, projects: Path) -> None:
    (projects / "folder.jsonl").mkdir()
    (projects / "link.jsonl").symlink_to("nowhere")
    (projects / "loop.jsonl").symlink_to("loop.jsonl")
    os.mkfifo(projects / "pipe.jsonl")
    (projects / os.fsdecode(b"caf\xe9.jsonl")).write_bytes(a_short_session().data)
    found = in_homes(tmp_path)
    assert len(files(found)) == 1
    told = dict(problems(found))
    assert told == {
        "folder.jsonl": "it has the name of a session file, and is a folder",
        "link.jsonl": "it is a link that leads nowhere",
        "loop.jsonl": told["loop.jsonl"],
        "pipe.jsonl": "it has the name of a session file, and is no ordinary file",
        "caf\ufffd.jsonl": "its path is not UTF-8: it can be read under another name",
    }
    assert "lead in a circle" in told["loop.jsonl"]


def test_files_and_folders_that_may_not_be_read_are_named(tmp_path: Path, projects: Path) -> None:
    (projects / "closed.jsonl").write_bytes(a_short_session().data)
    (projects / "closed.jsonl").chmod(0)
    closed = projects.parent / "-closed"
    closed.mkdir(mode=0)
    (tmp_path / ".nsed").mkdir(mode=0)

    def look() -> None:
        found = in_homes(tmp_path)
        assert len(files(found)) == 1
        told = dict(problems(found))
        assert set(told) == {"closed.jsonl", "-closed", "threads"}
        assert all("permission denied" in reason for reason in told.values())
        for path in (projects / "closed.jsonl", closed):
            with pytest.raises(NotFound, match="readable"):
                list(Discovery({}).at(AGENTS, str(path)))

    bound_by_modes(look)


def test_what_lies_beside_a_session_and_may_not_be_read_costs_that_session(tmp_path: Path) -> None:
    folder = tmp_path / "s" / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a.jsonl").write_bytes(a_sub_agent().data)
    (folder / "agent-a.meta.json").write_text("{}")
    (folder / "agent-a.meta.json").chmod(0)

    def look() -> None:
        (file,) = files(Discovery({}).at(AGENTS, str(folder)))
        with pytest.raises(SourceError, match="meta"):
            name_of(ClaudeCode(), file)

    bound_by_modes(look)


class TestNamedPlaces:
    def test_a_file_or_a_folder(self, tmp_path: Path, projects: Path) -> None:
        for place in (projects, projects / f"{SESSION}.jsonl", tmp_path):
            (file,) = files(Discovery({}).at(AGENTS, str(place)))
            assert (file.session, Path(file.path).parent) == (SESSION, projects)

    def test_a_part_that_is_named_alone_is_placed_by_the_folders_around_it(self, projects: Path) -> None:
        part = projects / SESSION / "subagents" / "agent-a1b2c3d.jsonl"
        part.parent.mkdir(parents=True)
        part.write_bytes(a_sub_agent().data)
        for place in (part, part.parent):
            (file,) = files(Discovery({}).at(AGENTS, str(place)))
            assert (file.session, file.is_main) == (SESSION, False)

    def test_an_export_of_our_own_is_known_by_what_it_holds(self, tmp_path: Path) -> None:
        thread_id = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"
        (tmp_path / "mine.json").write_text(f'{{"id": "{thread_id}", "conversation": {{"messages": []}}}}')
        (tmp_path / "other.json").write_text('{"name": "package"}')
        assert [file.agent for file in files(Discovery({}).at(AGENTS, str(tmp_path)))] == ["loom"]

    @pytest.mark.parametrize("name", ["absent", "pipe", "loop", "x" * 300])
    def test_what_is_not_there_or_no_file_is_not_found(self, tmp_path: Path, name: str) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(NotFound):
            list(Discovery({}).at(AGENTS, str(tmp_path / name)))

    def test_raddles_own_folder_is_left_alone(self, tmp_path: Path, projects: Path) -> None:
        own = tmp_path / "own"
        own.mkdir()
        (own / "T-1.json").write_text('{"id": "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"}')
        discovery = Discovery({}, left_alone=own)
        assert [file.agent for file in files(discovery.at(AGENTS, str(tmp_path)))] == ["claude-code"]


def test_the_workspace_is_learned_where_it_is_asked_for(tmp_path: Path, projects: Path) -> None:
    late = projects / "late.jsonl"
    late.write_bytes(b'{"type":"mode"}\n' * 10_000 + a_short_session().data)
    asked = Discovery({}, workspace_of=lambda agent, source, lines: workspace_in(lines))
    found = files(asked.in_homes(AGENTS, lambda name: None, tmp_path))
    assert [file.workspace for file in found] == [FOLDER, FOLDER]
    assert [file.workspace for file in files(in_homes(tmp_path))] == ["", ""]
