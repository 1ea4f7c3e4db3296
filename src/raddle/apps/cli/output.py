"""Everything on stdout: data, as text for people or as JSON for programs. Nothing else writes there."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any


def write(text: str) -> None:
    """Text as it is."""
    sys.stdout.write(text)


def line(text: str = "") -> None:
    """One line."""
    sys.stdout.write(text + "\n")


def styled(text: str) -> None:
    """One line that may carry colour, which goes where no terminal listens or NO_COLOR is set."""
    import click  # noqa: PLC0415  every command has it already; a plain import would bind this module to it

    from raddle.config import is_colorless  # noqa: PLC0415

    click.echo(text, color=False if is_colorless() else None)


def write_bytes(data: bytes) -> None:
    """Bytes as they are: a file that a user redirects."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def json(value: Any) -> None:
    """One JSON document, pretty-printed on a terminal."""
    import msgspec  # noqa: PLC0415  not needed for a help text

    data = msgspec.json.encode(value)
    if sys.stdout.isatty():
        data = msgspec.json.format(data, indent=2)
    write_bytes(data + b"\n")


def json_lines(values: Iterable[Any]) -> None:
    """One JSON document a line, each written at once."""
    import msgspec  # noqa: PLC0415

    for value in values:
        write_bytes(msgspec.json.encode(value) + b"\n")


def answer(as_json: bool, value: Any, text: str) -> None:
    """What a verb did: `value` as JSON, or `text` for a person."""
    if as_json:
        json(value)
    else:
        line(text)


def text_or_stdin(text: str) -> str:
    """`text`, or all of stdin where it is `-`; bytes that are not UTF-8 become U+FFFD."""
    if text != "-":
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return sys.stdin.buffer.read().decode("utf-8", "replace").removesuffix("\n")


def is_terminal() -> bool:
    """Does a person look at stdout?"""
    return sys.stdout.isatty()


def page(lines: Iterable[str]) -> None:
    """Lines that may carry colour: through the pager on a terminal, plain elsewhere."""
    import click  # noqa: PLC0415

    if is_terminal():
        click.echo_via_pager((text + "\n" for text in lines))
        return
    for text in lines:
        styled(text)
