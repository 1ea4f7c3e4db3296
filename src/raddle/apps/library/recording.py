"""One session as it is recorded: its lock, its open answers, what becomes of errors of ours, how it ends.

`session.py` is what a program sees of it. Everything that a program does in any of its threads comes together
here, one step at a time; a step outside this lock could be stamped on a state that is no more.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec
from msgspec import Struct

from raddle.actions.importing.titles import title_from
from raddle.actions.ports import Finding
from raddle.actions.recording import states
from raddle.actions.recording.recorder import GitNews, Recorder, Step, Turn
from raddle.actions.recording.states import Ending
from raddle.apps.library.interruptions import interruptions
from raddle.apps.library.patience import Patience
from raddle.model.errors import RaddleError, UserError
from raddle.model.threads.agent_state import AgentState
from raddle.wiring.recording import Workplace, open_workplace

logger = logging.getLogger("raddle")

OnError = Literal["raise", "warn"]
Follow = Callable[[AgentState], AgentState]
_GIT_SECONDS = 10.0
"""How long git may take for a look at the folder."""
_STOP_SECONDS = 5.0
"""How long a signal waits for the step of another thread, and then git may take, before the process dies."""


class Options(Struct, frozen=True, kw_only=True):
    """What a session was asked to be; see `record`."""

    workspace: str | os.PathLike[str] | None = None
    thread: str | None = None
    parent: str | None = None
    title: str = ""
    is_private: bool = False
    provider: str = ""
    model: str = ""
    agent: str = ""
    on_error: OnError = "raise"


class Unfinished(Protocol):
    """An answer that is still coming in."""

    def cut(self, why: str) -> Turn | None:
        """What has come so far, as a turn that says so; None where nothing has."""


class Recording:
    """A session of a thread. Every method may be called from any thread of the process that opened it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._lock = threading.Lock()
        self._workplace: Workplace | None = None
        self._recorder: Recorder | None = None
        self._process = 0
        self._is_over = False
        self._is_dying = False
        self._last_moment = threading.Event()
        self._git: GitNews | None = None
        self._model = ("", "")
        self._wants_title = False
        self._unfinished: list[Unfinished] = []
        self._told = ""
        self._patience = Patience()

    def open(self) -> None:
        """Look around: the thread that goes on, the folder, git. A new thread is written with its first turn."""
        with self._lock:
            if self._recorder is not None:
                raise UserError("this session was opened before", "call raddle.record() once for each")
            options = self.options
            workplace = self._patience.ask(
                lambda: open_workplace(options.workspace, thread=options.thread, report=_report), _GIT_SECONDS
            )
            if workplace is None:
                raise AssertionError("whoever was never asked has not been slow")
            stores = workplace.stores
            for warning in stores.config.warnings:
                logger.warning("%s", warning)
            if options.on_error == "raise":
                stores.threads.ids()  # no store, no session: better now than at its first turn
            opening = workplace.opening(
                parent=options.parent, is_private=options.is_private, title=options.title
            )
            opening = msgspec.structs.replace(opening, model=self._first_models(workplace))
            self._git, self._wants_title = opening.git, opening.is_new and not options.title
            self._process, self._workplace = os.getpid(), workplace
            self._recorder = Recorder(
                lambda: stores.threads,
                workplace.thread_id,
                opening,
                keep_body=workplace.keep_body,
                keeps_unsaved=options.on_error == "warn",
            )

    def watch(self) -> None:
        """Listen to signals from now on, where this is the main thread."""
        interruptions.add(self)

    def unwatch(self) -> None:
        """Listen no longer."""
        interruptions.remove(self)

    @property
    def recorder(self) -> Recorder:
        """What the steps go to. UserError before the session is open, and in another process than it was."""
        if self._recorder is None:
            raise UserError("this session is not open", "use it as `with raddle.record() as session:`")
        if self._process != os.getpid():
            raise UserError(
                "this session belongs to the process that opened it",
                f"in this one: raddle.record(thread={self._recorder.thread_id!r})",
            )
        return self._recorder

    @property
    def thread_id(self) -> str:
        """The id of the thread, in a fork of the process too. UserError before the session is open."""
        return self._recorder.thread_id if self._recorder is not None else self.recorder.thread_id

    def take(self, make: Callable[[AgentState], Step]) -> str:
        """Save the step that `make` makes of the state; the id of the message it added, else empty."""
        recorder = self.recorder
        with interruptions.deferred(), self._lock:
            return self._take(recorder, make)

    def _take(self, recorder: Recorder, make: Callable[[AgentState], Step]) -> str:
        if self._is_over:
            self._last_moment.wait(_STOP_SECONDS if self._is_dying else 0)
            raise UserError(
                "this session is over", f"go on with it: raddle.record(thread={recorder.thread_id!r})"
            )
        return self._save(recorder, make(recorder.state))

    def _save(self, recorder: Recorder, step: Step) -> str:
        """With the lock held, so that no word is written between a remote that a rule names and what follows of it."""
        if self._workplace is not None and self._workplace.becomes_private(step.git):
            step = msgspec.structs.replace(step, is_private=True)
        message_id = recorder.take(step)
        trouble = recorder.trouble.message if recorder.trouble is not None else ""
        if trouble and trouble != self._told:
            logger.warning("%s: not saved, kept to be saved later: %s", recorder.thread_id, trouble)
        elif self._told and not trouble:
            logger.warning("%s: what was not saved before is saved now", recorder.thread_id)
        self._told = trouble
        return message_id

    def ask(self, content: str) -> str:
        """Add what the user says; in a new thread without a title its first words become one. The turn's id."""
        title = title_from(content) if self._wants_title else ""
        turn = Turn(role="user", content=content)
        message_id = self.take(lambda _: Step(state=states.asked(), turn=turn, title=title))
        self._wants_title = self._wants_title and not title
        return message_id

    def say(self, follow: Follow, turn: Turn, *, ends: str = "") -> str:
        """Add a turn that is not the user's; `follow`: the state after it, `ends`: the call whose tool is done.
        The turn's id."""
        step = msgspec.structs.replace(self._step(turn), ends=ends)
        return self.take(lambda state: msgspec.structs.replace(step, state=follow(state)))

    def note(self, follow: Follow, *, provider: str = "", model: str = "", goes_back: bool = False) -> None:
        """Go to another state; `provider` and `model`: who answers from now on, empty where that stays."""
        models = self._models(provider, model)
        self.take(lambda state: Step(state=follow(state), model=models, goes_back=goes_back))

    def _step(self, turn: Turn) -> Step:
        fields = {"author": self.options.agent, **turn.fields}
        models = None
        if turn.role == "assistant":
            models = self._models(fields["provider"], fields["model"])
            fields["provider"], fields["model"] = self._model
        return Step(state=AgentState(), turn=msgspec.structs.replace(turn, fields=fields), model=models)

    def _first_models(self, workplace: Workplace) -> tuple[str | None, str | None] | None:
        thread = workplace.thread
        if thread is not None:
            self._model = (thread.plain("provider") or "", thread.plain("model") or "")
        return self._models(self.options.provider, self.options.model)

    def _models(self, provider: str, model: str) -> tuple[str | None, str | None] | None:
        """What the thread has to say of who answers; None where nobody named anybody."""
        if not provider and not model:
            return None
        self._model = (provider or self._model[0], model or self._model[1])
        return self._model[0] or None, self._model[1] or None

    def begin(self, answer: Unfinished, *, provider: str, model: str) -> None:
        """An answer begins to come in."""
        models = self._models(provider, model)
        recorder = self.recorder
        with interruptions.deferred(), self._lock:
            self._take(recorder, lambda state: Step(state=states.answering(state), model=models, answers=1))
            self._unfinished.append(answer)

    def finish(self, answer: Unfinished, turn: Turn | None, follow: Follow) -> str:
        """It came to its end, or was cut; the id of its turn. Nothing happens where a signal was quicker."""
        step = self._step(turn) if turn is not None else Step(state=AgentState())
        recorder = self.recorder
        with interruptions.deferred(), self._lock:
            if answer not in self._unfinished:
                return ""
            message_id = self._take(
                recorder, lambda state: msgspec.structs.replace(step, state=follow(state), answers=-1)
            )
            self._unfinished.remove(answer)
            return message_id

    def look_at_git(self) -> None:
        """Note what git says, where it says something new."""
        news = self._git_news()
        if news is not None:
            self.take(lambda state: Step(state=state, git=news))
            self._git = news

    def _git_news(self, *, timeout_seconds: float = _GIT_SECONDS) -> GitNews | None:
        if self._workplace is None:
            return None
        last = self._git
        workplace = self._workplace
        news = self._patience.ask(
            lambda: workplace.git_news(last, timeout_seconds=timeout_seconds), timeout_seconds
        )
        is_old = last is not None and news is not None and news.snapshot == last.snapshot and not news.commits
        return None if is_old else news

    def close(self, error: BaseException | None) -> None:
        """End the session; `error`: what it is left with. Nothing happens the second time, nor in a fork.

        The first thing written is that it shuts down, so that whoever is killed on the way says so.
        """
        if self._recorder is None or self._process != os.getpid():
            return
        recorder = self._recorder
        with interruptions.deferred(), self._lock:
            if self._is_over:
                return
            before = recorder.state
            ending = states.ending_of(error, before)
            self._begin_to_end(recorder, before, ending)
        if recorder.has_written or recorder.unsaved:
            git = self._git_news()
            with interruptions.deferred(), self._lock:
                self._save(recorder, Step(state=states.stopped(before, ending), git=git))
                self._fold(recorder)
        if recorder.unsaved:
            logger.error("%s: %d steps could not be saved", recorder.thread_id, recorder.unsaved)
        if self._workplace is not None:
            self._workplace.close()

    def _begin_to_end(self, recorder: Recorder, before: AgentState, ending: Ending) -> None:
        """With the lock held: keep what had come of answers, say that it shuts down, and take no more steps."""
        self._is_over = True
        for answer in self._unfinished:
            turn = answer.cut(ending.why or "the end of the session")
            if turn is not None:
                self._save(recorder, msgspec.structs.replace(self._step(turn), state=before))
        self._unfinished.clear()
        if recorder.has_written or recorder.unsaved:
            self._save(recorder, Step(state=states.stopping(before, ending)))

    def _fold(self, recorder: Recorder) -> None:
        """What was appended is safe where it is; the readable file may also follow later."""
        if self._workplace is None or recorder.unsaved:
            return
        try:
            self._workplace.stores.threads.fold(recorder.thread_id)
        except RaddleError as error:
            logger.warning("%s: not folded: %s", recorder.thread_id, error.message)

    def stop(self, why: str) -> None:
        """Write where the session stands, since a signal ends the process; see `Live`."""
        recorder = self._recorder
        if recorder is None or self._is_over:  # on its way to its end it has said so
            return
        if not self._lock.acquire(timeout=_STOP_SECONDS):
            logger.warning("%s: %s came in the middle of a step", recorder.thread_id, why)
            return
        self._is_dying = (
            True  # other threads find the session over: they wait for the end, and tell of no error
        )
        try:
            before, ending = recorder.state, Ending(why=why)
            self._begin_to_end(recorder, before, ending)
            if recorder.has_written:
                git = self._git_news(timeout_seconds=_STOP_SECONDS)
                self._save(recorder, Step(state=states.stopped(before, ending), git=git))
        except RaddleError as error:
            logger.warning("%s: not saved at %s: %s", recorder.thread_id, why, error.message)
        finally:
            self._lock.release()


def _report(finding: Finding) -> None:
    logger.warning("%s: %s", finding.path, "; ".join(filter(None, (finding.what, finding.done))))
