"""Commits that raddle writes itself, against what git makes of the same files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raddle.adapters.memory_repo.commit_writing import Ground, name_commit, read_ground, write_commit
from raddle.adapters.memory_repo.git_objects import edited, folders_of, id_in, made
from raddle.adapters.memory_repo.git_streams import tree_in
from raddle.adapters.memory_repo.store_git import answer_of
from raddle.model.errors import BrokenFormat

BRANCH = "refs/heads/main"
WHO = "Ada <ada@example.org> 1796040000 +0000"
NAMES = ("a", "a.b", "a-b", "a0", "A", "b", "é", "a\nb", 'q"', "z" * 60, "\udcff", "100644 a")
"""Names that git sorts otherwise as folders, and such as its own tools quote."""
Files = Mapping[str, bytes]


def is_tree(files: Files) -> bool:
    """Is no file in the place of a folder?"""
    return not any(
        f"{path}/" in f"{other}/"[: len(path) + 1] for path in files for other in files if path != other
    )


paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
trees = st.dictionaries(paths, st.binary(max_size=4), max_size=12).filter(is_tree)


@pytest.fixture(scope="module", params=["sha1", "sha256"])
def repository(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("commits")
    subprocess.run(
        ["git", "init", "-q", "-b", "main", f"--object-format={request.param}", str(root)], check=True
    )
    return root


def committed(root: Path, before: Files, after: Files, parent: str | None) -> str:
    changes: dict[str, str | bytes | None] = dict.fromkeys(before.keys() - after.keys())
    changes |= {path: data for path, data in after.items() if before.get(path) != data}
    ground = read_ground(root, parent, changes) if parent else Ground(None, {})
    commit = write_commit(root, ground, changes, who=WHO, message="test\n")
    assert name_commit(root, BRANCH, commit, was="", note="test").code == 0
    return commit


def holds(root: Path, commit: str) -> dict[str, bytes]:
    listing = tree_in(answer_of(root, ["ls-tree", "-r", "-z", "--full-tree", commit]))
    return {path: answer_of(root, ["cat-file", "blob", content]) for path, content in listing.items()}


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(states=st.lists(trees, min_size=2, max_size=4))
def test_a_commit_holds_what_it_was_given_and_git_would_have_made_the_same(
    repository: Path, states: list[Files]
) -> None:
    parent: str | None = None
    for before, after in pairwise([{}, *states]):
        parent = committed(repository, before, after, parent)
        assert holds(repository, parent) == dict(after)
        index = {"GIT_INDEX_FILE": str(repository / ".git" / "other-index"), **os.environ}
        subprocess.run(["git", "read-tree", parent], cwd=repository, env=index, check=True)
        answer = subprocess.run(
            ["git", "write-tree"], cwd=repository, env=index, check=True, capture_output=True, text=True
        )
        assert (
            answer.stdout.strip()
            == answer_of(repository, ["rev-parse", f"{parent}^{{tree}}"]).decode().strip()
        )
    assert answer_of(repository, ["fsck", "--strict", "--no-dangling"]) == b""


def test_a_folder_of_thousands_takes_one_more_and_loses_one(repository: Path) -> None:
    many = {f"memory/team/{number:05d}": b"x" for number in range(0, 6000, 2)}
    first = committed(repository, {}, many, None)
    more = {**many, "memory/team/00001": b"y", "memory/team/00002": b"z"}
    del more["memory/team/00004"]
    assert holds_names(repository, committed(repository, many, more, first)) == set(more)
    hundreds = {f"memory/team/{number:05d}": b"n" for number in range(1, 6000, 3)}
    assert holds_names(repository, committed(repository, many, many | hundreds, first)) == set(
        many | hundreds
    )


def holds_names(root: Path, commit: str) -> set[str]:
    return set(tree_in(answer_of(root, ["ls-tree", "-r", "-z", commit])))


def test_the_branch_moves_only_from_where_it_was(repository: Path) -> None:
    first = committed(repository, {}, {"a": b"1"}, None)
    ground = read_ground(repository, BRANCH, ["a"])
    assert ground.commit_id == first
    second = write_commit(repository, ground, {"a": b"2"}, who=WHO, message="two\n")
    third = write_commit(repository, ground, {"a": b"3"}, who=WHO, message="three\n")
    assert name_commit(repository, BRANCH, second, was=first, note="test").code == 0
    assert name_commit(repository, BRANCH, third, was=first, note="test").code != 0
    assert name_commit(repository, BRANCH, third, was=None, note="test").code != 0
    assert answer_of(repository, ["rev-parse", BRANCH]).decode().strip() == second


def test_a_commit_of_nothing_is_one_of_an_empty_tree(repository: Path) -> None:
    commit = committed(repository, {}, {}, None)
    assert holds(repository, commit) == {}
    assert read_ground(repository, "refs/heads/none", ["a"]) == Ground(None, {})


def test_folders_come_before_those_that_hold_them() -> None:
    assert folders_of(["a/b/c", "a/d", "e"]) == ["a/b", "a", ""]
    assert folders_of([]) == [""]


def test_a_file_is_found_by_its_whole_name() -> None:
    one, other = made("blob", b"1", "sha1").name, made("blob", b"2", "sha1").name
    tree = edited(b"", {b"100644 a": b"100644 100644 a\0" + other}, "sha1")
    assert id_in(tree, "a", "sha1") is None
    tree = edited(tree, {b"a": b"100644 a\0" + one}, "sha1")
    assert id_in(tree, "a", "sha1") == one.hex()
    assert id_in(edited(tree, {b"a": b"40000 a\0" + one}, "sha1"), "a", "sha1") is None


def test_a_damaged_tree_is_not_guessed_at() -> None:
    with pytest.raises(BrokenFormat, match="damaged"):
        edited(b"100644 a\0short", {b"b": None}, "sha1")


def test_a_folder_that_git_has_lost_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    first = committed(tmp_path, {}, {"memory/team/a": b"1", "memory/b": b"2"}, None)
    folder = answer_of(tmp_path, ["rev-parse", f"{first}:memory/team"]).decode().strip()
    subprocess.run(
        ["git", "unpack-objects", "-q"],
        cwd=tmp_path,
        check=True,
        input=moved_away(next((tmp_path / ".git/objects/pack").glob("*.pack"))),
    )
    (tmp_path / ".git/objects" / folder[:2] / folder[2:]).unlink()
    with pytest.raises(BrokenFormat, match="no longer has the folder 'memory/team'"):
        read_ground(tmp_path, BRANCH, ["memory/team/c"])
    assert read_ground(tmp_path, BRANCH, ["memory/c", "new/d"]).trees.keys() == {"", "memory"}


def moved_away(pack: Path) -> bytes:
    data = pack.read_bytes()
    for file in pack.parent.glob(f"{pack.stem}.*"):
        file.unlink()
    return data


def test_what_a_person_had_git_show_instead_is_not_committed(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    first = committed(tmp_path, {}, {"a": b"1"}, None)
    other = committed(tmp_path, {}, {"z": b"other"}, None)
    assert name_commit(tmp_path, BRANCH, first, was="", note="test").code == 0
    subprocess.run(["git", "replace", first, other], cwd=tmp_path, check=True)
    second = committed(tmp_path, {"a": b"1"}, {"a": b"1", "b": b"2"}, first)
    assert holds_names(tmp_path, second) == {"a", "b"}
