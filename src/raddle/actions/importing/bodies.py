"""Bodies too long to stand in a message: head and tail stay, the whole becomes a blob.

Owns where such a body is cut, for every importer: the same text cut in two ways would be two messages.
"""

from __future__ import annotations

import hashlib

from raddle.actions.importing.importer import Blob, Taken
from raddle.model.threads.message import Attachment, Message, changed

MAX_BODY_BYTES = 1 << 20
"""A longer text, as UTF-8, is cut to as much."""

MEDIA_TYPE = "text/plain"
_GAP = b"\n\n[\xe2\x80\xa6]\n\n"


def without_long_body(message: Message) -> tuple[Message, Blob | None]:
    """The message as it is stored, and its whole body where that is too long to stand in it.

    A turn that raddle itself wrote into a session file (`model/threads/carried.py`) stands as it was written.
    """
    if message.device or len(message.content) <= MAX_BODY_BYTES // 4:
        return message, None
    body = message.content.encode()
    if len(body) <= MAX_BODY_BYTES:
        return message, None
    half = (MAX_BODY_BYTES - len(_GAP)) // 2
    head = body[:half].decode(errors="ignore")
    tail = body[-half:].decode(errors="ignore")
    blob = Blob(sha256=hashlib.sha256(body).hexdigest(), body=body, media_type=MEDIA_TYPE)
    whole = Attachment(sha256=blob.sha256, media_type=MEDIA_TYPE, size=len(body), is_body=True)
    return changed(
        message, content=head + _GAP.decode() + tail, attachments=(*message.attachments, whole)
    ), blob


def put(taken: Taken, message: Message) -> Message:
    """Add a message to what goes out, and its whole body where that is too long for it; the message as it is stored."""
    message, blob = without_long_body(message)
    taken.messages.append(message)
    if blob is not None:
        taken.blobs.append(blob)
    return message
