"""Handoffs as tables, as Markdown and as pages: nothing of them is lost, and nothing of them is taken for a mark."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from raddle.actions.presenting.document import file_name
from raddle.actions.presenting.marks import bullets, rows, words
from raddle.actions.presenting.pictures import LARGEST, NoPicture, Picture, look_at
from raddle.actions.presenting.report import REPORT, report_of
from raddle.actions.presenting.site import site_of
from raddle.actions.presenting.tables import Table, tables_of
from raddle.actions.presenting.texts import shown_line, shown_text, value_text
from raddle.model.memory.yaml_text import parse_yaml
from tests.builders_presenting import a_document, a_figure, a_part, chunk, jpeg, png

READER = MarkdownIt("commonmark").enable("table").enable("strikethrough")
TEXTS = st.text(
    st.one_of(st.sampled_from("*_`[]<>#-+|\\~$&!(){}=:.1 \n"), st.characters(exclude_categories=["Cs"])),
    max_size=40,
)


class TestTables:
    def test_plain_values_are_rows(self) -> None:
        (table,) = tables_of(
            {"files": 2100, "fast": True, "ratio": 0.30000000000000004, "who": None, "l": [1, "a"]}
        )
        assert table.header == ("Result", "Value")
        assert table.rows == (
            ("files", "2100"),
            ("fast", "yes"),
            ("ratio", "0.3"),
            ("who", "–"),
            ("l", "1, a"),
        )

    def test_a_mapping_of_mappings_is_one_table_with_a_column_for_each_name(self) -> None:
        (table,) = tables_of({"by size": {"small": {"ms": 1, "mb": 2}, "large": {"ms": 30, "gb": 1}}})
        assert table == Table(
            title="by size",
            header=("Name", "ms", "mb", "gb"),
            rows=(("small", "1", "2", ""), ("large", "30", "", "1")),
        )

    def test_a_list_of_mappings_and_a_list_of_lists_are_numbered_rows(self) -> None:
        records, grid = tables_of({"runs": [{"a": 1}, {"b": 2}], "grid": [[1, 2], [3]]})
        assert (records.header, records.rows) == (("No.", "a", "b"), (("1", "1", ""), ("2", "", "2")))
        assert (grid.header, grid.rows) == (("No.", "1", "2"), (("1", "1", "2"), ("2", "3", "")))

    def test_what_is_nested_deeper_has_a_table_of_its_own(self) -> None:
        tables = tables_of({"a": {"x": 1, "b": {"c": {"d": 2}}}})
        assert [(table.title, table.rows) for table in tables] == [
            ("a", (("x", "1"),)),
            ("a › b › c", (("d", "2"),)),
        ]

    @given(
        st.dictionaries(
            st.text("abc", min_size=1),
            st.recursive(
                st.integers() | st.booleans() | st.none() | st.text("xyz"),
                lambda inner: (
                    st.lists(inner, max_size=4)
                    | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4)
                ),
                max_leaves=30,
            ),
        )
    )
    def test_every_value_is_in_some_cell_and_none_as_program_code(self, results: dict[str, Any]) -> None:
        tables = tables_of(results)
        cells = [cell for table in tables for row in table.rows for cell in row]
        said = " ".join(cells)
        assert all(value_text(leaf) in said for leaf in _leaves(results))
        assert not re.search(r"[{}\[\]']|None|True|False", said)
        assert all(len(row) == len(table.header) for table in tables for row in table.rows)


def _leaves(value: Any) -> list[Any]:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if inner is None else [leaf for one in inner for leaf in _leaves(one)]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0"),
        (12.0, "12"),
        (1234567.891, "1234567.89"),
        (0.000123456789, "0.000123457"),
        (1e-9, "1e-09"),
        (3e20, "3e+20"),
    ],
)
def test_a_number_has_six_significant_digits_and_no_dead_ones(value: float, said: str) -> None:
    assert value_text(value) == said


def test_what_cannot_be_seen_is_not_shown() -> None:
    assert shown_line("a\x1b[2J\u202eb\x00\r\n c\ufeff\ufffe") == "a[2Jb c\ufffd"
    assert shown_text("one\r\n\n two \u2028three") == "one\ntwo\nthree"
    assert len(shown_line("a" + "\u0301" * 50)) == 5


class TestMarks:
    @given(TEXTS)
    def test_words_are_read_as_they_were_said(self, text: str) -> None:
        said = shown_line(text)
        assert _seen(READER.render(words(said))) == ([said] if said else [])

    @given(st.lists(TEXTS, min_size=1, max_size=4))
    def test_a_list_has_as_many_points_as_there_are_texts(self, texts: list[str]) -> None:
        said = [one for text in texts if (one := shown_text(text))]
        rendered = READER.render(bullets(said))
        assert rendered.count("<li>") == len(said)
        assert not re.search(r"<(?!/?(?:ul|li|p|br))", rendered)

    @given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
    def test_a_table_has_as_many_cells_as_it_should(self, body: list[tuple[str, str]]) -> None:
        said = [tuple(map(shown_text, row)) for row in body]
        rendered = READER.render(rows(("a|b", "*"), said))
        assert (rendered.count("<td"), rendered.count("<th")) == (
            2 * len(said),
            2 + bool(rendered.count("<thead>")),
        )
        assert not re.search(r"<(?!/?(?:table|thead|tbody|tr|th|td|br))", rendered)


def _seen(rendered: str) -> list[str]:
    """What a reader sees of one paragraph without any mark in it."""
    found = re.findall(r"<p>([^<]*)</p>", rendered)
    assert rendered.count("<") == 2 * len(found), rendered
    return [shown_line(html.unescape(one)) for one in found]


class TestPictures:
    def test_a_png_and_a_jpeg_are_pictures(self) -> None:
        seen = look_at(png(64, 40))
        assert isinstance(seen, Picture)
        assert (seen.ending, seen.width, seen.height) == ("png", 64, 40)
        assert isinstance(found := look_at(jpeg()), Picture)
        assert (found.ending, found.width, found.height) == ("jpg", 2, 1)

    @pytest.mark.parametrize("data", [png(), jpeg()], ids=["png", "jpeg"])
    def test_a_picture_that_is_cut_off_anywhere_is_none(self, data: bytes) -> None:
        assert all(isinstance(look_at(data[:end]), NoPicture) for end in range(len(data) - 1))

    def test_a_png_with_a_flipped_bit_is_damaged(self) -> None:
        data = bytearray(png())
        data[-20] ^= 1
        assert look_at(bytes(data)) == NoPicture(why="the picture is damaged")

    @pytest.mark.parametrize(
        "data", [b"", b"text", b"<svg/>", b"GIF89a", b"\xff\xd8", b"\x89PNG\r\n\x1a\n" + chunk(b"IEND", b"")]
    )
    def test_what_is_none_says_why(self, data: bytes) -> None:
        seen = look_at(data)
        assert isinstance(seen, NoPicture)
        assert seen.why

    def test_what_is_too_large_is_not_shown(self) -> None:
        assert isinstance(look_at(b"\xff\xd8" + bytes(LARGEST)), NoPicture)
        header = b"\x00\x01\x86\xa0\x00\x01\x86\xa0\x08\x02\x00\x00\x00"
        bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"x") + chunk(b"IEND", b"")
        assert look_at(bomb) == NoPicture(why="it has 100,000 × 100,000 pixels")


class TestReport:
    def test_it_says_all_that_was_handed_on(self) -> None:
        figure = a_figure("plot", png(), name="01-plot")
        part = a_part(
            "build",
            "Twice as fast",
            results={"files": 2},
            decisions=("Keep C",),
            questions=("ARM?",),
            artifacts=("wheel",),
            evidence=("T-1",),
            figures=(figure, a_figure("chart", b"<svg>")),
            published="2026-11-30T09:52:50Z",
            author="Ada",
        )
        made = report_of(a_document(part, a_part("test"), silent=("deploy",)))
        text = made[REPORT].decode()
        for said in (
            "Twice as fast",
            "| files | 2 |",
            "- Keep C",
            "- ARM?",
            "- wheel",
            "- T-1",
            "Published 2026-11-30 by Ada",
        ):
            assert said in text
        assert "![plot](figures/01-plot.png)" in text
        assert "*chart* is not shown here: it is an SVG" in text
        assert "| deploy | nothing handed on yet |" in text
        assert made["figures/01-plot.png"] == png()

    def test_a_site_has_a_page_for_each_phase_and_leads_to_all_of_them(self) -> None:
        parts = (a_part("a b/c", decisions=("d",)), a_part("日本", questions=("q",)), a_part("A B c"))
        tree = site_of(a_document(*parts, title="yes: no"))
        settings = parse_yaml(tree["site/mkdocs.yml"].decode(), "mkdocs.yml")
        assert settings["site_name"] == "yes: no"
        pages = [page for entry in settings["nav"] for page in entry.values()]
        assert pages == [
            "index.md",
            "01-a-b-c.md",
            "02.md",
            "03-a-b-c.md",
            "decisions.md",
            "open-questions.md",
        ]
        assert {f"site/docs/{page}" for page in pages} | {"site/mkdocs.yml"} == tree.keys()
        index = tree["site/docs/index.md"].decode()
        assert "[日本](02.md)" in index

    @given(TEXTS)
    def test_a_name_of_a_file_is_one_everywhere(self, text: str) -> None:
        assert re.fullmatch(r"07(-[a-z0-9]+)*", file_name(7, text))
