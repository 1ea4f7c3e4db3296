"""Every kind of responder keeps the laws of all: over a socket where it is a server, as a process where it is one."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from raddle.actions.answering.ports import Responder
from raddle.actions.answering.settings import Kind, ResponderSettings
from raddle.adapters.responders import responder_of
from raddle.model.errors import NetworkError
from tests.contract.responder_laws import (
    IMPATIENT,
    KEY,
    ChatLaws,
    ChatStage,
    HttpLaws,
    HttpStage,
    InPieces,
    ResponderLaws,
    Stage,
    asked,
)
from tests.fakes import orchestrator as deliberating
from tests.fakes.model_http import ANTHROPIC, OPENAI, ModelHttp, Says, Story, Wire, refusal, serving_model

# httpcore leaves the socket open on which nobody answered.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


class _Model:
    """A model's API that is asked over a socket."""

    def __init__(self, server: ModelHttp, wire: Wire, kind: Kind) -> None:
        self.waits: list[float] = []
        self._server = server
        self._wire = wire
        self._kind = kind
        self._is_there = True

    def close(self) -> None:
        if not self._is_there:
            gc.collect()  # the socket that httpcore leaves, while this test is the one that knows of it

    def responder(self, *, retries: int = 4, timeout_seconds: float = 30.0) -> Responder:
        settings = ResponderSettings(
            name="somebody",
            kind=self._kind,
            url="http://localhost/v1",
            model="some-model",
            retries=retries,
            timeout_seconds=timeout_seconds,
        )
        return responder_of(
            settings,
            key=lambda: KEY,
            pause=self.waits.append,
            random=lambda: 0.5,
            socket_path=self._server.socket_path,
        )

    def answers(self, *pieces: str) -> None:
        self.tells(Story(pieces))

    def tells(self, story: Story, *, in_pieces: InPieces | None = None) -> None:
        stream: Iterable[bytes] = self._wire.stream(story)
        if in_pieces is not None:
            stream = in_pieces(b"".join(stream))
        self._server.answers.append(Says(pieces=stream))

    def breaks_off(self, *pieces: str) -> None:
        story = Story(pieces, end="")
        self._server.answers.append(Says(pieces=self._wire.stream(story), then="breaks"))

    def hangs(self, *pieces: str, meanwhile: Callable[[], object] | None = None) -> None:
        stream = self._wire.stream(Story(pieces, end=""))
        self._server.answers.append(Says(pieces=stream, then="hangs", meanwhile=meanwhile or (lambda: None)))

    def says_no_text(self) -> None:
        told = list(self._wire.stream(Story(["caf~!"])))
        self._server.answers.append(Says(pieces=[piece.replace(b"~", b"\xe9") for piece in told]))

    def is_not_there(self) -> None:
        self._is_there = False
        self._server.socket_path.unlink()

    def is_left_alone(self) -> bool:
        return self._server.has_lost_somebody.wait(10)

    def fails(self, status: int, words: str = "", **headers: str) -> None:
        self._server.answers.append(refusal(status, words, **headers))

    def errs(self, *pieces: str, words: str, code: str = "bad_thing") -> None:
        told = [*self._wire.stream(Story(pieces, end="")), self._wire.error(words, code)]
        self._server.answers.append(Says(pieces=told))

    def sends(self, *pieces: bytes) -> None:
        self._server.answers.append(Says(pieces=pieces))

    def requests(self) -> int:
        return len(self._server.requests)

    def sent(self) -> list[tuple[dict[str, str], str]]:
        return [
            (dict(headers), f"{path} {json.dumps(body, ensure_ascii=False)}")
            for path, headers, body in self._server.requests
        ]


class TestOpenAI(ChatLaws):
    @pytest.fixture
    def stage(self) -> Iterator[ChatStage]:
        with serving_model() as server:
            stage = _Model(server, OPENAI, "openai")
            yield stage
            stage.close()


class TestAnthropic(ChatLaws):
    @pytest.fixture
    def stage(self) -> Iterator[ChatStage]:
        with serving_model() as server:
            stage = _Model(server, ANTHROPIC, "anthropic")
            yield stage
            stage.close()


_PROGRAM = """\
import os, pathlib, signal, subprocess, sys
folder = pathlib.Path(sys.argv[1])
alive = os.open(folder / "alive", os.O_WRONLY)
acts = sorted(folder.glob("act-*"))
act = acts[0].read_bytes()
if len(acts) > 1:
    acts[0].unlink()
sys.stdin.buffer.read()
text, _, then = act.rpartition(b" ")
sys.stdout.buffer.write(text)
sys.stdout.buffer.flush()
if then == b"fails":
    sys.exit("it fell over")
if then == b"hangs":
    family = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[alive])
    (folder / "hangs").write_text("now")
    signal.pause()
"""


class _Program:
    """A program that plays what was written down for it. All of its family hold a pipe open."""

    def __init__(self, folder: Path) -> None:
        self.waits: list[float] = []
        self._folder = folder
        self._acts = 0
        self._program: tuple[str, ...] = (sys.executable, "-c", _PROGRAM, str(folder))
        os.mkfifo(folder / "alive")
        os.mkfifo(folder / "hangs")
        self._alive = os.open(folder / "alive", os.O_RDONLY | os.O_NONBLOCK)
        # Until it is asked whether anybody is left: a pipe that nobody has opened yet does not end.
        self._ours = os.open(folder / "alive", os.O_WRONLY)
        self._is_ours_open = True

    def close(self) -> None:
        os.close(self._alive)
        self._let_go()

    def _let_go(self) -> None:
        if self._is_ours_open:
            os.close(self._ours)
        self._is_ours_open = False

    def responder(self, *, retries: int = 4, timeout_seconds: float = 30.0) -> Responder:
        settings = ResponderSettings(
            name="somebody",
            kind="command",
            program=self._program,
            retries=retries,
            timeout_seconds=timeout_seconds,
        )
        return responder_of(settings, key=lambda: KEY, pause=self.waits.append, random=lambda: 0.5)

    def _plays(self, text: bytes, then: str) -> None:
        self._acts += 1
        (self._folder / f"act-{self._acts}").write_bytes(text + b" " + then.encode())

    def answers(self, *pieces: str) -> None:
        self._plays("".join(pieces).encode(), "ends")

    def breaks_off(self, *pieces: str) -> None:
        self._plays("".join(pieces).encode(), "fails")

    def hangs(self, *pieces: str, meanwhile: Callable[[], object] | None = None) -> None:
        self._plays("".join(pieces).encode(), "hangs")
        if meanwhile is not None:
            threading.Thread(target=self._when_it_hangs, args=(meanwhile,), daemon=True).start()

    def _when_it_hangs(self, meanwhile: Callable[[], object]) -> None:
        if (self._folder / "hangs").read_text():
            meanwhile()

    def says_no_text(self) -> None:
        self._plays(b"caf\xe9!", "ends")

    def is_not_there(self) -> None:
        self._program = (str(self._folder / "no-such-program"),)

    def is_left_alone(self) -> bool:
        self._let_go()
        return bool(select.select([self._alive], [], [], 10)[0]) and os.read(self._alive, 1) == b""


class TestCommand(ResponderLaws):
    @pytest.fixture
    def stage(self, tmp_path: Path) -> Iterator[Stage]:
        with contextlib.closing(_Program(tmp_path)) as program:
            yield program


class _Act(NamedTuple):
    """What becomes of a launch, and of each question how its job stands."""

    answer: str = ""
    ending: str = "completed"
    polls: int | None = 0
    launch: deliberating.Fault | None = None
    result: deliberating.Fault | None = None
    meanwhile: Callable[[], object] = lambda: None


class _Council:
    """A server of deliberations that is asked over a socket."""

    def __init__(self, server: deliberating.Orchestrator) -> None:
        self.waits: list[float] = []
        self._server = server
        self._acts: list[_Act] = []
        self._now = _Act()
        server.token, server.decide = KEY, self._decide

    def _decide(self, request: deliberating.Asked) -> deliberating.Fault | None:
        if request.route == "launch":
            self._now = self._acts.pop(0) if len(self._acts) > 1 else self._acts[0]
            server, now = self._server, self._now
            server.answer, server.ending, server.polls = now.answer, now.ending, now.polls
            return now.launch
        if request.route != "result":
            return None
        self._now.meanwhile()
        return self._now.result

    def responder(self, *, retries: int = 4, timeout_seconds: float = 30.0) -> Responder:
        settings = ResponderSettings(
            name="somebody",
            kind="orchestrator",
            url="http://localhost",
            retries=retries,
            timeout_seconds=timeout_seconds,
        )
        return responder_of(
            settings,
            key=lambda: KEY,
            pause=self.waits.append,
            random=lambda: 0.5,
            socket_path=self._server.socket_path,
        )

    def answers(self, *pieces: str) -> None:
        self._acts.append(_Act("".join(pieces)))

    def breaks_off(self, *pieces: str) -> None:
        self._acts.append(_Act("".join(pieces), "failed"))

    def hangs(self, *pieces: str, meanwhile: Callable[[], object] | None = None) -> None:
        silent = deliberating.IsSilent()
        self._acts.append(_Act(polls=None, result=silent, meanwhile=meanwhile or (lambda: None)))

    def says_no_text(self) -> None:
        told = b'{"job_id": "job-1", "status": "completed", "result": "caf\xe9!"}'
        self._acts.append(_Act(result=deliberating.Says(200, told)))

    def is_not_there(self) -> None:
        self._server.die()

    def is_left_alone(self) -> bool:
        return self._server.is_left_alone()

    def fails(self, status: int, words: str = "", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._acts.append(_Act(launch=deliberating.Says(status, {"error": {"message": words}}, named)))

    def requests(self) -> int:
        return len(self._server.of("launch"))

    def sent(self) -> list[tuple[dict[str, str], str]]:
        return [
            (dict(headers), f"{path} {json.dumps(body, ensure_ascii=False)}")
            for _, path, headers, body in self._server.asked
        ]


class TestOrchestrator(ResponderLaws):
    """When it is tried again is its own affair, since nothing may be launched twice: `test_orchestrator.py`."""

    test_a_no_is_told_at_once = HttpLaws.test_a_no_is_told_at_once_with_what_to_do
    test_what_a_server_says = HttpLaws.test_what_a_server_says_no_with_is_one_short_line_without_the_key
    test_the_key_goes_into_one_header = HttpLaws.test_the_key_goes_into_one_header_and_nowhere_else

    @pytest.fixture
    def stage(self) -> Iterator[HttpStage]:
        with deliberating.orchestrating() as server:
            yield _Council(server)

    def test_who_says_nothing_is_not_waited_for_for_ever(self, stage: Stage) -> None:
        """But what was launched is worked on all the same: it has no end that would be told."""
        stage.hangs()
        with pytest.raises(NetworkError, match=r"no sign of life for 0\.3 s"):
            asked(stage.responder(retries=1, timeout_seconds=IMPATIENT))
        assert stage.is_left_alone()
