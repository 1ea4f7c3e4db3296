"""What may go from this machine's own store of blobs, and everything that may not."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from raddle.adapters.blobs import own_directory
from raddle.adapters.memory_repo.mentions import named_blobs
from raddle.model.errors import StorageError
from raddle.model.memory.repo_layout import index_file
from raddle.wiring import Stores, open_stores
from raddle.wiring.memory import ProjectMemory
from raddle.wiring.memory_blobs import MemoryBlobs
from raddle.wiring.memory_gc import find_left_over, remove_left_over
from raddle.wiring.memory_places import note_store
from tests.memory_artifacts import a_run, add
from tests.memory_clones import Clone, git, make_hub, settle

DATA = {name: name.encode() * 200_000 for name in ("one", "two", "three", "four")}
HASHES = {name: hashlib.sha256(data).hexdigest() for name, data in DATA.items()}


@pytest.fixture
def stores() -> Iterator[Stores]:
    with open_stores() as opened:
        yield opened


class Node:
    """A clone whose artifacts go into this machine's own folder."""

    def __init__(self, stores: Stores, root: Path, hub: Path | None = None) -> None:
        self.clone = Clone(root, hub)
        self.stores = stores

    @property
    def memory(self) -> ProjectMemory:
        return ProjectMemory(self.stores, self.clone.root)

    def begin(self, project_id: str = "loom") -> str:
        self.clone.begin(project_id=project_id)
        return a_run(self.clone)

    def add(self, run_id: str, name: str) -> None:
        add(self.clone, MemoryBlobs(self.memory), run_id, name, DATA[name])

    def gc(self, *, gone: bool = False) -> list[str]:
        """The names of what went."""
        age(self.stores)
        left = find_left_over(self.stores.paths, self.clone.root, forgets_gone=gone)
        removed = {blob.sha256 for blob in remove_left_over(self.stores.paths, left, forgets_gone=gone)}
        return [name for name, sha256 in HASHES.items() if sha256 in removed]


def age(stores: Stores) -> None:
    """Let two hours pass for every blob."""
    then = stores.clock() / 1_000_000 - 7_200
    for path in stores.paths.memory_blobs_dir.glob("??/*"):
        os.utime(path, (then, then))


def held(stores: Stores) -> list[str]:
    names = {path.name for path in stores.paths.memory_blobs_dir.glob("??/*")}
    return [name for name, sha256 in HASHES.items() if sha256 in names]


@pytest.fixture
def node(stores: Stores, tmp_path: Path) -> Node:
    return Node(stores, tmp_path / "store")


def _without(node: Node, run_id: str) -> None:
    """Take the pointers away, as somebody does by hand."""
    node.clone.files.change(index_file(run_id), lambda _: None)


def test_what_nobody_names_goes_and_what_is_named_stays(node: Node, stores: Stores) -> None:
    kept, dropped = node.begin(), a_run(node.clone)
    node.add(kept, "one")
    node.add(dropped, "two")
    _without(node, dropped)
    assert node.gc() == ["two"]
    assert held(stores) == ["one"]
    assert node.gc() == []


def test_nothing_that_is_younger_than_an_hour_goes(node: Node, stores: Stores) -> None:
    run_id = node.begin()
    node.add(run_id, "one")
    _without(node, run_id)
    assert find_left_over(stores.paths, node.clone.root).blobs == []
    age(stores)
    left = find_left_over(stores.paths, node.clone.root)
    assert [blob.size for blob in left.blobs] == [600_000]
    node.add(run_id, "one")  # between the question and the answer somebody adds it again
    assert remove_left_over(stores.paths, left) == []
    assert held(stores) == ["one"]


def test_a_pointer_in_any_commit_counts(node: Node, stores: Stores) -> None:
    run_id = node.begin()
    node.add(run_id, "one")
    node.clone.sync()
    _without(node, run_id)
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-am", "gone", cwd=node.clone.root)
    assert index_file(run_id) not in git("ls-tree", "-r", "--name-only", "HEAD", cwd=node.clone.root)
    assert node.gc() == []


def _commit_then_leave(node: Node, name: str) -> str:
    """A commit that points to the blob, and the branch at the one before it; the commit's id."""
    run_id = a_run(node.clone)
    node.clone.sync()
    before = git("rev-parse", "HEAD", cwd=node.clone.root).strip()
    node.add(run_id, name)
    node.clone.sync()
    commit = git("rev-parse", "HEAD", cwd=node.clone.root).strip()
    git("reset", "--quiet", "--hard", before, cwd=node.clone.root)
    git("reflog", "expire", "--expire=now", "--all", cwd=node.clone.root)
    return commit


@pytest.mark.parametrize(
    "ref", ["refs/raddle/rescue/x", "refs/heads/unmerged", "refs/remotes/origin/main", "refs/tags/v1"]
)
def test_a_pointer_on_any_ref_counts(node: Node, ref: str) -> None:
    node.begin()
    commit = _commit_then_leave(node, "one")
    git("update-ref", ref, commit, cwd=node.clone.root)
    assert node.gc() == []
    git("update-ref", "-d", ref, cwd=node.clone.root)
    assert node.gc() == ["one"]


def test_a_pointer_that_only_a_reflog_leads_to_counts(node: Node) -> None:
    node.begin()
    commit = _commit_then_leave(node, "one")
    git("update-ref", "--create-reflog", "-m", "seen", "refs/heads/other", commit, cwd=node.clone.root)
    git("update-ref", "-m", "moved", "refs/heads/other", "HEAD", cwd=node.clone.root)
    assert git("branch", "--contains", commit, cwd=node.clone.root) == ""
    assert node.gc() == []


def test_a_pointer_on_a_side_of_which_a_merge_kept_nothing_counts(node: Node) -> None:
    node.begin()
    commit = _commit_then_leave(node, "one")
    git(
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "merge",
        "--quiet",
        "-s",
        "ours",
        "--no-ff",
        "-m",
        "m",
        commit,
        cwd=node.clone.root,
    )
    assert node.gc() == []


def test_a_pointer_in_another_working_tree_counts(node: Node, tmp_path: Path) -> None:
    run_id = node.begin()
    node.clone.sync()
    git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"), cwd=node.clone.root)
    folder = tmp_path / "side" / "runs" / run_id
    node.add(run_id, "one")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "artifacts.index.json").write_bytes(node.clone.text(index_file(run_id)).encode())
    _without(node, run_id)
    assert node.gc() == []


@pytest.mark.parametrize("rest", ["}", '"schema_version": 9', "\n<<<<<<< ours\n"])
def test_an_index_that_cannot_be_read_names_what_stands_in_it(node: Node, rest: str) -> None:
    run_id = node.begin()
    node.add(run_id, "one")
    broken = node.clone.text(index_file(run_id)).replace("{", rest)
    node.clone.write(index_file(run_id), broken)
    assert node.gc() == []


def test_what_another_memory_of_this_machine_names_stays(node: Node, stores: Stores, tmp_path: Path) -> None:
    other = Node(stores, tmp_path / "other")
    run_id, theirs = node.begin(), other.begin()
    node.add(run_id, "one")
    other.add(theirs, "one")
    other.add(theirs, "two")
    _without(node, run_id)
    assert node.gc() == []
    _without(other, theirs)
    assert node.gc() == ["one", "two"]


def test_what_only_came_to_a_memory_by_a_sync_stays_too(stores: Stores, tmp_path: Path) -> None:
    hub = make_hub(tmp_path / "hub.git")
    ada, bob, eve = (Node(stores, tmp_path / name, hub) for name in ("ada", "bob", "eve"))
    run_id = ada.begin()
    ada.add(run_id, "one")
    settle([ada.clone, bob.clone])
    eve.clone.begin(project_id="another")
    note_store(stores.paths, bob.clone.root)
    shutil.rmtree(ada.clone.root)
    assert eve.gc(gone=True) == []


def test_what_a_memory_put_there_that_is_gone_is_kept_until_somebody_says_so(
    node: Node, stores: Stores, tmp_path: Path
) -> None:
    node.begin()
    other = Node(stores, tmp_path / "other")
    other.add(other.begin(), "one")
    (tmp_path / "other").rename(tmp_path / "unplugged")
    age(stores)
    left = find_left_over(stores.paths, node.clone.root)
    assert (left.blobs, left.gone) == ([], {other.clone.root: (1, 600_000)})
    assert node.gc() == []
    assert node.gc(gone=True) == ["one"]
    assert find_left_over(stores.paths, node.clone.root).gone == {}


def _without_objects(root: Path) -> None:
    for path in (path for path in (root / ".git" / "objects").rglob("*") if path.is_file()):
        path.unlink()


def _without_git(root: Path) -> None:
    shutil.rmtree(root / ".git")


def _of_code_that_is_gone(root: Path) -> None:
    _without_git(root)
    (root / ".git").write_text(f"gitdir: {root.parent}/gone/.git/worktrees/other\n")


BREAKS = pytest.mark.parametrize("breaks", [_without_objects, _without_git, _of_code_that_is_gone])


@BREAKS
def test_a_memory_that_cannot_be_read_keeps_what_it_may_need_and_stops_nobody_else(
    node: Node, stores: Stores, tmp_path: Path, breaks: Callable[[Path], None]
) -> None:
    other = Node(stores, tmp_path / "other")
    run_id, theirs = node.begin(), other.begin("another")
    other.add(theirs, "one")
    other.add(theirs, "two")
    other.clone.sync()
    for name in ("two", "three", "four"):
        node.add(run_id, name)
    pointers = node.clone.text(index_file(run_id)).replace(HASHES["four"], "0" * 64)
    other.clone.write(index_file(run_id), pointers)  # as a sync brought it: others' bytes, named here
    _without(node, run_id)
    breaks(other.clone.root)
    age(stores)
    left = find_left_over(stores.paths, node.clone.root)
    assert [(place, told.blobs, told.size) for place, told in left.unread.items()] == [
        (other.clone.root, 3, sum(len(DATA[name]) for name in ("one", "two", "three")))
    ]
    assert node.gc(gone=True) == ["four"]
    assert held(stores) == ["one", "two", "three"]
    shutil.rmtree(other.clone.root)
    assert node.gc(gone=True) == ["one", "two", "three"]


@BREAKS
def test_what_a_clone_of_it_put_there_is_kept_for_one_that_cannot_be_read(
    node: Node, stores: Stores, tmp_path: Path, breaks: Callable[[Path], None]
) -> None:
    bob = Node(stores, tmp_path / "bob")
    run_id = node.begin()
    bob.begin()
    bob.clone.sync()
    note_store(stores.paths, bob.clone.root)
    node.add(run_id, "one")
    _without(node, run_id)
    breaks(bob.clone.root)
    assert node.gc() == []
    (node.clone.root / "project.yaml").rename(tmp_path / "elsewhere")
    assert node.gc() == []


def test_for_one_that_does_not_even_say_whose_it_is_everything_is_kept(
    node: Node, stores: Stores, tmp_path: Path
) -> None:
    run_id = node.begin()
    other = Node(stores, tmp_path / "other")
    other.begin("another")
    note_store(stores.paths, other.clone.root)
    node.add(run_id, "one")
    _without(node, run_id)
    _without_git(other.clone.root)
    (other.clone.root / "project.yaml").write_bytes(b"\0")
    assert node.gc() == []


def test_another_repository_in_the_place_of_a_memory_is_not_it(
    node: Node, stores: Stores, tmp_path: Path
) -> None:
    node.begin()
    other = Node(stores, tmp_path / "other")
    other.add(other.begin(), "one")
    shutil.rmtree(other.clone.root)
    other.clone.root.mkdir()
    git("init", "--quiet", ".", cwd=other.clone.root)
    assert node.gc() == []
    assert node.gc(gone=True) == ["one"]


def test_what_a_killed_process_left_goes_though_nothing_else_does(node: Node, stores: Stores) -> None:
    node.begin()
    left = stores.paths.memory_blobs_dir / ".raddle-0123456789abcdef.tmp"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    assert node.gc() == []
    assert not left.exists()


def test_a_memory_without_a_commit_names_what_its_folder_names(node: Node) -> None:
    run_id = node.begin()
    node.add(run_id, "one")
    assert HASHES["one"] in named_blobs(node.clone.root)


def test_a_large_history_is_read_in_portions(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raddle.adapters.memory_repo.mentions._AT_ONCE_BYTES", 10)
    run_id = node.begin()
    for name in DATA:
        node.add(run_id, name)
        node.clone.sync()
    _without(node, run_id)
    assert named_blobs(node.clone.root) >= set(HASHES.values())


def test_a_blob_is_noted_as_wanted_before_it_is_there(node: Node, stores: Stores) -> None:
    directory = own_directory.OwnDirectory(stores.paths.memory_blobs_dir, node.clone.root)

    def pieces() -> Iterator[bytes]:
        (claim,) = own_directory.claims(stores.paths.memory_blobs_dir)
        assert (claim.place, set(claim.hashes)) == (node.clone.root, {HASHES["one"]})
        yield b"half"
        raise StorageError("the disk went away")

    with pytest.raises(StorageError):
        directory.put(HASHES["one"], 600_000, pieces())
    for _ in range(2):
        directory.put(HASHES["one"], 600_000, iter([DATA["one"]]))
        directory.put(HASHES["two"], 600_000, iter([DATA["two"]]))
    (claim,) = own_directory.claims(stores.paths.memory_blobs_dir)
    assert claim.hashes == {HASHES["one"], HASHES["two"]}
    assert claim.file.read_bytes().count(b"\n") == 3
