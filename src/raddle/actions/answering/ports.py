"""Who answers, as a small port: a question goes out, events come back, and the last of them is the answer.

Every responder keeps the same laws, on real HTTP or as a real program (`tests/contract/test_responders.py`), so that
no caller knows which one it talks to. None of them writes to a thread, and none retries in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from msgspec import Struct

from raddle.model.threads.message import Attachment, ToolCall, Usage
from raddle.model.threads.rendering import ChatMessage

ReadBytes = Callable[[Attachment], bytes | None]
"""The bytes of an attachment; None where they are not to be had here."""


class Question(Struct, frozen=True, kw_only=True):
    """What is asked.

    `messages`: the path down to the turn that is asked, as a chat API takes it; `query`: the same as one string, as
    a deliberation takes it. `model`, `policy`: another than the responder's own, empty: its own. `effort`: how hard
    to think, in the responder's words. `server_thread`: what a deliberation server called the session before.
    `branch`: which of the thread's branches this is; empty: its main line.
    """

    thread_id: str
    job_id: str
    """What this launch is called here: unlike any other's."""
    messages: tuple[ChatMessage, ...]
    query: str
    read: ReadBytes
    model: str = ""
    policy: str = ""
    effort: str = ""
    server_thread: str | None = None
    branch: str = ""


class Piece(Struct, frozen=True, kw_only=True):
    """More of the answer, or of what the model thinks aloud."""

    text: str = ""
    thinking: str = ""


class Retry(Struct, frozen=True, kw_only=True):
    """It did not work, and is tried again after so many seconds; what came so far of it is void."""

    why: str
    wait_seconds: float
    retries: int
    """How often it was tried again, this time included."""


class Launched(Struct, frozen=True, kw_only=True):
    """A server has taken the question, and works on it whatever becomes of this process."""

    job_id: str
    server_thread: str | None = None


class Asks(Struct, frozen=True, kw_only=True):
    """An agent asks the person something before it goes on; answered by `JobResponder.answer_call`."""

    job_id: str
    call_id: str
    text: str
    tool_name: str = ""


class Answered(Struct, frozen=True, kw_only=True):
    """The whole answer. `text` is all of it, also where it came in pieces.

    `cut_by`: why it is not whole though nothing failed (`max_tokens`, `content_filter`); empty: it is whole.
    """

    text: str
    thinking: str = ""
    provider: str = ""
    model: str = ""
    author: str = ""
    """Who of several gave it."""
    policy: str = ""
    usage: Usage | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    cut_by: str = ""
    extra: dict[str, Any] = {}


Event = Piece | Retry | Launched | Asks | Answered


class Pause(Protocol):
    """How a responder waits. KeyboardInterrupt, or what else ends the wait, goes through."""

    def __call__(self, seconds: float, /) -> None:
        """Wait so long."""


class Responder(Protocol):
    """Somebody who answers. `name`: as settings call it; `kind`: which wire it speaks; `lives_on`: does what is asked
    go on without this process, so that it can be asked about later (then it is a `JobResponder`)?"""

    name: str
    kind: str
    lives_on: bool

    def ask(self, question: Question) -> Iterator[Event]:
        """Ask once, and retry what may be retried (429, 5xx, no connection), honouring `Retry-After`.

        Events come as they happen; the last is `Answered`. Rejected: refused before anything was begun (also: nobody
        is there). Unanswered: it ended without an answer (one without a word is none). Closing the iterator cancels:
        the connection, or the program and its children, are gone when `close()` returns. No key is in any event or
        error.
        """


class Done(Struct, frozen=True, kw_only=True):
    """How a job stands, as its server says. `state`: pending, answered, failed (also empty) or unknown."""

    state: str
    answer: Answered | None = None
    why: str = ""


class Policy(Struct, frozen=True, kw_only=True):
    """One way of a deliberation that can be chosen."""

    id: str
    name: str = ""
    tags: tuple[str, ...] = ()


class JobResponder(Responder, Protocol):
    """Somebody whose work goes on without this process. NetworkError where the server does not say: keep the job."""

    def follow(self, job_id: str) -> Iterator[Event]:
        """Wait for a job that was launched before; as `ask` from `Launched` on."""

    def result(self, job_id: str) -> Done:
        """How the job stands, asked once."""

    def questions(self, job_id: str) -> list[Asks]:
        """What its agents wait to be told."""

    def answer_call(self, job_id: str, call_id: str, text: str) -> None:
        """Tell them. NotFound where nobody waits for that."""

    def tell(self, job_id: str, text: str) -> None:
        """Say something to the agents while they work."""

    def cancel(self, job_id: str) -> None:
        """End the job; nothing happens where it is over."""

    def policies(self) -> list[Policy]:
        """What can be chosen."""
