"""Usage as people and programs see it: a table that fits the terminal, and the JSON shape of docs/reference/json.md.

Spelled out by hand, as in `shapes`: a field added to a sum inside is promised to nobody by accident.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from raddle.apps.cli import words
from raddle.model.clock import format_time
from raddle.model.threads.usage import DAY, REPO, Response, Row, Tokens
from raddle.wiring.usage import UsageAnswer, UsageScope

UNKNOWN = "–"
_LEAST_NAME = 10
_HEADINGS = ("MSGS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST")
_COST = _HEADINGS.index("COST")
_RECORDED = "RECORDED"
_GAP = "  "

ShortIds = Callable[[Iterable[str]], dict[str, str]]


class Shown(NamedTuple):
    """The rows of a tally that are shown, and what the others come to: how many, and their sum."""

    rows: Sequence[Row]
    left_out: int = 0
    rest: Row | None = None


class _Line(NamedTuple):
    name: str
    cells: tuple[str, ...]
    style: str | None = None


def table(answer: UsageAnswer, shown: Shown, *, short_ids: ShortIds, room: int | None) -> Iterator[str]:
    """The rows, what is left out, the total and the sub-agents' part of it; cut to `room` columns where that is given.

    Headings always: numbers without a name mean nothing, wherever they are read.
    """
    by, total = answer.tally.by, answer.tally.total
    has_costs = total.tokens.recorded_cost_messages > 0

    def line(name: str, tokens: Tokens, style: str | None = None) -> _Line:
        return _Line(name, _cells(tokens, has_costs=has_costs), style)

    names = _names(shown.rows, short_ids)
    rows = [line(name, row.tokens) for name, row in zip(names, shown.rows, strict=True)]
    if shown.rest is not None and by == DAY:
        rows.insert(0, line(f"{shown.left_out:,} earlier", shown.rest.tokens, "dim"))
    elif shown.rest is not None:
        rows.append(line(f"{shown.left_out:,} more", shown.rest.tokens, "dim"))
    lines = [_Line(by.upper(), (*_HEADINGS, _RECORDED) if has_costs else _HEADINGS, "dim"), *rows]
    lines.append(line("total", total.tokens, "bold"))
    if total.sidechain.messages:
        lines.append(line("sub-agents' part", total.sidechain, "dim"))
    yield from _aligned(lines, by, room)


def _aligned(lines: Sequence[_Line], by: str, room: int | None) -> Iterator[str]:
    name = max(words.width(line.name) for line in lines)
    if room is not None and name + _columns_of(lines) > room:
        lines = _without_cost(lines)
        name = min(name, max(room - _columns_of(lines), _LEAST_NAME))
    widths = _widths(lines)
    for line in lines:
        left = _cut_in_front(line.name, name) if by == REPO else words.cut(line.name, name)
        cells = [words.pad(cell, width, right=True) for cell, width in zip(line.cells, widths, strict=True)]
        yield words.style(_GAP.join([words.pad(left, name), *cells]), line.style)


def _without_cost(lines: Sequence[_Line]) -> list[_Line]:
    """Names that can be read are worth more than a column of dashes."""
    return [line._replace(cells=(*line.cells[:_COST], *line.cells[_COST + 1 :])) for line in lines]


def _widths(lines: Sequence[_Line]) -> list[int]:
    return [max(words.width(line.cells[at]) for line in lines) for at in range(len(lines[0].cells))]


def _columns_of(lines: Sequence[_Line]) -> int:
    """What the numbers take, with the gaps before them."""
    return sum(width + len(_GAP) for width in _widths(lines))


def _cut_in_front(text: str, columns: int) -> str:
    """The end of a repository's name says which it is."""
    if words.width(text) <= columns:
        return text
    while text and words.width(text) > columns - 1:
        text = text[1:]
    return f"…{text}"


def _names(rows: Sequence[Row], short_ids: ShortIds) -> list[str]:
    """What each row is called: a thread by the start of its id and its title, a message by that of its thread."""
    short = short_ids({row.holder.id for row in rows if row.holder is not None})
    return [words.one_line(_name(row, short)) or UNKNOWN for row in rows]


def _name(row: Row, short: dict[str, str]) -> str:
    if row.holder is None:
        return row.key or ""
    if row.response is not None:
        return f"{short[row.holder.id]} {words.tail(row.response.id)}"
    return f"{short[row.holder.id]} {row.holder.title or '(no title)'}"


def _cells(tokens: Tokens, *, has_costs: bool) -> tuple[str, ...]:
    numbers = (
        tokens.messages,
        tokens.input_tokens,
        tokens.output_tokens,
        tokens.cache_read_tokens,
        tokens.cache_write_tokens,
    )
    cells = (*(UNKNOWN if each is None else f"{each:,}" for each in numbers), UNKNOWN)
    return (*cells, money(tokens.recorded_cost_usd)) if has_costs else cells


def money(dollars: float | None) -> str:
    """`$1,234.50`, `$0.0042`; a dash where nobody says."""
    if dollars is None:
        return UNKNOWN
    return f"${dollars:,.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4f}"


def as_plain(answer: UsageAnswer, shown: Shown, notes: Sequence[str]) -> dict[str, Any]:
    """The answer in its documented JSON shape; `notes` on the query stand in its scope."""
    rest = shown.rest
    return {
        "by": answer.tally.by,
        "scope": _plain_scope(answer.scope, notes),
        "rows": [plain_row(row) for row in shown.rows],
        "left_out": None if rest is None else {"rows": shown.left_out, **_plain_sums(rest)},
        "total": {"threads": answer.tally.total.threads, **_plain_sums(answer.tally.total)},
    }


def plain_row(row: Row) -> dict[str, Any]:
    """One row: its key, the thread or message it is of, its sums."""
    plain: dict[str, Any] = {"key": row.key}
    if row.holder is not None:
        plain["thread"] = {"id": row.holder.id, "title": row.holder.title}
    if row.response is not None:
        plain["message"] = _plain_message(row.response)
    return {**plain, "threads": row.threads, **_plain_sums(row)}


def _plain_message(response: Response) -> dict[str, Any]:
    return {
        "id": response.id,
        "role": response.role,
        "model": response.model or None,
        "ts": "" if response.at is None else format_time(response.at),
        "is_sidechain": response.is_sidechain,
    }


def _plain_sums(row: Row) -> dict[str, Any]:
    return {**_plain_tokens(row.tokens), "sidechain": _plain_tokens(row.sidechain)}


def _plain_tokens(tokens: Tokens) -> dict[str, Any]:
    return {
        "messages": tokens.messages,
        "input_tokens": tokens.input_tokens,
        "output_tokens": tokens.output_tokens,
        "cache_read_tokens": tokens.cache_read_tokens,
        "cache_write_tokens": tokens.cache_write_tokens,
        "cost_usd": None,
        "recorded_cost_usd": tokens.recorded_cost_usd,
        "recorded_cost_messages": tokens.recorded_cost_messages,
    }


def _plain_scope(scope: UsageScope, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "store": "local",
        "query": scope.query,
        "since": "" if scope.span.start is None else format_time(scope.span.start),
        "until": "" if scope.span.end is None else format_time(scope.span.end),
        "time_zone": scope.time_zone,
        "threads": scope.threads,
        "deleted": scope.deleted,
        "unreadable": scope.unreadable,
        "pending": scope.pending,
        "notes": notes,
    }
