"""Lines of a session file to records, and what is saved of damaged ones."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest

from raddle.actions.importing.records import MAX_PROBLEMS, Records, Shape

GOOD = b'{"id":1,"text":"one"}'
NEXT = b'{"id":2,"text":"two"}'


class Note(msgspec.Struct):
    """A record of an agent that exists only here."""

    id: int = 0
    text: str = ""


def _fit(value: Any) -> list[Note]:
    if isinstance(value, dict) and "all" in value:
        return [note for one in value["all"] for note in _fit(one)]
    if not isinstance(value, dict) or not isinstance(value.get("id"), int):
        return []
    return [Note(id=value["id"], text=str(value.get("text", "")))]


def records(longest: int = 1 << 20) -> Records[Note]:
    shape = Shape(re.compile(rb'\{"id":'), lambda value: "id" in value and "text" in value)
    return Records(msgspec.json.Decoder(Note).decode, _fit, shape, longest=longest)


def read(*lines: bytes, tail: bytes = b"") -> tuple[list[str], dict[int, str]]:
    """The texts of the records, and what is told of which line."""
    reader = records()
    found = [note.text for note, _ in reader.feed(lines)] + [note.text for note, _ in reader.finish(tail)]
    return found, {problem.line: problem.reason for problem in reader.problems}


def test_a_good_file_has_no_problems() -> None:
    assert read(GOOD, b"", NEXT, b"  ") == (["one", "two"], {})


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0c"])
def test_a_line_ends_at_its_newline_and_nowhere_else(separator: str) -> None:
    text = f"above{separator}below"
    line = json.dumps({"id": 1, "text": text}, ensure_ascii=False).encode()
    found, _ = read(line)
    assert found == [text]


def test_a_block_of_nul_bytes_is_told_and_costs_nothing() -> None:
    assert read(GOOD, b"\0" * 4096, NEXT) == (["one", "two"], {2: "nothing but NUL bytes"})


def test_a_record_after_nul_bytes_is_read() -> None:
    assert read(b"\0" * 512 + GOOD, NEXT) == (["one", "two"], {1: "NUL bytes"})


def test_nul_bytes_inside_a_record_are_passed_over() -> None:
    assert read(GOOD[:8] + b"\0\0" + GOOD[8:]) == (["one"], {1: "NUL bytes"})


def test_a_record_glued_to_a_torn_one_is_read() -> None:
    assert read(GOOD[:15] + NEXT) == (["two"], {1: "a torn record"})


def test_a_torn_record_glued_behind_a_whole_one_costs_only_itself() -> None:
    assert read(GOOD + NEXT[:14], NEXT) == (["one", "two"], {1: "a torn record"})


def test_records_glued_on_one_line_are_all_read() -> None:
    assert read(GOOD + NEXT + b" " + GOOD) == (
        ["one", "two", "one"],
        {1: "records glued together on one line"},
    )


def test_a_part_of_a_torn_record_is_no_record() -> None:
    torn = b'{"id":7,"text":"x","inner":[{"id":8},{"id":9}'
    found, told = read(torn, GOOD)
    assert found == ["one"]
    assert told == {1: "a torn record"}


def test_a_torn_line_is_told_with_its_own_number() -> None:
    assert read(GOOD, NEXT[:12], GOOD, NEXT) == (["one", "one", "two"], {2: "a torn record"})


def test_an_object_over_several_lines_is_one_record() -> None:
    pretty = json.dumps({"id": 3, "text": 'a {brace} and a " quote'}, indent=2).encode().split(b"\n")
    found, told = read(GOOD, *pretty, NEXT)
    assert found == ["one", 'a {brace} and a " quote', "two"]
    assert told == {2: "a JSON object over several lines"}


def test_a_text_with_real_line_ends_inside_is_one_record() -> None:
    found, told = read(b'{"id":3,"text":"first', b"", b'second } \\" third', b'fourth"}', NEXT)
    assert found == ['first\n\nsecond } " third\nfourth', "two"]
    assert list(told) == [1]


def test_a_document_that_lists_records_is_read_as_its_records() -> None:
    document = json.dumps({"all": [{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]}, indent=1)
    found, told = read(*document.encode().split(b"\n"))
    assert found == ["one", "two"]
    assert list(told) == [1]


def test_an_object_that_never_ends_costs_only_itself() -> None:
    assert read(b"{", b'  "text": "torn"', NEXT) == (["two"], {1: "a torn record"})
    assert read(b"{", b'  "text": "torn"') == ([], {1: "a torn record"})


def test_an_object_that_grows_beyond_bounds_is_given_up() -> None:
    reader = records(longest=1000)
    lines = [b"{", *[b'  "x": "' + b"y" * 50 + b'",'] * 100, NEXT]
    assert [note.text for note, _ in reader.feed(lines)] == ["two"]
    assert reader.problems[0].line == 1


def test_several_lines_that_are_no_record_are_told() -> None:
    assert read(b"{", b'  "words": 1', b"}", NEXT) == (["two"], {1: "several lines that are no record"})


def test_half_a_character_is_replaced() -> None:
    line = '{"id":1,"text":"日本"}'.encode().replace("本".encode(), "本".encode()[:2])
    found, told = read(line, NEXT)
    assert found == ["日\ufffd", "two"]
    assert told[1] == "bytes that are not UTF-8 at offset 19"


def test_a_byte_that_is_no_utf8_is_counted_from_the_start_of_its_line_as_that_stands_in_the_file() -> None:
    line = b'{"id":1,\0"text":"ab\xff"}'
    _, told = read(GOOD, line, NEXT)
    assert told == {2: f"NUL bytes, bytes that are not UTF-8 at offset {line.index(0xFF)}"}


def test_a_part_of_a_line_that_somebody_else_repaired_is_placed_in_the_line() -> None:
    reader = records()
    for _ in reader.feed([b'{"id":1,"text":"ab","more":"\xff"}']):
        reader.report("bytes that are not UTF-8")
    assert reader.problems[0].reason == "bytes that are not UTF-8 at offset 28"


def test_a_lone_surrogate_is_replaced() -> None:
    found, told = read(b'{"id":1,"text":"half \\ud83d pair"}', NEXT)
    assert found == ["half \ufffd pair", "two"]
    assert told == {1: "a lone surrogate"}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_a_number_that_json_cannot_hold_costs_no_record(number: str) -> None:
    found, _ = read(f'{{"id":1,"text":"kept","size":{number}}}'.encode(), NEXT)
    assert found == ["kept", "two"]


def test_a_record_nested_beyond_reason_is_cut_where_it_is_deep() -> None:
    deep = b'{"id":1,"text":"kept","inner":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    found, told = read(deep, NEXT)
    assert found == ["kept", "two"]
    assert "nesting" in told[1]


def test_a_field_of_another_type_costs_only_that_field() -> None:
    found, told = read(b'{"id":1,"text":5}', NEXT)
    assert found == ["5", "two"]
    assert told == {1: "fields of a type that is not known: text"}


def test_a_byte_order_mark_is_told_as_that_and_costs_nothing() -> None:
    assert read(b"\xef\xbb\xbf" + GOOD, NEXT) == (["one", "two"], {1: "a byte order mark before it"})


def test_lines_that_end_in_a_carriage_return_alone_are_read() -> None:
    told = {1: "lines that end in a carriage return alone"}
    assert read(tail=GOOD + b"\r" + NEXT + b"\r") == (["one", "two"], told)
    assert read(tail=GOOD + b"\r" + NEXT[:9]) == (["one"], told)


@pytest.mark.parametrize("tail", [b"[]", b"null", b"[1, 2]\r\n"])
def test_a_last_line_that_is_whole_and_no_record_is_told_as_such(tail: bytes) -> None:
    assert read(GOOD, tail=tail) == (["one"], {2: "not a record"})


@pytest.mark.parametrize("line", [b"null", b"5", b'"text"', b"[1,2]", b"}{", b"hello", b"\xff\xfe"])
def test_what_is_no_record_is_told(line: bytes) -> None:
    found, told = read(GOOD, line, NEXT)
    assert found == ["one", "two"]
    assert list(told) == [2]


def test_a_last_line_without_its_end_is_read_if_it_is_whole() -> None:
    assert read(GOOD, tail=NEXT) == (["one", "two"], {})


def test_a_last_line_that_is_not_finished_is_told_and_not_guessed_at() -> None:
    assert read(GOOD, tail=NEXT[:12]) == (["one"], {2: "the last line is not finished"})
    assert read(GOOD, tail=NEXT + GOOD[:9]) == (["one"], {2: "the last line is not finished"})


def test_the_line_number_goes_on_where_it_was() -> None:
    reader = records()
    reader.line = 41
    assert [note.text for note, _ in reader.feed([b"}{", GOOD])] == ["one"]
    assert [problem.line for problem in reader.problems] == [42]
    assert reader.line == 43


def test_a_file_full_of_damage_tells_only_the_first_of_it() -> None:
    reader = records()
    assert list(reader.feed([b"}{"] * 5000)) == []
    assert len(reader.problems) == MAX_PROBLEMS + 1
    assert "more" in reader.problems[-1].reason


def test_a_long_torn_line_takes_no_long_time() -> None:
    torn = b'{"id":1,"text":"' + b'{"id":' * 50_000
    found, _ = read(torn, NEXT)
    assert found == ["two"]
