"""The one question that raddle asks before the very first import, while nothing is copied yet.

Owns when it is asked: once, of a person, and never of a program. A second place would ask a script, or nobody.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from raddle.apps.cli import diagnostics, words
from raddle.model.errors import BrokenFormat
from raddle.wiring import Stores


def may_import(stores: Stores, what: Sequence[str], *, since: str | None = None, json: bool = False) -> bool:
    """Is the import wanted? Asked where it is the first one here, finds something, and somebody can answer."""
    if json or not sys.stdin.isatty() or not diagnostics.is_terminal() or not is_first(stores):
        return True
    from raddle.wiring.importing import dry_run  # noqa: PLC0415  the import loads it next

    preview = dry_run(stores, what, since=since)
    if not preview.agents:
        return True
    rows = [
        (f"  {row.agent}", words.count(row.sessions, "session"), words.size(row.size))
        for row in preview.agents
    ]
    file = words.short_path(str(stores.paths.config_file))
    diagnostics.say("Found on this machine:")
    for line in words.table(rows, (40, 20, 20), styles=(None, None, None)):
        diagnostics.say(line)
    diagnostics.say(
        f"They are copied into {words.short_path(str(stores.paths.data_dir))}.\n"
        "The agents' own files stay as they are, and nothing leaves this machine."
    )
    diagnostics.say(_rules(stores, file))
    if click.confirm("Import them now?", default=True, err=True):
        return True
    diagnostics.say("nothing was imported")
    return False


def is_first(stores: Stores) -> bool:
    """Was nothing imported here before? A ledger that is damaged says that something was."""
    try:
        return not stores.ledger.entries()
    except BrokenFormat:
        return False


def _rules(stores: Stores, file: str) -> str:
    config = stores.config
    count = len(config.import_exclude) + len(config.private_workspaces) + len(config.private_remotes)
    if count:
        return f"What {file} leaves out or keeps private is kept to: {words.count(count, 'rule')}."
    return (
        f"To leave some out, or keep some private, first write rules into\n{file}:\n"
        '  [import]\n  exclude = ["~/clients/**"]\n  [private]\n  workspaces = ["~/secret/**"]'
    )
