"""One turn of a conversation: a value that never changes after its append (imports: `rev`).

The field names are those of the thread file (`docs/formats/thread-file.md`); absent optionals and empty
lists are left out when it is written.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.clock import parse_time

ROLES = ("system", "user", "assistant", "tool")
"""The roles raddle knows; any other text is kept as read."""

TURN, SUMMARY, COMPACTION, NOTICE, PURGED = "turn", "summary", "compaction", "notice", "purged"
"""The kinds of message; any other text is kept as read. A notice is context that a program injected: it
is never shown as what the user said. A purged message is the stub of one whose words were erased."""


class ToolCall(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A call an assistant made; `arguments_json` is any JSON value, kept as read."""

    id: str
    tool_name: str
    arguments_json: Any = None


class Attachment(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Bytes that belong to a message, kept as the blob `sha256` (64 hex). `size` in bytes.

    `is_body`: the message's own text, too long to stand in `content`, which then holds its head and tail.
    """

    sha256: str
    media_type: str = ""
    name: str = ""
    size: int = 0
    is_body: bool = False


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Tokens of one model response, as its record says; None where it does not say. `cost_usd` in dollars."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A turn in the tree. Order among messages is (`order`, `id`); a parent always has the smaller order."""

    id: str
    parent_id: str | None = None
    """None: a root turn."""
    branch_id: str = ""
    """What the append wrote; what is shown is computed by the tree and never stored."""
    role: str
    content: str = ""
    ts: str = ""
    """RFC 3339, the writer's honest wall clock, for display only; empty where nobody knows."""
    seq: int | None = None
    """The thread's clock at the append, in microseconds; None where it is `ts` itself."""
    rev: int = 0
    """Importers only: how many source records were folded in; the greater one wins everywhere."""
    device: str = ""
    """The device that wrote it; empty for an imported turn."""
    author: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    thinking: str = ""
    attachments: tuple[Attachment, ...] = ()
    provider: str = ""
    model: str = ""
    policy_id: str = ""
    job_id: str = ""
    usage: Usage | None = None
    is_sidechain: bool = False
    kind: str = TURN
    extra: dict[str, Any] = {}
    """Facts of the source that have no field of their own."""
    unknown: dict[str, Any] = msgspec.field(default_factory=dict, name="~unknown")
    """Fields a newer raddle or another program wrote, put back where they stood when this is written."""

    @property
    def order(self) -> int:
        """Microseconds that order this message among the others of its thread."""
        if self.seq is not None:
            return self.seq
        return parse_time(self.ts) or 0

    @property
    def is_purged(self) -> bool:
        """Were the words of this turn erased for good?"""
        return self.kind == PURGED

    def purged(self) -> Message:
        """The stub that stays of this turn: its place in the tree, no word of what it said."""
        return Message(
            id=self.id,
            parent_id=self.parent_id,
            branch_id=self.branch_id,
            role=self.role,
            ts=self.ts,
            seq=self.seq,
            rev=self.rev,
            device=self.device,
            is_sidechain=self.is_sidechain,
            kind=PURGED,
        )


def changed(message: Message, **fields: Any) -> Message:
    """`message` with `fields` in place of its own."""
    return msgspec.structs.replace(message, **fields)
