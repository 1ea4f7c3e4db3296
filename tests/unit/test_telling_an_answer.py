"""An answer as it is printed: it is listened to to its end, whatever becomes of stdout."""

from __future__ import annotations

import io
import sys
from collections.abc import Generator

import pytest

from raddle.actions.answering.asking import Landed, Told
from raddle.actions.answering.ports import Answered, Launched, Piece, Retry
from raddle.apps.cli.conversation import Telling, as_plain
from raddle.apps.cli.output import ReaderGone
from raddle.model.errors import StorageError


class _Stdout(io.StringIO):
    """It takes so many writes, and then fails."""

    def __init__(self, most: int, error: OSError) -> None:
        super().__init__()
        self._left = most
        self._error = error

    def write(self, text: str) -> int:
        self._left -= 1
        if self._left < 0:
            raise self._error
        return super().write(text)


def told() -> Generator[Told, None, None]:
    yield Piece(text="one ")
    yield Piece(text="two ")
    yield Piece(text="three")
    yield Landed(message_id="m2", answer=Answered(text="one two three"))


@pytest.mark.parametrize(
    ("error", "raised"), [(OSError(28, "No space left"), StorageError), (BrokenPipeError(), ReaderGone)]
)
def test_an_answer_lands_whole_though_nobody_can_read_it(
    monkeypatch: pytest.MonkeyPatch, error: OSError, raised: type[Exception]
) -> None:
    monkeypatch.setattr(sys, "stdout", _Stdout(1, error))
    telling = Telling(as_json=False)
    with pytest.raises(raised):
        telling.tell_all(told())
    assert telling.landed is not None
    assert telling.landed.message_id == "m2"


@pytest.mark.parametrize(("seconds", "said"), [(0.0, "at once"), (0.6, "in 0.6 s"), (30.0, "in 30 s")])
def test_a_retry_says_when(seconds: float, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    def events() -> Generator[Told, None, None]:
        yield Retry(why="503", wait_seconds=seconds, retries=1)

    Telling(as_json=False).tell_all(events())
    assert f"trying again {said} (retry 1)" in capsys.readouterr().err


def test_a_program_that_stopped_waiting_gets_the_job() -> None:
    def events() -> Generator[Told, None, None]:
        yield Launched(job_id="job-1")

    telling = Telling(as_json=True)
    telling.tell_all(events())
    assert as_plain("T-1", telling) == {"id": "T-1", "message_id": "", "job_id": "job-1", "answer": None}
