"""What conversations used: the tokens of every response, each counted once over all threads, summed by what is asked.

Owns the counting rules, which `docs/reference/stats.md` tells a reader. Counted in a second place, a fork or a
resumed session would be counted twice there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from raddle.model.clock import parse_time
from raddle.model.threads.carried import copied_from
from raddle.model.threads.message import Message, Usage
from raddle.model.threads.tree import TWIN_OF

MESSAGE, THREAD, AGENT, MODEL, REPO, DAY, ROLE = WAYS = (
    *("message", "thread", "agent", "model", "repo"),
    *("day", "role"),
)
"""What usage can be summed by."""

DayOf = Callable[[int], str]
"""The day (`2026-11-30`) of a moment in microseconds, in the time zone that the reader chose."""

_NANO = 1_000_000_000
_MOST_DOLLARS = 1e9
_NOTHING: tuple[int | None, ...] = (None,) * 7
"""No messages; no input, output, cache read, cache write; no billionths of a dollar, no messages that name them."""


class Response(Struct, frozen=True, kw_only=True, gc=False):
    """What one message says it used, as one thread has it. `at`: its own time in microseconds; None: nobody knows.

    `id`: what it is counted under, the same in every thread that shares the message. `is_copied`: it was said, and paid
    for, in another thread.
    """

    id: str
    usage: Usage
    at: int | None = None
    role: str = ""
    model: str = ""
    rev: int = 0
    is_sidechain: bool = False
    is_removed: bool = False
    is_copied: bool = False


class Holder(Struct, frozen=True, kw_only=True):
    """A thread as far as usage is told of it. `repository` and `agent`: what `repo:` and `agent:` look at."""

    id: str
    title: str = ""
    created_at: int | None = None
    last_activity_at: int | None = None
    repository: str = ""
    agent: str = ""


class Counted(NamedTuple):
    """A response, and the one thread that it counts for."""

    holder: Holder
    response: Response


class Tokens(Struct, frozen=True, kw_only=True):
    """Sums over `messages` messages; None where not one of them says it. `input_tokens`: those not cached.

    `recorded_cost_usd`: dollars, as far as records name a cost themselves (`recorded_cost_messages` do).
    """

    messages: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    recorded_cost_usd: float | None = None
    recorded_cost_messages: int = 0

    @property
    def together(self) -> int:
        """All tokens that are known."""
        known = (self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens)
        return sum(number or 0 for number in known)


class Row(Struct, frozen=True, kw_only=True):
    """One sum. `key`: the day, model, id … it is of; None where records do not say.

    `sidechain` is the part of `tokens` that sub-agents used. `holder`: the thread of a row that is of one thread
    or message; `response`: that of a message.
    """

    key: str | None
    tokens: Tokens
    sidechain: Tokens
    threads: int
    holder: Holder | None = None
    response: Response | None = None


class Tally(Struct, frozen=True, kw_only=True):
    """All sums by one way, and the sum of them: days in their order, all else the most tokens first."""

    by: str
    rows: tuple[Row, ...]
    total: Row


def response_of(message: Message, *, is_removed: bool = False) -> Response | None:
    """What `message` used; None where it does not say. A second message of one id counts as the first."""
    if message.usage is None:
        return None
    twin = message.extra.get(TWIN_OF)
    return Response(
        id=twin if isinstance(twin, str) and twin else message.id,
        usage=message.usage,
        at=parse_time(message.ts),
        role=message.role,
        model=message.model,
        rev=message.rev,
        is_sidechain=message.is_sidechain,
        is_removed=is_removed,
        is_copied=bool(copied_from(message)),
    )


def counted_once(threads: Iterable[tuple[Holder, Iterable[Response]]]) -> list[Counted]:
    """Every response once: for the oldest thread that holds it, with the fullest usage that any thread has of it.

    A thread into which it was only copied comes after all others.

    The oldest is the least by (created_at, last_activity_at, id), those without a time last: a resumed session begins
    when the first one began, for it holds the same turns, and goes on after it. The order of `threads` is of no
    matter.
    """
    first: dict[str, Counted] = {}
    fullest: dict[str, Response] = {}
    for holder, responses in threads:
        for response in responses:
            mine = Counted(holder, response)
            known = first.setdefault(response.id, mine)
            if known is not mine:
                first[response.id] = min(known, mine, key=_age)
                so_far = fullest.get(response.id, known.response)
                fullest[response.id] = max(so_far, response, key=_fullness)
    for response_id, fuller in fullest.items():
        holder, response = first[response_id]
        first[response_id] = Counted(holder, replace(response, usage=fuller.usage))
    return list(first.values())


def _age(one: Counted) -> tuple[object, ...]:
    """The least is the one that counts; within one thread, where a broken file has an id twice, the fuller one."""
    holder, response = one
    said = (response.role, response.model, response.is_sidechain, response.is_removed, response.at or 0)
    times = (_last_if_unknown(holder.created_at), _last_if_unknown(holder.last_activity_at))
    return response.is_copied, *times, holder.id, *(-part for part in _fullness(response)), *said


def _last_if_unknown(at: int | None) -> tuple[bool, int]:
    return at is None, at or 0


def _fullness(response: Response) -> tuple[float, ...]:
    """Grows with what is known: a message is written in parts, and its output only grows."""
    used = response.usage
    parts = (used.input_tokens, used.cache_read_tokens, used.cache_write_tokens, used.cost_usd)
    return (_or_less(used.output_tokens), response.rev, *map(_or_less, parts))


def _or_less(number: float | None) -> float:
    return -1 if number is None else number


def key_of(by: str, day_of: DayOf) -> Callable[[Counted], str | None]:
    """What a response is summed under when it is summed by `by`; None where its record does not say."""
    keys: dict[str, Callable[[Counted], str | None]] = {
        MESSAGE: lambda one: one.response.id,
        THREAD: lambda one: one.holder.id,
        AGENT: lambda one: one.holder.agent or None,
        MODEL: lambda one: one.response.model or None,
        REPO: lambda one: one.holder.repository or None,
        DAY: lambda one: None if one.response.at is None else day_of(one.response.at),
        ROLE: lambda one: one.response.role or None,
    }
    return keys[by]


def tally(counted: Iterable[Counted], by: str, *, day_of: DayOf) -> Tally:
    """The sums of what was counted, by one of `WAYS`."""
    key = key_of(by, day_of)
    sums: dict[str | None, _Sum] = {}
    for one in counted:
        of = key(one)
        known = sums.get(of)
        if known is None:
            known = sums[of] = _Sum()
        known.add(one)
    total = _Sum()
    for made in sums.values():
        total.join(made)
    rows = [made.row(of, by) for of, made in sums.items()]
    return Tally(
        by=by,
        rows=tuple(sorted(rows, key=_by_time if by == DAY else _by_size)),
        total=total.row(None, by=""),
    )


def _by_time(row: Row) -> tuple[bool, str]:
    return row.key is None, row.key or ""


def _by_size(row: Row) -> tuple[int, bool, str]:
    return -row.tokens.together, row.key is None, row.key or ""


def sum_of(rows: Iterable[Row]) -> Row:
    """Rows of one tally as one, for a list that is cut short; a thread may be in several, so `threads` is 0."""
    whole, sidechain = list(_NOTHING), list(_NOTHING)
    for row in rows:
        _add(whole, _parts(row.tokens))
        _add(sidechain, _parts(row.sidechain))
    return Row(key=None, tokens=_frozen(whole), sidechain=_frozen(sidechain), threads=0)


class _Sum:
    """A sum on its way: all of it, and the sub-agents' part."""

    __slots__ = ("_all", "_one", "_sidechain", "_threads")

    def __init__(self) -> None:
        self._all = list(_NOTHING)
        self._sidechain = list(_NOTHING)
        self._threads: set[str] = set()
        self._one: Counted | None = None

    def add(self, one: Counted) -> None:
        """Take in a response."""
        used = one.response.usage
        nanos = _nanos(used.cost_usd)
        tokens = (used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens)
        parts = (1, *map(_sound, tokens), nanos, None if nanos is None else 1)
        _add(self._all, parts)
        if one.response.is_sidechain:
            _add(self._sidechain, parts)
        self._threads.add(one.holder.id)
        self._one = one

    def join(self, other: _Sum) -> None:
        """Take in another sum."""
        _add(self._all, other._all)
        _add(self._sidechain, other._sidechain)
        self._threads |= other._threads

    def row(self, key: str | None, by: str) -> Row:
        """What it came to."""
        one = self._one if by in {MESSAGE, THREAD} else None
        return Row(
            key=key,
            tokens=_frozen(self._all),
            sidechain=_frozen(self._sidechain),
            threads=len(self._threads),
            holder=one.holder if one is not None else None,
            response=one.response if one is not None and by == MESSAGE else None,
        )


def _add(into: list[int | None], parts: Iterable[int | None]) -> None:
    for at, part in enumerate(parts):
        if part is not None:
            into[at] = (into[at] or 0) + part


def _parts(tokens: Tokens) -> tuple[int | None, ...]:
    return (
        tokens.messages,
        tokens.input_tokens,
        tokens.output_tokens,
        tokens.cache_read_tokens,
        tokens.cache_write_tokens,
        _nanos(tokens.recorded_cost_usd, most=None),
        tokens.recorded_cost_messages,
    )


def _frozen(parts: list[int | None]) -> Tokens:
    messages, given, out, read, written, nanos, costed = parts
    return Tokens(
        messages=messages or 0,
        input_tokens=given,
        output_tokens=out,
        cache_read_tokens=read,
        cache_write_tokens=written,
        recorded_cost_usd=None if nanos is None else nanos / _NANO,
        recorded_cost_messages=costed or 0,
    )


def _sound(tokens: int | None) -> int | None:
    """A count; some programs write -1 for what they do not know."""
    return None if tokens is None or tokens < 0 else tokens


def _nanos(dollars: float | None, *, most: float | None = _MOST_DOLLARS) -> int | None:
    """Dollars as whole billionths, whose sum does not depend on the order; None for what is no amount of money."""
    if dollars is None or dollars < 0 or (most is not None and not dollars < most):
        return None
    return round(dollars * _NANO)
