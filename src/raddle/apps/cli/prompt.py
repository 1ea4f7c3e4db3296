"""The line at which a person types a turn: a paste is one turn, and what is typed is told as it grows.

Owns what ends a turn. If a second place read lines, a paste there would be sent line by line, and run where one of its
lines looks like a command.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

_TOLD_SECONDS = 1.0
_GOES_ON = "\\"


def typed(prompt: str, before: str, keep: Callable[[str], None]) -> str:
    """What the person types, one newline between two lines. A line that ends in a backslash goes on on the next.

    `before` stands there already. `keep` is told what stands there, once a second at most, from another thread, and at
    the end where it was told something else. EOFError at the end of input; KeyboardInterrupt where all was given up.
    """
    lines: list[str] = []
    with _told_as_it_grows(before, lines, keep):
        while True:
            line = input(prompt if not lines else "...> ")
            lines.append(line.removesuffix(_GOES_ON))
            if not line.endswith(_GOES_ON):
                return "\n".join(lines)


def is_command(text: str) -> bool:
    """Is it one, and no turn? A paste of several lines that begins like one is none."""
    return text.startswith("/") and not text.startswith("//") and "\n" not in text.strip()


def as_turn(text: str) -> str:
    """What is said with it."""
    return text[1:] if text.startswith("//") else text


def as_typed(turn: str) -> str:
    """What is typed to say that."""
    return f"/{turn}" if turn.startswith("//") or is_command(turn) else turn


@contextlib.contextmanager
def _told_as_it_grows(before: str, lines: list[str], keep: Callable[[str], None]) -> Iterator[None]:
    try:
        import readline  # noqa: PLC0415  not every Python has it
    except ImportError:
        yield
        return
    # Python turns it off by itself; with it, a paste comes as one, its lines within.
    readline.parse_and_bind("set enable-bracketed-paste on")
    waiting = [before] if before else []
    readline.set_startup_hook(lambda: readline.insert_text(waiting.pop()) if waiting else None)
    is_over = threading.Event()
    told = [before]

    def watch() -> None:
        while not is_over.wait(_TOLD_SECONDS):
            now = "\n".join([*lines, readline.get_line_buffer()])
            if now != told[-1] and not is_over.is_set():
                told.append(now)
                keep(now)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except KeyboardInterrupt:
        given_up = readline.get_line_buffer()
        if given_up.strip():
            readline.add_history(given_up)
        raise
    finally:
        is_over.set()
        watcher.join()
        readline.set_startup_hook(None)
    said = "\n".join(lines)
    if told[-1] and not said.startswith(told[-1]):
        keep(said)
