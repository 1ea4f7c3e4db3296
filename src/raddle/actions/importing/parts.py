"""What one record of an agent says, as parts of messages, and the bytes that come off while it is read.

Owns how attachments become blobs and how texts are joined, for every importer: the same picture cut in two ways
would be two blobs, the same words joined in two ways two messages.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

from msgspec import Raw, Struct, field

from raddle.actions.importing.fitting import plain_of
from raddle.actions.importing.importer import Blob
from raddle.model.threads.message import TURN, Attachment, ToolCall

ASSISTANT, USER, TOOL, SYSTEM = "assistant", "user", "tool", "system"

_DATA_URL = re.compile(r"data:([^;,]*)([^,]*),")


class MessagePart(Struct, frozen=True, gc=False, kw_only=True):
    """A message's worth of one record. `key` tells the parts of a record apart; the main one's is empty."""

    role: str
    kind: str = TURN
    key: str = ""
    content: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    attachments: tuple[Attachment, ...] = ()
    extra: dict[str, Any] = {}

    @property
    def is_typed(self) -> bool:
        """Did a person type this?"""
        return self.role == USER and self.kind == TURN

    @property
    def is_empty(self) -> bool:
        """Does it say nothing at all?"""
        return not (self.content or self.thinking or self.tool_calls or self.attachments or self.tool_call_id)


class Aside(Struct):
    """What comes off while a record is read: bytes to store as blobs, repairs to report."""

    blobs: list[Blob] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)

    def plain(self, raw: Raw) -> Any:
        """`raw` as plain JSON, made readable where it is not quite that."""
        value, repairs = plain_of(raw)
        self.repairs += repairs
        return value

    def attach(self, body: bytes, media_type: str, name: str = "") -> Attachment:
        """The attachment of these bytes, which are stored as a blob."""
        sha256 = hashlib.sha256(body).hexdigest()
        self.blobs.append(Blob(sha256=sha256, body=body, media_type=media_type))
        return Attachment(sha256=sha256, media_type=media_type, name=name, size=len(body))

    def from_base64(self, text: str) -> bytes:
        """The bytes of `text`; as many of them as there are, where its end is missing."""
        try:
            return binascii.a2b_base64(text + "=" * (-len(text) % 4))
        except (binascii.Error, ValueError) as error:
            self.repairs.append(f"an attachment that is not whole base64 ({error})")
        kept = re.sub(r"[^A-Za-z0-9+/]", "", text)
        return binascii.a2b_base64(kept[: len(kept) // 4 * 4])

    def from_data_url(self, url: str) -> tuple[bytes, str] | None:
        """(bytes, media type) of a `data:` URL; None of one that leads elsewhere."""
        found = _DATA_URL.match(url)
        if found is None:
            return None
        data = url[found.end() :]
        is_base64 = found[2].endswith(";base64")
        body = self.from_base64(data) if is_base64 else unquote_to_bytes(data.encode(errors="replace"))
        return body, found[1]


def joined(texts: Iterable[str | None], between: str = "\n\n") -> str:
    """The texts that say something, one after the other."""
    return between.join([text for text in texts if text and not text.isspace()])
