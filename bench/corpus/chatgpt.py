"""An export of ChatGPT of any size, made up from a seed, in the shape of OpenAI's own: `write_corpus` is the way in.

Owns the shape of conversations and how much of them is what: an empty root and empty system messages, custom
instructions in four of five, thoughts and recaps, searches whose results and citations are most of the bytes, code
that is run, edits and answers asked for again. The texts are those of the other corpora, so that a word is as rare
in all of them. Nothing in it was ever said by anyone.
"""

from __future__ import annotations

import json
import os
import random
import zipfile
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from bench.corpus.outputs import build_errors, server_log
from bench.corpus.project import LANGUAGES, Project
from bench.corpus.words import cjk_text, hex_text, prose, uuid_text

_FIRST_START = 1_735_700_000.0
_MODELS = ("gpt-4o", "gpt-4o", "gpt-5-1", "gpt-5-1-thinking", "o3")
_A_PART = 100
"""Conversations of one `conversations-NNN.json`."""


class Written(Struct, kw_only=True):
    """What was written: `bytes` of JSON, `conversations`, `messages` that say something."""

    bytes: int = 0
    conversations: int = 0
    messages: int = 0


class _Talk:
    """One conversation on its way."""

    def __init__(self, rng: random.Random, project: Project, started: float) -> None:
        self.rng = rng
        self.project = project
        self.session = uuid_text(rng)
        self.now = started
        self.mapping: dict[str, Any] = {}
        self.last: str | None = None
        self.messages = 0
        self.model = rng.choice(_MODELS)
        self._node(None, "client-created-root")
        self._said("system", {"content_type": "text", "parts": [""]}, is_timed=False, metadata=_HIDDEN)
        if rng.random() < 0.8:
            context = {
                "content_type": "user_editable_context",
                "user_profile": self.words(300),
                "user_instructions": self.words(500),
            }
            self._said("user", context, is_timed=False, metadata=_HIDDEN)

    def words(self, length: int) -> str:
        """Prose of about that many characters."""
        return prose(self.rng, self.project.phrases, self.project.names, length)

    def turn(self) -> None:
        """A question and all that comes of it; one in twelve is asked or answered again."""
        above = self.last
        self._ask()
        if self.rng.random() < 0.04:
            self.last = above
            self._ask()
        asked = self.last
        self._answer()
        if self.rng.random() < 0.05:
            self.last = asked
            self._answer()

    def _ask(self) -> None:
        length = int(min(self.rng.lognormvariate(5.2, 1.2), 20_000))
        text = self.words(length) if self.rng.random() > 0.02 else cjk_text(self.rng, length // 3 + 4)
        metadata: dict[str, Any] = {"request_id": uuid_text(self.rng), "timestamp_": "absolute"}
        parts: list[Any] = [text]
        kind = "text"
        if self.rng.random() < 0.04:
            kind = "multimodal_text"
            file = f"file_{hex_text(self.rng, 32)}"
            metadata["attachments"] = [{"id": file, "name": "a.png", "mimeType": "image/png", "size": 91_000}]
            parts.insert(0, {"content_type": "image_asset_pointer", "asset_pointer": f"sediment://{file}"})
        self._said("user", {"content_type": kind, "parts": parts}, metadata=metadata)

    def _answer(self) -> None:
        draw = self.rng.random()
        if self.model not in ("gpt-4o", "gpt-5-1"):
            self._think()
        if draw < 0.2:
            self._search()
        elif draw < 0.32:
            self._run_code()
        length = int(min(self.rng.lognormvariate(7.3, 0.8), 30_000))
        code = "\n".join(self.project.code(self.rng, LANGUAGES[1], self.rng.randrange(4, 40)))
        text = self.words(length // 2) + f"\n\n```python\n{code}\n```\n\n" + self.words(length // 2)
        sources = [self._source() for _ in range(self.rng.randrange(12) if draw < 0.2 else 0)]
        metadata = {
            **self._made(),
            "finish_details": {"type": "stop", "stop_tokens": [200_002]},
            "citations": [{"start_ix": 5, "end_ix": 9, "metadata": one} for one in sources],
            "content_references": [{"matched_text": "\ue200cite\ue201", "items": [one]} for one in sources],
        }
        self._said("assistant", {"content_type": "text", "parts": [text]}, metadata=metadata, end_turn=True)

    def _think(self) -> None:
        steps = [
            {"summary": self.words(30), "content": self.words(400), "chunks": [], "finished": True}
            for _ in range(self.rng.randrange(1, 5))
        ]
        content = {"content_type": "thoughts", "thoughts": steps, "source_analysis_msg_id": ""}
        self._said("assistant", content, metadata=self._made())
        recap = {"content_type": "reasoning_recap", "content": f"Thought for {self.rng.randrange(2, 90)}s"}
        self._said("assistant", recap, metadata=self._made())

    def _search(self) -> None:
        asked = json.dumps({"search_query": [{"q": self.words(40)}]})
        content = {"content_type": "code", "language": "unknown", "response_format_name": None, "text": asked}
        self._said("assistant", content, recipient="web.run", metadata=self._made())
        groups = [
            {"type": "search_result_group", "domain": "example.org", "entries": [self._source()]}
            for _ in range(self.rng.randrange(4, 20))
        ]
        found = {"content_type": "text", "parts": [self.words(1_500)]}
        metadata = {**self._made(), "search_result_groups": groups}
        self._said("tool", found, name="web.run", metadata=metadata)

    def _run_code(self) -> None:
        code = "\n".join(self.project.code(self.rng, LANGUAGES[1], self.rng.randrange(4, 60)))
        content = {"content_type": "code", "language": "python", "response_format_name": None, "text": code}
        self._said("assistant", content, recipient="python", metadata=self._made())
        write = self.rng.choice((server_log, build_errors))
        output = write(self.rng, self.project, self.rng.randrange(3, 40))
        metadata = {**self._made(), "aggregate_result": {"status": "success", "code": code, "messages": []}}
        self._said(
            "tool", {"content_type": "execution_output", "text": output}, name="python", metadata=metadata
        )

    def _source(self) -> dict[str, Any]:
        return {
            "title": self.words(50),
            "url": f"https://example.org/{hex_text(self.rng, 16)}?utm_source=chatgpt.com",
            "snippet": self.words(200),
            "pub_date": self.now,
            "attribution": "example.org",
        }

    def _made(self) -> dict[str, Any]:
        return {
            "model_slug": self.model,
            "default_model_slug": "auto",
            "request_id": uuid_text(self.rng),
            "turn_exchange_id": uuid_text(self.rng),
            "timestamp_": "absolute",
            "message_type": "next",
        }

    def _node(self, message: dict[str, Any] | None, node: str) -> None:
        self.mapping[node] = {"id": node, "message": message, "parent": self.last, "children": []}
        if self.last is not None:
            self.mapping[self.last]["children"].append(node)
        self.last = node

    def _said(
        self,
        role: str,
        content: dict[str, Any],
        *,
        name: str | None = None,
        recipient: str = "all",
        is_timed: bool = True,
        end_turn: bool | None = None,
        metadata: dict[str, Any],
    ) -> None:
        self.now += self.rng.random() * 40
        node = uuid_text(self.rng)
        message: dict[str, Any] = {
            "id": node,
            "author": {"role": role, "name": name, "metadata": {}},
            "create_time": round(self.now, 6) if is_timed else None,
            "update_time": None,
            "content": content,
            "status": "finished_successfully",
            "end_turn": end_turn,
            "weight": 1.0,
            "metadata": metadata,
            "recipient": recipient,
            "channel": None,
        }
        self.messages += is_timed
        self._node(message, node)

    def value(self) -> dict[str, Any]:
        """The conversation as an export has it."""
        return {
            "title": self.words(30),
            "create_time": round(self.now - 9000, 6),
            "update_time": round(self.now, 6),
            "mapping": self.mapping,
            "moderation_results": [],
            "current_node": self.last,
            "plugin_ids": None,
            "conversation_id": self.session,
            "conversation_template_id": None,
            "gizmo_id": None,
            "is_archived": False,
            "safe_urls": [],
            "default_model_slug": "auto",
            "id": self.session,
        }


_HIDDEN = {"is_visually_hidden_from_conversation": True}


def _conversations(megabytes: float, seed: int, done: Written) -> Iterator[bytes]:
    """Conversations, newest first as in a real export, until there are so many bytes of them."""
    rng = random.Random(f"{seed}/chatgpt")
    projects = [Project(str(seed), at, scale=0.5) for at in range(4)]
    started = _FIRST_START + 86_400.0 * 365
    while done.bytes < megabytes * 1e6:
        talk = _Talk(rng, rng.choice(projects), started)
        for _ in range(int(min(rng.lognormvariate(1.6, 1.1), 300)) + 1):
            talk.turn()
        data = json.dumps(talk.value()).encode()
        started -= rng.random() * 40_000
        done.bytes += len(data)
        done.conversations += 1
        done.messages += talk.messages
        yield data


def write_corpus(directory: str, megabytes: float, *, seed: int = 1, is_zipped: bool = False) -> Written:
    """Write an export: `conversations.json` on one line, or a zip with `conversations-000.json` and so on."""
    done = Written()
    os.makedirs(directory, exist_ok=True)
    found = _conversations(megabytes, seed, done)
    if not is_zipped:
        with open(os.path.join(directory, "conversations.json"), "wb") as file:
            file.writelines(_array(found))
        return done
    with zipfile.ZipFile(os.path.join(directory, "chatgpt-export.zip"), "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(zipfile.ZipInfo("chat.html"), "<html>" + "x" * 10_000)
        number = 0
        while part := [one for _, one in zip(range(_A_PART), found, strict=False)]:
            name = zipfile.ZipInfo(f"conversations-{number:03d}.json")
            name.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(name, b"".join(_array(iter(part))))
            number += 1
    return done


def _array(conversations: Iterator[bytes]) -> Iterator[bytes]:
    before = b"["
    for one in conversations:
        yield before
        yield one
        before = b", "
    yield b"]" if before != b"[" else b"[]"
