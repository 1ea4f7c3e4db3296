"""Conversations of ChatGPT made up message by message: each test writes the shape that it is about, and no more."""

from __future__ import annotations

import json
from typing import Any

from raddle.actions.importing.chatgpt_layout import conversation_lines
from raddle.model.clock import parse_time
from raddle.model.ids import derived_id

SESSION = "6745a1b2-0c3d-800e-8f10-a1b2c3d4e5f6"
OTHER_SESSION = "6745a1b2-1111-8222-9333-444455556666"
START = (parse_time("2026-02-01T09:00:00Z") or 0) // 1_000_000
MODEL = "gpt-5-1"


def uuid_of(name: str) -> str:
    """A uuid that is the same for the same name."""
    return derived_id("test", name)


class Conversation:
    """A conversation that grows by messages, ten seconds apart, each under the one before it unless told otherwise.

    Every method that adds a node gives its id. `under`: another parent; None for a second root.
    """

    def __init__(self, session: str = SESSION, *, title: str | None = "Cold kiln", **header: Any) -> None:
        self.session = session
        self.mapping: dict[str, Any] = {}
        self.now = START + 0.25
        self.last: str | None = None
        self.header: dict[str, Any] = {"title": title, "create_time": START + 0.125, **header}
        self.node(None, node="client-created-root")

    def node(
        self, message: dict[str, Any] | None, *, node: str = "", under: str | None = "", **more: Any
    ) -> str:
        """A node of the tree, with a message or without."""
        node = node or uuid_of(f"{self.session}/{len(self.mapping)}")
        parent = self.last if under == "" else under
        if message is not None:
            message = {"id": node, **message}
        self.mapping[node] = {"id": node, "message": message, "parent": parent, "children": [], **more}
        if parent in self.mapping:
            self.mapping[parent]["children"].append(node)
        self.last = node
        return node

    def says(
        self,
        role: str,
        content: dict[str, Any] | str,
        *,
        under: str | None = "",
        node: str = "",
        name: str | None = None,
        at: float | None = 0,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> str:
        """A message. `at`: seconds after the start (None: it has no time); without it, ten after the last one."""
        self.now = self.now + 10 if not at else START + at
        if isinstance(content, str):
            content = {"content_type": "text", "parts": [content]}
        message = {
            "author": {"role": role, "name": name, "metadata": {}},
            "create_time": None if at is None else self.now,
            "update_time": None,
            "content": content,
            "status": "finished_successfully",
            "end_turn": None,
            "weight": 1.0,
            "metadata": metadata or {},
            "recipient": "all",
            "channel": None,
            **more,
        }
        return self.node(message, under=under, node=node)

    def user(self, content: dict[str, Any] | str, **more: Any) -> str:
        """What a person typed."""
        return self.says("user", content, **more)

    def assistant(self, content: dict[str, Any] | str, *, model: str = MODEL, **more: Any) -> str:
        """What the model said."""
        metadata = {"model_slug": model, **more.pop("metadata", {})}
        return self.says("assistant", content, metadata=metadata, **more)

    def calls(self, tool: str, arguments: str, *, language: str = "unknown", **more: Any) -> str:
        """A call of a tool."""
        content = {"content_type": "code", "language": language, "text": arguments}
        return self.assistant(content, recipient=tool, **more)

    def tool(self, name: str, content: dict[str, Any] | str, **more: Any) -> str:
        """What a tool answered."""
        return self.says("tool", content, name=name, **more)

    def hidden(self, role: str, content: dict[str, Any] | str, **more: Any) -> str:
        """A message that is not shown."""
        hidden = {"is_visually_hidden_from_conversation": True}
        return self.says(role, content, metadata=hidden, **more)

    @property
    def value(self) -> dict[str, Any]:
        """The conversation as an export has it, its fields in the export's order."""
        return {
            **self.header,
            "update_time": self.header.get("update_time", self.now + 1),
            "mapping": self.mapping,
            "moderation_results": [],
            "current_node": self.last,
            "plugin_ids": None,
            "conversation_id": self.session,
            "default_model_slug": self.header.get("default_model_slug", "auto"),
            "safe_urls": [],
            "id": self.session,
        }

    @property
    def data(self) -> bytes:
        """Its bytes, as Python's `json` wrote them: that is how the real ones look."""
        return json.dumps(self.value).encode()

    @property
    def lines(self) -> list[bytes]:
        """The lines that are read of it."""
        return conversation_lines(self.data)


def export_of(*conversations: Conversation) -> bytes:
    """An export of several conversations."""
    return b"[" + b", ".join(one.data for one in conversations) + b"]"


def a_short_conversation(session: str = SESSION) -> Conversation:
    """A question, an answer, and another of each."""
    talk = Conversation(session)
    talk.user("Why is the kiln cold?")
    talk.assistant("The relay may be open.")
    talk.user("How do I see that?")
    talk.assistant("Look at the log.")
    return talk


def a_conversation_with_everything() -> Conversation:
    """Every kind of content, a call with its results, an edit, an answer asked for again, text beyond ASCII."""
    talk = Conversation(title="Kiln — 窯 🔥", default_model_slug="gpt-5-1", gizmo_id="g-kiln")
    talk.hidden("system", "", at=None)
    context = {
        "content_type": "user_editable_context",
        "user_profile": "I fire pots.",
        "user_instructions": "Be short.",
    }
    talk.says(
        "user",
        context,
        at=None,
        metadata={"is_visually_hidden_from_conversation": True, "is_user_system_message": True},
    )
    picture = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "sediment://file_0000abcd",
        "size_bytes": 4711,
        "width": 10,
        "height": 10,
        "metadata": None,
    }
    attachments = [{"id": "file_0000abcd", "name": "kiln.png", "mimeType": "image/png", "size": 4711}]
    first = talk.user(
        {
            "content_type": "multimodal_text",
            "parts": [picture, "Why is the kiln cold?\u2028See the picture."],
        },
        metadata={"attachments": attachments},
    )
    talk.assistant("It is off.", under=first)
    again = talk.assistant(
        {
            "content_type": "thoughts",
            "thoughts": [
                {"summary": "Looking", "content": "The lamp is dark.", "chunks": [], "finished": True}
            ],
            "source_analysis_msg_id": "x",
        },
        under=first,
    )
    talk.calls("python", "print(2 + 2)", language="python", under=again)
    talk.tool("python", {"content_type": "execution_output", "text": "4"})
    talk.calls("web.run", '{"search_query":[{"q":"kiln relay"}]}')
    talk.tool(
        "web.run",
        {
            "content_type": "tether_quote",
            "url": "https://example.org",
            "title": "Relays",
            "text": "They click.",
        },
    )
    talk.tool(
        "web.run", {"content_type": "sonic_webpage", "title": "Kilns", "text": "They glow.", "url": "u"}
    )
    talk.says("assistant", {"content_type": "reasoning_recap", "content": "Thought for 4s"})
    answer = talk.assistant(
        "The relay is open \ue200cite\ue202turn0search0\ue201.", metadata={"gizmo_id": "g-kiln"}
    )
    talk.user("Thanks", under=answer)
    talk.user("Thanks! And now?", under=answer)
    talk.assistant({"content_type": "system_error", "name": "tool_error", "text": "Error: no network"})
    talk.assistant("Half an ans", status="in_progress", weight=0.0)
    return talk


def a_conversation_without_times() -> Conversation:
    """As some exporters write them: no times but the conversation's, and a message with two answers."""
    talk = Conversation(OTHER_SESSION, title=None)
    one = talk.user("one", at=None)
    talk.assistant("two", at=None)
    talk.assistant("two again", at=None, under=one)
    talk.user("three", at=None)
    return talk


def a_conversation_of_another_exporter() -> Conversation:
    """Ids that are no uuids, no fields but those that are needed."""
    talk = Conversation("my conversation", title="New chat")
    talk.user("Why is the kiln cold?", node="q1")
    talk.assistant("It is off.", node="a1")
    talk.user("Why?", node="q2")
    return talk
