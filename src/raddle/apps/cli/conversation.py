"""An answer as it comes, on a terminal or for a program: what is printed of it, and where.

The answer's own words are data (stdout); what else happens on the way is said on stderr. Words of a model are a
stranger's: no control character of theirs reaches a terminal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any

import msgspec

from raddle.actions.answering.asking import Landed, Sent, Told
from raddle.actions.answering.ports import Asks, Launched, Piece, Retry
from raddle.actions.answering.reconciling import CUT, ENDED, KEPT, LANDED, Settled
from raddle.apps.cli import diagnostics, output, words


class Telling:
    """Prints what is told of one turn. `landed` is its answer, once it is there."""

    def __init__(self, *, as_json: bool, answer: Callable[[Asks], None] | None = None) -> None:
        self.sent: Sent | None = None
        self.landed: Landed | None = None
        self.launched = ""
        self._json = as_json
        self._answer = answer
        self._has_streamed = False
        self._is_open = False
        """Does a line of the answer stand on the screen without its end?"""

    def tell_all(self, told: Generator[Told, None, None]) -> Landed | None:
        """Print all of it; closed in time, whatever ends it. None where it ended before the answer."""
        with contextlib.closing(told):
            try:
                for one in told:
                    self._tell(one)
            finally:
                self._end_line()
        return self.landed

    def _tell(self, one: Told) -> None:
        match one:
            case Sent():
                self.sent = one
            case Piece(text=text) if text and not self._json:
                output.write(words.safe_lines(text))
                output.finish()
                self._has_streamed = True
                self._is_open = not text.endswith("\n")
            case Retry(why=why, wait_seconds=seconds, retries=retries):
                self._end_line()
                self._has_streamed = False
                diagnostics.say(f"{words.one_line(why)}; trying again in {seconds:.0f} s (retry {retries})")
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
            output.write(words.safe_lines(landed.answer.text))
            self._is_open = not landed.answer.text.endswith("\n")
        self.landed = landed
        self._end_line()
        if landed.cut_by:
            diagnostics.note(f"the answer was cut: {landed.cut_by}")

    def _end_line(self) -> None:
        if self._is_open:
            output.line()
            self._is_open = False


def as_plain(thread_id: str, sent: Sent | None, landed: Landed | None) -> dict[str, Any]:
    """The answer for `--json`."""
    value: dict[str, Any] = {"id": thread_id, "message_id": sent.message_id if sent is not None else ""}
    if landed is None:
        return {**value, "job_id": sent.job_id if sent is not None else "", "answer": None}
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
