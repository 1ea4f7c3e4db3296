"""Merging what cannot all be read: a damaged file costs itself only, and nothing of either side goes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from raddle.model.memory.artifact import decode_index
from raddle.model.memory.handoff import decode_handoff
from raddle.model.memory.project import decode_project
from raddle.model.memory.run import decode_run
from tests.unit.memory_files import HANDOFF, INDEX, PROJECT, RUN
from tests.unit.test_memory_merge import INDEX_FILE, RUN_FILE, merge, merge_one

FUTURE = "schema_version: 9\n"
FOLDER = "runs/01M8PZKM3KMAB0SYRHJ485PAMY/phases/build/artifacts"


def test_a_run_that_can_be_read_stands_before_one_that_cannot() -> None:
    done = RUN.replace("active", "done")
    for local, remote in ((done, "nodes: ["), ("nodes: [", done)):
        value, beside, tree = merge_one(RUN_FILE, RUN, local, remote)
        assert (value, list(beside.values())) == (done, ["nodes: ["])
        assert tree.notes[0].clashes == ("unreadable",)


def test_a_run_of_a_newer_format_stands_before_one_of_ours() -> None:
    value, beside, _ = merge_one(RUN_FILE, RUN, FUTURE, RUN.replace("active", "done"))
    assert (value, list(beside.values())) == (FUTURE, [RUN.replace("active", "done")])


def test_of_two_that_cannot_be_read_the_later_stands() -> None:
    value, beside, _ = merge_one(RUN_FILE, RUN, "a: [", "b: [")
    assert (value, list(beside.values())) == ("b: [", ["a: ["])


def test_two_runs_merge_though_what_both_had_is_damaged() -> None:
    local = RUN.replace("test: pending", "test: active")
    value, beside, _ = merge_one(
        RUN_FILE, "nodes: [", local, RUN.replace("present: pending", "present: active")
    )
    assert beside == {}
    assert decode_run(value.encode()).phases == {"build": "done", "test": "active", "present": "active"}


def test_a_damaged_project_is_merged_as_a_file_and_told_by_who_opens_it() -> None:
    value, beside, _ = merge_one(
        "project.yaml", PROJECT, "phases: [", PROJECT.replace("name: null", "name: x")
    )
    assert decode_project(value.encode()).name == "x"
    assert list(beside.values()) == ["phases: ["]


@pytest.mark.parametrize("phases", ["[]", "[a, a]"])
def test_a_project_without_a_pipeline_is_damaged(phases: str) -> None:
    broken = PROJECT.replace("phases:\n- build\n- test\n- present", f"phases: {phases}")
    _, beside, _ = merge_one("project.yaml", PROJECT, broken, PROJECT.replace("name: null", "name: x"))
    assert list(beside.values()) == [broken]


@pytest.mark.parametrize(
    ("old", "new"), [("nodes:\n", "nodes: 5\nmore:\n"), ("  build: done", "  build: [1]")]
)
def test_a_run_whose_parts_are_something_else_is_damaged(old: str, new: str) -> None:
    value, beside, _ = merge_one(RUN_FILE, RUN, RUN.replace(old, new), RUN.replace("active", "done"))
    assert (value, list(beside.values())) == (RUN.replace("active", "done"), [RUN.replace(old, new)])


def test_a_handoff_whose_evidence_is_something_else_is_damaged() -> None:
    path = RUN_FILE.replace("run.yaml", "phases/build/handoff.json")
    broken = HANDOFF.replace('"headline"', '"evidence": 5, "headline"')
    value, _, _ = merge_one(path, "{}", broken, HANDOFF)
    assert decode_handoff(value.encode()).evidence == ()


def test_the_peers_attributes_give_way_to_bytes_as_they_are() -> None:
    value, beside, _ = merge_one(".gitattributes", "* text=auto eol=lf\n", "* -text\n", "* text=auto\n")
    assert (value, beside) == ("* -text\n", {})
    value, beside, _ = merge_one(".gitattributes", "a\n", "b\n", "c\n")
    assert (value, list(beside.values())) == ("c\n", ["b\n"])


def index(**pointers: dict[str, Any] | int) -> str:
    plain = json.loads(INDEX)
    plain["artifacts"] = {artifact_id.replace("_", "."): pointer for artifact_id, pointer in pointers.items()}
    return json.dumps(plain)


def pointer(artifact_id: str, content: str, file: str, second: int = 0) -> dict[str, Any]:
    plain: dict[str, Any] = dict(json.loads(INDEX)["artifacts"]["conf"])
    return plain | {
        "artifact_id": artifact_id,
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
        "uri": f"{FOLDER}/{file}",
        "created_ts": f"2026-11-30T12:00:{second:02}.000000Z",
    }


def test_one_content_that_both_registered_is_one_artifact_with_one_file() -> None:
    files, tree = merge(
        {INDEX_FILE: index()},
        {INDEX_FILE: index(a=pointer("a", "x", "a.txt", 1)), f"{FOLDER}/a.txt": "x"},
        {INDEX_FILE: index(a=pointer("a", "x", "a.md", 2)), f"{FOLDER}/a.md": "x"},
    )
    assert files.keys() == {INDEX_FILE, f"{FOLDER}/a.txt"}
    assert decode_index(files[INDEX_FILE].encode()).artifacts["a"].created_ts == "2026-11-30T12:00:01.000000Z"
    assert [note.kind for note in tree.notes] == ["moved"]


def test_two_artifacts_that_a_disk_could_take_for_one_get_two_files() -> None:
    files, _ = merge(
        {INDEX_FILE: index()},
        {INDEX_FILE: index(a=pointer("a", "x", "a.txt", 1)), f"{FOLDER}/a.txt": "x"},
        {INDEX_FILE: index(A=pointer("A", "y", "A.txt", 2)), f"{FOLDER}/A.txt": "y"},
    )
    artifacts = decode_index(files[INDEX_FILE].encode()).artifacts
    assert artifacts["a"].path == f"{FOLDER}/a.txt"
    assert artifacts["A"].path is not None
    assert artifacts["A"].path.startswith(f"{FOLDER}/A.conflict-node-b-")
    assert {files[artifact.uri] for artifact in artifacts.values()} == {"x", "y"}
    assert f"{FOLDER}/A.txt" not in files


def test_two_artifacts_elsewhere_of_one_id_need_no_file() -> None:
    away = {"backend": "rsync", "uri": "rsync://o/" + "0" * 64}
    files, _ = merge(
        {INDEX_FILE: index()},
        {INDEX_FILE: index(a=pointer("a", "x", "", 1) | away)},
        {INDEX_FILE: index(a=pointer("a", "y", "", 2) | away)},
    )
    assert len(decode_index(files[INDEX_FILE].encode()).artifacts) == 2
    assert files.keys() == {INDEX_FILE}


def test_a_pointer_that_cannot_be_read_keeps_its_id_and_the_other_gets_another() -> None:
    files, _ = merge(
        {INDEX_FILE: index()},
        {INDEX_FILE: index(a=pointer("a", "x", "a.txt")), f"{FOLDER}/a.txt": "x"},
        {INDEX_FILE: index(a={"schema_version": 9})},
    )
    both = decode_index(files[INDEX_FILE].encode())
    assert both.unread == {"a": {"schema_version": 9}}
    (artifact,) = both.artifacts.values()
    assert files[artifact.uri] == "x"


def test_of_two_pointers_that_cannot_be_read_the_later_stands_and_the_other_file_is_kept() -> None:
    value, beside, tree = merge_one(INDEX_FILE, index(), index(a=1), index(a=2))
    assert decode_index(value.encode()).unread == {"a": 2}
    assert [decode_index(text.encode()).unread for text in beside.values()] == [{"a": 1}]
    assert tree.notes[0].clashes == ("artifacts.a",)


def test_bytes_of_an_artifact_that_no_pointer_explains_are_kept_twice() -> None:
    value, beside, _ = merge_one(f"{FOLDER}/a.txt", "0", "x", "y")
    assert (value, list(beside.values())) == ("y", ["x"])


def test_a_pointer_that_one_side_changed_stands() -> None:
    for local, remote in (("x", "z"), ("z", "x")):
        base = index(a=pointer("a", "x", "a.txt"))
        sides = [
            index(a=pointer("a", "x", "a.txt") | {"kind": kind}, **{kind: pointer(kind, kind, kind)})
            for kind in (local, remote)
        ]
        base = base.replace('"kind": "config"', '"kind": "x"')
        value, beside, _ = merge_one(INDEX_FILE, base, *sides)
        assert decode_index(value.encode()).artifacts["a"].kind == "z"
        assert beside == {}


def test_a_node_that_left_twice_left_when_it_did_so_last() -> None:
    times = [RUN.replace("left: null", f"left: '2026-11-30T2{hour}:00:00Z'") for hour in (1, 2)]
    for local, remote in (times, times[::-1]):
        value, beside, _ = merge_one(RUN_FILE, RUN, local, remote)
        assert decode_run(value.encode()).nodes[0].left == "2026-11-30T22:00:00Z"
        assert beside == {}


def test_a_node_that_joined_twice_at_one_time_is_there_twice() -> None:
    stint = RUN[RUN.index("- node_id") : RUN.index("created_ts")]
    twice = RUN.replace(stint, stint + stint.replace("host: vm", "host: other"))
    value, _, _ = merge_one(RUN_FILE, RUN, twice, RUN.replace("active", "done"))
    assert [stint.host for stint in decode_run(value.encode()).nodes] == ["vm", "other"]


def test_every_path_of_a_merged_tree_is_named() -> None:
    files, tree = merge({"memory/n/k": "1"}, {"memory/n/k": "2"}, {"memory/n/k": "3"})
    assert tree.paths == files.keys()


def test_an_artifact_that_was_renamed_in_a_line_that_is_gone_keeps_its_bytes_when_it_comes_once_more() -> (
    None
):
    """A push by force took back the merge that renamed it; its own node still has it under the first id."""
    ours, theirs = pointer("plot", "late", "plot.txt", 9), pointer("plot", "early", "plot.txt", 1)
    local = {INDEX_FILE: index(plot=ours), f"{FOLDER}/plot.txt": "late"}
    remote = {INDEX_FILE: index(plot=theirs), f"{FOLDER}/plot.txt": "early"}
    once, _ = merge({INDEX_FILE: index()}, local, remote)
    assert merge({INDEX_FILE: index()}, local, once)[0] == once
