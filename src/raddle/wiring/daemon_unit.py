"""The daemon as the system starts it: one file of ours that systemd or launchd reads, and nothing else of theirs.

Owns that file: what stands in it, and that a file which another hand wrote is left alone.
"""

from __future__ import annotations

import os
import plistlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from raddle.adapters.files import find_bytes, make_folder, storage_error, write_atomic
from raddle.adapters.programs import run
from raddle.config import Config
from raddle.model.errors import ConflictError, InvalidInput, NotFound, RaddleError
from raddle.wiring.daemon import daemon_argv, daemon_environment
from raddle.wiring.daemon_state import stop_daemon

_MARK = "# Written by `raddle daemon --install`; `raddle daemon --uninstall` takes it out."
_LABEL = "raddle"
_SECONDS = 15.0
_NOT_OURS_TO_SET = frozenset({"HOME"})

System = Literal["systemd", "launchd"]


class Unit(NamedTuple):
    """What is installed: `name` is what the system calls it, `text` what stands in `file`."""

    system: System
    name: str
    file: Path
    text: str


class Outcome(NamedTuple):
    """What became of it. `is_written`: was the file written, or taken out? `is_done`: did the system hear of it? Else
    `commands` are what a person types."""

    is_written: bool
    is_done: bool
    commands: tuple[str, ...]
    hints: tuple[str, ...] = ()


def unit_of(config: Config, system: System | None = None) -> Unit:
    """What starts the daemon of these settings (None: of this system's kind)."""
    kind: System = system or ("launchd" if sys.platform == "darwin" else "systemd")
    # Each data folder has a daemon of its own; the usual one has the plain name.
    is_usual = config.origins["data_dir"].source == "default"
    name = _LABEL if is_usual else f"{_LABEL}-{config.paths.mark}"
    home = config.environment("HOME")
    if not home:
        raise InvalidInput("no home folder is known", "set HOME")
    settings = {
        variable: value
        for variable, value in daemon_environment(config).items()
        if variable not in _NOT_OURS_TO_SET
    }
    for value in (*settings.values(), *daemon_argv()):
        if not value.isprintable():
            raise InvalidInput(
                f"{value!r} cannot stand in a settings file of the system", "choose another name"
            )
    if kind == "launchd":
        file = Path(home, "Library", "LaunchAgents", f"{name}.plist")
        return Unit(kind, name, file, _plist(name, settings))
    base = config.environment("XDG_CONFIG_HOME")
    folder = Path(base) if base and Path(base).is_absolute() else Path(home, ".config")
    file = folder / "systemd" / "user" / f"{name}.service"
    return Unit(kind, name, file, _unit(settings))


def _unit(settings: dict[str, str]) -> str:
    lines = [
        _MARK,
        "[Unit]",
        "Description=raddle: keeps your agents' conversations, and in step with your server",
        "",
        "[Service]",
        f"ExecStart={' '.join(_quoted(part, is_command=True) for part in daemon_argv())}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in sorted(settings.items())),
        "Restart=on-failure",
        "RestartSec=30",
        "TimeoutStopSec=5",
        "Nice=5",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str, *, is_command: bool = False) -> str:
    """As systemd.syntax has it: `%` begins a specifier, in a command `$` a variable."""
    for character, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%")):
        text = text.replace(character, written)
    return f'"{text.replace("$", "$$") if is_command else text}"'


def _plist(name: str, settings: dict[str, str]) -> str:
    value = {
        "Label": name,
        "ProgramArguments": daemon_argv(),
        "EnvironmentVariables": settings,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ProcessType": "Background",
        "WorkingDirectory": "/",
    }
    return plistlib.dumps(value).decode()


def _is_ours(unit: Unit, data: bytes) -> bool:
    if unit.system == "systemd":
        return data.startswith(_MARK.encode())
    try:
        value = plistlib.loads(data)
    except (plistlib.InvalidFileException, ValueError):
        return False
    arguments = value.get("ProgramArguments") if isinstance(value, dict) else None
    return isinstance(arguments, list) and arguments[1:] == daemon_argv()[1:]


def _there(unit: Unit) -> bytes | None:
    """What is in the file now; None where there is none, ConflictError where it is not ours."""
    data = find_bytes(unit.file)
    if data is not None and not _is_ours(unit, data):
        raise ConflictError(
            f"{unit.file} is there, and raddle did not write it", "move it away, then try again"
        )
    return data


def install(config: Config, unit: Unit) -> Outcome:
    """Write the file and have the system start it, in place of a daemon that is at work already."""
    before = _there(unit)
    is_written = before != unit.text.encode()
    if is_written:
        make_folder(unit.file.parent)
        write_atomic(unit.file, unit.text.encode())
    commands = _start_commands(unit)
    is_done = False
    if _answers(unit):
        _end_the_one_at_work(config)
        is_done = _all_work(commands)
    hints: tuple[str, ...] = ()
    if unit.system == "systemd":
        hints = ("it ends when you sign out; `loginctl enable-linger` keeps it at work",)
    return Outcome(is_written, is_done, tuple(shlex.join(command) for command in commands), hints)


def _end_the_one_at_work(config: Config) -> None:
    try:
        stop_daemon(config.paths)
    except NotFound:
        return


def uninstall(unit: Unit) -> Outcome:
    """Have the system end it, and take the file out."""
    if _there(unit) is None:
        return Outcome(is_written=False, is_done=True, commands=())
    first, after = _end_commands(unit)
    is_done = _answers(unit) and _all_work(first)
    try:
        unit.file.unlink(missing_ok=True)
        _wanted(unit).unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, unit.file, "take out") from error
    is_done = is_done and _all_work(after)
    ends = first if unit.system == "launchd" else [["systemctl", "--user", "stop", unit.file.name]]
    return Outcome(True, is_done, tuple(shlex.join(command) for command in (*ends, *after)))


def _wanted(unit: Unit) -> Path:
    """The link that `systemctl enable` makes to a unit's file; without systemctl it would stay, and lead nowhere."""
    return unit.file.parent / "default.target.wants" / unit.file.name


def _start_commands(unit: Unit) -> list[list[str]]:
    if unit.system == "launchd":
        return [["launchctl", "bootstrap", _domain(), str(unit.file)]]
    name = unit.file.name
    return [
        ["systemctl", "--user", "daemon-reload"],
        ["systemctl", "--user", "enable", name],
        ["systemctl", "--user", "restart", name],
    ]


def _end_commands(unit: Unit) -> tuple[list[list[str]], list[list[str]]]:
    """(Before the file goes, after it is gone.)"""
    if unit.system == "launchd":
        return [["launchctl", "bootout", f"{_domain()}/{unit.name}"]], []
    name = unit.file.name
    return [["systemctl", "--user", "disable", "--now", name]], [["systemctl", "--user", "daemon-reload"]]


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _answers(unit: Unit) -> bool:
    """Is there a system of that kind that hears us? In a container, or over `su`, there is none."""
    if unit.system == "launchd":
        return _all_work([["launchctl", "print", _domain()]])
    return _all_work([["systemctl", "--user", "show-environment"]])


def _all_work(commands: Sequence[Sequence[str]]) -> bool:
    try:
        return all(run(command, timeout=_SECONDS).code == 0 for command in commands)
    except RaddleError:  # there is no such program
        return False
