"""`raddle list`: the threads of this machine as a table, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import AskingCommand, Words, as_json, as_json_lines, with_stores
from raddle.apps.cli.shapes import listed
from raddle.model.threads.summary import ThreadSummary
from raddle.wiring import Stores

_WIDE = 110
"""From so many columns on there is room to say which agent it was."""
_LEAST_TITLE = 16
_LEAST_PLACE, _MOST_PLACE = 14, 36


@click.command(
    cls=AskingCommand,
    help="""List threads: pins first, then the newest activity first.

    A QUERY narrows the list: filters as in search (repo: branch: tag: agent: before: after: is:pinned
    is:private is:archived), or words. A word with a dash before it leaves out: -agent:codex.""",
)
@click.argument("query", nargs=-1, type=Words())
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    default=30,
    metavar="N",
    help="At most so many threads (30 unless said).",
)
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
        rows = stores.listed(
            " ".join(query), limit=None if everything else limit + 1, with_archived=everything
        )
    shown = rows if everything else rows[:limit]
    if jsonl:
        output.json_lines(listed(row) for row in shown)
    elif json:
        output.json([listed(row) for row in shown])
    else:
        output.page(table(stores, shown))
        _say_more(query, deleted=deleted, limit=limit, has_rows=bool(shown), has_more=len(rows) > len(shown))


def _say_more(query: tuple[str, ...], *, deleted: bool, limit: int, has_rows: bool, has_more: bool) -> None:
    if has_more:
        diagnostics.suggest(f"these are the first {limit}: -n {limit * 4} or --all shows more")
    elif has_rows:
        return
    elif deleted:
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
    is_narrow = (room is not None and room < _WIDE) or not any(row.source for row in rows)
    cells = _cells(stores, rows)
    heading = () if room is None else (("", "ID", "ACTIVE", "MSGS", "WHERE", "AGENT"),)
    has_pins = any(row.is_pinned for row in rows)
    columns = range(0 if has_pins else 1, 5 if is_narrow else 6)
    most_place = _MOST_PLACE if room is None else min(max(room // 5, _LEAST_PLACE), _MOST_PLACE)
    limits = (1, 40, 12, 9, most_place, 16)
    styles = ("yellow", "dim", None, "dim", "cyan", "dim")
    lefts = words.columns(
        [[row[column] for column in columns] for row in (*heading, *cells)],
        [limits[column] for column in columns],
        styles=[styles[column] for column in columns],
    )
    left = words.width(click.unstyle(lefts[0]))
    if heading:
        yield words.style(f"{click.unstyle(lefts.pop(0))}  TITLE", "dim")
    for line, row in zip(lefts, rows, strict=True):
        yield f"{line}  {titled(row, None if room is None else max(room - left - 2, _LEAST_TITLE))}"


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
    place = (row.git_remote_url or row.workspace_root or "").rstrip("/").rpartition("/")[2]
    return words.one_line("@".join(part for part in (place, row.git_branch) if part)) or "–"


def marks_of(row: ThreadSummary) -> str:
    """Tags, and what is out of the ordinary with a thread."""
    marks = [f"#{tag}" for tag in row.tags]
    marks += [
        word
        for word, is_so in (
            ("private", row.is_private),
            ("public", row.visibility == "public"),
            ("archived", row.is_archived),
        )
        if is_so
    ]
    return words.one_line(" ".join(marks))
