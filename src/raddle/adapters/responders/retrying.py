"""Trying again: what may be, how long to wait before, and that it is said each time.

One rule for all that is asked over HTTP. A kind with a rule of its own would hammer a server that asked for patience,
or answer one question twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, TypeVar

from raddle.actions.answering.ports import Event, Launched, Pause, Piece, Retry
from raddle.adapters.responders.http import Failing
from raddle.model.errors import NetworkError, Rejected, Unanswered

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
"""Of waits that are ours to choose."""
LONGEST_ASKED_SECONDS = 600.0
"""Of waits that a server asks for: who is to come back later than that is told so at once."""

T = TypeVar("T")


class Persistence(NamedTuple):
    """How often something is tried again, how one waits, and a source of numbers from 0 to 1 (1 not included)."""

    retries: int
    pause: Pause
    random: Callable[[], float]


def retried(attempt: Callable[[], Generator[Event, None, T]], how: Persistence) -> Generator[Event, None, T]:
    """The events of `attempt`, which is begun anew while it fails before its first piece; what it returns.

    A `Retry` comes before every wait. Rejected: refused, or nobody ever was there. Unanswered: it failed to the end, or
    was cut after the first piece. Closing this closes the attempt.
    """
    retries = 0
    while True:
        outcome = yield from _once(attempt)
        if not isinstance(outcome, _Failed):
            return outcome
        failure = _passing(outcome, retries, how)
        wait = wait_before(retries, failure.wait_seconds, how.random)
        retries += 1
        yield Retry(why=failure.message, wait_seconds=wait, retries=retries)
        how.pause(wait)


def retried_call(call: Callable[[], T], how: Persistence) -> Generator[Event, None, T]:
    """The same for one question with one answer; what `call` returns."""

    def attempt() -> Generator[Event, None, T]:
        yield from _NOTHING
        return call()

    return retried(attempt, how)


def wait_before(retries: int, asked_seconds: float | None, random: Callable[[], float]) -> float:
    """Seconds to wait after `retries` retries: what the server asked for, else at random up to a bound that doubles."""
    if asked_seconds is not None:
        return asked_seconds
    return random() * min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * (1 << min(retries, 10)))


_NOTHING: Iterator[Event] = iter(())


class _Failed(NamedTuple):
    error: NetworkError
    has_begun: bool


def _once(attempt: Callable[[], Generator[Event, None, T]]) -> Generator[Event, None, T | _Failed]:
    has_begun = False
    with contextlib.closing(attempt()) as events:
        try:
            while True:
                event = next(events)
                has_begun = has_begun or isinstance(event, Launched | Piece)
                yield event
        except StopIteration as end:
            result: T = end.value
            return result
        except NetworkError as error:
            return _Failed(error, has_begun)


def _passing(failed: _Failed, retries: int, how: Persistence) -> Failing:
    """The failure, where it is one to try again; else it is raised as what it comes to."""
    error, has_begun = failed
    if has_begun:
        raise _cut(error) from error
    if not isinstance(error, Failing):
        raise Unanswered(error.message, error.hint) from error
    if retries >= how.retries or (error.wait_seconds or 0) > LONGEST_ASKED_SECONDS:
        raise _final(error, retries) from error
    return error


def _cut(failure: NetworkError) -> Unanswered:
    return Unanswered(f"the answer was cut off: {failure.message}", failure.hint or "ask again")


def _final(failure: Failing, retries: int) -> Exception:
    asked = failure.wait_seconds
    tried = f", tried {retries + 1} times" if retries else ""
    if failure.status is None and not failure.was_sent:
        return Rejected(f"{failure.message}{tried}", failure.hint)
    if asked is not None and asked > LONGEST_ASKED_SECONDS:
        return Unanswered(
            f"{failure.message}, and asks to wait {asked:,.0f} s", f"ask again in {_span(asked)}"
        )
    hint = f"ask again in {_span(asked)}" if asked else failure.hint or "ask again later"
    return Unanswered(f"{failure.message}{tried}", hint)


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 120 else f"{round(minutes / 60):,} hours"
