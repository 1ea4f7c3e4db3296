"""What a memory leaves in its git: an index that says what the branch says, and packs that do not gather for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raddle.actions.memory.committing import commit_changes, commit_paths
from raddle.adapters.memory_repo import upkeep
from raddle.model.clock import system_clock
from tests.memory_clones import Clone, git, settle

pytest_plugins = ["tests.memory_fixtures"]

PLAN = "memory/team/plan"


def packs(clone: Clone) -> list[str]:
    return [name for name in os.listdir(clone.root / ".git/objects/pack") if name.endswith(".pack")]


def singles(clone: Clone) -> int:
    return int(git("count-objects", cwd=clone.root).split()[0])


def committed(clone: Clone, number: int) -> None:
    clone.write(PLAN, f"version {number}\n")
    commit_changes(clone.files, clone.repository, clone.writer)


def staged(clone: Clone) -> str:
    """What a person is told to be staged, which nobody staged."""
    return git("diff-index", "--cached", "--name-status", "HEAD", cwd=clone.root)


def test_the_index_says_what_the_branch_says_after_each_commit(ada: Clone) -> None:
    ada.write("memory/team/a", "one\n")
    ada.write("memory/team/b/c", "two\n")
    commit_changes(ada.files, ada.repository, ada.writer)
    ada.write(PLAN, "new\n")
    commit_paths(ada.files, ada.repository, ada.writer, [PLAN])
    assert staged(ada) == ""
    (ada.root / "memory/team/a").unlink()
    (ada.root / "memory/team/b/c").unlink()
    (ada.root / "memory/team/b").rmdir()
    ada.write("memory/team/a/deep", "a folder where a file was\n")
    ada.write("memory/team/b", "a file where a folder was\n")
    commit_changes(ada.files, ada.repository, ada.writer)
    assert staged(ada) == ""
    assert git("status", "--porcelain", cwd=ada.root) == ""


def test_the_index_follows_what_others_wrote(ada: Clone, bob: Clone) -> None:
    bob.write(PLAN, "bob's\n")
    bob.write("memory/team/bob", "bob's\n")
    settle([bob, ada])
    ada.write("memory/team/ada", "ada's\n")
    bob.write("memory/team/more", "bob's\n")
    settle([ada, bob])
    for clone in (ada, bob):
        assert staged(clone) == ""
        assert git("status", "--porcelain", cwd=clone.root) == ""


def test_an_index_that_somebody_else_wrote_is_read_anew(ada: Clone) -> None:
    committed(ada, 1)
    git("rm", "-q", "--cached", "project.yaml", cwd=ada.root)
    committed(ada, 2)
    assert staged(ada) == ""
    (ada.root / ".git/index").unlink()
    committed(ada, 3)
    assert staged(ada) == ""


def test_an_index_that_is_locked_is_caught_up_later(ada: Clone) -> None:
    committed(ada, 1)
    lock = ada.root / ".git/index.lock"
    lock.touch()
    committed(ada, 2)
    ada.write("memory/team/other", "x\n")
    commit_changes(ada.files, ada.repository, ada.writer)
    lock.unlink()
    committed(ada, 3)
    assert staged(ada) == ""


def test_a_commit_of_a_person_does_not_mislead_the_index(ada: Clone) -> None:
    committed(ada, 1)
    index = (ada.root / ".git/index").read_bytes()
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    ada.write("memory/team/mine", "by hand\n")
    git("add", "memory/team/mine", cwd=ada.root)
    git(*identity, "commit", "-q", "-m", "by hand", cwd=ada.root)
    (ada.root / ".git/index").write_bytes(index)
    committed(ada, 2)
    assert staged(ada) == ""


@pytest.mark.parametrize("is_wanted", [True, False])
def test_git_packs_what_has_gathered_unless_the_person_switched_it_off(
    ada: Clone, monkeypatch: pytest.MonkeyPatch, is_wanted: bool
) -> None:
    monkeypatch.setattr(upkeep, "PACKS_AT", 3)
    if not is_wanted:
        git("config", "gc.auto", "0", cwd=ada.root)
    for number in range(6):
        committed(ada, number)
    assert len(packs(ada)) >= 6
    ada.repository.maintain()
    assert (len(packs(ada)) == 1) == is_wanted
    git("fsck", "--strict", cwd=ada.root)


def test_packs_do_not_gather_where_nobody_tidies(ada: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MOST_PACKS", 3)
    for number in range(6):
        committed(ada, number)
    assert len(packs(ada)) == 3
    assert singles(ada) > 0
    assert git("show", f"HEAD:{PLAN}", cwd=ada.root) == "version 5\n"


def test_single_objects_are_packed_too(ada: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MOST_PACKS", 0)
    monkeypatch.setattr(upkeep, "OBJECTS_AT", 1)
    for number in range(8):
        ada.files.add({f"memory/many/{number}-{part}": f"{number} {part}\n".encode() for part in range(90)})
        commit_changes(ada.files, ada.repository, ada.writer)
    assert singles(ada) > 0
    ada.repository.maintain()
    assert singles(ada) == 0


@pytest.mark.parametrize(
    ("note", "minutes", "stays"),
    [
        ("fast-import", 61, False),
        ("fetch-pack 4711 on host\n", 61, False),
        ("fetch-pack 4711 on host\n", 1, True),
        ("mine", 61, True),
    ],
)
def test_a_pack_that_a_killed_git_kept_is_let_go(ada: Clone, note: str, minutes: int, stays: bool) -> None:
    committed(ada, 1)
    keep = ada.root / ".git/objects/pack" / packs(ada)[0].replace(".pack", ".keep")
    keep.write_text(note)
    at = system_clock() // 1_000_000 - 60 * minutes
    os.utime(keep, (at, at))
    ada.repository.maintain()
    assert keep.exists() == stays


def test_a_repository_of_the_code_s_gets_a_pack_for_large_commits_only(tmp_path: Path, hub: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    git("init", "-q", "-b", "main", ".", cwd=code)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    git(*identity, "commit", "-q", "--allow-empty", "-m", "code", cwd=code)
    git("worktree", "add", "-q", "-b", "notes", "store", cwd=code)
    clone = Clone.__new__(Clone)
    clone.root = code / "store"
    clone.open("ada", own=code / ".git/worktrees/store/raddle")
    clone.begin()
    committed(clone, 1)
    assert os.listdir(code / ".git/objects/pack") == []
    assert staged(clone) == ""
    clone.files.add({f"memory/many/{number}": b"%d\n" % number for number in range(120)})
    commit_changes(clone.files, clone.repository, clone.writer)
    assert sum(name.endswith(".pack") for name in os.listdir(code / ".git/objects/pack")) == 1
    assert staged(clone) == ""
