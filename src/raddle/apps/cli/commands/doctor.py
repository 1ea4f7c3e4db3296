"""`raddle doctor`: what is wrong with what is stored, and putting it right."""

from __future__ import annotations

import click

from raddle.actions.ports import Finding
from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import as_json, with_stores
from raddle.wiring import Stores

NEEDS_SOMEBODY = 5


@click.command(
    help="""Check every stored thread, and the search index; print what is wrong, and with --fix what was done about it.

    Exit code 5 where something is left that needs a person. It deletes nothing of yours: what cannot be read is
    set aside beside itself, with the reason.""",
)
@click.option(
    "--fix", is_flag=True, help="Fold journals, give lost messages a root, restore damaged files, tidy up."
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
    rebuilt = rebuild_index(stores) if reindex or (fix and is_index_wrong) else None
    if rebuilt is not None:
        findings = [_rebuilt(finding) if finding.path == index else finding for finding in findings]
    left = [finding for finding in findings if not finding.done]
    if json:
        output.json({"findings": findings, "reindexed": rebuilt})
    else:
        output.page([_line(finding) for finding in findings])
        _conclude(stores, findings, left, rebuilt, fix=fix)
    return NEEDS_SOMEBODY if left else 0


def _rebuilt(finding: Finding) -> Finding:
    return Finding(path=finding.path, what=finding.what, done="built anew")


def _line(finding: Finding) -> str:
    path = words.style(words.one_line(words.short_path(finding.path)), "dim")
    done = words.style(f" ({words.one_line(finding.done)})", "green") if finding.done else ""
    return f"{path}: {words.one_line(finding.what)}{done}"


def _conclude(
    stores: Stores, findings: list[Finding], left: list[Finding], rebuilt: int | None, *, fix: bool
) -> None:
    if rebuilt is not None:
        output.line(f"the search index was built anew: {words.count(rebuilt, 'thread')}")
    if not findings:
        output.line(f"all is well: {words.count(len(stores.threads.ids()), 'thread')}")
    elif left and not fix:
        diagnostics.say("`raddle doctor --fix` puts right what it can; it deletes nothing of yours")
    elif left:
        diagnostics.say(f"{words.count(len(left), 'finding')} left for you to look at")
