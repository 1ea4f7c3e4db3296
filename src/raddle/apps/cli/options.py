"""Arguments and options that several commands share, each worded once, and the stores that commands work with."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.plain_json import mended
from raddle.model.errors import InvalidInput, RaddleError
from raddle.wiring import Stores, open_stores

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    TextType = click.ParamType[str]
else:
    TextType = click.ParamType  # no generic in click 8.1

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_LONGEST_ROLE = 40
MOST_ROWS = 1_000_000
"""More than anybody has; what is over it is a slip, and some of it would be too large a number for SQLite."""


def with_stores(command: Callable[..., Any]) -> Callable[..., Any]:
    """Hand a command the stores as its first argument, and close them after it; what they find is said."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        with open_stores(report=diagnostics.found) as stores:
            return command(stores, *args, **kwargs)

    return run


def warn_of_settings(stores: Stores) -> None:
    """Say what in the config file says nothing to this raddle: a rule that is misspelt keeps nothing private."""
    for warning in stores.config.warnings:
        diagnostics.warn(warning)


class Words(TextType):
    """Text as typed, to find something by; bytes that are not UTF-8 become U+FFFD."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, fit to be printed."""
        return mended(str(value))


class KnownName(TextType):
    """One of some names, or what is `short_for` one. What is none is InvalidInput: `what` says what it is not, `else_`
    what to do besides."""

    def __init__(
        self, name: str, known: tuple[str, ...], short_for: Mapping[str, str], *, what: str, else_: str
    ) -> None:
        self.name = name
        self._known, self._short_for, self._what, self._else = known, short_for, what, else_

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Its name, as the help has it."""
        name = self._short_for.get(str(value), str(value))
        if name not in self._known:
            raise InvalidInput(
                f"{words.cut(words.one_line(name), 40)!r} is no {self._what}",
                f"there are {', '.join(self._known)}; {self._else}",
            )
        return name


class KeptText(TextType):
    """Text as typed, to be kept just so: what is no text is refused, not changed."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, fit to be stored."""
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise output.not_utf_8("the text", len(os.fsencode(text[: error.start]))) from error
        return _without_nul(text)


class TextOrStdin(KeptText):
    """The same, or all of stdin where it is `-`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, fit to be stored."""
        if value != "-":
            return super().convert(value, param, ctx)
        if sys.stdin.isatty():
            diagnostics.suggest("type the text, then end it with Ctrl-D on a line of its own")
        return _without_nul(output.text_of_stdin())


def _without_nul(text: str) -> str:
    """`text`, which holds no NUL: no text that a person wrote has one, UTF-16 and programs do."""
    at = text.find("\0")
    if at >= 0:
        raise InvalidInput(
            f"the text holds a NUL character (character {at + 1:,}), so it is no plain text",
            "convert UTF-16: `iconv -f UTF-16 -t UTF-8 FILE | raddle …`; else take it out: `tr -d '\\0'`",
        )
    return text


class Role(KeptText):
    """Who says a turn: one short word."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The role in small letters."""
        role = super().convert(value, param, ctx)
        if not role.isprintable() or not role or len(role) > _LONGEST_ROLE or role.split() != [role]:
            raise InvalidInput(
                f"{words.cut(words.one_line(role), 40)!r} is not a role",
                "a role is one word: user, assistant, system, tool, or another",
            )
        return role


def complete_thread(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The newest threads whose id starts as typed, with their titles."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415  only a shell that completes needs it

    try:
        with open_stores() as stores:
            rows = stores.starting_with(incomplete)
            short = stores.short_ids(row.id for row in rows)
            return [
                CompletionItem(short[row.id], help=words.cut(words.one_line(row.title), 60)) for row in rows
            ]
    except RaddleError:  # a shell that completes shows no errors; the command itself will say it
        return []


as_json = click.option("--json", "json", is_flag=True, help="Print JSON, and errors as JSON on stderr.")
as_json_lines = click.option("--jsonl", is_flag=True, help="Print one JSON document a line.")
thread_argument = click.argument("thread", metavar="ID", type=Words(), shell_complete=complete_thread)
threads_argument = click.argument(
    "threads", metavar="ID…", nargs=-1, required=True, type=Words(), shell_complete=complete_thread
)
text_argument = click.argument("text", metavar="TEXT", type=TextOrStdin())
role_option = click.option("--role", default="user", show_default=True, type=Role(), help="Who says TEXT.")


attach_option = click.option(
    "--attach",
    "attached",
    multiple=True,
    metavar="FILE",
    type=click.Path(),
    help="Send this file with it; may be given several times.",
)
_ASKING = (
    click.option(
        "--with", "who", default="", metavar="NAME", type=Words(), help="Who answers; else as before."
    ),
    click.option("--model", default="", type=Words(), help="Another model than the responder's own."),
    click.option(
        "--policy", default="", type=Words(), help="Another policy of a deliberation, for this turn."
    ),
    click.option(
        "--budget",
        type=click.IntRange(1),
        metavar="TOKENS",
        help="Send no more of the conversation than that.",
    ),
)


def asking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that asks: `who`, `model`, `policy`, `budget`."""
    for option in reversed(_ASKING):
        command = option(command)
    return command


def limit_option(default: int, what: str, *, most: int = MOST_ROWS) -> Decorator:
    """`-n N`; `what` says what there are at most so many of."""
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(1, most),
        default=default,
        metavar="N",
        help=f"At most so many {what} ({default} unless said).",
    )


def message_option(name: str, help_text: str, *, default: str | None = None) -> Decorator:
    """An option that names a message by its id, or by the start or the end of it."""
    return click.option(
        name, default=default, show_default=bool(default), metavar="MESSAGE", type=Words(), help=help_text
    )


class AskingCommand(click.Command):
    """A command whose arguments are a query: `-word` leaves a word out and is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options first, then the query, its parts in the order they were typed."""
        options, asked = self._apart(ctx, args)
        return super().parse_args(ctx, [*options, "--", *asked])

    def _apart(self, ctx: click.Context, args: list[str]) -> tuple[list[str], list[str]]:
        known = {name: param for param in self.get_params(ctx) for name in param.opts}
        options: list[str] = []
        asked: list[str] = []
        waiting = list(reversed(args))
        while waiting:
            arg = waiting.pop()
            name, _, value = arg.partition("=")
            param = known.get(name if arg.startswith("--") else arg)
            if arg == "--":
                asked += reversed(waiting)
                break
            if param is not None:
                options.append(arg)
                if not value and isinstance(param, click.Option) and not param.is_flag and waiting:
                    options.append(waiting.pop())
            elif arg.startswith("--") or (arg[:2] == "-n" and arg[2:].isdigit()):
                options.append(arg)
            else:
                asked.append(arg)
        return options, asked
