"""`raddle hooks`: have an agent call raddle as its sessions go on, and what it calls then."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import TextType, as_json, with_stores
from raddle.config import load_config
from raddle.model.errors import InvalidInput
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.wiring.hooks import Plan

_AGENTS = ("claude-code", "codex", "gemini-cli")
_MOST_BYTES = 16 << 20
"""More than an agent tells of a turn."""


class _Agent(TextType):
    """An agent that has hooks; `gemini` is short for `gemini-cli`."""

    name = "agent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Its name, as `raddle import` has it."""
        name = "gemini-cli" if value == "gemini" else str(value)
        if name not in _AGENTS:
            raise InvalidInput(
                f"{words.cut(words.one_line(name), 40)!r} is no agent whose hooks raddle knows",
                f"there are {', '.join(_AGENTS)}; `raddle import --watch` follows every agent",
            )
        return name


_agent = click.argument("agent", metavar="AGENT", type=_Agent())
_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.group(
    help="""Have an agent call raddle as its sessions go on: each turn is here as soon as it is over.

    AGENT is claude-code, codex or gemini-cli. It is the one thing that raddle writes where agents keep theirs:
    an entry in their settings, shown before it is made.""",
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
    for row in rows:
        where = words.short_path((*row.files, row.folder)[0])
        told = f"on {', '.join(row.events)}" if row.is_installed else "not installed"
        if not row.is_there:
            told = "not found on this machine"
        output.line(f"{row.agent:12} {told:24} {words.one_line(where)}")
        for note in (*row.notes, *([row.problem] if row.problem else [])):
            diagnostics.note(words.one_line(note))


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
    argv = [*_program(), "hooks", "run", agent]
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
        raise InvalidInput("hooks asks before it writes, and nobody is here to answer", "say -y to write it")
    return click.confirm(f"Write this into the settings of {plan.agent}?", err=True)


def _program() -> list[str]:
    """How the agent calls this very raddle, wherever it stands then."""
    places = [Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent]
    ours = next((place / "raddle" for place in places if (place / "raddle").is_file()), None)
    # -P: what lies in the folder that the agent works in is no module of ours.
    return [str(ours)] if ours is not None else [sys.executable, "-P", "-m", "raddle"]


@hooks.command(
    help="""What AGENT calls: reads on stdin what it tells of a session, and brings that session in.

    It goes on by itself and comes back at once; it never fails the agent, and says what went wrong in raddle's log.""",
)
@_agent
@click.argument("payload", required=False)
@click.option("--here", is_flag=True, hidden=True)
@click.pass_context
def run(ctx: click.Context, agent: str, payload: str | None, here: bool) -> None:
    """Answer the agent, and have the session brought in; with `here`, do that."""
    if here:
        ctx.invoke(_bring_in)
        return
    try:
        _set_off(agent, payload)
    except Exception as error:  # noqa: BLE001  an agent must not suffer from a mistake of ours
        diagnostics.bug(error, as_json=False)
    output.line("{}")  # Codex and Gemini CLI want JSON, and read this as: go on


def _set_off(agent: str, payload: str | None) -> None:
    from raddle.wiring.captures import set_off, told_by  # noqa: PLC0415

    data = _payload() if payload is None else payload.encode("utf-8", "replace")
    told = told_by(agent, data)
    if told is None:
        diagnostics.say(f"{agent} told of no session: nothing to do")
    else:
        set_off(told)


def _payload() -> bytes:
    return b"" if sys.stdin.isatty() else sys.stdin.buffer.read(_MOST_BYTES)


@with_stores
def _bring_in(stores: Stores) -> None:
    from raddle.wiring.captures import capture, handed_on  # noqa: PLC0415

    capture(stores, handed_on(sys.stdin.buffer.read(_MOST_BYTES)))
