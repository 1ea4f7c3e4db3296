"""A journal survives what disks and processes do to it, and its end is enough for the next turn."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.adapters.local_store.journal import (
    FileIdentity,
    Line,
    append_line,
    decode_line,
    encode_line,
    read_journal,
    read_tail,
)
from raddle.adapters.local_store.journal_tail import NeedsWhole, TailThread, footer_of
from raddle.model.errors import BrokenFormat, NewerFormat
from raddle.model.threads.agent_state import AgentState
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.register import one_write
from raddle.model.threads.thread import Thread
from raddle.model.threads.tree import MessageTree
from tests.builders import THREAD_ID, WoundClock, a_line, a_message, a_thread, an_author, counted_ids

FILE = FileIdentity(7, 1234, 1_796_025_600_000_000_000)


def a_journal_line(number: int, *, content: str = "hello", thread_id: str = THREAD_ID) -> Line:
    """The turn m<number>, and a footer of the thread that has it."""
    thread = a_thread(*a_line(*["x"] * number))
    delta = Delta(
        base_version=number,
        version=number + 1,
        messages=(a_message(f"m{number}", content),),
        registers={"updated_at": one_write(number, "aaaaaaaa", "now")},
    )
    return Line(id=thread_id, file=FILE, delta=delta, footer=footer_of(thread, "aaaaaaaa"))


def write_journal(path: Path, count: int) -> list[bytes]:
    lines = [encode_line(a_journal_line(number)) for number in range(1, count + 1)]
    path.write_bytes(b"".join(lines))
    return lines


def versions(path: Path) -> list[int]:
    return [line.delta.version for line in read_journal(path, THREAD_ID).lines]


def append(path: Path, line: Line) -> int:
    """As the store appends: at the end of what is whole."""
    tail = read_tail(path, THREAD_ID)
    journal = read_journal(path, THREAD_ID)
    end, size = (tail.end, tail.size) if tail is not None else (journal.end, journal.size)
    return append_line(path, line, end=end, size=size)


def test_a_line_says_what_it_was_given() -> None:
    line = a_journal_line(3)
    assert line.footer is not None
    data = encode_line(line)
    assert data.count(b"\n") == 1
    found = decode_line(data[:-1], THREAD_ID)
    assert found.delta == line.delta
    assert found.file == FILE
    assert found.footer is not None
    assert found.footer.tip == line.footer.tip
    assert found.footer.registers["updated_at"] == line.delta.registers["updated_at"]


def test_a_line_is_text_that_a_person_can_read() -> None:
    crc, _, body = encode_line(a_journal_line(1, content="Größe\n")).partition(b" ")
    assert len(crc) == 8
    assert msgspec.json.decode(body)["delta"]["append"][0]["content"] == "Größe\n"


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    journal = read_journal(tmp_path / "none.journal", THREAD_ID)
    assert (journal.lines, journal.exists, journal.is_torn) == ((), False, False)
    assert read_tail(tmp_path / "none.journal", THREAD_ID) is None


def test_a_tail_torn_at_any_byte_costs_itself_and_never_the_next_line(tmp_path: Path) -> None:
    path = tmp_path / "t.journal"
    lines = write_journal(path, 3)
    whole = path.read_bytes()
    for size in range(len(lines[0]), len(whole)):
        path.write_bytes(whole[:size])
        kept = 2 if size >= len(lines[0]) + len(lines[1]) else 1
        assert versions(path) == [2, 3][:kept]
        assert read_journal(path, THREAD_ID).is_torn == (
            size not in (len(lines[0]), len(whole) - len(lines[2]))
        )
        append(path, a_journal_line(9))
        assert versions(path) == [*[2, 3][:kept], 10]
        assert read_journal(path, THREAD_ID).bad == ()


def test_a_journal_that_never_got_a_whole_line_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.journal"
    data = encode_line(a_journal_line(1))
    for size in (0, 1, 8, 9, len(data) - 1):
        path.write_bytes(data[:size])
        assert read_tail(path, THREAD_ID) is None
        append(path, a_journal_line(2))
        assert versions(path) == [3]


def test_zeros_after_a_power_cut_are_a_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "t.journal"
    write_journal(path, 2)
    with path.open("ab") as file:
        file.write(b"\0" * 5000)
    assert versions(path) == [2, 3]
    append(path, a_journal_line(5))
    assert versions(path) == [2, 3, 6]


@pytest.mark.parametrize("byte", [0x00, 0x20, 0x22, 0x7B, 0xFF])
def test_a_damaged_line_costs_itself_and_is_named(tmp_path: Path, byte: int) -> None:
    path = tmp_path / "t.journal"
    lines = write_journal(path, 3)
    for offset in range(0, len(lines[1]) - 1, 7):
        damaged = bytearray(lines[1])
        if damaged[offset] == byte:
            continue
        damaged[offset] = byte
        path.write_bytes(lines[0] + bytes(damaged) + lines[2])
        journal = read_journal(path, THREAD_ID)
        assert [line.delta.version for line in journal.lines] == [2, 4]
        assert [bad.number for bad in journal.bad] == [2]


def test_a_line_cut_in_two_by_a_newline_costs_both_halves(tmp_path: Path) -> None:
    path = tmp_path / "t.journal"
    lines = write_journal(path, 3)
    path.write_bytes(lines[0] + lines[1][:50] + b"\n" + lines[1][50:] + lines[2])
    assert versions(path) == [2, 4]
    assert [bad.number for bad in read_journal(path, THREAD_ID).bad] == [2, 3]


def test_a_line_of_another_thread_is_none_of_this_one(tmp_path: Path) -> None:
    path = tmp_path / "t.journal"
    other = a_journal_line(1, thread_id="T-00000000-0000-7000-8000-000000000000")
    path.write_bytes(encode_line(other) + encode_line(a_journal_line(2)))
    assert versions(path) == [3]


def test_a_newer_raddles_line_is_refused_not_dropped(tmp_path: Path) -> None:
    path = tmp_path / "t.journal"
    for plain in ({"format": 2, "new": True}, {**line_as_json(a_journal_line(1)), "format": 2}):
        path.write_bytes(as_line(plain))
        with pytest.raises(NewerFormat):
            read_journal(path, THREAD_ID)
        with pytest.raises(NewerFormat):
            read_tail(path, THREAD_ID)


@pytest.mark.parametrize(
    "change",
    [
        {"delta": []},
        {"delta": {"version": -1}},
        {"delta": {"append": [{"id": 1}]}},
        {"file": [1, 2]},
        {"file": None},
        {"next": 7},
        {"next": {"device": "aaaaaaaa"}},
        {"next": {"device": "aaaaaaaa", "version": 1, "clock": 1, "set": {"title": [["x"]]}}},
        {"id": None},
    ],
)
def test_a_line_with_a_good_checksum_and_no_sense_is_bad(change: dict[str, Any]) -> None:
    plain = {**line_as_json(a_journal_line(1)), **change}
    with pytest.raises(BrokenFormat):
        decode_line(as_line(plain)[:-1], THREAD_ID)


def line_as_json(line: Line) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(encode_line(line)[9:])
    return plain


def as_line(plain: Any) -> bytes:
    import zlib

    body = msgspec.json.encode(plain)
    return b"%08x %b\n" % (zlib.crc32(body), body)


def test_the_tail_is_found_without_what_stands_before(tmp_path: Path) -> None:
    path = tmp_path / "t.journal"
    path.write_bytes(b"\xff" * 3_000_000 + b"\n" + encode_line(a_journal_line(4)))
    tail = read_tail(path, THREAD_ID)
    assert tail is not None
    assert tail.line is not None
    assert tail.line.delta.version == 5
    assert tail.end == tail.size == path.stat().st_size


@pytest.mark.parametrize("size", [1, 4_000, 8_192 - 700, 9_000, 70_000, 2_000_000])
def test_a_long_line_at_the_end_is_found_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "t.journal"
    write_journal(path, 2)
    append(path, a_journal_line(7, content="x" * size))
    tail = read_tail(path, THREAD_ID)
    assert tail is not None
    assert tail.line is not None
    assert len(tail.line.delta.messages[0].content) == size


Step = Callable[[Editor], object]
STEPS: dict[str, Step] = {
    "user": lambda editor: editor.append("user", "ask"),
    "assistant": lambda editor: editor.append("assistant", "answer"),
    "tool": lambda editor: editor.append("tool", "output", tool_call_id="c1"),
    "aside": lambda editor: editor.append("assistant", "aside", is_sidechain=True),
    "two turns": lambda editor: (editor.append("user", "a"), editor.append("assistant", "b")),
    "state": lambda editor: editor.set_agent_state(AgentState(kind="executing_tools")),
    "other state": lambda editor: editor.set_agent_state(AgentState(kind="error", last_error="x")),
    "model": lambda editor: editor.set_model("p", "m"),
    "git": lambda editor: editor.snapshot_git(GitSnapshot(branch="main", head="a" * 40, remote="r")),
    "new head": lambda editor: editor.snapshot_git(GitSnapshot(branch="main", head="b" * 40), ["c" * 40]),
    "root draft": lambda editor: editor.set_draft(None, "typing"),
    "no draft": lambda editor: editor.set_draft(None, ""),
}
REST: dict[str, Step] = {
    "title": lambda editor: editor.rename("a title"),
    "tag": lambda editor: editor.tag("bug"),
    "undo": lambda editor: editor.undo(),
    "redo": lambda editor: editor.redo(),
    "new root": lambda editor: editor.reply(None, "user", "anew"),
    "delete": lambda editor: editor.delete(),
    "restore": lambda editor: editor.restore(),
    "job": lambda editor: editor.launch_job("j1", None, "r"),
    "land": lambda editor: editor.land_job("j1", "landed"),
    "other's draft": lambda editor: editor.write("draft/bbbbbbbb", {"root": "theirs"}),
    "rollback": lambda editor: editor.rollback_last_user_turn(),
    "private": lambda editor: editor.set_private(True),
}


def run(thread: Thread, step: Step, clock: WoundClock, ids: int) -> tuple[Delta, bool]:
    """(what the step changed, was the thread enough for it)."""
    author = an_author("aaaaaaaa", clock, new_id=counted_ids(f"s{ids}-"))
    if not isinstance(thread, TailThread):
        editor = Editor(thread, author)
        step(editor)
        return editor.delta(), True
    editor = Editor(thread, thread.author(author))
    try:
        step(editor)
        delta = editor.delta()
    except NeedsWhole:
        return Delta(), False
    return delta, not thread.fell_short


@given(st.lists(st.sampled_from([*STEPS, *REST]), max_size=14))
def test_a_step_on_the_tail_is_the_step_on_the_whole(names: list[str]) -> None:
    """Where the end of the journal is enough, it gives the very same Delta and the very same next footer."""
    clock = WoundClock()
    thread = a_thread(*a_line("hello", "hi"))
    footer = footer_of(thread, "aaaaaaaa")
    for number, name in enumerate(names):
        clock.wind(number % 3)
        tail = TailThread(thread.id, footer) if footer is not None else None
        step = (STEPS | REST)[name]
        told = run(tail, step, clock, number) if tail is not None else (Delta(), False)
        delta, _ = run(thread, step, clock, number)
        after = footer_of(thread, "aaaaaaaa")
        if told[1]:
            assert told[0] == delta
            assert tail is not None
            if not delta.is_empty:
                assert tail.footer() == after
        footer = after


@pytest.mark.parametrize("name", [name for name in STEPS if name not in {"new head", "git"}])
def test_an_ordinary_step_never_needs_the_whole(name: str) -> None:
    thread = a_thread(*a_line("hello", "hi"))
    footer = footer_of(thread, "aaaaaaaa")
    assert footer is not None
    assert run(TailThread(thread.id, footer), STEPS[name], WoundClock(), 1)[1]


def test_git_that_says_the_same_again_never_needs_the_whole() -> None:
    thread = a_thread(*a_line("hello", "hi"))
    for _ in range(2):
        run(thread, STEPS["git"], WoundClock(), 1)
    footer = footer_of(thread, "aaaaaaaa")
    assert footer is not None
    assert run(TailThread(thread.id, footer), STEPS["git"], WoundClock(), 2) == (
        Delta(base_version=thread.version, version=thread.version),
        True,
    )


@given(st.lists(st.sampled_from([*STEPS, *REST]), max_size=8))
def test_what_the_tail_tells_is_true_and_of_all_else_it_says_so(names: list[str]) -> None:
    thread = a_thread(*a_line("hello", "hi"))
    for number, name in enumerate(names):
        run(thread, (STEPS | REST)[name], WoundClock(), number)
    footer = footer_of(thread, "aaaaaaaa")
    if footer is None:
        return
    for name in public_names(Thread):
        if name in {"drafts", "registers", "tree"} or inspect.isfunction(
            inspect.getattr_static(Thread, name, None)
        ):
            continue  # of the drafts, this device's only
        tail = TailThread(thread.id, footer)
        try:
            found = getattr(tail, name)
        except NeedsWhole:
            assert tail.fell_short
        else:
            assert found == getattr(thread, name), name


def test_every_question_to_the_tail_of_a_tree_is_answered_rightly_or_refused() -> None:
    """A method that MessageTree gains later has to be placed here."""
    answered = {"get", "is_leaf", "is_removed", "key", "put", "tip"}
    thread = a_thread(*a_line("hello", "hi", "more"))
    footer = footer_of(thread, "aaaaaaaa")
    assert footer is not None
    for name in public_names(MessageTree) - answered:
        tree = TailThread(thread.id, footer).tree
        method = getattr(tree, name)
        count = len(inspect.signature(method).parameters) - (name == "children")
        with pytest.raises(NeedsWhole):
            method(*itertools.repeat("m3", count))
    for ask in (len, iter, list, lambda tree: "m1" in tree):
        with pytest.raises(NeedsWhole):
            ask(TailThread(thread.id, footer).tree)


def test_a_deleted_thread_and_a_tip_with_an_older_answer_have_no_footer() -> None:
    thread = a_thread(*a_line("hello"))
    run(thread, REST["delete"], WoundClock(), 1)
    assert footer_of(thread, "aaaaaaaa") is None
    skewed = a_thread(a_message("m2", ts="2026-01-01T00:00:00Z", parent_id="m1"), a_message("m1"))
    assert footer_of(skewed, "aaaaaaaa") is None


def public_names(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}
