"""Everything on stderr, and the exit codes. Data never comes here; words for people never go to stdout.

An error is one line that says what is wrong and one that says what to do; with `--json` it is
`{"error": {"code", "message", "hint"}}`. A bug is one line too: its traceback goes to the log file.
"""

from __future__ import annotations

import os
import sys
import traceback

import click

from raddle.config import load_config
from raddle.model.errors import ConflictError, FormatError, NotFound, RaddleError, StorageError, UserError

EXIT_CODES: tuple[tuple[type[RaddleError], int], ...] = (
    (NotFound, 3),
    (UserError, 2),
    (ConflictError, 4),
    (FormatError, 5),
    (StorageError, 6),
)
"""The first that fits. Besides: 0 ok, 1 a bug, 2 usage, 7 server or network, 130 interrupted."""
BUG, USAGE, INTERRUPTED = 1, 2, 130


def exit_code_of(error: RaddleError) -> int:
    """The exit code that this kind of error has."""
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), BUG)


def say(text: str) -> None:
    """One line for a person, on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def warn(text: str) -> None:
    """A line about something that did not stop the work."""
    say(f"warning: {text}")


def failed(error: RaddleError, *, as_json: bool) -> int:
    """Say what is wrong and what to do; the exit code."""
    _write(error.code, error.message, error.hint, as_json=as_json)
    return exit_code_of(error)


def usage_error(error: click.ClickException, *, as_json: bool) -> int:
    """What click refused: the words did not fit."""
    message, _, hint = error.format_message().partition("\n")
    context = error.ctx if isinstance(error, click.UsageError) else None
    if not hint and context is not None:
        hint = f"`{context.command_path} --help` shows how it is called"
    _write("usage", message, hint, as_json=as_json)
    return USAGE


def interrupted() -> int:
    """Ctrl-C: what was acknowledged is kept."""
    say("interrupted")
    return INTERRUPTED


def closed_pipe() -> int:
    """The reader of our output went away (`| head`): not an error of anybody's."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return 0


def bug(error: BaseException, *, as_json: bool) -> int:
    """A mistake of ours: one line, and the traceback in the log file (never the words of a conversation)."""
    kept = "the log could not be written"
    try:
        path = load_config().state_dir / "raddle.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as log:
            log.write("".join(traceback.format_exception(error)))
        kept = f"the details are in {path}"
    except (OSError, RaddleError) as trouble:
        kept = f"the log could not be written: {trouble}"
    _write(
        "bug", f"raddle made a mistake ({type(error).__name__})", f"please report it; {kept}", as_json=as_json
    )
    return BUG


def _write(code: str, message: str, hint: str, *, as_json: bool) -> None:
    if as_json:
        import msgspec  # noqa: PLC0415  only an error in JSON needs it this early

        body = {"error": {"code": code, "message": message, "hint": hint}}
        say(msgspec.json.encode(body).decode())
        return
    say(f"error: {message}")
    if hint:
        say(f"  {hint}")
