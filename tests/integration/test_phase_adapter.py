"""`raddle.PhaseAdapter` on a real store: what it writes, when, and what is left of a phase however it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import raddle
from raddle.actions.memory.entries import EntryFiles
from raddle.actions.memory.handoffs import show_handoff
from raddle.actions.memory.runs import list_runs, read_run
from raddle.actions.memory.summaries import get_summary
from raddle.actions.phases.metrics import MetricBuffer
from raddle.apps.library.phase_log import PhaseLog
from raddle.model.errors import ConflictError, StorageError
from raddle.model.memory.entry import ContextEntry
from tests.builders_recording import running
from tests.memory_clones import Clone

PATIENCE_SECONDS = 30.0


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """A store of the phases build, test and present, which RADDLE_STORE names."""
    clone = Clone(tmp_path / "store", None)
    clone.begin("build", "test", "present")
    monkeypatch.setenv("RADDLE_STORE", str(clone.root))
    return clone


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The handlers as they were."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    assert {number: signal.getsignal(number) for number in numbers} == before


def entries(store: Clone, kind: str = "") -> list[ContextEntry]:
    (run,) = list_runs(store.files).runs
    found = EntryFiles(store.files).entries(run.run_id).entries
    return [entry for entry in found if not kind or entry.type == kind]


def samples(store: Clone, name: str = "n") -> list[Any]:
    """The values told under a name, in the order of the entries."""
    return [sample[name] for entry in entries(store, "metric") for sample in entry.payload["samples"]]


def status(store: Clone, phase: str = "build") -> str:
    (run,) = list_runs(store.files).runs
    return run.phases[phase]


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def test_a_phase_is_active_inside_the_block_and_done_after_it(store: Clone) -> None:
    with raddle.PhaseAdapter("build", agent="codex") as phase:
        assert status(store) == "active"
        assert phase.decision("keep the parser in C", why="speed")
        phase.note("a note")
        phase.milestone("half way")
        phase.summary("rolling")
        phase.error("went wrong, and on")
    assert status(store) == "done"
    assert [entry.type for entry in entries(store)] == ["decision", "note", "milestone", "error"]
    assert entries(store)[0].payload == {"text": "keep the parser in C", "why": "speed"}
    assert entries(store)[0].provenance.agent == "codex"
    assert get_summary(store.files, phase.run_id, "build") == "rolling\n"


def test_metrics_come_together_in_one_entry(store: Clone) -> None:
    with raddle.PhaseAdapter("build", batch=4) as phase:
        for number in range(10):
            phase.metric(n=number)
        assert [len(entry.payload["samples"]) for entry in entries(store, "metric")] == [4, 4]
    assert [len(entry.payload["samples"]) for entry in entries(store, "metric")] == [4, 4, 2]
    assert samples(store) == list(range(10))


def test_a_metric_waits_no_longer_than_it_may(store: Clone) -> None:
    with raddle.PhaseAdapter("build", seconds=0.05) as phase:
        phase.metric(n=1)
        until(lambda: samples(store) == [1])
        phase.metric({"n": 2})
        until(lambda: samples(store) == [1, 2])
    assert samples(store) == [1, 2]


def test_many_threads_and_the_timer_lose_nothing_and_double_nothing(store: Clone) -> None:
    with raddle.PhaseAdapter("build", batch=7, seconds=0.002) as phase:

        def work(first: int) -> None:
            for number in range(first, first + 100):
                phase.metric(n=number)
                if number % 40 == 0:
                    phase.note("in between")

        threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 600, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    told = samples(store)
    assert sorted(told) == list(range(600))
    for first in range(0, 600, 100):
        own = [number for number in told if first <= number < first + 100]
        assert own == sorted(own)


def test_what_is_told_after_metrics_stands_after_them(store: Clone) -> None:
    with raddle.PhaseAdapter("build") as phase:
        phase.metric(n=1)
        phase.note("then")
        assert [entry.type for entry in entries(store)] == ["metric", "note"]


def test_an_artifact_is_kept_and_a_later_phase_reads_what_was_handed_on(store: Clone, tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    file.write_text("all is well")
    with raddle.PhaseAdapter("build") as phase:
        run_id = phase.run_id
        assert phase.artifact(file, kind="report") == "report"
        assert phase.artifact(b"\x89PNG", artifact_id="plot", kind="figure") == "plot"
        phase.metric(n=1)
        phase.publish_handoff("Built", results={"files": 2}, best_artifacts=["report"], figures=["plot"])
        assert samples(store) == [1], "the metrics are written before the handoff"
        with pytest.raises(ConflictError):
            phase.artifact(b"other bytes", artifact_id="report")
    with raddle.PhaseAdapter("test", run=run_id[:20].lower()) as phase:
        handoff = phase.upstream("build")
        assert (handoff.headline, handoff.key_results) == ("Built", {"files": 2})
        assert phase.artifact_bytes(handoff.best_artifacts[0]) == b"all is well"
        assert phase.fetch_artifact("plot", tmp_path / "plot.png").read_bytes() == b"\x89PNG"
        with pytest.raises(raddle.InvalidInput, match="does not come before"):
            phase.upstream("present")
        with pytest.raises(raddle.InvalidInput, match="does not come before"):
            phase.upstream("test")
    assert show_handoff(store.files, run_id, "build").published_ts


def test_a_run_that_is_active_is_gone_on_with_and_else_one_begins(store: Clone) -> None:
    with raddle.PhaseAdapter("build") as phase:
        first = phase.run_id
    with raddle.PhaseAdapter("test") as phase:
        assert phase.run_id == first
    from raddle.actions.memory.runs import finish_run

    finish_run(store.files, store.writer, first)
    with raddle.PhaseAdapter("build") as phase:
        assert phase.run_id != first


@pytest.mark.parametrize("error", [ValueError("bad\nvalue"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_is_told_the_phase_has_failed_and_it_goes_on(store: Clone, error: BaseException) -> None:
    phase = raddle.PhaseAdapter("build")
    with pytest.raises(type(error)) as raised, phase:
        phase.metric(n=1)
        raise error
    assert raised.value is error
    assert status(store) == "failed"
    assert [entry.type for entry in entries(store)] == ["metric", "error"]
    assert entries(store)[-1].payload["error"] == type(error).__name__
    assert "\n" not in entries(store)[-1].payload["text"]


def test_a_phase_that_failed_is_run_again(store: Clone) -> None:
    with pytest.raises(ValueError, match="once"), raddle.PhaseAdapter("build") as phase:
        raise ValueError("once")
    with raddle.PhaseAdapter("build") as phase:
        assert status(store) == "active"
        phase.metric(n=2)
    assert (status(store), samples(store)) == ("done", [2])


def test_an_exit_with_code_zero_is_an_end(store: Clone) -> None:
    with pytest.raises(SystemExit), raddle.PhaseAdapter("build"):
        raise SystemExit(0)
    assert status(store) == "done"


def test_an_error_whose_words_fail_is_told_by_its_kind(store: Clone) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    with pytest.raises(Mute), raddle.PhaseAdapter("build"):
        raise Mute
    assert entries(store)[-1].payload == {"text": "Mute", "error": "Mute"}


def test_it_works_in_async_code(store: Clone) -> None:
    async def work() -> None:
        async with raddle.PhaseAdapter("build") as phase:
            phase.metric(n=1)

    asyncio.run(work())
    assert (status(store), samples(store)) == ("done", [1])


@pytest.mark.parametrize(
    ("phase", "arguments"),
    [("nope", {}), ("../x", {}), ("build", {"run": "01M8PZKM3KMAB0SYRHJ485PAMY"}), ("build", {"run": "u"})],
)
def test_a_phase_or_a_run_that_is_not_there_begins_nothing(
    store: Clone, phase: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(raddle.UserError), raddle.PhaseAdapter(phase, **arguments):
        raise AssertionError("it began")
    assert list_runs(store.files).runs == []


@pytest.mark.parametrize(
    "arguments",
    [{"batch": 0}, {"batch": "5"}, {"seconds": 0}, {"seconds": "5"}, {"seconds": float("nan")}, {"run": 3}],
)
def test_arguments_that_do_not_fit_are_refused_at_once(arguments: dict[str, Any]) -> None:
    with pytest.raises(raddle.InvalidInput):
        raddle.PhaseAdapter("build", **arguments)


def test_outside_its_block_it_takes_nothing(store: Clone) -> None:
    phase = raddle.PhaseAdapter("build")
    with pytest.raises(raddle.UserError, match="not begun"):
        phase.metric(n=1)
    with phase:
        run_id = phase.run_id
    assert phase.run_id == run_id
    with pytest.raises(raddle.UserError, match="is over"):
        phase.metric(n=1)
    with pytest.raises(raddle.UserError, match="begun before"), phase:
        pass


def test_lists_that_are_one_text_and_bytes_without_a_name_are_slips(store: Clone) -> None:
    with raddle.PhaseAdapter("build") as phase:
        with pytest.raises(raddle.InvalidInput, match="no list"):
            phase.publish_handoff("x", decisions="keep it")
        with pytest.raises(raddle.InvalidInput, match="no name"):
            phase.artifact(b"x")


def test_a_secret_is_warned_of(store: Clone, caplog: pytest.LogCaptureFixture) -> None:
    with raddle.PhaseAdapter("build") as phase:
        phase.note("password=" + "hunter22x")
    assert "a password" in caplog.text
    assert "hunter22x" not in caplog.text


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_owns_nothing_of_the_phase(store: Clone) -> None:
    with raddle.PhaseAdapter("build") as phase:
        phase.metric(n=1)
        child = os.fork()
        if not child:  # pragma: no cover  the child
            with contextlib.suppress(BaseException):
                phase.metric(n=2)
                os._exit(1)
            phase.__exit__(None, None, None)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert status(store) == "active"
    assert samples(store) == [1]


class Refusing:
    """The files of a store whose disk is full for a while."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self.is_full = False
        self.tries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def add(self, files: Any) -> None:
        self.tries += 1
        if self.is_full:
            raise StorageError("the disk is full")
        self._files.add(files)


def test_what_the_disk_refuses_is_kept_and_written_once_it_takes_it(store: Clone) -> None:
    with raddle.PhaseAdapter("build") as phase:
        run_id = phase.run_id
    files, clock = Refusing(store.files), [0.0]
    log = PhaseLog(
        files,
        store.writer,
        run_id,
        "build",
        buffer=MetricBuffer(most=2, seconds=50.0),
        clock=lambda: clock[0],
    )
    files.is_full = True
    for number in range(5):
        log.measure({"n": number})
    assert files.tries == 1, "a full disk is not asked with every metric"
    with pytest.raises(StorageError):
        log.flush()
    files.is_full = False
    log.measure({"n": 5})
    log.finish()
    assert samples(store) == [0, 1, 2, 3, 4, 5]


KILLED = """
with raddle.PhaseAdapter("build", batch=10, seconds=3600) as phase:
    for number in range(25):
        phase.metric(n=number)
    reached(); wait()
"""


def test_a_kill_costs_the_metrics_that_waited_and_the_phase_is_taken_up_again(store: Clone) -> None:
    with running(KILLED) as program:
        assert program.hear() == "here"
        assert program.send(signal.SIGKILL) == -signal.SIGKILL
    assert samples(store) == list(range(20))
    assert status(store) == "active"
    with raddle.PhaseAdapter("build") as phase:
        phase.metric(n=20)
    assert (samples(store), status(store)) == ([*range(20), 20], "done")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_program_as_it_would_have_and_the_phase_says_so(store: Clone, number: int) -> None:
    with running(KILLED) as program:
        assert program.hear() == "here"
        assert program.send(number) == -number
    assert samples(store) == list(range(25))
    assert status(store) == "failed"
    name = "KeyboardInterrupt" if number == signal.SIGINT else signal.Signals(number).name
    assert entries(store)[-1].payload["error"] == name


def test_the_run_stays_whole_for_others(store: Clone) -> None:
    with raddle.PhaseAdapter("build") as phase:
        phase.metric(n=1)
    run = read_run(store.files, phase.run_id)
    assert (run.status, list(run.phases)) == ("active", ["build", "test", "present"])
    assert len(run.nodes) == 1
    json.dumps([entry.payload for entry in entries(store)])


def test_results_may_hold_what_a_metric_may(store: Clone) -> None:
    with raddle.PhaseAdapter("build") as phase:
        phase.publish_handoff("It swings", results={"loss": float("nan"), "best": [float("inf"), 1.5]})
        run = phase.run_id
    results = show_handoff(store.files, run, "build").key_results
    assert [str(value).lower() for value in (results["loss"], *results["best"])] == ["nan", "infinity", "1.5"]
