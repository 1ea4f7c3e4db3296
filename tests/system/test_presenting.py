"""From two pipelines to what people look at: the examples run, `raddle present` shows what they handed on."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pptx import Presentation

from raddle.actions.memory.runs import read_run
from raddle.examples import app_build, app_test, ml_eval, ml_train
from raddle.model.memory.repo_layout import handoff_file
from raddle.wiring.presenting import FOLDER, FORMATS
from tests.builders_presenting import png
from tests.command_line import done, raddle
from tests.memory_clones import Clone


def a_store(folder: Path, monkeypatch: pytest.MonkeyPatch, *phases: str) -> Clone:
    """A store of these phases, which RADDLE_STORE names; the current folder is beside it."""
    clone = Clone(folder / "store", None)
    clone.begin(*phases)
    monkeypatch.setenv("RADDLE_STORE", str(clone.root))
    monkeypatch.chdir(folder)
    return clone


@pytest.fixture
def ml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    return a_store(tmp_path, monkeypatch, "train", "eval", "present")


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    return a_store(tmp_path, monkeypatch, "build", "test", "present")


def titles(deck: Path) -> list[str]:
    return [
        slide.shapes.title.text for slide in Presentation(str(deck)).slides if slide.shapes.title is not None
    ]


def test_a_model_is_trained_evaluated_and_presented(ml: Clone, tmp_path: Path) -> None:
    run_id = ml_train.train()
    assert ml_eval.evaluate() == run_id
    assert list(read_run(ml.files, run_id).phases.values()) == ["done", "done", "pending"]
    entries = done("entry", "list", "--type", "metric", "--json").json
    assert [len(entry["payload"]["samples"]) for entry in entries] == [20, 20, 20, 20]
    answer = done("present")
    assert answer.lines == [
        str(tmp_path / "presentation" / one) for one in ("report.md", "deck.pptx", "site/mkdocs.yml")
    ]
    report = (tmp_path / "presentation/report.md").read_text()
    assert "The loss fell from" in report
    assert "| accuracy | 1 |" in report
    assert "![loss-curve](figures/01-loss-curve.png)" in report
    assert (tmp_path / "presentation/figures/01-loss-curve.png").read_bytes().startswith(b"\x89PNG")
    assert titles(tmp_path / "presentation/deck.pptx") == [
        "loom",
        "The loss fell from 18.54 to 0.0196",
        "100% of the points it had not seen are within 0.5",
        "Results",
        "weights",
        "loss-curve",
        "Decisions",
        "Open questions",
    ]


def test_a_program_is_built_tested_and_presented(app: Clone, tmp_path: Path) -> None:
    run_id = app_build.build()
    assert app_test.run_tests() == run_id
    done("present", "--out", "talk", "--format", "site", "--format", "report")
    assert not (tmp_path / "talk/deck.pptx").exists()
    assert "3 of 3 tests pass" in (tmp_path / "talk/site/docs/02-test.md").read_text()
    assert "[build](01-build.md)" in (tmp_path / "talk/site/docs/index.md").read_text()
    assert "coverage\\_pct" not in (report := (tmp_path / "talk/report.md").read_text())
    assert "coverage_pct" in report


def test_an_example_that_fails_says_so_and_is_run_again(app: Clone) -> None:
    with pytest.raises(SyntaxError):
        app_build.build({"broken.py": "def"})
    assert done("run", "list", "--json").json[0]["phases"]["build"] == "failed"
    (error,) = done("entry", "list", "--type", "error", "--json").json
    assert error["payload"]["error"] == "SyntaxError"
    run_id = app_build.build()
    assert [run["run_id"] for run in done("run", "list", "--json").json] == [run_id]


def test_what_was_measured_before_it_failed_stays(ml: Clone) -> None:
    with pytest.raises(RuntimeError, match="epoch 30"):
        ml_train.train(fails_at=30)
    samples = [
        s for e in done("entry", "list", "--type", "metric", "--json").json for s in e["payload"]["samples"]
    ]
    assert [sample["epoch"] for sample in samples] == list(range(30))


@pytest.fixture
def handed_on(app: Clone) -> Clone:
    """A run whose phase build has handed something on."""
    done("run", "start")
    done("handoff", "publish", "--phase", "build", "--headline", "Built", "--result", "files=2")
    return app


def test_the_second_time_replaces_the_first(handed_on: Clone, tmp_path: Path) -> None:
    done("present", "--out", "talk")
    first = (tmp_path / "talk/deck.pptx").read_bytes()
    done("present", "--out", "talk")
    assert (tmp_path / "talk/deck.pptx").read_bytes() == first
    (tmp_path / "talk/own.txt").write_text("mine")
    done("handoff", "publish", "--phase", "test", "--headline", "Tested", "--question", "On ARM?")
    told = done("present", "--out", "talk", "--json").json
    assert told["folder"] == str(tmp_path / "talk")
    assert "site/docs/open-questions.md" in told["files"]
    assert (tmp_path / "talk/deck.pptx").read_bytes() != first
    done("handoff", "publish", "--phase", "test", "--headline", "Tested")
    assert done("present", "--out", "talk", "--json").json["removed"] == ["site/docs/open-questions.md"]
    assert (tmp_path / "talk/own.txt").read_text() == "mine"


def test_a_file_of_somebody_elses_is_written_over_only_by_force(handed_on: Clone, tmp_path: Path) -> None:
    (tmp_path / "talk").mkdir()
    (tmp_path / "talk/report.md").write_text("mine")
    answer = raddle("present", "--out", "talk")
    assert answer.code == 4
    assert "--force" in answer.err
    assert [path.name for path in (tmp_path / "talk").iterdir()] == ["report.md"]
    done("present", "--out", "talk", "--force")
    assert "Built" in (tmp_path / "talk/report.md").read_text()


def test_only_handoffs_before_the_presenting_phase_are_read(handed_on: Clone, tmp_path: Path) -> None:
    done("entry", "add", "note", "an entry that nobody published", "--phase", "build")
    done("summary", "set", "a summary that nobody published", "--phase", "build")
    done("handoff", "publish", "--phase", "test", "--headline", "Tested")
    done("handoff", "publish", "--phase", "present", "--headline", "Presented")
    done("present", "--format", "report")
    report = (tmp_path / "presentation/report.md").read_text()
    assert "Tested" in report
    assert "nobody published" not in report
    assert "Presented" not in report
    done("present", "--format", "report", "--phase", "test")
    report = (tmp_path / "presentation/report.md").read_text()
    assert "Built" in report
    assert "Tested" not in report


def test_a_project_without_such_a_phase_shows_what_all_have_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_store(tmp_path, monkeypatch, "one", "two")
    done("run", "start")
    done("handoff", "publish", "--phase", "two", "--headline", "Second")
    told = done("present", "--format", "report", "--json").json
    assert told["phase"] is None
    report = (tmp_path / "presentation/report.md").read_text()
    assert "Second" in report
    assert "| one | nothing handed on yet |" in report


def test_figures_that_cannot_be_shown_are_named(handed_on: Clone, tmp_path: Path) -> None:
    for name, data in (
        ("good", png()),
        ("cut", png()[:-30]),
        ("drawing", b"<svg xmlns='x'/>"),
        ("gone", png(9, 9)),
    ):
        done("artifact", "add", "-", "--id", name, "--kind", "figure", "--phase", "build", stdin=data)
    for blob in tmp_path.parent.rglob("*"):
        if blob.is_file() and blob.read_bytes() == png(9, 9):
            blob.chmod(0o600)
            blob.unlink()
    names = ("good", "cut", "drawing", "gone")
    figures = [word for name in names for word in ("--figure", name)]
    done("handoff", "publish", "--phase", "build", "--headline", "Built", *figures)
    answer = done("present", "--json")
    why = {one["artifact_id"]: one["why"] for one in answer.json["figures_not_shown"]}
    assert why.keys() <= {"cut", "drawing", "gone"}
    assert "damaged" in why["cut"]
    assert "SVG" in why["drawing"]
    report = (tmp_path / "presentation/report.md").read_text()
    assert "![good](figures/01-good.png)" in report
    assert "*drawing* is not shown here" in report
    assert "Figures that are not shown" in titles(tmp_path / "presentation/deck.pptx")


def test_a_picture_among_the_best_artifacts_is_shown_too(handed_on: Clone, tmp_path: Path) -> None:
    done("artifact", "add", "-", "--id", "plot", "--kind", "image", "--phase", "build", stdin=png())
    done("artifact", "add", "-", "--id", "wheel", "--kind", "file", "--phase", "build", stdin=png(3, 3))
    done("handoff", "publish", "--phase", "build", "--headline", "Built", "--best", "plot", "--best", "wheel")
    done("present", "--format", "report")
    report = (tmp_path / "presentation/report.md").read_text()
    assert "![plot]" in report
    assert "![wheel]" not in report


def test_with_nothing_handed_on_that_is_said(app: Clone) -> None:
    done("run", "start")
    answer = raddle("present", "--json")
    assert (answer.code, answer.error["code"]) == (3, "not_found")
    assert "raddle handoff publish" in answer.error["hint"]
    assert not Path("presentation").exists()


def test_a_handoff_that_cannot_be_read_is_told_beside_the_others(handed_on: Clone) -> None:
    run_id = done("run", "list", "--json").json[0]["run_id"]
    path = handoff_file(run_id, "test")
    handed_on.write(path, "{")
    answer = done("present", "--format", "report")
    assert path in answer.err
    assert "| test | nothing handed on yet |" in Path("presentation/report.md").read_text()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--out", "store/talk"), 2),
        (("--out", "file"), 2),
        (("--out", "x" * 300), 2),
        (("--phase", "nope"), 2),
        (("--run", "01M8PZKM3KMAB0SYRHJ485PAMY"), 3),
        (("--format", "pdf"), 2),
    ],
)
def test_what_does_not_fit_is_refused_in_two_lines(
    handed_on: Clone, words: tuple[str, ...], code: int
) -> None:
    Path("file").write_text("x")
    answer = raddle("present", *words)
    assert (answer.code, answer.out) == (code, "")
    assert len(answer.err.splitlines()) == 2


def test_without_the_extra_the_rest_is_made_and_slides_are_asked_for(
    handed_on: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pptx", None)
    answer = done("present", "--json")
    assert answer.json["formats"] == ["report", "site"]
    assert "pip install 'raddle[present]'" in answer.err
    refused = raddle("present", "--format", "deck", "--json")
    assert (refused.code, refused.error["hint"]) == (2, "install it: pip install 'raddle[present]'")


def test_names_and_defaults_are_said_once() -> None:
    from raddle.apps.cli.commands.presenting import present

    options: dict[str, Any] = {one.name or "": one for one in present.params}
    assert tuple(options["formats"].type.choices) == FORMATS
    assert str(options["folder"].default) == FOLDER


def test_a_deck_holds_no_time_of_its_making(handed_on: Clone) -> None:
    done("present", "--format", "deck")
    package = zipfile.ZipFile(io.BytesIO(Path("presentation/deck.pptx").read_bytes()))
    assert {entry.date_time for entry in package.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert package.testzip() is None
