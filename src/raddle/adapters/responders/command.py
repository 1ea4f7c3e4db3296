"""Any program that answers: the question on its stdin, the answer on its stdout.

Owns what such a program gets and how its end is read; how it is run and stopped is `programs`' business.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from raddle.actions.answering.ports import Answered, Event, Pause, Piece, Question
from raddle.actions.answering.settings import ResponderSettings
from raddle.adapters.programs import Completed, ordinary_environment, stream
from raddle.adapters.responders.arriving import GrowingText
from raddle.adapters.responders.attachments import words_of
from raddle.adapters.responders.http import MOST_ANSWER_BYTES, Key
from raddle.adapters.responders.strangers import told
from raddle.model.errors import InvalidInput, NotFound, Rejected, StorageError, Unanswered
from raddle.model.threads.message import ToolCall
from raddle.model.threads.rendering import ChatMessage


class CommandResponder:
    """See `Responder`. It runs in `folder` (None: here), and never again for one question."""

    kind = "command"
    lives_on = False

    def __init__(
        self,
        settings: ResponderSettings,
        *,
        key: Key | None = None,
        pause: Pause | None = None,
        random: Callable[[], float] | None = None,
        folder: Path | None = None,
        socket_path: Path | None = None,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._folder = folder

    def ask(self, question: Question) -> Iterator[Event]:
        """See `Responder`."""
        if not self._settings.program:
            raise Rejected(
                f"{self.name} names no program", f"say `program` in [responders.{self.name}], as a list"
            )
        text = GrowingText()
        done = yield from self._run(question, text)
        whole = text.whole()
        self._check(done, has_words=bool(whole.strip()))
        model = question.model or self._settings.model
        yield Answered(text=whole, provider=self.name, model=model)

    def _run(self, question: Question, text: GrowingText) -> Generator[Event, None, Completed]:
        """Run it, and keep in `text` what is told of its words."""
        output = stream(
            self._settings.program,
            cwd=self._folder,
            input=input_of(question, self._settings),
            quiet_seconds=self._settings.timeout_seconds,
            env=ordinary_environment(),
            limit_bytes=MOST_ANSWER_BYTES,
        )
        words = _Words()
        try:
            while True:
                try:
                    said = words.take(next(output))
                except StopIteration as end:
                    done: Completed = end.value
                    said = words.take(b"", is_last=True)
                    yield from _pieces(said, text)
                    return done
                yield from _pieces(said, text)
        except (NotFound, StorageError, InvalidInput) as error:
            hint = error.hint or f"check `program` of [responders.{self.name}]"
            raise Rejected(f"{self.name} cannot be run: {error.message}", hint) from error
        finally:
            output.close()

    def _check(self, done: Completed, *, has_words: bool) -> None:
        program = Path(self._settings.program[0]).name
        line = told(_last_line(done.stderr))
        said = f": {line}" if line else ""
        if done.is_timed_out:
            seconds = self._settings.timeout_seconds
            hint = f"`timeout_seconds` of [responders.{self.name}] says how long to wait"
            raise Unanswered(f"{program} gave no sign of life for {seconds:g} s{said}", hint)
        if done.is_cut:
            raise Unanswered(f"{program} said more than {MOST_ANSWER_BYTES:,} bytes", "ask for less")
        if done.code:
            end = f"exit code {done.code}" if done.code > 0 else f"signal {-done.code}"
            raise Unanswered(f"{program} ended with {end}{said}", "run it by hand to see why")
        if not has_words:
            raise Unanswered(f"{program} answered without a word{said}", "run it by hand to see why")


def input_of(question: Question, settings: ResponderSettings) -> bytes:
    """What the program is given."""
    system = settings.system.strip()
    query = f"{system}\n\n{question.query}" if system else question.query
    if settings.format == "text":
        return query.encode("utf-8", "replace")
    messages = [_plain(message, question) for message in question.messages]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    return msgspec.json.encode(
        {
            "query": query,
            "messages": messages,
            "model": question.model or settings.model,
            "thread_id": question.thread_id,
        }
    )


def _plain(message: ChatMessage, question: Question) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": message.role, "content": words_of(message, question.read)}
    if message.tool_calls:
        plain["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.role == "tool":
        plain |= {"tool_call_id": message.tool_call_id, "tool_name": message.tool_name}
        plain["is_error"] = message.is_error
    return plain


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "tool_name": call.tool_name, "arguments": call.arguments_json}


class _Words:
    """Bytes to text as they come; the line ends at the very end are the program's habit, not its answer."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def take(self, data: bytes, *, is_last: bool = False) -> str:
        text = self._held + self._decoder.decode(data, final=is_last)
        words = text.rstrip("\r\n")
        self._held = text[len(words) :]
        return words


def _pieces(said: str, text: GrowingText) -> Iterator[Event]:
    if said:
        text.add(said)
        yield Piece(text=said)


def _last_line(data: bytes) -> str:
    lines = data.decode("utf-8", "replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")
