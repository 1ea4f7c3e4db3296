"""`raddle import --watch`: what an agent writes is there a moment later, whatever happens on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from raddle.actions.importing.run import ImportReport
from raddle.adapters.folder_watch import NoFileEvents
from raddle.config import load_config
from raddle.wiring import standing as standing_module
from raddle.wiring import watching as watching_module
from raddle.wiring.import_lock import import_lock
from raddle.wiring.watching import follow_sessions, watch_sessions
from tests.builders_claude_code import OTHER_SESSION, ClaudeSession, a_short_session
from tests.builders_import import Machine, add, write

PATIENCE_SECONDS = 20.0


class Watcher:
    """A watcher at work in a thread of its own; `reports` and `notes` as they come."""

    def __init__(self, machine: Machine, *what: str, polls: bool, everything_seconds: float) -> None:
        self.reports: list[ImportReport] = []
        self.notes: list[str] = []
        self.stop = threading.Event()
        self._came = threading.Condition()
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(machine, what, polls, everything_seconds), daemon=True
        )
        self._thread.start()

    def _run(self, machine: Machine, what: tuple[str, ...], polls: bool, seconds: float) -> None:
        try:
            for report in self._sessions(machine, what, polls, seconds):
                with self._came:
                    self.reports.append(report)
                    self._came.notify_all()
        except BaseException as error:  # noqa: BLE001
            with self._came:
                self._error = error
                self._came.notify_all()

    def _sessions(
        self, machine: Machine, what: tuple[str, ...], polls: bool, seconds: float
    ) -> Iterator[ImportReport]:
        with machine.stores() as stores:
            yield from watch_sessions(
                stores, what, stop=self.stop, note=self._note, polls=polls, everything_seconds=seconds
            )

    def _note(self, note: str) -> None:
        with self._came:
            self.notes.append(note)
            self._came.notify_all()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait, from report to report, until that holds."""
        with self._came:
            came = self._came.wait_for(lambda: self._error is not None or holds(), PATIENCE_SECONDS)
        if self._error is not None:
            raise self._error
        assert came, f"it did not come to that: {self.reports}"

    def end(self) -> None:
        self.stop.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()


class Follower(Watcher):
    """The same as a command that stays does it: with the settings as they are at any time."""

    def _sessions(
        self, machine: Machine, what: tuple[str, ...], polls: bool, seconds: float
    ) -> Iterator[ImportReport]:
        return follow_sessions(
            what,
            stop=self.stop,
            note=self._note,
            report=lambda _: None,
            load=lambda: load_config(machine.environment),
        )


@contextmanager
def watching(
    machine: Machine,
    *what: str,
    polls: bool = False,
    everything_seconds: float = 3600.0,
    kind: type[Watcher] = Watcher,
) -> Iterator[Watcher]:
    watcher = kind(machine, *what, polls=polls, everything_seconds=everything_seconds)
    try:
        watcher.until(lambda: bool(watcher.reports))
        yield watcher
    finally:
        watcher.end()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.claude.mkdir(parents=True)
    return made


@pytest.mark.parametrize("polls", [False, True])
def test_a_turn_that_is_written_while_it_watches_is_found(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, *, polls: bool
) -> None:
    monkeypatch.setattr(watching_module, "POLL_SECONDS", 0.2)
    talk = ClaudeSession(OTHER_SESSION)
    talk.user("how hot is the kiln?")
    path = machine.keep(talk)
    with watching(machine, polls=polls) as watcher:
        before = len(talk.data)
        talk.says("cone six, says the pyrometer")
        add(path, talk.data[before:])
        watcher.until(lambda: bool(machine.finds("pyrometer")))
    assert machine.texts() == ["how hot is the kiln?", "cone six, says the pyrometer"]


def test_a_session_that_begins_while_it_watches_is_found_in_a_folder_that_was_not_there(
    machine: Machine,
) -> None:
    with watching(machine) as watcher:
        machine.keep(a_short_session(), "-home-dev-src-quite-new")
        watcher.until(lambda: any(report.threads for report in watcher.reports))
    assert len(machine.threads()) == 1


def test_a_message_that_was_half_written_is_whole_once_it_is(machine: Machine) -> None:
    talk = ClaudeSession(OTHER_SESSION)
    talk.user("fire it")
    talk.says("the first half", message="msg_1")
    path = machine.keep(talk)
    with watching(machine) as watcher:
        before = len(talk.data)
        talk.says("and the second", message="msg_1")
        more = talk.data[before:]
        add(path, more[: len(more) // 2])  # the line itself comes in two goes
        add(path, more[len(more) // 2 :])
        watcher.until(lambda: bool(machine.finds('"the second"')))
    assert [message.role for message in machine.thread().messages] == ["user", "assistant"]


def test_a_session_that_is_compacted_in_place_loses_nothing(machine: Machine) -> None:
    talk = ClaudeSession(OTHER_SESSION)
    talk.user("the long story of the glaze")
    talk.says("told at length")
    path = machine.keep(talk)
    with watching(machine) as watcher:
        short = ClaudeSession(OTHER_SESSION, start=1_800_000_000_000_000)
        short.user("what is left of it", uuid="0b0b0b0b-0000-4000-8000-000000000000")
        write(path, short.data)
        watcher.until(lambda: any(report.messages == 1 for report in watcher.reports[1:]))
    assert set(machine.texts()) == {"the long story of the glaze", "told at length", "what is left of it"}


def test_while_another_import_is_running_it_waits_and_forgets_nothing(machine: Machine) -> None:
    path = machine.keep(a_short_session())
    with watching(machine) as watcher:
        more = ClaudeSession(path.stem, start=1_800_000_000_000_000)
        more.user("meanwhile")
        with machine.stores() as other, import_lock(other):
            add(path, more.data)
        watcher.until(lambda: bool(machine.finds("meanwhile")))


def test_what_no_event_told_of_is_found_when_everything_is_looked_at(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deaf(folders: object, stop: threading.Event, *, wait_ms: int) -> Iterator[set[str]]:
        while not stop.wait(0.05):
            yield set()

    monkeypatch.setattr(watching_module, "changes_below", deaf)
    with watching(machine, everything_seconds=0.2) as watcher:
        machine.keep(a_short_session())
        watcher.until(lambda: any(report.threads for report in watcher.reports))


def test_where_the_system_has_no_events_to_give_it_looks_and_says_so(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> Iterator[set[str]]:
        raise NoFileEvents("the system gives no file events: limit reached", "")

    monkeypatch.setattr(watching_module, "changes_below", refused)
    monkeypatch.setattr(watching_module, "POLL_SECONDS", 0.2)
    with watching(machine) as watcher:
        machine.keep(a_short_session())
        watcher.until(lambda: any(report.threads for report in watcher.reports))
    assert [note for note in watcher.notes if "limit reached" in note]


def test_an_agent_that_is_installed_while_it_watches_is_followed_too(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    with watching(machine, everything_seconds=0.2) as watcher:
        path = machine.keep(a_short_session())
        watcher.until(lambda: any(report.threads for report in watcher.reports))
        more = ClaudeSession(path.stem, start=1_800_000_000_000_000)
        more.user("and on")
        add(path, more.data)
        watcher.until(lambda: bool(machine.finds('"and on"')))


def test_a_folder_that_is_made_anew_is_followed_again_at_once(machine: Machine) -> None:
    path = machine.keep(a_short_session())
    with watching(machine) as watcher:
        machine.claude.rename(machine.claude.with_name("moved away"))
        machine.keep(a_short_session())
        for word in ("first", "second"):
            more = ClaudeSession(path.stem, start=1_800_000_000_000_000)
            more.user(word, uuid=f"{len(word):08d}-0000-4000-8000-000000000000")
            add(path, more.data)
            watcher.until(lambda word=word: bool(machine.finds(f'"{word}"')))  # type: ignore[misc]


def test_only_what_was_asked_for_is_followed(machine: Machine, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with watching(machine, str(elsewhere)) as watcher:
        machine.keep(a_short_session())
        talk = ClaudeSession(OTHER_SESSION)
        talk.user("asked for")
        write(elsewhere / f"{OTHER_SESSION}.jsonl", talk.data)
        watcher.until(lambda: any(report.threads for report in watcher.reports))
    assert machine.texts() == ["asked for"]


def test_a_bad_line_is_told_once_however_often_the_file_is_read(machine: Machine) -> None:
    talk = ClaudeSession(OTHER_SESSION)
    talk.user("one")
    path = machine.keep(talk)
    add(path, b"no record at all\n")
    with watching(machine) as watcher:
        assert len(watcher.reports[0].problems) == 1
        more = ClaudeSession(OTHER_SESSION, start=1_800_000_000_000_000)
        more.user("two")
        add(path, more.data)
        watcher.until(lambda: any(report.messages for report in watcher.reports[1:]))
    assert sum(len(report.problems) for report in watcher.reports) == 1


def test_its_own_folders_wake_nobody(machine: Machine) -> None:
    machine.keep(a_short_session())
    with watching(machine) as watcher, machine.stores() as stores:
        stores.paths.data_dir.joinpath("noise").write_text("x")
        more = ClaudeSession(OTHER_SESSION)
        more.user("heard")
        machine.keep(more)
        watcher.until(lambda: bool(machine.finds("heard")))
    assert len(watcher.reports) == 2


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_module, "LOOK_SECONDS", 0.0)


@pytest.mark.usefixtures("eager")
def test_a_rule_that_is_made_while_it_follows_keeps_a_session_out(machine: Machine) -> None:
    with watching(machine, kind=Follower) as watcher:
        machine.configure(f'[import]\nexclude = ["{machine.claude}/-home-dev-clients/**"]\n')
        secret = ClaudeSession(OTHER_SESSION)
        secret.user("the client's secret")
        machine.keep(secret, "-home-dev-clients")
        machine.keep(a_short_session())
        watcher.until(lambda: any(report.threads for report in watcher.reports))
    assert len(machine.threads()) == 1
    assert b"the client's secret" not in machine.everything_stored()


@pytest.mark.usefixtures("eager")
def test_a_rule_that_is_made_while_it_follows_makes_a_session_private_from_its_start(
    machine: Machine,
) -> None:
    with watching(machine, kind=Follower) as watcher:
        machine.configure('[private]\nworkspaces = ["/home/dev/src/**"]\n')
        machine.keep(a_short_session())
        watcher.until(lambda: any(report.threads for report in watcher.reports))
    assert machine.thread().is_private


@pytest.mark.usefixtures("eager")
def test_while_the_settings_cannot_be_read_nothing_is_brought_in_and_then_all_of_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watching(machine, kind=Follower) as watcher:
        machine.configure("[private\n")
        machine.keep(a_short_session())
        watcher.until(lambda: bool(watcher.notes))
        assert "nothing is brought in until it is mended" in watcher.notes[-1]
        assert not list((machine.folder / "data" / "threads").glob("*.json"))
        machine.configure("")
        watcher.until(lambda: any(report.threads for report in watcher.reports))
    assert len(machine.threads()) == 1


@pytest.mark.usefixtures("eager")
def test_a_rule_that_is_misspelt_while_it_follows_is_told(machine: Machine) -> None:
    with watching(machine, kind=Follower) as watcher:
        machine.configure('[import]\nexcludes = ["/x"]\n')
        watcher.until(lambda: any("excludes" in note for note in watcher.notes))
