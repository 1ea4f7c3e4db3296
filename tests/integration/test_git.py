"""What git says of real repositories, and what it may not do while it is asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from raddle.adapters.git import commits_between, git_environment, git_version, read_git, read_remote, run_git
from raddle.model.errors import NotFound
from raddle.model.threads.git_facts import GitSnapshot

IDENTITY = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]


def git(folder: Path, *arguments: str) -> str:
    """Run git as the person would; its output."""
    done = subprocess.run(
        ["git", *IDENTITY, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, text: str) -> str:
    """One more commit; its sha."""
    (folder / "file.txt").write_text(text)
    git(folder, "add", "file.txt")
    git(folder, "commit", "-q", "-m", text)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository on `main` with one commit and nothing to commit."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    return folder


def read(folder: Path) -> GitSnapshot:
    snapshot = read_git(folder)
    assert snapshot is not None
    return snapshot


def test_branch_head_and_root_are_read_from_anywhere_inside(repository: Path) -> None:
    inner = repository / "a" / "b"
    inner.mkdir(parents=True)
    expected = GitSnapshot(
        branch="main", head=git(repository, "rev-parse", "HEAD"), is_dirty=False, root=str(repository)
    )
    assert read(repository) == expected
    assert read(inner) == expected


def test_a_change_a_new_file_and_a_staged_one_make_it_dirty(repository: Path) -> None:
    (repository / "file.txt").write_text("changed")
    assert read(repository).is_dirty is True
    git(repository, "checkout", "-q", "file.txt")
    assert read(repository).is_dirty is False
    (repository / "new.txt").write_text("new")
    assert read(repository).is_dirty is True
    git(repository, "add", "new.txt")
    assert read(repository).is_dirty is True
    git(repository, "rm", "-q", "--cached", "new.txt")
    (repository / ".git" / "info" / "exclude").write_text("new.txt\n")
    assert read(repository).is_dirty is False


def test_dirty_is_what_the_persons_own_status_says(repository: Path) -> None:
    (repository / "new.txt").write_text("new")
    git(repository, "config", "status.showUntrackedFiles", "no")
    git(repository, "config", "status.showStash", "true")
    (repository / "file.txt").write_text("changed")
    git(repository, "stash", "-q")
    assert read(repository).is_dirty is False


def test_a_great_many_new_files_are_dirty_without_being_listed(repository: Path) -> None:
    for number in range(1500):
        (repository / f"{'long' * 20}-{number}").touch()
    snapshot = read(repository)
    assert (snapshot.branch, snapshot.is_dirty) == ("main", True)


@pytest.mark.parametrize("name", ["feature/größe", "a b", "ünïcode", "feature/x#1"])
def test_a_branch_is_called_what_the_person_calls_it(name: str, repository: Path) -> None:
    name = name.replace(" ", "-")
    git(repository, "checkout", "-q", "-b", name)
    assert read(repository).branch == name


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    snapshot = read(repository)
    assert (snapshot.branch, snapshot.head) == (None, git(repository, "rev-parse", "HEAD"))


def test_before_the_first_commit_there_is_a_branch_and_no_head(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "trunk")
    assert read(tmp_path) == GitSnapshot(branch="trunk", is_dirty=False, root=str(tmp_path))


def test_a_worktree_has_its_own_branch_and_root_and_the_repositorys_remote(
    repository: Path, tmp_path: Path
) -> None:
    git(repository, "remote", "add", "origin", "git@github.com:owner/name.git")
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    snapshot = read(tmp_path / "side")
    assert (snapshot.branch, snapshot.root) == ("side", str(tmp_path / "side"))
    assert snapshot.remote == "github.com/owner/name"


def test_a_submodule_is_a_repository_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository), "inner")
    assert read(outer / "inner").root == str(outer / "inner")
    assert read(outer / "inner").head == git(repository, "rev-parse", "HEAD")
    assert read(outer).root == str(outer)


def test_a_bare_repository_tells_branch_head_and_remote(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    git(tmp_path / "bare.git", "remote", "set-url", "origin", "https://example.org/owner/name")
    assert read(tmp_path / "bare.git") == GitSnapshot(
        branch="main", head=git(repository, "rev-parse", "HEAD"), remote="example.org/owner/name"
    )


def test_inside_the_git_folder_the_branch_is_still_told(repository: Path) -> None:
    assert read(repository / ".git").branch == "main"


def test_a_broken_index_costs_only_the_dirtiness(repository: Path) -> None:
    (repository / ".git" / "index").write_bytes(b"broken")
    snapshot = read(repository)
    assert (snapshot.branch, snapshot.is_dirty, snapshot.root) == ("main", None, str(repository))
    assert snapshot.head == git(repository, "rev-parse", "HEAD")


def test_a_status_that_takes_too_long_costs_only_the_dirtiness(repository: Path) -> None:
    (repository / ".gitattributes").write_text("file.txt filter=slow\n")
    git(repository, "config", "filter.slow.clean", "sleep 30; cat")
    (repository / "file.txt").write_text("other")
    snapshot = read_git(repository, timeout=0.3)
    assert snapshot is not None
    assert (snapshot.branch, snapshot.is_dirty, snapshot.root) == ("main", None, str(repository))


def test_sha256_repositories_are_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256")
    head = commit(tmp_path, "first")
    assert len(head) == 64
    assert read(tmp_path).head == head


@pytest.mark.parametrize("kind", ["plain", "gone", "file", "nul", "fake"])
def test_where_there_is_no_repository_there_is_nothing_and_no_error(kind: str, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "fake" / ".git").mkdir(parents=True)
    place = tmp_path / ("a\0b" if kind == "nul" else kind)
    assert read_git(place) is None


def test_a_git_file_that_leads_nowhere_is_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert read_git(tmp_path) is None


def test_an_empty_git_folder_below_a_repository_is_looked_past(repository: Path) -> None:
    (repository / "inner" / ".git").mkdir(parents=True)
    assert read(repository / "inner").root == str(repository)


def test_a_link_to_a_workspace_is_read_where_it_leads(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository)
    assert read(tmp_path / "link").root == str(repository)


def test_without_git_there_is_nothing_and_no_error(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = git(repository, "rev-parse", "HEAD")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_git(repository) is None
    assert git_version() is None
    assert commits_between(repository, "0" * 40, head) == (head,)
    with pytest.raises(NotFound, match="git"):
        run_git(["status"], cwd=repository)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to somebody else")
def test_a_repository_of_another_owner_is_not_read_and_no_error(repository: Path) -> None:
    for path in [repository, *repository.rglob("*")]:
        os.chown(path, 65534, 65534)
    assert read_git(repository) is None


@pytest.mark.parametrize(
    ("remotes", "expected"),
    [
        ({"fork": "https://example.org/f/x", "upstream": "https://example.org/u/x"}, "example.org/u/x"),
        ({"upstream": "https://example.org/u/x", "origin": "git@Example.org:o/x.git"}, "example.org/o/x"),
        ({"fork": "https://ada:hunter2@example.org/f/x.git", "other": "/srv/x"}, "example.org/f/x"),
        ({"origin": "/srv/git/x.git"}, None),
        ({}, None),
    ],
)
def test_the_remote_is_origin_else_upstream_else_the_first(
    remotes: dict[str, str], expected: str | None, repository: Path
) -> None:
    for name, url in remotes.items():
        git(repository, "remote", "add", name, url)
    assert read(repository).remote == expected


def test_the_remote_alone_is_told_without_a_status(repository: Path, tmp_path: Path) -> None:
    git(repository, "remote", "add", "origin", "git@github.com:owner/name.git")
    (repository / ".git" / "index").write_bytes(b"broken")
    assert read_remote(repository) == "github.com/owner/name"
    assert read_remote(tmp_path) is None
    assert read_remote(tmp_path / "gone") is None


def test_a_short_form_from_the_persons_own_settings_is_understood(repository: Path, home: Path) -> None:
    (home / ".gitconfig").write_text('[url "git@github.com:"]\n\tinsteadOf = gh:\n')
    git(repository, "remote", "add", "origin", "gh:owner/name")
    assert read(repository).remote == "github.com/owner/name"


def test_a_hooks_inherited_variables_do_not_lead_astray(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "wrong")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    snapshot = read(repository)
    assert (snapshot.branch, snapshot.is_dirty) == ("main", False)


def test_the_persons_settings_and_credentials_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -i key")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/x/gitconfig")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody else")
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "1")
    monkeypatch.setenv("RADDLE_TOKEN", "hunter2")
    seen = git_environment({"GIT_AUTHOR_EMAIL": "ada@example.org"})
    assert seen["GIT_SSH_COMMAND"] == "ssh -i key"
    assert seen["GIT_CONFIG_GLOBAL"] == "/x/gitconfig"
    assert seen["GIT_TERMINAL_PROMPT"] == "0"
    assert seen["GIT_AUTHOR_EMAIL"] == "ada@example.org"
    assert "GIT_AUTHOR_NAME" not in seen
    assert "RADDLE_TOKEN" not in seen


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_look_changes_nothing_and_minds_no_lock(repository: Path) -> None:
    os.utime(repository / "file.txt", (1, 1))  # a plain `git status` would refresh the index for it
    (repository / ".git" / "index.lock").touch()
    before = everything_in(repository)
    assert read(repository).is_dirty is False
    assert everything_in(repository) == before


def test_a_look_runs_no_program_that_the_repository_names(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\n")
    trap.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(trap))
    git(repository, "config", "core.pager", str(trap))
    git(repository, "config", "pager.status", str(trap))
    git(repository, "config", "core.hooksPath", str(tmp_path))
    (tmp_path / "post-index-change").symlink_to(trap)
    os.utime(repository / "file.txt", (1, 1))
    assert read(repository).branch == "main"
    assert not (tmp_path / "sprung").exists()


def test_aliases_colours_and_columns_do_not_change_the_answer(repository: Path) -> None:
    for key, value in {
        "color.ui": "always",
        "column.ui": "always",
        "status.short": "true",
        "status.branch": "false",
        "status.relativePaths": "true",
        "core.quotePath": "true",
        "i18n.logOutputEncoding": "UTF-16",
        "core.abbrev": "4",
    }.items():
        git(repository, "config", key, value)
    assert read(repository).head == git(repository, "rev-parse", "HEAD")
    assert read(repository).branch == "main"


def test_commits_are_listed_oldest_first(repository: Path) -> None:
    shas = [git(repository, "rev-parse", "HEAD"), *(commit(repository, str(number)) for number in range(5))]
    assert commits_between(repository, shas[0], shas[-1]) == tuple(shas[1:])
    assert commits_between(repository, shas[2], shas[4]) == (shas[3], shas[4])


def test_of_many_commits_the_newest_are_listed(repository: Path) -> None:
    shas = [git(repository, "rev-parse", "HEAD"), *(commit(repository, str(number)) for number in range(5))]
    assert commits_between(repository, shas[0], shas[-1], limit=2) == (shas[-2], shas[-1])


def test_after_a_rebase_the_new_commits_are_listed(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    old = commit(repository, "draft")
    git(repository, "reset", "-q", "--hard", base)
    new = commit(repository, "final")
    assert commits_between(repository, old, new) == (new,)


def test_a_merge_brings_both_sides(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "side")
    (repository / "side.txt").write_text("x")
    git(repository, "add", "side.txt")
    git(repository, "commit", "-q", "-m", "side")
    side = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "main")
    main = commit(repository, "main")
    git(repository, "merge", "-q", "-m", "merge", "side")
    merge = git(repository, "rev-parse", "HEAD")
    found = commits_between(repository, base, merge)
    assert set(found) == {side, main, merge}
    assert found[-1] == merge


def test_where_the_old_head_is_unknown_only_the_new_one_is_listed(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert commits_between(repository, None, head) == (head,)
    assert commits_between(repository, "f" * 40, head) == (head,)
    assert commits_between(repository, "not a sha", head) == (head,)
    assert commits_between(repository, head, head) == ()


@pytest.mark.parametrize("hostile", ["--output=x", "HEAD", "", "-n1", "main", "\ud800", "a" * 39])
def test_only_a_sha_is_a_commit(hostile: str, repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert commits_between(repository, head, hostile) == ()
    assert commits_between(repository, hostile, head) == (head,)


def test_the_version_is_told_in_numbers() -> None:
    version = git_version()
    assert version is not None
    assert version >= (2, 30)
