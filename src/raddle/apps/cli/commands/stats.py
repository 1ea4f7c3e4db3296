"""`raddle stats`: what the conversations used, summed by day, thread, agent, model, repository, role or message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.commands.listing import query_hints
from raddle.apps.cli.options import AskingCommand, Words, as_json, as_json_lines, limit_option, with_stores
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.apps.cli.usage_table import Shown
    from raddle.model.threads.usage import Tally
    from raddle.wiring.usage import UsageScope

_WAYS = ("day", "thread", "agent", "model", "repo", "role", "message")
_LIMIT = 30


@click.command(
    cls=AskingCommand,
    help="""Sum what was used: tokens by day, thread, agent, model, repository, role or message.

    A QUERY narrows it: words and filters as in list choose threads (repo: branch: tag: agent: tool: is:pinned,
    the start of an ID); before:, after: and role: choose single messages.

    \b
    raddle stats --by model --since 2026-11
    raddle stats repo:lantern --by thread -n 5

    A message is counted once, for the oldest thread that holds it, however many forks and resumed sessions share
    it. Turns that were taken back and private threads count, deleted threads do not. INPUT is without what came
    from the cache. COST is empty until raddle knows prices; RECORDED is what records say themselves.
    """,
)
@click.argument("query", nargs=-1, type=Words())
@click.option(
    "--by", type=click.Choice(_WAYS), default="day", show_default=True, help="What each row is the sum of."
)
@click.option("--since", metavar="WHEN", type=Words(), help="From then on: 2026-11-30, 2026-11, 7d, today.")
@click.option(
    "--until", metavar="WHEN", type=Words(), help="Up to then; a day, month or year is whole in it."
)
@click.option("--utc", "in_utc", is_flag=True, help="Days in UTC instead of local time.")
@limit_option(_LIMIT, "rows: the newest days, else the largest sums")
@click.option("--all", "everything", is_flag=True, help="Every row.")
@as_json
@as_json_lines
@with_stores
def stats(
    stores: Stores,
    query: tuple[str, ...],
    by: str,
    since: str | None,
    until: str | None,
    in_utc: bool,
    limit: int,
    everything: bool,
    json: bool,
    jsonl: bool,
) -> None:
    """Print a table, or the sums as JSON."""
    from raddle.apps.cli import usage_table  # noqa: PLC0415  a line of help does not pay for it
    from raddle.wiring.usage import usage_of  # noqa: PLC0415

    text = " ".join(query)
    answer = usage_of(stores, text, by=by, since=since, until=until, in_utc=in_utc)
    shown = _shown(answer.tally, None if everything else limit)
    notes = query_hints(stores, text, has_hits=bool(answer.scope.threads))
    if jsonl:
        output.json_lines(usage_table.plain_row(row) for row in shown.rows)
    elif json:
        output.json(usage_table.as_plain(answer, shown, notes))
    elif answer.tally.rows:
        room = output.columns()
        output.page(usage_table.table(answer, shown, short_ids=stores.short_ids, room=room))
        diagnostics.say(_scope(answer.scope))
        if shown.rest is not None:
            diagnostics.suggest(f"-n {limit * 4} or --all shows more rows")
    else:
        _say_why_nothing(answer.scope)
    for note in notes:
        diagnostics.note(note)


def _shown(tally: Tally, limit: int | None) -> Shown:
    """The rows within the limit: of days the newest, which stand last."""
    from raddle.apps.cli.usage_table import Shown  # noqa: PLC0415
    from raddle.model.threads.usage import DAY, sum_of  # noqa: PLC0415

    rows = tally.rows
    if limit is None or len(rows) <= limit:
        return Shown(rows)
    kept, rest = (rows[-limit:], rows[:-limit]) if tally.by == DAY else (rows[:limit], rows[limit:])
    return Shown(kept, len(rest), sum_of(rest))


def _scope(scope: UsageScope) -> str:
    """What was looked at, and what is not in the sums."""
    said = f"of {words.count(scope.threads, 'thread')} of this machine"
    if scope.threads != scope.stored:
        said = f"of {scope.threads:,} of {words.count(scope.stored, 'thread')} of this machine"
    notes = [said, "days in UTC" if scope.time_zone == "UTC" else "days in local time"]
    if scope.deleted:
        notes.append(f"{words.count(scope.deleted, 'deleted thread')} not counted")
    if scope.unreadable:
        notes.append(f"{words.count(len(scope.unreadable), 'thread')} could not be read")
    if scope.pending:
        notes.append(f"{words.count(scope.pending, 'thread')} changed since and may be missing")
    return words.one_line("; ".join(notes))


def _say_why_nothing(scope: UsageScope) -> None:
    if not scope.stored:
        diagnostics.say("no threads yet: `raddle import` brings in the sessions of other agents,")
        diagnostics.say("which say what they used")
    elif not scope.threads:
        diagnostics.say("no threads fit")
    else:
        diagnostics.say(f"no message that fits says what it used; {_scope(scope)}")
