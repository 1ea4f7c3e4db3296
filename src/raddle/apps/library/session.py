"""`raddle.record()`: what a program that runs an agent calls, step by step.

Owns the names and shapes that such programs rely on; what they do is `recording.py`'s. Methods are plain
functions in `async with` too: a step is an append of a few milliseconds, and one that has to be awaited is one
that can be forgotten (docs/adr/0003).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from raddle.actions.recording import states
from raddle.actions.recording.recorder import Turn
from raddle.actions.recording.shapes import (
    ToolCallLike,
    UsageLike,
    text_of,
    tool_calls_of,
    usage_of,
)
from raddle.apps.library.aside import aside
from raddle.apps.library.recording import OnError, Options, Recording
from raddle.apps.library.streamed_reply import StreamedReply
from raddle.apps.library.tool_run import ToolRun
from raddle.apps.library.trouble import beside
from raddle.model.errors import InvalidInput
from raddle.model.threads.agent_state import AgentState, PendingToolCall
from raddle.model.threads.message import NOTICE
from raddle.model.threads.plain_values import flag, plain_text_or_none, shown


def record(
    workspace: str | os.PathLike[str] | None = None,
    *,
    thread: str | None = None,
    parent: str | None = None,
    title: str = "",
    private: bool = False,
    provider: str = "",
    model: str = "",
    agent: str = "",
    on_error: OnError = "raise",
) -> Session:
    """Record an agent's session as a thread; use what it gives with `with` or `async with`.

    Args:
        workspace: the folder that the agent works in, as given. None: the repository around the current folder;
            for a thread that goes on, the folder it was in.
        thread: the id of a thread to go on with, or the start of one. None: a new thread, which is written
            with its first turn.
        parent: the message of `thread` to go on under (its id, the start or the end of it), or `root` for a new
            line of conversation. None: the tip, or the branch this device switched to.
        title: what lists call a new thread; else the first words of its user.
        private: it never leaves this machine. The rules in `config.toml` make it so too.
        provider: who runs the model that answers; each answer may say otherwise.
        model: the model that answers; each answer may say otherwise.
        agent: the name of your agent, on the turns that are not the user's.
        on_error: `raise`: a step that cannot be saved raises RaddleError, and has not happened. `warn`: it is
            logged, kept in memory and saved with the next step that can be.
    """
    if on_error not in ("raise", "warn"):
        raise InvalidInput(f"on_error is {shown(on_error)[:60]}", "say raise or warn")
    if workspace is not None and not isinstance(workspace, str | os.PathLike):
        raise InvalidInput(f"a workspace is a path, not {type(workspace).__name__}", "name the folder")
    if parent is not None and thread is None:
        raise InvalidInput("a parent without its thread", "name the thread that the message is in")
    options = Options(
        workspace=workspace,
        thread=plain_text_or_none(thread, "the id of a thread"),
        parent=plain_text_or_none(parent, "the id of a message"),
        title=" ".join(text_of(title, "a title").split()),
        is_private=flag(private, "private"),
        provider=text_of(provider, "a provider"),
        model=text_of(model, "a model"),
        agent=text_of(agent, "the name of an agent"),
        on_error=on_error,
    )
    return Session(options)


class Session:
    """A session that is recorded. Each method is one step, saved when it returns; its answer is a message id.

    Steps may come from any thread or task of the process. A step raises RaddleError where it cannot be saved
    (see `record`), InvalidInput where what it was given does not fit, UserError before and after the block.
    """

    def __init__(self, options: Options) -> None:
        self._recording = Recording(options)

    def __enter__(self) -> Self:
        self._recording.open()
        self._recording.watch()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            with beside(error):
                self._recording.close(error)
        finally:
            self._recording.unwatch()

    async def __aenter__(self) -> Self:
        await aside(self._recording.open, at_any_rate=False)
        self._recording.watch()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            with beside(error):
                await aside(lambda: self._recording.close(error))
        finally:
            self._recording.unwatch()

    @property
    def thread_id(self) -> str:
        """The thread's id, known once the block is entered, in a child process too; a new thread is written with
        its first turn."""
        return self._recording.thread_id

    @property
    def state(self) -> AgentState:
        """Where the agent stands: its `kind`, `retries`, `last_error` and `pending_tool_calls`."""
        return self._recording.recorder.state

    @property
    def head(self) -> str | None:
        """The message that the next one goes under; None where that begins a line of conversation."""
        return self._recording.recorder.head

    @property
    def unsaved(self) -> int:
        """Steps that could not be saved yet (`on_error="warn"`); 0 where all is on the disk."""
        return self._recording.recorder.unsaved

    def user(self, text: str) -> str:
        """The user says `text`; the model is asked next (`calling_llm`)."""
        return self._recording.ask(text_of(text, "what a user says"))

    def system(self, text: str) -> str:
        """The instructions that the model is given; the state stays."""
        turn = Turn(role="system", content=text_of(text, "an instruction"))
        return self._recording.say(lambda state: state, turn)

    def assistant(
        self,
        text: str = "",
        tool_calls: Iterable[ToolCallLike] | None = (),
        *,
        thinking: str = "",
        usage: UsageLike | None = None,
        model: str = "",
        provider: str = "",
    ) -> str:
        """The model has answered: with tool calls they are open now (`executing_tools`), without it is the
        user's turn (`waiting_for_user_input`).

        A call is `{"id", "name", "arguments"}`, a ToolCall, or as OpenAI's and Anthropic's APIs give it; usage
        a Usage, or a mapping with their names.
        """
        calls = tool_calls_of(tool_calls)
        pending = [PendingToolCall(call_id=call.id, tool_name=call.tool_name) for call in calls]
        fields = {
            "tool_calls": calls,
            "thinking": text_of(thinking, "thinking"),
            "usage": usage_of(usage),
            "model": text_of(model, "a model"),
            "provider": text_of(provider, "a provider"),
        }
        turn = Turn(role="assistant", content=text_of(text, "an answer"), fields=fields)
        return self._recording.say(lambda state: states.answered(state, pending), turn)

    def stream(self, *, model: str = "", provider: str = "") -> StreamedReply:
        """An answer that comes in pieces (`processing_llm_response`), to be used as a context manager."""
        return StreamedReply(self._recording, text_of(provider, "a provider"), text_of(model, "a model"))

    def tool(self, call_id: str, name: str = "") -> ToolRun:
        """A tool runs (`executing_tools`, after the last open call `post_tools_hook`), to be used as a context
        manager, `with` or `async with`. `name` may be left out where an answer named it."""
        return ToolRun(self._recording, text_of(call_id, "the id of a call"), text_of(name, "a tool's name"))

    def notice(self, text: str) -> str:
        """Something that your program told the model and nobody said; no model is told it again. The state
        stays."""
        turn = Turn(role="system", content=text_of(text, "a notice"), fields={"kind": NOTICE})
        return self._recording.say(lambda state: state, turn)

    def calling(self, *, model: str = "", provider: str = "") -> None:
        """A request to the model leaves now (`calling_llm`): say so when the tools are done."""
        model, provider = text_of(model, "a model"), text_of(provider, "a provider")
        self._recording.note(states.calling, model=model, provider=provider)

    def retry(self, error: BaseException | str | None = None) -> None:
        """The model is asked once more (`calling_llm`, one more of `retries`), because of `error` (None: what
        `error` said). A cut answer stays, and the new one stands beside it."""
        text = None if error is None else states.error_text(error)
        self._recording.note(lambda state: states.retrying(state, text), goes_back=True)

    def error(self, error: BaseException | str) -> None:
        """Something went wrong (`error`): the session may still go on, with `retry` or with anything else."""
        text = states.error_text(error)
        self._recording.note(lambda state: states.failed(state, text))

    def waiting(self) -> None:
        """It is the user's turn (`waiting_for_user_input`): say so when a turn was given up. Calls that nobody runs
        are given up with it; what still streams or runs is told until it is over."""
        self._recording.note(lambda _: states.waiting())
