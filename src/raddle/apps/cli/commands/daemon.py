"""`raddle daemon`: raddle at work by itself; what it does, how it is ended, and how the system starts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import as_json, warn_of_settings
from raddle.config import Config, load_config
from raddle.model.clock import format_time, system_clock
from raddle.model.errors import InvalidInput
from raddle.wiring import open_stores

if TYPE_CHECKING:
    from raddle.apps.daemon.doorkeeper import AgentServer
    from raddle.wiring.daemon_state import DaemonState, DaemonStatus


@click.group(
    invoke_without_command=True,
    help="""Stay, bring in each turn as agents write it, and keep it in step with the server: until Ctrl-C.

    Without a server it only imports. The memories of your projects that this machine knows it keeps in step with their
    git remotes. It never asks: a sync that would delete much is left to `raddle sync` and `raddle store sync`. One
    daemon works on a data folder; `raddle daemon --install` has the system start it whenever you sign in.""",
)
@click.option("--install", is_flag=True, help="Have the system start it: a systemd unit, or a launchd agent.")
@click.option("--uninstall", is_flag=True, help="Take out exactly that.")
@click.pass_context
def daemon(ctx: click.Context, install: bool, uninstall: bool) -> None:
    """Run it, unless something else was asked for."""
    if ctx.invoked_subcommand is not None:
        if install or uninstall:
            raise click.UsageError("--install and --uninstall go with no subcommand", ctx)
        return
    if install and uninstall:
        raise click.UsageError("--install and --uninstall are one too many", ctx)
    config = load_config()
    if install:
        _install(config)
    elif uninstall:
        _uninstall(config)
    else:
        _run(config)


def _run(config: Config) -> None:
    from raddle.apps.cli.first_import import may_import  # noqa: PLC0415  the help needs none of these
    from raddle.apps.daemon.running import run  # noqa: PLC0415

    with open_stores(config, report=diagnostics.found) as stores:
        warn_of_settings(stores)
        if not may_import(stores, ()):
            return
    run(config, say=_say, report=diagnostics.found, agents=_agent_server())


def _agent_server() -> AgentServer | None:
    """What serves agents; None where it is not installed."""
    from raddle.apps.cli.commands.mcp import has_mcp  # noqa: PLC0415  as above
    from raddle.apps.mcp_server.door import Door  # noqa: PLC0415

    return Door() if has_mcp() else None


def _say(text: str) -> None:
    diagnostics.say(words.one_line(text))


def start_in_background(config: Config) -> int:
    """Start the daemon of these settings as a process of its own, once; its process id. StorageError where it fails."""
    from raddle.wiring.daemon import start_in_background as start  # noqa: PLC0415

    return start(config)


@daemon.command(help="Say whether it is at work here, and what it did last.")
@as_json
def status(json: bool) -> None:
    """Print it."""
    from raddle.wiring.daemon_state import status_of  # noqa: PLC0415

    found = status_of(load_config().paths)
    if json:
        output.json(as_plain(found))
        return
    if not found.is_running:
        output.line("no daemon is at work here (`raddle daemon` starts one)")
    else:
        since = "" if found.state is None else f", since {_ago(found.state.since)}"
        output.line(f"at work: process {found.pid}{since}")
    if found.state is not None:
        _tell_state(found.state, is_running=found.is_running)
    output.line(f"log: {words.short_path(str(found.log))}")


def _tell_state(state: DaemonState, *, is_running: bool) -> None:
    server = state.server or ("none: offline" if state.is_offline else "none")
    output.line(f"server: {server}{' (listening)' if is_running and state.is_listening else ''}")
    output.line(f"last import: {_ago(state.last_import)}")
    if state.server:
        output.line(f"last sync: {_ago(state.last_sync)}")
    if state.last_memory_sync is not None:
        output.line(f"last sync of a memory: {_ago(state.last_memory_sync)}")
    if is_running and state.agents:
        output.line(f"serves: {words.count(state.agents, 'agent')}")
    if state.pending:
        output.line(f"pending: {words.count(state.pending, 'thread')}")
    if state.note:
        output.line(words.one_line(f"note: {state.note}"))
    error = state.last_error
    if error is not None:
        over = ", over since" if error.is_over else ""
        output.line(words.one_line(f"last error: {error.message} ({error.part}, {_ago(error.at)}{over})"))
        if error.hint and not error.is_over:
            output.line(words.one_line(f"  {error.hint}"))


def _ago(at: int | None) -> str:
    return "never" if at is None else words.ago(format_time(at), system_clock())


def _time(at: int | None) -> str:
    return "" if at is None else format_time(at)


def as_plain(found: DaemonStatus) -> dict[str, Any]:
    """The status in its documented JSON shape."""
    state = found.state
    error = None if state is None else state.last_error
    return {
        "is_running": found.is_running,
        "pid": found.pid,
        "since": _time(state.since if state is not None and found.is_running else None),
        "version": None if state is None else state.version,
        "server": None if state is None else state.server or None,
        "is_offline": state is not None and state.is_offline,
        "agents": state.agents if found.is_running and state is not None else 0,
        "is_listening": bool(found.is_running and state is not None and state.is_listening),
        "last_import": _time(None if state is None else state.last_import),
        "last_sync": _time(None if state is None else state.last_sync),
        "last_memory_sync": _time(None if state is None else state.last_memory_sync),
        "pending": None if state is None else state.pending,
        "last_error": None
        if error is None
        else {
            "part": error.part,
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "at": _time(error.at),
            "is_over": error.is_over,
        },
        "note": "" if state is None else state.note,
        "log": str(found.log),
    }


@daemon.command(help="End the daemon of this data folder, and wait until it has ended.")
@as_json
def stop(json: bool) -> None:
    """Print its process id."""
    from raddle.wiring.daemon_state import stop_daemon  # noqa: PLC0415

    pid = stop_daemon(load_config().paths)
    output.answer(json, {"pid": pid}, f"ended the daemon (process {pid})")


def _install(config: Config) -> None:
    from raddle.wiring.daemon_unit import install, unit_of  # noqa: PLC0415

    if config.token is not None:
        raise InvalidInput(
            "the token comes from RADDLE_TOKEN, which the system's daemon would not have",
            "unset it and sign in with `raddle login`, then install",
        )
    unit = unit_of(config)
    output.line(f"{words.short_path(str(unit.file))}:")
    output.write(words.safe_lines(unit.text))
    done = install(config, unit)
    diagnostics.say("installed" if done.is_written else "it was installed like that already")
    _tell(
        done.is_done,
        done.commands,
        "it is at work, and will be whenever you sign in",
        "to have it started, type:",
    )
    for hint in done.hints:
        diagnostics.suggest(hint)


def _uninstall(config: Config) -> None:
    from raddle.wiring.daemon_unit import uninstall, unit_of  # noqa: PLC0415

    unit = unit_of(config)
    done = uninstall(unit)
    if not done.is_written:
        diagnostics.say("nothing was installed")
        return
    diagnostics.say(f"took out {words.short_path(str(unit.file))}")
    _tell(done.is_done, done.commands, "it is at work no more", "to have the system forget it, type:")


def _tell(is_done: bool, commands: tuple[str, ...], well: str, else_type: str) -> None:
    if is_done:
        diagnostics.say(well)
        return
    diagnostics.say(else_type)
    for command in commands:
        diagnostics.say(f"  {command}")
