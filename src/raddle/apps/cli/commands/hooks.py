"""`raddle hooks`: have an agent call raddle as its sessions go on, and what it calls then."""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raddle.actions.importing.agent_names import SHORT_FOR
from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import KnownName, as_json
from raddle.config import load_config
from raddle.model.errors import InvalidInput, RaddleError
from raddle.wiring import open_stores

if TYPE_CHECKING:
    from raddle.actions.ports import Finding
    from raddle.wiring.hooks import HookState, Plan

_AGENTS = ("claude-code", "codex", "gemini-cli")
_MOST_BYTES = 16 << 20
"""More than an agent tells of a turn."""
_MOST_SECONDS = 2.0
"""So long an agent may take to say it: one that leaves our stdin open is not waited for."""
_PIECE_BYTES = 1 << 16


_agent = click.argument(
    "agent",
    metavar="AGENT",
    type=KnownName(
        "agent",
        _AGENTS,
        SHORT_FOR,
        what="agent whose hooks raddle knows",
        else_="`raddle import --watch` follows every agent",
    ),
)
_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.group(
    help="""Have an agent call raddle as its sessions go on: each turn is here as soon as it is over.

    AGENT is claude-code, codex or gemini-cli. It is an entry in the agent's settings, shown before it
    is made.""",
)
def hooks() -> None:
    """Commands on hooks."""


@hooks.command(
    name="list",
    help="Which agents call raddle, and where that is set.",
)
@as_json
def list_(json: bool) -> None:
    """Print a line for each agent."""
    from raddle.wiring.hooks import states  # noqa: PLC0415

    rows = states(load_config())
    if json:
        output.json(rows)
        return
    lines = words.table([_cells(row) for row in rows], (24, 60, 400), styles=("bold", None, None))
    for line, row in zip(lines, rows, strict=True):
        output.styled(line)
        for note in (*row.notes, *([row.problem] if row.problem else [])):
            diagnostics.note(words.one_line(note))


def _cells(row: HookState) -> tuple[str, str, str]:
    told = f"on {', '.join(row.events)}" if row.is_installed else "not installed"
    where = words.short_path((*row.files, row.folder)[0])
    return row.agent, told if row.is_there else "not found on this machine", words.one_line(where)


@hooks.command(
    help="""Have AGENT call raddle at the end of each turn and each session.

    What would change in its settings is shown first; -y answers. Everything else in them stays as it is, comments
    too. Installing again changes nothing, or the path where raddle moved.""",
)
@_agent
@click.option("--notify", is_flag=True, help="Codex: by its older `notify`, which asks for no trust.")
@_yes
@as_json
def install(agent: str, notify: bool, yes: bool, json: bool) -> None:
    """Show the change, ask, make it."""
    from raddle.wiring.hooks import plan_install, states  # noqa: PLC0415

    config = load_config()
    argv = [*this_program(), "hooks", "run", agent]
    _change(plan_install(config, agent, argv, as_notify=notify), yes=yes, json=json, done="installed")
    for row in states(config):
        if row.agent == agent:
            for note in row.notes:
                diagnostics.note(words.one_line(note))


@hooks.command(
    help="Take out of AGENT's settings what install put in, and nothing else. It asks; -y answers."
)
@_agent
@_yes
@as_json
def remove(agent: str, yes: bool, json: bool) -> None:
    """Show the change, ask, make it."""
    from raddle.wiring.hooks import plan_removal  # noqa: PLC0415

    _change(plan_removal(load_config(), agent), yes=yes, json=json, done="removed")


def _change(plan: Plan, *, yes: bool, json: bool, done: str) -> None:
    from raddle.wiring.hooks import carry_out  # noqa: PLC0415

    if not json:
        output.write(_fit(plan.diff))
    is_meant = bool(plan.changes) and (yes or _is_meant(plan))
    if is_meant:
        carry_out(plan)
    if json:
        answer = {"agent": plan.agent, "files": plan.files, "diff": plan.diff, "is_written": is_meant}
        output.json(answer)
    elif is_meant:
        diagnostics.say(
            f"{done} in {', '.join(words.short_path(words.one_line(each)) for each in plan.files)}"
        )
    else:
        diagnostics.say("nothing was written" if plan.changes else "nothing to change: it is as you want it")


def _fit(diff: str) -> str:
    """Fit for a terminal: what a settings file holds must not steer it."""
    return words.safe_lines(diff)


def _is_meant(plan: Plan) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("this asks before it writes, and nobody is here to answer", "say -y to write it")
    return click.confirm(f"Write this into the settings of {plan.agent}?", err=True)


def this_program() -> list[str]:
    """How an agent calls this very raddle, wherever it stands then."""
    places = [Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent]
    ours = next((place / "raddle" for place in places if (place / "raddle").is_file()), None)
    # -P: what lies in the folder that the agent works in is no module of ours.
    return [str(ours)] if ours is not None else [sys.executable, "-P", "-m", "raddle"]


class _NeverFails(click.Command):
    """A command that an agent calls: also where its words do not fit, it says so in the log alone."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Its words, read. Exit with 0 where they cannot be."""
        agent = next(iter(args), "")
        try:
            return super().make_context(info_name, list(args), parent, **extra)
        except click.ClickException as error:
            _tell_log(agent, error.format_message())
        except RaddleError as error:
            _tell_log(agent, error.message)
        _go_on(agent)
        raise click.exceptions.Exit(0)


@hooks.command(
    cls=_NeverFails,
    help="""What AGENT calls: reads on stdin what it tells of a session, and brings that session in.

    It goes on by itself and comes back at once; it never fails the agent, and says what went wrong in raddle's log.""",
)
@_agent
@click.argument("payload", required=False)
@click.option("--here", is_flag=True, hidden=True)
def run(agent: str, payload: str | None, here: bool) -> None:
    """Answer the agent, and have the session brought in; with `here`, do that."""
    try:
        if here:
            _bring_in(agent)
        else:
            _set_off(agent, payload)
    except RaddleError as error:
        _tell_log(agent, f"{error.code}: {error.message}")
    except Exception as error:  # noqa: BLE001  an agent must not suffer from a mistake of ours
        _tell_log(agent, f"a mistake of raddle: {_where(error)}")
    if not here:
        _go_on(agent)


def _go_on(agent: str) -> None:
    """Codex and Gemini CLI want JSON, and read this as: go on."""
    try:
        output.line("{}")
        output.finish()
    except output.ReaderGone:
        _tell_log(agent, "nobody read the answer")
    except RaddleError as error:
        _tell_log(agent, error.message)


def _tell_log(agent: str, what: str) -> None:
    from raddle.wiring.captures import note  # noqa: PLC0415

    note(words.cut(words.one_line(agent), 40), words.one_line(what))


def _where(error: Exception) -> str:
    """The kind of error and its place; not its message, which may quote a conversation."""
    import traceback  # noqa: PLC0415  rare

    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename}:{frame.lineno}"


def _set_off(agent: str, payload: str | None) -> None:
    from raddle.wiring.captures import set_off, told_by  # noqa: PLC0415

    data = _payload() if payload is None else payload.encode("utf-8", "replace")
    told = told_by(agent, data)
    if told is None:
        raise InvalidInput(f"{agent} told of no session in {len(data):,} bytes")
    set_off(told)


def _payload() -> bytes:
    """What stdin says until it is closed, as far as that is soon and no more than a turn needs."""
    if sys.stdin.isatty():
        return b""
    try:
        number = sys.stdin.fileno()
    except (OSError, ValueError):  # no stream of the system's: it waits for nobody
        return sys.stdin.buffer.read(_MOST_BYTES)
    data, ends = bytearray(), time.monotonic() + _MOST_SECONDS
    while len(data) < _MOST_BYTES:
        ready, _, _ = select.select([number], [], [], max(ends - time.monotonic(), 0))
        piece = os.read(number, _PIECE_BYTES) if ready else b""
        if not piece:
            break
        data += piece
    return bytes(data)


def _bring_in(agent: str) -> None:
    from raddle.wiring.captures import capture, handed_on  # noqa: PLC0415

    def report(finding: Finding) -> None:
        _tell_log(agent, f"{finding.path}: {finding.what}")

    with open_stores(report=report) as stores:
        capture(stores, handed_on(sys.stdin.buffer.read(_MOST_BYTES)))
