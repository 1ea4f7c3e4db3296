"""`raddle config`: every setting, and which file, variable or default it comes from."""

from __future__ import annotations

from typing import Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import as_json
from raddle.config import load_config


@click.group(
    invoke_without_command=True,
    help="""Show every setting, and which file, variable or default it comes from.

    Settings are made in config.toml or by RADDLE_ variables: docs/reference/settings.md says which there are.""",
)
@as_json
@click.pass_context
def config(ctx: click.Context, json: bool) -> None:
    """Without a command of its own: the same as `raddle config show`."""
    if ctx.invoked_subcommand is None:
        show_settings(json=json)


@config.command(
    help="Every value, with the file, variable or default it comes from. Secrets are never shown."
)
@as_json
def show(json: bool) -> None:
    """Print the settings."""
    show_settings(json=json)


def show_settings(*, json: bool) -> None:
    """Print the settings; warnings about the file go to stderr."""
    loaded = load_config()
    for warning in loaded.warnings:
        diagnostics.warn(warning)
    if json:
        output.json(loaded.shown())
        return
    rows = [
        (
            setting.name,
            words.short_path(words.one_line(_worded(setting.value))),
            setting.source
            if setting.source == "default"
            else words.short_path(words.one_line(setting.where)),
        )
        for setting in loaded.shown()
    ]
    lines = words.table(
        rows, (24, 200, 200), styles=("bold", None, "dim"), width=output.columns(), shrink=(1, 2)
    )
    for line in lines:
        output.styled(line)
    file = loaded.paths.config_file
    there = "" if file.exists() else ", which is not there yet"
    diagnostics.suggest(f"settings are made in {words.short_path(str(file))}{there}")


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
