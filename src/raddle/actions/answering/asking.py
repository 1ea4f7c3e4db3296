"""One turn sent to who answers: noted before the request leaves, its answer under it, a true state at every moment.

Owns what becomes of a turn in each of the ways that asking can end. The launch is written with the turn, so that no
crash leaves a question that nobody knows was asked; the answer lands with the launch's end, so that it lands once. All
that comes in between is kept beside the thread (`Book`), for whoever finds it there when this process is gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from msgspec import Struct

from raddle.actions.answering.ports import (
    Answered,
    Asks,
    Event,
    Launched,
    Piece,
    Question,
    ReadBytes,
    Responder,
    Retry,
)
from raddle.actions.ports import ThreadStore
from raddle.actions.recording import states
from raddle.actions.recording.recorder import CUT, KeepBody, Recorder, Step
from raddle.model.errors import InvalidInput, NotFound, RaddleError, Rejected, Unanswered, Unconfirmed
from raddle.model.ids import NewId
from raddle.model.threads.agent_state import AgentState
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import TURN, Attachment, Message
from raddle.model.threads.rendering import to_chat_messages, to_deliberation_query_from
from raddle.model.threads.thread import Thread

OWN_PREFIX = "ask-"
"""Of the ids that launches have until who works on them gives another."""
INTERRUPTED = "interrupted"
RESPONDER = "x/metadata/extra/responder"
"""The register that says who answers in a thread."""


class Launch(Struct, frozen=True, kw_only=True):
    """A question on its way. `lives_on`: is it worked on whatever becomes of this process?"""

    thread_id: str
    job_id: str
    responder: str
    lives_on: bool


class Left(Struct, frozen=True, kw_only=True):
    """A launch whose process is gone, or has let go of it. `taken_as`: what who works on it calls it; empty: nobody
    said that it was taken. The rest is what came."""

    launch: Launch
    taken_as: str = ""
    text: str = ""
    thinking: str = ""


class OpenLaunch(Protocol):
    """What is kept of a launch while it is on its way."""

    def keep(self, piece: Piece) -> None:
        """More of the answer."""

    def start_over(self) -> None:
        """What came is void."""

    def taken(self, job_id: str) -> None:
        """Who works on it calls it so."""


class Book(Protocol):
    """The launches of this machine whose ends it has not seen."""

    def open(self, launch: Launch) -> AbstractContextManager[OpenLaunch]:
        """Note a launch, as alive until the block ends or the process does. It stays in the book."""

    def close(self, job_id: str) -> None:
        """Its end was seen: forget it. Nothing happens where it is not in the book."""

    def holds(self, job_id: str) -> bool:
        """Is it in the book, alive or not?"""

    def left(self, thread_id: str | None = None) -> Iterator[Left]:
        """Those (of that thread) that are not alive; each is held as alive until the next is asked for."""


class Request(Struct, frozen=True, kw_only=True):
    """What to ask. `text`: a new turn under `parent_id` (None: a new line); empty: the turn `parent_id` itself is
    asked as it stands. `budget_tokens`: of the path that is sent. The rest as in `Question`."""

    parent_id: str | None
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    was_typed: bool = False
    """The draft under `parent_id` is what was typed of it, and goes."""
    budget_tokens: int | None = None
    model: str = ""
    policy: str = ""
    effort: str = ""


class Sent(Struct, frozen=True, kw_only=True):
    """The turn is in the thread, and the question leaves."""

    message_id: str
    job_id: str


class Landed(Struct, frozen=True, kw_only=True):
    """The answer is in the thread. `cut_by`: what cut it; empty where it is whole."""

    message_id: str
    answer: Answered
    cut_by: str = ""


Told = Sent | Landed | Event


class Desk(Struct, frozen=True, kw_only=True):
    """What asking works with. `threads` is asked at each step, as by the `Recorder`."""

    threads: Callable[[], ThreadStore]
    book: Book
    new_id: NewId
    keep_body: KeepBody
    read: ReadBytes


def ask(
    desk: Desk, recorder: Recorder, responder: Responder, request: Request
) -> Generator[Told, None, None]:
    """Send a turn and tell of all that comes; what is told last is `Landed`.

    Rejected: the new turn is taken back, its text in the draft it came from. Unconfirmed: the launch is kept. Another
    RaddleError: what came is kept as a cut answer, and the state is `error`. Closed, or interrupted, it is given up in
    the same way, without an error; who goes on by itself goes on, and its launch is kept.
    """
    asking = _Asking(desk, recorder, responder, request)
    with desk.book.open(asking.launch) as kept:
        try:
            yield asking.send()
            yield from asking.listen(kept)
        except BaseException as error:
            asking.give_up(error)
            raise


class _Asking:
    def __init__(self, desk: Desk, recorder: Recorder, responder: Responder, request: Request) -> None:
        self._desk = desk
        self._recorder = recorder
        self._responder = responder
        self._request = request
        self._job = f"{OWN_PREFIX}{desk.new_id()}"
        self._turn = ""
        self._is_new_turn = bool(request.text.strip() or request.attachments)
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._is_coming = False
        self._lives_on = False
        self._is_over = False
        self.launch = Launch(
            thread_id=recorder.thread_id,
            job_id=self._job,
            responder=responder.name,
            lives_on=responder.lives_on,
        )

    def send(self) -> Sent:
        """Write the turn and its launch, in one edit."""

        def edit(editor: Editor) -> str:
            turn = self._turn_of(editor)
            editor.launch_job(self._job, turn, self._responder.name)
            editor.write(RESPONDER, self._responder.name)
            return turn

        self._turn = self._recorder.take(Step(state=states.asked(), edit=edit))
        return Sent(message_id=self._turn, job_id=self._job)

    def _turn_of(self, editor: Editor) -> str:
        request = self._request
        if self._is_new_turn:
            content, bodies = self._desk.keep_body(request.text)
            attachments = (*bodies, *request.attachments)
            chosen = {"policy_id": request.policy} if request.policy else {}
            if request.was_typed:
                editor.set_draft(request.parent_id, "")
            return editor.reply(request.parent_id, "user", content, attachments=attachments, **chosen).id
        asked = None if request.parent_id is None else editor.thread.tree.get(request.parent_id)
        if asked is None or not is_turn_of_a_user(asked):
            raise InvalidInput("there is no turn of yours to ask about", "say something: give TEXT")
        return asked.id

    def listen(self, kept: OpenLaunch) -> Iterator[Told]:
        """Ask, and take what comes; the answer lands."""
        with contextlib.closing(_as_generator(self._responder.ask(self._question()))) as events:
            for event in events:
                if isinstance(event, Answered):
                    yield self._land(event)
                    return
                self._note(event, kept)
                yield event
        raise Unanswered("the answer ended before it was there", "ask again")

    def _question(self) -> Question:
        request = self._request
        thread = self._desk.threads().load(self._recorder.thread_id)
        turn = thread.tree.get(self._turn)
        assert turn is not None
        return Question(
            thread_id=thread.id,
            job_id=self._job,
            messages=tuple(to_chat_messages(thread, self._turn, request.budget_tokens)),
            query=to_deliberation_query_from(thread, turn.parent_id, turn.content),
            read=self._desk.read,
            model=request.model,
            policy=request.policy,
            effort=request.effort,
            server_thread=thread.plain("server_thread"),
            branch=_branch_of(thread, turn),
        )

    def _note(self, event: Event, kept: OpenLaunch) -> None:
        match event:
            case Piece():
                kept.keep(event)
                self._text.append(event.text)
                self._thinking.append(event.thinking)
                if not self._is_coming:
                    self._recorder.take(Step(state=states.answering(self._recorder.state), answers=1))
                    self._is_coming = True
            case Retry(why=why):
                kept.start_over()
                self._text.clear()
                self._thinking.clear()
                self._step(states.retrying(self._recorder.state, states.shortened(why)))
            case Launched(job_id=job_id, server_thread=server_thread):
                kept.taken(job_id)
                self._rename(job_id, server_thread)
            case Asks() | Answered():
                pass

    def _step(self, state: AgentState, edit: Callable[[Editor], str] | None = None) -> str:
        ends = -1 if self._is_coming else 0
        self._is_coming = False
        return self._recorder.take(Step(state=state, answers=ends, edit=edit))

    def _rename(self, job_id: str, server_thread: str | None) -> None:
        before, self._job, self._lives_on = self._job, job_id, self._responder.lives_on

        def edit(editor: Editor) -> str:
            editor.rename_job(before, job_id)
            editor.set_context("orchestrator", self._responder.name)
            if server_thread:
                editor.set_context("server_thread", server_thread)
            return ""

        self._step(self._recorder.state, edit)

    def _land(self, answer: Answered) -> Landed:
        message_id = self._step(states.answered(self._recorder.state), landing(self._desk, self._job, answer))
        self._end()
        return Landed(message_id=message_id, answer=answer, cut_by=answer.cut_by)

    def _end(self) -> None:
        self._is_over = True
        self._desk.book.close(self.launch.job_id)

    def give_up(self, error: BaseException) -> None:
        """Leave the thread as is true after `error`."""
        if not self._turn:  # it was not sent, or stopped while that was written
            with contextlib.suppress(NotFound):
                self._desk.threads().apply(
                    self._recorder.thread_id, lambda editor: _forget(editor, self._job)
                )
            self._end()
        if self._is_over:
            return
        is_on_its_way = self._responder.lives_on and not self._lives_on and not isinstance(error, Exception)
        if isinstance(error, Unconfirmed) or is_on_its_way:
            self._step(states.failed(self._recorder.state, states.error_text(error)))
            return
        if self._lives_on and not isinstance(error, Unanswered | Rejected):
            return  # it is worked on, and the launch says so
        if isinstance(error, Rejected) and self._is_new_turn:
            self._step(states.waiting(), self._take_back)
        else:
            self._cut(error)
        self._end()

    def _take_back(self, editor: Editor) -> str:
        editor.clear_job(self._job)
        editor.take_back(self._turn)
        return ""

    def _cut(self, error: BaseException) -> None:
        is_failure = isinstance(error, Exception) and not isinstance(error, GeneratorExit)
        cut = Answered(
            text="".join(self._text),
            thinking="".join(self._thinking),
            cut_by=error.code if isinstance(error, RaddleError) else INTERRUPTED,
        )
        state = states.failed(self._recorder.state, _words(error)) if is_failure else states.waiting()
        if cut.text or cut.thinking:
            self._step(state, landing(self._desk, self._job, cut))
        else:
            self._step(state, lambda editor: _forget(editor, self._job))


def landing(desk: Desk, job_id: str, answer: Answered, *, is_late: bool = False) -> Callable[[Editor], str]:
    """The edit that puts an answer under the turn of its launch, and ends the launch. In a thread that was deleted
    meanwhile nothing lands, which would bring it back. `is_late`: see `Editor.land_job`."""
    content, bodies = desk.keep_body(answer.text)
    extra: dict[str, Any] = {**answer.extra, **({CUT: answer.cut_by} if answer.cut_by else {})}
    fields: dict[str, Any] = {
        "thinking": answer.thinking,
        "provider": answer.provider,
        "model": answer.model,
        "policy_id": answer.policy,
        "author": answer.author,
        "usage": answer.usage,
        "tool_calls": answer.tool_calls,
        "attachments": bodies,
        "extra": extra,
    }
    given = {name: value for name, value in fields.items() if value}

    def land(editor: Editor) -> str:
        if editor.thread.is_deleted:
            return ""
        return editor.land_job(job_id, content, is_late=is_late, **given).id

    return land


def turn_to_ask(thread: Thread, head: str | None, *, anew: bool = False) -> str:
    """The user's turn to ask about on the path to `head`: the last one, where it has no answer, or a cut one; `anew`:
    whatever it has. InvalidInput where there is none."""
    path = thread.tree.path_to_root(head)
    turn = next((message for message in reversed(path) if is_turn_of_a_user(message)), None)
    if turn is None:
        raise InvalidInput("there is no turn of yours to ask about", "say something: give TEXT")
    after = path[path.index(turn) + 1 :]
    if not anew and any(message.role == "assistant" and not message.extra.get(CUT) for message in after):
        raise InvalidInput(
            "your last turn has its answer", f"give TEXT; `--parent {turn.id}` asks about that turn once more"
        )
    return turn.id


def _branch_of(thread: Thread, turn: Message) -> str:
    """The branch that a turn stands on; empty for the one that the thread began with."""
    first = next(iter(thread.tree.shown()), turn)
    branch = thread.tree.branch_of(turn.id)
    return "" if branch == thread.tree.branch_of(first.id) else branch


def is_turn_of_a_user(message: Message) -> bool:
    """Is it one that can be asked about?"""
    return message.role == "user" and message.kind == TURN and not message.is_sidechain


def _forget(editor: Editor, job_id: str) -> str:
    editor.clear_job(job_id)
    return ""


def _words(error: BaseException) -> str:
    return states.shortened(error.message) if isinstance(error, RaddleError) else states.error_text(error)


def _as_generator(events: Iterator[Event]) -> Generator[Event, None, None]:
    """With a `close` that closes `events`, whatever they are."""
    try:
        yield from events
    finally:
        close = getattr(events, "close", None)
        if close is not None:
            close()
