"""Where a session or a new thread is: the folder that counts, and the rules that keep it on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import raddle
from raddle.config import load_config
from raddle.model.threads.thread import Thread
from raddle.wiring import Place, open_stores
from tests.builders_import import write


@pytest.fixture
def secret(home: Path) -> Path:
    """A folder that a rule makes private, and a link to it."""
    write(
        home / ".config/raddle/config.toml",
        b'[private]\nworkspaces = ["~/secret"]\nremotes = ["github.com/me/secret"]\n',
    )
    folder = home / "secret"
    (folder / "sub").mkdir(parents=True)
    (home / "x").mkdir()
    (home / "link").symlink_to("secret")
    return folder


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


ADA = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def stored(thread_id: str) -> Thread:
    with open_stores(load_config()) as stores:
        return stores.threads.load(thread_id)


def place_of(workspace: str | None = None) -> Place:
    with open_stores(load_config(workspace=workspace)) as stores:
        return stores.place()


WAYS = ["secret", "secret/", "secret/sub", "x/../secret", "link", "link/sub", "x/../link/sub", "/secret"]


@pytest.mark.parametrize("way", WAYS)
def test_no_way_into_a_private_folder_leads_around_its_rule(home: Path, secret: Path, way: str) -> None:
    with raddle.record(workspace=f"{home}/{way}") as session:
        session.user("hello")
    thread = stored(session.thread_id)
    root = thread.plain("workspace_root")
    assert (thread.is_private, ".." in str(root), "//" in str(root)) == (True, False, False)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_of_a_workspace_that_the_settings_name(home: Path, secret: Path, way: str) -> None:
    assert place_of(workspace=f"{home}/{way}").is_private
    assert not place_of(workspace=f"{home}/x").is_private


def test_a_rule_that_names_a_link_holds_where_it_leads(
    home: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / ".config/raddle/config.toml", b'[private]\nworkspaces = ["~/x/../link"]\n')
    monkeypatch.chdir(home / "link")
    assert place_of().is_private


def test_a_remote_that_comes_in_the_middle_makes_the_thread_private(
    home: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "x"
    monkeypatch.chdir(folder)
    git(folder, "init", "-q")
    with raddle.record() as session:
        session.user("hello")
        assert not stored(session.thread_id).is_private
        with session.tool("1", "shell") as run:
            git(folder, "remote", "add", "origin", "git@github.com:Me/Secret.git")
            run.result = "done"
        thread = stored(session.thread_id)
        assert (thread.is_private, thread.visibility) == (True, "private")
        assert thread.plain("git_remote_url") == "github.com/Me/Secret"
        session.assistant("there it is")


@pytest.mark.parametrize("kind", ["repository", "worktree", "new repository"])
def test_no_word_that_follows_a_private_remote_is_written_before_the_thread_is_private(
    home: Path, secret: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = main = home / "x"
    if kind != "new repository":
        git(main, "init", "-q")
    if kind == "worktree":
        git(main, *ADA, "commit", "-q", "--allow-empty", "-m", "one")
        git(main, "worktree", "add", "-q", str(home / "y"))
        folder = home / "y"
    monkeypatch.chdir(folder)
    with raddle.record() as session:
        session.user("open words")
        with session.tool("1", "shell") as run:
            if kind == "new repository":
                git(main, "init", "-q")
            git(main, "remote", "add", "origin", "git@github.com:me/secret.git")
            run.result = "secret words"
        journal = home / f".local/share/raddle/threads/{session.thread_id}.journal"
        lines = journal.read_bytes().splitlines()
    said = next(number for number, line in enumerate(lines) if b"secret words" in line)
    private = [number for number, line in enumerate(lines) if b'"is_private"' in line]
    assert private[:1] == [said], "one write holds both"


def test_a_private_remote_that_a_person_adds_holds_for_the_very_next_turn(
    home: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "x"
    git(folder, "init", "-q")
    monkeypatch.chdir(folder)
    with raddle.record() as session:
        session.user("hello")
        git(folder, "remote", "add", "origin", "git@github.com:me/secret.git")
        session.assistant("secret words")
        assert stored(session.thread_id).is_private


def test_what_a_person_made_public_stays_so_while_the_remote_is_the_same(
    home: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "x"
    monkeypatch.chdir(folder)
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "git@github.com:me/secret.git")
    with raddle.record() as session:
        session.user("hello")
        with open_stores(load_config()) as stores, stores.threads.edit(session.thread_id) as editor:
            editor.set_private(False)
        (folder / "new").write_text("x")
        with session.tool("1", "shell") as run:
            run.result = "done"
    assert not stored(session.thread_id).is_private
