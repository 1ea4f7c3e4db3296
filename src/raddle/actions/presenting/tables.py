"""Results of a phase as tables, however deeply they are nested.

Owns what becomes a row and what a column. A value that holds others is never one cell: it would be a line of program
code, which the reader of a report cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from raddle.actions.presenting.texts import NOTHING, shown_line, value_text

INTO = " › "
"""Between the names of a value and of one inside it."""
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?\Z", re.IGNORECASE | re.ASCII)


class Table(Struct, frozen=True, kw_only=True):
    """`title`: where in the results it was, empty for what stands at the top. Every row is as long as the header."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables_of(results: Mapping[str, Any]) -> tuple[Table, ...]:
    """What stands at the top as one table of names and values, then a table for each value that holds others, in their
    order; those inside it right after it."""
    return tuple(_of_mapping("", results))


def is_numeric(cells: Iterable[str]) -> bool:
    """Is there a number in a column, and nothing else?"""
    said = [cell for cell in cells if cell not in ("", NOTHING)]
    return bool(said) and all(map(_NUMBER.match, said))


def _of_mapping(title: str, values: Mapping[str, Any]) -> Iterable[Table]:
    rows = tuple((_name(name), _cell(value)) for name, value in values.items() if _is_leaf(value))
    if rows:
        yield Table(title=title, header=("Result" if not title else "Name", "Value"), rows=rows)
    for name, value in values.items():
        if not _is_leaf(value):
            yield from _of_value(f"{title}{INTO}{_name(name)}" if title else _name(name), value)


def _of_value(title: str, value: Any) -> Iterable[Table]:
    """`value` holds others."""
    if isinstance(value, Mapping):
        inner = list(value.values())
        if len(inner) > 1 and all(isinstance(one, Mapping) and _is_flat(one.values()) for one in inner):
            yield _of_records(title, "Name", [_name(name) for name in value], inner)
        else:
            yield from _of_mapping(title, value)
    elif all(isinstance(one, Mapping) and _is_flat(one.values()) for one in value):
        yield _of_records(title, "No.", _numbers(value), value)
    elif all(isinstance(one, list | tuple) and _is_flat(one) for one in value):
        rows = [dict(enumerate(one, start=1)) for one in value]
        yield _of_records(title, "No.", _numbers(value), rows)
    else:
        yield from _of_mapping(title, dict(zip(_numbers(value), value, strict=True)))


def _of_records(title: str, corner: str, names: Sequence[str], records: Sequence[Mapping[Any, Any]]) -> Table:
    """A row for each record, a column for each name that any of them has."""
    columns = list(dict.fromkeys(name for record in records for name in record))
    rows = [
        (name, *(_cell(record[column]) if column in record else "" for column in columns))
        for name, record in zip(names, records, strict=True)
    ]
    return Table(title=title, header=(corner, *(_name(str(column)) for column in columns)), rows=tuple(rows))


def _is_leaf(value: Any) -> bool:
    """May it stand in one cell: a plain value, or a list of such?"""
    if isinstance(value, Mapping):
        return not value
    return not isinstance(value, list | tuple) or not any(
        isinstance(one, Mapping | list | tuple) for one in value
    )


def _is_flat(values: Iterable[Any]) -> bool:
    return all(map(_is_leaf, values))


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return NOTHING
    if isinstance(value, list | tuple):
        return ", ".join(value_text(one) for one in value) or NOTHING
    return value_text(value)


def _numbers(values: Sequence[Any]) -> list[str]:
    return [str(number) for number, _ in enumerate(values, start=1)]


def _name(name: str) -> str:
    return shown_line(name) or NOTHING
