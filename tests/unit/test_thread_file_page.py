"""docs/formats/thread-file.md is what the code does: its examples are decoded, its tables are compared."""

from __future__ import annotations

import re

import pytest

from raddle.model.threads.adopt import first_sight
from raddle.model.threads.codec import Decoded, decode_file, encode_thread
from raddle.model.threads.fields import FAMILIES, FIELDS, Field
from raddle.model.threads.message import Message
from raddle.model.threads.plain_fields import TOP_LEVEL
from raddle.model.threads.quorum import decode_quorum, encode_quorum
from tests.builders import texts
from tests.seal import CHECKOUT

PAGE = (CHECKOUT / "docs" / "formats" / "thread-file.md").read_text(encoding="utf-8")
EXAMPLES: dict[str, str] = dict(re.findall(r"<!-- example: (\w+) -->\n```json\n(.*?)\n```", PAGE, re.DOTALL))


def example(name: str) -> bytes:
    return EXAMPLES[name].encode()


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    section = PAGE.split(f"{heading}\n", 1)[1].split("\n#", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(cells: list[str]) -> set[str]:
    return {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}


def test_every_example_is_tried_here() -> None:
    assert set(EXAMPLES) == {"small", "full", "loom", "quorum"}


@pytest.mark.parametrize("name", ["small", "full"])
def test_what_raddle_writes_reads_back_to_the_byte(name: str) -> None:
    decoded: Decoded = decode_file(example(name))
    assert (decoded.is_as_written, decoded.problems) == (True, ())
    assert encode_thread(decoded.thread()) == example(name) + b"\n"


def test_the_fuller_one_shows_what_the_page_says() -> None:
    thread = decode_file(example("full")).thread()
    assert [row.length for row in thread.tree.branches()] == [3, 1]
    assert [conflict.path for conflict in thread.conflicts] == ["visibility"]
    assert thread.visibility == "private"
    assert texts(thread.tree.shown())[-1] == "Rather log them"
    assert [job.job_id for job in thread.pending_jobs] == ["job-42"]
    assert thread.shows("x/reviewed_by") == "Grace"


def test_looms_file_is_read_as_the_page_says() -> None:
    decoded = decode_file(example("loom"))
    thread = first_sight(decoded)
    one, two = thread.messages
    assert not decoded.is_stamped
    assert (two.parent_id, thread.tree.branch_of(two.id)) == (one.id, one.id)
    assert (thread.visibility, thread.shows("client_version")) == ("organization", "0.1.0")
    assert [job.parent_id for job in thread.pending_jobs] == [two.id]
    assert list(thread.drafts.values()) == [{two.id: "and a test"}]
    assert thread.shows("x/metadata/extra/ticket") == 7


def test_quorums_file_comes_back_to_the_byte() -> None:
    assert encode_quorum(decode_quorum(example("quorum")).thread()) == example("quorum")


def test_every_field_of_a_thread_stands_in_its_table() -> None:
    named = names([row[0] for row in rows("## Fields of the thread")])
    assert TOP_LEVEL - {"loom_version", "pending_job", "draft", "conversation"} == named - {
        "conversation.messages"
    }


def test_every_field_of_a_message_stands_in_its_table() -> None:
    assert names([row[0] for row in rows("## Fields of a message")]) == set(Message.__struct_fields__) - {
        "unknown"
    }


def test_the_registers_are_those_of_the_code() -> None:
    told = {
        row[0].strip("`").partition("/")[0]: (row[3] == "yes", row[4] == "yes", row[2])
        for row in rows("### Registers")
    }
    known: dict[str, Field] = FIELDS | FAMILIES
    assert {name: (field.is_edit, field.asks) for name, field in known.items()} == {
        name: flags[:2] for name, flags in told.items()
    }
    plain = {name: shows for name, (_, _, shows) in told.items() if shows in ("latest", "first")}
    assert {name: known[name].shows.__name__ for name in plain} == plain
