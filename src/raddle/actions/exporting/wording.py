"""What a transcript calls things, the same in every readable form: roles, turns, lines, calls, files."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from raddle.actions.exporting.transcript import Section, Turn, minute
from raddle.model.threads.message import COMPACTION, NOTICE, SUMMARY, Attachment

_LABELS = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_KINDS = {SUMMARY: "Summary of what came before", COMPACTION: "Context compacted", NOTICE: "Context"}
_HINT_LENGTH = 80
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def role_label(role: str) -> str:
    """A role for people: `Assistant`; a role that is not known as it stands."""
    return _LABELS.get(role, role)


def section_title(section: Section) -> str:
    """What a line of conversation is called: its name, and where it leaves from."""
    name = section.name or f"Line {section.number}"
    if section.is_lost:
        return f"{name}: lost and found (what it answers is not there)"
    if section.after:
        return f"{name}: another answer to turn {section.after}"
    return f"{name}: another beginning"


def turn_label(turn: Turn) -> str:
    """Who speaks, and when: `Assistant, 2026-11-30 09:52 UTC`."""
    first = turn.exchanges[0].message
    role = _KINDS.get(first.kind) or role_label(turn.role)
    who = f"{role} ({turn.author})" if turn.author else role
    return ", ".join(part for part in (who, minute(turn.time)) if part)


def attachment_text(attachment: Attachment) -> str:
    """An attachment in words: `Attachment: shot.png (image/png, 12,345 bytes)`."""
    facts = [attachment.media_type] if attachment.media_type else []
    facts.append(counted(attachment.size, "byte"))
    name = attachment.name or attachment.sha256[:12]
    return f"{'The whole text' if attachment.is_body else f'Attachment: {name}'} ({', '.join(facts)})"


def arguments_text(arguments: Any) -> str:
    """A call's arguments as text: JSON over several lines, or the text they are."""
    if isinstance(arguments, str):
        return arguments
    return msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()


def hint_of(arguments: Any) -> str:
    """The first text among a call's arguments, in one line: mostly a command, a path or a pattern."""
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    text = next((value for value in values if isinstance(value, str) and value.strip()), "")
    line = " ".join(text.split())
    return line if len(line) <= _HINT_LENGTH else line[: _HINT_LENGTH - 1] + "…"


def counted(count: int, what: str) -> str:
    """`1 message`, `2,000 messages`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def printable(text: str) -> str:
    """`text` with its line ends as newlines and every other control code but tabs as U+FFFD."""
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
