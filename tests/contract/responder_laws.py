"""The laws everybody keeps who answers (`actions.answering.ports.Responder`).

A kind's test makes a subclass of `ResponderLaws`, of `HttpLaws` where it is asked over HTTP, or of `ChatLaws` where a
model streams, and gives the fixture `stage`. What only one kind can show is in the tests of that kind.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

import pytest

from raddle.actions.answering.ports import Answered, Event, Piece, Question, Responder, Retry
from raddle.model.errors import RaddleError, Rejected, Unanswered
from raddle.model.threads.message import Attachment, ToolCall, Usage
from raddle.model.threads.rendering import ChatMessage
from tests.fakes.model_http import Call, Story

KEY = "sk-0123456789-nobody-may-see-this"
IMPATIENT = 0.3
E = TypeVar("E", bound=RaddleError)
InPieces = Callable[[bytes], Iterable[bytes]]


class Stage(Protocol):
    """Somebody who answers, and what happens there. What happens is added in order; the last goes on for ever."""

    waits: list[float]
    """What was waited for, in seconds."""

    def responder(self, *, retries: int = 4, timeout_seconds: float = 30.0) -> Responder:
        """Whom to ask. Its key, where it takes one, is `KEY`."""

    def answers(self, *pieces: str) -> None:
        """It answers so."""

    def breaks_off(self, *pieces: str) -> None:
        """It says so much, and then something fails there."""

    def hangs(self, *pieces: str, meanwhile: Callable[[], object] | None = None) -> None:
        """It says so much, then calls `meanwhile`, then says nothing any more."""

    def says_no_text(self) -> None:
        """It answers `caf`, a byte that is no UTF-8, and `!`."""

    def is_not_there(self) -> None:
        """There is nobody."""

    def is_left_alone(self) -> bool:
        """Has nobody been at it any more since a moment ago? Waits for that."""


class HttpStage(Stage, Protocol):
    """The same, of a server."""

    def fails(self, status: int, words: str = "", **headers: str) -> None:
        """It answers with this status; status 0: the connection breaks. `headers` by name with _ for -."""

    def requests(self) -> int:
        """How often an answer was asked for so far."""

    def sent(self) -> list[tuple[dict[str, str], str]]:
        """(Headers by name in small letters; path, query and body as one text) of every request so far."""


class ChatStage(HttpStage, Protocol):
    """The same, of a model's API."""

    def tells(self, story: Story, *, in_pieces: InPieces | None = None) -> None:
        """It answers so, its bytes in these pieces."""

    def errs(self, *pieces: str, words: str, code: str = "bad_thing") -> None:
        """It says so much, and then sends an error."""

    def sends(self, *pieces: bytes) -> None:
        """It sends these bytes as its stream, and ends."""


def a_question(text: str = "What is a raddle?", **fields: Any) -> Question:
    given: dict[str, Any] = {
        "thread_id": "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5bff",
        "job_id": "J-1",
        "messages": (ChatMessage(role="user", content=text),),
        "query": text,
        "read": lambda attachment: None,
    }
    return Question(**given | fields)


def asked(responder: Responder, question: Question | None = None) -> list[Event]:
    return list(responder.ask(question or a_question()))


def answer_of(events: list[Event]) -> Answered:
    *_, last = events
    assert isinstance(last, Answered)
    assert not any(isinstance(event, Answered) for event in events[:-1])
    return last


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Piece))


def refused(kind: type[E], responder: Responder) -> tuple[E, list[Event]]:
    """(What was raised, what came before)."""
    events: list[Event] = []
    with pytest.raises(kind) as caught:
        events.extend(responder.ask(a_question()))
    error = caught.value
    assert "\n" not in error.message + error.hint
    assert len(error.message) < 400
    shown: BaseException | None = error
    while shown is not None:
        assert KEY not in f"{shown}{shown!r}"
        shown = shown.__cause__
    return error, events


@contextlib.contextmanager
def pressing_ctrl_c() -> Iterator[Callable[[], None]]:
    """What presses Ctrl-C as a person does: again, until it is heard (one that comes just before a read waits for
    the read), and once more does nothing."""
    is_heard = threading.Event()

    def hear(*_: object) -> None:
        if not is_heard.is_set():
            is_heard.set()
            raise KeyboardInterrupt

    def keep_pressing() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while not is_heard.wait(0.1):
            os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=keep_pressing, daemon=True)
    before = signal.signal(signal.SIGINT, hear)
    try:
        yield finger.start
    finally:
        is_heard.set()
        if finger.ident is not None:
            finger.join()
        signal.signal(signal.SIGINT, before)
        with warnings.catch_warnings():
            # Pressed between two lines of a library, it leaves a socket to the garbage, which a later test would find.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


class ResponderLaws:
    """What holds for everybody."""

    def test_pieces_add_up_to_the_answer_which_comes_last(self, stage: Stage) -> None:
        stage.answers("A comb ", "for ", "threads: ", "🧵, ü, 線。")
        events = asked(stage.responder())
        answered = answer_of(events)
        assert answered.text == "A comb for threads: 🧵, ü, 線。"
        assert text_of(events) in {answered.text, ""}
        assert answered.cut_by == ""

    def test_one_may_be_asked_again(self, stage: Stage) -> None:
        stage.answers("one")
        stage.answers("two")
        responder = stage.responder()
        assert [answer_of(asked(responder)).text for _ in range(2)] == ["one", "two"]

    def test_an_answer_without_a_word_is_none(self, stage: Stage) -> None:
        stage.answers()
        error, _ = refused(Unanswered, stage.responder())
        assert "without a word" in error.message

    def test_an_answer_of_blanks_is_none(self, stage: Stage) -> None:
        stage.answers(" ", "\n")
        refused(Unanswered, stage.responder())

    def test_ten_megabytes_come_whole_and_are_not_kept_many_times(self, stage: Stage) -> None:
        piece = "0123456789abcdef" * 4096
        stage.answers(*[piece] * 160)
        tracemalloc.start()
        try:
            last = None
            for event in stage.responder().ask(a_question()):
                last = event
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert isinstance(last, Answered)
        assert last.text == piece * 160
        assert peak < 8 * len(last.text)

    def test_an_answer_that_breaks_off_is_told_as_one_and_not_asked_for_again(self, stage: Stage) -> None:
        stage.breaks_off("The first ", "half")
        stage.answers("The whole")
        error, events = refused(Unanswered, stage.responder())
        assert text_of(events) in {"The first half", ""}
        assert error.message
        assert stage.waits == []

    def test_bytes_that_are_no_text_become_text(self, stage: Stage) -> None:
        stage.says_no_text()
        assert answer_of(asked(stage.responder())).text == "caf\ufffd!"

    def test_who_says_nothing_is_not_waited_for_for_ever(self, stage: Stage) -> None:
        stage.hangs("First")
        error, _ = refused(Unanswered, stage.responder(timeout_seconds=IMPATIENT))
        assert "no sign of life for 0.3 s" in error.message
        assert stage.is_left_alone()

    def test_closing_leaves_nobody_at_work(self, stage: Stage) -> None:
        stage.hangs("First")
        events = stage.responder().ask(a_question())
        assert isinstance(events, Iterator)
        next(events)
        events.close()  # type: ignore[attr-defined]  # every ask is a generator
        assert stage.is_left_alone()

    def test_ctrl_c_while_nothing_comes_leaves_nobody_at_work(self, stage: Stage) -> None:
        with pressing_ctrl_c() as press:
            stage.hangs("First", meanwhile=press)
            with pytest.raises(KeyboardInterrupt):
                asked(stage.responder())
        assert stage.is_left_alone()

    def test_where_nobody_is_nothing_was_begun(self, stage: Stage) -> None:
        stage.is_not_there()
        error, _ = refused(Rejected, stage.responder())
        assert error.hint

    def test_nothing_is_asked_before_somebody_wants_to_know(self, stage: Stage) -> None:
        stage.is_not_there()
        stage.responder().ask(a_question())

    def test_the_key_is_not_shown(self, stage: Stage) -> None:
        stage.answers("Yes")
        responder = stage.responder()
        assert KEY not in "".join(map(repr, [responder, vars(responder), *asked(responder)]))


class HttpLaws(ResponderLaws):
    """What holds for every server."""

    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529, 0])
    def test_what_may_pass_is_tried_again_and_said(self, stage: HttpStage, status: int) -> None:
        stage.fails(status, "busy")
        stage.fails(status, "busy")
        stage.answers("There")
        events = asked(stage.responder())
        retries = [event for event in events if isinstance(event, Retry)]
        assert [event.retries for event in retries] == [1, 2]
        assert [event.wait_seconds for event in retries] == stage.waits
        assert all(str(status or "broke") in event.why for event in retries)
        assert answer_of(events).text == "There"
        assert stage.requests() == 3

    def test_waits_of_our_own_double_and_are_at_random(self, stage: HttpStage) -> None:
        stage.fails(500)
        error, _ = refused(Unanswered, stage.responder(retries=8))
        assert stage.waits == [0.5, 1, 2, 4, 8, 16, 30, 30]  # at random is one half here
        assert "500" in error.message
        assert "9 times" in error.message

    def test_who_may_not_try_again_does_not(self, stage: HttpStage) -> None:
        stage.fails(500)
        refused(Unanswered, stage.responder(retries=0))
        assert (stage.requests(), stage.waits) == (1, [])

    def test_what_the_server_asks_for_is_waited(self, stage: HttpStage) -> None:
        stage.fails(429, Retry_After="7")
        stage.fails(503, Retry_After="0.5")
        stage.fails(503, Retry_After="Mon, 30 Nov 2026 12:01:30 GMT", Date="Mon, 30 Nov 2026 12:00:00 GMT")
        stage.fails(429, Retry_After="soon")
        stage.answers("There")
        asked(stage.responder())
        assert stage.waits == [7, 0.5, 90, 4]

    def test_who_is_asked_to_wait_long_is_told_at_once(self, stage: HttpStage) -> None:
        stage.fails(429, "the day's quota is used up", Retry_After="7200")
        error, _ = refused(Unanswered, stage.responder())
        assert stage.waits == []
        assert "7,200 s" in error.message
        assert "120 minutes" in error.hint or "2 hours" in error.hint

    def test_a_429_to_the_end_names_itself_and_the_wait(self, stage: HttpStage) -> None:
        stage.fails(429, "slow down", Retry_After="9")
        error, _ = refused(Unanswered, stage.responder(retries=1))
        assert "429: slow down" in error.message
        assert "9 s" in error.hint

    @pytest.mark.parametrize("status", [301, 307, 400, 401, 402, 403, 404, 413, 422])
    def test_a_no_is_told_at_once_with_what_to_do(self, stage: HttpStage, status: int) -> None:
        stage.fails(status, "that is wrong", Location="http://localhost/elsewhere")
        error, events = refused(Rejected, stage.responder())
        assert f"{status}: that is wrong" in error.message
        assert error.hint
        assert events == []
        assert (stage.requests(), stage.waits) == (1, [])

    def test_what_a_server_says_no_with_is_one_short_line_without_the_key(self, stage: HttpStage) -> None:
        stage.fails(401, f"\x1b[31mIncorrect\nkey {KEY}, sent as Bearer {KEY[:9]}-more {'x' * 99_000}")
        error, _ = refused(Rejected, stage.responder())
        assert "\x1b" not in error.message
        assert KEY[:9] not in error.message
        assert "Incorrect key ***" in error.message
        assert len(error.message) < 300

    def test_the_key_goes_into_one_header_and_nowhere_else(self, stage: HttpStage) -> None:
        stage.answers("Yes")
        asked(stage.responder())
        for headers, rest in stage.sent():
            assert sum(KEY in value for value in headers.values()) == 1
            assert KEY not in rest


class ChatLaws(HttpLaws):
    """What holds for every model that streams."""

    def test_thinking_comes_apart_from_the_words(self, stage: ChatStage) -> None:
        stage.tells(Story(thinking=["Hm, ", "a comb."], pieces=["A ", "comb."]))
        events = asked(stage.responder())
        answered = answer_of(events)
        assert (answered.text, answered.thinking) == ("A comb.", "Hm, a comb.")
        thoughts = [event.thinking for event in events if isinstance(event, Piece)]
        assert "".join(thoughts) == answered.thinking

    def test_tokens_that_were_cached_are_counted_apart(self, stage: ChatStage) -> None:
        stage.answers("Yes")
        answered = answer_of(asked(stage.responder()))
        assert answered.usage == Usage(input_tokens=20, output_tokens=7, cache_read_tokens=100)
        assert answered.model == "some-model-2026"

    def test_a_server_that_repeats_the_key_does_not_get_it_into_the_thread(self, stage: ChatStage) -> None:
        stage.tells(Story([f"your key is {KEY[:9]}", f"{KEY[9:]} and ", f"again {KEY}"], thinking=[KEY]))
        answered = answer_of(asked(stage.responder()))
        assert KEY not in answered.text + answered.thinking
        assert answered.text == "your key is *** and again ***"

    @pytest.mark.parametrize("size", [1, 7, 100])
    @pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
    def test_a_stream_may_come_in_any_pieces(self, stage: ChatStage, size: int, line_end: bytes) -> None:
        def cut(data: bytes) -> Iterable[bytes]:
            data = b": a comment\n\nretry: 5\n\n" + data.replace(b"\n\n", b"\n\n: alive\n")
            data = data.replace(b"\n", line_end)
            return [data[at : at + size] for at in range(0, len(data), size)]

        stage.tells(Story(["線", "🧵", " ü"], thinking=["é"]), in_pieces=cut)
        answered = answer_of(asked(stage.responder()))
        assert (answered.text, answered.thinking) == ("線🧵 ü", "é")

    @pytest.mark.parametrize("why", ["max_tokens", "content_filter"])
    def test_an_answer_cut_by_a_rule_says_so(self, stage: ChatStage, why: str) -> None:
        stage.tells(Story(pieces=["So far"], end=why))
        answered = answer_of(asked(stage.responder()))
        assert (answered.text, answered.cut_by) == ("So far", why)

    def test_an_empty_answer_says_what_rule_cut_it(self, stage: ChatStage) -> None:
        stage.tells(Story(end="content_filter"))
        error, _ = refused(Unanswered, stage.responder())
        assert "content_filter" in error.message

    def test_calls_of_tools_are_put_together(self, stage: ChatStage) -> None:
        read = Call("call_a", "read", ['{"path": "', 'notes.md", "n":', " 3}"])
        wrong = Call("call_b", "run", ["ls -l"])
        stage.tells(Story(calls=[read, wrong]))
        answered = answer_of(asked(stage.responder()))
        assert answered.text == ""
        assert answered.tool_calls == (
            ToolCall(id="call_a", tool_name="read", arguments_json={"path": "notes.md", "n": 3}),
            ToolCall(id="call_b", tool_name="run", arguments_json="ls -l"),
        )

    def test_an_error_in_the_middle_is_told(self, stage: ChatStage) -> None:
        stage.errs("Half", words=f"the model {KEY} fell over")
        error, events = refused(Unanswered, stage.responder())
        assert text_of(events) == "Half"
        assert "the model *** fell over" in error.message

    def test_an_overload_told_before_the_first_word_is_tried_again(self, stage: ChatStage) -> None:
        stage.errs(words="Overloaded", code="overloaded_error")
        stage.answers("There")
        assert answer_of(asked(stage.responder())).text == "There"
        assert stage.waits == [0.5]

    def test_an_end_before_the_first_word_is_tried_again(self, stage: ChatStage) -> None:
        stage.tells(Story(end=""))
        stage.answers("There")
        assert answer_of(asked(stage.responder())).text == "There"

    def test_an_end_without_an_end_is_a_cut(self, stage: ChatStage) -> None:
        stage.tells(Story(pieces=["Half"], end=""))
        error, _ = refused(Unanswered, stage.responder())
        assert "cut off" in error.message

    @pytest.mark.parametrize("nonsense", [b"{not json}", b"[]", b'"text"', b"1", b"[" * 90_000])
    def test_what_cannot_be_read_is_told(self, stage: ChatStage, nonsense: bytes) -> None:
        stage.sends(b"data: %b\n\n" % nonsense)
        error, _ = refused(Unanswered, stage.responder())
        assert "cannot be read" in error.message

    @pytest.mark.parametrize(
        "odd",
        [
            b'{"choices": 3, "usage": [], "type": 4, "model": {}}',
            b'{"choices": [null, {"delta": [], "index": "0"}], "type": "content_block_delta"}',
            b'{"choices": [{"index": 0, "delta": {"content": 5, "tool_calls": [7, {"function": 0}]}}]}',
            b'{"type": "content_block_start", "index": -1, "content_block": "x"}',
            b'{"type": "message_delta", "delta": {"stop_reason": 7}, "usage": {"input_tokens": true}}',
            b'{"type": "message_start", "message": null, "usage": {"prompt_tokens": 1e300}}',
        ],
    )
    def test_what_is_odd_but_readable_is_passed_over(self, stage: ChatStage, odd: bytes) -> None:
        stage.sends(b"data: %b\n\n" % odd)
        error, _ = refused(Unanswered, stage.responder(retries=0))
        assert "ended in the middle" in error.message

    def test_what_is_no_stream_is_told_by_what_it_says(self, stage: ChatStage) -> None:
        stage.fails(200, "use the other endpoint")
        error, _ = refused(Unanswered, stage.responder())
        assert "use the other endpoint" in error.message

    def test_another_model_may_be_asked(self, stage: ChatStage) -> None:
        stage.answers("Yes")
        answer_of(asked(stage.responder(), a_question(model="another")))
        assert '"another"' in stage.sent()[0][1]

    def test_the_conversation_is_sent_as_it_is(self, stage: ChatStage) -> None:
        stage.answers("Yes")
        picture = Attachment(sha256="0" * 64, name="a.png", media_type="image/png", size=4)
        messages = (
            ChatMessage(role="system", content="Be brief."),
            ChatMessage(role="user", content="Read it. ü🧵", attachments=(picture,)),
        )
        asked(stage.responder(), a_question(messages=messages))
        sent = stage.sent()[0][1]
        assert "Be brief." in sent
        assert "Read it. ü🧵" in sent
        assert "[attachment a.png, image/png, 4 bytes, not sent]" in sent
