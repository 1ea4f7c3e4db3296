"""An import that stays: follows the agents' folders and brings in each turn as it is written.

File events say where to look; from time to time everything is looked at all the same, for an event may be lost and
an agent's first session makes a folder that nobody watched yet. Each round is an ordinary import of what changed,
so a watcher that is killed leaves what a killed import leaves.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from raddle.actions.importing.run import ImportReport
from raddle.actions.ports import Finding
from raddle.adapters.folder_watch import NoFileEvents, Stop, changes_below
from raddle.config import Config, load_config
from raddle.model.errors import RaddleError, StorageError
from raddle.wiring import Stores
from raddle.wiring.import_lock import ImportIsRunning
from raddle.wiring.importing import Finder, import_sessions
from raddle.wiring.standing import Standing, rules_of

TICK_MS = 250
"""Between two looks at the clock; the first import waits as long."""
EVERYTHING_SECONDS = 60.0
"""So often everything is looked at, whatever the events said."""
POLL_SECONDS = 2.0
"""The same where there are no events."""
PATIENCE_SECONDS = 5.0
"""Until the next round after one that could not store anything: a disk that is full may be emptied."""


def watch_sessions(
    stores: Stores,
    what: Sequence[str],
    *,
    stop: Stop,
    note: Callable[[str], None],
    polls: bool = False,
    everything_seconds: float = EVERYTHING_SECONDS,
) -> Iterator[ImportReport]:
    """Import what is new of `what`, then again whenever something changes, until `stop` is set.

    Gives a report after each round in which something came or could not be read; the first one always. `note` is
    told what a person should know about how the folders are watched. `polls`: look at every file instead of waiting
    for events, as it does where there are none.
    """
    watch = _Watch(what, note=note, polls=polls, everything_seconds=everything_seconds)
    yield from watch.under(stores, stop)


def follow_sessions(
    what: Sequence[str],
    *,
    stop: threading.Event,
    note: Callable[[str], None],
    report: Callable[[Finding], None],
    load: Callable[[], Config] = load_config,
) -> Iterator[ImportReport]:
    """The same under the settings as they are at any time: a rule that is made meanwhile holds a second later.

    While they cannot be read nothing is done, which `note` is told, as it is of what in changed ones says nothing.
    `report`: as in `Stores`; `load`: gives the settings, RaddleError where they cannot be read, at the start too.
    """

    def unreadable(error: RaddleError) -> None:
        note(f"{error.message}: nothing is brought in until it is mended")

    first = load()
    watch, told = _Watch(what, note=note), set(first.warnings)
    while not stop.is_set():
        standing = Standing(functools.partial(rules_of, first.paths), stop, time.monotonic)
        config = standing.settings(unreadable, load)
        if config is not None:
            for warning in dict.fromkeys(config.warnings):
                if warning not in told:
                    told.add(warning)
                    note(warning)
            with Stores(config, report=report) as stores:
                yield from watch.under(stores, standing)


class _Watch:
    """What a watcher remembers: paths that changed and are not read yet, and when it last looked at everything."""

    _stores: Stores
    _stop: Stop

    def __init__(
        self,
        what: Sequence[str],
        *,
        note: Callable[[str], None],
        polls: bool = False,
        everything_seconds: float = EVERYTHING_SECONDS,
    ) -> None:
        self._what = what
        self._note = note
        self._polls = polls
        self._everything_seconds = everything_seconds
        self._waiting: set[str] = set()
        self._looked: float | None = None
        self._is_owed = False
        """Is a look at everything due that could not be had?"""
        self._not_before = 0.0
        self._noted: set[str] = set()
        self._told: set[tuple[str, int | None, str]] = set()

    def under(self, stores: Stores, stop: Stop) -> Iterator[ImportReport]:
        """Reports, until `stop` is set; with the settings of `stores`, under which everything is looked at anew."""
        self._stores, self._stop = stores, stop
        while not stop.is_set():
            yield from self._rounds()

    def _rounds(self) -> Iterator[ImportReport]:
        """Reports, until it is stopped or there are other folders to watch."""
        folders = self._folders()
        watched = _identities(folders)
        # Everything is looked at once the folders are watched: what is written in between is not missed.
        is_due = True
        for paths in self._changes(folders):
            self._waiting |= paths
            report = self._round(is_due=is_due)
            if report is not None:
                yield report
            if self._folders() != folders or _identities(folders) != watched:
                return  # one came, went or was made anew: of that no event tells
            is_due = self._is_time_for_everything()

    def _changes(self, folders: Sequence[Path]) -> Iterator[set[str]]:
        """Paths as they change; empty sets where there are no events, or nothing to watch yet."""
        if not folders:
            self._say("there is no folder of an agent here yet: it is waited for")
        elif not self._polls:
            try:
                yield from changes_below(folders, self._stop, wait_ms=TICK_MS)
            except NoFileEvents as error:
                self._polls = True
                self._say(f"{error.message}: every file is looked at every {POLL_SECONDS:.0f} seconds")
        while not self._stop.is_set():
            yield set()
            time.sleep(TICK_MS / 1000)

    def _is_time_for_everything(self) -> bool:
        seconds = POLL_SECONDS if self._polls else self._everything_seconds
        return self._is_owed or self._looked is None or time.monotonic() - self._looked >= seconds

    def _folders(self) -> list[Path]:
        return Finder(self._stores, self._what, {}).folders()

    def _round(self, *, is_due: bool) -> ImportReport | None:
        """Read what waits, or everything; None where nothing came of it."""
        if not self._waiting and not is_due:
            return None
        if time.monotonic() < self._not_before or self._stop.is_set():
            return None
        changed, self._waiting = self._waiting, set()
        try:
            report = import_sessions(self._stores, self._what, changed=None if is_due else changed)
        except StorageError as error:
            self._waiting |= changed  # another import may have looked at them before they changed
            self._is_owed = self._is_owed or is_due
            if not isinstance(error, ImportIsRunning):
                self._say(f"{error.message}: {error.hint}")
                self._not_before = time.monotonic() + PATIENCE_SECONDS
            return None
        is_first = self._looked is None
        if is_due:
            self._looked, self._is_owed = time.monotonic(), False
        return report if self._is_news(report) or is_first else None

    def _is_news(self, report: ImportReport) -> bool:
        """Did something come, or go wrong that was not told before?"""
        problems = {(problem.path, problem.line, problem.reason) for problem in report.problems}
        report.problems = [
            problem
            for problem in report.problems
            if (problem.path, problem.line, problem.reason) not in self._told
        ]
        self._told |= problems
        came = any(counts.new or counts.grown for counts in report.agents.values())
        return came or bool(report.problems)

    def _say(self, note: str) -> None:
        if note not in self._noted:
            self._noted.add(note)
            self._note(note)


def _identities(folders: Sequence[Path]) -> list[tuple[int, int] | None]:
    """Which folders these are, whatever their names; None for one that is not there."""
    found: list[tuple[int, int] | None] = []
    for folder in folders:
        try:
            status = folder.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino))
    return found
