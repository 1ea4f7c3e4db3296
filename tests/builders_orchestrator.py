"""A deliberation server, and who asks it: what the tests of that kind of responder share.

A test module names this one in `pytest_plugins` for the fixtures, and imports the rest (PYTEST_DONT_REWRITE: or pytest
would warn of that).
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from raddle.actions.answering.ports import Answered, Event, Question
from raddle.actions.answering.settings import ResponderSettings
from raddle.adapters.responders import responder_of
from raddle.adapters.responders.orchestrator import OrchestratorResponder
from raddle.model.threads.rendering import ChatMessage
from tests.fakes.orchestrator import TOKEN, Orchestrator, orchestrating


class Pauses:
    """Waits that are noted and not waited for. `then`: what happens meanwhile, one each."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.then: list[Callable[[], object]] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if self.then:
            self.then.pop(0)()


@pytest.fixture
def server() -> Iterator[Orchestrator]:
    with orchestrating() as orchestrator:
        yield orchestrator
        if orchestrator.deaths:
            gc.collect()  # what it left open is found here, and not in another module


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


def a_responder(server: Orchestrator, pauses: Pauses, **settings: Any) -> OrchestratorResponder:
    given: dict[str, Any] = {"url": "http://localhost", "timeout_seconds": 5.0, **settings}
    responder = responder_of(
        ResponderSettings(name="council", kind="orchestrator", **given),
        key=lambda: TOKEN,
        pause=pauses,
        random=lambda: 0.5,
        socket_path=server.socket_path,
    )
    assert isinstance(responder, OrchestratorResponder)
    return responder


@pytest.fixture
def council(server: Orchestrator, pauses: Pauses) -> OrchestratorResponder:
    return a_responder(server, pauses)


def a_question(**fields: Any) -> Question:
    given: dict[str, Any] = {
        "messages": (ChatMessage(role="user", content="why?"),),
        "query": "why?",
        "thread_id": "thread-1",
        "job_id": "ask-1",
        **fields,
    }
    return Question(read=lambda _: None, **given)


def told(
    server: Orchestrator, council: OrchestratorResponder, question: Question | None = None
) -> list[Event]:
    return list(council.ask(question or a_question()))


def an_answer(text: str, author: str = "deep-thought") -> Answered:
    return Answered(text=text, provider="orchestrator", author=author)


def in_order(*steps: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for step in steps:
            step()

    return run


def generator(events: Iterator[Event]) -> Generator[Event, None, None]:
    assert isinstance(events, Generator)
    return events


@contextlib.contextmanager
def meanwhile(*steps: Callable[[], object]) -> Iterator[None]:
    """While the block runs, this happens elsewhere."""
    thread = threading.Thread(target=in_order(*steps))
    thread.start()
    try:
        yield
    finally:
        thread.join(30)
