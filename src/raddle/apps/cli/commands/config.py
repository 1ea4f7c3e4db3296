"""`raddle config show`: every setting, and which file, variable or default it comes from."""

from __future__ import annotations

from typing import Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.config import load_config


@click.group(help="Show every setting and where it comes from.")
def config() -> None:
    """The commands of `raddle config`."""


@config.command(
    help="Every value, with the file, variable or default it comes from. Secrets are never shown."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array of {name, value, source, where}.")
def show(as_json: bool) -> None:
    """Print the settings; warnings about the file go to stderr."""
    loaded = load_config()
    for warning in loaded.warnings:
        diagnostics.warn(warning)
    if as_json:
        output.json(loaded.shown())
        return
    rows = [
        (
            setting.name,
            _worded(setting.value),
            setting.source if setting.source == "default" else setting.where,
        )
        for setting in loaded.shown()
    ]
    for line in words.table(rows, (24, 60, 60), styles=("bold", None, "dim")):
        output.styled(line)


def _worded(value: Any) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return "on" if value else "off"
        case tuple() | list():
            return ", ".join(value) or "–"
        case _:
            return str(value)
