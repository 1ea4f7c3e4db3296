"""What a source of session bytes keeps to: whole lines, counted, from any offset, every byte handed on once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raddle.actions.importing.run_plan import SourceEntry
from raddle.actions.importing.source_reading import Broken, Lines, OpenSource, Tail, TooLong, Unread
from raddle.model.ids import derived_id

LONGEST = 60
"""Of a line that is read, in these tests; one that is only a little longer may be read too."""
WELL_OVER = 90

LINES = st.lists(
    st.one_of(
        st.binary(max_size=40).map(lambda line: line.replace(b"\n", b" ")),
        st.sampled_from([b"", b"\r", "a\u2028b\u2029c\u0085".encode(), b"\0\0", b"\xff", b"x" * WELL_OVER]),
    ),
    max_size=12,
)


class SourceLaws:
    """Subclass this and say how bytes become a source."""

    open: Callable[[bytes], OpenSource]

    def all_of(
        self, data: bytes, start: int = 0, first: int = 1, end: int | None = None
    ) -> tuple[list[tuple[int, bytes | int]], bytes, bytes, int]:
        """((number, line or size of one too long), tail, what was kept, offset after the last whole line)."""
        source = self.open(data)
        kept: list[bytes] = []
        lines: list[tuple[int, bytes | int]] = []
        tail, read_to = b"", start
        try:
            for batch in source.read(start, first, kept.append, end=end):
                match batch:
                    case Lines():
                        lines += list(enumerate(batch.lines, batch.first))
                        read_to = batch.read_to
                    case TooLong():
                        assert batch.is_ended or batch.read_to == read_to
                        lines.append((batch.number, batch.size if batch.is_ended else -batch.size))
                        read_to = batch.read_to
                    case Tail():
                        tail = batch.data
                    case Unread() | Broken():
                        raise AssertionError(batch.reason)
        finally:
            source.close()
        return lines, tail, b"".join(kept), read_to

    def told(self, lines: list[bytes], first: int = 1) -> list[tuple[int, bytes | int]]:
        return [
            (number, line if len(line) <= LONGEST else len(line)) for number, line in enumerate(lines, first)
        ]

    @settings(suppress_health_check=[HealthCheck.differing_executors])
    @given(lines=LINES, tail=st.sampled_from([b"", b"half", b"\xf0\x9f"]))
    def test_every_line_is_given_with_its_number_and_every_byte_is_kept(
        self, lines: list[bytes], tail: bytes
    ) -> None:
        data = b"".join(line + b"\n" for line in lines) + tail
        assert self.all_of(data) == (self.told(lines), tail, data, len(data) - len(tail))

    @settings(suppress_health_check=[HealthCheck.differing_executors])
    @given(lines=LINES, at=st.integers(0, 12))
    def test_reading_goes_on_at_any_line(self, lines: list[bytes], at: int) -> None:
        before = b"".join(line + b"\n" for line in lines[:at])
        data = before + b"".join(line + b"\n" for line in lines[at:])
        first = min(at, len(lines)) + 1
        expected = (self.told(lines[at:], first), b"", data[len(before) :], len(data))
        assert self.all_of(data, len(before), first) == expected

    @settings(suppress_health_check=[HealthCheck.differing_executors])
    @given(lines=LINES, data=st.data())
    def test_reading_ends_where_it_is_told_to(self, lines: list[bytes], data: st.DataObject) -> None:
        whole = b"".join(line + b"\n" for line in lines)
        end = data.draw(st.integers(0, len(whole)))
        assert self.all_of(whole, end=end) == self.all_of(whole[:end])

    def test_a_long_line_that_has_no_end_is_told_and_not_passed(self) -> None:
        data = b"one\n" + b"x" * WELL_OVER
        assert self.all_of(data) == ([(1, b"one"), (2, -WELL_OVER)], b"", data, 4)

    @pytest.mark.parametrize("size", [0, 3, 4_096, 4_097, 20_000])
    def test_a_source_that_only_grew_is_known_again_and_a_changed_one_is_not(self, size: int) -> None:
        data = bytes(number % 251 for number in range(size))
        source = self.open(data)
        entry = an_entry(size, source.head(size), source.tail(size))
        source.close()
        grown = [data, data + b"more"]
        changed = [data[:-1], b"?" + data[1:], data[:-1] + b"?"] if size else []
        for one in (*grown, *changed):
            source = self.open(one)
            assert source.grew_from(entry) is (one in grown), one[:9]
            source.close()

    def test_a_source_of_which_nothing_was_read_has_only_grown(self) -> None:
        source = self.open(b"anything")
        assert source.grew_from(an_entry(0, "", ""))
        source.close()


def an_entry(read_to: int, head: str, tail: str) -> SourceEntry:
    return SourceEntry(
        path="/s",
        agent="claude-code",
        session="s",
        thread_id=f"T-{derived_id('source')}",
        size=read_to,
        mtime_ns=1,
        inode=1,
        read_to=read_to,
        lines=1,
        head=head,
        tail=tail,
        generation=0,
    )
