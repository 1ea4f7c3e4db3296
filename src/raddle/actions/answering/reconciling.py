"""What became of launches that nobody waits for any more: each lands, ends or is kept, and says which.

Owns the rule of each ending. A launch may be left by a process that was killed at any point, by a person who did not
wait, or by another machine; settling it twice, or on two machines, adds one message.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from raddle.actions.answering.asking import OWN_PREFIX, Desk, Left, landing
from raddle.actions.answering.ports import Answered, Asks, JobResponder
from raddle.actions.recording import states
from raddle.model.errors import NotFound, Purged, RaddleError
from raddle.model.threads.agent_state import (
    CALLING_LLM,
    PROCESSING_LLM_RESPONSE,
    AgentState,
)
from raddle.model.threads.edits import Editor
from raddle.model.threads.thread import PendingJob, Thread

LANDED, CUT, ENDED, KEPT = "landed", "cut", "ended", "kept"
KILLED = "killed"

FindJobResponder = Callable[[str], JobResponder | None]
"""By the name that settings give it; None where they know none of that name, or it keeps no jobs."""


class Settled(Struct, frozen=True, kw_only=True):
    """What became of one launch: landed (`message_id`), cut (what had come is kept, as `message_id`), ended without an
    answer, or kept. `why`: in words, where it did not land. `questions`: what its agents wait to be told."""

    thread_id: str
    job_id: str
    responder: str
    what: str
    why: str = ""
    message_id: str = ""
    questions: tuple[Asks, ...] = ()


def reconcile(desk: Desk, find: FindJobResponder, thread_id: str | None = None) -> Iterator[Settled]:
    """Settle what was launched on this machine and is not waited for; with `thread_id`, that thread's alone, and then
    also what other machines launched there."""
    seen: set[str] = set()
    for left in desk.book.left(thread_id):
        seen |= {left.launch.job_id, left.taken_as}
        settled = _settle_left(desk, find, left)
        if settled is not None:
            yield settled
    if thread_id is None:
        return
    for job in desk.threads().load(thread_id).pending_jobs:
        if job.job_id in seen:
            continue
        if desk.book.holds(job.job_id):
            why = "it is being asked right now, by another process"
        elif job.job_id.startswith(OWN_PREFIX):
            why = "another machine asked, and settles it"
        else:
            yield _settle_job(desk, find(job.responder), thread_id, job)
            continue
        yield _settled(job, desk.threads().load(thread_id), KEPT, why)


def _settle_left(desk: Desk, find: FindJobResponder, left: Left) -> Settled | None:
    """None where there was nothing left to settle."""
    launch = left.launch
    thread = None
    with contextlib.suppress(NotFound, Purged):
        thread = desk.threads().load(launch.thread_id)
    jobs = {job.job_id: job for job in thread.pending_jobs} if thread is not None else {}
    own = jobs.get(launch.job_id)
    if own is not None and left.taken_as:  # it died before the thread could say so
        desk.threads().apply(launch.thread_id, lambda editor: editor.rename_job(launch.job_id, left.taken_as))
    job = own or jobs.get(left.taken_as)
    if thread is None or thread.is_deleted or job is None:
        desk.book.close(launch.job_id)
        return None
    if left.taken_as:
        taken = PendingJob(
            job_id=left.taken_as,
            parent_id=job.parent_id,
            responder=launch.responder,
            launched_at=job.launched_at,
        )
        settled = _settle_job(desk, find(launch.responder), thread.id, taken)
    elif left.text or left.thinking:
        cut = Answered(text=left.text, thinking=left.thinking, cut_by=KILLED)
        message_id = _end(desk, thread.id, AgentState(), landing(desk, job.job_id, cut, is_late=True))
        settled = _settled(job, thread, CUT, "the process that asked is gone", message_id)
    else:
        why = "the process that asked is gone, and nothing had come"
        if launch.lives_on:
            why = f"{launch.responder} never said that it took it; it may have: ask again, and it says so"
        _end(desk, thread.id, AgentState(kind="error", last_error=why), _clearing(job.job_id))
        settled = _settled(job, thread, ENDED, why)
    if settled.what != KEPT:
        desk.book.close(launch.job_id)
    return settled


def _settle_job(desk: Desk, responder: JobResponder | None, thread_id: str, job: PendingJob) -> Settled:
    """Ask who works on it how it stands."""
    thread = desk.threads().load(thread_id)
    if responder is None:
        return _settled(job, thread, KEPT, f"no responder {job.responder!r} is set up on this machine")
    try:
        found = responder.result(job.job_id)
        questions = tuple(responder.questions(job.job_id)) if found.state == "pending" else ()
    except RaddleError as error:
        return _settled(job, thread, KEPT, error.message)
    if found.state == "pending":
        settled = _settled(job, thread, KEPT, "still at work")
        return msgspec.structs.replace(settled, questions=questions)
    if found.state == "answered" and found.answer is not None:
        message_id = _end(desk, thread_id, AgentState(), landing(desk, job.job_id, found.answer))
        return _settled(job, thread, LANDED, message_id=message_id)
    unknown = f"{job.responder} knows no such job any more"
    why = found.why or (unknown if found.state == "unknown" else "it ended without an answer")
    _end(desk, thread_id, AgentState(kind="error", last_error=states.shortened(why)), _clearing(job.job_id))
    return _settled(job, thread, ENDED, why)


def _settled(job: PendingJob, thread: Thread, what: str, why: str = "", message_id: str = "") -> Settled:
    return Settled(
        thread_id=thread.id,
        job_id=job.job_id,
        responder=job.responder,
        what=what,
        why=why,
        message_id=message_id,
    )


def _clearing(job_id: str) -> Callable[[Editor], str]:
    def clear(editor: Editor) -> str:
        editor.clear_job(job_id)
        return ""

    return clear


def _end(desk: Desk, thread_id: str, state: AgentState, change: Callable[[Editor], str]) -> str:
    """The change that ends a launch, and the state that follows: where the thread says that somebody is asked, and
    nobody is any more. The message that the change added."""

    def edit(editor: Editor) -> str:
        message_id = change(editor)
        kind = editor.thread.agent_state.kind
        if kind in {CALLING_LLM, PROCESSING_LLM_RESPONSE} and not editor.thread.pending_jobs:
            editor.set_agent_state(state)
        return message_id

    return desk.threads().apply(thread_id, edit)
