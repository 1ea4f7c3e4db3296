"""Answers of raddle's in an agent's transcript are known again, however the agent keeps them; nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.threads.message import Message
from raddle.model.threads.recalled import RECALLED_KEY, is_recalled
from raddle.model.threads.search_fields import OUTPUT, TOOLS, USER, fields_of

TOLD = {RECALLED_KEY: "stored text", "hits": [{"text": "a hippogriff"}], "cursor": "x"}
ANSWER = json.dumps(TOLD, separators=(",", ":"))
SORTED = json.dumps(TOLD, sort_keys=True)
BLOCKS = [{"type": "text", "text": ANSWER}]
TAGGED = f"<untrusted_context>\n{ANSWER}\n</untrusted_context>"
CUT_BY_GEMINI = "/home/ada/.gemini/tmp/kiln/tool-outputs/session-648c7c28/mcp_raddle_memory_read__call_1.txt"
FORMS = (
    ANSWER,
    SORTED,
    json.dumps(TOLD, indent=2),
    f"\n {ANSWER}",
    json.dumps(BLOCKS),
    json.dumps({"content": BLOCKS}),
    json.dumps({"content": [{"text": SORTED, "type": "text"}], "isError": False}, indent=1),
    json.dumps({"Ok": {"content": BLOCKS}}),
    json.dumps({"output": ANSWER}),
    json.dumps({"structured_content": TOLD}),
    json.dumps([{"type": "text", "text": json.dumps({"content": BLOCKS})}]),
    f"Wall time: 0.0034 seconds\nOutput:\n{ANSWER}",
    f"Wall time: 0.0034 seconds\nOutput:\n{json.dumps(BLOCKS)}",
    f"Wall time: 0.0034 seconds\nOutput:\n{SORTED}",
    TAGGED,
    f"Output too large. Showing first 8 and last 32 characters. For full output see: {CUT_BY_GEMINI}\n{TAGGED}",
)


@pytest.mark.parametrize("output", FORMS)
def test_an_answer_is_known_as_it_was_given_and_as_an_agent_keeps_it(output: str) -> None:
    assert is_recalled(output)


@pytest.mark.parametrize(
    "output", [form for form in FORMS if "cursor" not in form[: form.index(RECALLED_KEY)]]
)
def test_an_answer_that_was_cut_short_is_known(output: str) -> None:
    assert is_recalled(output[: output.index(RECALLED_KEY) + 40] + "… 3,000 tokens truncated …")


@pytest.mark.parametrize(
    "output",
    [
        "",
        f'RECALLED_KEY = "{RECALLED_KEY}"',
        f"src/recalled.py:12: {ANSWER}",
        f"1\t{ANSWER}",
        json.dumps({"file": ANSWER}),
        json.dumps({"text": RECALLED_KEY}),
        json.dumps([RECALLED_KEY]),
        "{" * 100_000 + RECALLED_KEY,
        "[" * 100_000 + f'{{"{RECALLED_KEY}":',
        " " * 100_000 + RECALLED_KEY,
        '"text"' * 1000 + RECALLED_KEY,
        f'{{"a": "\ud800", "{RECALLED_KEY}": 1}}',
    ],
)
def test_what_names_the_mark_somewhere_is_no_answer(output: str) -> None:
    assert not is_recalled(output)


@given(st.text(), st.text())
def test_any_text_is_answered(before: str, after: str) -> None:
    assert isinstance(is_recalled(f"{before}{RECALLED_KEY}{after}"), bool)


def test_what_it_says_is_not_searched_and_what_a_person_pastes_is() -> None:
    output = Message(id="m1", role="tool", content=ANSWER, tool_name="mcp__raddle__thread_search")
    assert fields_of(output).texts[OUTPUT] == ""
    assert fields_of(output).texts[TOOLS] == "mcp__raddle__thread_search"
    assert fields_of(Message(id="m2", role="user", content=ANSWER)).texts[USER] == ANSWER
