"""One sync of a memory: what goes, what comes, what is asked first, and what becomes of it when it is cut off."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.memory.committing import ManyRemoved
from raddle.adapters.memory_repo import folder as folder_module
from raddle.adapters.memory_repo.repository import StoreRepository
from raddle.adapters.programs import Completed
from raddle.model.errors import BrokenFormat, ConflictError, Forbidden, NewerFormat
from raddle.model.memory.merge import conflicts_in
from raddle.model.memory.project import Project, encode_project
from raddle.model.memory.repo_layout import PROJECT_FILE
from tests.memory_clones import BRANCH, Clone, git, make_hub, paths, settle

pytest_plugins = ["tests.memory_fixtures"]

RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"
ENTRY = f"runs/{RUN}/phases/build/entries/0001-{RUN}.json"
PLAN = "memory/team/plan"


def test_a_store_without_a_remote_commits_and_says_so(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "ada", None)
    clone.begin()
    assert clone.sync().state == "no_remote"
    assert git("log", "--format=%s", cwd=clone.root).strip() == "1 project, 3 other files"


def test_the_first_push_is_asked_about_and_names_the_url(tmp_path: Path, hub: Path) -> None:
    clone = Clone(tmp_path / "ada", hub)
    clone.begin()
    report = clone.sync(may_publish=False)
    assert (report.state, report.url) == ("not_agreed", str(hub))
    assert git("branch", "--list", cwd=hub) == ""
    assert clone.sync().is_pushed
    clone.write(PLAN, "one\n")
    assert clone.sync(may_publish=False).is_pushed


def test_another_remote_is_asked_about_again(tmp_path: Path, ada: Clone) -> None:
    other = make_hub(tmp_path / "other.git")
    git("remote", "set-url", "origin", str(other), cwd=ada.root)
    ada.open("ada")
    assert ada.sync(may_publish=False).state == "not_agreed"
    assert git("branch", "--list", cwd=other) == ""


def test_the_address_that_is_pushed_to_is_the_one_that_is_asked_about(tmp_path: Path, hub: Path) -> None:
    clone = Clone(tmp_path / "ada", hub)
    other = make_hub(tmp_path / "other.git")
    git("remote", "set-url", "--push", "origin", str(other), cwd=clone.root)
    clone.begin()
    assert clone.sync(may_publish=False).url == str(other)


def test_a_store_that_came_from_a_remote_goes_back_to_it(bob: Clone) -> None:
    (bob.root / ".git/raddle/agreed").unlink(missing_ok=True)
    bob.write(PLAN, "one\n")
    assert bob.sync(may_publish=False).is_pushed


@pytest.mark.parametrize("where", ["in the folder", "in the last commit"])
def test_a_project_that_is_not_to_be_published_stays_here(ada: Clone, hub: Path, where: str) -> None:
    before = git("rev-parse", BRANCH, cwd=hub)
    ada.write(
        PROJECT_FILE, encode_project(Project(project_id="loom", phases=("build",), publish=False)).decode()
    )
    if where == "in the last commit":
        assert ada.sync().state == "kept_here"
        ada.write(
            PROJECT_FILE, encode_project(Project(project_id="loom", phases=("build",), publish=True)).decode()
        )
        assert ada.sync().state == "in_step"  # somebody allowed it again: the commit says so too
        return
    ada.write(PLAN, "for us alone\n")
    assert ada.sync().state == "kept_here"
    assert git("rev-parse", BRANCH, cwd=hub) == before


def test_a_remote_that_is_not_to_hear_of_it_is_not_even_asked(
    ada: Clone, tmp_path: Path, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    over_network = StoreRepository._over_network

    def noted(self: StoreRepository, arguments: list[str], *rest: float) -> Completed:
        asked.append(arguments[0])
        return over_network(self, arguments, *rest)

    monkeypatch.setattr(StoreRepository, "_over_network", noted)
    assert ada.sync().state == "in_step"
    assert asked == ["ls-remote"]
    asked.clear()
    ada.write(PLAN, "offline\n")
    assert ada.sync(is_offline=True).state == "offline"
    git("remote", "set-url", "origin", str(hub.rename(tmp_path / "other.git")), cwd=ada.root)
    ada.repository.forget_settings()
    assert ada.sync(may_publish=False).state == "not_agreed"
    ada.write(
        PROJECT_FILE, encode_project(Project(project_id="loom", phases=("build",), publish=False)).decode()
    )
    assert ada.sync().state == "kept_here"
    assert asked == []


def test_being_offline_is_one_line_and_work_goes_on(ada: Clone, bob: Clone, hub: Path) -> None:
    away = hub.rename(hub.with_name("away.git"))
    for number in range(3):
        ada.write(f"memory/team/note-{number}", "offline\n")
        report = ada.sync()
        assert report.state == "offline"
        assert "hub.git" in report.why
        assert "\n" not in report.why
    away.rename(hub)
    assert ada.sync().is_pushed
    assert len(bob.sync().pulled) == 3


def test_both_move_and_the_history_stays_a_line(ada: Clone, bob: Clone, hub: Path) -> None:
    ada.write(PLAN, "from ada\n")
    bob.write(PLAN, "from bob\n")
    bob.write("memory/team/other", "untouched by ada\n")
    settle([ada, bob])
    assert ada.scan() == bob.scan()
    (conflict,) = conflicts_in(dict.fromkeys(ada.files.paths()))
    assert {ada.text(PLAN), ada.text(conflict)} == {"from ada\n", "from bob\n"}
    assert git("rev-list", "--merges", BRANCH, cwd=hub) == ""


def test_what_a_person_removed_is_removed_everywhere_and_what_nobody_removes_comes_back(
    ada: Clone, bob: Clone
) -> None:
    ada.write(PLAN, "one\n")
    ada.files.add({ENTRY: b"{}"})
    settle([ada, bob])
    (ada.root / PLAN).unlink()
    (ada.root / ENTRY).unlink()
    assert ada.sync().restored == (ENTRY,)
    bob.sync()
    assert PLAN not in paths(bob)
    assert ENTRY in paths(ada) & paths(bob)


def test_many_memories_that_are_gone_are_asked_about_before_they_go_everywhere(
    ada: Clone, bob: Clone
) -> None:
    for number in range(9):
        ada.write(f"memory/team/{number}", "x\n")
    settle([ada, bob])
    for number in range(1, 9):
        (ada.root / f"memory/team/{number}").unlink()
    with pytest.raises(ManyRemoved, match="8 of 9"):
        ada.sync()
    assert len(ada.sync(removals="none").restored) == 8
    for number in range(1, 9):
        (ada.root / f"memory/team/{number}").unlink()
    assert ada.sync(removals="all").is_pushed
    bob.sync()
    assert [path for path in paths(bob) if path.startswith("memory/")] == ["memory/team/0"]


def test_a_folder_that_is_gone_is_asked_about_however_little_was_in_it(ada: Clone, bob: Clone) -> None:
    ada.write(PLAN, "one\n")
    settle([ada, bob])
    shutil.rmtree(ada.root / "memory")
    with pytest.raises(ManyRemoved, match="1 of 1"):
        ada.sync()
    assert PLAN in ada.sync(removals="none").restored
    assert ada.scan() == bob.scan()


def test_a_folder_that_was_emptied_takes_nothing_from_anybody(ada: Clone, bob: Clone) -> None:
    ada.write(PLAN, "one\n")
    settle([ada, bob])
    for path in ada.files.paths():
        (ada.root / path).unlink()
    report = ada.sync()
    assert PLAN in report.restored
    assert ada.scan() == bob.scan()


def test_a_link_in_the_folder_is_never_followed_and_takes_nothing_away(
    ada: Clone, bob: Clone, tmp_path: Path
) -> None:
    ada.write(PLAN, "one\n")
    settle([ada, bob])
    secret = tmp_path / "secret"
    secret.write_text("the password")
    (ada.root / PLAN).unlink()
    (ada.root / PLAN).symlink_to(secret)
    (ada.root / "memory/out").symlink_to(tmp_path)
    report = ada.sync()
    assert report.blocked == {PLAN: "it is a link", "memory/out": "it is a link"}
    bob.sync()
    assert bob.text(PLAN) == "one\n"
    assert ada.files.read(PLAN) is None
    assert "the password" not in git("log", "-p", cwd=ada.root)


def test_a_file_too_large_for_git_is_named_and_stays_out(ada: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "LARGEST_IN_GIT", 1024)
    ada.write(PLAN, "x" * 2000)
    assert "artifact" in ada.sync().blocked[PLAN]
    assert git("ls-files", "memory/team", cwd=ada.root) == ""


def test_what_a_hostile_clone_pushes_never_reaches_a_disk(
    ada: Clone, bob: Clone, hub: Path, tmp_path: Path
) -> None:
    blob = git("hash-object", "-w", "--stdin", cwd=hub).strip()
    tree = git("rev-parse", f"{BRANCH}^{{tree}}", cwd=hub).strip()
    listing = git("ls-tree", tree, cwd=hub)
    evil = subprocess.run(
        ["git", "mktree"],
        cwd=hub,
        input=f"{listing}120000 blob {blob}\tlink\n040000 tree {tree}\t.GIT\n160000 commit {'1' * 40}\tsub\n".encode(),
        check=True,
        capture_output=True,
    )
    identity = ("-c", "user.name=eve", "-c", "user.email=eve@example.org")
    commit = git(
        *identity, "commit-tree", evil.stdout.decode().strip(), "-p", BRANCH, "-m", "evil", cwd=hub
    ).strip()
    git("update-ref", f"refs/heads/{BRANCH}", commit, cwd=hub)
    ada.write(PLAN, "one\n")
    settle([ada, bob])
    for clone in (ada, bob):
        names = {entry.name for entry in clone.root.iterdir()}
        assert not names & {"link", ".GIT", "sub"}
        assert clone.text(PLAN) == "one\n"
    status = git("status", "--porcelain", "--ignore-submodules", cwd=ada.root).splitlines()
    assert all(
        line.endswith((" link", " .GIT/.gitattributes", "sub")) or ".GIT/" in line for line in status
    ), status
    assert {".GIT", "link", "sub"} <= set(git("ls-tree", "--name-only", BRANCH, cwd=hub).split())


def test_a_push_by_force_loses_nothing_and_what_it_took_is_kept_under_a_name(
    ada: Clone, bob: Clone, hub: Path
) -> None:
    first = git("rev-parse", BRANCH, cwd=hub).strip()
    ada.write("memory/team/a", "one\n")
    settle([ada, bob])
    git("update-ref", f"refs/heads/{BRANCH}", first, cwd=hub)
    bob.write("memory/team/b", "two\n")
    report = bob.sync()
    assert report.rescue.startswith("refs/raddle/rescue/")
    assert git("rev-parse", report.rescue, cwd=bob.root)
    settle([ada, bob])
    assert {"memory/team/a", "memory/team/b"} <= paths(ada) & paths(bob)


def test_a_remote_that_was_emptied_is_asked_about(ada: Clone, hub: Path) -> None:
    git("update-ref", "-d", f"refs/heads/{BRANCH}", cwd=hub)
    ada.write(PLAN, "one\n")
    assert ada.sync(may_publish=False).state == "emptied"
    assert git("branch", "--list", cwd=hub) == ""
    assert ada.sync(may_refill=True).is_pushed


def test_two_projects_are_never_brought_into_step(ada: Clone, hub: Path, tmp_path: Path) -> None:
    other = Clone(tmp_path / "other", hub)
    other.begin(project_id="another")
    with pytest.raises(ConflictError, match="another"):
        other.sync()
    assert git("log", "--format=%s", BRANCH, cwd=hub).count("\n") == 1


def test_a_store_from_the_future_is_refused_before_a_file_of_it_is_written(
    ada: Clone, bob: Clone, hub: Path
) -> None:
    ada.write(PROJECT_FILE, "schema_version: 1\nproject_id: loom\nphases:\n- build\n")
    text = ada.text(PROJECT_FILE)
    ada.sync()
    newer = text.replace("schema_version: 1", "schema_version: 2")
    (ada.root / PROJECT_FILE).write_text(newer)
    with pytest.raises(NewerFormat):
        ada.sync()
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "from the future", cwd=ada.root)
    git("push", "-q", "origin", BRANCH, cwd=ada.root)
    before = bob.scan()
    with pytest.raises(NewerFormat):
        bob.sync()
    assert bob.scan() == before
    bob.write(PLAN, "bob goes on\n")
    with pytest.raises(NewerFormat):
        bob.sync()


def test_hooks_signing_ignore_files_and_the_language_of_a_person_do_not_reach_a_store(
    ada: Clone, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "pre-push", "post-commit", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\nexit 1\n")
        (hooks / name).chmod(0o755)
    (home / "ignore").write_text("build\nmemory\n")
    git("config", "core.hooksPath", str(hooks), cwd=ada.root)
    settings = f"""[core]\n excludesFile = {home}/ignore\n autocrlf = true
[commit]\n gpgsign = true\n[user]\n signingkey = nobody\n[push]\n gpgSign = true\n followTags = true
[fetch]\n prune = true\n[gpg]\n program = /nowhere\n"""
    (home / "gitconfig").write_text(settings)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig"))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    (ada.root / ".gitignore").write_text("*\n")
    ada.files.add({ENTRY: b"{}\r\n"})
    assert ada.sync().is_pushed
    assert ENTRY in git("ls-tree", "-r", "--name-only", "origin/main", cwd=ada.root)
    assert git("cat-file", "-s", f"{BRANCH}:{ENTRY}", cwd=ada.root) == "4\n"
    assert not list(tmp_path.glob("ran-*"))


def test_a_remote_that_takes_no_push_is_told_apart_from_one_that_is_away(ada: Clone, hub: Path) -> None:
    hook = hub / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'this branch is protected' >&2\nexit 1\n")
    hook.chmod(0o755)
    ada.write(PLAN, "one\n")
    with pytest.raises(Forbidden, match="pre-receive hook declined"):
        ada.sync()
    assert ada.text(PLAN) == "one\n"


def test_a_lock_of_gits_index_that_somebody_left_does_not_matter(ada: Clone) -> None:
    (ada.root / ".git/index.lock").write_bytes(b"")
    ada.write(PLAN, "one\n")
    assert ada.sync().is_pushed


def test_a_store_in_the_middle_of_a_rebase_says_what_to_do(ada: Clone) -> None:
    git("checkout", "-q", "--detach", cwd=ada.root)
    ada.open("ada")
    with pytest.raises(BrokenFormat) as caught:
        ada.sync()
    assert "raddle store adopt" in caught.value.hint


def test_a_write_of_another_program_while_a_sync_writes_is_kept_beside(
    ada: Clone, bob: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada.write(PLAN, "first\n")
    settle([ada, bob])
    bob.write(PLAN, "from bob\n")
    bob.sync()
    carry_out = ada.files.carry_out

    def late(*arguments: Any) -> Any:
        (ada.root / PLAN).write_text("an editor saved this just now\n")
        return carry_out(*arguments)

    monkeypatch.setattr(ada.files, "carry_out", late)
    ada.sync()
    monkeypatch.undo()
    settle([ada, bob])
    (conflict,) = conflicts_in(dict.fromkeys(bob.files.paths()))
    assert bob.text(PLAN) == "an editor saved this just now\n"
    assert bob.text(conflict) == "from bob\n"


def test_nothing_is_committed_on_a_commit_that_git_has_lost(ada: Clone) -> None:
    before = git("rev-parse", BRANCH, cwd=ada.root)
    with pytest.raises(BrokenFormat, match=f"no longer has the commit {'0' * 39}1"):
        ada.repository.commit(
            {PLAN: b"new\n"}, parent="0" * 39 + "1", message="test", writer=ada.writer, moves=False
        )
    assert git("rev-parse", BRANCH, cwd=ada.root) == before
