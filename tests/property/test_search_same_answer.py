"""The index finds what a plain reading of every text finds: over random threads, random queries, random edits."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raddle.adapters.local_store import search_clauses, search_lookup, search_ranking, search_rows
from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.threads.query import parse
from raddle.model.threads.query_match import hits
from raddle.model.threads.search_answer import Hit
from raddle.model.threads.search_fields import MessageText, cut_row, header_of
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
NAME_FILTERS = (
    "repo:alpha repo:github.com/me repo:beta repo:user-by branch:main branch:feature branch:feat* tag:bug tag:世"
    " sha:a1b2 sha:dead,a1 role:user role:tool,system role:weird agent:claude agent:raddle agent:codex tool:bash"
    " tool:git tool:mcp* file:auth.rs file:src file:alpha"
).split()
OTHER_FILTERS = (
    "before:5d after:5d after:2026-11-20 before:2026 is:pinned is:private is:archived is:removed has:error"
).split()
WHOLE_NAMES = (
    'tag:"bug"',
    'tag:"bug fix"',
    'branch:"main"',
    'role:"weird role"',
    'tool:"git"',
    'repo:"beta"',
)

Stored = tuple[ThreadSummary, list[MessageText], set[str]]
"""A thread: its summary, its messages, the ids of those that are removed."""

texts = st.lists(st.tuples(st.sampled_from(ATOMS), st.sampled_from(SEPARATORS)), max_size=8).map(
    lambda pairs: "".join(atom + separator for atom, separator in pairs)
)
some_text = st.one_of(st.just(""), texts)


@st.composite
def messages(draw: st.DrawFn, name: str) -> MessageText:
    fields = ["", "", "", "", ""]
    for field in draw(st.lists(st.integers(0, 4), max_size=3)):
        fields[field] = draw(some_text)
    has_time = draw(st.integers(0, 3)) > 0
    return MessageText(
        id=name,
        order=NOW - draw(st.integers(0, 20)) * DAY if has_time else draw(st.integers(0, 5)),
        role=draw(st.sampled_from(("user", "assistant", "tool", "system", "weird role"))),
        texts=(fields[0], fields[1], fields[2], fields[3], fields[4]),
        tool_names=tuple(
            draw(st.lists(st.sampled_from(("Bash", "Read", "mcp__git__log", "git")), max_size=2))
        ),
        is_error=draw(st.booleans()),
    )


@st.composite
def threads(draw: st.DrawFn, number: int) -> Stored:
    branches = draw(st.lists(st.sampled_from(("feature/auth", "main", "fix-login", "get_user")), max_size=2))
    agent = draw(st.sampled_from(("", "claude-code", "codex")))
    shas = st.sampled_from(("a1b2c3d4e5f6a7b8c9d0", "deadbeefcafe0123"))
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
        git_commits=tuple(draw(st.lists(shas, max_size=2))),
        source=Source(agent=agent, session_id="1") if agent else None,
        tags=tuple(draw(st.lists(st.sampled_from(("bug", "bug fix", "世界", "alpha")), max_size=2))),
        is_pinned=draw(st.booleans()),
        is_private=draw(st.booleans()),
        is_archived=draw(st.booleans()),
    )
    said = [draw(messages(f"m{number}-{at}")) for at in range(draw(st.integers(0, 5)))]
    return summary, said, {message.id for message in said if draw(st.integers(0, 4)) == 0}


@st.composite
def stores(draw: st.DrawFn) -> list[Stored]:
    return [draw(threads(number)) for number in range(draw(st.integers(1, 4)))]


@st.composite
def terms(draw: st.DrawFn) -> str:
    sign = draw(st.sampled_from(("", "", "", "-")))
    kind = draw(st.integers(0, 9))
    if kind <= 3:
        return sign + draw(st.sampled_from(ATOMS))
    if kind == 4:
        atom = draw(st.sampled_from(ATOMS))
        return f"{sign}{atom[: draw(st.integers(1, len(atom)))]}*"
    if kind == 5:
        return f'{sign}"{draw(texts)}"'
    if kind == 6:
        text = draw(texts)
        start = draw(st.integers(0, max(len(text) - 1, 0)))
        return f'{sign}~"{text[start : start + draw(st.integers(1, 6))]}"'
    if kind == 7:
        return sign + draw(texts).replace(" ", "")
    return sign + draw(st.sampled_from((*NAME_FILTERS, *OTHER_FILTERS, *WHOLE_NAMES)))


queries = st.lists(terms(), max_size=4).map(" ".join)
some_queries = st.lists(queries, min_size=1, max_size=8)


@contextlib.contextmanager
def an_index(store: list[Stored] = [], *, in_bulk: bool = False) -> Iterator[SearchIndex]:  # noqa: B006  only read
    with tempfile.TemporaryDirectory() as folder, SearchIndex(Path(folder) / "index.sqlite3") as index:
        if in_bulk:
            cutter = Cutter()
            with index.bulk() as bulk:
                for summary, said, removed in store:
                    bulk.add(summary.id, [cut_row(message, cutter) for message in said], removed)
                    bulk.finish(summary.id, summary)
        else:
            for summary, said, removed in store:
                index.put(summary, said, removed)
        index.finish_rebuild()
        yield index


def all_hits(index: SearchIndex, query: str) -> list[Hit]:
    """Every hit, by way of pages of two."""
    found: list[Hit] = []
    cursor = ""
    while True:
        answer = index.search(query, limit=2, cursor=cursor, now=NOW)
        found += answer.hits
        cursor = answer.cursor
        if not cursor:
            assert answer.total_threads == len(found)
            return found


def found_by(index: SearchIndex, query: str) -> dict[str, list[str]]:
    """Thread id -> ids of its hits."""
    found: dict[str, list[str]] = {}
    for hit in all_hits(index, query):
        ids = sorted(index.messages_in(hit.thread.id, query, now=NOW))
        assert hit.thread.id not in found
        assert hit.matches == len(ids)
        assert hit.message_id in ids
        found[hit.thread.id] = ids
    return found


def found_by_reading(store: list[Stored], query: str) -> dict[str, list[str]]:
    asked = parse(query, now=NOW)
    read = {
        summary.id: sorted(hits(asked, header_of(summary), said, removed)) for summary, said, removed in store
    }
    return {thread_id: ids for thread_id, ids in read.items() if ids}


@given(stores(), some_queries, st.booleans())
def test_the_index_finds_exactly_what_reading_everything_finds(
    store: list[Stored], asked: list[str], in_bulk: bool
) -> None:
    with an_index(store, in_bulk=in_bulk) as index:
        for query in asked:
            assert found_by(index, query) == found_by_reading(store, query), query
        assert index.verify() == []


prefixes = st.builds(
    lambda atom, sign: f"{sign}{atom[:2]}*", st.sampled_from(ATOMS), st.sampled_from(["", "", "-"])
)


@given(
    stores(),
    st.lists(st.lists(prefixes | terms(), min_size=2, max_size=5).map(" ".join), min_size=1, max_size=4),
    st.sampled_from([0, search_rows.FEW_SLOTS]),
)
def test_it_finds_the_same_where_many_terms_stand_in_headers_and_texts(
    store: list[Stored], asked: list[str], few_slots: int
) -> None:
    with pytest.MonkeyPatch.context() as patched, an_index(store) as index:
        patched.setattr(search_clauses, "_FEW_COSTLY", 0)
        patched.setattr(search_lookup, "FEW_SLOTS", few_slots)
        for query in asked:
            assert found_by(index, query) == found_by_reading(store, query), query


@given(stores(), some_queries)
def test_it_finds_the_same_where_hits_are_too_many_to_list(store: list[Stored], asked: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patched, an_index(store) as index:
        patched.setattr(search_rows, "MOST_LISTED", 0)
        patched.setattr(search_lookup, "FEW_SLOTS", 0)
        patched.setattr(search_ranking, "SCORED", 2)
        patched.setattr(search_lookup, "SCORED", 2)
        patched.setattr(search_ranking, "_THREADS_AT_ONCE", 1)
        patched.setattr(search_clauses, "_MANY_GROUPS", 0)
        patched.setattr(search_clauses, "_FEW_PREFIX_TERMS", 0)
        for query in asked:
            assert found_by(index, query) == found_by_reading(store, query), query


Edit = tuple[str, int, Stored]


@st.composite
def edits(draw: st.DrawFn) -> list[Edit]:
    """What happens to an index: threads put, extended by some of their messages, taken out."""
    return [
        (
            draw(st.sampled_from(("put", "extend", "remove"))),
            draw(st.integers(0, 5)),
            draw(threads(draw(st.integers(0, 2)))),
        )
        for _ in range(draw(st.integers(1, 6)))
    ]


def apply(index: SearchIndex, held: dict[str, Stored], edit: Edit) -> None:
    verb, share, (summary, said, removed) = edit
    if verb == "remove":
        index.remove(summary.id)
        held.pop(summary.id, None)
    elif verb == "put" or summary.id not in held:
        index.put(summary, said, removed)
        held[summary.id] = (summary, said, removed)
    else:
        some = said[share:]
        index.extend(summary, some, removed)
        kept = {message.id: message for message in (*held[summary.id][1], *some)}
        held[summary.id] = (summary, list(kept.values()), removed)


@given(edits(), some_queries)
def test_an_index_that_was_kept_up_answers_like_one_made_anew(changes: list[Edit], asked: list[str]) -> None:
    held: dict[str, Stored] = {}
    with an_index() as index:
        for change in changes:
            apply(index, held, change)
        assert index.verify() == []
        with an_index(list(held.values())) as fresh:
            for query in asked:
                assert all_hits(index, query) == all_hits(fresh, query), query
                assert found_by(index, query) == found_by_reading(list(held.values()), query), query


@given(edits())
def test_taking_every_thread_out_leaves_not_a_word(changes: list[Edit]) -> None:
    held: dict[str, Stored] = {}
    with an_index() as index:
        for change in changes:
            apply(index, held, change)
        for thread_id in held:
            index.remove(thread_id)
        assert index.verify() == []
        assert index.ids() == set()
        sql = index._database.sql
        for table in ("word_terms", "header_terms", "threads", "slots", "marks", "blocks"):
            assert not sql.execute(f"SELECT 1 FROM {table}").fetchall(), table  # noqa: S608  names from the line above


@example("x" * 20_000)
@example('"' * 500 + "~" * 500 + "-" * 500 + " OR ( ) * : ^ {a} NEAR(a b)")
@example("".join(f'word{at} "phrase {at} of" -not{at} ' for at in range(400)))
@given(st.text(max_size=200))
def test_any_text_is_a_query(text: str) -> None:
    with an_index() as index:
        index.put(
            ThreadSummary(id="T-018e2b3c-4d5e-7f8a-9b0c-000000000001"),
            [MessageText(id="m", order=1, role="user", texts=("x", "", "", "", ""))],
        )
        answer = index.search(text, now=NOW)
        assert answer.scope.query == parse(text, now=NOW).text
        index.list(text, now=NOW)
