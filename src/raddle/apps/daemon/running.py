"""The daemon at work: an import that stays in the main thread, and beside it syncs, an ear and a look at the threads.

Each part survives the others: what goes wrong in one is told in the state and tried again later, for weeks. When the
settings, the sign-in or the data folder change, all of it begins anew with them.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from random import SystemRandom
from typing import Generic, TypeVar

from raddle import __version__
from raddle.actions.importing.run import ImportReport
from raddle.actions.ports import Finding
from raddle.apps.daemon.agenda import Backoff
from raddle.apps.daemon.board import Board
from raddle.apps.daemon.doorkeeper import AgentServer, Doorkeeper
from raddle.apps.daemon.job_loop import JobLoop
from raddle.apps.daemon.listener import Listener
from raddle.apps.daemon.memory_loop import MemoryLoop
from raddle.apps.daemon.stopping import until_told
from raddle.apps.daemon.sync_loop import SyncLoop
from raddle.config import Config
from raddle.model.clock import system_clock
from raddle.model.errors import RaddleError, StorageError
from raddle.wiring import Stores
from raddle.wiring.daemon import start_workers_anew, watch_threads
from raddle.wiring.daemon_state import DaemonLog, DaemonState, only_daemon, save_state
from raddle.wiring.daemon_sync import DaemonSync
from raddle.wiring.mcp_door import open_doorway
from raddle.wiring.remote import server_of
from raddle.wiring.standing import LOOK_SECONDS, Identity, Standing, ground_of
from raddle.wiring.watching import watch_sessions

_JOIN_SECONDS = 0.3
_FLUSH_SECONDS = 1.0
"""So long the end waits for what was written to a memory last; what a network is too slow for is pushed next time."""
_MOST_TOLD = 1000
_draw = SystemRandom().random
_Told = TypeVar("_Told", bound=Hashable)


def run(
    config: Config,
    *,
    say: Callable[[str], None],
    report: Callable[[Finding], None],
    agents: AgentServer | None = None,
) -> None:
    """Be the daemon of `config`'s data folder until a signal ends it. For the main thread of a process of its own.

    `say` is told what a person who looks on should know, `report` what is found damaged. `agents` serves the agents
    that come; without it none are let in. DaemonRuns where there is another daemon; StorageError where the data folder
    cannot be had at the start.
    """
    paths = config.paths
    state = DaemonState(pid=os.getpid(), since=system_clock(), version=__version__)
    board = Board(
        state,
        save=functools.partial(save_state, paths),
        log=DaemonLog(paths, system_clock),
        clock=system_clock,
    )
    with until_told() as stop:
        door = None if agents is None else Doorkeeper(functools.partial(open_doorway, paths), board, agents)
        daemon = _Daemon(config, board, stop, say=_Once(say), report=_Once(report), door=door)
        try:
            while not stop.is_set():
                with only_daemon(paths):
                    daemon.work()
                daemon.wait_for_data_folder()
        finally:
            daemon.end()


class _Once(Generic[_Told]):
    """Tells each thing once, of the last thousand."""

    def __init__(self, tell: Callable[[_Told], None]) -> None:
        self._tell = tell
        self._told: dict[_Told, None] = {}

    def __call__(self, what: _Told) -> None:
        if what not in self._told:
            self._told[what] = None
            if len(self._told) > _MOST_TOLD:
                del self._told[next(iter(self._told))]
            self._tell(what)


class _Daemon:
    """One daemon, from its start to its end."""

    def __init__(
        self,
        config: Config,
        board: Board,
        stop: threading.Event,
        *,
        say: Callable[[str], None],
        report: Callable[[Finding], None],
        door: Doorkeeper | None,
    ) -> None:
        self._paths = config.paths
        self._door = door
        self._board = board
        self._stop = stop
        self._say = say
        self._report = report
        self._has_begun = False
        self._loop: SyncLoop | None = None

    def work(self) -> None:
        """Import and sync, as long as the data folder is this one."""
        if not self._has_begun:
            self._has_begun = True
            _start("state", self._board.keep_saved)
            self._board.note("started", pid=os.getpid(), version=__version__)
        self._board.flush()
        data = self._stand().ground.data
        with self._letting_in():
            self._work_on_ground(data)

    def _work_on_ground(self, data: Identity) -> None:
        backoff = Backoff(_draw)
        while not self._stop.is_set():
            standing = self._stand()
            if standing.ground.data != data:
                return
            try:
                self._work_on(standing)
                backoff.reset()
            except Exception as error:  # noqa: BLE001  whatever it is, a person would only start it again
                wait = backoff.failed()
                self._board.failed("import", error, again_in=wait)
                self._stop.wait(wait)

    def _letting_in(self) -> AbstractContextManager[None]:
        return nullcontext() if self._door is None else self._door.at_the_door()

    def _serving_agents(self, config: Config) -> AbstractContextManager[None]:
        return nullcontext() if self._door is None else self._door.serving(config)

    def _stand(self) -> Standing:
        return Standing(functools.partial(ground_of, self._paths), self._stop, time.monotonic)

    def _work_on(self, standing: Standing) -> None:
        config = standing.settings(self._without_settings)
        if config is None:
            return
        self._board.works("settings")
        for warning in config.warnings:
            self._say(warning)
        with Stores(config, report=self._report) as stores:
            start_workers_anew()
            with self._syncing(config, standing):
                jobs = JobLoop(
                    config, self._board, is_over=standing.is_set, stop=self._stop, landed=self._changed_here
                )
                _start("jobs", jobs.run)
                with self._keeping_memories(config, standing), self._serving_agents(config):
                    self._import(stores, standing)

    def _without_settings(self, error: RaddleError) -> None:
        self._board.failed("settings", error)
        self._say(f"{error.message}: nothing is done until it is mended")

    def _import(self, stores: Stores, standing: Standing) -> None:
        for report in watch_sessions(stores, (), stop=standing, note=self._note):
            self._imported(report)

    def wait_for_data_folder(self) -> None:
        """Where it is gone: it may be on a disk that comes back, and must not be made in its place."""
        while not self._stop.is_set() and ground_of(self._paths).data is None:
            folder = StorageError(f"{self._paths.data_dir} is not there", "it is waited for")
            self._board.failed("import", folder)
            self._stop.wait(LOOK_SECONDS)

    def end(self) -> None:
        """Say that it is over; nothing where another one is the daemon, whose state this would hide."""
        if self._has_begun:
            self._board.change(is_listening=False)
            self._board.flush()
            self._board.note("ended")

    def _note(self, text: str) -> None:
        self._say(text)
        self._board.change(note=text)

    def _imported(self, report: ImportReport) -> None:
        self._board.works("import")
        self._board.change(last_import=system_clock(), note="")
        self._board.note(
            "import",
            threads=report.threads,
            messages=report.messages,
            problems=len(report.problems),
            left_out=len(report.left_out),
        )
        self._changed_here()

    def _changed_here(self) -> None:
        loop = self._loop
        if loop is not None:
            loop.changed_here()

    @contextmanager
    def _syncing(self, config: Config, standing: Standing) -> Iterator[None]:
        """Syncs beside the block. They end with it, or are left behind with what they wait for."""
        beside = _start("sync", functools.partial(self._sync, config, standing))
        try:
            yield
        finally:
            standing.end()
            loop = self._loop
            if loop is not None:
                loop.wake()
            beside.join(_JOIN_SECONDS)

    @contextmanager
    def _keeping_memories(self, config: Config, standing: Standing) -> Iterator[None]:
        """Memories kept in step beside the block, what was written last included."""
        loop = MemoryLoop(
            config,
            self._board,
            is_over=standing.is_set,
            stop=self._stop,
            seconds=time.monotonic,
            clock=system_clock,
            draw=_draw,
        )
        beside = _start("memory", loop.run)
        try:
            yield
        finally:
            standing.end()
            beside.join(_FLUSH_SECONDS)

    def _sync(self, config: Config, standing: Standing) -> None:
        backoff = Backoff(_draw)
        while not standing.is_set():
            try:
                with Stores(config, report=self._report) as stores:
                    self._sync_with(stores, standing)
            except Exception as error:  # noqa: BLE001  the import goes on
                wait = backoff.failed()
                self._board.failed("sync", error, again_in=wait)
                self._stop.wait(wait)

    def _sync_with(self, stores: Stores, standing: Standing) -> None:
        server = "" if stores.config.is_offline else server_of(stores, is_needed=False)
        self._board.change(server=server, is_offline=stores.config.is_offline, is_listening=False)
        self._say(_what_it_does(server, is_offline=stores.config.is_offline))
        if not server:
            self._board.change(pending=None)
            while not standing.is_set():  # a sign-in, or another setting, begins all of this anew
                self._stop.wait(LOOK_SECONDS)
            return
        work = DaemonSync(stores)
        listener = Listener(work.feed, self._board, seconds=time.monotonic, draw=_draw)
        loop = SyncLoop(
            work,
            self._board,
            is_over=standing.is_set,
            seconds=time.monotonic,
            clock=system_clock,
            draw=_draw,
            in_step=listener.in_step,
            woke=listener.begin_anew,
        )
        self._loop = loop
        try:
            _start("listen", functools.partial(listener.run, loop.heard))
            _start("threads", functools.partial(watch_threads, self._paths, loop.changed_here, standing))
            loop.run()
        finally:
            if self._loop is loop:
                self._loop = None
            listener.close()


def _what_it_does(server: str, *, is_offline: bool) -> str:
    if server:
        return f"importing what agents write, and syncing with {server}"
    if is_offline:
        return "importing what agents write; RADDLE_OFFLINE says that the network is not to be asked"
    return "importing what agents write; no server is known to sync with (`raddle login --server URL`)"


def _start(name: str, target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread
