"""One thread's state where several sessions are recorded into it: each tells its own, and none hides another's.

Owns what stands in the thread beside the state that shows. The state of whoever wrote last shows while that one is
in the middle of a turn, else that of another one that is. A session knows its own by the write that told it first
(`as_of`), so it needs no name, and nothing stands there where only one is in a turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.threads.agent_state import WAITING_FOR_USER_INPUT, AgentState, PendingToolCall
from raddle.model.threads.thread import Thread


class Told(Struct, frozen=True, kw_only=True):
    """The state of one session, as a thread tells it. `as_of`: the clock and the device of the write that told it."""

    as_of: str
    state: AgentState

    @property
    def is_in_a_turn(self) -> bool:
        """Is it no session that waits for its user?"""
        return self.state.kind != WAITING_FOR_USER_INPUT or bool(self.state.pending_tool_calls)


def told_in(thread: Thread) -> tuple[Told, ...]:
    """What a thread tells of its sessions, the one whose state shows first; of those that wait, at most that one."""
    register = thread.registers.get("agent_state")
    if register is None or not register.writes:
        return ()
    latest = register.latest
    value = latest.value if isinstance(latest.value, dict) else {}
    listed = value.get("beside")
    beside = tuple(_told(each) for each in (listed if isinstance(listed, list) else ()))
    others = tuple(each for each in beside if each is not None)
    theirs = {call.call_id for each in others for call in each.state.pending_tool_calls}
    shown = thread.agent_state
    own = tuple(call for call in shown.pending_tool_calls if call.call_id not in theirs)
    as_of = value.get("as_of")
    return (
        Told(
            as_of=as_of if isinstance(as_of, str) else f"{latest.n} {latest.device}",
            state=msgspec.structs.replace(shown, pending_tool_calls=own),
        ),
        *others,
    )


def _told(value: Any) -> Told | None:
    """What is no such entry (a foreign hand wrote it) is none."""
    try:
        return Told(as_of=msgspec.convert(value["as_of"], str), state=msgspec.convert(value, AgentState))
    except (msgspec.ValidationError, TypeError, KeyError):
        return None


def shared(mine: AgentState, others: Iterable[Told]) -> tuple[dict[str, Any], bool]:
    """What to write for a session whose state is `mine` beside `others`; is it its own that shows?

    All open calls stand in `pending_tool_calls`, whosever they are.
    """
    busy = [each for each in others if each.is_in_a_turn]
    is_mine = mine.kind != WAITING_FOR_USER_INPUT or not busy
    shown, beside = (mine, busy) if is_mine else (busy[0].state, busy[1:])
    calls: dict[str, PendingToolCall] = {}
    for state in (shown, *(each.state for each in beside)):
        for call in state.pending_tool_calls:
            calls.setdefault(call.call_id, call)
    value = _plain(msgspec.structs.replace(shown, pending_tool_calls=tuple(calls.values())))
    if not is_mine:
        value["as_of"] = busy[0].as_of
    if beside:
        value["beside"] = [{"as_of": each.as_of, **_plain(each.state)} for each in beside]
    return value, is_mine


def _plain(state: AgentState) -> dict[str, Any]:
    return dict(msgspec.to_builtins(state))
