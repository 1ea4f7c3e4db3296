"""An answer of the model while it comes in: what came is kept, also where it is cut.

Owns what of a cut answer is kept and how it is marked.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from raddle.actions.recording import states
from raddle.actions.recording.recorder import CUT, Turn
from raddle.actions.recording.shapes import ToolCallLike, UsageLike, text_of, tool_call_of, usage_of
from raddle.apps.library.recording import Recording
from raddle.apps.library.trouble import beside
from raddle.model.threads.agent_state import AgentState, PendingToolCall
from raddle.model.threads.message import ToolCall, Usage


class StreamedReply:
    """What `session.stream()` gives: use it as a context manager, `write` what comes.

    Left in order, it is an answer like any other. Left by an exception it keeps what had come, marked as cut,
    and the exception goes on; an error of the program's makes the state `error`.
    """

    def __init__(self, recording: Recording, provider: str, model: str) -> None:
        self.message_id = ""
        """The message, once it is there; empty where nothing had come."""
        self._recording = recording
        self._provider = provider
        self._model = model
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[ToolCall] = []
        self._usage: Usage | None = None

    @property
    def text(self) -> str:
        """What has come so far."""
        return "".join(self._text)

    def write(self, text: str) -> None:
        """More of the answer."""
        self._text.append(text_of(text, "what streams"))

    def think(self, text: str) -> None:
        """More of what the model thinks aloud."""
        self._thinking.append(text_of(text, "thinking"))

    def call(self, tool_call: ToolCallLike) -> None:
        """A tool call that has come whole, in the shapes that `Session.assistant` takes."""
        self._calls.append(tool_call_of(tool_call))

    def used(self, usage: UsageLike | None) -> None:
        """What the answer cost, as APIs say at its end."""
        self._usage = usage_of(usage)

    def __enter__(self) -> Self:
        self._recording.begin(self, provider=self._provider, model=self._model)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with beside(error):
            self._end(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.__exit__(_kind, error, _trace)

    def _end(self, error: BaseException | None) -> None:
        if error is None:
            turn, calls = self._turn(), tuple(self._calls)
            pending = [PendingToolCall(call_id=call.id, tool_name=call.tool_name) for call in calls]
            self.message_id = self._recording.finish(
                self, turn, lambda state: states.answered(state, pending)
            )
            return

        def follow(state: AgentState) -> AgentState:
            return states.failed(state, states.error_text(error)) if isinstance(error, Exception) else state

        self.message_id = self._recording.finish(self, self.cut(type(error).__name__), follow)

    def cut(self, why: str) -> Turn | None:
        """What has come so far, as a turn that says so; None where nothing has."""
        if not (self._text or self._thinking or self._calls):
            return None
        return self._turn(extra={CUT: why}, is_cut=True)

    def _turn(self, *, extra: dict[str, Any] | None = None, is_cut: bool = False) -> Turn:
        fields = {
            "tool_calls": tuple(self._calls),
            "thinking": "".join(self._thinking),
            "usage": self._usage,
            "provider": self._provider,
            "model": self._model,
            "extra": extra or {},
        }
        return Turn(role="assistant", content=self.text, fields=fields, is_cut=is_cut)
