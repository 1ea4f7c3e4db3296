"""What each step of a session writes into its thread: one edit a step, on top of what others wrote meanwhile.

Owns where in the tree the session stands and what it wrote last. The steps come one at a time: whoever calls
it from several threads of control locks. No clock, no signal, no git here: those are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from raddle.actions.ports import ThreadStore
from raddle.actions.recording.sharing import Told, shared, told_in
from raddle.actions.recording.states import Open, beside_open
from raddle.model.errors import RaddleError
from raddle.model.threads.agent_state import AgentState, PendingToolCall
from raddle.model.threads.edits import Editor
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.message import Attachment
from raddle.model.threads.recalled import holds_private

CUT = "cut_by"
"""In a message's `extra`: what cut it off before it was whole."""

KeepBody = Callable[[str], tuple[str, tuple[Attachment, ...]]]
"""Puts a text that is too long for a message where such texts are kept; what stands in the message instead."""


class GitNews(Struct, frozen=True, kw_only=True):
    """What git says now, and the commits since it was last asked, oldest first."""

    snapshot: GitSnapshot
    commits: tuple[str, ...] = ()
    log_end: str = ""
    """How far git's log of HEAD was read, for whoever asks next."""


class Turn(Struct, frozen=True, kw_only=True):
    """A message to come. `fields` are further fields of `Message`."""

    role: str
    content: str
    fields: dict[str, Any] = {}
    is_cut: bool = False


class Step(Struct, frozen=True, kw_only=True):
    """One step: the state it leads to, and what there is to note besides."""

    state: AgentState
    turn: Turn | None = None
    is_private: bool = False
    """The thread is private from this step on, whatever it was; False leaves it as it is."""
    goes_back: bool = False
    """The turn before was cut and is tried again: what comes next stands beside it, not under it."""
    git: GitNews | None = None
    model: tuple[str | None, str | None] | None = None
    """Provider and model."""
    title: str = ""
    answers: int = 0
    """1: an answer begins to come in with this step; -1: one is done, or was cut."""
    begins: PendingToolCall | None = None
    """The call whose tool begins to run."""
    ends: str = ""
    """The call whose tool runs no longer."""
    edit: Callable[[Editor], str] | None = None
    """What else is written with it; the id of the message that it added, under which the session goes on (empty:
    none). Like all that is done in `ThreadStore.apply` it may run twice."""

    @property
    def speaks(self) -> bool:
        """Does it say something, so that a thread begins with it?"""
        return self.turn is not None or self.edit is not None


class Opening(Struct, frozen=True, kw_only=True):
    """What is known when a session begins; it goes into the thread with the first step."""

    is_new: bool
    workspace_root: str | None = None
    cwd: str | None = None
    client_version: str = ""
    is_private: bool = False
    title: str = ""
    git: GitNews | None = None
    model: tuple[str | None, str | None] | None = None
    head: str | None = None
    """The message under which the session goes on; None: a new line of conversation."""
    state: AgentState = AgentState()
    """Where the thread's last session left it."""
    told: tuple[Told, ...] = ()
    """What the thread told of the sessions before. They are this one's to go on with: whether one of them lives it
    cannot know, and one that does tells of itself again with its next step."""


class Position(NamedTuple):
    """`head`: the message under which the next one goes. `before_cut`: where it goes instead if what was cut
    is tried again; the empty text where nothing was cut."""

    head: str | None
    before_cut: str | None = ""


class _Written(NamedTuple):
    position: Position
    mine: frozenset[str]
    message_id: str


class Recorder:
    """The steps of one session of the thread `thread_id`.

    `threads` is asked for the store at each step, since a disk that is full may not even give one.
    `keeps_unsaved`: a step that cannot be saved is kept, and saved with the next that can be; else the error
    is raised, and the step did not happen.
    """

    def __init__(
        self,
        threads: Callable[[], ThreadStore],
        thread_id: str,
        opening: Opening,
        *,
        keep_body: KeepBody,
        keeps_unsaved: bool = False,
    ) -> None:
        self.thread_id = thread_id
        self.state = opening.state
        self.trouble: RaddleError | None = None
        """Why the last step could not be saved, where unsaved ones are kept."""
        self._threads = threads
        self._opening = opening
        self._keep_body = keep_body
        self._keeps_unsaved = keeps_unsaved
        self._exists = not opening.is_new
        self._is_opened = False
        self._going_on = Open()
        self._waiting: list[Step] = []
        self._position = Position(opening.head)
        self._mine = frozenset(told.as_of for told in opening.told)
        """As of which writes the thread tells of this session."""
        self._owes_privacy = False

    @property
    def has_written(self) -> bool:
        """Has the session left anything in the thread?"""
        return self._is_opened

    @property
    def unsaved(self) -> int:
        """How many steps wait to be saved because they could not be."""
        return len(self._waiting) if self.trouble is not None else 0

    @property
    def head(self) -> str | None:
        """The message that the session added last, or where it began."""
        return self._position.head

    def take(self, step: Step) -> str:
        """Save a step; the id of the message it added, empty where it added or could save none.

        Steps before the first turn of a new thread wait for it: a conversation in which nobody spoke is not
        written.
        """
        still = _open_after(self._going_on, step)
        is_private = step.is_private or self._owes_privacy or _tells_of_private(step.turn)
        step = msgspec.structs.replace(step, state=beside_open(step.state, still), is_private=is_private)
        self._owes_privacy = is_private  # until it is saved, or kept to be
        steps = [*self._waiting, step]
        if not self._exists and not any(waiting.speaks for waiting in steps):
            self._waiting, self.state, self._going_on = steps, step.state, still
            self._owes_privacy = False
            return ""
        try:
            added = self._save_in_order(steps)
        except RaddleError as error:
            if step.begins is None and step.answers <= 0:
                self._going_on = still  # an answer that could not be saved comes in no longer
            if not self._keeps_unsaved:
                raise
            self._going_on = still
            self._waiting, self.state, self.trouble = [*self._waiting, step], step.state, error
            self._owes_privacy = False
            return ""
        self.state, self.trouble, self._going_on = step.state, None, still
        self._owes_privacy = False
        return added if step.speaks else ""

    def _save_in_order(self, steps: list[Step]) -> str:
        """Save them, the first alone: where there is room for some, those are saved; the id of their last message.

        RaddleError where there is not for all; then those that wait are the others.
        """
        if any(step.is_private for step in steps):
            steps = [msgspec.structs.replace(steps[0], is_private=True), *steps[1:]]
        added, count, fits_at_once = "", self._fewest(steps), True
        while steps:
            try:
                written = self._save(steps[:count])
            except RaddleError:
                if count == self._fewest(steps):
                    raise
                count, fits_at_once = self._fewest(steps), False
                continue
            steps, added = steps[count:], written.message_id or added
            count = len(steps) if fits_at_once else 1
            self._waiting = steps[:-1]
            self._exists = self._is_opened = True
            self._position, self._mine = written.position, written.mine
        return added

    def _fewest(self, steps: Sequence[Step]) -> int:
        """How many of them have to be saved together: a new thread begins with somebody's words."""
        if self._exists:
            return 1
        return next(number for number, step in enumerate(steps, 1) if step.speaks)

    def _save(self, steps: Sequence[Step]) -> _Written:
        whole = [self._with_body_kept(step) for step in steps]
        if self._exists:
            return self._threads().apply(self.thread_id, lambda editor: self._write(editor, whole))
        with self._threads().create(self.thread_id) as editor:
            return self._write(editor, whole)

    def _with_body_kept(self, step: Step) -> Step:
        if step.turn is None:
            return step
        content, attachments = self._keep_body(step.turn.content)
        if not attachments:
            return step
        fields = {**step.turn.fields, "attachments": attachments}
        turn = Turn(role=step.turn.role, content=content, fields=fields, is_cut=step.turn.is_cut)
        return msgspec.structs.replace(step, turn=turn)

    def _write(self, editor: Editor, steps: Sequence[Step]) -> _Written:
        """May run twice on one set of steps, so it changes nothing of the recorder's own."""
        told = told_in(editor.thread)
        if not self._is_opened:
            self._open(editor)
        position, message_id = self._position, ""
        for step in steps:
            position, added = self._write_one(editor, step, position)
            message_id = added or message_id
        return _Written(position, self._tell(editor, steps[-1].state, told), message_id)

    def _tell(self, editor: Editor, state: AgentState, told: Sequence[Told]) -> frozenset[str]:
        """Write the state of this session among those of others; as of which write the thread tells of it now."""
        others = [each for each in told if each.as_of not in self._mine]
        value, is_mine = shared(state, others)
        if not is_mine and len(others) == len(told):
            return frozenset()  # it waits, as before, and the thread tells of others
        if is_mine and not (self._is_opened and told and told[0].as_of in self._mine):
            # An equal value would keep its stamp, and two sessions would each take it for their own.
            editor.write("agent_state", None)
        editor.write("agent_state", value)
        return frozenset(each.as_of for each in told_in(editor.thread)[:1]) if is_mine else frozenset()

    def _open(self, editor: Editor) -> None:
        opening = self._opening
        if opening.is_private:
            _make_private(editor)
        if opening.is_new:
            editor.start(
                workspace_root=opening.workspace_root,
                cwd=opening.cwd,
                client_version=opening.client_version,
            )
        else:
            editor.set_context("workspace_root", opening.workspace_root)
            editor.set_context("cwd", opening.cwd)
            editor.set_context("client_version", opening.client_version or None)
        if opening.git is not None:
            editor.snapshot_git(opening.git.snapshot, opening.git.commits)
        if opening.model is not None:
            editor.set_model(*opening.model)
        if opening.title:
            editor.rename(opening.title)

    def _write_one(self, editor: Editor, step: Step, position: Position) -> tuple[Position, str]:
        if step.goes_back and position.before_cut != "":
            position = Position(position.before_cut)
        if step.is_private:
            _make_private(editor)
        if step.git is not None:
            editor.snapshot_git(step.git.snapshot, step.git.commits)
        if step.model is not None:
            editor.set_model(*step.model)
        if step.title:
            editor.rename(step.title)
        if step.edit is not None:
            added = step.edit(editor)
            return (Position(added), added) if added else (position, "")
        if step.turn is None:
            return position, ""
        turn = step.turn
        message = editor.add(position.head, turn.role, turn.content, **turn.fields)
        return Position(message.id, position.head if turn.is_cut else ""), message.id


def _tells_of_private(turn: Turn | None) -> bool:
    """Is it what raddle told an agent of a private thread? A copy of it must not go where that thread may not."""
    return turn is not None and turn.role == "tool" and holds_private(turn.content)


def _make_private(editor: Editor) -> None:
    if not editor.thread.is_private:
        editor.set_private(True)


def _open_after(before: Open, step: Step) -> Open:
    begun = () if step.begins is None else (step.begins,)
    ends = step.ends or (step.begins.call_id if step.begins is not None else "")
    calls = tuple(call for call in before.calls if call.call_id != ends)
    return Open(answers=max(before.answers + step.answers, 0), calls=(*calls, *begun))
