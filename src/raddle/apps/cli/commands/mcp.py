"""`raddle mcp-serve` and `raddle mcp`: this machine's memory and threads for agents, and agents told of it."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Literal

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.commands.hooks import this_program
from raddle.apps.cli.options import KnownName, Words, as_json
from raddle.config import Config, load_config
from raddle.model.errors import InvalidInput, NotFound, StorageError, UserError

if TYPE_CHECKING:
    from raddle.wiring.mcp_registrations import Plan

_STDIN, _STDOUT = 0, 1
_CLIENTS = ("claude-code", "codex", "gemini", "opencode", "cursor", "vscode")
_SHORT_FOR = {"claude": "claude-code", "gemini-cli": "gemini", "code": "vscode"}
_MISSING = "what serving agents needs is not installed"
_INSTALL_IT = "install it: pip install 'raddle[mcp]'"


def has_mcp() -> bool:
    """Is what serving agents needs installed?"""
    return importlib.util.find_spec("mcp") is not None


@click.command(
    help="""Serve an agent over stdin and stdout, by the Model Context Protocol: the memory of the project that it works
    in, and that project's threads.

    An agent starts this itself (`raddle mcp install`). Where a daemon is at work it does the serving, which starts at
    once and shares what it has open. Private threads are shown to nobody unless you say so here.""",
)
@click.option("--workspace", type=Words(), metavar="PATH", help="The project's folder; else the current one.")
@click.option("--store", type=Words(), metavar="PATH", help="The memory, where no folder above names it.")
@click.option("--all-repositories", is_flag=True, help="Show the threads of every repository.")
@click.option("--include-private", is_flag=True, help="Show private threads too.")
@click.option("--no-daemon", is_flag=True, help="Serve in this process, also where a daemon is at work.")
def mcp_serve(
    workspace: str | None, store: str | None, all_repositories: bool, include_private: bool, no_daemon: bool
) -> None:
    """Serve until stdin ends."""
    config = load_config(workspace=workspace, store=store)
    _check_named(workspace, store)
    if no_daemon or not _relayed(config, all_repositories=all_repositories, include_private=include_private):
        _serve_here(config, all_repositories=all_repositories, include_private=include_private)


def _check_named(workspace: str | None, store: str | None) -> None:
    """NotFound now, for what is named here, and not with each thing that an agent asks."""
    from raddle.wiring.memory_places import is_store, named_folder  # noqa: PLC0415  the help needs neither

    if workspace is not None and not named_folder(workspace).is_dir():
        raise NotFound("folder", workspace, "--workspace names the project's folder")
    if store is not None and not is_store(named_folder(store)):
        raise NotFound(
            "memory at", store, "--store names its folder; `raddle store list` lists those of this machine"
        )


def _relayed(config: Config, *, all_repositories: bool, include_private: bool) -> bool:
    """Served by the daemon until the end; False where none does."""
    from raddle.apps.mcp_server.relay import Ending, relay  # noqa: PLC0415  the help needs none of these
    from raddle.wiring.mcp_door import call_daemon  # noqa: PLC0415

    connection = call_daemon(config, all_repositories=all_repositories, include_private=include_private)
    if connection is None:
        return False
    with connection:
        ending = relay(connection, _STDIN, _STDOUT)
    if ending is Ending.SERVER:
        raise StorageError("the daemon has ended this agent's session", "start the agent's servers again")
    return True


def _serve_here(config: Config, *, all_repositories: bool, include_private: bool) -> None:
    if not has_mcp():
        raise UserError(_MISSING, _INSTALL_IT)
    import logging  # noqa: PLC0415

    from raddle.apps.mcp_server.door import serve_here  # noqa: PLC0415
    from raddle.apps.mcp_server.relay import Ending  # noqa: PLC0415
    from raddle.apps.mcp_server.session import Access, Session  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="raddle mcp: %(message)s")
    access = Access(all_repositories=all_repositories, include_private=include_private)
    wire = os.dup(_STDOUT)
    os.dup2(2, _STDOUT)  # what a library prints must not stand between two messages
    if serve_here(Session(config, access=access), _STDIN, wire) is Ending.SERVER:
        raise InvalidInput("the client sent a message that has no end", "start the agent's servers again")


_client = click.argument(
    "client",
    metavar="CLIENT",
    type=KnownName(
        "client",
        _CLIENTS,
        _SHORT_FOR,
        what="client that raddle knows",
        else_="any other starts `raddle mcp-serve` over stdio",
    ),
)
_scope = click.option(
    "--scope",
    type=click.Choice(["project", "user"]),
    help="In the project, for all who have it, or for you alone.",
)
_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.group(
    help="""Register `raddle mcp-serve` with a client, so that its agents have the project's memory and its threads.

    CLIENT is claude-code, codex, gemini, opencode, cursor or vscode. One registration serves every project.""",
)
def mcp() -> None:
    """Commands on registrations."""


@mcp.command(
    help="""Have CLIENT start raddle's server for its agents.

    What would change in its settings is shown first; -y answers. Everything else in them stays as it is, comments too.
    It goes into the project's settings, which are committed, where CLIENT has such; codex has yours.""",
)
@_client
@_scope
@click.option("--force", is_flag=True, help="Also in the place of another server that is called raddle.")
@_yes
@as_json
def install(
    client: str, scope: Literal["project", "user"] | None, force: bool, yes: bool, json: bool
) -> None:
    """Show the change, ask, make it."""
    from raddle.wiring.mcp_registrations import plan_install  # noqa: PLC0415

    plan = plan_install(load_config(), client, this_program(), scope=scope, force=force)
    is_written = _change(plan, yes=yes, json=json, done="registered")
    if not json:
        for hint in plan.hints if is_written or not plan.changes else ():
            diagnostics.note(words.one_line(hint))
        if not has_mcp():
            diagnostics.warn(f"{_MISSING}: {_INSTALL_IT}")


@mcp.command(
    help="""Take out of CLIENT's settings what install put in, and nothing else. It asks; -y answers.

    Without --scope wherever it is registered: in the project, and for you.""",
)
@_client
@_scope
@_yes
@as_json
def uninstall(client: str, scope: Literal["project", "user"] | None, yes: bool, json: bool) -> None:
    """Show the change, ask, make it."""
    from raddle.wiring.mcp_registrations import plan_removal  # noqa: PLC0415

    _change(plan_removal(load_config(), client, scope=scope), yes=yes, json=json, done="taken out")


def _change(plan: Plan, *, yes: bool, json: bool, done: str) -> bool:
    """Show it, ask, make it; was it made?"""
    from raddle.wiring.mcp_registrations import carry_out  # noqa: PLC0415

    if not json:
        output.write(words.safe_lines(plan.diff))
    is_meant = bool(plan.changes) and (yes or _is_meant(plan))
    if is_meant:
        carry_out(plan)
    if json:
        answer = {"client": plan.client, "files": plan.files, "diff": plan.diff, "is_written": is_meant}
        output.json(answer)
    elif is_meant:
        files = ", ".join(words.short_path(words.one_line(each)) for each in plan.files)
        diagnostics.say(f"{done} in {files}")
    else:
        diagnostics.say("nothing was written" if plan.changes else "nothing to change: it is as you want it")
    return is_meant


def _is_meant(plan: Plan) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("this asks before it writes, and nobody is here to answer", "say -y to write it")
    return click.confirm(f"Write this into the settings of {plan.label}?", err=True)
