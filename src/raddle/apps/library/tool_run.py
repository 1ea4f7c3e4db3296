"""One run of a tool: open from the moment it begins, closed by its result, whatever that is.

Owns what becomes the result: what the program sets, or the exception that ended it.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Self

from raddle.actions.recording import states
from raddle.actions.recording.recorder import Step, Turn
from raddle.actions.recording.shapes import is_true, result_text
from raddle.apps.library.aside import aside
from raddle.apps.library.recording import Recording
from raddle.apps.library.trouble import beside
from raddle.model.threads.agent_state import AgentState, PendingToolCall


class ToolRun:
    """What `session.tool(…)` gives: use it as a context manager, set `result` inside.

    `result` may be a text, bytes or any JSON value (None: the tool said nothing). `is_error`: the tool says
    itself that it failed. An exception that leaves the block becomes a result with `is_error` and goes on.
    """

    def __init__(self, recording: Recording, call_id: str, name: str) -> None:
        self.call_id = call_id
        self.name = name
        self.result: Any = None
        self.is_error = False
        self.message_id = ""
        """The message with the result, once it is there."""
        self._recording = recording
        self._ending = threading.Lock()
        self._is_done = False

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with beside(error):
            self._end(error)

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with beside(error):
            await aside(lambda: self._end(error))

    def _begin(self) -> None:
        self._recording.take(self._running)

    def _running(self, state: AgentState) -> Step:
        if not self.name:
            known = (call.tool_name for call in state.pending_tool_calls if call.call_id == self.call_id)
            self.name = next(known, "")
        call = PendingToolCall(call_id=self.call_id, tool_name=self.name)
        return Step(state=states.running(state, call), begins=call)

    def _end(self, error: BaseException | None) -> None:
        """The result first, git after it: a look at a large repository takes its time."""
        with self._ending:
            if not self._is_done:
                turn = self._turn(error)
                is_stopped = error is not None and not isinstance(error, Exception)
                self.message_id = self._recording.say(
                    lambda state: states.ran(state, self.call_id, is_stopped=is_stopped),
                    turn,
                    ends=self.call_id,
                )
                self._is_done = True
        self._recording.look_at_git()

    def _turn(self, error: BaseException | None) -> Turn:
        said = [result_text(self.result)]
        if error is not None:
            said.append(states.error_text(error))
        return Turn(
            role="tool",
            content="\n\n".join(text for text in said if text),
            fields={
                "tool_call_id": self.call_id,
                "tool_name": self.name,
                "is_error": error is not None or is_true(self.is_error),
            },
        )
