"""What one message of a ChatGPT conversation says: its words, its thoughts, what it calls, which files it names.

Owns which messages are a person's and the model's words and which are notices, and where in a message the words of
each `content_type` stand. Knows one message at a time; where it stands in the tree is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from raddle.actions.importing.chatgpt_lines import Content, Metadata, Piece, Said, Thought
from raddle.actions.importing.fitting import decoded, encode
from raddle.actions.importing.parts import ASSISTANT, SYSTEM, TOOL, USER, joined
from raddle.model.threads.message import NOTICE, TURN

THOUGHTS = "thoughts"
_CONTEXT = frozenset(("user_editable_context", "model_editable_context", "reasoning_recap", "system_message"))
"""Contents that the program puts into a conversation, or tells about it."""
_KNOWN = _CONTEXT | frozenset(
    (
        "text multimodal_text code execution_output tether_browsing_code tether_browsing_display tether_quote"
        " sonic_webpage citable_code_output computer_output system_error thoughts browser_window"
    ).split()
)
_KNOWN_PIECES = frozenset(
    (
        "text image_asset_pointer audio_asset_pointer audio_transcription video_container_asset_pointer"
        " real_time_user_audio_video_asset_pointer tether_quote tether_browsing_display sonic_webpage"
    ).split()
)
_KIND = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*\Z")
"""How a kind is spelt. What is spelt otherwise may be anything, a secret too, and is not repeated."""
_EVERYONE = frozenset(("", "all", "user", "assistant"))
"""Recipients that are no tools."""
_FINISHED = "finished_successfully"
_FAILED = frozenset(("error", "failed"))
_NOTHING_SAID = Content()
_NOTHING_KNOWN = Metadata()


class Part(Struct, frozen=True, gc=False, kw_only=True):
    """What a message says. `recipient`: the tool that it calls, with `arguments`. `strange`: kinds not known."""

    role: str
    kind: str = TURN
    content: str = ""
    thinking: str = ""
    recipient: str = ""
    arguments: Any = None
    tool_name: str = ""
    is_error: bool = False
    model: str = ""
    extra: dict[str, Any] = {}
    strange: tuple[str, ...] = ()

    @property
    def is_typed(self) -> bool:
        """Did a person type this?"""
        return self.role == USER and self.kind == TURN

    @property
    def is_empty(self) -> bool:
        """Does it say nothing at all? (A file that it names is something.)"""
        return not (self.content or self.thinking or self.recipient or "files" in self.extra)

    @property
    def fullness(self) -> int:
        """Grows with what is said: an answer that was exported while it was written is longer in a later export."""
        arguments = self.arguments
        size = len(arguments) if isinstance(arguments, str) else len(encode(arguments)) if arguments else 0
        return len(self.content) + len(self.thinking) + size + len(self.extra.get("files", ()))


def part_of(said: Said) -> Part:
    """What a message says."""
    content, known = said.content or _NOTHING_SAID, said.metadata or _NOTHING_KNOWN
    role = (said.author.role if said.author is not None else "") or said.role or SYSTEM
    words, thoughts = _words_of(content, known)
    recipient = said.recipient or ""
    is_call = role == ASSISTANT and recipient not in _EVERYONE
    kind = NOTICE if _is_notice(role, content, known) else TURN
    name = said.author.name if said.author is not None else None
    return Part(
        role=role,
        kind=kind,
        content="" if is_call else words,
        thinking=thoughts,
        recipient=recipient if is_call else "",
        arguments=_arguments(words) if is_call else None,
        tool_name=(name or "") if role == TOOL else "",
        is_error=_is_error(said, content, known),
        model=(known.model_slug or "") if role == ASSISTANT and kind == TURN else "",
        extra=_extra(said, content, known),
        strange=tuple(_strange(content)),
    )


def _is_notice(role: str, content: Content, known: Metadata) -> bool:
    """Is it something that the program says or hides, and no turn of the conversation?"""
    return bool(
        role in (SYSTEM, "developer")
        or known.is_visually_hidden_from_conversation
        or known.is_user_system_message
        or content.content_type in _CONTEXT
    )


def _words_of(content: Content, known: Metadata) -> tuple[str, str]:
    """(words, thoughts)."""
    if content.content_type == THOUGHTS:
        return "", joined((*_thoughts(content.thoughts), *_parts(content), content.text, content.content))
    words = joined(
        (
            content.title,
            content.url,
            content.name,
            content.user_profile,
            content.user_instructions,
            content.model_set_context,
            content.repo_summary,
            *_parts(content),
            content.text or content.snippet,
            content.result or content.summary,
            content.output_str,
            content.content,
        ),
        "\n",
    )
    told = known.user_context_message_data
    if words or told is None:
        return words, ""
    return joined((told.about_user_message, told.about_model_message)), ""


def _thoughts(thoughts: list[Thought] | str | None) -> Iterator[str]:
    if isinstance(thoughts, str):
        yield thoughts
        return
    for one in thoughts or ():
        yield joined((one.summary, one.content), "\n")


def _parts(content: Content) -> Iterator[str]:
    for part in content.parts or ():
        if isinstance(part, str):
            yield part
        elif part is not None:
            yield joined((part.title, part.url, part.text, part.result), "\n")


def _arguments(words: str) -> Any:
    """What a tool was told: an object where the words are one, else the words."""
    if words.startswith("{"):
        value = decoded(words, dict[str, Any])
        return words if value is None else value
    return words or None


def _is_error(said: Said, content: Content, known: Metadata) -> bool:
    ended = known.aggregate_result.status if known.aggregate_result is not None else None
    return bool(
        content.content_type == "system_error"
        or said.status in _FAILED
        or (ended is not None and ended.startswith("failed"))
    )


def _extra(said: Said, content: Content, known: Metadata) -> dict[str, Any]:
    """Facts that have no field of their own."""
    extra: dict[str, Any] = {}
    if files := _files(content, known):
        extra["files"] = files
    if said.status not in (None, "", _FINISHED):
        extra["status"] = said.status
    if said.weight == 0:
        extra["weight"] = 0
    if known.gizmo_id:
        extra["gizmo_id"] = known.gizmo_id
    if known.canvas is not None and known.canvas.textdoc_id:
        extra["textdoc_id"] = known.canvas.textdoc_id
    return extra


def _files(content: Content, known: Metadata) -> list[dict[str, Any]]:
    """What it names of files, pictures and sounds; their bytes are not in a conversation."""
    files: dict[str, dict[str, Any]] = {}
    for number, one in enumerate(known.attachments or ()):
        about = {
            "id": one.id,
            "name": one.name,
            "media_type": one.mime_type or one.old_mime_type,
            "size": one.size,
        }
        if one.id or one.name:
            files[one.id or f"{number} {one.name}"] = {name: value for name, value in about.items() if value}
    for part in content.parts or ():
        if isinstance(part, Piece):
            for pointer, piece in _pointers(part):
                file = files.setdefault(pointer, {"id": pointer})
                if piece.size_bytes:
                    file.setdefault("size", piece.size_bytes)
    return list(files.values())


def _pointers(piece: Piece) -> Iterator[tuple[str, Piece]]:
    """The ids of files that a piece is: `file-service://file-a1B2` is the file `file-a1B2`."""
    if piece.asset_pointer:
        yield piece.asset_pointer.rpartition("://")[2], piece
    if piece.audio_asset_pointer is not None:
        yield from _pointers(piece.audio_asset_pointer)


def _strange(content: Content) -> Iterator[str]:
    """What to say of kinds that are not known."""
    if content.content_type and content.content_type not in _KNOWN:
        yield f"a kind of content that is not known: {_named(content.content_type)}"
    for part in content.parts or ():
        if isinstance(part, Piece) and part.content_type and part.content_type not in _KNOWN_PIECES:
            yield f"a kind of part that is not known: {_named(part.content_type)}"


def _named(kind: str) -> str:
    return repr(kind) if _KIND.match(kind) and len(kind) < 60 else "one whose name is no plain word"
