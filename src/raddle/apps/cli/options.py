"""Arguments and options that several commands share, each worded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from raddle.apps.cli import output

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

as_json = click.option("--json", "json", is_flag=True, help="Print JSON, and errors as JSON on stderr.")
thread_argument = click.argument("thread", metavar="ID")
text_argument = click.argument(
    "text", metavar="TEXT", callback=lambda ctx, param, value: output.text_or_stdin(value)
)


def message_option(name: str, help_text: str, *, default: str = "tip") -> Decorator:
    """An option that names a message by its id or the start of it."""
    return click.option(name, default=default, show_default=bool(default), metavar="MESSAGE", help=help_text)
