"""Whatever is written in a message finds it: each word, part of an identifier, path, prefix, CJK run, commit."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.threads.message import Message, ToolCall
from raddle.model.threads.search_fields import fields_of
from raddle.model.threads.summary import ThreadSummary

NOW = 1_796_000_000_000_000
THREAD = ThreadSummary(id="T-018e2b3c-4d5e-7f8a-9b0c-000000000001", title="one")

ascii_words = st.text("abcdeXYZ019", min_size=1, max_size=9)
identifiers = st.one_of(
    st.lists(st.sampled_from(("user", "get", "http", "by", "session", "id")), min_size=2, max_size=4).map(
        "_".join
    ),
    st.lists(st.sampled_from(("User", "Get", "Http", "By", "Session", "Id")), min_size=2, max_size=4).map(
        "".join
    ),
    st.sampled_from(("parseJSON", "HTTPServer", "oauth2", "sha256sum", "utf8", "readUTF8File")),
)
paths = st.lists(ascii_words, min_size=2, max_size=4).map(lambda parts: "/".join(parts) + ".py")
cjk = st.text("認証接続設定テスト你好世界", min_size=1, max_size=8)
shas = st.text("0123456789abcdef", min_size=40, max_size=40)
accented = st.sampled_from(("Crème", "naïve", "Žluťoučký", "ΚΌΣΜΟΣ", "Straße", "İstanbul"))
pieces = st.one_of(
    ascii_words, identifiers, paths, cjk, shas, accented, st.sampled_from(("✅", "🚀", "→", "--", "…"))
)
texts = st.lists(
    st.tuples(pieces, st.sampled_from((" ", "\n", ", ", "(", "`", " = "))), min_size=1, max_size=12
).map(lambda pairs: "".join(piece + separator for piece, separator in pairs))


def asked_of(text: str) -> set[str]:
    """What a person could ask for who has seen `text`; found by patterns that know nothing of how it is cut."""
    asked = set(re.findall(r"[^\W_]+", text))
    for identifier in re.findall(r"(?<!\w)[A-Za-z][A-Za-z0-9_]+(?!\w)", text):
        asked.update(part for part in identifier.split("_") if part)
        if identifier.isalpha():
            asked.update(re.findall(r"[A-Z][a-z]{2,}(?![a-z])", identifier))
    asked.update(re.findall(r"[A-Za-z0-9]+(?:/[A-Za-z0-9]+)+\.py", text))
    asked.update(
        f"{word[: at + 3]}*" for word in re.findall(r"[^\W_]{3,}", text) for at in range(len(word) - 2)
    )
    for run in re.findall(r"[\u3040-\u30ff\u4e00-\u9fff]+", text):
        asked.update(run[start:end] for start in range(len(run)) for end in range(start + 1, len(run) + 1))
    for sha in re.findall(r"(?<![A-Za-z0-9_])[0-9a-f]{40}(?![A-Za-z0-9_])", text):
        asked.update((sha[:7], sha[:12], sha.upper()))
    asked.update(
        word
        for word in ("Crème", "creme", "NAÏVE", "κοσμος", "strasse", "istanbul", "🚀", "✅")
        if word in text
    )
    return asked


@given(
    st.lists(texts, min_size=1, max_size=4), st.sampled_from(("content", "thinking", "arguments", "output"))
)
def test_what_stands_in_a_message_finds_that_message(said: list[str], where: str) -> None:
    messages = [a_message(f"m{at}", text, where) for at, text in enumerate(said)]
    with tempfile.TemporaryDirectory() as folder, SearchIndex(Path(folder) / "index.sqlite3") as index:
        index.put(THREAD, [fields_of(message) for message in messages])
        for message, text in zip(messages, said, strict=True):
            for asked in asked_of(text):
                assert message.id in index.messages_in(THREAD.id, asked, now=NOW), (asked, text)


def a_message(name: str, text: str, where: str) -> Message:
    if where == "arguments":
        call = ToolCall(id="1", tool_name="Bash", arguments_json={"command": [text], "quiet": True})
        return Message(id=name, role="assistant", tool_calls=(call,), ts="2026-11-30T00:00:00Z")
    if where == "thinking":
        return Message(id=name, role="assistant", thinking=text, content="so", ts="2026-11-30T00:00:00Z")
    role = "tool" if where == "output" else "user"
    return Message(id=name, role=role, content=text, ts="2026-11-30T00:00:00Z")
