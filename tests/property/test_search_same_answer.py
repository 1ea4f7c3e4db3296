"""The index finds what a plain reading of every text finds: over random threads, random queries, random edits."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.threads.query import parse
from raddle.model.threads.query_match import hits
from raddle.model.threads.search_fields import HeaderText, MessageText, cut_row, header_of
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import Source, ThreadSummary

NOW = 1_796_000_000_000_000
DAY = 86_400_000_000

ATOMS = (
    "alpha beta gamma the The getUserById get_user_by_id getuserbyid HTTPServer http2Server snake-kebab user-by"
    " src/auth.rs:42 auth.rs C++ x!=y --flag utf8 v2 deadbeefcafe a1b2c3d4 a1b2c3d4e5f6a7b8c9d0"
    " 018e2b3c-4d5e-7f8a 你好世界 世界 世 テスト ﾃｽﾄ 한국어 ภาษาไทย naïve NAIVE crème ✅ 🚀 ❤️ → ½ x² straße"
    " Straße СинийКит κόσμος foo_bar foobar foo.bar 日本語text text日本 ab abc abcd bcd d"
).split()
SEPARATORS = (" ", " ", " ", "\n", ", ", "-", "_", "/", ".", "", " != ", "\t", "\x00", "。")
FEATURES = ("feature/auth", "main", "fix-login", "get_user")

texts = st.lists(st.tuples(st.sampled_from(ATOMS), st.sampled_from(SEPARATORS)), max_size=8).map(
    lambda pairs: "".join(atom + separator for atom, separator in pairs)
)
some_text = st.one_of(st.just(""), texts)


@st.composite
def messages(draw: st.DrawFn, name: str) -> MessageText:
    role = draw(st.sampled_from(("user", "assistant", "tool", "system", "weird role")))
    fields = ["", "", "", "", ""]
    for field in draw(st.lists(st.integers(0, 4), max_size=3)):
        fields[field] = draw(some_text)
    known = draw(st.booleans()) or draw(st.booleans())
    return MessageText(
        id=name,
        order=NOW - draw(st.integers(0, 20)) * DAY if known else draw(st.integers(0, 5)),
        role=role,
        texts=(fields[0], fields[1], fields[2], fields[3], fields[4]),
        tool_names=tuple(
            draw(st.lists(st.sampled_from(("Bash", "Read", "mcp__git__log", "git")), max_size=2))
        ),
        is_error=draw(st.booleans()),
    )


@st.composite
def threads(draw: st.DrawFn, number: int) -> tuple[ThreadSummary, list[MessageText], set[str]]:
    branches = draw(st.lists(st.sampled_from(FEATURES), max_size=2))
    summary = ThreadSummary(
        id=f"T-018e2b3c-4d5e-7f8a-9b0c-{number:012x}",
        title=draw(some_text),
        last_activity_at=f"2026-11-{draw(st.integers(1, 9)):02d}T00:00:00Z",
        workspace_root=draw(st.sampled_from((None, "/home/me/beta", "/home/me/user-by/"))),
        git_branch=branches[0] if branches else None,
        git_branches=tuple(branches),
        git_remote_url=draw(
            st.sampled_from((None, "github.com/me/alpha", "git.example.org/team/sub/get_user"))
        ),
        git_commits=tuple(
            draw(st.lists(st.sampled_from(("a1b2c3d4e5f6a7b8c9d0", "deadbeefcafe0123")), max_size=2))
        ),
        source=draw(
            st.sampled_from(
                (None, Source(agent="claude-code", session_id="x"), Source(agent="codex", session_id="y"))
            )
        ),
        tags=tuple(draw(st.lists(st.sampled_from(("bug", "bug fix", "世界", "alpha")), max_size=2))),
        is_pinned=draw(st.booleans()),
        is_private=draw(st.booleans()),
        is_archived=draw(st.booleans()),
    )
    count = draw(st.integers(0, 5))
    said = [draw(messages(f"m{number}-{at}")) for at in range(count)]
    removed = {message.id for message in said if draw(st.integers(0, 4)) == 0}
    return summary, said, removed


@st.composite
def stores(draw: st.DrawFn) -> list[tuple[ThreadSummary, list[MessageText], set[str]]]:
    return [draw(threads(number)) for number in range(draw(st.integers(1, 4)))]


@st.composite
def terms(draw: st.DrawFn) -> str:
    sign = draw(st.sampled_from(("", "", "", "-")))
    kind = draw(st.integers(0, 9))
    atom = draw(st.sampled_from(ATOMS))
    if kind <= 3:
        return sign + atom
    if kind == 4:
        return sign + atom[: draw(st.integers(1, len(atom)))] + "*"
    if kind == 5:
        return f'{sign}"{draw(texts)}"'
    if kind == 6:
        text = draw(texts)
        start = draw(st.integers(0, max(len(text) - 1, 0)))
        return f'{sign}~"{text[start : start + draw(st.integers(1, 6))]}"'
    if kind == 7:
        return sign + draw(texts).replace(" ", "")
    return sign + draw(st.sampled_from(FILTERS))


FILTERS = (
    "repo:alpha repo:github.com/me repo:beta repo:user-by branch:main branch:feature branch:feat* tag:bug tag:世"
    " sha:a1b2 sha:dead,a1 role:user role:tool,system role:weird agent:claude agent:raddle agent:codex tool:bash"
    " tool:git tool:mcp* file:auth.rs file:src file:alpha before:5d after:5d after:2026-11-20 before:2026 is:pinned"
    " is:private is:archived is:removed has:error"
).split() + [
    'tag:"bug"',
    'tag:"bug fix"',
    'branch:"main"',
    'role:"weird role"',
    'tool:"git"',
    'repo:"beta"',
    'agent:"claude code"',
]

queries = st.lists(terms(), max_size=4).map(" ".join)


@contextlib.contextmanager
def an_index() -> Iterator[SearchIndex]:
    with tempfile.TemporaryDirectory() as folder, SearchIndex(Path(folder) / "index.sqlite3") as index:
        index.finish_rebuild()
        yield index


def found_by(index: SearchIndex, query: str) -> dict[str, list[str]]:
    """Thread id -> ids of its hits, by way of pages of two."""
    found: dict[str, list[str]] = {}
    cursor = ""
    while True:
        answer = index.search(query, limit=2, cursor=cursor, now=NOW)
        for hit in answer.hits:
            assert hit.thread.id not in found
            found[hit.thread.id] = sorted(index.messages_in(hit.thread.id, query, now=NOW))
            assert hit.matches == len(found[hit.thread.id])
            assert hit.message_id in found[hit.thread.id]
        cursor = answer.cursor
        if not cursor:
            assert answer.total_threads == len(found)
            return found


def found_by_reading(
    store: list[tuple[ThreadSummary, list[MessageText], set[str]]], query: str
) -> dict[str, list[str]]:
    asked = parse(query, now=NOW)
    read = {
        summary.id: sorted(hits(asked, header_of(summary), said, removed)) for summary, said, removed in store
    }
    return {thread_id: ids for thread_id, ids in read.items() if ids}


@settings(max_examples=150)
@given(stores(), st.lists(queries, min_size=1, max_size=12), st.booleans())
def test_the_index_finds_exactly_what_reading_everything_finds(
    store: list[tuple[ThreadSummary, list[MessageText], set[str]]], asked: list[str], in_bulk: bool
) -> None:
    with an_index() as index:
        if in_bulk:
            cutter = Cutter()
            with index.bulk() as bulk:
                for summary, said, _ in store:
                    bulk.add(summary.id, [cut_row(message, cutter) for message in said])
                    bulk.finish(summary.id, summary)
        for summary, said, removed in store:
            index.put(summary, said, removed)
        for query in asked:
            assert found_by(index, query) == found_by_reading(store, query), query
        assert index.verify() == []
