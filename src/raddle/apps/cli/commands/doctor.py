"""`raddle doctor`: what is wrong with what is stored, and putting it right."""

from __future__ import annotations

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import as_json
from raddle.wiring import Stores, with_stores


@click.command(help="Check every stored thread and the index; with --fix, put right what can be.")
@click.option(
    "--fix", is_flag=True, help="Fold journals, re-root lost messages, restore damaged files, sweep."
)
@click.option("--reindex", is_flag=True, help="Build the search index anew from the thread files.")
@as_json
@with_stores
def doctor(stores: Stores, fix: bool, reindex: bool, json: bool) -> int:
    """Exit code 0 where all is well or was put right, 5 where something is left that needs a person."""
    from raddle.wiring.care import check, rebuild_index  # noqa: PLC0415

    findings = check(stores, fix=fix)
    rebuilt = rebuild_index(stores) if reindex else None
    left = [finding for finding in findings if not finding.done]
    if json:
        output.json({"findings": findings, "reindexed": rebuilt})
        return 5 if left else 0
    for finding in findings:
        output.line(
            words.one_line(f"{finding.path}: {finding.what}" + (f" – {finding.done}" if finding.done else ""))
        )
    if rebuilt is not None:
        output.line(f"the index was built anew: {words.count(rebuilt, 'thread')}")
    if not findings:
        output.line(f"all is well: {words.count(len(stores.threads.ids()), 'thread')}")
    elif left and not fix:
        diagnostics.say("`raddle doctor --fix` puts right what it can; it deletes nothing of yours")
    return 5 if left else 0
