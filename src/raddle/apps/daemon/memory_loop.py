"""The memories of this machine kept in step: committed and pushed soon after a write, pulled every minute.

Each memory has its own agenda and its own back-off: one whose remote is away for days holds no other up.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path

from raddle.actions.memory.syncing import SyncReport
from raddle.apps.daemon.board import Board
from raddle.apps.daemon.memory_agenda import MemoryAgenda
from raddle.config import Config
from raddle.model.clock import Clock
from raddle.model.errors import NetworkError
from raddle.wiring import Stores
from raddle.wiring.memory import ProjectMemory
from raddle.wiring.memory_places import known_stores
from raddle.wiring.memory_syncing import sync_and_keep
from raddle.wiring.memory_watching import watch_memories

_LOOK_SECONDS = 1.0


def start_beside(work: Callable[[], None]) -> None:
    """In a thread of its own: a remote that takes a connection and says nothing holds no other memory up."""
    threading.Thread(target=work, name="memory-sync", daemon=True).start()


class MemoryLoop:
    """Syncs every memory that this machine knows, until `is_over`; then what was written last once more."""

    def __init__(
        self,
        config: Config,
        board: Board,
        *,
        is_over: Callable[[], bool],
        stop: threading.Event,
        seconds: Callable[[], float],
        clock: Clock,
        draw: Callable[[], float],
        beside: Callable[[Callable[[], None]], None] = start_beside,
    ) -> None:
        self._beside = beside
        self._busy: set[Path] = set()
        self._config = config
        self._board = board
        self._is_over = is_over
        self._stop = stop
        self._seconds = seconds
        self._clock = clock
        self._draw = draw
        self._agendas: dict[Path, MemoryAgenda] = {}
        self._told: dict[Path, str] = {}
        self._failing: set[Path] = set()

    def run(self) -> None:
        """Look again and again; what goes wrong with one is told, and tried again."""
        watch = functools.partial(
            watch_memories, self._config.paths, self.changed, is_over=self._is_over, stop=self._stop
        )
        threading.Thread(target=watch, name="memories", daemon=True).start()
        while not self._is_over():
            self.look()
            self._stop.wait(_LOOK_SECONDS)
        for root, agenda in list(self._agendas.items()):
            if agenda.is_written_to:
                self._sync(root, agenda)

    def look(self) -> None:
        """Once: sync what is due."""
        now = self._seconds()
        try:
            roots = known_stores(self._config.paths)
        except Exception as error:  # noqa: BLE001  imports and syncs of threads go on
            self._board.failed("memory", error)
            return
        for root in roots:
            agenda = self._agendas.setdefault(root, MemoryAgenda(now, self._draw))
            if agenda.due_at <= now and root not in self._busy and not self._is_over():
                self._busy.add(root)
                self._beside(functools.partial(self._sync_alone, root, agenda))
        self._agendas = {root: agenda for root, agenda in self._agendas.items() if root in roots}
        self._failing &= set(roots)

    def changed(self, root: Path) -> None:
        """A file of that memory may have been written."""
        agenda = self._agendas.get(root)
        if agenda is not None:
            agenda.changed(self._seconds())

    def _sync_alone(self, root: Path, agenda: MemoryAgenda) -> None:
        try:
            self._sync(root, agenda)
        finally:
            self._busy.discard(root)

    def _sync(self, root: Path, agenda: MemoryAgenda) -> None:
        agenda.began()
        try:
            report = self._synced(root)
        except Exception as error:  # noqa: BLE001  whatever it is, the others go on
            self._failing.add(root)
            self._board.failed("memory", error, again_in=agenda.failed(self._seconds()))
            return
        self._failing.discard(root)
        agenda.succeeded(self._seconds())
        if not self._failing:
            self._board.works("memory")
        self._board.change(last_memory_sync=self._clock())
        self._tell(root, report)

    def _synced(self, root: Path) -> SyncReport:
        """What the sync came to; NetworkError where it did not come to the remote."""
        with Stores(self._config) as stores:
            report = sync_and_keep(ProjectMemory(stores, root))
        if report.state in ("offline", "pending") and not self._config.is_offline:
            raise NetworkError(report.why, "it is tried again")
        return report

    def _tell(self, root: Path, report: SyncReport) -> None:
        """A line of the log where something happened, or where it ended in another way than last time."""
        happened = bool(report.committed or report.pulled or report.is_pushed)
        if happened or self._told.get(root) != report.state:
            self._told[root] = report.state
            self._board.note(
                "memory",
                state=report.state,
                committed=len(report.committed),
                pulled=len(report.pulled),
                conflicts=sum(note.kind == "conflict" for note in report.notes),
            )
