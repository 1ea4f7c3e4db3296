"""Everything on stdout: data, as text for people or as JSON for programs. Nothing else writes there.

What a reader of ours does (goes away, sits on a full disk, is no terminal) is met here, once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from raddle.apps.cli.plain_json import encoded
from raddle.model.errors import InvalidInput, StorageError

_ROWS, _COLUMNS = 24, 80


class ReaderGone(Exception):
    """Whoever read our output has seen enough (`| head`): no error of anybody's.

    No BrokenPipeError any more, of which click would make an exit code.
    """


def prepare() -> None:
    """Make the streams of the process fit for any text, and for a shell that closed one of them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Opened in this order, each takes the number that was closed: no file of ours can take it.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def finish() -> None:
    """Hand over what is still on its way; StorageError where it cannot be written."""
    with _written():
        sys.stdout.flush()


def give_up() -> None:
    """Nobody reads any more: what is still on its way goes nowhere, and nothing complains at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):  # a stream of a test has no number
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@contextlib.contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        give_up()
        raise ReaderGone from error
    except OSError as error:
        give_up()
        raise refused(error) from error


def refused(error: OSError) -> StorageError:
    """What to say where the output cannot be written."""
    reason = error.strerror or type(error).__name__
    return StorageError(
        f"cannot write the output: {reason}", "see where it was redirected to, then try again"
    )


def write(text: str) -> None:
    """Text as it is."""
    with _written():
        sys.stdout.write(text)


def line(text: str = "") -> None:
    """One line."""
    write(text + "\n")


def styled(text: str) -> None:
    """One line that may carry colour, which goes where no terminal listens or NO_COLOR is set."""
    write((text if is_coloured() else _plain(text)) + "\n")


def _plain(text: str) -> str:
    if "\x1b" not in text:
        return text
    import click  # noqa: PLC0415  every command has it already; a plain import would bind this module to it

    return click.unstyle(text)


def write_bytes(data: bytes) -> None:
    """Bytes as they are: a file that a user redirects."""
    with _written():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def json(value: Any) -> None:
    """One JSON document, pretty-printed on a terminal."""
    data = encoded(value)
    if is_terminal():
        import msgspec  # noqa: PLC0415  not needed for a help text

        data = msgspec.json.format(data, indent=2)
    write_bytes(data + b"\n")


def json_lines(values: Iterable[Any]) -> None:
    """One JSON document a line, each written at once."""
    for value in values:
        write_bytes(encoded(value) + b"\n")


def answer(as_json: bool, value: Any, text: str) -> None:
    """What a verb did: `value` as JSON, or `text` for a person."""
    if as_json:
        json(value)
    else:
        line(text)


def text_of_stdin() -> str:
    """All of stdin without its last newline; InvalidInput where it is no text."""
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise StorageError(f"cannot read stdin: {error.strerror}", "give the text as an argument") from error
    try:
        return data.decode("utf-8-sig").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise not_utf_8("what stdin gave", error.start) from error


def not_utf_8(what: str, at: int) -> InvalidInput:
    """What to say of bytes that are no text: kept, they would not be what was given."""
    return InvalidInput(
        f"{what} is not UTF-8 (byte {at + 1:,}), so it cannot be kept as text",
        "text in an older encoding can be converted: `iconv -f LATIN1 -t UTF-8 FILE | raddle …`",
    )


def is_terminal() -> bool:
    """Does a person look at stdout?"""
    return sys.stdout.isatty()


def is_coloured() -> bool:
    """Is what is printed coloured?"""
    from raddle.config import is_colorless  # noqa: PLC0415  costs a line of help nothing

    return is_terminal() and not is_colorless()


def columns() -> int | None:
    """How wide the terminal is; None where there is none, so that nothing is cut for a program."""
    return _size()[0] if is_terminal() else None


def _size() -> tuple[int, int]:
    try:
        width, height = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return _COLUMNS, _ROWS
    return width or _COLUMNS, height or _ROWS


def page(lines: Iterable[str]) -> None:
    """Lines that may carry colour: through the pager where they are more than the terminal shows, else plain."""
    from raddle.config import is_dumb_terminal  # noqa: PLC0415  costs a line of help nothing

    if not is_terminal() or is_dumb_terminal():
        for text in lines:
            styled(text)
        return
    width, height = _size()
    source, held, rows = iter(lines), [], 0
    for text in source:
        held.append(text)
        rows += max(1, -(-_columns_of(text) // width))
        if rows >= height:
            _to_pager(chain(held, source))
            return
    for text in held:
        styled(text)


def _columns_of(text: str) -> int:
    from raddle.apps.cli import words  # noqa: PLC0415  costs a line of help nothing

    return words.width(_plain(text))


def _to_pager(lines: Iterable[str]) -> None:
    import click  # noqa: PLC0415

    with _written():
        sys.stdout.flush()
        click.echo_via_pager((text + "\n" for text in lines), color=None if is_coloured() else False)
