"""How a server of models is asked: whom a key is shown, what of a stranger's words is, and how long is waited."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.answering.ports import Answered, Event, Piece, Retry
from raddle.actions.answering.settings import KINDS, Kind, ResponderSettings
from raddle.adapters.responders import responder_of
from raddle.adapters.responders.http import Endpoint, Failing
from raddle.adapters.responders.retrying import (
    LONGEST_WAIT_SECONDS,
    Persistence,
    retried,
    retried_call,
    wait_before,
)
from raddle.adapters.responders.strangers import told, wait_of
from raddle.model.errors import InvalidInput, NetworkError, Rejected, Unanswered

KEY = "k3y-0f-nobody"
NOON = 1_796_040_000_000_000
"""2026-11-30T12:00:00Z."""


def endpoint(url: str, key: str | None = KEY, *, needs_key: bool | None = None) -> Endpoint:
    return Endpoint(url, name="it", key=lambda: key, key_hint="set IT_KEY", needs_key=needs_key)


def connect(there: Endpoint) -> None:
    with there.connected():
        """Nothing is asked."""


@pytest.mark.parametrize("url", ["http://models.example.org/v1", "http://10.0.0.7:8000", "http://0.0.0.0/v1"])
def test_a_key_is_not_sent_in_the_clear_to_another_machine(url: str) -> None:
    with pytest.raises(Rejected, match="not encrypted") as caught:
        connect(endpoint(url))
    assert "https" in caught.value.hint


@pytest.mark.parametrize("url", ["http://models.example.org/v1", "http://localhost:11434/v1"])
def test_a_server_without_a_key_may_be_anywhere(url: str) -> None:
    connect(endpoint(url, None))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/v1", "http://[::1]/v1", "http://localhost", "https://x"]
)
def test_a_key_may_go_to_this_machine_and_where_nobody_reads_along(url: str) -> None:
    connect(endpoint(url))


def test_who_is_far_away_needs_a_key() -> None:
    for key in (None, "", "  "):
        with pytest.raises(Rejected, match="no key for it") as caught:
            connect(endpoint("https://models.example.org/v1", key))
        assert caught.value.hint == "set IT_KEY"
    with pytest.raises(Rejected, match="no key for it"):
        connect(endpoint("http://localhost/v1", None, needs_key=True))


@pytest.mark.parametrize("key", ["two words", "a\nb", "ü", "x" * 9000, "a\0"])
def test_what_cannot_be_a_key_is_not_sent_and_not_shown(key: str) -> None:
    with pytest.raises(Rejected, match="holds what no key does") as caught:
        connect(endpoint("https://models.example.org", key))
    assert key not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "",
        "models.example.org",
        "ftp://x/v1",
        "https://",
        "https://ada:secret@x/v1",
        "https://x/v1?key=1",
        "https://x/v1#a",
        "https://x:99999/v1",
        "https://[::1",
        "https://x/a b",
        "https://x\\y",
        "https://x/\x1b",
    ],
)
def test_what_is_no_address_is_not_asked(url: str) -> None:
    with pytest.raises(Rejected, match="the address of it") as caught:
        connect(endpoint(url))
    assert "secret" not in caught.value.message + endpoint(url).host


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": " 0.25 "}, 0.25),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "١٢"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:20 GMT"}, 20.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:20 GMT", "date": "Mon, 30 Nov 2026 12:00:05 GMT"}, 15.0),
        ({"retry-after": "Mon, 30 Nov 99999 12:00:20 GMT"}, None),
        ({"retry-after": "tomorrow"}, None),
    ],
)
def test_a_wait_is_read_as_seconds_or_as_a_time(headers: Mapping[str, str], seconds: float | None) -> None:
    assert wait_of(headers, lambda: NOON) == seconds


@given(st.text(), st.text(), st.integers(0, 400))
def test_no_text_of_a_stranger_shows_the_key(before: str, after: str, padding: int) -> None:
    line = told(f"{before}{'x' * padding}{KEY}{after}{KEY}", KEY)
    assert KEY not in line
    assert len(line) <= 200
    assert line.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "Bearer abcdef.ghi",
        "authorization: bearer  abcdef.ghi!",
        "key sk-abcdef.ghi*** is wrong",
        "sk-ant-abcdef.ghi",
    ],
)
def test_what_looks_like_a_key_is_not_shown_either(text: str) -> None:
    assert "abcdef" not in told(text)
    assert "***" in told(text)


def test_what_is_no_text_says_nothing() -> None:
    assert told(None) == told(7) == told({"a": 1}) == ""


@given(st.integers(0, 200), st.floats(0, 1, exclude_max=True))
def test_a_wait_of_ours_is_bounded(retries: int, drawn: float) -> None:
    assert 0 <= wait_before(retries, None, lambda: drawn) <= LONGEST_WAIT_SECONDS


def test_what_is_tried_again_gives_what_it_returns() -> None:
    waits: list[float] = []
    failures = [Failing("busy", wait_seconds=3), Failing("busy")]

    def attempt() -> Generator[Event, None, int]:
        if failures:
            raise failures.pop(0)
        yield Piece(text="a")
        return 7

    returned: list[int] = []

    def asked() -> Generator[Event, None, None]:
        returned.append((yield from retried(attempt, Persistence(4, waits.append, lambda: 0.5))))

    events = list(asked())
    assert returned == [7]
    assert waits == [3, 1]
    assert events == [
        Retry(why="busy", wait_seconds=3, retries=1),
        Retry(why="busy", wait_seconds=1, retries=2),
        Piece(text="a"),
    ]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failing("gone", was_sent=False), Rejected),
        (Failing("reset"), Unanswered),
        (Failing("busy", status=503), Unanswered),
        (NetworkError("silent"), Unanswered),
        (Rejected("no"), Rejected),
    ],
)
def test_what_fails_to_the_end_is_told_by_whether_anything_was_begun(failure: Exception, kind: type) -> None:
    def call() -> Answered:
        raise failure

    with pytest.raises(kind, match=str(failure)) as caught:
        list(retried_call(call, Persistence(2, lambda seconds: None, lambda: 0.0)))
    assert type(caught.value) is kind


def test_ctrl_c_while_waiting_goes_through() -> None:
    def pause(seconds: float) -> None:
        raise KeyboardInterrupt

    def call() -> None:
        raise Failing("busy")

    with pytest.raises(KeyboardInterrupt):
        list(retried_call(call, Persistence(2, pause, lambda: 0.0)))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_settings_makes_somebody_who_answers(kind: Kind) -> None:
    settings = ResponderSettings(name="it", kind=kind, url="https://x", program=("x",))
    made = responder_of(settings, key=lambda: KEY, pause=lambda seconds: None, random=lambda: 0.0)
    assert (made.name, made.kind, made.lives_on) == ("it", kind, kind == "orchestrator")


def test_a_kind_that_nobody_knows_is_named() -> None:
    settings = ResponderSettings(name="it", kind="telegraph")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="telegraph"):
        responder_of(settings, key=lambda: KEY, pause=lambda seconds: None, random=lambda: 0.0)


def test_words_that_are_no_key_are_shown() -> None:
    said = "the bearer of this key-value pair may ask for basic things, sk-1"
    assert told(said) == said


def test_who_asks_nobody_does_not_pay_for_it() -> None:
    code = (
        "import sys, raddle.adapters.responders as it\n"
        "assert not any(name.startswith(it.__name__ + '.') for name in sys.modules)\n"
        "from raddle.adapters.responders import openai, anthropic, command\n"
        "print(sorted({'httpx', 'ssl', 'asyncio'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code]) == b"[]\n"
