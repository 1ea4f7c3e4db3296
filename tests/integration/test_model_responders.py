"""What only one of the models' APIs shows: how each of their many servers ends a stream, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from raddle.actions.answering.ports import Responder
from raddle.actions.answering.settings import Kind, ResponderSettings
from raddle.adapters.responders import responder_of
from raddle.model.errors import Rejected, Unanswered
from raddle.model.threads.message import ToolCall, Usage
from tests.contract.responder_laws import IMPATIENT, KEY, a_question, answer_of, asked, text_of
from tests.fakes.model_http import ModelHttp, Says, Story, openai_stream, refusal, serving_model


@pytest.fixture
def server() -> Iterator[ModelHttp]:
    with serving_model() as server:
        yield server


def whom(server: ModelHttp, kind: Kind = "openai", key: str | None = None, **settings: object) -> Responder:
    given = {"name": "somebody", "kind": kind, "url": "http://localhost/v1", "model": "m"} | settings
    return responder_of(
        ResponderSettings(**given),  # type: ignore[arg-type]
        key=lambda: key,
        pause=lambda seconds: None,
        random=lambda: 0.0,
        socket_path=server.socket_path,
    )


def sends(server: ModelHttp, *chunks: bytes) -> None:
    server.answers = [Says(pieces=[b"data: %b\n\n" % chunk for chunk in chunks])]


def test_a_model_on_this_machine_needs_no_key(server: ModelHttp) -> None:
    server.answers = [Says(pieces=openai_stream(Story(["Yes"])))]
    asked(whom(server))
    assert "authorization" not in server.requests[0].headers


def test_each_api_has_its_own_header_for_the_key(server: ModelHttp) -> None:
    server.answers = [refusal(401)]
    for kind in ("openai", "anthropic"):
        with pytest.raises(Rejected):
            asked(whom(server, kind, KEY))
    first, second = (asked.headers for asked in server.requests)
    assert first["authorization"] == f"Bearer {KEY}"
    assert (second["x-api-key"], second["anthropic-version"]) == (KEY, "2023-06-01")
    assert [asked.path for asked in server.requests] == ["/v1/chat/completions", "/v1/messages"]


def test_the_base_of_anthropics_api_may_be_written_without_its_version(server: ModelHttp) -> None:
    server.answers = [refusal(400)]
    with pytest.raises(Rejected):
        asked(whom(server, "anthropic", url="http://localhost/"))
    assert server.requests[0].path == "/v1/messages"


def test_an_answer_is_whole_without_its_last_line(server: ModelHttp) -> None:
    server.answers = [Says(pieces=openai_stream(Story(["Yes"]), with_done=False))]
    assert answer_of(asked(whom(server))).text == "Yes"


def test_an_answer_that_has_ended_is_whole_whatever_becomes_of_its_connection(server: ModelHttp) -> None:
    for then in ("breaks", "hangs"):
        stream = openai_stream(Story(["Yes"]), with_done=False)
        server.answers = [Says(pieces=stream, then=then)]
        assert answer_of(asked(whom(server, timeout_seconds=IMPATIENT))).text == "Yes"


def test_nothing_is_waited_for_after_the_last_line(server: ModelHttp) -> None:
    server.answers = [Says(pieces=openai_stream(Story(["Yes"])), then="hangs")]
    assert answer_of(asked(whom(server, timeout_seconds=60))).text == "Yes"
    assert server.has_lost_somebody.wait(10)


def test_the_last_event_may_lack_its_blank_line(server: ModelHttp) -> None:
    server.answers = [Says(pieces=[b'data: {"choices":[{"delta":{"content":"Yes"}}]}\n\ndata: [DONE]'])]
    assert answer_of(asked(whom(server))).text == "Yes"
    server.answers = [Says(pieces=[b'data: {"choices":[{"delta":{"content":"Half"}}]}\n\ndata: {"choi'])]
    with pytest.raises(Unanswered, match="cut off"):
        asked(whom(server))


_AT_ONCE: list[tuple[Kind, bytes]] = [
    (
        "openai",
        (
            b'{"object":"chat.completion","model":"big","choices":[{"index":0,"finish_reason":null,"message":{'
            b'"role":"assistant","content":"Yes","tool_calls":[{"id":"c1","type":"function","function":{"name":"x",'
            b'"arguments":"{\\"n\\":1}"}}]}}],"usage":{"prompt_tokens":5,"completion_tokens":7}}'
        ),
    ),
    (
        "anthropic",
        (
            b'{"type":"message","role":"assistant","model":"big","stop_reason":"tool_use","content":[{"type":"text",'
            b'"text":"Yes"},{"type":"tool_use","id":"c1","name":"x","input":{"n":1}}],'
            b'"usage":{"input_tokens":5,"output_tokens":7}}'
        ),
    ),
]


@pytest.mark.parametrize(("kind", "body"), _AT_ONCE, ids=[kind for kind, _ in _AT_ONCE])
def test_an_answer_that_is_not_streamed_is_taken_all_the_same(
    server: ModelHttp, kind: Kind, body: bytes
) -> None:
    server.answers = [Says(pieces=[body[:50], body[50:]], kind="application/json; charset=utf-8")]
    events = asked(whom(server, kind))
    answered = answer_of(events)
    assert (text_of(events), answered.text, answered.model, answered.cut_by) == ("Yes", "Yes", "big", "")
    assert answered.usage == Usage(input_tokens=5, output_tokens=7)
    assert answered.tool_calls == (ToolCall(id="c1", tool_name="x", arguments_json={"n": 1}),)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b'{"choices":[],"type":"message"}', b'{"choices":[{}]}', b'{"choi', b""]
)
def test_what_is_neither_a_stream_nor_an_answer_is_none(server: ModelHttp, kind: Kind, body: bytes) -> None:
    server.answers = [Says(pieces=[body], kind="application/json")]
    with pytest.raises(Unanswered, match="no stream of events"):
        asked(whom(server, kind))


@pytest.mark.parametrize("kind", ["openai", "anthropic", "orchestrator"])
def test_who_is_to_get_no_key_is_asked_without_one(server: ModelHttp, kind: Kind) -> None:
    server.answers = [refusal(401, "who are you?")]
    with pytest.raises(Rejected, match="who are you") as refused:
        asked(whom(server, kind, url="http://model.lan/v1", key_env="none"))
    assert 'key_env = "none"' in refused.value.hint
    assert not {"authorization", "x-api-key"} & {name for one in server.requests for name in one.headers}


def test_a_key_does_not_go_where_anybody_could_read_it_and_the_way_out_is_told(server: ModelHttp) -> None:
    with pytest.raises(Rejected, match="not encrypted") as refused:
        asked(whom(server, key=KEY, url="http://model.lan/v1"))
    assert 'key_env = "none"' in refused.value.hint
    assert server.requests == []


def test_a_server_that_does_not_count_tokens_is_asked_without(server: ModelHttp) -> None:
    yes = Says(pieces=openai_stream(Story(["Yes"])))
    server.answers = [refusal(422, "stream_options: extra inputs are not permitted"), yes]
    assert answer_of(asked(whom(server))).text == "Yes"
    assert ["stream_options" in asked.body for asked in server.requests] == [True, False]


def test_a_quota_that_is_used_up_is_not_waited_for(server: ModelHttp) -> None:
    body = b'{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}'
    server.answers = [Says(429, [body], "application/json")]
    with pytest.raises(Rejected, match="You exceeded your quota"):
        asked(whom(server))
    assert len(server.requests) == 1


def test_calls_that_all_have_one_index_are_told_apart_by_their_ids(server: ModelHttp) -> None:
    sends(
        server,
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"y","arguments":"{"}}]}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"","function":{"arguments":"}"}}]}}]}',
        b'{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}',
    )
    calls = answer_of(asked(whom(server))).tool_calls
    assert [(call.id, call.tool_name, call.arguments_json) for call in calls] == [
        ("a", "x", {}),
        ("b", "y", {}),
    ]


def test_a_call_without_index_and_id_is_one_all_the_same(server: ModelHttp) -> None:
    sends(
        server,
        b'{"choices":[{"delta":{"tool_calls":[{"function":{"name":"x","arguments":"{\\"n\\": "}}]}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"1}"}}]}}]}',
        b'{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}',
    )
    calls = answer_of(asked(whom(server))).tool_calls
    assert calls == (ToolCall(id="call_1", tool_name="x", arguments_json={"n": 1}),)


def test_content_may_come_as_a_list_and_only_the_first_choice_counts(server: ModelHttp) -> None:
    sends(
        server,
        b'{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":[{"type":"thinking",'
        b'"thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"Yes"}]}}]}',
        b'{"choices":[{"index":0,"delta":{"reasoning":"."},"finish_reason":"stop"}]}',
    )
    answered = answer_of(asked(whom(server)))
    assert (answered.text, answered.thinking) == ("Yes", "Hm.")
    assert (answered.model, answered.provider, answered.usage) == ("m", "somebody", None)


def test_a_refusal_in_words_is_an_answer(server: ModelHttp) -> None:
    sends(server, b'{"choices":[{"delta":{"refusal":"I will not."},"finish_reason":"stop"}]}')
    assert text_of(asked(whom(server))) == "I will not."


def test_half_a_letter_told_as_an_escape_does_not_hurt(server: ModelHttp) -> None:
    sends(server, b'{"choices":[{"delta":{"content":"a\\ud83d"},"finish_reason":"stop"}]}')
    assert answer_of(asked(whom(server))).text == "a\ufffd"


def test_tokens_that_nobody_cached_are_all_counted(server: ModelHttp) -> None:
    sends(
        server,
        b'{"choices":[{"delta":{"content":"Yes"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":5,"completion_tokens":-1}}',
        b"[DONE]",
    )
    assert answer_of(asked(whom(server))).usage == Usage(input_tokens=5)


def test_an_answer_beyond_all_bounds_is_not_taken(server: ModelHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    responder = whom(server)
    monkeypatch.setattr(responder._endpoint, "most_bytes", 10_000)  # type: ignore[attr-defined]
    server.answers = [Says(pieces=openai_stream(Story(["x" * 999] * 99)))]
    with pytest.raises(Unanswered, match="larger than 10,000 bytes"):
        asked(responder)
    server.answers = [Says(pieces=[b"data: " + b"x" * 20_000])]
    with pytest.raises(Unanswered, match="larger than 10,000 bytes"):
        asked(responder)


def test_a_body_that_is_coded_though_nobody_asked_is_not_unpacked(server: ModelHttp) -> None:
    server.answers = [Says(pieces=[b"\x1f\x8b"], headers={"Content-Encoding": "gzip"})]
    with pytest.raises(Unanswered, match="it is coded"):
        asked(whom(server))
    assert server.requests[0].headers["accept-encoding"] == "identity"


def test_another_model_and_effort_go_along(server: ModelHttp) -> None:
    server.answers = [Says(pieces=openai_stream(Story(["Yes"])))]
    asked(whom(server, effort="low"), a_question(model="other", effort="high"))
    assert (server.requests[0].body["model"], server.requests[0].body["reasoning_effort"]) == (
        "other",
        "high",
    )
