"""What somebody is told who takes up a run."""

from __future__ import annotations

from pathlib import Path

from raddle.actions.memory.entries import EntryFiles, NewEntry, add_entries
from raddle.actions.memory.handoffs import publish_handoff
from raddle.actions.memory.run_overview import NEWEST, RunOverview, overview
from raddle.actions.memory.summaries import set_summary
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.model.memory.handoff import Handoff
from raddle.model.memory.repo_layout import handoff_file, summary_file
from tests.builders_runs import a_run, a_store, a_writer


def told(files: StoreFolder, run_id: str) -> RunOverview:
    return overview(files, EntryFiles(files), run_id)


def test_a_run_that_has_just_begun_has_nothing_to_tell(tmp_path: Path) -> None:
    files = a_store(tmp_path)
    run = a_run(files)
    assert told(files, run.run_id) == RunOverview(run=run)


def test_handoffs_the_last_digest_and_the_newest_entries_are_told(tmp_path: Path) -> None:
    files, writer = a_store(tmp_path), a_writer()
    run = a_run(files, writer)
    set_summary(files, run.run_id, "build", "early\n")
    set_summary(files, run.run_id, "test", "late\n")
    for phase in ("test", "build"):
        publish_handoff(
            files, writer, Handoff(from_phase=phase, run_id=run.run_id, headline=f"{phase} is done")
        )
    notes = [NewEntry(type="note", payload={"text": str(number)}) for number in range(NEWEST + 3)]
    add_entries(files, writer, run.run_id, "build", notes)
    found = told(files, run.run_id)
    assert [handoff.headline for handoff in found.handoffs] == ["build is done", "test is done"]
    assert (found.summary_phase, found.summary) == ("test", "late\n")
    assert [entry.payload["text"] for entry in found.entries] == [
        str(number) for number in range(3, NEWEST + 3)
    ]
    assert found.findings == ()


def test_what_cannot_be_read_costs_itself_only(tmp_path: Path) -> None:
    files = a_store(tmp_path)
    run = a_run(files)
    set_summary(files, run.run_id, "build", "there\n")
    files.add(
        {
            summary_file(run.run_id, "test"): b"\xff\xfe",
            handoff_file(run.run_id, "build"): b"{",
            f"runs/{run.run_id}/phases/build/entries/0001-{run.run_id}.json": b"",
        }
    )
    found = told(files, run.run_id)
    assert found.summary == "there\n"
    assert len(found.findings) == 3
