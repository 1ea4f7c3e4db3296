"""`raddle.PhaseAdapter`: what a program that does a phase of a run's work calls.

Owns the names and shapes that such programs rely on; what is written is `phase_log.py`'s. It knows phases, entries,
artifacts and handoffs, and nothing of what the work is about: the words of a field of work are its programs'.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from raddle.actions.memory.entries import NewEntry
from raddle.actions.phases.lifecycle import begin_phase, error_entry, error_told, upstream_handoff
from raddle.actions.phases.metrics import MetricBuffer, plain_value
from raddle.actions.ports import Finding
from raddle.apps.library.aside import aside
from raddle.apps.library.interruptions import interruptions
from raddle.apps.library.phase_log import PhaseLog
from raddle.apps.library.trouble import beside
from raddle.model.errors import InvalidInput, UserError
from raddle.model.memory.handoff import Evidence, Handoff
from raddle.model.threads.plain_values import count, plain_text, plain_text_or_none, shown
from raddle.wiring import Stores, open_stores

if TYPE_CHECKING:
    from raddle.actions.memory.blob_ports import ArtifactSource
    from raddle.actions.memory.ports import Writer
    from raddle.wiring.memory import ProjectMemory

logger = logging.getLogger("raddle")

_LONGEST_SECONDS = 3600.0


class PhaseAdapter:
    """A phase of a run, for as long as a program works on it: use it with `with` or `async with`.

    The phase is active inside the block, and done after it. Where an exception leaves the block, an entry tells it, the
    phase has failed, and the exception goes on. It can be begun again then. Methods may be called from any thread of
    the process; they raise RaddleError where something cannot be saved, UserError before and after the block.

    Args:
        phase: the phase, which the run or the project has.
        run: the id of the run, or the start of one. None: the newest that is active; where none is, one begins.
        store: the folder of the store. None: RADDLE_STORE, else the one that the current folder's marker names.
        agent: the agent on whose behalf this is written.
        batch: as many metrics make an entry; so many wait at most.
        seconds: so long a metric waits at most until it is in an entry.
        blobs: the store of blobs for what is large; empty: the project's first one.
    """

    def __init__(
        self,
        phase: str,
        *,
        run: str | None = None,
        store: str | os.PathLike[str] | None = None,
        agent: str = "",
        batch: int = 100,
        seconds: float = 10.0,
        blobs: str = "",
    ) -> None:
        self._asked_phase = plain_text(phase, "a phase")
        self._asked_run = plain_text_or_none(run, "the id of a run")
        self._store = None if store is None else os.fspath(store)
        self._agent = plain_text(agent, "the name of an agent")
        self._blobs = plain_text(blobs, "the name of a store of blobs")
        if count(batch, "a batch") < 1:
            raise InvalidInput(f"a batch is 1 or more, not {batch}", "for example: 100")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise InvalidInput(f"seconds is a number, not {shown(seconds)[:60]}", "for example: 10.0")
        if not 0 < seconds <= _LONGEST_SECONDS:
            raise InvalidInput(
                f"a metric waits {seconds} seconds", f"more than 0, and {_LONGEST_SECONDS:.0f} at most"
            )
        self._batch, self._seconds = batch, float(seconds)
        self._opened: _Opened | None = None

    def __enter__(self) -> Self:
        self._begin()
        interruptions.add(self)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            with beside(error):
                self._end(error)
        finally:
            interruptions.remove(self)

    async def __aenter__(self) -> Self:
        await aside(self._begin, at_any_rate=False)
        interruptions.add(self)
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            with beside(error):
                await aside(lambda: self._end(error))
        finally:
            interruptions.remove(self)

    @property
    def run_id(self) -> str:
        """The id of the run, known once the block is entered, and after it too."""
        return self._there.run_id

    @property
    def phase(self) -> str:
        """The phase."""
        return self._there.phase

    def metric(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """What was measured now, by names: `metric(step=3, seconds=1.5)`. It is written with others in one entry.

        Numbers of numerical libraries are taken too; NaN and the infinities become texts.
        """
        self._live.log.measure({**(values or {}), **named})

    def note(self, text: str, *, thread: str | None = None, message: str | None = None, **facts: Any) -> str:
        """Something worth noting; its entry's id. `thread`, `message`: the whole ids of what it rests on. `facts` stand
        beside the text."""
        return self._tell("note", text, thread, message, facts)

    def decision(
        self, text: str, *, thread: str | None = None, message: str | None = None, **facts: Any
    ) -> str:
        """Something that was decided; as `note`."""
        return self._tell("decision", text, thread, message, facts)

    def milestone(
        self, text: str, *, thread: str | None = None, message: str | None = None, **facts: Any
    ) -> str:
        """Something that was reached; as `note`."""
        return self._tell("milestone", text, thread, message, facts)

    def error(self, error: BaseException | str) -> str:
        """Something that went wrong, and did not end the phase; its entry's id."""
        entry = error_entry(error) if isinstance(error, BaseException) else error_told(_text(error))
        return self._live.log.add(entry).entry_id

    def flush(self) -> None:
        """Write the metrics that wait for others; at the end of the block that is done anyway."""
        self._live.log.flush()

    def artifact(
        self,
        source: str | os.PathLike[str] | bytes,
        *,
        artifact_id: str = "",
        kind: str = "file",
    ) -> str:
        """Keep a file, or bytes, as an artifact of the run; its id, which is the file's name without its ending where
        none is given. ConflictError where the id has other bytes: artifacts never change."""
        from raddle.actions.memory.artifacts import add_artifact, artifact_id_of  # noqa: PLC0415
        from raddle.wiring.memory_blobs import MemoryBlobs  # noqa: PLC0415

        here = self._live
        named = plain_text(artifact_id, "the id of an artifact")
        with (
            _source(here.memory, source, named) as found,
            MemoryBlobs(here.memory, name=self._blobs) as blobs,
        ):
            added = add_artifact(
                here.memory.files,
                blobs,
                here.writer,
                run_id=here.run_id,
                phase=here.phase,
                artifact_id=named or artifact_id_of(found.name),
                kind=plain_text(kind, "a kind"),
                source=found,
            )
        return added.artifact.artifact_id

    def artifact_bytes(self, artifact_id: str) -> bytes:
        """The bytes of an artifact of the run, of whichever phase, checked. NotFound; for what fits into memory."""
        from raddle.actions.memory.artifacts import find_artifact, get_artifact  # noqa: PLC0415
        from raddle.wiring.memory_blobs import MemoryBlobs  # noqa: PLC0415

        here = self._live
        found = find_artifact(
            here.memory.files, here.run_id, plain_text(artifact_id, "the id of an artifact")
        )
        with MemoryBlobs(here.memory) as blobs:
            return b"".join(get_artifact(here.memory.files, blobs, found))

    def fetch_artifact(self, artifact_id: str, path: str | os.PathLike[str]) -> Path:
        """Write an artifact to a file, or into a folder under a name of its own; where it is now. ConflictError where a
        file is there with other bytes."""
        from raddle.actions.memory.artifacts import find_artifact  # noqa: PLC0415
        from raddle.wiring.memory_artifacts import fetch_artifact  # noqa: PLC0415
        from raddle.wiring.memory_blobs import MemoryBlobs  # noqa: PLC0415

        here = self._live
        found = find_artifact(
            here.memory.files, here.run_id, plain_text(artifact_id, "the id of an artifact")
        )
        with MemoryBlobs(here.memory) as blobs:
            return fetch_artifact(here.memory, blobs, found, Path(path)).path

    def summary(self, text: str) -> None:
        """Have `text` as the rolling summary of the phase, in place of the one there is: what somebody who comes to
        it now needs to know. An empty one takes it away."""
        from raddle.actions.memory.summaries import set_summary  # noqa: PLC0415

        here = self._live
        whole = plain_text(text, "a summary")
        ended = f"{whole}\n" if whole.strip() and not whole.endswith("\n") else whole
        with interruptions.deferred():
            set_summary(here.memory.files, here.run_id, here.phase, ended if whole.strip() else "")

    def upstream(self, phase: str) -> Handoff:
        """What an earlier phase has handed on: all that this one reads of it. NotFound where it has published nothing;
        InvalidInput where it does not come before this one."""
        here = self._live
        return upstream_handoff(here.memory.files, here.run_id, here.phase, plain_text(phase, "a phase"))

    def publish_handoff(
        self,
        headline: str,
        *,
        results: Mapping[str, Any] | None = None,
        best_artifacts: Iterable[str] = (),
        decisions: Iterable[str] = (),
        open_questions: Iterable[str] = (),
        figures: Iterable[str] = (),
        evidence: Iterable[Evidence | str] = (),
    ) -> Handoff:
        """Publish what the later phases need to know, in place of what was published before, which git keeps.

        Metrics that wait are written first. `results` may hold what a metric may, NaN too. `best_artifacts` and
        `figures` are ids of artifacts of the run; `evidence` are whole ids of threads that it rests on. NotFound for an
        artifact that is not there.
        """
        from raddle.actions.memory.handoffs import handoff_secrets, publish_handoff  # noqa: PLC0415
        from raddle.model.memory.repo_layout import handoff_file  # noqa: PLC0415
        from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

        here = self._live
        draft = Handoff(
            run_id=here.run_id,
            from_phase=here.phase,
            headline=plain_text(headline, "a headline"),
            key_results={name: plain_value(value) for name, value in (results or {}).items()},
            best_artifacts=_texts(best_artifacts, "an artifact"),
            decisions=_texts(decisions, "a decision"),
            open_questions=_texts(open_questions, "a question"),
            figures=_texts(figures, "a figure"),
            evidence=tuple(
                piece if isinstance(piece, Evidence) else Evidence(thread_id=_text(piece))
                for piece in evidence
            ),
        )
        here.log.flush()
        with interruptions.deferred(), versions_kept(here.memory, [handoff_file(here.run_id, here.phase)]):
            published = publish_handoff(here.memory.files, here.writer, draft)
        kinds = handoff_secrets(published)
        if kinds:
            logger.warning("the handoff seems to hold %s; a store is synced", " and ".join(kinds))
        return published

    def stop(self, why: str) -> None:
        """A signal ends the process; see `interruptions.Live`."""
        if self._opened is not None:
            self._opened.log.stop(error_told(why, error=why))

    def _tell(
        self, kind: str, text: str, thread: str | None, message: str | None, facts: Mapping[str, Any]
    ) -> str:
        entry = NewEntry(
            type=kind,
            payload={"text": plain_text(text, "a text"), **facts},
            thread_id=plain_text_or_none(thread, "the id of a thread"),
            message_id=plain_text_or_none(message, "the id of a message"),
        )
        return self._live.log.add(entry).entry_id

    def _begin(self) -> None:
        from raddle.model.memory.repo_layout import check_phase  # noqa: PLC0415
        from raddle.wiring.memory import open_memory  # noqa: PLC0415

        if self._opened is not None:
            raise UserError("this phase was begun before", "make a raddle.PhaseAdapter for each time")
        stores = open_stores(report=_report)
        with contextlib.ExitStack() as kept:
            kept.enter_context(stores)
            for warning in stores.config.warnings:
                logger.warning("%s", warning)
            memory = open_memory(stores, self._store)
            writer = memory.writer(agent=self._agent or None)
            phase = check_phase(self._asked_phase)
            with interruptions.deferred():
                run = begin_phase(memory.files, writer, phase, run=self._asked_run)
            buffer = MetricBuffer(most=self._batch, seconds=self._seconds)
            log = PhaseLog(memory.files, writer, run.run_id, phase, buffer=buffer)
            self._opened = _Opened(os.getpid(), stores, memory, writer, run.run_id, phase, log)
            kept.pop_all()

    def _end(self, error: BaseException | None) -> None:
        """Nothing happens the second time, nor in a fork: it inherits the phase of its parent and does not own it."""
        here = self._opened
        if here is None or here.process != os.getpid() or here.log.is_over:
            return
        is_end = error is None or (isinstance(error, SystemExit) and error.code in (None, 0))
        try:
            if error is None or is_end:
                here.log.finish()
            else:
                here.log.fail(error_entry(error))
        finally:
            here.stores.close()

    @property
    def _there(self) -> _Opened:
        if self._opened is None:
            raise UserError("this phase has not begun", "use it as `with raddle.PhaseAdapter(…) as phase:`")
        return self._opened

    @property
    def _live(self) -> _Opened:
        here = self._there
        if here.process != os.getpid():
            raise UserError(
                "this phase belongs to the process that began it", "tell it there what the other one found"
            )
        if here.log.is_over:
            raise UserError("this phase is over", "begin it again: with raddle.PhaseAdapter(…)")
        return here


class _Opened(NamedTuple):
    """What a phase that has begun works with."""

    process: int
    stores: Stores
    memory: ProjectMemory
    writer: Writer
    run_id: str
    phase: str
    log: PhaseLog


class _Bytes(NamedTuple):
    """An `ArtifactSource` over bytes."""

    name: str
    data: bytes

    def pieces(self) -> Iterator[bytes]:
        """All of them."""
        return iter((self.data,))


@contextlib.contextmanager
def _source(
    memory: ProjectMemory, source: str | os.PathLike[str] | bytes, named: str
) -> Iterator[ArtifactSource]:
    from raddle.wiring.memory_artifacts import artifact_source  # noqa: PLC0415

    if isinstance(source, bytes):
        if not named:
            raise InvalidInput("bytes have no name", "name the artifact: artifact(data, artifact_id=…)")
        yield _Bytes("", source)
        return
    with artifact_source(memory, os.path.abspath(os.fspath(source))) as found:  # noqa: PTH100  `-` is a file here
        yield found


def _text(value: object) -> str:
    return plain_text(value, "a text")


def _texts(values: Iterable[str], what: str) -> tuple[str, ...]:
    """One text alone is a slip: each of its letters would be taken for one."""
    if isinstance(values, str | bytes):
        raise InvalidInput(f"{what} alone is no list", "put it into a list: [ … ]")
    return tuple(plain_text(value, what) for value in values)


def _report(finding: Finding) -> None:
    logger.warning("%s: %s", finding.path, "; ".join(filter(None, (finding.what, finding.done))))
