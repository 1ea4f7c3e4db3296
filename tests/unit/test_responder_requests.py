"""What goes to a model's API, to the letter: roles, calls with their results, files, settings."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.answering.ports import Question
from raddle.actions.answering.settings import ResponderSettings
from raddle.adapters.responders import anthropic, openai
from raddle.adapters.responders.calls import SentCalls, arguments_of, name_of
from raddle.adapters.responders.command import input_of
from raddle.model.errors import Rejected
from raddle.model.threads.message import Attachment, ToolCall
from raddle.model.threads.rendering import ChatMessage

PNG = b"\x89PNG\r\n\x1a\n..."
PDF = b"%PDF-1.7 ..."
BYTES = {"1" * 64: PNG, "2" * 64: PDF}
PICTURE = Attachment(sha256="1" * 64, name="a.png", media_type="image/png", size=len(PNG))
PAPER = Attachment(sha256="2" * 64, name="b.pdf", media_type="application/pdf", size=len(PDF))


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def said(role: str, content: str, **fields: Any) -> ChatMessage:
    return ChatMessage(role=role, content=content, **fields)


def call(call_id: str, name: str = "read", arguments: Any = None) -> ToolCall:
    return ToolCall(id=call_id, tool_name=name, arguments_json=arguments)


def question(*messages: ChatMessage, **fields: Any) -> Question:
    return Question(
        thread_id="T-1",
        job_id="J-1",
        messages=messages,
        query="[user] all of it",
        read=lambda attachment: BYTES.get(attachment.sha256),
        **fields,
    )


def settings(**fields: Any) -> ResponderSettings:
    return ResponderSettings(**{"name": "somebody", "kind": "openai", "model": "m"} | fields)


CONVERSATION = (
    said("system", "You help."),
    said("user", "Look at these.", attachments=(PICTURE, PAPER)),
    said("assistant", "", tool_calls=(call("call_a", arguments={"path": "ü.md"}), call("call_b", "run"))),
    said("tool", "# Notes", tool_call_id="call_a", tool_name="read"),
    said("tool", "no such program", tool_call_id="call_b", tool_name="run", is_error=True),
    said("assistant", "Done."),
    said("user", "And now?"),
)


def test_openai_is_sent_the_conversation_in_its_own_shapes() -> None:
    body = openai.request_of(question(*CONVERSATION), settings(system="Be brief."), is_openai=False)
    assert body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "system", "content": "You help."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look at these."},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{coded(PNG)}"}},
                    {
                        "type": "file",
                        "file": {
                            "filename": "b.pdf",
                            "file_data": f"data:application/pdf;base64,{coded(PDF)}",
                        },
                    },
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_a",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path": "ü.md"}'},
                    },
                    {"id": "call_b", "type": "function", "function": {"name": "run", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_a", "content": "# Notes"},
            {"role": "tool", "tool_call_id": "call_b", "content": "no such program"},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "And now?"},
        ],
    }


def test_anthropic_is_sent_the_conversation_in_its_own_shapes() -> None:
    body = anthropic.request_of(question(*CONVERSATION), settings(system="Be brief."))
    schema = {"type": "object", "additionalProperties": True}
    assert body == {
        "model": "m",
        "max_tokens": anthropic.MAX_TOKENS,
        "stream": True,
        "system": "Be brief.\n\nYou help.",
        "tools": [{"name": "read", "input_schema": schema}, {"name": "run", "input_schema": schema}],
        "tool_choice": {"type": "none"},
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look at these."},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": coded(PNG)},
                    },
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": coded(PDF)},
                        "title": "b.pdf",
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "call_a", "name": "read", "input": {"path": "ü.md"}},
                    {"type": "tool_use", "id": "call_b", "name": "run", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_a",
                        "content": [{"type": "text", "text": "# Notes"}],
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_b",
                        "content": [{"type": "text", "text": "no such program"}],
                        "is_error": True,
                    },
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
            {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
        ],
    }


def test_a_plain_question_is_sent_plainly() -> None:
    asked = question(said("user", "Hello?"))
    body = openai.request_of(asked, settings(), is_openai=True)
    assert body["messages"] == [{"role": "user", "content": "Hello?"}]
    body = anthropic.request_of(asked, settings())
    assert body == {
        "model": "m",
        "max_tokens": anthropic.MAX_TOKENS,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello?"}]}],
    }


def test_limits_and_effort_have_each_apis_own_names() -> None:
    asked, given_ = question(said("user", "?")), settings(max_tokens=9, effort="high")
    assert openai.request_of(asked, given_, is_openai=True)["max_completion_tokens"] == 9
    assert openai.request_of(asked, given_, is_openai=False)["max_tokens"] == 9
    assert openai.request_of(asked, given_, is_openai=False)["reasoning_effort"] == "high"
    body = anthropic.request_of(asked, given_)
    assert (body["max_tokens"], body["output_config"]) == (9, {"effort": "high"})


def test_a_model_has_to_be_named() -> None:
    asked, given_ = question(said("user", "?")), settings(model="")
    with pytest.raises(Rejected, match="no model"):
        openai.request_of(asked, given_, is_openai=True)
    with pytest.raises(Rejected, match="no model"):
        anthropic.request_of(asked, given_)


def test_pictures_in_a_result_follow_it_where_results_take_only_words() -> None:
    messages = (
        said("assistant", "I look.", tool_calls=(call("a"), call("b"))),
        said("tool", "here", tool_call_id="a", attachments=(PICTURE,)),
        said("tool", "", tool_call_id="b"),
    )
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{coded(PNG)}"}}
    assert openai.messages_of(question(*messages))[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "here"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[what the tools' results above hold besides words]"},
                image,
            ],
        },
    ]
    again = openai.messages_of(question(*messages, said("user", "And?")))
    assert [message["role"] for message in again] == ["assistant", "tool", "tool", "user", "user"]
    sent = anthropic.messages_of(messages, question().read, SentCalls())
    assert [block["type"] for block in sent[2]["content"][0]["content"]] == ["text", "image"]
    assert sent[2]["content"][1] == {"type": "tool_result", "tool_use_id": "b"}


def test_anthropics_turns_alternate_and_begin_with_the_users() -> None:
    messages = (
        said("assistant", "First.  \n"),
        said("assistant", "   "),
        said("user", "one"),
        said("user", "two"),
        said("system", "The date changed."),
    )
    assert anthropic.messages_of(messages, question().read, SentCalls()) == [
        {"role": "user", "content": [{"type": "text", "text": "[the conversation begins with an answer]"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "First."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "one"},
                {"type": "text", "text": "two"},
                {"type": "text", "text": "[system]"},
                {"type": "text", "text": "The date changed."},
            ],
        },
    ]


def test_a_result_without_its_call_is_told_by_the_user() -> None:
    lost = said("tool", "42", tool_call_id="gone", tool_name="count")
    assert openai.messages_of(question(lost)) == [{"role": "user", "content": "[tool] count\n\n42"}]
    assert anthropic.messages_of([lost], question().read, SentCalls())[0]["role"] == "user"


def test_ids_and_names_that_an_api_would_refuse_are_replaced_and_pairs_stay_pairs() -> None:
    messages = (
        said("assistant", "", tool_calls=(call("toolu|" + "x" * 60, "mcp: read/file"), call("same"))),
        said("tool", "1", tool_call_id="toolu|" + "x" * 60),
        said("tool", "2", tool_call_id="same"),
        said("assistant", "", tool_calls=(call("same"),)),
        said("tool", "3", tool_call_id="same"),
    )
    sent = openai.messages_of(question(*messages))
    made = [made["id"] for message in sent for made in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert made == answered == ["call_1", "same", "call_3"]
    assert sent[0]["tool_calls"][0]["function"]["name"] == "mcp_read_file"


@given(st.lists(st.text(max_size=50) | st.sampled_from(["a", "call_1", "call_2"]), max_size=12))
def test_no_two_calls_of_a_request_have_one_id(call_ids: list[str]) -> None:
    sent = SentCalls()
    told = [sent.add(call(call_id)) for call_id in call_ids]
    assert len(set(told)) == len(told)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", one) for one in told)
    assert [sent.result(call_ids[-1])] == told[-1:] if call_ids else not told


@given(st.text())
def test_every_name_can_be_sent(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name_of(name))


@pytest.mark.parametrize(
    ("kept", "sent"),
    [
        (None, {}),
        ("", {}),
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ("ls -l", {"input": "ls -l"}),
        ([1, 2], {"input": [1, 2]}),
        ("[1", {"input": "[1"}),
        (7, {"input": 7}),
    ],
)
def test_arguments_are_sent_as_an_object(kept: Any, sent: dict[str, Any]) -> None:
    assert arguments_of(call("a", arguments=kept)) == sent


def test_a_program_gets_the_query_or_all_of_it_as_json() -> None:
    asked = question(*CONVERSATION, model="other")
    assert input_of(asked, settings(kind="command")) == b"[user] all of it"
    plain = input_of(asked, settings(kind="command", format="json", system="Be brief.")).decode()
    assert plain.startswith(
        '{"query":"Be brief.\\n\\n[user] all of it","messages":[{"role":"system","content":"Be brief."},'
    )
    assert (
        '{"role":"assistant","content":"","tool_calls":[{"id":"call_a","tool_name":"read","arguments":{"path":"ü.md"}},'
        in plain
    )
    assert (
        '{"role":"tool","content":"# Notes","tool_call_id":"call_a","tool_name":"read","is_error":false}'
        in plain
    )
    assert "[attachment a.png, image/png, 11 bytes, not sent]" in plain
    assert plain.endswith('"model":"other","thread_id":"T-1"}')
