"""Options that the commands of a project's memory share, each worded once, and the store that they work with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from raddle.apps.cli import diagnostics
from raddle.apps.cli.options import Decorator
from raddle.wiring import open_stores

STORE_HELP = "The folder of the store; else RADDLE_STORE, else the one that this project's marker names."

store_option = click.option("--store", "store_path", metavar="PATH", help=STORE_HELP)
"""For commands that find or make a store themselves; the others have `with_memory`."""

agent_option = click.option(
    "--agent", metavar="NAME", envvar="RADDLE_AGENT", help="The agent on whose behalf this is written."
)


def with_memory(command: Callable[..., Any], *, may_be_broken: bool = False) -> Callable[..., Any]:
    """Hand a command the opened store as its first argument; adds `--store`. `may_be_broken`: for who mends it."""

    @store_option
    @functools.wraps(command)
    def run(*args: Any, store_path: str | None, **kwargs: Any) -> Any:
        from raddle.wiring.memory import open_memory  # noqa: PLC0415

        with open_stores(report=diagnostics.found) as stores:
            memory = open_memory(stores, store_path, may_be_broken=may_be_broken)
            return command(memory, *args, **kwargs)

    return run


def phase_option(help: str = "The phase; else the one that is active.") -> Decorator:  # noqa: A002
    """`--phase`, which most commands of a run can do without."""
    return click.option("--phase", metavar="PHASE", help=help)


def _not_empty(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """An empty value is a variable that a script forgot to set, and means no run at all."""
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty", param=parameter)
    return value


run_option = click.option(
    "--run",
    "run_id",
    metavar="RUN",
    callback=_not_empty,
    help="The run, or the start of its id; else the newest one.",
)

file_argument = click.Path(path_type=Path)
