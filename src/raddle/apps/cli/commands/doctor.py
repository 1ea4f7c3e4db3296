"""`raddle doctor`: what is wrong with what is stored, and putting it right."""

from __future__ import annotations

import click

from raddle.actions.ports import Finding
from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import as_json, with_stores
from raddle.model.errors import StorageError
from raddle.wiring import Stores

NEEDS_SOMEBODY, COULD_NOT = 5, 6


@click.command(
    help="""Check every stored thread, and the search index; print what is wrong, and with --fix what was done about it.

    Exit code 5 where something is left that needs a person, 6 where the disk refused to have it put right. It
    deletes nothing of yours: what cannot be read is set aside beside itself, with the reason. A thread whose files
    are all lost is built anew from the bytes of its session that the import kept; `raddle purge ID` removes what
    cannot be saved.""",
)
@click.option(
    "--fix",
    is_flag=True,
    help="Fold journals, give lost messages a root, restore or rebuild damaged threads, tidy up.",
)
@click.option("--reindex", is_flag=True, help="Build the search index anew from the thread files.")
@as_json
@with_stores
def doctor(stores: Stores, fix: bool, reindex: bool, json: bool) -> int:
    """Print findings."""
    from raddle.wiring.care import check, rebuild_index  # noqa: PLC0415

    if reindex and not json:
        diagnostics.suggest("looking at every thread, then building the search index anew")
    findings = check(stores, fix=fix)
    index = str(stores.paths.search_index)
    is_index_wrong = any(finding.path == index and not finding.done for finding in findings)
    rebuilt = None
    if reindex or (fix and is_index_wrong):
        outcome: dict[str, str] = {"done": "built anew"}
        try:
            rebuilt = rebuild_index(stores)
        except StorageError as error:
            if not is_index_wrong:
                raise
            outcome = {"failed": error.message}
        findings = [_with(finding, outcome) if finding.path == index else finding for finding in findings]
    left = [finding for finding in findings if not finding.done]
    if json:
        output.json({"findings": findings, "reindexed": rebuilt})
    else:
        output.page([_line(finding) for finding in findings])
        _conclude(stores, findings, left, rebuilt, fix=fix)
    if any(finding.failed for finding in left):
        return COULD_NOT
    return NEEDS_SOMEBODY if left else 0


def _with(finding: Finding, outcome: dict[str, str]) -> Finding:
    return Finding(path=finding.path, what=finding.what, **outcome)


def _line(finding: Finding) -> str:
    path = words.style(words.one_line(words.short_path(finding.path)), "dim")
    told = f"{path}: {words.one_line(finding.what)}"
    if finding.done:
        return told + words.style(f" ({words.one_line(finding.done)})", "green")
    if finding.failed:
        return told + words.style(f" (could not be put right: {words.one_line(finding.failed)})", "red")
    return told


def _conclude(
    stores: Stores, findings: list[Finding], left: list[Finding], rebuilt: int | None, *, fix: bool
) -> None:
    if rebuilt is not None:
        output.line(f"the search index was built anew: {words.count(rebuilt, 'thread')}")
    refused = [finding for finding in left if finding.failed]
    if not findings:
        output.line(f"all is well: {words.count(len(stores.threads.ids()), 'thread')}")
    elif refused:
        diagnostics.say(f"{words.count(len(refused), 'finding')} could not be put right: {refused[0].failed}")
        diagnostics.say("make that possible, then run `raddle doctor --fix` again")
    elif left and not fix:
        diagnostics.say("`raddle doctor --fix` puts right what it can; it deletes nothing of yours")
    elif left:
        diagnostics.say(f"{words.count(len(left), 'finding')} left for you to look at")
