"""`raddle import`: other agents' sessions into threads, with progress, a table, and every problem named."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.first_import import may_import
from raddle.apps.cli.options import as_json, with_stores
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.actions.importing.run import ImportReport

_PROBLEMS_SHOWN = 20
_LEFT_OUT_SHOWN = 5


@click.command(
    name="import",
    help="Bring in the sessions of other agents: of every agent found on this machine, of the AGENTs named, or at "
    "the PATHs named. Again brings in what is new; nothing is ever written where the agents keep theirs.",
)
@click.argument("what", nargs=-1, metavar="[AGENT|PATH]…")
@click.option("--since", metavar="WHEN", help="Only files changed since: 2026-11-30, or 7d, 12h.")
@click.option("--dry-run", is_flag=True, help="Say what would be read; store nothing.")
@click.option("--revive", is_flag=True, help="Bring purged threads back too.")
@click.option("--all-problems", is_flag=True, help="Name every problem, not only the first ones.")
@as_json
@with_stores
def import_(
    stores: Stores,
    what: tuple[str, ...],
    since: str | None,
    dry_run: bool,
    revive: bool,
    all_problems: bool,
    json: bool,
) -> None:
    """Print a table (or `{agents, threads, messages, seconds, problems, left_out}`)."""
    from raddle.wiring.importing import dry_run as look  # noqa: PLC0415
    from raddle.wiring.importing import import_sessions  # noqa: PLC0415

    for warning in stores.config.warnings:
        diagnostics.warn(warning)
    if dry_run:
        planned = look(stores, what, since=since)
        output.json(planned) if json else _print_plan(planned)
        return
    if not may_import(stores, what, since=since, json=json):
        return
    started = time.monotonic()
    with diagnostics.Progress("importing") as bar:
        report = import_sessions(stores, what, since=since, revive=revive, progress=bar.show)
    seconds = time.monotonic() - started
    if json:
        output.json(as_plain(report, seconds))
    else:
        print_report(report, seconds, all_problems=all_problems)


def as_plain(report: ImportReport, seconds: float) -> dict[str, Any]:
    """The report in its documented JSON shape."""
    return {
        "agents": list(report.agents.values()),
        "threads": report.threads,
        "messages": report.messages,
        "seconds": round(seconds, 3),
        "problems": report.problems,
        "left_out": report.left_out,
    }


def print_report(report: ImportReport, seconds: float, *, all_problems: bool = False) -> None:
    """The table for a person on stdout; problems and what was left out on stderr."""
    if report.agents:
        _print_table(report, seconds)
    elif not (report.problems or report.left_out):
        output.line("no sessions of another agent were found on this machine")
    _name(
        report.problems,
        lambda problem: f"{words.short_path(problem.path)}{_at(problem.line)}: {problem.reason}",
        "problem",
        None if all_problems else _PROBLEMS_SHOWN,
    )
    _name(
        report.left_out,
        lambda left: f"{words.short_path(left.path)}: left out: {left.reason}",
        "file",
        _LEFT_OUT_SHOWN,
    )


def _print_table(report: ImportReport, seconds: float) -> None:
    rows = [("agent", "new", "grown", "unchanged", "partly read", "messages")]
    rows += [
        (
            counts.agent,
            f"{counts.new:,}",
            f"{counts.grown:,}",
            f"{counts.unchanged:,}",
            f"{counts.partial:,}",
            f"{counts.messages:,}",
        )
        for counts in report.agents.values()
    ]
    for line in words.table(rows, (24, 12, 12, 12, 12, 14), styles=("bold", None, None, None, None, None)):
        output.styled(line)
    output.line(f"{words.count(report.threads, 'new thread')} in {seconds:.1f} s")


def _at(line: int | None) -> str:
    return f":{line}" if line else ""


def _name(items: list[Any], worded: Callable[[Any], str], noun: str, most: int | None) -> None:
    for item in items[:most]:
        diagnostics.say(words.one_line(worded(item)))
    if most is not None and len(items) > most:
        diagnostics.say(f"… and {words.count(len(items) - most, f'more {noun}')} (--all-problems, or --json)")


def _print_plan(planned: list[Any]) -> None:
    rows = [(row.agent, words.count(row.sessions, "session"), f"{row.size:,} bytes") for row in planned]
    for line in words.table(rows, (24, 20, 24), styles=("bold", None, None)):
        output.styled(line)
    if not rows:
        output.line("nothing new to read")
