"""docs/formats/memory-repo.md is what the code does: its examples are decoded, its tables are compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from raddle.model.memory.artifact import Artifact, blob_uri, decode_index, encode_index
from raddle.model.memory.entry import ENTRY_TYPES, ContextEntry, Provenance, decode_entry, encode_entry
from raddle.model.memory.handoff import Evidence, Handoff, decode_handoff, encode_handoff
from raddle.model.memory.marker import StorePlace, decode_marker, encode_marker
from raddle.model.memory.memory_text import FrontMatter, format_memory, parse_memory
from raddle.model.memory.names import LONGEST_NAME
from raddle.model.memory.project import Project, decode_project, encode_project
from raddle.model.memory.repo_layout import (
    DEEPEST_KEY,
    KEPT_FOLDERS,
    LONGEST_KEY,
    LONGEST_PHASE,
    Place,
    place_of,
)
from raddle.model.memory.run import PHASE_STATUSES, RUN_STATUSES, Run, Stint, decode_run, encode_run
from raddle.model.memory.yaml_text import DEEPEST
from tests.seal import CHECKOUT

PAGE = (CHECKOUT / "docs" / "formats" / "memory-repo.md").read_text(encoding="utf-8")
EXAMPLES: dict[str, str] = dict(re.findall(r"<!-- example: (\w+) -->\n```\w+\n(.*?\n)```", PAGE, re.DOTALL))
CODECS: dict[str, tuple[Callable[[bytes], Any], Callable[[Any], bytes]]] = {
    "project": (decode_project, encode_project),
    "run": (decode_run, encode_run),
    "entry": (decode_entry, encode_entry),
    "index": (decode_index, encode_index),
    "handoff": (decode_handoff, encode_handoff),
    "marker": (decode_marker, encode_marker),
    "memory": (lambda data: parse_memory(data.decode()), lambda memory: format_memory(memory).encode()),
}
KNOWN_ONCE = {"schema_version", "unknown"}


def section(heading: str) -> str:
    return PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def first_cells(heading: str) -> set[str]:
    """The names in the first column of the first table under a heading."""
    lines = [line for line in section(heading).splitlines() if line.startswith("| `")]
    return {name for line in lines for name in re.findall(r"`([^`]+)`", line.split("|")[1])}


def fields(kind: type[msgspec.Struct]) -> set[str]:
    return set(kind.__struct_fields__) - KNOWN_ONCE


def test_every_example_is_tried_here() -> None:
    assert EXAMPLES.keys() == CODECS.keys()


@pytest.mark.parametrize("kind", CODECS)
def test_what_raddle_writes_reads_back_to_the_byte(kind: str) -> None:
    decode, encode = CODECS[kind]
    value = decode(EXAMPLES[kind].encode())
    assert encode(value) == EXAMPLES[kind].encode()
    assert not getattr(value, "unknown", {})


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("The project", Project),
        ("A run", Run),
        ("An entry", ContextEntry),
        ("Pointers to artifacts", Artifact),
        ("A handoff", Handoff),
        ("The marker", StorePlace),
    ],
)
def test_every_field_stands_in_its_table(heading: str, kind: type[msgspec.Struct]) -> None:
    assert first_cells(heading) == fields(kind)


@pytest.mark.parametrize(
    ("heading", "kind"),
    [("A run", Stint), ("An entry", Provenance), ("A handoff", Evidence), ("A memory", FrontMatter)],
)
def test_every_field_of_a_part_is_named(heading: str, kind: type[msgspec.Struct]) -> None:
    text = section(heading)
    assert [name for name in fields(kind) if f"`{name}`" not in text and f"{name}:" not in text] == []


def test_the_words_of_a_status_stand_in_their_order() -> None:
    for words, heading in ((RUN_STATUSES, "A run"), (PHASE_STATUSES, "A run"), (ENTRY_TYPES, "An entry")):
        assert ", ".join(f"`{word}`" for word in words) in section(heading)


def test_every_path_of_the_table_is_known() -> None:
    run, ulid = "01M8PZKM3KMAB0SYRHJ485PAMY", "01M8PZKM3QH82B3EHB38JW5D7M"
    filled = {
        "<run>": run,
        "<phase>": "build",
        "<seq>": "0001",
        "<ULID>": ulid,
        "<namespace>": "n",
        "<key>": "k",
    }
    kinds = set()
    for path in first_cells("What stands where") - {".raddle.yaml"}:
        for word, value in filled.items():
            path = path.replace(word, value)
        place: Place = place_of(
            path.replace("<node>", "node-1").replace("….", "memory/n/k.").replace("…", "x.txt")
        )
        kinds.add(place.kind)
    assert kinds == {
        "project",
        "attributes",
        "run",
        "index",
        "entry",
        "artifact",
        "summary",
        "handoff",
        "memory",
        "conflict",
    }
    assert all(f"`{path}`" in PAGE for path in KEPT_FOLDERS)


def test_the_numbers_of_the_page_are_the_codes() -> None:
    assert f"{LONGEST_NAME} bytes (a phase: {LONGEST_PHASE})" in " ".join(PAGE.split())
    assert f"A key has {DEEPEST_KEY} parts and {LONGEST_KEY} bytes at most" in " ".join(PAGE.split())
    assert f"more than {DEEPEST} levels" in " ".join(PAGE.split())


def test_a_blob_has_the_address_that_the_page_gives() -> None:
    model = decode_index(EXAMPLES["index"].encode()).artifacts["model"]
    assert blob_uri("objects", model.sha256) == model.uri
    assert decode_project(EXAMPLES["project"].encode()).blobs.keys() == {"objects"}
