"""The examples on the page of the search language are true: in the index, and in the plain reading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.threads.query import FILTERS, FLAGS, parse
from raddle.model.threads.query_match import hits
from raddle.model.threads.search_fields import HeaderText, MessageText
from raddle.model.threads.summary import ThreadSummary

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "search-language.md"
THREAD = ThreadSummary(id="T-018e2b3c-4d5e-7f8a-9b0c-000000000001")


def examples() -> list[tuple[str, str, str]]:
    table = PAGE.read_text(encoding="utf-8").partition("## Examples")[2]
    return re.findall(r"^\| `(.+?)` \| (.+?) \| (.+?) \|$", table, re.MULTILINE)


def test_the_page_has_examples() -> None:
    assert len(examples()) > 10


@pytest.mark.parametrize(("query", "finds", "misses"), examples())
def test_an_example_is_true(query: str, finds: str, misses: str, tmp_path: Path) -> None:
    texts = [
        MessageText(id=name, order=1, role="user", texts=(said, "", "", "", ""))
        for name, said in (("finds", finds), ("misses", misses))
    ]
    assert hits(parse(query, now=0), HeaderText(), texts) == ["finds"]
    with SearchIndex(tmp_path / "index.sqlite3") as index:
        index.put(THREAD, texts)
        assert index.messages_in(THREAD.id, query) == ["finds"]


def test_every_filter_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for key in FILTERS:
        for value in FLAGS.get(key, ("",)):
            assert f"`{key}:{value}`" in page or (not value and f"`{key}:" in page), (key, value)
