"""A sync of all threads: plan, safety check, apply.

What is pending is found out anew each time, from what the hub says and from the files; there is no list of things
to do that could be lost. What goes wrong with one thread is noted beside its base, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec
from msgspec import Struct

from raddle.actions.sync.one_thread import Place, pending_of, pull, pull_anew, push
from raddle.actions.sync.ports import Known, Mark, Note
from raddle.actions.sync.sources import send_sources, unsent
from raddle.model.clock import Clock
from raddle.model.errors import (
    ConflictError,
    Forbidden,
    FormatError,
    InvalidInput,
    NetworkError,
    NotFound,
    NotSignedIn,
    Purged,
    RaddleError,
    StorageError,
    TooManyRequests,
    UserError,
)
from raddle.model.protocol.hub import GONE, Change, Changes

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 300.0
_FINAL = (NotSignedIn, Forbidden, Purged, InvalidInput)
"""Trying again changes nothing until somebody acts."""
_MOST_CHANGES = 5_000_000
_FEW = 10
"""So few deletions are never asked about."""

Draw = Callable[[], float]
"""Returns a number between 0 and 1, by chance."""
Each = Callable[[Callable[[str], int], Sequence[str]], Iterator[int]]
"""Does some work for each of several threads, and gives what it answers as it comes; what it raises is raised."""


class Plan(Struct, frozen=True, kw_only=True):
    """What a sync would do. `cursor`: how far the feed is taken in then."""

    pulls: tuple[Change, ...] = ()
    pushes: tuple[str, ...] = ()
    """Threads whose files are not as they were when nothing was pending; oldest first."""
    waiting: tuple[str, ...] = ()
    """Threads left alone: their time to be tried again has not come, or somebody has to act first."""
    cursor: str = ""
    deletes_here: int = 0
    """Threads that others deleted and that are not deleted here."""
    deletes_there: int = 0
    """Threads that are deleted here and not yet there."""
    threads_here: int = 0
    threads_there: int = 0
    missing: frozenset[str] = frozenset()
    """Threads among `pulls` that were here and whose files are gone, though nobody purged them: taken in anew."""

    @property
    def is_alarming(self) -> bool:
        """Would it delete more than half of what either side has?"""
        return (self.deletes_here > _FEW and 2 * self.deletes_here > self.threads_here) or (
            self.deletes_there > _FEW and 2 * self.deletes_there > self.threads_there
        )


class Done(Struct, frozen=True, kw_only=True):
    """What a sync came to. `trouble`: thread -> why it is not in step."""

    pulled: int = 0
    """Threads that others had news of, and those that were missing here."""
    brought_back: int = 0
    """Of these, threads that were missing here."""
    pushed: int = 0
    """Threads of which something was sent."""
    sources: int = 0
    """Threads whose source bytes were told."""
    trouble: dict[str, Note] = {}
    source_trouble: dict[str, str] = {}
    """Thread -> why its source bytes did not leave, though it is in step."""


class Step(NamedTuple):
    """How far it is, for whoever draws that."""

    done: int
    total: int


def make_plan(
    place: Place,
    clock: Clock,
    *,
    is_deleted: Callable[[str], bool],
    purged: AbstractSet[str] = frozenset(),
    anyway: bool = False,
) -> Plan:
    """Ask the hub what is new, and the files what is pending. `is_deleted`: is the thread of that id deleted here?

    `purged`: threads that were erased here, and are not to come back. `anyway`: also what is to wait.
    NetworkError, NotSignedIn where the hub does not say.
    """
    feed = _whole_feed(place)
    known = place.bases.all_known()
    notes = place.bases.notes()
    marks = place.marks.marks()
    # A hub that was put back to a backup may have lost what it was known to hold, and tells of that by nothing else.
    lost = {name for name, one in known.items() if one.version and one.hub_epoch != feed.hub_epoch}
    resting = {
        name
        for name, note in notes.items()
        if (note.code == Purged.code and name not in lost) or not (anyway or not _rests(note, clock()))
    }
    news = [
        each
        for each in feed.changes
        if each.thread_id not in purged
        and (each.kind != GONE or each.thread_id in marks)
        and _is_news(each, known.get(each.thread_id), feed.hub_epoch)
    ]
    named = {change.thread_id for change in news}
    missing = (
        {name for name, one in known.items() if one.version and not one.is_private} - marks.keys() - purged
    )
    again = [Change(thread_id=name, version=0) for name in sorted({*notes, *lost, *missing} - named - purged)]
    pulls = [change for change in (*news, *again) if change.thread_id not in resting]
    unsettled = [name for name, mark in marks.items() if _is_unsettled(mark, known.get(name))]
    return Plan(
        pulls=tuple(pulls),
        pushes=tuple(name for name in unsettled if name not in resting),
        waiting=tuple(sorted(resting)),
        cursor=feed.cursor,
        deletes_here=sum(
            1
            for change in news
            if change.is_deleted and change.thread_id in marks and not is_deleted(change.thread_id)
        ),
        deletes_there=sum(1 for name in unsettled if _is_there(known.get(name)) and is_deleted(name)),
        threads_here=len(marks),
        threads_there=sum(1 for one in known.values() if _is_there(one)),
        missing=frozenset(missing.intersection(change.thread_id for change in pulls)),
    )


def to_send(place: Place, plan: Plan) -> list[str]:
    """Those threads of `plan.pushes` of which the hub lacks something that may leave; each of them is looked into."""
    return [name for name in plan.pushes if not pending_of(place, name).delta.is_empty]


def _whole_feed(place: Place) -> Changes:
    """All that is new in the feed, each thread once, as one page."""
    found: dict[str, Change] = {}
    cursor = place.bases.cursor()
    while True:
        page = place.remote.changes(cursor)
        for change in page.changes:
            found.pop(change.thread_id, None)
            found[change.thread_id] = change
        cursor = page.cursor
        if len(found) > _MOST_CHANGES:
            raise NetworkError(
                "the server lists more threads than anybody has", "see that it is the right one"
            )
        if not page.has_more:
            return msgspec.structs.replace(page, changes=tuple(found.values()))


def _is_news(change: Change, known: Known | None, hub_epoch: str) -> bool:
    """Does it tell more than what this device pushed or pulled itself?"""
    return (
        known is None
        or change.version != known.version
        or hub_epoch != known.hub_epoch
        or change.kind == GONE
    )


def _is_there(known: Known | None) -> bool:
    return known is not None and known.version > 0


def _is_unsettled(mark: Mark, known: Known | None) -> bool:
    return known is None or known.mark != mark


def _rests(note: Note, now: int) -> bool:
    """Is it not to be tried now? A time further off than any wait is one of a clock that was set back."""
    longest = int(_LONGEST_WAIT_SECONDS * 1_000_000)
    return note.is_final or now < note.next_attempt_at <= now + longest


def in_order(work: Callable[[str], int], names: Sequence[str]) -> Iterator[int]:
    """One after the other: the way to go through threads where nothing is won by several at once."""
    return map(work, names)


def carry_out(
    place: Place,
    plan: Plan,
    clock: Clock,
    draw: Draw,
    *,
    each: Each = in_order,
    progress: Callable[[Step], None] = lambda _: None,
) -> Done:
    """Pull, then push, what the plan names; then tell source bytes that the hub lacks. `each` goes through threads.

    NetworkError, NotSignedIn, TooManyRequests end it; what was done stands.
    """
    work = _Work(place, clock, draw)
    pulls = [change.thread_id for change in plan.pulls]
    pushes = _in_turn(plan.pushes, pulls)
    bar = _Bar(len(pulls) + len(pushes), progress)
    pulled = sum(bar.count(each(lambda name: bool(work.take(name, is_missing=name in plan.missing)), pulls)))
    place.bases.set_cursor(plan.cursor)  # what could not be pulled has its note
    pushed = sum(bar.count(each(lambda name: bool(work.try_one(name, push)), pushes)))
    waiting = {name: digest for name, digest in unsent(place).items() if name not in plan.waiting}
    bar.total += len(waiting)
    told = sum(bar.count(each(lambda name: work.try_sources(name, waiting[name]), list(waiting))))
    place.bases.succeeded(clock())
    return Done(
        pulled=pulled,
        brought_back=len(work.brought_back),
        pushed=pushed,
        sources=told,
        trouble=work.trouble,
        source_trouble=work.source_trouble,
    )


def _in_turn(pushes: Iterable[str], pulls: Iterable[str]) -> list[str]:
    """What was unsettled, and what was pulled: a pulled thread may have met a turn of this device."""
    return sorted({*pushes, *pulls})


class _Bar:
    """Counts what is done, for whoever draws that."""

    def __init__(self, total: int, progress: Callable[[Step], None]) -> None:
        self.total = total
        self._done = 0
        self._progress = progress

    def count(self, results: Iterable[int]) -> Iterator[int]:
        """The same results, counted as they come."""
        for result in results:
            self._done += 1
            self._progress(Step(self._done, self.total))
            yield result


class _Work:
    """Tries threads and notes what keeps one from being in step; several may be tried at once."""

    def __init__(self, place: Place, clock: Clock, draw: Draw) -> None:
        self._place = place
        self._clock = clock
        self._draw = draw
        self._notes = place.bases.notes()
        self.trouble: dict[str, Note] = {}
        self.source_trouble: dict[str, str] = {}
        self.brought_back: list[str] = []
        self._is_shaky = False
        """Did the hub fail at the thread before? One may be more than it can take; two are the network."""

    def take(self, thread_id: str, *, is_missing: bool) -> int:
        """Pull one thread; was anything new here?"""
        has_news = self.try_one(thread_id, pull_anew if is_missing else pull)
        if is_missing and has_news:
            self.brought_back.append(thread_id)
        return has_news

    def try_one(self, thread_id: str, step: Callable[[Place, str], int]) -> int:
        """What `step` answers; 0 where it failed for this thread alone."""
        if thread_id in self.trouble:
            return 0
        try:
            result = step(self._place, thread_id)
        except (NotSignedIn, TooManyRequests):
            raise
        except NetworkError as error:
            self._note(thread_id, error)
            if self._is_shaky:
                raise
            self._is_shaky = True
            return 0
        except (UserError, ConflictError, FormatError, StorageError) as error:
            if isinstance(error, Purged) and self._place.marks.mark(thread_id) is None:
                self._place.bases.forget(
                    thread_id
                )  # it is erased there, and not here: there is nothing to tell
                return 0
            self._note(thread_id, error)
            return 0
        self._is_shaky = False
        if self._notes.pop(thread_id, None) is not None:
            self._place.bases.note(thread_id, None)
        return result

    def try_sources(self, thread_id: str, digest: str) -> bool:
        """Was the hub told the sources of a thread? Where they are refused, not before they are others."""
        if thread_id in self.trouble:
            return False
        try:
            is_told = send_sources(self._place, thread_id, digest)
        except (NotSignedIn, TooManyRequests):
            raise
        except NetworkError as error:
            self.source_trouble[thread_id] = error.message
            if self._is_shaky:
                raise
            self._is_shaky = True
            return False
        except (ConflictError, NotFound, Purged):
            return False  # the hub has news of the thread: the next sync takes them in first
        except (UserError, FormatError, StorageError) as error:
            self.source_trouble[thread_id] = error.message
            if isinstance(error, _FINAL):
                self._place.bases.note_sources(thread_id, digest)
            return False
        self._is_shaky = False
        return is_told

    def _note(self, thread_id: str, error: RaddleError) -> None:
        before = self._notes.get(thread_id)
        attempts = (before.attempts if before is not None else 0) + 1
        wait = min(_FIRST_WAIT_SECONDS * 2 ** min(attempts - 1, 20), _LONGEST_WAIT_SECONDS)
        note = Note(
            code=error.code,
            reason=error.message,
            attempts=attempts,
            next_attempt_at=self._clock() + int(wait * (0.5 + self._draw() / 2) * 1_000_000),
            is_final=isinstance(error, _FINAL),
        )
        self.trouble[thread_id] = self._notes[thread_id] = note
        self._place.bases.note(thread_id, note)
