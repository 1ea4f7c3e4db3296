"""Server-sent events are read as the HTML standard says, in whatever pieces they come."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.adapters.event_stream import Event, EventParser
from raddle.model.errors import BrokenFormat


def read(*pieces: bytes, **options: int) -> list[Event]:
    """The events of a stream that comes in these pieces."""
    parser = EventParser(**options)
    return [event for piece in pieces for event in parser.feed(piece)]


def data(*pieces: bytes) -> list[str]:
    return [event.data for event in read(*pieces)]


def test_an_event_ends_with_an_empty_line() -> None:
    assert read(b"event: changes\ndata: {}\nid: 7\n\n") == [Event(kind="changes", data="{}", id="7")]
    assert read(b"data: {}\n") == []


def test_lines_of_data_are_joined() -> None:
    assert data(b"data: one\ndata: two\ndata\ndata:\n\n") == ["one\ntwo\n\n"]


def test_comments_and_unknown_fields_say_nothing() -> None:
    assert data(b": hello\n\nretry: 1000\nfoo: bar\n:\ndata: x\n: in between\n\n") == ["x"]


def test_an_event_without_data_is_none_and_its_kind_is_forgotten() -> None:
    assert read(b"event: changes\n\ndata: x\n\n") == [Event(kind="message", data="x")]


def test_an_id_stands_until_there_is_another() -> None:
    assert [
        event.id for event in read(b"id: 1\ndata: a\n\ndata: b\n\nid: \0\ndata: c\n\nid\ndata: d\n\n")
    ] == [
        "1",
        "1",
        "1",
        "",
    ]


def test_one_space_after_the_colon_goes_and_no_more() -> None:
    assert data(b"data:x\n\ndata: x\n\ndata:  x \n\n") == ["x", "x", " x "]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_line_may_end_in_three_ways(end: bytes) -> None:
    stream = end.join([b"\xef\xbb\xbfdata: a", b"data: b", b"", b"data: c", b"", b""])
    assert data(*[bytes([byte]) for byte in stream]) == data(stream) == ["a\nb", "c"]


def test_bytes_that_are_no_text_do_not_end_the_stream() -> None:
    assert data(b"data: \xff\xfe\n\ndata: x\n\n") == ["\ufffd\ufffd", "x"]


LINES = st.sampled_from([b"data: a", b"data: \xc3\xa9", b"event: changes", b"id: 4", b": c", b"", b"", b"x"])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=20), st.lists(st.integers(0, 200), max_size=8))
def test_the_pieces_make_no_difference(lines: list[tuple[bytes, bytes]], cuts: Iterable[int]) -> None:
    stream = b"".join(line + end for line, end in lines)
    at = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    pieces = [stream[start:stop] for start, stop in itertools.pairwise(at)]
    assert read(*pieces) == read(stream)


@pytest.mark.parametrize("endless", [b"data: aaaa\n", b"aaaa", b"x: y\n"])
def test_an_event_without_end_is_refused(endless: bytes) -> None:
    with pytest.raises(BrokenFormat):
        read(*[endless] * 100, most_bytes=300)


def test_comments_without_end_are_no_event_without_end() -> None:
    assert data(*[b": still here\n"] * 100, b"data: x\n\n") == ["x"]
    assert read(*[b": still here\n"] * 100, most_bytes=300) == []
