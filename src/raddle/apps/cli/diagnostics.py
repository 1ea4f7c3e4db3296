"""Everything on stderr, and the exit codes. Data never comes here; words for people never go to stdout.

An error is one line that says what is wrong and one that says what to do; with `--json` it is
`{"error": {"code", "message", "hint"}}`. A bug is one line too: its traceback goes to the log file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

import click

from raddle.apps.cli.plain_json import encoded
from raddle.model.errors import (
    ConflictError,
    Forbidden,
    FormatError,
    NetworkError,
    NotFound,
    NotSignedIn,
    Purged,
    RaddleError,
    Rejected,
    StorageError,
    TooManyRequests,
    Unanswered,
    UserError,
)

if TYPE_CHECKING:
    from pathlib import Path

    from raddle.actions.ports import Finding

EXIT_CODES: tuple[tuple[type[RaddleError], int], ...] = (
    (NotFound, 3),
    (Purged, 3),
    (NotSignedIn, 7),
    (Forbidden, 7),
    (NetworkError, 7),
    (TooManyRequests, 7),
    (Rejected, 7),
    (Unanswered, 7),
    (UserError, 2),
    (ConflictError, 4),
    (FormatError, 5),
    (StorageError, 6),
)
"""The first that fits. Besides: 0 ok, 1 a bug, 2 usage, 130 interrupted."""
BUG, USAGE, INTERRUPTED = 1, 2, 130

_BAR_WIDTH = 24
_WONDERED_AFTER_SECONDS = 2.0
_REDRAWN_AFTER_SECONDS = 0.1
_WORTH_A_LINE_BYTES = 8_000_000
_WORTH_A_LINE_THINGS = 50


def exit_code_of(error: RaddleError) -> int:
    """The exit code that this kind of error has."""
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), BUG)


def say(text: str) -> None:
    """One line for a person, on stderr."""
    with contextlib.suppress(OSError):  # nobody is left who could be told
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def suggest(text: str) -> None:
    """A line about what could be done next: only where a person looks on."""
    if is_terminal():
        say(_coloured(text, "dim"))


def note(text: str) -> None:
    """A line that explains the answer, also to whoever looks at it later: not only where a person looks on."""
    say(f"{_coloured('note:', 'yellow')} {text}")


def warn(text: str) -> None:
    """A line about something that did not stop the work."""
    say(f"{_coloured('warning:', 'yellow')} {text}")


def found(finding: Finding) -> None:
    """A line about something that was not as it should be, and what was done about it."""
    from raddle.apps.cli import words  # noqa: PLC0415  rare

    done = f" ({finding.done})" if finding.done else ""
    say(words.one_line(f"note: {words.short_path(finding.path)}: {finding.what}{done}"))


def is_terminal() -> bool:
    """Does a person look at stderr?"""
    return sys.stderr.isatty()


@contextlib.contextmanager
def waiting(for_what: str) -> Iterator[None]:
    """Say so once, if the block lasts longer than somebody waits without wondering."""
    import threading  # noqa: PLC0415  a line of help does not pay for it

    timer = threading.Timer(_WONDERED_AFTER_SECONDS, lambda: say(f"waiting for {for_what} …"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Progress:
    """How far a long work is: a bar on a terminal, one plain line elsewhere; nothing for work that is soon done."""

    def __init__(self, label: str) -> None:
        from raddle.config import is_dumb_terminal  # noqa: PLC0415  a line of help does not pay for it

        self._label = label
        self._is_live = sys.stderr.isatty() and not is_dumb_terminal()
        self._drawn = 0.0
        self._is_told = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live and self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def show(self, done: int, total: int, messages: int) -> None:
        """Bytes done of all, and messages so far; drawn at most ten times a second."""
        if not self._is_live:
            if total >= _WORTH_A_LINE_BYTES and not self._is_told:
                self._is_told = True
                say(f"{self._label} {total / 1e6:,.0f} MB …")
            return
        now = time.monotonic()
        if not total or now - self._drawn < _REDRAWN_AFTER_SECONDS:
            return
        self._drawn = now
        part = min(done / total, 1.0)
        filled = int(part * _BAR_WIDTH)
        bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
        sys.stderr.write(f"\r{self._label} {bar} {part:4.0%}  {messages:,} messages\x1b[K")
        sys.stderr.flush()


class Counting(Progress):
    """The same for work that is counted in things."""

    def show(self, done: int, total: int, messages: int = 0) -> None:
        """Things done of all."""
        if not self._is_live:
            if total >= _WORTH_A_LINE_THINGS and not self._is_told:
                self._is_told = True
                say(f"{self._label} {total:,} threads …")
            return
        now = time.monotonic()
        if not total or now - self._drawn < _REDRAWN_AFTER_SECONDS:
            return
        self._drawn = now
        filled = int(done / total * _BAR_WIDTH)
        bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
        sys.stderr.write(f"\r{self._label} {bar} {done:,} of {total:,}\x1b[K")
        sys.stderr.flush()


def failed(error: RaddleError, *, as_json: bool) -> int:
    """Say what is wrong and what to do; the exit code."""
    _write(error.code, error.message, error.hint, as_json=as_json)
    return exit_code_of(error)


def usage_error(error: click.ClickException, command: str, *, as_json: bool) -> int:
    """What click refused: the words after `command` (`raddle list`), or after the one of its own commands that it knows
    of, did not fit."""
    if isinstance(error, click.UsageError) and error.ctx is not None and error.ctx.parent is not None:
        command = error.ctx.command_path
    message, _, hint = error.format_message().partition("\n")
    if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2, and its message is the whole help
        message, hint = "a command is missing", f"`{command} --help` lists them"
    if not hint:
        hint = f"`{command} --help` shows how it is called"
        if isinstance(error, click.NoSuchOption):
            is_early = error.ctx is not None and error.ctx.parent is None
            hint += (
                "; options of a command come after its name"
                if is_early
                else "; -- goes before a text that starts with a dash"
            )
    _write("usage", _as_a_line(message), hint, as_json=as_json)
    return USAGE


def _as_a_line(message: str) -> str:
    """Click's sentence in the form of ours: small letter, no full stop."""
    message = message.removesuffix(".")
    return message[:1].lower() + message[1:]


def interrupted() -> int:
    """Ctrl-C: what was acknowledged is kept."""
    say("interrupted")
    return INTERRUPTED


def bug(error: BaseException, *, as_json: bool) -> int:
    """A mistake of ours: one line, and where it happened in the log file."""
    from raddle.config import load_config  # noqa: PLC0415  a line of help does not pay for it

    try:
        path = load_config().paths.log_file
        _append(path, "".join(_trace(error)))
        kept = f"where it happened is in {path}"
    except (OSError, RaddleError) as trouble:
        kept = f"the log could not be written: {trouble}"
    _write(
        "bug", f"raddle made a mistake ({type(error).__name__})", f"please report it; {kept}", as_json=as_json
    )
    return BUG


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as log:
        log.write(text)


def _trace(error: BaseException | None) -> Iterator[str]:
    """Frames and names of errors, the cause first; never their messages, which may quote a conversation."""
    import traceback  # noqa: PLC0415  help has no use for it

    if error is not None:
        yield from _trace(error.__cause__ or error.__context__)
        for frame in traceback.extract_tb(error.__traceback__):
            yield f"{frame.filename}:{frame.lineno} in {frame.name}\n"
        yield f"{type(error).__qualname__}\n\n"


def _write(code: str, message: str, hint: str, *, as_json: bool) -> None:
    if as_json:
        body = {"error": {"code": code, "message": message, "hint": hint}}
        say(encoded(body).decode())
        return
    from raddle.apps.cli import words  # noqa: PLC0415  an error has time

    say(f"{_coloured('error:', 'red')} {words.one_line(message)}")
    if hint:
        say(f"  {words.one_line(hint)}")


def _coloured(text: str, colour: str) -> str:
    from raddle.apps.cli import words  # noqa: PLC0415
    from raddle.config import is_colorless  # noqa: PLC0415

    return words.style(text, colour) if is_terminal() and not is_colorless() else text
