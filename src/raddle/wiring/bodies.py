"""Texts that are too long for a message, kept whole as blobs: the same for whatever writes a turn on this machine."""

from __future__ import annotations

from raddle.model.threads.message import Attachment, Message
from raddle.wiring import Stores


def keep_body(stores: Stores, text: str) -> tuple[str, tuple[Attachment, ...]]:
    """`text` as a message holds it; one that is too long for that is kept whole as a blob."""
    from raddle.actions.importing.bodies import without_long_body  # noqa: PLC0415  most texts are short

    try:
        message, blob = without_long_body(Message(id="body", role="tool", content=text))
    except UnicodeEncodeError:  # half a character somewhere: the store would mend it in the message
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        message, blob = without_long_body(Message(id="body", role="tool", content=whole))
    if blob is None:
        return text, ()
    stores.blobs.put(blob.body, compress=True)
    return message.content, message.attachments
