"""Conflicts settled, and the history of a memory: over real clones, so that what is dropped is proved to be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.actions.memory.memories import delete_memory, get_memory, set_memory
from raddle.actions.memory.memory_conflicts import called, other_versions, resolve, versions_beside
from raddle.adapters.memory_repo.versions import committed, contents_of, version_at, versions_of
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.memory.artifact import Artifact, ArtifactIndex, encode_index
from raddle.model.memory.handoff import Handoff, encode_handoff
from raddle.model.memory.repo_layout import conflict_path, handoff_file, index_file
from tests.builders_memories import RUN, lay
from tests.memory_clones import Clone, git, make_hub

PLAN = "memory/team/plan"
OTHER = f"{PLAN}.conflict-bbbbbbbb-{RUN}"


@pytest.fixture
def ada(tmp_path: Path) -> Clone:
    clone = Clone(tmp_path / "ada", make_hub(tmp_path / "hub.git"), node_id="aaaaaaaa")
    clone.begin()
    assert clone.sync().state == "in_step"
    return clone


def settle(clone: Clone, what: str, *, take: str = "", text: str | None = None) -> str:
    return resolve(clone.files, clone.repository, clone.writer, what, take=take, text=text).path


def held_once(clone: Clone, path: str) -> set[bytes]:
    """Every content that the history has of a path."""
    return set(contents_of(clone.root, path))


@pytest.mark.parametrize(
    ("take", "kept"),
    [
        ("current", b"ours\n"),
        ("mine", b"ours\n"),
        ("theirs", b"theirs\n"),
        (OTHER.rpartition("/")[2], b"theirs\n"),
    ],
)
def test_what_is_taken_stands_and_what_is_dropped_is_in_the_history(
    ada: Clone, take: str, kept: bytes
) -> None:
    lay(ada.root, {PLAN: b"ours\n", OTHER: b"theirs\n"})
    assert [(one.of, one.node_id) for one in other_versions(ada.files)] == [(PLAN, "bbbbbbbb")]
    assert settle(ada, "team/plan", take=take) == PLAN
    assert ada.files.read(PLAN) == kept
    assert ada.files.read(OTHER) is None
    assert other_versions(ada.files) == []
    assert held_once(ada, PLAN) == {b"ours\n"}
    assert held_once(ada, OTHER) == {b"theirs\n"}


def test_mine_is_this_machines_also_where_it_lies_beside(ada: Clone) -> None:
    mine = conflict_path(PLAN, ada.writer.node_id, RUN)
    lay(ada.root, {PLAN: b"theirs\n", mine: b"mine\n"})
    settle(ada, "team/plan", take="mine")
    assert ada.files.read(PLAN) == b"mine\n"


def test_a_text_of_ones_own_keeps_what_is_told_of_the_memory(ada: Clone) -> None:
    lay(ada.root, {PLAN: b"---\ntags: [x]\n---\nours\n", OTHER: b"theirs\n"})
    settle(ada, f"team/{OTHER.rpartition('/')[2]}", text="both")
    found = get_memory(ada.files, "team/plan").text
    assert found is not None
    assert (found.body, found.front_matter.tags) == ("both\n", ("x",))


def test_of_several_versions_one_has_to_be_named(ada: Clone) -> None:
    third = f"{PLAN}.conflict-cccccccc-{RUN}"
    lay(ada.root, {PLAN: b"1\n", OTHER: b"2\n", third: b"3\n"})
    assert len(versions_beside(ada.files, PLAN)) == 2
    for take in ("", "theirs", "nobody's"):
        with pytest.raises(InvalidInput) as refused:
            settle(ada, "team/plan", take=take)
        assert "cccccccc" in refused.value.hint
    settle(ada, "team/plan", take=third)
    assert (ada.files.read(PLAN), ada.files.read(OTHER), ada.files.read(third)) == (b"3\n", None, None)


def test_a_handoff_is_settled_by_its_path_and_stays_readable(ada: Clone) -> None:
    path = handoff_file(RUN, "build")
    other = conflict_path(path, "bbbbbbbb", RUN)
    ours, theirs = (
        encode_handoff(Handoff(from_phase="build", run_id=RUN, headline=word)) for word in ("ours", "theirs")
    )
    lay(ada.root, {path: ours, other: theirs})
    with pytest.raises(InvalidInput, match="cannot stand there"):
        settle(ada, path, text="no JSON")
    assert ada.files.read(other) == theirs
    assert settle(ada, path, take="theirs") == path
    assert ada.files.read(path) == theirs


def test_an_artifact_that_has_an_id_of_its_own_waits_for_nobody(ada: Clone) -> None:
    folder = f"runs/{RUN}/phases/build/artifacts"
    pointed, loose = f"{folder}/a.conflict-bbbbbbbb-{RUN}.png", f"{folder}/b.conflict-bbbbbbbb-{RUN}.png"
    pointer = Artifact(
        artifact_id="a2",
        kind="plot",
        sha256="0" * 64,
        size_bytes=1,
        backend="inline",
        uri=pointed,
        produced_by_phase="build",
    )
    lay(ada.root, {index_file(RUN): encode_index(ArtifactIndex(run_id=RUN, artifacts={"a2": pointer}))})
    lay(ada.root, {f"{folder}/a.png": b"1", pointed: b"2", f"{folder}/b.png": b"3", loose: b"4"})
    assert [one.path for one in other_versions(ada.files)] == [loose]
    with pytest.raises(InvalidInput, match="never changes"):
        settle(ada, f"{folder}/b.png", take="theirs")
    settle(ada, f"{folder}/b.png", take="current")
    assert (ada.files.read(f"{folder}/b.png"), ada.files.read(loose)) == (b"3", None)


def test_a_name_that_another_memory_has_by_now_is_not_taken(ada: Clone) -> None:
    lay(ada.root, {f"{PLAN}/detail": b"x", OTHER: b"theirs\n"})
    with pytest.raises(InvalidInput, match="folder of"):
        settle(ada, "team/plan", take="theirs")
    assert ada.files.read(OTHER) == b"theirs\n"
    settle(ada, "team/plan", take="current")
    assert (ada.files.read(OTHER), ada.files.read(f"{PLAN}/detail")) == (None, b"x")


def test_where_nothing_waits_it_is_said(ada: Clone) -> None:
    lay(ada.root, {PLAN: b"x"})
    for what in ("team/plan", "team/nothing", "project.yaml"):
        with pytest.raises(NotFound, match="conflict"):
            settle(ada, what, take="mine")


def test_two_machines_that_wrote_the_same_line_settle_it_for_both(tmp_path: Path, ada: Clone) -> None:
    bob = Clone(tmp_path / "bob", tmp_path / "hub.git", node_id="bbbbbbbb")
    assert bob.sync().state == "in_step"
    lay(ada.root, {PLAN: b"from ada\n"})
    lay(bob.root, {PLAN: b"from bob\n"})
    ada.sync()
    bob.sync()
    waiting = other_versions(bob.files)
    assert [called(one.of) for one in waiting] == ["team/plan"]
    settle(bob, "team/plan", take="mine")
    assert bob.files.read(PLAN) == b"from bob\n"
    bob.sync()
    ada.sync()
    assert ada.files.read(PLAN) == b"from bob\n"
    assert other_versions(ada.files) == []


def test_the_history_of_a_memory_is_told_newest_first(ada: Clone) -> None:
    for text in ("one", "two"):
        set_memory(ada.files, ada.writer, "team/plan", text)
        ada.sync()
    delete_memory(ada.files, "team/plan")
    ada.sync()
    found = versions_of(ada.root, PLAN)
    assert [one.size is None for one in found] == [True, False, False]
    assert {one.node_id for one in found} == {"aaaaaaaa"}
    assert found[0].at >= found[2].at
    assert version_at(ada.root, PLAN, found[1].commit[:10]).endswith(b"two\n")
    assert version_at(ada.root, PLAN, found[2].commit).endswith(b"one\n")
    assert committed(ada.root, PLAN) is None
    assert [one.commit for one in versions_of(ada.root, PLAN, limit=1)] == [found[0].commit]


def test_a_version_that_is_not_there_and_a_text_that_is_no_commit_are_said(ada: Clone) -> None:
    assert versions_of(ada.root, PLAN) == []
    head = git("rev-parse", "HEAD", cwd=ada.root).strip()
    for commit in (head, "abcdef0123"):
        with pytest.raises(NotFound):
            version_at(ada.root, PLAN, commit)
    for commit in ("HEAD", "--help", "x:y", ""):
        with pytest.raises(InvalidInput, match="commit"):
            version_at(ada.root, PLAN, commit)


def test_names_that_git_could_read_as_a_pattern_are_names(ada: Clone) -> None:
    lay(ada.root, {"memory/team/[ab]*": b"1", "memory/team/a": b"2", "memory/team/:(top)x": b"3"})
    ada.sync()
    assert [one.size for one in versions_of(ada.root, "memory/team/[ab]*")] == [1]
    assert list(contents_of(ada.root, "memory/team/:(top)x")) == [b"3"]


def test_a_store_without_a_commit_has_no_history(tmp_path: Path) -> None:
    new = Clone(tmp_path / "new", None)
    assert versions_of(new.root, PLAN) == []
    assert committed(new.root, PLAN) is None
