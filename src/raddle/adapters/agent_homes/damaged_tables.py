"""What can be reached in the tables of a SQLite database some pages of which are damaged.

Owns the ways around a page that cannot be read: past a damaged index by the table itself, past a damaged page of a
table by the numbers of its rows. A sound database is asked as ever; these ways are gone only where it cannot answer.
"""

from __future__ import annotations

from typing import Any

from raddle.adapters.agent_homes.read_only_sqlite import Damaged, ReadOnlyDatabase

_FIRST, _LAST = 1, (1 << 63) - 1
"""The numbers that SQLite gives to rows."""

Rows = list[tuple[Any, ...]]


class Tables:
    """The tables of one database, all of which number their rows."""

    def __init__(self, database: ReadOnlyDatabase) -> None:
        self._database = database
        self._numbers: dict[tuple[str, str], tuple[dict[Any, list[int]], bool]] = {}

    def where(
        self, table: str, columns: str, column: str, value: str, *, within: tuple[str, str] | None = None
    ) -> tuple[Rows, int]:
        """The rows in which `column` is `value`, in any order, and how many more there are at least.

        `within`: another column, and what it holds in all of them, by which they may be found too.
        """
        try:
            query = f"SELECT {columns} FROM {table} WHERE {column} = ?"  # noqa: S608
            return self._database.rows(query, value), 0
        except Damaged:
            numbers, is_whole = self._numbers_where(table, column, value, within)
        rows: Rows = []
        lost = 0 if is_whole else 1
        for number in numbers:
            try:
                query = f"SELECT {columns} FROM {table} NOT INDEXED WHERE rowid = ?"  # noqa: S608
                rows += self._database.rows(query, number)
            except Damaged:
                lost += 1
        return rows, lost

    def _numbers_where(
        self, table: str, column: str, value: str, within: tuple[str, str] | None
    ) -> tuple[list[int], bool]:
        """The numbers of those rows, and whether these are all."""
        ways: list[tuple[str, tuple[str, ...]]] = [(f"{column} = ?", (value,))]
        if within is not None:
            ways.append((f"{within[0]} = ? AND +{column} = ?", (within[1], value)))
        for condition, values in ways:
            try:
                found = self._database.rows(f"SELECT rowid FROM {table} WHERE {condition}", *values)  # noqa: S608
            except Damaged:
                continue
            return [number for (number,) in found], True
        if (table, column) not in self._numbers:
            rows, is_whole = self.scan(table, column)
            numbers: dict[Any, list[int]] = {}
            for number, held in rows:
                numbers.setdefault(held, []).append(number)
            self._numbers[table, column] = numbers, is_whole
        by_value, is_whole = self._numbers[table, column]
        return by_value.get(value.encode(errors="replace"), []), is_whole

    def scan(self, table: str, columns: str) -> tuple[Rows, bool]:
        """(number, columns) of each row that can be reached without an index, and whether these are all."""
        query = f"SELECT rowid, {columns} FROM {table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid"  # noqa: S608
        found: Rows = []
        at = _FIRST
        is_whole = True
        while at <= _LAST:
            rows, is_ended = self._database.rows_until_damage(query, at)
            found += rows
            if is_ended:
                break
            is_whole = False
            at = self._past_damage(table, rows[-1][0] + 1 if rows else at)
        return found, is_whole

    def _past_damage(self, table: str, at: int) -> int:
        """The number from which on there are rows again, where those from `at` on cannot be read."""
        following = self._following(table, at)
        if following is not None:
            return following + 1  # its page can be read, and it cannot: what it says lies on others
        step = 1
        while self._following(table, at + step) is None:
            step *= 2
            if at + step > _LAST:
                return _LAST + 1
        damaged, sound = at + step // 2, at + step
        while sound - damaged > 1:
            middle = (damaged + sound) // 2
            if self._following(table, middle) is None:
                damaged = middle
            else:
                sound = middle
        return sound

    def _following(self, table: str, at: int) -> int | None:
        """The number of the first row from `at` on, or that which comes last; None where its page is damaged."""
        query = f"SELECT rowid FROM {table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid LIMIT 1"  # noqa: S608
        try:
            found = self._database.rows(query, at)
        except Damaged:
            return None
        return int(found[0][0]) if found else _LAST
