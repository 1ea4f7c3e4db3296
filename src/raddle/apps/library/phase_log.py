"""What a phase tells while it goes on: one lock, one timer, and no metric that is lost or told twice.

`phase_adapter.py` is what a program sees of it. Everything that is written goes through here, with the lock held from
the look at the waiting metrics until they are on the disk: so the timer, a full batch, a signal and the end of the
phase never take the same ones.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from raddle.actions.memory.entries import EntryLog, NewEntry, entry_secrets
from raddle.actions.memory.ports import StoreFiles, Writer
from raddle.actions.phases.lifecycle import fail_phase, finish_phase
from raddle.actions.phases.metrics import MetricBuffer, sample_of
from raddle.apps.library.interruptions import interruptions
from raddle.model.clock import format_time
from raddle.model.errors import RaddleError, StorageError, UserError
from raddle.model.memory.entry import ContextEntry

logger = logging.getLogger("raddle")

_LOCK_SECONDS = 5.0
"""How long a signal waits for the write of another thread before the process dies."""
_MOST_WAITING = 100_000
"""Samples that are kept while the disk refuses them."""


class PhaseLog:
    """The entries of one phase. Every method may be called from any thread of the process that began it."""

    def __init__(
        self,
        files: StoreFiles,
        writer: Writer,
        run_id: str,
        phase: str,
        *,
        buffer: MetricBuffer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = files
        self._writer = writer
        self._run_id = run_id
        self._phase = phase
        self._log = EntryLog(files, writer)
        self._buffer = buffer
        self._clock = clock
        self._changed = threading.Condition(threading.Lock())
        self._timer: threading.Thread | None = None
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Has the phase ended?"""
        return self._is_over

    def measure(self, values: Mapping[str, Any]) -> None:
        """A sample, written with others when enough of them wait, or one of them has waited long enough.

        What the disk refuses is logged, kept, and tried again later; StorageError where too much is kept already.
        """
        sample = sample_of(values, format_time(self._writer.now()))
        with self._held():
            if len(self._buffer) >= _MOST_WAITING:
                raise StorageError(
                    f"{_MOST_WAITING:,} metrics wait to be written",
                    "see in the log of `raddle` what is in the way",
                )
            self._buffer.add(sample, self._clock())
            self._write_due()
            if len(self._buffer):
                self._have_a_timer()
                self._changed.notify()

    def add(self, entry: NewEntry) -> ContextEntry:
        """An entry, on the disk now; the metrics told before it stand before it."""
        with self._held():
            added = self._log.add_all(self._run_id, self._phase, [*self._buffer.entries(), entry])
            self._buffer.clear()
        kinds = entry_secrets(added[-1])
        if kinds:
            logger.warning("an entry seems to hold %s; a store is synced", " and ".join(kinds))
        return added[-1]

    def flush(self) -> None:
        """Write the metrics that wait. StorageError, and they still wait."""
        with self._held():
            self._write()

    def finish(self) -> None:
        """The phase is done, and takes nothing more."""
        with self._held():
            finish_phase(
                self._files, self._log, self._writer, self._run_id, self._phase, last=self._buffer.entries()
            )
            self._end()

    def fail(self, why: NewEntry) -> None:
        """The phase has failed, and takes nothing more, also where that cannot be written."""
        with self._held():
            self._fail(why)

    def stop(self, why: NewEntry) -> None:
        """The same for a signal that ends the process: raises nothing, and waits for nobody for long."""
        if self._is_over:
            return
        if not self._changed.acquire(timeout=_LOCK_SECONDS):
            logger.warning("%s: a signal came in the middle of a write", self._phase)
            return
        try:
            self._fail(why)
        except RaddleError as error:
            logger.warning("%s: not saved: %s", self._phase, error.message)
        finally:
            self._changed.release()

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        with interruptions.deferred(), self._changed:
            if self._is_over:
                raise UserError("this phase is over", "begin it again: with raddle.PhaseAdapter(…)")
            yield

    def _fail(self, why: NewEntry) -> None:
        try:
            fail_phase(
                self._files,
                self._log,
                self._writer,
                self._run_id,
                self._phase,
                last=self._buffer.entries(),
                why=why,
            )
        finally:
            self._end()

    def _end(self) -> None:
        self._buffer.clear()
        self._is_over = True
        self._changed.notify()

    def _write(self) -> None:
        waiting: Sequence[NewEntry] = self._buffer.entries()
        self._log.add_all(self._run_id, self._phase, waiting)
        self._buffer.clear()

    def _write_due(self) -> None:
        if not self._buffer.is_due(self._clock()):
            return
        try:
            self._write()
        except RaddleError as error:
            self._buffer.put_off(self._clock())
            logger.warning("metrics of %s are kept to be written later: %s", self._phase, error.message)

    def _have_a_timer(self) -> None:
        if self._timer is None:
            self._timer = threading.Thread(target=self._watch, name="raddle-metrics", daemon=True)
            self._timer.start()

    def _watch(self) -> None:
        """The timer: sleeps until the oldest sample is due, or something has changed."""
        with self._changed:
            while not self._is_over:
                due_at = self._buffer.due_at
                left = None if due_at is None else due_at - self._clock()
                if left is None or left > 0:
                    self._changed.wait(left)
                else:
                    self._write_due()
