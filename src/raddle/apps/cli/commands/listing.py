"""`raddle list`: the threads of this machine as a table, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import (
    MOST_ROWS,
    AskingCommand,
    Words,
    as_json,
    as_json_lines,
    limit_option,
    with_stores,
)
from raddle.apps.cli.shapes import listed
from raddle.model.threads.summary import ThreadSummary, flags_of, folder_of
from raddle.wiring import Stores, has_server

_WIDE = 110
"""From so many columns on there is room to say which agent it was."""
_LEAST_TITLE = 16
_ACTIVE, _MSGS, _WHERE = 2, 3, 4
_LEAST_PLACE, _MOST_PLACE = 14, 36


@click.command(
    cls=AskingCommand,
    help="""List threads: pins first, then the newest activity first.

    A QUERY narrows the list: filters as in search (repo: branch: tag: agent: before: after: is:pinned
    is:private is:archived), or words, each of which the row shows (the folder, too) or a message has. A word
    with a dash before it leaves out: -agent:codex.""",
)
@click.argument("query", nargs=-1, type=Words())
@limit_option(30, "threads")
@click.option("--all", "everything", is_flag=True, help="Every thread, archived ones too.")
@click.option("--deleted", is_flag=True, help="The deleted ones instead (`raddle restore ID`).")
@as_json
@as_json_lines
@with_stores
def list_(
    stores: Stores,
    query: tuple[str, ...],
    limit: int,
    everything: bool,
    deleted: bool,
    json: bool,
    jsonl: bool,
) -> None:
    """Print a table, or the summaries as JSON."""
    if deleted:
        rows = stores.deleted()
        query = ()
    else:
        # One more than is shown tells whether there are more.
        rows = _fitting(stores, " ".join(query), None if everything else limit + 1, with_archived=everything)
    shown = rows if everything else rows[:limit]
    if jsonl or json:
        states = _states(stores, shown)
        plain = (listed(row, states.get(row.id, "")) for row in shown)
        if jsonl:
            output.json_lines(plain)
        else:
            output.json(list(plain))
    else:
        output.page(table(stores, shown))
        if not shown:
            _say_why_none(query, deleted=deleted)
        _say_pending(stores)
    if len(rows) > len(shown):
        more = min(limit * 4, MOST_ROWS)
        diagnostics.note(f"these are the first {limit}: -n {more} or --all shows more")
    for hint in query_hints(stores, " ".join(query), has_hits=bool(shown)):
        diagnostics.note(hint)


def _states(stores: Stores, rows: Sequence[ThreadSummary]) -> dict[str, str]:
    """How each stands to the server; empty where there is none."""
    if not has_server(stores):
        return {}
    from raddle.wiring.syncing import states  # noqa: PLC0415  most lists are of one machine

    return {one.id: one.state for one in states(stores, rows)}


def _say_pending(stores: Stores) -> None:
    """Say how many threads the server lacks something of."""
    if diagnostics.is_terminal() and has_server(stores):
        from raddle.wiring.syncing import pending_count  # noqa: PLC0415

        count = pending_count(stores)
        if count:
            diagnostics.suggest(f"{count:,} pending: `raddle sync` sends what the server lacks")


def query_hints(stores: Stores, query: str, *, has_hits: bool) -> list[str]:
    """What to say of parts of the query that were not read as they seem to be meant; fit to be printed."""
    from raddle.model.threads.query import parse  # noqa: PLC0415  a plain list has no query
    from raddle.model.threads.query_hints import hints  # noqa: PLC0415

    return [words.one_line(hint) for hint in hints(parse(query, now=stores.clock()), has_hits=has_hits)]


def _fitting(stores: Stores, text: str, limit: int | None, *, with_archived: bool) -> list[ThreadSummary]:
    if not text.strip():
        return stores.listed(limit=limit, with_archived=with_archived)
    from raddle.model.threads.query import parse  # noqa: PLC0415  a plain list has no query
    from raddle.wiring.listing import fitting  # noqa: PLC0415

    return fitting(stores, parse(text, now=stores.clock()), limit=limit, with_archived=with_archived)


def _say_why_none(query: tuple[str, ...], *, deleted: bool) -> None:
    if deleted:
        diagnostics.say("no deleted threads")
    elif query:
        diagnostics.say("no threads fit (archived ones are left out: --all, or is:archived)")
    else:
        diagnostics.say("no threads yet: `raddle import` brings in the sessions of other agents,")
        diagnostics.say("and `raddle new` starts one of your own")


def table(stores: Stores, rows: Sequence[ThreadSummary]) -> Iterator[str]:
    """Threads as aligned lines, a heading above them where a person looks; cut to the terminal's width."""
    if not rows:
        return
    room = output.columns()
    cells = _cells(stores, rows)
    heading = () if room is None else (("", "ID", "ACTIVE", "MSGS", "WHERE", "AGENT"),)
    lefts = _lefts([*heading, *cells], rows, room)
    left = words.width(click.unstyle(lefts[0]))
    if heading:
        yield words.style(f"{click.unstyle(lefts.pop(0))}  TITLE", "dim")
    for line, row in zip(lefts, rows, strict=True):
        yield f"{line}  {titled(row, None if room is None else max(room - left - 2, 1))}"


def _lefts(cells: Sequence[tuple[str, ...]], rows: Sequence[ThreadSummary], room: int | None) -> list[str]:
    """The columns before the title; in a narrow terminal those that say least give way to it."""
    is_narrow = (room is not None and room < _WIDE) or not any(row.source for row in rows)
    chosen = range(0 if any(row.is_pinned for row in rows) else 1, 5 if is_narrow else 6)
    most_place = _MOST_PLACE if room is None else min(max(room // 5, _LEAST_PLACE), _MOST_PLACE)
    limits = (1, 40, 12, 9, most_place, 16)
    styles = ("yellow", "dim", None, "dim", "cyan", "dim")
    lefts: list[str] = []
    for given_up in (frozenset[int](), {_MSGS}, {_MSGS, _WHERE}, {_MSGS, _WHERE, _ACTIVE}):
        columns = [column for column in chosen if column not in given_up]
        lefts = words.columns(
            [[row[column] for column in columns] for row in cells],
            [limits[column] for column in columns],
            styles=[styles[column] for column in columns],
        )
        if room is None or room - words.width(click.unstyle(lefts[0])) - 2 >= _LEAST_TITLE:
            break
    return lefts


def _cells(stores: Stores, rows: Sequence[ThreadSummary]) -> list[tuple[str, ...]]:
    now = stores.clock()
    short = stores.short_ids(row.id for row in rows)
    return [
        (
            "★" if row.is_pinned else "",
            short[row.id],
            words.ago(row.last_activity_at, now, is_short=True),
            f"{row.message_count:,}",
            place_of(row),
            words.one_line(row.source.agent) if row.source is not None else "–",
        )
        for row in rows
    ]


def titled(row: ThreadSummary, columns: int | None) -> str:
    """The title with its marks after it, in so many columns; the marks stay where the title is cut."""
    title, marks = words.one_line(row.title) or "(no title)", marks_of(row)
    if columns is not None:
        marks = words.cut(marks, columns // 2)
        title = words.cut(title, columns - (words.width(marks) + 1 if marks else 0))
    return f"{title} {words.style(marks, 'dim')}" if marks else title


def place_of(row: ThreadSummary) -> str:
    """`repository@branch`, as short as it says which; a dash where nobody knows."""
    return words.one_line("@".join(part for part in (folder_of(row), row.git_branch) if part)) or "–"


def marks_of(row: ThreadSummary) -> str:
    """Tags, and what is out of the ordinary with a thread."""
    return words.one_line(" ".join([*(f"#{tag}" for tag in row.tags), *flags_of(row)]))
