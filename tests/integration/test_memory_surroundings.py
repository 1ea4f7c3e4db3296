"""A memory in a world of people and of other programs: what stands around it, and what is done to it by hand."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from raddle.actions.memory.committing import every_version_kept
from raddle.adapters.memory_repo.repository import StoreRepository
from raddle.adapters.memory_repo.versions import contents_of
from raddle.model.errors import BrokenFormat, StorageError
from tests.memory_clones import BRANCH, Clone, git, settle

pytest_plugins = ["tests.memory_fixtures"]

RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"
ENTRY = f"runs/{RUN}/phases/build/entries/0001-{RUN}.json"
PLAN = "memory/team/plan"


def test_a_store_inside_another_repository_commits_to_itself_alone(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    git("init", "-q", "-b", "main", ".", cwd=code)
    (code / "mine.py").write_text("x = 1\n")
    clone = Clone(code / "store", None)
    clone.begin()
    clone.sync()
    assert git("status", "--porcelain", cwd=code).split() == ["??", "mine.py", "??", "store/"]
    (clone.root / ".git").rename(tmp_path / "gone")
    with pytest.raises(BrokenFormat):
        clone.sync()
    assert os.listdir(code / ".git/refs/heads") == []


def test_a_remote_at_a_relative_path_is_the_code_s_also_from_a_worktree(tmp_path: Path, hub: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    git("init", "-q", "-b", "main", ".", cwd=code)
    git("remote", "add", "origin", "../hub.git", cwd=code)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    git(*identity, "commit", "-q", "--allow-empty", "-m", "code", cwd=code)
    git("worktree", "add", "-q", "-b", "notes", "deep/store", cwd=code)
    clone = Clone.__new__(Clone)
    clone.root = code / "deep/store"
    clone.open("ada", own=code / ".git/worktrees/store/raddle")
    clone.begin()
    assert clone.sync().is_pushed
    assert "notes" in git("branch", "--list", cwd=hub)


@pytest.mark.parametrize("date", ["-5 +0000", "abc def", ""])
def test_a_commit_without_a_date_wedges_nobody(ada: Clone, bob: Clone, hub: Path, date: str) -> None:
    tree = git("rev-parse", f"{BRANCH}^{{tree}}", cwd=hub).strip()
    parent = git("rev-parse", BRANCH, cwd=hub).strip()
    text = f"tree {tree}\nparent {parent}\nauthor X <x@y> {date}\ncommitter X <x@y> {date}\n\nm\n"
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--literally", "--stdin"],
        cwd=hub,
        input=text.encode(),
        check=True,
        capture_output=True,
    )
    git("update-ref", f"refs/heads/{BRANCH}", made.stdout.decode().strip(), cwd=hub)
    ada.write(PLAN, "goes on\n")
    settle([ada, bob])
    assert bob.text(PLAN) == "goes on\n"


def test_a_clock_before_1970_wedges_nobody(tmp_path: Path, hub: Path) -> None:
    clone = Clone(tmp_path / "ada", hub, clock=lambda: -220_000_000_000_000)
    clone.begin()
    assert clone.sync().is_pushed
    clone.open("ada")
    clone.write(PLAN, "and now\n")
    assert clone.sync().is_pushed


def test_a_branch_that_somebody_looks_at_in_the_folder_does_not_become_the_memory(
    ada: Clone, hub: Path
) -> None:
    git("switch", "-q", "-c", "other", cwd=ada.root)
    ada.open("ada")
    ada.write(PLAN, "one\n")
    with pytest.raises(BrokenFormat, match="on the branch other, and the memory on main"):
        ada.sync()
    assert git("branch", "--list", "other", cwd=hub) == ""
    git("branch", "-D", BRANCH, cwd=ada.root)  # it was renamed: the store goes on under that name
    ada.open("ada")
    assert ada.sync().is_pushed


def test_a_lock_that_a_killed_git_left_is_named(ada: Clone) -> None:
    lock = ada.root / f".git/refs/heads/{BRANCH}.lock"
    lock.write_bytes(b"")
    ada.write(PLAN, "one\n")
    with pytest.raises(StorageError, match=r"main\.lock is there"):
        ada.sync()
    lock.unlink()
    assert ada.sync().is_pushed


def test_neither_a_password_nor_a_token_of_the_remotes_address_is_told(ada: Clone) -> None:
    git(
        "remote",
        "set-url",
        "origin",
        "https://ada:hunter2@127.0.0.1:1/x.git?access_token=s3cret",
        cwd=ada.root,
    )
    ada.open("ada")
    report = ada.sync()
    assert report.state == "offline"
    assert "hunter2" not in f"{report}"
    assert "s3cret" not in f"{report}"


def test_of_writers_at_once_every_version_is_in_the_history(ada: Clone) -> None:
    def write(number: int) -> None:
        with every_version_kept(
            ada.files, StoreRepository(ada.root, ada.root / ".git/raddle"), ada.writer, [PLAN]
        ):
            ada.write(PLAN, f"text {number}\n")

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(write, range(5)))
    versions = [data.decode() for data in contents_of(ada.root, PLAN)]
    assert sorted(versions) == [f"text {number}\n" for number in range(5)]


def test_what_somebody_wrote_by_hand_is_in_the_history_when_a_command_writes_over_it(ada: Clone) -> None:
    ada.write(PLAN, "a command\n")
    ada.sync()
    (ada.root / PLAN).write_text("by hand\n")
    with every_version_kept(ada.files, ada.repository, ada.writer, [PLAN]):
        ada.write(PLAN, "another command\n")
    assert list(contents_of(ada.root, PLAN)) == [b"another command\n", b"by hand\n", b"a command\n"]


def test_a_write_is_a_write_where_git_will_not(ada: Clone) -> None:
    (ada.root / ".git/HEAD").write_text("nonsense\n")
    ada.open("ada")
    with every_version_kept(ada.files, ada.repository, ada.writer, [PLAN]):
        ada.write(PLAN, "one\n")
    assert ada.text(PLAN) == "one\n"


def test_a_file_that_somebody_laid_into_the_folder_is_not_pushed_by_the_way(ada: Clone, bob: Clone) -> None:
    (ada.root / ".env").write_text("SECRET=1\n")
    (ada.root / "README.md").write_text("# Our memory\n")
    report = ada.sync()
    assert report.blocked == {".env": "it is no part of a store"}
    assert report.committed == ("README.md",)
    git("add", ".env", cwd=ada.root)
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "it is meant", cwd=ada.root)
    (ada.root / ".env").write_text("SECRET=2\n")
    assert ada.sync().committed == (".env",)
    bob.sync()
    assert bob.text(".env") == "SECRET=2\n"


def test_a_name_that_no_store_may_hold_is_named_and_holds_nothing_up(ada: Clone) -> None:
    folder = os.fsencode(ada.root / "memory/team")
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103  bytes that are no text are no Path of ours
    for name in (b"bad\xffname", b"back\\slash"):
        with open(folder + b"/" + name, "wb") as file:  # noqa: PTH123
            file.write(b"x")
    (ada.root / "memory" / "caf\udce9").mkdir()
    ada.write(PLAN, "one\n")
    for _ in range(2):
        report = ada.sync()
        assert report.blocked == {
            "memory/team/bad\ufffdname": "its name is not UTF-8",
            "memory/caf\ufffd": "its name is not UTF-8",
            "memory/team/back\\slash": "its name is one that no store may hold",
        }
    assert ada.files.paths("memory/team") == [PLAN]
