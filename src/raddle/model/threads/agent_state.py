"""Where an agent stood when the thread was last saved: one register, never half of two machines' states."""

from __future__ import annotations

from msgspec import Struct

WAITING_FOR_USER_INPUT = "waiting_for_user_input"
CALLING_LLM = "calling_llm"
PROCESSING_LLM_RESPONSE = "processing_llm_response"
EXECUTING_TOOLS = "executing_tools"
POST_TOOLS_HOOK = "post_tools_hook"
ERROR = "error"
SHUTTING_DOWN = "shutting_down"

AGENT_STATE_KINDS = (
    WAITING_FOR_USER_INPUT,
    CALLING_LLM,
    PROCESSING_LLM_RESPONSE,
    EXECUTING_TOOLS,
    POST_TOOLS_HOOK,
    ERROR,
    SHUTTING_DOWN,
)
"""The kinds raddle knows; one written by a newer version is kept and shown as text."""


class PendingToolCall(Struct, frozen=True, kw_only=True):
    """A call that was running: its `call_id` is the `id` of a `ToolCall` of the tip's path."""

    call_id: str
    tool_name: str = ""


class AgentState(Struct, frozen=True, kw_only=True):
    """The seven-state machine's position; `retries` counts attempts since the last success."""

    kind: str = WAITING_FOR_USER_INPUT
    retries: int = 0
    last_error: str | None = None
    pending_tool_calls: tuple[PendingToolCall, ...] = ()

    @property
    def is_known(self) -> bool:
        """Is `kind` one that this version can act on?"""
        return self.kind in AGENT_STATE_KINDS
