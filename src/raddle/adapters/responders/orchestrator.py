"""A deliberation server: a job is launched once, and followed wherever it was launched from.

Owns the rule that no launch is sent twice unless it is known that the server has not taken the first: a second
deliberation costs as much as the first, and answers a question that was answered. What is launched lives on the
server: letting go of it here ends nothing there.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from raddle.actions.answering.ports import (
    Asks,
    Done,
    Event,
    Launched,
    Pause,
    Policy,
    Question,
    Retry,
)
from raddle.actions.answering.settings import ResponderSettings, key_hint_of
from raddle.adapters.responders import orchestrator_wire as wire
from raddle.adapters.responders.http import Connection, Endpoint, Failing, Key, Refused, Reply
from raddle.adapters.responders.retrying import LONGEST_ASKED_SECONDS, Persistence, retried_call, wait_before
from raddle.model.errors import NetworkError, NotFound, Rejected, Unanswered, Unconfirmed

LAUNCH_SECONDS = 120.0
"""For the answer to a launch: who gives up sooner does not know whether it was taken."""
CALL_SECONDS = 30.0
STREAM_SECONDS = 20.0
"""Of silence, until it is asked how the job stands."""
FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 1.0, 15.0
_POLL_GROWTH = 1.5
_LOOK_SECONDS = 5.0
"""Between two looks for questions while events keep coming."""
_GATEWAY = frozenset({502, 504})
"""Said by who stands before the server, and does not know what became of the request."""
_GONE = frozenset({404, 409, 410})
_LATER = "it is worked on there all the same: look again later"


class OrchestratorResponder:
    """A deliberation server as settings say.

    `key`: asked for when a request is made. `random`: numbers from 0 to 1, for waits. `socket_path`: the server listens
    there, not at its address.
    """

    kind = wire.KIND
    lives_on = True

    def __init__(
        self,
        settings: ResponderSettings,
        *,
        key: Key,
        pause: Pause,
        random: Callable[[], float],
        folder: Path | None = None,
        socket_path: Path | None = None,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._key = key
        self._socket_path = socket_path
        self._how = Persistence(settings.retries, pause, random)

    def ask(self, question: Question) -> Iterator[Event]:
        """Launch a deliberation and follow it. Rejected: the server has not taken it. Unconfirmed: nobody knows."""
        launched = yield from self._launch(question)
        yield launched
        yield from self._followed(launched.job_id, wire.policy_of(self._settings, question))

    def follow(self, job_id: str) -> Iterator[Event]:
        """Wait for a job. Unanswered: it ended without an answer. NetworkError: nobody says how it stands."""
        return self._followed(job_id, self._settings.policy)

    def _followed(self, job_id: str, policy: str) -> Generator[Event, None, None]:
        done = Done(state=wire.UNKNOWN)
        if wire.is_id(job_id):
            with (
                self._job_words(),
                self._endpoint(CALL_SECONDS).connected() as calls,
                self._endpoint(STREAM_SECONDS).connected() as streams,
            ):
                done = yield from _Following(self._how, _Job(job_id, calls), streams).until_it_is_over()
        if done.answer is None:
            raise self._no_answer(done)
        yield msgspec.structs.replace(done.answer, policy=policy)

    def result(self, job_id: str) -> Done:
        """How the job stands."""
        if not wire.is_id(job_id):
            return Done(state=wire.UNKNOWN)
        with self._job_words(), self._endpoint(CALL_SECONDS).connected() as calls:
            return _Job(job_id, calls).standing()

    def questions(self, job_id: str) -> list[Asks]:
        """What its agents wait to be told."""
        if not wire.is_id(job_id):
            return []
        with self._job_words(), self._endpoint(CALL_SECONDS).connected() as calls:
            return _Job(job_id, calls).questions()

    def answer_call(self, job_id: str, call_id: str, text: str) -> None:
        """Tell them. NotFound where nobody waits for that (any more)."""
        if not self._is_taken(job_id, ("tool-calls", call_id), {"result": text}):
            raise NotFound("open question", call_id, "it may have been answered, or the job may be over")

    def tell(self, job_id: str, text: str) -> None:
        """Say something to the agents. NotFound where none of them works on it (any more)."""
        if not self._is_taken(job_id, ("inject",), {"message": text}):
            raise NotFound("running job", job_id, "it may be over")

    def cancel(self, job_id: str) -> None:
        """End the job; nothing happens where it is over."""
        self._is_taken(job_id, ("cancel",), {})

    def policies(self) -> list[Policy]:
        """What can be chosen."""
        with self._endpoint(CALL_SECONDS).connected() as calls:
            policies = wire.policies_in(calls.ask("GET", "/policies").plain)
            if policies is None:
                raise calls.nonsense("it is no list of policies")
            return policies

    def _is_taken(self, job_id: str, steps: tuple[str, ...], body: Any) -> bool:
        """Was there something that could take it?"""
        if not all(wire.is_id(each) for each in (job_id, *steps)):
            return False
        try:
            with self._endpoint(CALL_SECONDS).connected() as calls:
                calls.ask("POST", wire.job_path(job_id, *steps), body)
        except Refused as refused:
            if refused.status in _GONE:
                return False
            raise
        return True

    def _launch(self, question: Question) -> Generator[Event, None, Launched]:
        body, headers = wire.launch_body(self._settings, question), wire.launch_headers(question)
        try:
            reply = yield from retried_call(lambda: self._launched(body, headers), self._how)
        except Unconfirmed:
            raise
        except Unanswered as error:
            # Only what was not taken is tried again, so nothing runs there.
            raise Rejected(error.message, error.hint) from error
        job_id = wire.job_in(reply.plain)
        if not job_id:
            raise self._unconfirmed("it answered, and gave no job")
        return Launched(job_id=job_id, server_thread=wire.session_for(question, reply.headers))

    def _launched(self, body: Any, headers: dict[str, str]) -> Reply:
        """Send a launch, once. Failing only where it is known that it was not taken, and may be taken later."""
        try:
            with self._endpoint(LAUNCH_SECONDS).connected() as connection:
                return connection.ask("POST", "/deliberation", body, headers=headers)
        except Refused as refused:
            raise Rejected(refused.message, self._refusal_hint(refused)) from refused
        except Failing as failing:
            if _may_send_again(failing):
                raise
            if failing.status is None or failing.status in _GATEWAY or failing.status >= 520:
                raise self._unconfirmed(failing.message) from failing
            raise Rejected(failing.message, "try again when its agents are there") from failing
        except NetworkError as error:
            raise self._unconfirmed(error.message) from error

    def _refusal_hint(self, refused: Refused) -> str:
        if refused.status == 409:
            return "it works on this conversation already: wait for that answer, or cancel it"
        if refused.status in {400, 404, 422}:
            return f"check `url`, `policy`, `agents` and `rounds` of [responders.{self.name}]"
        return refused.hint

    def _unconfirmed(self, reason: str) -> Unconfirmed:
        return Unconfirmed(
            f"it is not known whether {self.name} has taken it: {reason}",
            "look there before you ask again: it would be worked on twice",
        )

    def _no_answer(self, done: Done) -> Unanswered:
        if done.state == wire.UNKNOWN:
            return Unanswered(f"{self.name} knows nothing of this job any more", "ask again")
        return Unanswered(f"{self.name} gave no answer: {done.why}", "ask again")

    def _endpoint(self, seconds: float) -> Endpoint:
        return Endpoint(
            self._settings.url,
            name=self.name,
            key=self._key,
            key_hint=key_hint_of(self._settings),
            needs_key=None if self._settings.takes_key else False,
            timeout_seconds=min(seconds, self._settings.timeout_seconds),
            socket_path=self._socket_path,
        )

    @contextlib.contextmanager
    def _job_words(self) -> Iterator[None]:
        """A refusal to tell of a job is not one of the job: it goes on, and must not be taken for refused."""
        try:
            yield
        except Rejected as error:
            raise NetworkError(error.message, error.hint) from error


class _Job:
    """A job, asked about over one connection."""

    def __init__(self, job_id: str, calls: Connection) -> None:
        self.id = job_id
        self.shown = calls.told
        self._calls = calls

    def standing(self) -> Done:
        try:
            plain = self._calls.ask("GET", wire.job_path(self.id, "result")).plain
        except Refused as refused:
            if refused.status == 404:
                return Done(state=wire.UNKNOWN)
            raise
        done = wire.standing(plain, self.shown)
        if done is None:
            raise self._calls.nonsense("it does not say how the job stands")
        return done

    def questions(self) -> list[Asks]:
        try:
            path = wire.job_path(self.id, "tool-calls")
            return wire.questions_in(self._calls.ask("GET", path, query={"status": "pending"}).plain, self.id)
        except Refused as refused:
            if refused.status in {404, 405, 501}:
                return []
            raise


class _Following:
    """One wait for a job: its stream while there is one, else asking, less and less often."""

    def __init__(self, how: Persistence, job: _Job, streams: Connection) -> None:
        self._how = how
        self._job = job
        self._streams = streams
        self._told: set[str] = set()
        self._is_streaming = self._is_asking = True
        self._poll_seconds = FIRST_POLL_SECONDS

    def until_it_is_over(self) -> Generator[Event, None, Done]:
        """What is asked meanwhile, then how it ended."""
        failures = 0
        while True:
            try:
                done = self._job.standing()
                if done.state == wire.PENDING:
                    yield from self._asked()
                failures = 0
            except NetworkError as error:
                if failures >= self._how.retries:
                    raise NetworkError(error.message, _LATER) from error
                yield from self._wait_out(error, failures)
                failures += 1
                continue
            if done.state == wire.PENDING:
                done = yield from self._listen()
            if done.state != wire.PENDING:
                return done

    def _wait_out(self, error: NetworkError, failures: int) -> Generator[Event, None, None]:
        asked = error.wait_seconds if isinstance(error, Failing) else None
        wait = wait_before(failures, asked, self._how.random)
        wait = min(wait, LONGEST_ASKED_SECONDS)
        yield Retry(why=error.message, wait_seconds=wait, retries=failures + 1)
        self._how.pause(wait)

    def _asked(self) -> Generator[Event, None, None]:
        """What nobody was told of yet."""
        try:
            questions = self._job.questions() if self._is_asking else []
        except Refused:
            # Whose key may not see them can have the answer all the same.
            self._is_asking = False
            return
        for each in questions:
            if each.call_id not in self._told:
                self._told.add(each.call_id)
                yield each

    def _listen(self) -> Generator[Event, None, Done]:
        """How it ended; pending where that is not known, and it is time to ask."""
        started, done = time.monotonic(), Done(state=wire.PENDING)
        if self._is_streaming:
            try:
                done = yield from self._stream()
            except Refused:
                self._is_streaming = False
            except NetworkError:
                # Cut, or silent: whether the server is still there is learnt by asking.
                done = Done(state=wire.PENDING)
        if done.state != wire.PENDING:
            return done
        if time.monotonic() - started > STREAM_SECONDS / 2:
            self._poll_seconds = FIRST_POLL_SECONDS
        self._how.pause(self._poll_seconds)
        self._poll_seconds = min(self._poll_seconds * _POLL_GROWTH, LONGEST_POLL_SECONDS)
        return done

    def _stream(self) -> Generator[Event, None, Done]:
        looked = time.monotonic()
        with self._streams.events("GET", wire.stream_path(self._job.id)) as events:
            for event in events:
                done = wire.completion(event, self._job.id, self._job.shown)
                if done is not None:
                    return done
                if event.kind == wire.COMPLETE_EVENT:
                    break
                if "tool" in event.kind or time.monotonic() - looked > _LOOK_SECONDS:
                    yield from self._asked()
                    looked = time.monotonic()
        return Done(state=wire.PENDING)


def _may_send_again(failing: Failing) -> bool:
    """Is it known that nothing was taken, and worth another try?"""
    return not failing.was_sent or (failing.status in {429, 503} and failing.wait_seconds is not None)
