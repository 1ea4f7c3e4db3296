"""A thread as lines for a terminal: what is shown, what is shortened, what is set off."""

from __future__ import annotations

import json
from collections.abc import Iterable

import click
import pytest

from raddle.apps.cli import reader, words
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import NOTICE, Attachment, Message, ToolCall
from raddle.model.threads.thread import Thread
from tests.builders import NOON, THREAD_ID, a_line, a_message, a_thread, an_author

HOSTILE = "safe\x1b[2J\x07\u202egnp.exe\rover"


def plain(lines: Iterable[str]) -> list[str]:
    """The lines without colour."""
    return [click.unstyle(line) for line in lines]


def read(thread: Thread, leaf: str | None = None, *, is_full: bool = False, room: int | None = None) -> str:
    """The conversation up to a leaf, else the tip, as text."""
    tip = thread.tree.tip()
    at = leaf or (tip.id if tip is not None else None)
    return "\n".join(plain(reader.conversation(thread, at, is_full=is_full, room=room)))


def a_call(name: str, arguments: object, call_id: str = "c1") -> ToolCall:
    return ToolCall(id=call_id, tool_name=name, arguments_json=arguments)


def test_the_header_says_what_the_thread_is() -> None:
    thread = a_thread(*a_line("hi", "hello"), title="Fix the lock", is_pinned=True, workspace_root="/w/moth")
    lines = plain(reader.header(thread, NOON, ["its source\nwas rewritten"]))
    assert lines == [
        "Fix the lock",
        f"{THREAD_ID}  2 messages  –",
        "/w/moth  pinned",
        "note: its source was rewritten",
    ]


def test_a_conversation_shows_who_said_what_and_when() -> None:
    thread = a_thread(a_message("m1", "one\n\ntwo"))
    assert read(thread).split("\n") == ["", "user  2026-11-30 12:00  m1", "  one", "", "  two"]


def test_an_empty_thread_says_so() -> None:
    assert read(a_thread()).strip() == "(no messages)"


def test_only_the_path_to_the_leaf_is_shown_and_the_fork_is_told() -> None:
    root, answer = a_line("ask", "first answer")
    other = a_message("m3", "second answer", parent_id="m1", role="assistant", ts="2026-11-30T12:00:09Z")
    thread = a_thread(root, answer, other)
    assert "first answer" not in read(thread)
    assert "assistant  2026-11-30 12:00  m3  2 of 2 here" in read(thread)
    assert "m2  1 of 2 here" in read(thread, "m2")


def test_a_long_tool_result_is_shortened_and_says_how_to_see_it_whole() -> None:
    result = a_message("m2", "\n".join(map(str, range(20))), parent_id="m1", role="tool", tool_name="Bash")
    thread = a_thread(a_message("m1"), result)
    assert "… 14 more lines (--full)" in read(thread)
    assert "  19" in read(thread, is_full=True)
    assert "--full" not in read(thread, is_full=True)


def test_thoughts_are_set_off_from_words_without_colour() -> None:
    thread = a_thread(a_message("m1", "I said", thinking="I thought\nand thought"))
    assert read(thread).split("\n")[2:] == ["  ┆ I thought", "  ┆ and thought", "  I said"]


def test_a_tool_call_shows_what_says_most_of_it() -> None:
    calls = (
        a_call("Bash", {"timeout": 5, "command": "make\ntest"}),
        a_call("Read", {"file_path": "/w/moth/src/a.py"}, "c2"),
        a_call("Strange", {"b": [1], "a": None}, "c3"),
        a_call("Bare", None, "c4"),
        a_call("Text", "as it is", "c5"),
    )
    thread = a_thread(a_message("m1", "", tool_calls=calls), workspace_root="/w/moth")
    assert read(thread).split("\n")[2:] == [
        "  → Bash  make test",
        "  → Read  src/a.py",
        "  → Strange  b: [1] a: null",
        "  → Bare",
        "  → Text  as it is",
    ]
    assert "    command: make\n    test" in read(thread, is_full=True)


def test_a_result_is_named_by_its_call_and_says_that_it_failed() -> None:
    call = a_message("m1", "", role="assistant", tool_calls=(a_call("Bash", {}),))
    result = a_message("m2", "no", parent_id="m1", role="tool", tool_call_id="c1", is_error=True)
    assert "Bash failed  " in read(a_thread(call, result))


@pytest.mark.parametrize("kind", [NOTICE, "compaction", "something new"])
def test_what_is_no_turn_is_not_shown_as_one(kind: str) -> None:
    assert f"user ({kind})" in read(a_thread(a_message("m1", "context", kind=kind)))


def test_erased_words_leave_a_place() -> None:
    assert "  (erased)" in read(a_thread(a_message("m1", "secret").purged()))


def test_attachments_are_named_with_their_size() -> None:
    attachment = Attachment(sha256="0" * 64, media_type="image/png", size=3_200_000)
    assert "[image/png, 3.2 MB]" in read(a_thread(a_message("m1", "see", attachments=(attachment,))))


def test_files_of_which_the_source_had_the_name_alone_are_named_too() -> None:
    files = [{"name": "kiln.png"}, {"id": "file-1"}, "no file"]
    shown = read(a_thread(a_message("m1", "", extra={"files": files})))
    assert "[kiln.png: its bytes were not in the source]" in shown
    assert "[file-1: " in shown
    assert "x" in read(a_thread(a_message("m1", "x", extra={"files": 7})))


def test_a_text_that_is_kept_apart_says_how_much_of_it_can_be_found() -> None:
    whole = Attachment(sha256="0" * 64, media_type="text/plain", size=40_000_000, is_body=True)
    shown = read(a_thread(a_message("m1", "see", attachments=(whole,))))
    assert "[the whole text, 40.0 MB, is kept apart; search knows this much of it]" in shown


def test_long_lines_break_at_words_where_a_terminal_is_and_nowhere_else() -> None:
    thread = a_thread(a_message("m1", "word " * 40))
    assert max(map(words.width, read(thread, room=40).split("\n"))) <= 40
    assert max(map(len, read(thread).split("\n"))) > 190


def test_no_transcript_steers_the_terminal() -> None:
    call = a_call(HOSTILE, {"command": HOSTILE})
    hostile = a_message(
        "m1", HOSTILE, role=HOSTILE, thinking=HOSTILE, kind=HOSTILE, tool_calls=(call,), tool_name=HOSTILE
    )
    thread = a_thread(hostile, title=HOSTILE, workspace_root=HOSTILE)
    shown = [
        *plain(reader.header(thread, NOON, [HOSTILE])),
        *read(thread, is_full=True).split("\n"),
        *plain(reader.outline(thread)),
    ]
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set("".join(shown))


def test_the_outline_indents_a_fork_and_marks_the_tip() -> None:
    ask, first, go_on = a_line("ask", "first", "go on")
    fork = a_message(
        "m4", "second", parent_id="m1", branch_id="m4", role="assistant", ts="2026-11-30T12:00:30Z"
    )
    thread = a_thread(ask, first, go_on, fork)
    assert plain(reader.outline(thread)) == [
        "m1        user  ask",
        "m4        │ assistant [tip]  second",
        "m2        assistant  first",
        "m3        user  go on",
    ]


def test_the_outline_sets_a_second_beginning_off_from_what_it_does_not_answer() -> None:
    ask, answer = a_line("ask", "answer")
    other = a_message("m3", "elsewhere", ts="2026-11-30T12:00:30Z")
    last = a_message("m4", "again", ts="2026-11-30T12:00:40Z")
    assert plain(reader.outline(a_thread(ask, answer, other, last))) == [
        "m1        user  ask",
        "m2        assistant  answer",
        "",
        "m3        user  elsewhere",
        "",
        "m4        user [tip]  again",
    ]


@pytest.mark.parametrize("room", [20, 30, 40, 60])
@pytest.mark.parametrize("said", ["x" * 300, "東京湾" * 100, "👩\u200d👩\u200d👧" * 60, ""])
def test_no_line_of_the_outline_is_broken_by_a_narrow_terminal(said: str, room: int) -> None:
    call = a_call("mcp__a_server_with_a_name__search", {"query": said})
    asked = a_message("m1", said, tool_calls=(call,))
    answers = [
        a_message(
            f"m{number}",
            said,
            parent_id="m1",
            branch_id=f"m{number}",
            role="tool",
            tool_call_id="c1",
            is_error=True,
            ts=f"2026-11-30T12:00:{number:02d}Z",
        )
        for number in range(10, 14)
    ]
    thread = a_thread(asked, *answers, a_message("m2").purged())
    Editor(thread, an_author()).name_branch("m12", said or "a name")
    lines = plain(reader.outline(thread, room=room))
    assert max(map(words.width, lines)) <= room
    assert all(line[:2] == "m1" or line in {"", *lines[:1]} or line.startswith("m2") for line in lines)


def test_the_outline_shows_removed_turns_only_when_asked() -> None:
    thread = a_thread(*a_line("stay", "stay too", "go"), author=an_author())
    Editor(thread, an_author()).undo()
    assert len(list(reader.outline(thread))) == 2
    assert any("[removed]" in line for line in plain(reader.outline(thread, with_removed=True)))


def test_the_outline_is_as_wide_as_the_terminal_and_deep_forks_stay_readable() -> None:
    messages: list[Message] = [a_message("m0", "x" * 300)]
    for depth in range(1, 60):
        parent = messages[-1].id
        messages += [
            a_message(
                f"m{depth}-{number}",
                "y" * 300,
                parent_id=parent,
                branch_id=f"b{depth}-{number}",
                ts=f"2026-11-30T12:{depth:02d}:0{number}Z",
            )
            for number in (0, 1)
        ]
    lines = plain(reader.outline(a_thread(*messages), room=80))
    assert len(lines) == len(messages)
    assert max(map(words.width, lines)) <= 80


def test_messages_whose_ids_end_alike_are_called_by_their_whole_ids() -> None:
    one, other = a_message("one-12345678"), a_message("two-12345678", parent_id="one-12345678")
    alone = a_message("three-87654321", parent_id="two-12345678")
    names = reader.page_of(a_thread(one, other, alone)).names
    assert names == {
        "one-12345678": "one-12345678",
        "two-12345678": "two-12345678",
        "three-87654321": "87654321",
    }


def test_lost_messages_are_named_with_what_helps() -> None:
    thread = a_thread(a_message("m1"), a_message("m2", "adrift", parent_id="gone"))
    shown = plain(reader.lost_and_found(thread))
    assert shown[1] == "Lost and found: 1 message with no way to a root"
    assert "adrift" in shown[2]
    assert "doctor --fix" in shown[3]


def test_this_devices_drafts_are_told() -> None:
    author = an_author()
    thread = a_thread(a_message("m1"), author=author)
    Editor(thread, author).set_draft("m1", "not\nsent")
    assert list(reader.drafts(thread, author.device)) == ["draft under m1: not sent"]
    assert list(reader.drafts(thread, "bbbbbbbb")) == []


def test_arguments_that_are_no_json_text_are_shown_all_the_same() -> None:
    thread = a_thread(a_message("m1"))
    shown = reader.call_in_short(thread, {"x": json.loads('{"y": [1.5, true]}')})
    assert shown == "x: y: [1.5,true]"
