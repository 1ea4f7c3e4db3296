"""Turns that were added here, as lines of another agent's session file, and as what they come back as."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.exporting.native import (
    Added,
    Insertion,
    SourceEnd,
    added_turns,
    candidates_of,
)
from raddle.actions.exporting.native_claude_code import ClaudeCodeWriter
from raddle.actions.exporting.native_codex import CodexWriter
from raddle.actions.exporting.native_gemini_cli import GeminiCliWriter
from raddle.model.clock import format_time
from raddle.model.errors import BrokenFormat, NotFound
from raddle.model.threads.carried import carried_form, carried_mark, carried_message, is_carried_mark
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import NOTICE
from tests.builders import NOON, SECOND, a_line, a_message, a_thread, an_author
from tests.builders_codex import a_bare_session
from tests.builders_gemini_cli import a_session_with_everything as gemini_session
from tests.builders_gemini_cli import an_old_session
from tests.builders_native import ANSWER, inserted, written, written_by

DEVICE = "aaaaaaaa"


class TestWhatWasAdded:
    def test_turns_of_a_device_are_added_and_turns_of_a_source_are_not(self) -> None:
        thread = a_thread(*a_line("a", "b"), written(parent_id="m2"))
        found = candidates_of(thread, None, is_tree=True)
        assert [message.id for message in found.messages] == ["x1"]
        assert found.around == {"m1", "m2", "x1"}

    def test_what_was_taken_back_or_erased_is_not_written(self) -> None:
        thread = a_thread(*a_line("a"), written("x1", parent_id="m1"), written("x2", "gone", parent_id="x1"))
        editor = Editor(thread, an_author())
        editor.write("gone/x2", True)
        editor.purge(["x1"])
        assert candidates_of(thread, None, is_tree=True).messages == ()

    def test_notices_are_left_out_and_what_answers_them_hangs_above(self) -> None:
        notice = written("n1", "context", parent_id="m1", kind=NOTICE)
        thread = a_thread(
            *a_line("a"), notice, written("x1", parent_id="n1", ts=format_time(NOON + 90 * SECOND))
        )
        (added,) = added_turns(thread, candidates_of(thread, None, is_tree=True), {"m1"})
        assert (added.under, added.message.parent_id) == ("m1", "m1")

    def test_the_form_that_hangs_elsewhere_yields_to_the_true_one(self) -> None:
        notice = written("n1", "context", parent_id="m1", kind=NOTICE)
        thread = a_thread(
            *a_line("a"), notice, written("x1", parent_id="n1", ts=format_time(NOON + 90 * SECOND))
        )
        (added,) = added_turns(thread, candidates_of(thread, None, is_tree=True), {"m1"})
        assert not thread.join(a_thread(added.message).whole())

    def test_a_branch_takes_only_the_turns_on_its_path(self) -> None:
        thread = a_thread(
            *a_line("a", "b"), written("x1", parent_id="m2"), written("x2", parent_id="m1", branch_id="x2")
        )
        found = candidates_of(thread, "x1", is_tree=True)
        assert ([one.id for one in found.messages], found.elsewhere) == (["x1"], 1)
        assert len(candidates_of(thread, None, is_tree=True).messages) == 2
        with pytest.raises(NotFound):
            candidates_of(thread, "nobody", is_tree=True)

    def test_a_format_without_branches_takes_the_path_to_the_tip(self) -> None:
        later = format_time(NOON + 99 * SECOND)
        thread = a_thread(
            *a_line("a", "b"), written("x1", parent_id="m2"), written("x2", parent_id="m1", ts=later)
        )
        found = candidates_of(thread, None, is_tree=False)
        assert ([one.id for one in found.messages], found.elsewhere) == (["x2"], 1)

    def test_what_no_agent_has_a_line_for_is_counted(self) -> None:
        thread = a_thread(
            *a_line("a"),
            written("x1", role="system", parent_id="m1"),
            written("x2", parent_id="m1", is_sidechain=True),
        )
        found = candidates_of(thread, None, is_tree=True)
        assert (found.messages, found.unwritten) == ((), 2)

    def test_what_the_file_holds_is_not_written_again(self) -> None:
        thread = a_thread(*a_line("a"), written(parent_id="m1"))
        found = candidates_of(thread, None, is_tree=True)
        assert added_turns(thread, found, {"m1", "x1"}) == []

    def test_a_cycle_above_a_turn_ends(self) -> None:
        thread = a_thread(
            a_message("m1", parent_id="m2"), a_message("m2", parent_id="m1"), written(parent_id="m2")
        )
        (added,) = added_turns(thread, candidates_of(thread, None, is_tree=True), set())
        assert (added.under, added.message.parent_id) == ("", None)


class TestCarried:
    def test_a_message_comes_back_as_it_was(self) -> None:
        message = written(parent_id="m1", seq=NOON * 2, author="Ada", extra={"a": [1]})
        form = json.loads(msgspec.json.encode(carried_form(message, is_said=True)))
        assert "content" not in form
        assert carried_message(form, "and then?") == message
        whole = json.loads(msgspec.json.encode(carried_form(message, is_said=False)))
        assert carried_message(whole, "something else") == message

    @pytest.mark.parametrize(
        "form",
        [
            None,
            7,
            [],
            {},
            {"id": "x1"},
            {"id": "x1", "role": "user"},
            {"id": 1, "role": "user", "device": "a"},
            {"id": "x 1", "role": "user", "device": "a"},
            {"id": "x", "role": "user", "device": 7},
            {"id": "x", "role": "user", "device": "a", "kind": "purged"},
        ],
    )
    def test_what_is_no_message_of_ours_is_none(self, form: Any) -> None:
        assert carried_message(form, "said") is None

    def test_no_file_can_raise_a_revision(self) -> None:
        message = carried_message({"id": "x", "role": "user", "device": "a", "rev": 99}, "said")
        assert message is not None
        assert message.rev == 0

    def test_a_mark_says_only_whose_line_it_is(self) -> None:
        assert is_carried_mark(carried_mark(written()))
        assert not is_carried_mark(carried_form(written(), is_said=True))


def rows(insertion: Insertion) -> list[dict[str, Any]]:
    return [json.loads(line) for line in insertion.data.splitlines()]


RESULT = written("x3", "a.txt", role="tool", parent_id="x2", tool_call_id="c1", tool_name="Bash")
THREE = (
    Added(message=written("x1", parent_id="m2"), under="m2"),
    Added(message=ANSWER, under="x1"),
    Added(message=RESULT, under="x2"),
)


class TestClaudeCodeLines:
    LINES: ClassVar[list[bytes]] = [
        b'{"type":"user","uuid":"u1","parentUuid":null,"cwd":"/a","version":"2.1","gitBranch":"main"}',
        b'{"type":"assistant","uuid":"u2","parentUuid":"u1","cwd":"/b"}',
        b'{"type":"system","uuid":"u3","parentUuid":"u2"}',
        b'{"type":"progress","uuid":"u4","parentUuid":"u3"}',
        b'{"type":"user","uuid":"u5","isSidechain":true}',
        b"half a li",
    ]
    AFTER: ClassVar[dict[str, str]] = {"u1": "m1", "u2": "m2", "u3": "m2", "u4": "m2", "u5": "m2"}

    def test_a_turn_hangs_on_the_last_record_of_its_parent(self) -> None:
        made = rows(written_by(ClaudeCodeWriter({"m1", "m2"}), self.LINES, THREE, self.AFTER))
        assert [row["parentUuid"] for row in made] == ["u3", made[0]["uuid"], made[1]["uuid"]]
        assert [row["type"] for row in made] == ["user", "assistant", "user"]
        assert {(row["cwd"], row["version"], row["gitBranch"], row["sessionId"]) for row in made} == {
            ("/b", "2.1", "main", "s1")
        }
        assert made[0]["timestamp"].endswith(".000Z")

    def test_calls_and_results_are_blocks(self) -> None:
        _, answer, result = rows(written_by(ClaudeCodeWriter({"m2"}), self.LINES, THREE, self.AFTER))
        assert answer["message"]["model"] == "m-1"
        assert [block["type"] for block in answer["message"]["content"]] == ["text", "tool_use"]
        assert result["message"]["content"][0] == {
            "tool_use_id": "c1",
            "type": "tool_result",
            "content": "a.txt",
        }

    def test_where_no_record_is_known_it_hangs_on_the_last_one(self) -> None:
        made = rows(written_by(ClaudeCodeWriter(set()), self.LINES, THREE[:1]))
        assert made[0]["parentUuid"] == "u3"
        (root,) = rows(written_by(ClaudeCodeWriter(set()), self.LINES, [Added(message=written(), under="")]))
        assert root["parentUuid"] is None

    def test_an_unfinished_last_line_is_ended_first(self) -> None:
        writer = ClaudeCodeWriter(set())
        made = writer.insertion(list(THREE[:1]), "s1", SourceEnd(size=9, is_ended=False))
        assert (made.at, made.data[:1]) == (9, b"\n")


class TestCodexLines:
    def test_bare_items_stay_bare(self) -> None:
        made = rows(written_by(CodexWriter(), a_bare_session().lines, THREE))
        assert [row["type"] for row in made] == [
            "message",
            "message",
            "function_call",
            "function_call_output",
        ]
        assert all("payload" not in row for row in made)

    def test_wrapped_items_have_a_wrapper_and_the_event_that_shows_them(self) -> None:
        line = (
            b'{"timestamp":"2026-01-01T00:00:00.000Z","type":"event_msg","payload":{"type":"user_message"}}'
        )
        made = rows(written_by(CodexWriter(), [line], THREE))
        assert [(row["type"], row["payload"]["type"]) for row in made] == [
            ("response_item", "message"),
            ("event_msg", "user_message"),
            ("response_item", "message"),
            ("response_item", "function_call"),
            ("event_msg", "agent_message"),
            ("response_item", "function_call_output"),
        ]
        assert [row["raddle"].keys() == {"id"} for row in made] == [False, True, False, True, True, False]
        assert "ordinal" not in made[0]

    def test_ordinals_go_on(self) -> None:
        lines = [
            b'{"timestamp":"t","ordinal":6,"type":"turn_context","payload":{"turn_id":"t1"}}',
            b'{"ordinal":7,"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage"}}}',
        ]
        made = rows(written_by(CodexWriter(), lines, THREE[:1]))
        assert [row["ordinal"] for row in made] == [8, 9]
        assert made[1]["payload"]["turn_id"] == "t1"
        assert made[1]["payload"]["item"]["content"][0]["text"] == "and then?"

    def test_a_call_without_words_is_no_message(self) -> None:
        silent = msgspec.structs.replace(ANSWER, content="")
        made = rows(written_by(CodexWriter(), [], [Added(message=silent, under="x1")]))
        assert [row["payload"]["type"] for row in made] == ["function_call"]
        assert json.loads(made[0]["payload"]["arguments"]) == {"command": "ls"}


DOCUMENTS = (
    b'{\n  "sessionId": "s",\n  "messages": [\n    {\n      "id": "a",\n      "content": "]}\\"[\\\\"\n    }\n  ]\n}\n',
    b'{\n\t"messages": [\n\t\t{\n\t\t\t"id": "a"\n\t\t}\n\t],\n\t"summary": "x [ y"\n}',
    b'{"messages":[{"id":"a"}],"sessionId":"s"}',
    b'{"messages":[]}',
    b'{\n  "other": [1, {"messages": [2]}],\n  "messages": [\n  ]\n}\n',
    b'{\r\n  "messages": [\r\n    {\r\n      "id": "a"\r\n    }\r\n  ]\r\n}\r\n',
)


class TestGeminiLines:
    def test_a_file_of_lines_gets_lines(self) -> None:
        session = gemini_session()
        made = written_by(GeminiCliWriter(), session.lines, THREE)
        assert made.at == len(session.data)
        assert [row["type"] for row in rows(made)] == ["user", "gemini", "user"]
        assert rows(made)[0]["content"] == [{"text": "and then?"}]

    def test_a_header_alone_is_the_first_line(self) -> None:
        assert rows(written_by(GeminiCliWriter(), gemini_session().lines[:1], THREE[:1]))[0]["type"] == "user"

    @given(
        document=st.sampled_from(DOCUMENTS),
        cuts=st.sets(st.integers(0, 140)),
        added=st.sampled_from([THREE[:1], THREE]),
    )
    def test_a_document_gets_elements_however_its_bytes_come(
        self, document: bytes, cuts: set[int], added: tuple[Added, ...]
    ) -> None:
        writer = GeminiCliWriter()
        edges = [0, *sorted(cuts), len(document)]
        for start, end in pairwise(edges):
            writer.scan(document[start:end])
        end_of_file = SourceEnd(size=len(document), is_ended=document.endswith(b"\n"))
        after = json.loads(inserted(document, writer.insertion(added, "s", end_of_file)))
        before = json.loads(document)
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert [one["raddle"]["id"] for one in after["messages"][len(before["messages"]) :]] == [
            one.message.id for one in added
        ]
        assert {k: v for k, v in after.items() if k != "messages"} == {
            k: v for k, v in before.items() if k != "messages"
        }

    def test_an_element_is_printed_as_the_others_are(self) -> None:
        lines = an_old_session().document()
        data = b"\n".join(lines)
        writer = GeminiCliWriter()
        writer.scan(data)
        made = inserted(data, writer.insertion(THREE, "s", SourceEnd(size=len(data), is_ended=False)))
        assert made == json.dumps(json.loads(made), indent=2, ensure_ascii=False).encode()

    def test_a_document_without_its_end_has_no_place(self) -> None:
        writer = GeminiCliWriter()
        writer.scan(DOCUMENTS[0][:-6])
        with pytest.raises(BrokenFormat):
            writer.insertion(THREE, "s", SourceEnd(size=1, is_ended=True))
