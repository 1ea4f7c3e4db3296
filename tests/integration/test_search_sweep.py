"""The sweep: what other programs do to thread files is seen by the next search and list; our own is not read twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.actions import threads as verbs
from raddle.actions.ports import Finding
from raddle.adapters.local_store.search_sweep import SWEEP_SECONDS, Sweep, is_settled, is_unsure
from raddle.config import load_config
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.care import rebuild_index
from tests.builders import WoundClock
from tests.builders_claude_code import a_short_session
from tests.builders_import import Machine
from tests.builders_store import grow_old
from tests.command_line import PROGRAM

START = 1_796_000_000_000_000
ENOUGH = int(SWEEP_SECONDS * 1_000_000)


class Hand:
    """A clock that somebody winds."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        self.now += 1
        return self.now


class Watched(Stores):
    """Stores that note which threads are loaded for the index, and what is reported."""

    def __init__(self, folder: Path, clock: Hand) -> None:
        self.loaded: list[str] = []
        self.told: list[Finding] = []
        places = {
            f"RADDLE_{name.upper()}_DIR": str(folder / name) for name in ("data", "config", "state", "cache")
        }
        super().__init__(load_config({"HOME": str(folder), **places}), clock=clock, report=self.told.append)
        load = self.threads.load

        def noted(thread_id: str) -> Thread:
            self.loaded.append(thread_id)
            return load(thread_id)

        self.threads.load = noted  # type: ignore[method-assign]

    def found(self, query: str) -> set[str]:
        return {hit.thread.id for hit in self.find(query, limit=100).hits}


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def stores(tmp_path: Path, clock: Hand) -> Iterator[Watched]:
    with Watched(tmp_path / "one", clock) as opened:
        yield opened


@pytest.fixture
def thread(stores: Watched) -> str:
    """A thread of one turn, in the index, its file some time old."""
    thread_id, _ = verbs.start_thread(stores.threads, "the zebra crosses")
    assert stores.found("zebra") == {thread_id}
    stores.loaded.clear()
    return thread_id


def file_of(stores: Stores, thread_id: str) -> Path:
    return Path(stores.paths.thread_file(thread_id))


def edit(file: Path, old: str, new: str) -> None:
    """As an editor that writes in place."""
    data = file.read_bytes().replace(old.encode(), new.encode())
    with file.open("r+b") as opened:
        opened.write(data)
        opened.truncate()


def test_an_edit_by_hand_reaches_search_and_list(stores: Watched, thread: str, clock: Hand) -> None:
    edit(file_of(stores, thread), "the zebra crosses", "the lion sleeps tonight")
    clock.now += ENOUGH
    assert stores.found("lion") == {thread}
    assert stores.found("zebra") == set()


def test_a_list_alone_sees_it_too(stores: Watched, thread: str, clock: Hand) -> None:
    other, _ = verbs.start_thread(stores.threads, "another one", title="by raddle")
    assert [row.title for row in stores.listed(limit=None)] == ["by raddle", ""]
    edit(file_of(stores, other), '"by raddle"', '"by hand"')
    clock.now += ENOUGH
    assert [row.title for row in stores.listed(limit=None)] == ["by hand", ""]


def test_a_thread_that_is_removed_by_rm_leaves_the_index(stores: Watched, thread: str, clock: Hand) -> None:
    for file in file_of(stores, thread).parent.glob(f"{thread}.*"):
        file.unlink()
    clock.now += ENOUGH
    assert stores.found("zebra") == set()
    assert stores.listed(limit=None) == []
    assert stores.told == []
    clock.now += ENOUGH
    stores.loaded.clear()
    assert stores.found("zebra") == set()
    assert stores.loaded == [], "it is gone, and not asked for again"


def test_even_the_whole_folder_may_go(stores: Watched, thread: str, clock: Hand) -> None:
    shutil.rmtree(stores.paths.threads_dir)
    clock.now += ENOUGH
    assert stores.listed(limit=None) == []


def test_a_file_that_is_copied_in_is_found(tmp_path: Path, stores: Watched, thread: str, clock: Hand) -> None:
    with Watched(tmp_path / "other", clock) as other:
        strange, _ = verbs.start_thread(other.threads, "a giraffe from elsewhere")
        shutil.copy2(file_of(other, strange), stores.paths.threads_dir)
    (stores.paths.threads_dir / "notes.json").write_text("{}")
    clock.now += ENOUGH
    assert stores.found("giraffe") == {strange}
    assert set(stores.loaded) == {strange}, "what is no thread's is nobody's business"


def test_it_looks_again_where_the_clock_was_set_back(stores: Watched, thread: str, clock: Hand) -> None:
    clock.now += 3600 * 1_000_000
    assert stores.found("zebra") == {thread}
    clock.now -= 7200 * 1_000_000
    edit(file_of(stores, thread), "the zebra crosses", "the lion sleeps")
    assert stores.found("lion") == {thread}


@pytest.mark.parametrize("how", ["in place", "beside, then renamed"])
def test_an_edit_that_puts_size_and_time_back_is_seen(
    stores: Watched, thread: str, clock: Hand, how: str
) -> None:
    file = file_of(stores, thread)
    before = file.stat()
    if how == "in place":
        edit(file, "zebra", "lions")
    else:
        beside = file.with_name("beside")
        beside.write_bytes(file.read_bytes().replace(b"zebra", b"lions"))
        beside.replace(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    clock.now += ENOUGH
    assert stores.found("lions") == {thread}


def test_it_looks_every_few_seconds_at_most_whoever_looked_last(
    tmp_path: Path, stores: Watched, thread: str, clock: Hand
) -> None:
    with Watched(tmp_path / "one", clock) as other:
        clock.now += ENOUGH
        assert other.found("zebra") == {thread}
        edit(file_of(stores, thread), "the zebra crosses", "the lion sleeps")
        assert stores.found("lion") == set(), "the other process looked just now"
        clock.now += ENOUGH
        assert stores.found("lion") == {thread}


def test_what_raddle_writes_is_not_read_again(stores: Watched, thread: str, clock: Hand) -> None:
    verbs.reply(stores.threads, thread, "an antelope")
    stores.loaded.clear()
    assert stores.found("antelope") == {thread}
    assert stores.loaded == [thread]
    other, _ = verbs.start_thread(stores.threads, "another one")
    with stores.threads.edit(other) as editor:
        editor.delete()
    stores.found("")
    stores.loaded.clear()
    for _ in range(3):
        clock.now += ENOUGH
        stores.found("antelope")
    assert stores.loaded == []


def test_what_an_import_or_a_rebuild_put_in_is_not_read_again(tmp_path: Path, clock: Hand) -> None:
    machine = Machine(tmp_path / "machine")
    machine.keep(a_short_session())
    machine.bring_in()
    with Watched(machine.folder, clock) as stores:
        (row,) = stores.listed(limit=None)
        assert stores.loaded == []
        rebuild_index(stores)
        stores.loaded.clear()
        clock.now += ENOUGH
        assert [one.id for one in stores.listed(limit=None)] == [row.id]
        assert stores.loaded == []


def test_a_damaged_file_is_reported_and_stops_nothing(stores: Watched, thread: str, clock: Hand) -> None:
    other, _ = verbs.start_thread(stores.threads, "the lion sleeps")
    file = file_of(stores, thread)
    file.write_bytes(b"{ half a thread")
    grow_old(file)
    clock.now += ENOUGH
    assert stores.found("lion") == {other}
    assert any(thread in finding.path for finding in stores.told)
    clock.now += ENOUGH
    stores.found("lion")
    stores.loaded.clear()
    stores.told.clear()
    clock.now += ENOUGH
    assert stores.found("lion") == {other}
    assert (stores.loaded, stores.told) == ([], []), "once is enough"


def test_a_file_of_a_newer_raddle_stays_as_it_was_last_read(
    stores: Watched, thread: str, clock: Hand
) -> None:
    file = file_of(stores, thread)
    edit(file, '"format": ', '"format": 9')
    whole = file.read_bytes()
    clock.now += ENOUGH
    assert stores.found("zebra") == {thread}
    assert len(stores.told) == 1
    assert file.read_bytes() == whole
    clock.now += ENOUGH
    stores.found("zebra")
    assert len(stores.told) == 1


def test_a_folder_that_cannot_be_looked_at_is_said_and_stops_nothing(
    stores: Watched, thread: str, clock: Hand
) -> None:
    folder = stores.paths.threads_dir
    folder.rename(folder.with_name("away"))
    folder.write_bytes(b"")
    clock.now += ENOUGH
    answer = stores.find("zebra", limit=5)
    assert answer.total_threads == 1
    assert "what other programs changed may be missing" in " ".join(answer.scope.notes)
    folder.unlink()
    folder.with_name("away").rename(folder)
    clock.now += ENOUGH
    assert stores.find("zebra", limit=5).scope.notes == ()


def test_what_cannot_be_put_in_for_another_writer_waits_and_is_counted(
    tmp_path: Path, stores: Watched, thread: str, clock: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raddle.adapters.local_store.search_upkeep.DRAIN_SECONDS", 0.01)
    edit(file_of(stores, thread), "the zebra crosses", "the lion sleeps")
    clock.now += ENOUGH
    with Watched(tmp_path / "one", clock) as importer, importer.index.bulk():
        assert stores.find("lion", limit=5).scope.pending == 1
        assert stores.find("lion", limit=5).scope.pending == 1, "it does not count as looked at"
    assert stores.found("lion") == {thread}


def test_what_was_written_this_very_moment_is_looked_at_once_more(
    stores: Watched, thread: str, clock: Hand
) -> None:
    """Two writes within one tick of the file system's clock look the same from outside."""
    sweep = stores.index._sweep
    assert sweep is not None
    edit(file_of(stores, thread), "the zebra crosses", "the lion sleeps")
    now = time.time_ns()
    assert not is_settled((("T.json", 1, 20, now, now),))
    whole = now - now % 10**9
    assert not is_settled((("T.json", 1, 20, whole, whole),)), "some count whole seconds"
    long_ago = now - 5 * 10**9
    assert is_settled((("T.json", 1, 20, long_ago, long_ago),))
    sweep.note(thread, sweep.stamp(thread), is_sure=False)
    assert is_unsure(sweep.noted(thread))
    clock.now += ENOUGH
    assert stores.found("lion") == {thread}


def test_both_names_of_a_thread_make_one_stamp(stores: Watched, thread: str) -> None:
    verbs.reply(stores.threads, thread, "an antelope")
    sweep = stores.index._sweep
    assert isinstance(sweep, Sweep)
    stores.found("antelope")
    assert sweep.noted(thread) == sweep.stamp(thread)
    assert [row[0].partition(".")[2] for row in sweep.stamp(thread)] == ["journal", "json"]


def test_two_processes_that_sweep_at_once_end_with_one_true_index(tmp_path: Path) -> None:
    with Stores(load_config()) as stores:
        ids = [verbs.start_thread(stores.threads, f"the zebra {number}")[0] for number in range(60)]
        assert stores.find("zebra", limit=100).total_threads == 60
        for thread_id in ids[:40]:
            edit(file_of(stores, thread_id), "the zebra", "the lions")
        for thread_id in ids[50:]:
            file_of(stores, thread_id).unlink()
        with stores.index._database.writing():
            stores.index._database.set_meta("swept", "0 0 0")
    searches = [
        subprocess.Popen(
            [*PROGRAM, "search", "lions", "--json", "-n", "100"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    for search in searches:
        out, err = search.communicate(timeout=60)
        assert (search.returncode, err) == (0, b"")
        assert b'"total_threads":40' in out
    with Stores(load_config()) as stores:
        assert stores.index.verify() == []
        assert {row.id for row in stores.listed(limit=None)} == set(ids[:50])


def test_a_list_sees_at_once_what_came_or_went_and_the_rest_within_a_minute() -> None:
    clock = WoundClock(START)
    with Stores(load_config(), clock=clock) as stores:
        one = verbs.start_thread(stores.threads, "a story", title="the zebra")[0]
        other = verbs.start_thread(stores.threads, "the lion")[0]
        assert len(stores.listed(limit=None)) == 2
        clock.wind(3_000_000)
        assert len(stores.listed(limit=None)) == 2
        file_of(stores, other).unlink()
        clock.wind(3_000_000)
        assert [row.id for row in stores.listed(limit=None)] == [one]
        clock.wind(3_000_000)
        with file_of(stores, one).open("r+b") as file:  # in place: the folder does not tell
            data = file.read()
            file.seek(0)
            file.write(data.replace(b"the zebra", b"the gecko"))
        assert [row.title for row in stores.listed(limit=None)] == ["the zebra"]
        clock.wind(61_000_000)
        assert [row.title for row in stores.listed(limit=None)] == ["the gecko"]
