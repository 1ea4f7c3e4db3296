"""What is sent of a message to somebody who answers: its words, and what is attached as far as it can be sent.

No API's shapes are known here, only what a part is. A second place that decides would send a file to one API and hide
it from another; what is not sent is always named, so that nobody believes it was seen.
"""

from __future__ import annotations

from typing import NamedTuple

from raddle.actions.answering.ports import ReadBytes
from raddle.model.threads.message import Attachment
from raddle.model.threads.rendering import ChatMessage

MOST_TEXT_BYTES = 256 << 10
"""Of one attached text."""
MOST_IMAGE_BYTES = 3_750_000
"""Of one image: 5 MB as base64, the least that is the most for an API."""
MOST_DOCUMENT_BYTES = 20 << 20
_IMAGES = frozenset({"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"})
_PDF = "application/pdf"
_TEXTS = frozenset({"json", "xml", "yaml", "x-yaml", "toml", "javascript", "x-sh", "sql", "x-ndjson"})
_LONGEST_NAME = 200
_MOST_BYTES_BEFORE_A_BODY = 80


class Text(NamedTuple):
    """Words."""

    text: str


class Image(NamedTuple):
    """A picture. `media_type` is what its bytes are: image/png, jpeg, gif or webp."""

    media_type: str
    data: bytes


class Document(NamedTuple):
    """A PDF."""

    name: str
    data: bytes


Part = Text | Image | Document


def parts_of(message: ChatMessage, read: ReadBytes, *, with_files: bool = True) -> list[Part]:
    """The parts of a message, its words first; no part is blank. Without `with_files`, files are only named."""
    words = message.content
    parts: list[Part] = []
    for attachment in message.attachments:
        if attachment.is_body:
            words = _body(attachment, read, message.content) or words
        else:
            parts.append(_part(attachment, read, with_files=with_files))
    return [Text(words), *parts] if words.strip() else parts


def words_of(message: ChatMessage, read: ReadBytes) -> str:
    """A message as nothing but words, for who takes no files."""
    return joined(parts_of(message, read, with_files=False))


def joined(parts: list[Part]) -> str:
    """The words of all parts, one blank line between two."""
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))


def _body(attachment: Attachment, read: ReadBytes, content: str) -> str | None:
    """All of the text whose head and tail is `content`; None where it is not to be had."""
    data = read(attachment)
    if data is None:
        return None
    text = data.decode("utf-8", "replace")
    # Who said it may stand before it: `[role] …`, where a chat API does not know the role.
    at = content.find(text[:40]) if text else -1
    return content[:at] + text if 0 < at <= _MOST_BYTES_BEFORE_A_BODY else text


def _part(attachment: Attachment, read: ReadBytes, *, with_files: bool) -> Part:
    kind = attachment.media_type.partition(";")[0].strip().lower()
    is_file = kind in _IMAGES or kind == _PDF
    is_text = kind.startswith("text/") or kind.partition("/")[2] in _TEXTS or kind.endswith(("+json", "+xml"))
    if not is_text and not (is_file and with_files and attachment.size <= _most(kind)):
        return _not_sent(attachment)
    data = read(attachment)
    if data is None:
        return _not_sent(attachment)
    part = _file(attachment, data) if is_file else _text(attachment, data)
    return part or _not_sent(attachment)


def _file(attachment: Attachment, data: bytes) -> Part | None:
    """An API refuses the whole conversation for one image that is none: so its bytes are looked at."""
    kind = _kind_of(data)
    if not kind or len(data) > _most(kind):
        return None
    return Document(_name(attachment), data) if kind == _PDF else Image(kind, data)


def _most(kind: str) -> int:
    return MOST_DOCUMENT_BYTES if kind == _PDF else MOST_IMAGE_BYTES


def _text(attachment: Attachment, data: bytes) -> Part | None:
    if b"\0" in data[:MOST_TEXT_BYTES]:
        return None
    # Not half a letter at the cut.
    ignored = "ignore" if len(data) > MOST_TEXT_BYTES else "replace"
    text = data[:MOST_TEXT_BYTES].decode("utf-8", ignored)
    if len(data) > MOST_TEXT_BYTES:
        text += f"\n[cut: these are the first {MOST_TEXT_BYTES >> 10} KiB of {len(data):,} bytes]"
    return Text(f"{_name(attachment)}:\n{text}")


def _kind_of(data: bytes) -> str:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return _PDF if data.startswith(b"%PDF-") else ""


def _not_sent(attachment: Attachment) -> Text:
    kind = _line(attachment.media_type) or "of no known type"
    return Text(f"[attachment {_name(attachment)}, {kind}, {attachment.size:,} bytes, not sent]")


def _name(attachment: Attachment) -> str:
    return _line(attachment.name) or f"attachment-{attachment.sha256[:8]}"


def _line(text: str) -> str:
    kept = "".join(letter if letter.isprintable() else " " for letter in text[:_LONGEST_NAME])
    return " ".join(kept.split())
