"""A line of a ChatGPT conversation as a value: which of its fields raddle reads, and nothing more.

Owns the names and types of OpenAI's export, which has no public schema, and the two kinds of line that are made of
a conversation (`chatgpt_layout.py`): its header, and a node of its tree. What is not named here is not decoded:
citations, search results and what a message was made with are most of the bytes.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from raddle.actions.importing.fitting import NOTHING, Count, encode, fitting
from raddle.actions.importing.records import UNREADABLE, Shape


class Author(Struct, frozen=True, gc=False):
    """Who said it; `name`: of a tool."""

    role: str = ""
    name: str | None = None


class Piece(Struct, frozen=True, gc=False):
    """One element of `parts` that is no plain text: a picture, a sound, what was heard."""

    content_type: str | None = None
    text: str | None = None
    asset_pointer: str | None = None
    size_bytes: Count | None = None
    audio_asset_pointer: Piece | None = None
    result: str | None = None
    title: str | None = None
    url: str | None = None


class Thought(Struct, frozen=True, gc=False):
    """A step of reasoning."""

    summary: str | None = None
    content: str | None = None


class Content(Struct, frozen=True, gc=False):
    """What was said, in every shape there is; each `content_type` uses a few of these."""

    content_type: str = ""
    parts: list[str | Piece | None] | None = None
    text: str | None = None
    result: str | None = None
    summary: str | None = None
    content: str | None = None
    output_str: str | None = None
    title: str | None = None
    url: str | None = None
    snippet: str | None = None
    name: str | None = None
    thoughts: list[Thought] | str | None = None
    user_profile: str | None = None
    user_instructions: str | None = None
    model_set_context: str | None = None
    repo_summary: str | None = None


class FileRef(Struct, frozen=True, gc=False):
    """A file that a person sent along; its bytes are not in the conversation. Older exports say `mimeType`."""

    id: str | None = None
    name: str | None = None
    mime_type: str | None = None
    old_mime_type: str | None = msgspec.field(default=None, name="mimeType")
    size: Count | None = None


class Told(Struct, frozen=True, gc=False):
    """`user_context_message_data`: custom instructions, as older exports have them."""

    about_user_message: str | None = None
    about_model_message: str | None = None


class Outcome(Struct, frozen=True, gc=False):
    """`aggregate_result`: how a run of code ended."""

    status: str | None = None


class Canvas(Struct, frozen=True, gc=False):
    """`canvas`: the document that a call or its result is about."""

    textdoc_id: str | None = None


class Metadata(Struct, frozen=True, gc=False):
    """What is known about a message."""

    model_slug: str | None = None
    is_visually_hidden_from_conversation: bool | None = None
    is_user_system_message: bool | None = None
    user_context_message_data: Told | None = None
    attachments: list[FileRef] | None = None
    aggregate_result: Outcome | None = None
    canvas: Canvas | None = None
    gizmo_id: str | None = None


class Said(Struct, frozen=True, gc=False):
    """A message. `role`: as the first exports have it, beside an author that they do not."""

    id: str = ""
    author: Author | None = None
    role: str = ""
    create_time: float | None = None
    content: Content | None = None
    status: str | None = None
    weight: float | None = None
    recipient: str | None = None
    metadata: Metadata | None = None


class Line(Struct, frozen=True, gc=False):
    """A line: a header, which has a `conversation_id` (maybe null), or a node, which has none.

    `mapping`: of a whole conversation that stands in one line. Times in seconds since 1970.
    """

    conversation_id: str | UnsetType | None = UNSET
    id: str | None = None
    # A header's:
    title: str | None = None
    create_time: float | None = None
    update_time: float | None = None
    default_model_slug: str | None = None
    mapping: Raw = NOTHING
    # A node's:
    parent: str | UnsetType | None = UNSET
    message: Said | UnsetType | None = UNSET

    @property
    def is_node(self) -> bool:
        """Is it a node of the tree?"""
        return self.id is not None and (self.parent is not UNSET or self.message is not UNSET)


decode_line = msgspec.json.Decoder(Line).decode

_STARTS = re.compile(rb'\{"(?:conversation_id|id)":')


def _is_record(value: dict[str, Any]) -> bool:
    """Is this a whole line, and not a part of a message?"""
    if "conversation_id" in value:
        return "title" in value or "current_node" in value or "mapping" in value
    return isinstance(value.get("id"), str) and "parent" in value and "message" in value


SHAPE = Shape(_STARTS, _is_record)


def fit_line(value: Any) -> list[Line]:
    """The line of a plain value; what does not fit its type is left out."""
    if not isinstance(value, dict) or not (
        value.keys() & {"conversation_id", "mapping", "parent", "message"}
    ):
        return []
    try:
        return [decode_line(encode(value))]
    except UNREADABLE:
        said = value.get("message")
        if isinstance(said, dict):
            value = value | {"message": fitting(_fit_said(said), Said)}
        return [decode_line(encode(fitting(value, Line)))]


def _fit_said(said: dict[str, Any]) -> dict[str, Any]:
    made = dict(said)
    if isinstance(author := said.get("author"), dict):
        made["author"] = fitting(author, Author)
    if isinstance(metadata := said.get("metadata"), dict):
        made["metadata"] = fitting(metadata, Metadata)
    if isinstance(content := said.get("content"), dict):
        made["content"] = fitting(_fit_content(content), Content)
    return made


def _fit_content(content: dict[str, Any]) -> dict[str, Any]:
    made = dict(content)
    if isinstance(parts := content.get("parts"), list):
        made["parts"] = [_fit_piece(part) for part in parts]
    if isinstance(thoughts := content.get("thoughts"), list):
        made["thoughts"] = [fitting(one, Thought) for one in thoughts if isinstance(one, dict)]
    return made


def _fit_piece(part: Any) -> Any:
    if part is None or isinstance(part, str):
        return part
    return fitting(part, Piece) if isinstance(part, dict) else encode(part).decode()
