"""Two versions of a store as one: what each rule comes to, in examples a person can check."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from raddle.model.errors import ConflictError, NewerFormat
from raddle.model.memory.artifact import decode_index
from raddle.model.memory.merge import MergedTree, Note, conflicts_in, merge_contents
from raddle.model.memory.merge_sides import Side, Sides
from raddle.model.memory.merge_trees import plan_merge
from raddle.model.memory.project import decode_project, encode_project
from raddle.model.memory.repo_layout import place_of
from raddle.model.memory.run import decode_run
from tests.unit.memory_files import HANDOFF, INDEX, PROJECT, RUN

SIDES = Sides(
    local=Side(node_id="node-a", at=1_796_040_000_000_000),
    remote=Side(node_id="node-b", at=1_796_040_001_000_000),
)
RUN_FILE = "runs/01M8PZKM3KMAB0SYRHJ485PAMY/run.yaml"
INDEX_FILE = "runs/01M8PZKM3KMAB0SYRHJ485PAMY/artifacts.index.json"
HANDOFF_FILE = "runs/01M8PZKM3KMAB0SYRHJ485PAMY/phases/build/handoff.json"

Files = dict[str, str]


def blob_id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def merge(base: Files, local: Files, remote: Files) -> tuple[Files, MergedTree]:
    contents = {blob_id(text): text.encode() for files in (base, local, remote) for text in files.values()}
    trees = [{path: blob_id(text) for path, text in files.items()} for files in (base, local, remote)]
    tree = merge_contents(plan_merge(*trees), contents, SIDES)
    entries = {path: contents[entry].decode() for path, entry in tree.entries.items()}
    return entries | {path: data.decode() for path, data in tree.written.items()}, tree


def merge_one(path: str, base: str, local: str, remote: str) -> tuple[str, dict[str, str], MergedTree]:
    """What stands at the path, what stands beside it, and the tree."""
    files, tree = merge({path: base}, {path: local}, {path: remote})
    return files.pop(path), files, tree


def test_a_key_that_two_clones_edited_is_the_later_text_with_the_other_beside_it() -> None:
    path = "memory/notes/plan.md"
    value, beside, tree = merge_one(path, "one\n", "mine\n", "yours\n")
    assert value == "yours\n"
    (other,) = beside
    assert beside[other] == "mine\n"
    assert other.startswith("memory/notes/plan.md.conflict-node-a-")
    assert conflicts_in(tree.entries) == (other,)
    assert tree.notes == (Note(kind="conflict", path=path, other=other, clashes=("content",)),)
    conflict = place_of(other).conflict
    assert conflict is not None
    assert (conflict.of, conflict.node_id) == (path, "node-a")


def test_a_memory_that_says_when_it_was_written_is_as_late_as_it_says() -> None:
    late = "---\nupdated: '2026-11-30T13:00:00Z'\n---\n\nmine\n"
    early = "---\nupdated: '2026-11-30T12:00:00Z'\n---\n\nyours\n"
    value, beside, _ = merge_one("memory/n/k", "x\n", late, early)
    assert (value, list(beside.values())) == (late, [early])


def test_two_edits_in_different_places_of_a_memory_are_one_text() -> None:
    head = "---\ndescription: d\ntags: [a, b]\nupdated: '{}'\nauthor: {}\n---\n\n"
    base = head.format("2026-11-30T12:00:00Z", "x") + "one\ntwo\nthree\n"
    local = head.replace("[a, b]", "[a]").format("2026-11-30T12:00:01Z", "ada") + "ONE\ntwo\nthree\n"
    remote = head.replace("[a, b]", "[a, b, c]").format("2026-11-30T12:00:02Z", "bob") + "one\ntwo\nTHREE\n"
    value, beside, tree = merge_one("memory/n/k", base, local, remote)
    assert beside == {}
    assert tree.notes == ()
    assert "updated: '2026-11-30T12:00:02Z'\nauthor: bob\n" in value
    assert "tags:\n- a\n- c\n" in value
    assert value.endswith("---\n\nONE\ntwo\nTHREE\n")


def test_two_nodes_move_one_run_on() -> None:
    local = RUN.replace("test: pending", "test: active").replace("host: vm\n", "host: vm\n  cpu: 8\n")
    remote = RUN.replace("test: pending", "test: done").replace("present: pending", "present: active")
    remote = remote.replace(
        "created_ts", "- node_id: node-b\n  joined: '2026-11-30T20:00:00Z'\ncreated_ts", 1
    )
    value, beside, _ = merge_one(RUN_FILE, RUN, local, remote)
    run = decode_run(value.encode())
    assert beside == {}
    assert run.phases == {"build": "done", "test": "done", "present": "active"}
    assert [stint.node_id for stint in run.nodes] == ["node-6f7ea912bd3c", "node-b"]
    assert run.nodes[0].unknown == {"cpu": 8}


def test_a_failed_phase_that_was_run_again_is_not_failed_any_more() -> None:
    base = RUN.replace("test: pending", "test: failed")
    value, _, _ = merge_one(RUN_FILE, base, base.replace("test: failed", "test: active"), base + "note: x\n")
    assert decode_run(value.encode()).phases["test"] == "active"


def test_comments_of_a_project_survive_a_merge() -> None:
    base = PROJECT.replace("phases:", "# in order\nphases:")
    local = base.replace("- present\n", "- present\n- ship\n")
    remote = base.replace("publish: null", "publish: false").replace("- build\n", "- lint\n- build\n")
    value, _, _ = merge_one("project.yaml", base, local, remote)
    project = decode_project(value.encode())
    assert (project.phases, project.publish) == (("lint", "build", "test", "present", "ship"), False)
    assert "# in order\nphases:" in value


def test_a_name_that_both_changed_is_kept_twice() -> None:
    value, beside, tree = merge_one(
        "project.yaml",
        PROJECT,
        PROJECT.replace("name: null", "name: A"),
        PROJECT.replace("name: null", "name: B"),
    )
    assert decode_project(value.encode()).name == "B"
    assert [decode_project(text.encode()).name for text in beside.values()] == ["A"]
    assert tree.notes[0].clashes == ("name",)


def test_two_projects_are_never_merged() -> None:
    other = PROJECT.replace("my-project", "another")
    with pytest.raises(ConflictError, match="another"):
        merge({}, {"project.yaml": PROJECT}, {"project.yaml": other})


def test_a_store_from_the_future_is_refused_before_anything_is_merged() -> None:
    future = PROJECT.replace("schema_version: 1", "schema_version: 2")
    with pytest.raises(NewerFormat):
        merge({"project.yaml": PROJECT}, {"project.yaml": PROJECT, "a": "1"}, {"project.yaml": future})


def test_two_artifacts_of_one_id_are_both_there_with_their_bytes() -> None:
    file = "runs/01M8PZKM3KMAB0SYRHJ485PAMY/phases/build/artifacts/conf.txt"
    empty = INDEX[: INDEX.index('"conf"')] + "}}"
    later = INDEX.replace(
        "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
        hashlib.sha256(b"bye\n").hexdigest(),
    )
    later = later.replace("19:41:16.286029", "19:41:17.000000")
    files, tree = merge(
        {INDEX_FILE: empty}, {INDEX_FILE: later, file: "bye\n"}, {INDEX_FILE: INDEX, file: "hello\n"}
    )
    artifacts = decode_index(files[INDEX_FILE].encode()).artifacts
    assert files[artifacts["conf"].uri] == "hello\n"
    (renamed,) = artifacts.keys() - {"conf"}
    assert renamed.startswith("conf.conflict-node-a-")
    assert files[artifacts[renamed].uri] == "bye\n"
    assert artifacts[renamed].uri.endswith(".txt")
    assert [(note.kind, note.path) for note in tree.notes] == [("renamed_artifact", "conf"), ("moved", file)]


def test_the_handoff_that_was_published_later_stands() -> None:
    base = HANDOFF.replace("head", "base", 1)
    local = HANDOFF.replace('"headline"', '"published_ts": "2026-11-30T21:00:00Z",\n  "headline"')
    remote = HANDOFF.replace('"headline"', '"published_ts": "2026-11-30T20:00:00Z",\n  "headline"')
    value, beside, _ = merge_one(HANDOFF_FILE, base, local, remote)
    assert (value, list(beside.values())) == (local, [remote])


def test_equal_handoffs_are_no_conflict() -> None:
    value, beside, _ = merge_one(HANDOFF_FILE, "{}", HANDOFF, HANDOFF + "\n")
    assert beside == {}
    assert value in (HANDOFF, HANDOFF + "\n")


def test_a_name_and_its_twin_are_both_kept() -> None:
    files, tree = merge(
        {}, {"memory/n/Foo": "mine", "memory/n/a": "file"}, {"memory/n/foo": "yours", "memory/n/a/b": "x"}
    )
    assert files["memory/n/Foo"] == "mine"
    assert files["memory/n/a/b"] == "x"
    moved = {note.path: note.other for note in tree.notes}
    assert moved.keys() == {"memory/n/foo", "memory/n/a"}
    assert (files[moved["memory/n/foo"]], files[moved["memory/n/a"]]) == ("yours", "file")
    assert conflicts_in(files) == tuple(sorted(moved.values()))


def test_a_folder_in_two_spellings_is_one_folder() -> None:
    files, tree = merge({}, {"memory/n/Foo/a": "1"}, {"memory/n/foo/b": "2"})
    assert files == {"memory/n/Foo/a": "1", "memory/n/Foo/b": "2"}
    assert tree.notes == (Note(kind="moved", path="memory/n/foo/b", other="memory/n/Foo/b"),)


def test_a_folder_that_was_there_keeps_its_spelling() -> None:
    base = {"memory/n/foo/a": "1"}
    files, _ = merge(base, base | {"memory/n/foo/c": "2"}, {"memory/n/Foo/b": "3", "memory/n/foo/a": "1"})
    assert files.keys() == {"memory/n/foo/a", "memory/n/foo/c", "memory/n/Foo/b"}, (
        "the remote has both already"
    )
    files, _ = merge(base, {"memory/n/foo/a": "2"}, {"memory/n/Foo/b": "3"})
    assert files == {"memory/n/foo/a": "2", "memory/n/foo/b": "3"}


def test_a_folder_that_gets_another_spelling_never_covers_a_file() -> None:
    base = {"memory/n/Foo/a": "1"}
    files, _ = merge(base, {"memory/n/FOO/b": "mine"}, {"memory/n/Foo/a": "2", "memory/n/Foo/b": "yours"})
    assert sorted(files.values()) == ["2", "mine", "yours"]
    assert files["memory/n/Foo/b"] == "yours"
    assert all(path.startswith("memory/n/Foo/") for path in files)


def test_what_a_node_has_side_by_side_already_stays_as_it_is() -> None:
    local = {"memory/n/Foo": "1", "memory/n/foo": "2"}
    assert merge({}, local, {"memory/n/x": "3"})[0] == local | {"memory/n/x": "3"}


def test_bytes_that_are_no_text_are_kept_twice() -> None:
    value, beside, _ = merge_one("memory/n/k", "a\0", "b\0", "c\0")
    assert (value, list(beside.values())) == ("c\0", ["b\0"])


def test_nobody_makes_work_for_the_next_merge() -> None:
    local, remote = {"memory/n/k": "mine\n"}, {"memory/n/k": "yours\n"}
    merged, _ = merge({"memory/n/k": "one\n"}, local, remote)
    again, tree = merge(remote, merged, remote)
    assert (again, tree.notes) == (merged, ())
    assert merge(local, merged, merged)[0] == merged


def test_a_project_that_is_rewritten_keeps_what_it_had() -> None:
    project = decode_project(PROJECT.encode())
    old = ("# ours\n" + PROJECT).encode()
    assert encode_project(msgspec.structs.replace(project, publish=False), old) == old.replace(
        b"publish: null", b"publish: false"
    )
