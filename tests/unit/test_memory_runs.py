"""Runs: begun, found, joined and left, taken through phases, ended; what others wrote into the file stays."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from raddle.actions.memory.runs import (
    Runs,
    contents_of,
    current_phase,
    fail_run,
    finish_run,
    join_run,
    known_phase,
    leave_run,
    list_runs,
    phases_in_order,
    read_run,
    resolve_run,
    set_phase,
    start_run,
)
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.model.errors import Ambiguous, BrokenFormat, InvalidInput, NewerFormat, NotFound
from raddle.model.memory.repo_layout import run_file, run_folder
from raddle.model.memory.run import decode_run
from tests.builders import NOON, SECOND, WoundClock
from tests.builders_runs import a_run, a_store, a_writer
from tests.unit.memory_files import RUN

PEERS_RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"
BAD_IDS = [
    "..",
    "../..",
    "u",
    "I" * 26,
    "01M8PZKM3KMAB0SYRHJ485PAM/",
    "01\0",
    "\ud800",
    "é",
    "1" * 400,
    "0 1",
]


@pytest.fixture
def files(tmp_path: Path) -> StoreFolder:
    return a_store(tmp_path)


def text_of(files: StoreFolder, run_id: str) -> str:
    return (files.read(run_file(run_id)) or b"").decode()


def write(files: StoreFolder, path: str, text: str) -> None:
    files.change(path, lambda _: text.encode())


class TestStarting:
    def test_a_run_has_the_phases_of_the_project_and_this_node_on_it(self, files: StoreFolder) -> None:
        run = start_run(files, a_writer("node-1"))
        assert run.status == "active"
        assert run.phases == {"build": "pending", "test": "pending", "present": "pending"}
        assert [(stint.node_id, stint.host, stint.left) for stint in run.nodes] == [("node-1", "desk", None)]
        assert read_run(files, run.run_id) == run

    def test_it_can_have_phases_of_its_own_and_a_parent(self, files: StoreFolder) -> None:
        parent = a_run(files)
        run = start_run(files, a_writer(), phases=["train", "eval"], parent=parent.run_id.lower())
        assert list(run.phases) == ["train", "eval"]
        assert run.parent_run_id == parent.run_id

    @pytest.mark.parametrize("phase", ["", "..", ".git", "a/b", "con", "a\0b", "\ud800", "x" * 65, "Build"])
    def test_a_phase_that_no_system_can_hold_is_refused(self, files: StoreFolder, phase: str) -> None:
        with pytest.raises(InvalidInput):
            start_run(files, a_writer(), phases=["build", phase])
        assert list_runs(files) == Runs([], [])

    def test_a_parent_that_is_not_there_is_refused(self, files: StoreFolder) -> None:
        with pytest.raises(NotFound):
            start_run(files, a_writer(), parent=PEERS_RUN)

    def test_without_a_project_the_folder_is_no_store(self, files: StoreFolder) -> None:
        files.change("project.yaml", lambda _: None)
        with pytest.raises(NotFound, match=r"project\.yaml"):
            start_run(files, a_writer())


class TestFinding:
    def test_runs_are_listed_the_newest_first(self, files: StoreFolder) -> None:
        clock = WoundClock()
        made = []
        for _ in range(3):
            made.append(a_run(files, a_writer(clock=clock)).run_id)
            clock.wind()
        assert [run.run_id for run in list_runs(files).runs] == made[::-1]

    @pytest.mark.parametrize(
        "damage", ["", "run_id: [", "- a list", "schema_version: 2\n", f"run_id: {'0' * 26}\n", "\x00"]
    )
    def test_a_damaged_run_costs_itself_only(self, files: StoreFolder, damage: str) -> None:
        good = a_run(files)
        write(files, run_file(PEERS_RUN), damage)
        found = list_runs(files)
        assert [run.run_id for run in found.runs] == [good.run_id]
        assert [finding.path for finding in found.findings] == [run_file(PEERS_RUN)]
        assert resolve_run(files) == good

    def test_a_folder_of_entries_without_its_run_is_told(self, files: StoreFolder) -> None:
        write(files, f"{run_folder(PEERS_RUN)}/phases/build/summary.md", "x")
        (finding,) = list_runs(files).findings
        assert finding.path == run_file(PEERS_RUN)

    def test_the_start_of_an_id_is_enough_in_any_case(self, files: StoreFolder) -> None:
        write(files, run_file(PEERS_RUN), RUN)
        assert resolve_run(files, "01m8pz").run_id == PEERS_RUN
        assert resolve_run(files, f" {PEERS_RUN.lower()} ").run_id == PEERS_RUN

    def test_one_that_names_several_or_none_is_refused(self, files: StoreFolder) -> None:
        writer = a_writer()
        run = a_run(files, writer)
        a_run(files, writer)
        with pytest.raises(Ambiguous) as error:
            resolve_run(files, run.run_id[:6])
        assert run.run_id in error.value.candidates
        with pytest.raises(NotFound):
            resolve_run(files, "7ZZZ")
        with pytest.raises(NotFound):
            resolve_run(files, PEERS_RUN)

    @pytest.mark.parametrize("text", BAD_IDS)
    def test_what_begins_no_id_is_refused(self, files: StoreFolder, text: str) -> None:
        with pytest.raises(InvalidInput):
            resolve_run(files, text)
        with pytest.raises(InvalidInput):
            read_run(files, text)
        with pytest.raises(InvalidInput):
            finish_run(files, a_writer(), text)

    def test_nothing_typed_means_the_newest_active_run_else_the_newest(self, files: StoreFolder) -> None:
        with pytest.raises(NotFound, match="loom"):
            resolve_run(files)
        writer = a_writer()
        first, second = a_run(files, writer), a_run(files, writer)
        assert resolve_run(files).run_id == second.run_id
        finish_run(files, writer, second.run_id)
        assert resolve_run(files).run_id == first.run_id
        fail_run(files, writer, first.run_id)
        assert resolve_run(files).run_id == second.run_id

    def test_where_only_damaged_runs_are_that_is_said(self, files: StoreFolder) -> None:
        write(files, run_file(PEERS_RUN), "schema_version: 9")
        with pytest.raises(NewerFormat):
            resolve_run(files)


class TestNodes:
    def test_a_node_that_joins_closes_nobody_elses_stint(self, files: StoreFolder) -> None:
        run = a_run(files, a_writer("one"))
        joined = join_run(files, a_writer("two"), run.run_id)
        assert [(stint.node_id, stint.left) for stint in joined.nodes] == [("one", None), ("two", None)]

    def test_joining_again_is_nothing_new(self, files: StoreFolder) -> None:
        writer = a_writer("one")
        run = a_run(files, writer)
        before = text_of(files, run.run_id)
        assert join_run(files, writer, run.run_id) == run
        assert text_of(files, run.run_id) == before

    def test_who_left_and_joins_again_has_two_stints(self, files: StoreFolder) -> None:
        clock = WoundClock()
        writer = a_writer("one", clock)
        run = a_run(files, writer)
        join_run(files, a_writer("two", clock), run.run_id)
        clock.wind()
        left = leave_run(files, writer, run.run_id)
        assert [stint.left is None for stint in left.nodes] == [False, True]
        assert leave_run(files, writer, run.run_id) == left
        assert [stint.node_id for stint in join_run(files, writer, run.run_id).nodes] == ["one", "two", "one"]

    def test_an_end_is_this_nodes_last_word_and_nobody_elses(self, files: StoreFolder) -> None:
        run = a_run(files, a_writer("one"))
        join_run(files, a_writer("two"), run.run_id)
        ended = finish_run(files, a_writer("one"), run.run_id)
        assert ended.status == "done"
        assert [(stint.node_id, stint.left is None) for stint in ended.nodes] == [
            ("one", False),
            ("two", True),
        ]

    def test_ending_twice_changes_nothing(self, files: StoreFolder) -> None:
        clock = WoundClock()
        writer = a_writer(clock=clock)
        run = a_run(files, writer)
        fail_run(files, writer, run.run_id)
        before = text_of(files, run.run_id)
        clock.wind()
        assert fail_run(files, writer, run.run_id).status == "failed"
        assert text_of(files, run.run_id) == before

    def test_joins_from_many_threads_lose_none(self, files: StoreFolder) -> None:
        run = a_run(files)
        threads = [
            threading.Thread(target=join_run, args=(files, a_writer(f"node-{number}"), run.run_id))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(read_run(files, run.run_id).nodes) == 9


class TestPhases:
    def test_a_phase_is_set_and_the_others_stay(self, files: StoreFolder) -> None:
        run = a_run(files)
        assert set_phase(files, a_writer(), run.run_id, "build", "done").phases == {
            "build": "done",
            "test": "pending",
            "present": "pending",
        }

    def test_a_failed_phase_can_be_run_again(self, files: StoreFolder) -> None:
        run = a_run(files)
        for status in ("active", "failed", "active", "done"):
            assert set_phase(files, a_writer(), run.run_id, "build", status).phases["build"] == status

    def test_who_makes_a_phase_active_works_on_the_run(self, files: StoreFolder) -> None:
        run = a_run(files, a_writer("one"))
        finish_run(files, a_writer("one"), run.run_id)
        again = set_phase(files, a_writer("two"), run.run_id, "test", "active")
        assert again.status == "active"
        assert [(stint.node_id, stint.left is None) for stint in again.nodes] == [
            ("one", False),
            ("two", True),
        ]

    def test_a_phase_that_the_project_got_later_is_the_runs_too(self, files: StoreFolder) -> None:
        run = a_run(files)
        write(files, "project.yaml", "project_id: loom\nphases: [deploy, build, test]\n")
        assert known_phase(files, run, "deploy") == "deploy"
        assert phases_in_order(files, run) == ("deploy", "build", "test", "present")
        assert set_phase(files, a_writer(), run.run_id, "deploy", "active").phases["deploy"] == "active"

    @pytest.mark.parametrize(
        ("phase", "status"),
        [("nope", "done"), ("build", "over"), ("build", ""), ("..", "done"), ("", "done")],
    )
    def test_another_phase_or_status_is_refused(self, files: StoreFolder, phase: str, status: str) -> None:
        run = a_run(files)
        before = text_of(files, run.run_id)
        with pytest.raises(InvalidInput):
            set_phase(files, a_writer(), run.run_id, phase, status)
        assert text_of(files, run.run_id) == before

    def test_the_current_phase_is_the_active_one_else_the_first_not_done(self, files: StoreFolder) -> None:
        run = a_run(files)
        assert current_phase(run) == "build"
        run = set_phase(files, a_writer(), run.run_id, "build", "done")
        assert current_phase(run) == "test"
        run = set_phase(files, a_writer(), run.run_id, "present", "active")
        assert current_phase(run) == "present"
        for phase in run.phases:
            run = set_phase(files, a_writer(), run.run_id, phase, "done")
        with pytest.raises(InvalidInput, match="every phase"):
            current_phase(run)


class TestWhatOthersWrote:
    def test_comments_and_unknown_fields_survive_a_change(self, files: StoreFolder) -> None:
        text = "# ours\n" + RUN + "colour: blue  # a field of the future\n"
        write(files, run_file(PEERS_RUN), text)
        set_phase(files, a_writer(), PEERS_RUN, "test", "done")
        changed = text_of(files, PEERS_RUN)
        assert "# ours" in changed
        assert "colour: blue  # a field of the future" in changed
        assert decode_run(changed.encode()).phases["test"] == "done"

    def test_a_damaged_run_is_not_written_over(self, files: StoreFolder) -> None:
        write(files, run_file(PEERS_RUN), "run_id: [")
        with pytest.raises(BrokenFormat):
            join_run(files, a_writer(), PEERS_RUN)
        assert text_of(files, PEERS_RUN) == "run_id: ["

    def test_a_run_file_that_was_copied_to_another_run_is_told(self, files: StoreFolder) -> None:
        other = "01M8PZKM3KMAB0SYRHJ485PAMZ"
        write(files, run_file(other), RUN)
        with pytest.raises(BrokenFormat, match=PEERS_RUN):
            read_run(files, other)

    def test_what_a_run_holds_is_counted_by_name(self, files: StoreFolder) -> None:
        folder = f"{run_folder(PEERS_RUN)}/phases"
        write(files, run_file(PEERS_RUN), RUN)
        write(files, f"{folder}/build/entries/0001-{PEERS_RUN}.json", "")
        write(files, f"{folder}/build/summary.md", "x")
        write(files, f"{folder}/test/handoff.json", "x")
        held = contents_of(files, PEERS_RUN)
        assert held.entries == {"build": 1}
        assert (sorted(held.summaries), sorted(held.handoffs)) == (["build"], ["test"])


def test_times_are_those_of_the_writers_clock(files: StoreFolder) -> None:
    clock = WoundClock(NOON + 5 * SECOND)
    run = a_run(files, a_writer(clock=clock))
    assert run.created_ts == run.nodes[0].joined == "2026-11-30T12:00:05.000000Z"
