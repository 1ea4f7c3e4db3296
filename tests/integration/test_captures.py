"""What happens when an agent says that a session went on: its own files are read, git is asked, that is all."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raddle.config import load_config
from raddle.model.threads.summary import ThreadSummary
from raddle.wiring import Stores, importing, open_stores
from raddle.wiring.captures import Told, capture, handed_on, told_by
from raddle.wiring.import_lock import import_lock
from raddle.wiring.purging import purge_thread
from tests import builders_codex, builders_gemini_cli
from tests.builders_claude_code import OTHER_SESSION, SESSION, ClaudeSession, a_short_session, a_sub_agent
from tests.builders_import import PROJECT, write

IDENTITY = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")


def git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        ["git", *IDENTITY, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit on `main`, and a remote."""
    folder = tmp_path / "kiln"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "remote", "add", "origin", "git@github.com:me/kiln.git")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


@pytest.fixture
def stores() -> Iterator[Stores]:
    with open_stores(load_config()) as opened:
        yield opened


def keep(home: Path, session: ClaudeSession) -> Path:
    folder = home / ".claude/projects" / PROJECT
    path = folder / f"{session.session}.jsonl"
    if session.agent:
        path = folder / session.session / "subagents" / f"agent-{session.agent}.jsonl"
    write(path, session.data)
    return path


def rows(stores: Stores) -> list[ThreadSummary]:
    return stores.listed(limit=None)


def told(path: Path | str = "", cwd: Path | str = "", agent: str = "claude-code", session: str = "") -> Told:
    return Told(agent=agent, path=str(path), cwd=str(cwd), session=session)


def test_the_session_that_was_told_of_is_read_and_no_other(home: Path, stores: Stores) -> None:
    path = keep(home, a_short_session())
    other = ClaudeSession(OTHER_SESSION)
    other.user("not this one")
    keep(home, other)
    capture(stores, told(path))
    (row,) = rows(stores)
    assert row.source is not None
    assert row.source.session_id == SESSION


def test_it_grows_turn_by_turn_with_its_sub_agents(home: Path, stores: Stores) -> None:
    session = a_short_session()
    path = keep(home, session)
    capture(stores, told(path))
    before = rows(stores)[0].message_count
    session.user("and one more walrus")
    keep(home, session)
    capture(stores, told(path))
    assert stores.find("walrus", limit=5).total_threads == 1
    assert rows(stores)[0].message_count == before + 1
    sub = a_sub_agent()
    keep(home, sub)
    capture(stores, told(path))
    (row,) = rows(stores)
    assert row.message_count > before + 1


def test_a_commit_that_the_session_does_not_say_is_noted_beside_its_branch(
    home: Path, stores: Stores, repository: Path
) -> None:
    session = ClaudeSession()
    session.fields |= {"cwd": str(repository), "gitBranch": "main"}
    session.user("hello")
    path = keep(home, session)
    capture(stores, told(path, repository))
    (row,) = rows(stores)
    assert (row.git_branch, row.git_commits) == ("main", (git(repository, "rev-parse", "HEAD"),))
    git(repository, "commit", "-q", "--allow-empty", "-m", "two")
    session.fields["gitBranch"] = "later"
    session.user("more")
    keep(home, session)
    capture(stores, told(path, repository))
    (row,) = rows(stores)
    assert row.git_branch == "later", "the session is still heard"
    assert git(repository, "rev-parse", "HEAD") in row.git_commits
    assert len(row.git_commits) == 2
    capture(stores, told(path, repository))
    version = stores.threads.load(row.id).version
    capture(stores, told(path, repository))
    assert stores.threads.load(row.id).version == version, "nothing new, nothing written"


def test_commits_of_a_branch_that_the_turn_left_again_are_noted(
    home: Path, stores: Stores, repository: Path
) -> None:
    session = ClaudeSession()
    session.fields |= {"cwd": str(repository), "gitBranch": "main"}
    session.user("hello")
    path = keep(home, session)
    capture(stores, told(path, repository))
    before = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "aside")
    git(repository, "commit", "-q", "--allow-empty", "-m", "one")
    git(repository, "commit", "-q", "--allow-empty", "-m", "two")
    made = git(repository, "rev-list", "--reverse", "HEAD", f"^{before}").split()
    git(repository, "checkout", "-q", "main")
    session.user("more")
    keep(home, session)
    capture(stores, told(path, repository))
    (row,) = rows(stores)
    assert [sha for sha in row.git_commits if sha in made] == made
    version = stores.threads.load(row.id).version
    capture(stores, told(path, repository))
    assert stores.threads.load(row.id).version == version, "nothing new, nothing written"


def test_another_repository_that_the_agent_looks_at_is_not_the_sessions(
    home: Path, stores: Stores, repository: Path, tmp_path: Path
) -> None:
    session = ClaudeSession()
    session.fields["cwd"] = str(tmp_path / "elsewhere")
    session.user("hello")
    capture(stores, told(keep(home, session), repository))
    assert rows(stores)[0].git_commits == ()


def test_gemini_says_no_branch_so_git_is_asked(home: Path, stores: Stores, repository: Path) -> None:
    session = builders_gemini_cli.a_short_session()
    folder = home / ".gemini/tmp" / builders_gemini_cli.PROJECT_HASH
    path = folder / "chats" / f"session-2026-06-03T08-00-{session.session[:8]}.jsonl"
    write(path, session.data.replace(builders_gemini_cli.FOLDER.encode(), str(repository).encode()))
    write(folder / ".project_root", str(repository).encode())
    capture(stores, told("", repository, "gemini-cli", session.session))
    (row,) = rows(stores)
    assert (row.git_branch, row.git_commits) == ("main", (git(repository, "rev-parse", "HEAD"),))
    git(repository, "checkout", "-q", "-b", "glaze")
    capture(stores, told("", repository, "gemini-cli", session.session))
    assert rows(stores)[0].git_branch == "glaze"


def test_codexs_notify_names_a_session_by_its_id_alone(home: Path, stores: Stores) -> None:
    session = builders_codex.a_short_session()
    write(home / ".codex/sessions/2026/02/01" / session.name, session.data)
    capture(stores, told("", "", "codex", session.session))
    (row,) = rows(stores)
    assert row.source is not None
    assert row.source.agent == "codex"
    capture(stores, told("", "", "codex", "../../../etc"))
    capture(stores, told("", "", "codex", "*" * 12))
    assert len(rows(stores)) == 1


def test_a_home_that_is_a_link_is_the_same_home(home: Path, stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (home / ".claude").symlink_to(tmp_path / "dotfiles")
    path = keep(home, a_short_session())
    capture(stores, told(path.resolve()))
    capture(stores, told(path))
    assert len(rows(stores)) == 1


def test_what_lies_outside_the_agents_home_is_not_read(home: Path, stores: Stores, tmp_path: Path) -> None:
    (home / ".claude/projects").mkdir(parents=True)
    write(tmp_path / "strange.jsonl", a_short_session().data)
    capture(stores, told(tmp_path / "strange.jsonl"))
    capture(stores, told("strange.jsonl"))
    assert rows(stores) == []


def test_what_a_rule_leaves_out_or_was_purged_stays_away(
    home: Path, stores: Stores, repository: Path
) -> None:
    session = ClaudeSession()
    session.fields["cwd"] = str(repository)
    session.user("hello")
    path = keep(home, session)
    capture(stores, told(path, repository))
    purge_thread(stores, rows(stores)[0].id)
    session.user("more")
    keep(home, session)
    capture(stores, told(path, repository))
    assert rows(stores) == []
    assert stores.threads.ids() == []


def test_an_import_that_does_not_end_is_logged_and_fails_nobody(
    home: Path, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raddle.wiring.captures._PATIENCE", 1)
    monkeypatch.setattr(importing, "import_lock", lambda held: import_lock(held, wait_seconds=0.05))
    path = keep(home, a_short_session())

    def work() -> None:
        with open_stores(load_config()) as other:
            capture(other, told(path))

    with import_lock(stores):  # which a thread of control may take twice, and no other may
        worker = threading.Thread(target=work)
        worker.start()
        worker.join(30)
    assert "import_running" in stores.paths.log_file.read_text()
    assert rows(stores) == []


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"session_id": "abc", "transcript_path": "/x", "cwd": "/w"}, told("/x", "/w", session="abc")),
        ({"thread-id": "abc", "type": "agent-turn-complete"}, told(session="abc")),
        ({"session_id": "abc", "transcript_path": None}, told(session="abc")),
        ({"session_id": 7, "cwd": "/w"}, None),
        ({"transcript_path": "/x\0y"}, None),
        ([], None),
        ("text", None),
    ],
)
def test_what_an_agent_tells_is_taken_as_far_as_it_makes_sense(payload: Any, expected: Told | None) -> None:
    assert told_by("claude-code", json.dumps(payload).encode()) == expected


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"{", b"[" * 100_000, b"\0"])
def test_what_is_no_json_tells_nothing(data: bytes) -> None:
    assert told_by("codex", data) is None


def test_an_end_is_known_and_handed_on() -> None:
    one = told_by("claude-code", b'{"session_id": "abc", "hook_event_name": "SessionEnd"}')
    assert one is not None
    assert one.is_end
    assert handed_on(msgspec.json.encode(one)) == one


def log_of(stores: Stores) -> str:
    file = stores.paths.log_file
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize(
    "way", ["other/{name}", ".claude/projects/../../other/{name}", ".claude/projects/{project}/{name}"]
)
def test_a_file_outside_the_agents_home_is_not_read_whatever_leads_to_it(
    home: Path, stores: Stores, way: str
) -> None:
    name = f"{SESSION}.jsonl"
    write(home / "other" / name, a_short_session().data)
    link = home / ".claude/projects" / PROJECT / name
    link.parent.mkdir(parents=True)
    link.symlink_to(home / "other" / name)
    capture(stores, told(f"{home}/{way.format(name=name, project=PROJECT)}"))
    assert rows(stores) == []
    assert "not_found" in log_of(stores)
    assert name in log_of(stores)


@pytest.mark.parametrize("way", ["kept/projects", ".claude/projects", ".claude/x/../projects"])
def test_a_home_that_is_a_link_is_the_agents_home(home: Path, stores: Stores, way: str) -> None:
    write(home / "kept/projects" / PROJECT / f"{SESSION}.jsonl", a_short_session().data)
    (home / "kept/x").mkdir()
    (home / ".claude").symlink_to("kept")
    capture(stores, told(f"{home}/{way}/{PROJECT}/{SESSION}.jsonl"))
    assert len(rows(stores)) == 1
    assert log_of(stores) == ""


def test_a_session_that_is_not_there_or_left_out_is_told_to_the_log(home: Path, stores: Stores) -> None:
    capture(stores, told(home / ".claude/projects/gone.jsonl"))
    assert "gone.jsonl" in log_of(stores)
    write(home / ".config/raddle/config.toml", b'[import]\nexclude = ["~/.claude/**"]\n')
    with open_stores(load_config()) as ruled:
        capture(ruled, told(keep(home, a_short_session())))
        assert rows(ruled) == []
    last = log_of(stores).splitlines()[-1]
    assert "left out by [import] exclude" in last
    assert SESSION not in last


def test_a_repository_that_a_rule_names_makes_the_thread_private_when_it_is_noted(
    home: Path, repository: Path
) -> None:
    write(home / ".config/raddle/config.toml", b'[private]\nremotes = ["github.com/Me/*"]\n')
    session = ClaudeSession()
    session.fields["cwd"] = str(home)
    session.user("hello")
    with open_stores(load_config()) as stores:
        path = keep(home, session)
        capture(stores, told(path))
        assert not rows(stores)[0].is_private
        git(home, "init", "-q", "-b", "main")
        git(home, "remote", "add", "origin", "git@github.com:me/kiln.git")
        capture(stores, told(path, home))
        row = rows(stores)[0]
        assert (row.is_private, row.git_remote_url) == (True, "github.com/me/kiln")
