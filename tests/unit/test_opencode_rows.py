"""The lines of an OpenCode session, from whatever store its records come."""

from __future__ import annotations

import json
import tracemalloc

from raddle.actions.importing.source_reading import Lines
from raddle.adapters.agent_homes.opencode_rows import Body, Header, OpenRows, Row

ROOT, SIDE = "ses_root", "ses_side"


class ListedRows:
    """The records of a session and its sub-agent's, `lost` ones damaged (`Rows`). `size`: bytes of each."""

    def __init__(self, rows: list[Row], *, lost: frozenset[str] = frozenset(), size: int = 2) -> None:
        self._of = {name: [row for row in rows if row.session == name] for name in (ROOT, SIDE)}
        self._lost = lost
        self._body = b'"' + b"x" * size + b'"'

    def tree(self, session: str) -> list[Header]:
        return [Header(session, "", 1, 1, {}), Header(SIDE, session, 1, 1, {})]

    def messages(self, session: str) -> list[Row]:
        return self._of[session]

    def changed(self, session: str, since: int) -> set[str]:
        return set()

    def body(self, row: Row) -> Body | None:
        return None if row.message in self._lost else Body(self._body, [], row.updated)

    def losses(self) -> str:
        return ""

    def check(self) -> None:
        """It is of one moment."""

    def close(self) -> None:
        """Nothing is open."""


def test_a_message_stands_after_the_last_of_its_own_session_that_can_be_read() -> None:
    times = {"b": (ROOT, 2), "a": (ROOT, 1), "x": (SIDE, 2), "c": (ROOT, 3), "y": (SIDE, 4), "d": (ROOT, 5)}
    rows = [Row(name, session, at, at) for name, (session, at) in times.items()]
    opened = OpenRows(ListedRows(rows, lost=frozenset("bc")), ROOT)
    (batch,) = opened.read(0, 1, lambda _: None)
    assert isinstance(batch, Lines)
    told = [json.loads(line) for line in batch.lines]
    after = {line["id"]: line["after"] for line in told if line["opencode"] == "message"}
    assert after == {"a": None, "x": None, "y": "x", "d": "a"}


def test_of_a_message_that_is_still_to_come_only_its_row_is_held() -> None:
    """A session of two gigabytes has some 300,000 of them."""
    count = 50_000
    rows = [Row(f"msg_{number}", ROOT, number, number) for number in range(count)]
    batches = OpenRows(ListedRows(rows, size=50_000), ROOT).read(0, 1, lambda _: None)
    tracemalloc.start()
    try:
        first = next(batches)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(first, Lines)
    assert held - sum(map(len, first.lines)) < 16 * count
