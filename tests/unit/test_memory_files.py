"""A store's files: the peer's bytes come back as they were, unknown fields survive at every level, three errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.errors import BrokenFormat, FormatError, InvalidInput, NewerFormat, OlderFormat
from raddle.model.memory.artifact import (
    blob_uri,
    decode_index,
    encode_index,
    parse_blob_uri,
    unread_reason,
)
from raddle.model.memory.entry import ContextEntry, Provenance, decode_entry, encode_entry
from raddle.model.memory.handoff import decode_handoff, encode_handoff
from raddle.model.memory.marker import decode_marker, encode_marker
from raddle.model.memory.project import decode_project, encode_project
from raddle.model.memory.run import decode_run, encode_run
from raddle.model.three_way import same
from tests.unit.memory_files import ENTRY, FILES, HANDOFF, INDEX, MARKER, PROJECT, RUN

Decode = Callable[[bytes], Any]

CODECS: dict[str, tuple[Decode, Callable[[Any], bytes]]] = {
    "project": (decode_project, encode_project),
    "run": (decode_run, encode_run),
    "entry": (decode_entry, encode_entry),
    "index": (decode_index, encode_index),
    "handoff": (decode_handoff, encode_handoff),
    "marker": (decode_marker, encode_marker),
}


@pytest.mark.parametrize("kind", CODECS)
def test_what_the_peer_wrote_comes_back_to_the_byte(kind: str) -> None:
    decode, encode = CODECS[kind]
    assert encode(decode(FILES[kind].encode())).decode().rstrip("\n") == FILES[kind].rstrip("\n")


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize(
    ("version", "error"),
    [
        ("2", NewerFormat),
        ("0", OlderFormat),
        ("-1", OlderFormat),
        ('"x"', BrokenFormat),
        ("true", BrokenFormat),
    ],
)
def test_another_format_is_told_apart(kind: str, version: str, error: type[FormatError]) -> None:
    text = FILES[kind].replace("schema_version: 1", f"schema_version: {version}", 1)
    text = text.replace('"schema_version": 1', f'"schema_version": {version}', 1)
    with pytest.raises(error):
        CODECS[kind][0](text.encode())


@pytest.mark.parametrize("kind", CODECS)
def test_a_file_from_the_future_is_known_as_such_whatever_else_is_in_it(kind: str) -> None:
    for text in (
        '{"schema_version": 3}',
        '{"schema_version": 3, "phases": 5, "nodes": {}, "artifacts": [], "store": 1}',
    ):
        with pytest.raises(NewerFormat):
            CODECS[kind][0](text.encode())


@pytest.mark.parametrize("kind", CODECS)
def test_a_file_without_a_number_has_the_first_format(kind: str) -> None:
    text = FILES[kind].replace("schema_version: 1\n", "", 1).replace('  "schema_version": 1,\n', "", 1)
    assert CODECS[kind][0](text.encode()).schema_version == 1


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize(
    "data", [b"", b"null", b"[]", b"5", b"\xff\xfe", b"{", b"{}", b"\x00", b"a: [", b'"x"', b"[" * 5_000]
)
def test_damaged_bytes_are_broken_and_nothing_else(kind: str, data: bytes) -> None:
    with pytest.raises(BrokenFormat):
        CODECS[kind][0](data)


@pytest.mark.parametrize("kind", CODECS)
@given(cut=st.integers(0, 2_000), junk=st.binary(max_size=6))
def test_a_torn_file_is_read_or_broken(kind: str, cut: int, junk: bytes) -> None:
    data = FILES[kind].encode()
    torn = data[: cut % len(data)] + junk + data[cut % len(data) :][len(junk) :]
    decode, encode = CODECS[kind]
    try:
        value = decode(torn)
    except (FormatError, InvalidInput):
        return
    assert same(msgspec.to_builtins(decode(encode(value))), msgspec.to_builtins(value))


def test_unknown_fields_survive_a_rewrite_at_every_level() -> None:
    project = decode_project((PROJECT + "owner: {team: [a, b]}\n").encode())
    changed = msgspec.structs.replace(project, name="New")
    assert b"owner: {team: [a, b]}" in encode_project(changed, (PROJECT + "owner: {team: [a, b]}\n").encode())
    assert decode_project(encode_project(changed)).unknown == {"owner": {"team": ["a", "b"]}}

    run = decode_run(RUN.replace("  left: null\n", "  left: null\n  gpu: {count: 2}\n", 1).encode())
    assert decode_run(encode_run(msgspec.structs.replace(run, status="done"))).nodes[0].unknown == {
        "gpu": {"count": 2}
    }

    index = decode_index(INDEX.replace('"kind"', '"license": "MIT",\n      "kind"').encode())
    assert '"license": "MIT"' in encode_index(msgspec.structs.replace(index, unknown={"more": 1})).decode()
    assert decode_index(encode_index(msgspec.structs.replace(index, unknown={"more": 1}))).unknown == {
        "more": 1
    }

    entry = decode_entry(ENTRY.replace('"host"', '"pid": 7,\n    "host"').encode())
    assert entry.provenance.unknown == {"pid": 7}
    assert decode_entry(encode_entry(entry)) == entry

    handoff = decode_handoff(
        HANDOFF.replace('"headline"', '"evidence": [{"thread_id": "T-1", "page": 2}],\n  "headline"').encode()
    )
    assert handoff.evidence[0].unknown == {"page": 2}
    assert decode_handoff(encode_handoff(handoff)) == handoff

    marker = decode_marker(MARKER.replace("  mode", "  depth: 1\n  mode").encode())
    assert marker.store.unknown == {"depth": 1}
    assert decode_marker(encode_marker(marker)) == marker


def test_an_optional_field_of_another_type_is_kept_and_costs_nothing_else() -> None:
    project = decode_project(PROJECT.replace("name: null", "name: [1, 2]").encode())
    assert (project.name, project.unknown) == (None, {"name": [1, 2]})
    assert b"name:\n- 1\n- 2\n" in encode_project(project)
    assert b"name: New\n" in encode_project(msgspec.structs.replace(project, name="New"))


def test_what_publish_says_is_understood_or_the_file_is_broken() -> None:
    assert decode_project(PROJECT.replace("publish: null", "publish: no").encode()).publish is False
    for word in ("never", "0", "[]"):
        with pytest.raises(BrokenFormat, match="publish"):
            decode_project(PROJECT.replace("publish: null", f"publish: {word}").encode())


def test_scalar_tags_do_not_become_letters() -> None:
    for tags, read in (('"one"', ("one",)), ("[1, true]", ("1", "true")), ("null", ())):
        assert decode_entry(ENTRY.replace('"tags": []', f'"tags": {tags}').encode()).tags == read


def test_the_fields_of_ours_are_left_out_where_they_say_nothing() -> None:
    entry = decode_entry(ENTRY.encode())
    assert b"thread_id" not in encode_entry(entry)
    linked = msgspec.structs.replace(
        entry, provenance=msgspec.structs.replace(entry.provenance, thread_id="T-1", message_id="m")
    )
    assert decode_entry(encode_entry(linked)).provenance.thread_id == "T-1"


def test_a_pointer_that_cannot_be_read_costs_itself_only() -> None:
    index = decode_index(
        INDEX.replace(
            '"artifacts": {',
            '"artifacts": {"new": {"schema_version": 9}, "bad": 5, "x": {"artifact_id": "y"},',
        ).encode()
    )
    assert (set(index.artifacts), set(index.unread)) == ({"conf"}, {"new", "bad", "x"})
    assert decode_index(encode_index(index)) == index
    assert [unread_reason(name, index.unread[name]) for name in ("new", "bad")] == [
        "artifact 'new' has format 9; this raddle reads up to 1",
        "artifact 'bad' holds no fields",
    ]


@pytest.mark.parametrize(
    "uri",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "project.yaml",
        "memory/n/k",
        f"runs/{'0' * 26}/phases/p/artifacts/.git/x",
    ],
)
def test_an_inline_pointer_leads_to_an_artifact_or_nowhere(uri: str) -> None:
    index = decode_index(
        INDEX.replace("runs/01M8PZKM3KMAB0SYRHJ485PAMY/phases/build/artifacts/conf.txt", uri).encode()
    )
    assert index.artifacts["conf"].path is None


def test_an_index_whose_pointers_are_no_mapping_is_broken() -> None:
    with pytest.raises(BrokenFormat, match="no mapping"):
        decode_index(b'{"run_id": "x", "artifacts": []}')


def test_a_pointer_without_a_hash_is_not_read() -> None:
    index = decode_index(INDEX.replace('"sha256": "5891', '"sha256": "zzzz').encode())
    assert unread_reason("conf", index.unread["conf"]) == "artifact 'conf' has no SHA-256 or no size"
    good = decode_index(INDEX.encode())
    assert unread_reason("conf", msgspec.to_builtins(good.artifacts["conf"])) == ""


def test_a_blob_is_found_by_name_and_hash() -> None:
    sha256 = "ab" * 32
    assert parse_blob_uri(blob_uri("objects", sha256)) == ("objects", sha256)
    for uri in ("rsync://../x/" + sha256, "rsync://o/" + "z" * 64, f"/{sha256}", f"rsync://-o/{sha256}"):
        assert parse_blob_uri(uri) is None
    with pytest.raises(InvalidInput):
        blob_uri("../x", sha256)


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "1e999", "123456789012345678901234567890", "9223372036854775808"]
)
def test_numbers_that_json_cannot_hold_do_not_stop_a_reader(number: str) -> None:
    entry = decode_entry(ENTRY.replace('"payload": {', f'"payload": {{"n": {number}, ').encode())
    assert decode_entry(encode_entry(entry)).run_id == entry.run_id


def test_an_entry_of_half_a_character_is_not_written() -> None:
    entry = ContextEntry(
        entry_id="x",
        run_id="x",
        phase="x",
        type="note",
        provenance=Provenance(node_id="x"),
        payload={"a": "\ud800"},
    )
    with pytest.raises(InvalidInput):
        encode_entry(entry)
