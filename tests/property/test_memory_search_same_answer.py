"""The index of a store finds what a plain reading of every file finds, whatever was written in between."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from raddle.actions.memory.memory_search import KINDS, document_of, is_hit
from raddle.adapters.memory_repo.shelf import Shelf
from raddle.adapters.memory_repo.shelf_database import Database
from raddle.model.memory.entry import ContextEntry, Provenance, encode_entry
from raddle.model.memory.handoff import Handoff, encode_handoff
from raddle.model.memory.memory_text import FrontMatter, MemoryText, format_memory
from raddle.model.threads.query import parse
from tests.builders import SECOND, WoundClock
from tests.builders_memories import RUN, lay
from tests.property.test_search_same_answer import ATOMS, DAY, NOW, queries, some_text, texts

PHASE = f"runs/{RUN}/phases/build"
KEYS = ("a.md", "getUserById", "notes/世界.md", "alpha/beta", "tagged", "x y", "README")
TAGS = ("bug", "bug fix", "世界", "alpha", "getUserById")

tags = st.lists(st.sampled_from(TAGS), max_size=2).map(tuple)
times = st.integers(0, 20).map(lambda days: NOW - days * DAY)


@st.composite
def memories(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from((b"", b"\xff\xfe", b"---\n: [\n---\nbeta", b"a\0b")))
    said = FrontMatter(
        description=draw(st.sampled_from(("", "alpha beta", "the user"))),
        tags=draw(tags),
        updated=draw(st.sampled_from(("", "2026-11-20T00:00:00Z", "2026-11-29T00:00:00Z", "soon"))),
    )
    return format_memory(MemoryText(front_matter=said, body=draw(some_text))).encode()


@st.composite
def entries(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        return b""
    return encode_entry(
        ContextEntry(
            entry_id="01M8PZKM3QH82B3EHB38JW5D7M",
            run_id=RUN,
            phase="build",
            type="note",
            ts=draw(st.sampled_from(("", "2026-11-28T00:00:00Z"))),
            provenance=Provenance(node_id="n"),
            payload={
                draw(st.sampled_from(ATOMS)): draw(texts),
                "nested": {"beta": [draw(some_text), 42, True]},
            },
            tags=draw(tags),
        )
    )


@st.composite
def handoffs(draw: st.DrawFn) -> bytes:
    return encode_handoff(
        Handoff(
            from_phase="build",
            run_id=RUN,
            headline=draw(some_text),
            key_results={draw(st.sampled_from(ATOMS)): 1.5},
            decisions=(draw(some_text),),
            published_ts=draw(st.sampled_from(("", "2026-11-28T00:00:00Z"))),
        )
    )


@st.composite
def files(draw: st.DrawFn) -> dict[str, bytes]:
    """Some files of a store, to be written over what is there."""
    found: dict[str, bytes] = {}
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=4)):
        found[f"memory/{draw(st.sampled_from(('team', 'alpha')))}/{key}"] = draw(memories())
    if draw(st.booleans()):
        found[f"{PHASE}/summary.md"] = draw(some_text).encode()
    if draw(st.booleans()):
        found[f"{PHASE}/handoff.json"] = draw(handoffs())
    for number in range(draw(st.integers(0, 3))):
        found[f"{PHASE}/entries/000{number}-01M8PZKM3QH82B3EHB38JW5D7{number}.json"] = draw(entries())
    return found


def read_plainly(root: Path, query: str) -> set[str]:
    """The paths that a plain reading finds."""
    asked = parse(query, now=NOW)
    found = set()
    for file in root.rglob("*"):
        if file.is_file():
            path = file.relative_to(root).as_posix()
            document = document_of(path, file.read_bytes(), file.stat().st_mtime_ns // 1000)
            if document is not None and is_hit(asked, document):
                found.add(path)
    return found


@given(st.lists(files(), min_size=1, max_size=3), st.lists(queries, min_size=1, max_size=8), st.booleans())
def test_the_index_of_a_store_finds_exactly_what_reading_every_file_finds(
    written: list[dict[str, bytes]], asked: list[str], removes: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, file = Path(folder, "store"), Path(folder, "index.sqlite3")
        root.mkdir()
        clock = WoundClock(NOW)
        with Shelf(file, root, clock=clock) as shelf:
            for some in written:
                clock.wind(3 * SECOND)
                lay(root, some)
                for query in asked:
                    assert shelf.found(parse(query, now=NOW)) == read_plainly(root, query), query
            if removes:
                for path in written[0]:
                    (root / path).unlink()
            for query in asked:
                found = read_plainly(root, query)
                assert shelf.found(parse(query, now=NOW)) == found, query
                answer = shelf.search(parse(query, now=NOW), limit=100)
                assert {hit.path for hit in answer.hits} == found
                assert answer.total == len(found)


@example("x" * 20_000)
@example('"' * 500 + "~" * 500 + "-" * 500 + " OR ( ) * : ^ {a} NEAR(a b)")
@given(st.text(max_size=200))
def test_any_text_is_a_query_of_the_memory(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "store")
        lay(root, {"memory/team/a": "x"})
        with Shelf(Path(folder, "index.sqlite3"), root) as shelf:
            assert shelf.search(parse(text, now=NOW), limit=5).looked_at == 1


def test_a_fragment_that_many_words_have_is_looked_for_in_the_texts(tmp_path: Path) -> None:
    root = tmp_path / "store"
    lay(root, {f"memory/team/{at}": f"word{at}x getWord{at}Y" for at in range(1_200)})
    with Shelf(tmp_path / "index.sqlite3", root, clock=lambda: NOW) as shelf:
        for query in ("~word", "~ord1", "-~word", "~word -~word11"):
            assert shelf.found(parse(query, now=NOW)) == read_plainly(root, query), query


def test_every_kind_of_document_is_listed_once() -> None:
    assert sorted(KINDS) == sorted(set(KINDS))


def test_an_index_of_another_format_is_made_anew(tmp_path: Path) -> None:
    root = tmp_path / "store"
    lay(root, {"memory/team/a": "alpha"})
    with Shelf(tmp_path / "index.sqlite3", root) as shelf:
        assert shelf.memories()
    database = Database(tmp_path / "index.sqlite3")
    database.sql.execute("PRAGMA user_version = 1")
    database.close()
    with Shelf(tmp_path / "index.sqlite3", root) as shelf:
        assert [line.name for line in shelf.memories()] == ["team/a"]
