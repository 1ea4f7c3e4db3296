"""Commits on branches that were left again, as git's own log of HEAD tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.adapters.git_head_log import commits_made, log_end, moves_from, moves_since
from tests.builders_recording import a_repository, commit, git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return a_repository(tmp_path / "repository")


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD")


def made(folder: Path, end: str) -> tuple[str, ...]:
    return commits_made(folder, moves_since(folder, end))


def on_a_branch(folder: Path, name: str, *texts: str) -> tuple[str, ...]:
    """Commits on a new branch, which is left again."""
    git(folder, "checkout", "-q", "-b", name)
    shas = tuple(commit(folder, text) for text in texts)
    git(folder, "checkout", "-q", "main")
    return shas


def test_commits_on_a_branch_that_was_left_are_found_oldest_first(repository: Path) -> None:
    end = log_end(repository)
    shas = on_a_branch(repository, "fix", "one", "two")
    assert made(repository, end) == shas
    assert made(repository, log_end(repository)) == ()


def test_those_of_two_branches_and_of_one_that_is_gone_are_found(repository: Path) -> None:
    end = log_end(repository)
    one, other = on_a_branch(repository, "one", "1"), on_a_branch(repository, "other", "2")
    git(repository, "branch", "-q", "-D", "other")
    git(repository, "checkout", "-q", "one")
    more = commit(repository, "3")
    git(repository, "checkout", "-q", "main")
    assert sorted(made(repository, end)) == sorted([*one, *other, more])


def test_what_a_branch_held_before_was_not_made(repository: Path) -> None:
    on_a_branch(repository, "old", "not mine")
    end = log_end(repository)
    git(repository, "checkout", "-q", "old")
    git(repository, "checkout", "-q", "main")
    assert made(repository, end) == ()
    git(repository, "checkout", "-q", "old")
    mine = commit(repository, "mine")
    git(repository, "checkout", "-q", "main")
    assert made(repository, end) == (mine,)


def test_what_was_amended_or_thrown_away_is_not_there(repository: Path) -> None:
    end = log_end(repository)
    git(repository, "checkout", "-q", "-b", "fix")
    commit(repository, "draft")
    git(repository, "commit", "-q", "--amend", "-m", "final")
    final = head(repository)
    commit(repository, "a mistake")
    git(repository, "reset", "-q", "--hard", final)
    git(repository, "checkout", "-q", "main")
    assert made(repository, end) == (final,)


def test_a_rebase_makes_its_own_commits_and_no_others(repository: Path) -> None:
    on_a_branch(repository, "fix", "old")
    git(repository, "rm", "-q", "file.txt")
    git(repository, "commit", "-q", "-m", "of main")
    end = log_end(repository)
    git(repository, "checkout", "-q", "fix")
    git(repository, "rebase", "-q", "-X", "theirs", "--onto", "main~1", "HEAD~1")
    git(repository, "commit", "-q", "--allow-empty", "-m", "new")
    last = head(repository)
    git(repository, "checkout", "-q", "main")
    assert made(repository, end)[-1] == last
    assert git(repository, "rev-parse", "main") not in made(repository, end)


def test_a_merge_on_a_branch_that_was_left_is_found_and_a_fast_forward_is_none(repository: Path) -> None:
    on_a_branch(repository, "side", "s")
    end = log_end(repository)
    git(repository, "checkout", "-q", "-b", "ahead")
    git(repository, "merge", "-q", "side")
    git(repository, "checkout", "-q", "main")
    assert made(repository, end) == ()
    git(repository, "checkout", "-q", "-b", "joined")
    git(repository, "merge", "-q", "--no-ff", "-m", "join", "side")
    merge = head(repository)
    git(repository, "checkout", "-q", "main")
    assert made(repository, end) == (merge,)


def test_another_worktree_is_another_log(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(repository, "worktree", "add", "-q", str(other))
    end, there = log_end(repository), log_end(other)
    theirs = commit(other, "theirs")
    git(other, "checkout", "-q", "--detach", "main")
    assert made(repository, end) == ()
    assert made(other, there) == (theirs,)


def test_a_new_repository_has_its_first_commits(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    end = log_end(folder)
    first = commit(folder, "first")
    (second,) = on_a_branch(folder, "fix", "second")
    assert made(folder, end) == (first, second)


def test_git_is_asked_only_for_what_is_not_known(repository: Path) -> None:
    end = log_end(repository)
    new = commit(repository, "one")
    assert commits_made(Path("/nowhere"), moves_since(repository, end), known=(new,)) == ()
    assert commits_made(Path("/nowhere"), moves_since(repository, end)) == (new,), "what is known is known"


def test_a_log_that_is_rewritten_gone_or_strange_tells_nothing(repository: Path, tmp_path: Path) -> None:
    log = repository / ".git/logs/HEAD"
    end = log_end(repository)
    log.write_bytes(log.read_bytes() + b"\xff\x00 no line\n" + b"0" * 300_000)
    assert made(repository, end) == ()
    end = log_end(repository)
    log.unlink()
    assert made(repository, end) == ()
    git(repository, "config", "core.logAllRefUpdates", "false")
    on_a_branch(repository, "fix", "one")
    assert made(repository, end) == ()
    assert (log_end(tmp_path), made(tmp_path, ""), made(repository, "")) == ("", (), ())


def test_moves_can_be_told_by_their_time(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2095-01-01T00:00:00Z")
    on_a_branch(repository, "early", "one")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2095-01-02T00:00:00Z")
    (late,) = on_a_branch(repository, "late", "two")
    from_the_second = moves_from(repository, 3944764800)
    assert commits_made(repository, from_the_second) == (late,)
    assert len(moves_from(repository, 0)) > len(from_the_second) > 0
