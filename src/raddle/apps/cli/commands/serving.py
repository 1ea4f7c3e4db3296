"""`raddle serve`: a sync server of one's own, and what its operator does besides."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import Words, as_json
from raddle.config import Config, load_config
from raddle.model.clock import format_time, system_clock
from raddle.model.errors import InvalidInput, NotFound, UserError
from raddle.model.ids import MonotonicIds

_EXTRA = ("litestar", "uvicorn", "psycopg", "argon2")
PORT = 7370


@click.group(
    invoke_without_command=True,
    help="""Run a sync server, until it is told to end.

    Its threads are in PostgreSQL: the one that RADDLE_DATABASE_URL names, else one that is started for it. On an empty
    database a one-time link to the first account is printed.""",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port; 0: any free one.",
)
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes that serve."
)
@click.option(
    "--public-url", default="", metavar="URL", help="How people reach it, as https://raddle.example.org."
)
@click.option(
    "--behind-proxy", is_flag=True, help="Believe X-Forwarded-For and -Proto, which a proxy writes."
)
@click.option(
    "--mcp",
    "with_mcp",
    is_flag=True,
    help="Also answer agents that speak MCP, at /mcp: threads, by a token of their person's.",
)
@click.option("--in-background", is_flag=True, hidden=True)
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int,
    workers: int,
    public_url: str,
    behind_proxy: bool,
    with_mcp: bool,
    in_background: bool,
) -> None:
    """Serve, unless a subcommand was asked for. `in_background`: `raddle up` started it, and waits for its note."""
    require_server()
    if ctx.invoked_subcommand is not None:
        return
    import logging  # noqa: PLC0415  the help of other commands needs none of these

    from raddle.server.http.web import WebSettings  # noqa: PLC0415
    from raddle.server.serving import serve as run  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    web = WebSettings(public_url=public_url, is_behind_proxy=behind_proxy)
    config = load_config()
    with contextlib.ExitStack() as stack:
        ready = _in_background(config, stack) if in_background else _ready
        mcp = _mcp() if with_mcp else None
        run(config, host=host, port=port, workers=workers, web=web, mcp=mcp, ready=ready)


def _mcp() -> Any:
    """What answers agents; UserError where its parts are not installed."""
    if importlib.util.find_spec("mcp") is None:
        raise UserError("the parts for MCP are not installed", "install them: pip install 'raddle[mcp]'")
    from raddle.apps.mcp_server.http import open_door  # noqa: PLC0415  1 s that only who asks for it pays

    return open_door


def _in_background(config: Config, stack: contextlib.ExitStack) -> Callable[[str, str | None], None]:
    """Be the server of `raddle up` until `stack` ends; what notes where it listens."""
    from raddle.wiring.own_server import being_own_server, note_address  # noqa: PLC0415

    stack.enter_context(being_own_server(config.paths))
    return lambda address, _: note_address(config.paths, address)


def _ready(address: str, setup: str | None) -> None:
    if setup is not None:
        diagnostics.say(f"no account yet: {setup} makes the first one (good for one day, once)")
    diagnostics.say(f"listening on {address}")


def require_server() -> None:
    """UserError where what the server needs is not installed."""
    if any(importlib.util.find_spec(name) is None for name in _EXTRA):
        raise UserError("the server's parts are not installed", "install them: pip install 'raddle[server]'")


@serve.group(help="Accounts of this server.")
def user() -> None:
    """Its subcommands do it."""


@user.command(
    help="Make an account. It signs in with a password (asked for, or with --password-stdin), or not at all."
)
@click.argument("name", type=Words())
@click.option("--password-stdin", is_flag=True, help="Read the password from stdin.")
@click.option("--admin", is_flag=True, help="May manage the server.")
@as_json
def add(name: str, password_stdin: bool, admin: bool, json: bool) -> None:
    """Print the id."""
    from raddle.server.accounts.users import create_user  # noqa: PLC0415

    password = _password(password_stdin)

    def make(connection: Any) -> str:
        new_id = MonotonicIds(system_clock)
        return str(create_user(connection, name, password, new_id=new_id, is_admin=admin))

    made = _with_database(make)
    output.answer(json, {"id": made, "name": name}, f"made the account {name}")
    if password is None:
        diagnostics.note(f"it has no password: `raddle serve user password {name}` gives one")


@user.command(
    help="Set NAME's password (asked for, or with --password-stdin), with which it signs in on the web pages."
)
@click.argument("name", type=Words())
@click.option("--password-stdin", is_flag=True, help="Read the password from stdin.")
@as_json
def password(name: str, password_stdin: bool, json: bool) -> None:
    """Print what was done."""
    from raddle.server.accounts.users import set_password  # noqa: PLC0415

    given = _password(password_stdin)
    if given is None:
        raise InvalidInput("nobody is here to type a password", "give it with --password-stdin")

    def give(connection: Any) -> None:
        set_password(connection, _person(connection, name), given)

    _with_database(give)
    output.answer(json, {"name": name}, f"set the password of {name}")


@user.command("list", help="List the accounts, by name.")
@as_json
def list_(json: bool) -> None:
    """Print them."""
    from raddle.server.accounts.users import list_users  # noqa: PLC0415

    found = _with_database(list_users)
    if json:
        output.json(
            [
                {
                    "id": str(one.id),
                    "name": one.name,
                    "is_admin": one.is_admin,
                    "has_password": one.has_password,
                    "is_disabled": one.is_disabled,
                    "created_at": format_time(round(one.created_at.timestamp() * 1_000_000)),
                    "threads": one.threads,
                }
                for one in found
            ]
        )
        return
    rows = [
        (
            words.one_line(one.name),
            words.count(one.threads, "thread"),
            f"made {words.ago(format_time(round(one.created_at.timestamp() * 1_000_000)), system_clock())}",
            ", ".join(
                word
                for word, is_so in (
                    ("admin", one.is_admin),
                    ("no password", not one.has_password),
                    ("disabled", one.is_disabled),
                )
                if is_so
            ),
        )
        for one in found
    ]
    for text in words.table(
        rows, (60, 20, 30, 40), styles=("bold", None, "dim", None), width=output.columns(), shrink=(0,)
    ):
        output.styled(text)


@user.command(
    help="Let nobody in as NAME any more: no password, no device, no browser. What is theirs stays."
)
@click.argument("name", type=Words())
@as_json
def disable(name: str, json: bool) -> None:
    """Print what was done."""
    from raddle.server.accounts.users import disable_user  # noqa: PLC0415

    _with_database(lambda connection: disable_user(connection, _person(connection, name)))
    output.answer(json, {"name": name, "is_disabled": True}, f"nobody is let in as {name} any more")
    diagnostics.suggest(f"`raddle serve user enable {name}` lets them in again")


@user.command(help="Let NAME in again, by password and by the devices that were not revoked.")
@click.argument("name", type=Words())
@as_json
def enable(name: str, json: bool) -> None:
    """Print what was done."""
    from raddle.server.accounts.users import enable_user  # noqa: PLC0415

    _with_database(lambda connection: enable_user(connection, _person(connection, name)))
    output.answer(json, {"name": name, "is_disabled": False}, f"{name} is let in again")


def _person(connection: Any, name: str) -> Any:
    """Who is called so; NotFound where nobody is."""
    from raddle.server.accounts.users import find_user  # noqa: PLC0415

    person = find_user(connection, name)
    if person is None:
        raise NotFound("account", name, f"`raddle serve user add {name}` makes it")
    return person


@serve.command(help="Print a new token of NAME's once, for a program. `raddle devices` lists and revokes it.")
@click.argument("name", type=Words())
@click.option("--device", default="a program", show_default=True, help="What it is listed as.")
@as_json
def token(name: str, device: str, json: bool) -> None:
    """Print the token."""
    from raddle.model.protocol.signing_in import THREADS  # noqa: PLC0415
    from raddle.server.accounts.devices import mint  # noqa: PLC0415

    def make(connection: Any) -> str:
        return mint(
            connection, _person(connection, name), device, [THREADS], new_id=MonotonicIds(system_clock)
        )

    made = _with_database(make)
    output.answer(json, {"token": made}, made)


@serve.command(
    help="Bring the database to the form that this raddle needs; a server does it by itself at its start."
)
@click.option(
    "--finish", is_flag=True, help="Also take away what only older servers use: none may be running."
)
@as_json
def migrate(finish: bool, json: bool) -> None:
    """Print what was applied."""
    from raddle.server.tables.migrating import migrate as bring  # noqa: PLC0415

    done = _with_database(lambda connection: bring(connection, finish=finish))
    output.answer(json, {"applied": done}, "\n".join(done) or "nothing to do")


@serve.command(
    "restored",
    short_help="Say that a backup was put back.",
    help="""Say that this database was put back to a backup, with all servers down: devices then send again what it
    lost. A restore into another cluster is noticed without this.""",
)
@as_json
def restored(json: bool) -> None:
    """Begin another epoch."""
    from raddle.server.threads.feed import begin_epoch  # noqa: PLC0415

    epoch = _with_database(lambda connection: begin_epoch(connection, MonotonicIds(system_clock)))
    output.answer(json, {"hub_epoch": epoch}, "every device will compare all its threads at its next sync")


def _with_database(step: Any) -> Any:
    from raddle.server.serving import database_of  # noqa: PLC0415
    from raddle.server.tables.database import connect  # noqa: PLC0415

    with database_of(load_config()) as url, connect(url) as connection:
        return step(connection)


def _password(from_stdin: bool) -> str | None:
    if from_stdin:
        text = output.text_of_stdin()
        if not text:
            raise InvalidInput("stdin holds no password", "give it as one line")
        return text
    if not sys.stdin.isatty():
        return None
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
