"""Handoffs and summaries of phases: references lead somewhere, publishing again replaces, damage costs itself only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raddle.actions.memory.handoffs import (
    handoff_secrets,
    list_handoffs,
    publish_handoff,
    show_handoff,
    upstream,
)
from raddle.actions.memory.payloads import LARGEST
from raddle.actions.memory.runs import set_phase
from raddle.actions.memory.summaries import get_summary, set_summary
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.model.errors import BrokenFormat, InvalidInput, NewerFormat, NotFound, TooLarge
from raddle.model.memory.handoff import Evidence, Handoff, decode_handoff
from raddle.model.memory.repo_layout import handoff_file, index_file, run_file, summary_file
from tests.builders import THREAD_ID, WoundClock
from tests.builders_runs import a_run, a_store, a_writer
from tests.unit.memory_files import HANDOFF, INDEX, PROJECT, RUN

PEERS_RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"


@pytest.fixture
def files(tmp_path: Path) -> StoreFolder:
    return a_store(tmp_path)


@pytest.fixture
def run_id(files: StoreFolder) -> str:
    return a_run(files).run_id


def write(files: StoreFolder, path: str, text: str) -> None:
    files.change(path, lambda _: text.encode())


def publish(files: StoreFolder, run_id: str, phase: str = "build", **fields: Any) -> Handoff:
    draft = Handoff(run_id=run_id, from_phase=phase, headline=fields.pop("headline", "It works"), **fields)
    return publish_handoff(files, a_writer(), draft)


class TestPublishing:
    def test_what_is_published_says_when_and_by_whom(self, files: StoreFolder, run_id: str) -> None:
        draft = Handoff(
            run_id=run_id.lower(),
            from_phase="build",
            headline="  Parser\ntwice as fast ",
            key_results={"files per second": 2100, "by": {"file": [1, None]}},
            decisions=("keep the parser in C", " "),
            evidence=(Evidence(thread_id=THREAD_ID.upper(), message_id="m1"), Evidence(thread_id=THREAD_ID)),
        )
        done = publish_handoff(files, a_writer(author="ada"), draft)
        assert done == show_handoff(files, run_id, "build")
        assert (done.run_id, done.headline) == (run_id, "Parser twice as fast")
        assert (done.published_ts, done.author) == ("2026-11-30T12:00:00.000000Z", "ada")
        assert done.decisions == ("keep the parser in C",)
        assert [piece.thread_id for piece in done.evidence] == [THREAD_ID, THREAD_ID]

    def test_publishing_again_replaces_it(self, files: StoreFolder, run_id: str) -> None:
        clock = WoundClock()
        publish(files, run_id, decisions=("one",))
        clock.wind()
        again = publish_handoff(
            files, a_writer(clock=clock), Handoff(run_id=run_id, from_phase="build", headline="Better")
        )
        assert show_handoff(files, run_id, "build") == again
        assert (again.decisions, again.published_ts) == ((), "2026-11-30T12:00:01.000000Z")

    def test_artifacts_that_it_names_have_to_be_there(self, files: StoreFolder) -> None:
        write(files, run_file(PEERS_RUN), RUN)
        with pytest.raises(NotFound, match="conf"):
            publish(files, PEERS_RUN, best_artifacts=("conf",))
        write(files, index_file(PEERS_RUN), INDEX)
        assert publish(files, PEERS_RUN, best_artifacts=("conf",), figures=("conf",)).figures == ("conf",)
        with pytest.raises(NotFound, match="plot") as error:
            publish(files, PEERS_RUN, best_artifacts=("conf",), figures=("plot",))
        assert "'conf'" in error.value.hint

    @pytest.mark.parametrize(
        "fields",
        [
            {"headline": " \n"},
            {"headline": "\ud800"},
            {"phase": "nope"},
            {"phase": ".."},
            {"key_results": {"x": float("nan")}},
            {"key_results": {"x": "\ud800"}},
            {"decisions": ("\udfff",)},
            {"evidence": (Evidence(thread_id="../x"),)},
            {"evidence": (Evidence(thread_id=THREAD_ID, message_id="a b"),)},
            {"unknown": {"key_results": [1]}},
        ],
        ids=ascii,
    )
    def test_what_leads_nowhere_or_cannot_be_written_is_refused(
        self, files: StoreFolder, run_id: str, fields: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidInput):
            publish(files, run_id, **fields)
        assert list_handoffs(files, run_id).handoffs == []

    def test_one_that_is_too_large_is_refused(self, files: StoreFolder, run_id: str) -> None:
        with pytest.raises(TooLarge, match="handoff"):
            publish(files, run_id, key_results={"log": "x" * LARGEST})

    def test_a_field_of_the_future_survives(self, files: StoreFolder, run_id: str) -> None:
        publish(files, run_id, unknown={"colour": "blue"})
        assert show_handoff(files, run_id, "build").unknown == {"colour": "blue"}

    def test_a_secret_in_it_is_seen(self, files: StoreFolder, run_id: str) -> None:
        assert handoff_secrets(publish(files, run_id, decisions=("password=" + "hunter22",))) == [
            "a password"
        ]


class TestReading:
    def test_without_one_that_is_said(self, files: StoreFolder, run_id: str) -> None:
        with pytest.raises(NotFound, match="build"):
            show_handoff(files, run_id, "build")

    def test_what_the_peer_published_is_read(self, files: StoreFolder) -> None:
        write(files, run_file(PEERS_RUN), RUN)
        write(files, handoff_file(PEERS_RUN, "build"), HANDOFF)
        found = show_handoff(files, PEERS_RUN, "build")
        assert (found.headline, found.published_ts, found.evidence) == ("head", "", ())
        scalar = HANDOFF.replace('"decisions": [\n    "d"\n  ]', '"decisions": "keep it"')
        write(files, handoff_file(PEERS_RUN, "build"), scalar)
        assert show_handoff(files, PEERS_RUN, "build").decisions == ("keep it",)

    def test_upstream_is_all_before_a_phase_in_the_projects_order(
        self, files: StoreFolder, run_id: str
    ) -> None:
        for phase in ("test", "build", "present"):
            publish(files, run_id, phase, headline=phase)
        assert [one.headline for one in upstream(files, run_id, "present").handoffs] == ["build", "test"]
        assert upstream(files, run_id, "build").handoffs == []
        write(files, "project.yaml", PROJECT.replace("- build\n- test\n", "- test\n- build\n"))
        assert [one.headline for one in upstream(files, run_id, "present").handoffs] == ["test", "build"]
        with pytest.raises(InvalidInput):
            upstream(files, run_id, "nope")

    @pytest.mark.parametrize("damage", ["", "{", '{"schema_version": 2}', "[]"])
    def test_a_damaged_one_costs_itself_only(self, files: StoreFolder, run_id: str, damage: str) -> None:
        publish(files, run_id, "test", headline="fine")
        write(files, handoff_file(run_id, "build"), damage)
        found = upstream(files, run_id, "present")
        assert [one.headline for one in found.handoffs] == ["fine"]
        assert [one.path for one in found.findings] == [handoff_file(run_id, "build")]
        with pytest.raises((BrokenFormat, NewerFormat)):
            show_handoff(files, run_id, "build")

    def test_a_phase_of_a_name_that_cannot_be_written_is_told(self, files: StoreFolder, run_id: str) -> None:
        write(files, "project.yaml", "project_id: loom\nphases: [aux, build, test]\n")
        publish(files, run_id, "build")
        found = upstream(files, run_id, "test")
        assert len(found.handoffs) == len(found.findings) == 1

    def test_where_it_stands_says_whose_it_is(self, files: StoreFolder, run_id: str) -> None:
        write(files, handoff_file(run_id, "test"), HANDOFF)
        found = show_handoff(files, run_id, "test")
        assert (found.run_id, found.from_phase) == (run_id, "test")
        assert decode_handoff(HANDOFF.encode()).from_phase == "build"


class TestSummaries:
    @pytest.mark.parametrize("text", ["# Digest\n", "no newline", "a\r\nb", "東京湾\0\x1b", "x" * 100_000])
    def test_what_is_set_comes_back_just_so(self, files: StoreFolder, run_id: str, text: str) -> None:
        assert get_summary(files, run_id, "build") is None
        set_summary(files, run_id, "build", "before")
        set_summary(files, run_id, "build", text)
        assert get_summary(files, run_id.lower(), "build") == text
        assert get_summary(files, run_id, "test") is None

    def test_an_empty_text_takes_it_away(self, files: StoreFolder, run_id: str) -> None:
        set_summary(files, run_id, "build", "x")
        set_summary(files, run_id, "build", "")
        assert get_summary(files, run_id, "build") is None
        assert files.read(summary_file(run_id, "build")) is None

    def test_what_cannot_be_written_is_refused(self, files: StoreFolder, run_id: str) -> None:
        for phase, text, error in (
            ("build", "\ud800", InvalidInput),
            ("build", "x" * 10_000_000, TooLarge),
            ("nope", "x", InvalidInput),
            ("../x", "x", InvalidInput),
        ):
            with pytest.raises(error):
                set_summary(files, run_id, phase, text)
        with pytest.raises(NotFound):
            set_summary(files, PEERS_RUN, "build", "x")

    def test_one_that_is_no_text_is_told(self, files: StoreFolder, run_id: str) -> None:
        files.change(summary_file(run_id, "build"), lambda _: b"\xff\xfe")
        with pytest.raises(BrokenFormat, match="build"):
            get_summary(files, run_id, "build")

    def test_a_new_phase_of_the_run_has_one_too(self, files: StoreFolder, run_id: str) -> None:
        write(files, "project.yaml", "project_id: loom\nphases: [build, deploy]\n")
        set_phase(files, a_writer(), run_id, "deploy", "active")
        set_summary(files, run_id, "deploy", "x")
        assert get_summary(files, run_id, "deploy") == "x"
