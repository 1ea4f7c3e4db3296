"""The importer of ChatGPT: what an export looks like from outside.

Owns how a conversation is known by its first bytes. There is no folder to look in: people name the file that they
were sent, as `conversations.json`, as a zip, or as one conversation alone; the adapter takes it apart and gives
each conversation as lines (`chatgpt_layout.py`). How lines are read: `chatgpt_reader.py`.
"""

from __future__ import annotations

import re

from raddle.actions.importing.chatgpt_layout import CAPTURED
from raddle.actions.importing.chatgpt_reader import AGENT, ChatGPTReader
from raddle.actions.importing.importer import Home, Links, Lookup, Place, SourceName

_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?[\s\0]*[\[{]")
_MAPPING = re.compile(rb'"mapping"\s*:\s*\{')
_NODE = re.compile(rb'"(?:message|parent|children)"\s*:')
_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_HEADER_LINE = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{"conversation_id":')
_ID = re.compile(rb'"conversation_id"\s*:\s*"([^"\\]{1,200})"')
_NAME = re.compile(r"conversations(?:-\d+)?\.json\Z", re.IGNORECASE)


def is_conversations(name: str, head: bytes) -> bool:
    """Does a JSON file of that name, which begins with `head`, hold conversations of ChatGPT?

    Another program's `conversations.json` has other keys, and says so early (Claude.ai: `chat_messages`).
    """
    if _BEGINS.match(head) is None:
        return False
    if _has_mapping(head) or (f'"{CAPTURED}"'.encode() in head and b'"chatgpt' in head):
        return True
    if b'"polylogue_capture_kind"' in head and b'"chatgpt' in head:
        return True
    return _NAME.match(name) is not None and not (b'"uuid"' in head or b'"chat_messages"' in head)


def _has_mapping(head: bytes) -> bool:
    found = _MAPPING.search(head)
    return found is not None and (
        _NODE.search(head, found.end()) is not None or len(head) - found.end() < 400
    )


class ChatGPT:
    """ChatGPT's conversations."""

    agent = AGENT
    label = "ChatGPT"
    home = Home(folders=(), patterns=(), suffix=".json")

    def place(self, source: SourceName, head: bytes) -> Place | None:
        """Which conversation the file is, where it is one alone or the lines of one; None for any other."""
        is_alone = _OBJECT.match(head) is not None and _has_mapping(head) and b'"current_node"' in head
        if not is_alone and _HEADER_LINE.match(head) is None:
            return None
        found = _ID.search(head)
        return Place(session=found.group(1).decode(errors="replace") if found is not None else source.name)

    def open(
        self,
        source: SourceName,
        *,
        state: bytes = b"",
        links: Links | None = None,
        lookup: Lookup | None = None,
    ) -> ChatGPTReader:
        """A reader of the lines of a conversation; it leaves no state, so any is one too many."""
        return ChatGPTReader(has_state=bool(state))

    def links(self, state: bytes) -> Links | None:
        """None: there are no states."""
        return None
