"""An answer as it comes, on a terminal or for a program: what is printed of it, and where.

The answer's own words are data (stdout); what else happens on the way is said on stderr. Words of a model are a
stranger's: no control character of theirs reaches a terminal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any

import msgspec

from raddle.actions.answering.asking import OWN_PREFIX, Landed, Sent, Told
from raddle.actions.answering.ports import Asks, Launched, Piece, Retry
from raddle.actions.answering.reconciling import CUT, ENDED, KEPT, LANDED, Settled
from raddle.apps.cli import diagnostics, output, words
from raddle.model.errors import RaddleError, StorageError
from raddle.model.threads.thread import Thread


class Telling:
    """Prints what is told of one turn. `landed` is its answer, once it is there.

    Where stdout takes no more, it listens on: an answer is worth more than its echo.
    """

    def __init__(self, *, as_json: bool, answer: Callable[[Asks], None] | None = None) -> None:
        self.sent: Sent | None = None
        self.landed: Landed | None = None
        self.launched = ""
        self._json = as_json
        self._answer = answer
        self._has_streamed = False
        self._is_open = False
        """Does a line of the answer stand on the screen without its end?"""
        self._trouble: StorageError | output.ReaderGone | None = None
        """Why nothing more is printed."""

    def tell_all(self, told: Generator[Told, None, None]) -> Landed | None:
        """Print all of it; closed in time, whatever ends it. None where it ended before the answer.

        StorageError or ReaderGone, once all was told, where stdout did not take it.
        """
        with contextlib.closing(told):
            try:
                for one in told:
                    self._tell(one)
            finally:
                self._end_line()
        if self._trouble is not None:
            raise self._trouble
        return self.landed

    def _tell(self, one: Told) -> None:
        match one:
            case Sent():
                self.sent = one
            case Piece(text=text) if text and not self._json:
                self._print(words.safe_lines(text))
                self._has_streamed = True
                self._is_open = not text.endswith("\n")
            case Retry(why=why, wait_seconds=seconds, retries=retries):
                self._end_line()
                self._has_streamed = False
                diagnostics.say(f"{words.one_line(why)}; trying again {_after(seconds)} (retry {retries})")
            case Launched(job_id=job_id):
                self.launched = job_id
                diagnostics.suggest(f"at work as job {job_id}; Ctrl-C stops waiting, not the work")
            case Asks():
                self._end_line()
                diagnostics.say(f"{one.tool_name or 'an agent'} asks: {words.safe_lines(one.text)}")
                if self._answer is not None:
                    self._answer(one)
                else:
                    diagnostics.say(f"answer it: `raddle jobs answer {one.job_id} {one.call_id} TEXT`")
            case Landed():
                self._land(one)
            case _:
                return

    def _land(self, landed: Landed) -> None:
        if not self._json and not self._has_streamed:
            self._print(words.safe_lines(landed.answer.text))
            self._is_open = not landed.answer.text.endswith("\n")
        self.landed = landed
        self._end_line()
        if landed.cut_by:
            diagnostics.note(f"the answer was cut: {landed.cut_by}")

    def _end_line(self) -> None:
        if self._is_open:
            self._print("\n")
            self._is_open = False

    def _print(self, text: str) -> None:
        if self._trouble is not None:
            return
        try:
            output.write(text)
            output.finish()
        except (StorageError, output.ReaderGone) as error:
            self._trouble = error


def _after(seconds: float) -> str:
    if seconds < 0.05:  # would read as 0.0
        return "at once"
    return f"in {seconds:.1f} s" if seconds < 10 else f"in {seconds:.0f} s"


def as_plain(thread_id: str, telling: Telling) -> dict[str, Any]:
    """The answer for `--json`; null where it is not there, with the job that works on it, if one does."""
    sent, landed = telling.sent, telling.landed
    value: dict[str, Any] = {"id": thread_id, "message_id": sent.message_id if sent is not None else ""}
    if landed is None:
        return {**value, "job_id": telling.launched, "answer": None}
    answer = landed.answer
    return {
        **value,
        "answer": {
            "message_id": landed.message_id,
            "text": answer.text,
            "thinking": answer.thinking,
            "model": answer.model,
            "author": answer.author,
            "cut_by": landed.cut_by,
            "usage": None if answer.usage is None else msgspec.to_builtins(answer.usage),
        },
    }


def what_stands(thread_id: str, thread: Thread | None, telling: Telling, known: set[str]) -> str:
    """What is true of a turn that was stopped. `known`: what stood under it before; `thread`: None where it is gone."""
    turn = telling.sent.message_id if telling.sent is not None else ""
    pending = thread.pending_jobs if thread is not None else []
    for job in pending:  # it may have been launched in the very moment of the stop
        if job.parent_id == turn and not job.job_id.startswith(OWN_PREFIX):
            telling.launched = job.job_id
    if telling.launched:
        return f"the work goes on as job {telling.launched}: `raddle jobs` shows what becomes of it"
    if thread is None:
        return "the thread is gone, and the answer with it"
    if telling.landed is not None:
        return "the answer was there, and is kept"
    if telling.sent is None:
        return f"it was stopped before it was asked: `raddle show {thread_id}` says what is kept"
    if any(job.parent_id == turn for job in pending):
        return "whether the work was taken on is not known: `raddle jobs` shows what becomes of it"
    if any(each.id not in known for each in thread.tree.children(turn)):
        return "what had come of the answer is kept"
    return f"nothing had come; your turn is kept: `raddle reply {thread_id} --ask` asks again"


def say_taken_back(error: RaddleError, thread: Thread | None, telling: Telling) -> None:
    """Let an error say too that the turn was taken back, where it was."""
    if telling.sent is None or thread is None or not thread.tree.is_removed(telling.sent.message_id):
        return
    taken = f"your turn was taken back, and its text is your draft: `raddle draft {thread.id}`"
    error.hint = f"{error.hint}; {taken}" if error.hint else taken


_TOLD = {
    LANDED: "landed in",
    CUT: "cut; what had come is in",
    ENDED: "ended without an answer in",
    KEPT: "waits in",
}


def tell_settled(settled: Settled) -> None:
    """One line of what became of a launch."""
    why = f": {words.one_line(settled.why)}" if settled.why else ""
    diagnostics.say(
        f"{settled.responder}, job {settled.job_id}: {_TOLD[settled.what]} {settled.thread_id}{why}"
    )
    for question in settled.questions:
        diagnostics.say(f"  {question.tool_name or 'an agent'} asks: {words.one_line(question.text)}")
        diagnostics.say(f"  answer it: `raddle jobs answer {question.job_id} {question.call_id} TEXT`")
