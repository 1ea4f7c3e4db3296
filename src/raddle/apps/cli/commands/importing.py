"""`raddle import`: other agents' sessions into threads, with progress, a table, and every problem named."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.first_import import may_import
from raddle.apps.cli.interrupts import stopped_in_order
from raddle.apps.cli.options import as_json, with_stores
from raddle.model.errors import InvalidInput, NotFound
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.actions.importing.run import ImportReport
    from raddle.actions.importing.run_plan import FileProblem, LeftOut, PassedOver
    from raddle.wiring.importing import Preview

_PROBLEMS_SHOWN = 20
_OF_ONE_FILE = 3
_LEFT_OUT_SHOWN = 5
_ALL_OF_THEM = "(--all-problems, or --json)"


@click.command(
    name="import",
    help="Bring in the sessions of other agents: of every agent found on this machine, of the AGENTs named, or at "
    "the PATHs named. Again brings in what is new; nothing is ever written where the agents keep theirs.\n\n"
    "AGENT is claude-code, codex, gemini-cli, opencode, loom or quorum; an export of ChatGPT is named by its PATH.",
)
@click.argument("what", nargs=-1, metavar="[AGENT|PATH]…")
@click.option("--since", metavar="WHEN", help="Only files changed since: 2026-11-30, or 7d, 12h.")
@click.option("--dry-run", is_flag=True, help="Say what would be read; store nothing.")
@click.option("--revive", is_flag=True, help="Bring purged threads back too.")
@click.option("--watch", is_flag=True, help="Stay, and bring in each turn as it is written, until Ctrl-C.")
@click.option("--all-problems", is_flag=True, help="Name every problem, not only the first ones.")
@as_json
@with_stores
def import_(
    stores: Stores,
    what: tuple[str, ...],
    since: str | None,
    dry_run: bool,
    revive: bool,
    watch: bool,
    all_problems: bool,
    json: bool,
) -> None:
    """Print a table (or `{agents, threads, messages, seconds, problems, left_out}`)."""
    from raddle.wiring.importing import dry_run as look  # noqa: PLC0415

    for warning in stores.config.warnings:
        diagnostics.warn(warning)
    if watch and (since or revive or dry_run):
        raise InvalidInput(
            "--watch goes with none of --since, --revive and --dry-run", "import with these first"
        )
    if dry_run:
        preview = look(stores, what, since=since)
        if json:
            output.json(
                {"agents": preview.agents, "problems": preview.problems, "left_out": preview.left_out}
            )
        else:
            _print_preview(preview, all_problems=all_problems)
        _must_be_read(preview.unread)
        return
    if not may_import(stores, what, since=since, json=json):
        return
    if watch:
        follow(what, json=json, all_problems=all_problems)
        return
    report, seconds = bring_in(stores, what, since=since, revive=revive)
    if json:
        output.json(as_plain(report, seconds))
    else:
        print_report(report, seconds, all_problems=all_problems)
    _must_be_read(report.unread)


def _must_be_read(unread: Sequence[str]) -> None:
    """NotFound where nothing could be read from a path that was named: its problems are told already."""
    if unread:
        paths = ", ".join(words.short_path(path) for path in unread)
        raise NotFound("session that can be read at", paths, "what was wrong there is told above")


def bring_in(
    stores: Stores, what: Sequence[str], *, since: str | None = None, revive: bool = False
) -> tuple[ImportReport, float]:
    """Import, with progress; what it did, and the seconds it took. Stopped by a signal it tidies up first."""
    from raddle.wiring.importing import import_sessions  # noqa: PLC0415  the rest of a command waits for it

    started = time.monotonic()
    with (
        stopped_in_order("stopped: what was finished is kept; `raddle import` does the rest"),
        diagnostics.Progress("importing") as bar,
    ):
        report = import_sessions(stores, what, since=since, revive=revive, progress=bar.show)
    return report, time.monotonic() - started


def follow(what: Sequence[str], *, json: bool, all_problems: bool) -> None:
    """Import until it is stopped: a line for each round that brought something (a JSON value a line)."""
    from raddle.wiring.watching import follow_sessions  # noqa: PLC0415

    stop = threading.Event()
    with stopped_in_order("stopped: what came is kept; `raddle import` does the rest"):
        started, is_first = time.monotonic(), True
        for report in follow_sessions(what, stop=stop, note=diagnostics.say, report=diagnostics.found):
            seconds = time.monotonic() - started
            if json:
                output.json_lines([as_plain(report, seconds)])
            elif is_first:
                print_report(report, seconds, all_problems=all_problems)
                diagnostics.say("following; Ctrl-C stops")
            else:
                _print_round(report, all_problems=all_problems)
            is_first = False


def _print_round(report: ImportReport, *, all_problems: bool) -> None:
    for counts in report.agents.values():
        told = []
        if counts.messages:
            told.append(words.count(counts.messages, "message"))
        elif counts.grown:
            told.append("a message went on")
        if counts.new:
            told.append(words.count(counts.new, "new thread"))
        if told:
            output.line(f"{counts.agent}: {', '.join(told)}")
    output.finish()  # whoever reads along waits for each line
    _tell(report.problems, report.left_out, all_problems=all_problems)


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
    else:
        nothing = "no sessions of another agent were found on this machine"
        told = _why_nothing(report.problems, report.left_out, "nothing was imported", report.passed_over)
        output.line(told or nothing)
    _tell(report.problems, report.left_out, all_problems=all_problems)


def _why_nothing(
    problems: Sequence[FileProblem],
    left_out: Sequence[LeftOut],
    nothing: str,
    passed_over: PassedOver | None = None,
) -> str:
    """That there is nothing, and why not; empty where there was nothing to be found."""
    unread = len({problem.path for problem in problems})
    reasons = []
    if unread:
        reasons.append(f"{words.count(unread, 'place')} could not be read")
    if left_out:
        reasons.append(f"{words.count(len(left_out), 'file')} left out")
    if passed_over is not None and passed_over.older:
        reasons.append(f"{words.count(passed_over.older, 'session')} older than --since")
    if passed_over is not None and passed_over.purged:
        reasons.append(f"{words.count(passed_over.purged, 'session')} purged here (--revive brings back)")
    if passed_over is not None and passed_over.empty:
        reasons.append(f"{words.count(passed_over.empty, 'session')} with nothing in it that can be read")
    return f"{nothing}: {', '.join(reasons)}" if reasons else ""


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


def _tell(problems: Sequence[FileProblem], left_out: Sequence[LeftOut], *, all_problems: bool) -> None:
    """What could not be read and what was left out, on stderr: a few lines of each, or all."""
    for line in _problem_lines(problems, all_problems=all_problems):
        diagnostics.say(words.one_line(line))
    shown = left_out if all_problems else left_out[:_LEFT_OUT_SHOWN]
    for left in shown:
        diagnostics.say(words.one_line(f"{words.short_path(left.path)}: left out: {left.reason}"))
    more = Counter(left.reason for left in left_out[len(shown) :])
    for reason, count in more.items():
        told = f"… and {words.count(count, 'more file')} left out: {reason} {_ALL_OF_THEM}"
        diagnostics.say(words.one_line(told))


def _problem_lines(problems: Sequence[FileProblem], *, all_problems: bool) -> Iterator[str]:
    """A line a problem, file by file; a file with many does not hide the others."""
    files: dict[str, list[FileProblem]] = {}
    for problem in problems:
        files.setdefault(problem.path, []).append(problem)
    room, told = _PROBLEMS_SHOWN, 0
    for path, of_file in files.items():
        shown = of_file if all_problems or len(of_file) <= _OF_ONE_FILE + 1 else of_file[:_OF_ONE_FILE]
        if not all_problems and len(shown) > room:
            break
        room, told = room - len(shown), told + 1
        for problem in shown:
            yield f"{words.short_path(path)}{_at(problem.line)}: {problem.reason}"
        if len(shown) < len(of_file):
            yield f"… and {len(of_file) - len(shown):,} more in this file {_ALL_OF_THEM}"
    if told < len(files):
        more = sum(len(of_file) for of_file in list(files.values())[told:])
        in_files = words.count(len(files) - told, "more file")
        yield f"… and {words.count(more, 'problem')} in {in_files} {_ALL_OF_THEM}"


def _print_preview(preview: Preview, *, all_problems: bool) -> None:
    rows = [
        (row.agent, words.count(row.sessions, "session"), f"{row.size:,} bytes") for row in preview.agents
    ]
    for line in words.table(rows, (24, 20, 24), styles=("bold", None, None)):
        output.styled(line)
    if not rows:
        nothing = "nothing new to read"
        output.line(_why_nothing(preview.problems, preview.left_out, nothing) or nothing)
    _tell(preview.problems, preview.left_out, all_problems=all_problems)
