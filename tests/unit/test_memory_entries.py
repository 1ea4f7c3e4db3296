"""Entries: appended at one cost, refused where no reader could take them, listed in order, damage told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.memory.entries import (
    EntryFiles,
    EntryLog,
    NewEntry,
    add_entries,
    add_entry,
    entry_at,
    entry_secrets,
    last_seq,
    list_entries,
)
from raddle.actions.memory.payloads import DEEPEST, LARGEST, check_payload
from raddle.actions.memory.runs import finish_run, set_phase
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.adapters.memory_repo.shelf import Shelf
from raddle.model.errors import InvalidInput, NotFound, TooLarge
from raddle.model.memory.entry import decode_entry
from raddle.model.memory.repo_layout import entries_folder, entry_file, place_of
from tests.builders import NOON, SECOND, THREAD_ID, WoundClock
from tests.builders_runs import a_run, a_store, a_writer
from tests.unit.memory_files import ENTRY, RUN

PEERS_RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"
PEERS_ENTRY = "01M8PZKM3QH82B3EHB38JW5D7M"
OTHER_THREAD = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6d"


@pytest.fixture
def files(tmp_path: Path) -> StoreFolder:
    return a_store(tmp_path)


@pytest.fixture
def clock() -> WoundClock:
    return WoundClock()


@pytest.fixture
def log(files: StoreFolder, clock: WoundClock) -> EntryLog:
    return EntryLog(files, a_writer(clock=clock))


@pytest.fixture
def run_id(files: StoreFolder) -> str:
    return a_run(files).run_id


def note(text: str, **fields: Any) -> NewEntry:
    return NewEntry(type="note", payload={"text": text}, **fields)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"in": value}
    return value


def looping() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


def texts(files: StoreFolder, run_id: str, **wanted: Any) -> list[str]:
    return [entry.payload["text"] for entry in list_entries(EntryFiles(files), run_id, **wanted).entries]


class TestAdding:
    def test_an_entry_is_one_file_that_says_where_it_came_from(self, files: StoreFolder, run_id: str) -> None:
        entry = add_entry(
            files,
            a_writer("node-1"),
            run_id,
            "test",
            type="decision",
            payload={"text": "keep the parser in C"},
            tags=["parser", " parser ", "c"],
            links=["https://example.org/1"],
            thread_id=THREAD_ID.upper(),
            message_id="m1",
        )
        (name,) = files.names(entries_folder(run_id, "test"))
        assert name == f"0001-{entry.entry_id}.json"
        assert decode_entry(files.read(f"{entries_folder(run_id, 'test')}/{name}") or b"") == entry
        assert entry.tags == ("parser", "c")
        assert entry.ts == "2026-11-30T12:00:00.000000Z"
        where = entry.provenance
        assert (where.node_id, where.host) == ("node-1", "desk")
        assert (where.thread_id, where.message_id) == (THREAD_ID, "m1")

    def test_the_current_phase_is_meant_where_none_is_named(self, files: StoreFolder, run_id: str) -> None:
        log = EntryLog(files, a_writer())
        assert log.add(run_id, "", note("one")).phase == "build"
        set_phase(files, a_writer(), run_id, "test", "active")
        assert log.add(run_id, "", note("two")).phase == "test"

    def test_a_batch_is_whole_or_not_at_all(self, files: StoreFolder, run_id: str) -> None:
        made = add_entries(files, a_writer(), run_id, "build", [note("one"), note("two")])
        assert texts(files, run_id) == ["one", "two"]
        assert [entry.entry_id for entry in made] == sorted(entry.entry_id for entry in made)
        with pytest.raises(InvalidInput):
            add_entries(files, a_writer(), run_id, "build", [note("three"), NewEntry(type="nonsense")])
        assert texts(files, run_id) == ["one", "two"]
        assert add_entries(files, a_writer(), run_id, "build", []) == []

    def test_numbers_count_up_and_go_on_after_those_that_are_there(
        self, files: StoreFolder, log: EntryLog, run_id: str
    ) -> None:
        files.add({entry_file(run_id, "build", 41, PEERS_ENTRY): ENTRY.encode()})
        log.add(run_id, "build", note("one"))
        log.add_all(run_id, "build", [note("two"), note("three")])
        assert last_seq(files, run_id, "build") == 44
        assert last_seq(files, run_id, "test") == 0
        EntryLog(files, a_writer()).add(run_id, "build", note("four"))
        assert last_seq(files, run_id, "build") == 45

    def test_a_log_looks_into_the_folder_once(self, run_id: str, files: StoreFolder) -> None:
        looked: list[str] = []

        class Watched(StoreFolder):
            def names(self, folder: str) -> list[str]:
                looked.append(folder)
                return super().names(folder)

            def read(self, path: str) -> bytes | None:
                looked.append(path)
                return super().read(path)

        watched = Watched(files.root, files._locks)
        log = EntryLog(watched, a_writer())
        log.add(run_id, "build", note("one"))
        looked.clear()
        for number in range(5):
            log.add(run_id, "build", note(str(number)))
        assert looked == []

    def test_appends_from_many_threads_lose_none(
        self, files: StoreFolder, log: EntryLog, run_id: str
    ) -> None:
        def write() -> None:
            for number in range(20):
                log.add(run_id, "build", note(str(number)))

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(texts(files, run_id)) == 80

    def test_a_phase_that_only_the_project_has_takes_entries(self, files: StoreFolder, run_id: str) -> None:
        files.change("project.yaml", lambda _: b"project_id: loom\nphases: [build, deploy]\n")
        assert add_entry(files, a_writer(), run_id, "deploy", type="note", payload={}).phase == "deploy"

    def test_a_run_that_is_over_can_still_be_noted_on(self, files: StoreFolder, run_id: str) -> None:
        finish_run(files, a_writer(), run_id)
        add_entry(files, a_writer(), run_id, "build", type="note", payload={"text": "later"})
        assert texts(files, run_id) == ["later"]


class TestRefusing:
    @pytest.mark.parametrize(
        "payload",
        [
            {"x": float("nan")},
            {"x": [1, {"y": float("inf")}]},
            {"x": 10**400},
            {"x": "\ud800"},
            {"\udfff": 1},
            {1: "x"},
            {"x": b"bytes"},
            {"x": {1, 2}},
            {"x": object()},
            nested(DEEPEST + 1),
            nested(100_000),
            looping(),
        ],
        ids=lambda value: ascii(value)[:20] if len(value) and "in" not in value else "deep",
    )
    def test_what_json_cannot_hold_is_refused(
        self, files: StoreFolder, run_id: str, payload: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidInput):
            add_entry(files, a_writer(), run_id, "build", type="metric", payload=payload)
        assert files.names(entries_folder(run_id, "build")) == []

    @pytest.mark.parametrize(
        "payload", [{"x": "a\0b"}, {"x": None}, {"x": True, "y": -0.0}, nested(DEEPEST), {}]
    )
    def test_what_json_can_hold_comes_back(
        self, files: StoreFolder, run_id: str, payload: dict[str, Any]
    ) -> None:
        add_entry(files, a_writer(), run_id, "build", type="metric", payload=payload)
        (entry,) = list_entries(EntryFiles(files), run_id).entries
        assert entry.payload == payload

    def test_ten_megabytes_are_an_artifact(self, files: StoreFolder, run_id: str) -> None:
        with pytest.raises(TooLarge, match="entry"):
            add_entry(files, a_writer(), run_id, "build", type="note", payload={"text": "x" * 10_000_000})
        add_entry(files, a_writer(), run_id, "build", type="note", payload={"text": "x" * (LARGEST - 2000)})
        assert len(texts(files, run_id)) == 1

    @pytest.mark.parametrize(
        "phase", ["nope", "..", "../../x", ".git", "a/b", "a\\b", "a\0", "\ud800", "x" * 500]
    )
    def test_a_phase_that_the_run_does_not_have_is_refused(
        self, files: StoreFolder, run_id: str, phase: str
    ) -> None:
        with pytest.raises(InvalidInput):
            add_entry(files, a_writer(), run_id, phase, type="note", payload={})

    @pytest.mark.parametrize("kind", ["", "Note", "nonsense", "note\n", "\ud800"])
    def test_a_type_that_the_peer_cannot_read_is_refused(
        self, files: StoreFolder, run_id: str, kind: str
    ) -> None:
        with pytest.raises(InvalidInput, match="metric"):
            try:
                add_entry(files, a_writer(), run_id, "build", type=kind, payload={})
            except InvalidInput as error:
                raise InvalidInput(error.hint) from error

    @pytest.mark.parametrize(
        "fields",
        [
            {"tags": [""]},
            {"tags": ["a\nb"]},
            {"tags": ["\x1b[2J"]},
            {"tags": ["\ud800"]},
            {"tags": ["x" * 300]},
            {"tags": 5},
            {"links": [None]},
            {"links": ["x" * 3000]},
            {"thread_id": "T-1"},
            {"thread_id": "../../x"},
            {"thread_id": THREAD_ID, "message_id": "a b"},
            {"message_id": "m1"},
        ],
        ids=str,
    )
    def test_tags_links_and_ids_that_nobody_could_look_up_are_refused(
        self, files: StoreFolder, run_id: str, fields: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidInput):
            add_entry(files, a_writer(), run_id, "build", type="note", payload={}, **fields)

    def test_one_tag_alone_does_not_become_letters(self, files: StoreFolder, run_id: str) -> None:
        entry = add_entry(files, a_writer(), run_id, "build", type="note", payload={}, tags="parser")
        assert entry.tags == ("parser",)

    def test_a_run_that_is_not_there_is_refused(self, files: StoreFolder) -> None:
        with pytest.raises(NotFound):
            add_entry(files, a_writer(), PEERS_RUN, "build", type="note", payload={})
        with pytest.raises(InvalidInput):
            add_entry(files, a_writer(), "../x", "build", type="note", payload={})

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        )
    )
    def test_a_payload_that_is_taken_comes_back_as_it_was(self, value: Any) -> None:
        try:
            checked = check_payload({"value": value}, "the payload")
        except InvalidInput:
            return
        assert msgspec.json.decode(msgspec.json.encode(checked)) == checked


class TestListing:
    @pytest.fixture
    def noted(self, log: EntryLog, clock: WoundClock, run_id: str) -> str:
        log.add(run_id, "build", note("one", tags=["a"]))
        clock.wind()
        log.add(run_id, "test", note("two", thread_id=THREAD_ID, message_id="m1"))
        clock.wind()
        log.add(
            run_id,
            "build",
            NewEntry(type="decision", payload={"text": "Three", "by": ["Ada", 7]}, tags=["a", "b"]),
        )
        clock.wind()
        log.add(run_id, "test", note("four", thread_id=OTHER_THREAD, links=["abc1234"]))
        return run_id

    @pytest.mark.parametrize(
        ("wanted", "found"),
        [
            ({}, ["one", "two", "Three", "four"]),
            ({"phase": "build"}, ["one", "Three"]),
            ({"phase": "nope"}, []),
            ({"phase": "aux"}, []),
            ({"type": "decision"}, ["Three"]),
            ({"tag": "a"}, ["one", "Three"]),
            ({"since": NOON + SECOND}, ["two", "Three", "four"]),
            ({"limit": 2}, ["Three", "four"]),
            ({"limit": 0}, []),
            ({"text": "THREE ada"}, ["Three"]),
            ({"text": "7"}, ["Three"]),
            ({"text": "abc1"}, ["four"]),
            ({"text": "three nope"}, []),
            ({"thread": THREAD_ID}, ["two"]),
            ({"phase": "build", "tag": "b", "limit": 1}, ["Three"]),
        ],
        ids=str,
    )
    def test_filters_apply_together_and_the_newest_is_last(
        self, files: StoreFolder, noted: str, wanted: dict[str, Any], found: list[str]
    ) -> None:
        assert texts(files, noted, **wanted) == found

    def test_a_thread_is_looked_for_in_every_run(self, files: StoreFolder, noted: str) -> None:
        other = a_run(files).run_id
        add_entry(
            files, a_writer(), other, "build", type="note", payload={"text": "later"}, thread_id=THREAD_ID
        )
        found = list_entries(EntryFiles(files), None, thread=THREAD_ID.lower()).entries
        assert {entry.payload["text"] for entry in found} == {"two", "later"}
        with pytest.raises(InvalidInput):
            list_entries(EntryFiles(files), None)

    def test_a_thread_that_a_text_only_mentions_is_none_that_it_rests_on(
        self, files: StoreFolder, run_id: str
    ) -> None:
        add_entry(files, a_writer(), run_id, "build", type="note", payload={"text": THREAD_ID})
        assert EntryFiles(files).resting_on(THREAD_ID).entries == []

    @pytest.mark.parametrize("damage", [b"", b"{", b'{"schema_version": 2}', b"\xff\xfe", b"[]", b"null"])
    def test_a_damaged_entry_costs_itself_only(self, files: StoreFolder, noted: str, damage: bytes) -> None:
        path = entry_file(noted, "build", 2, PEERS_ENTRY)
        files.add({path: damage})
        found = list_entries(EntryFiles(files), noted)
        assert len(found.entries) == 4
        assert [finding.path for finding in found.findings] == [path]

    def test_order_is_that_of_the_ids_whatever_the_numbers_are(self, files: StoreFolder, run_id: str) -> None:
        made = add_entries(files, a_writer(), run_id, "build", [note("one"), note("two")])
        for seq, entry in zip((9, 1), made, strict=True):
            old = entry_file(run_id, "build", made.index(entry) + 1, entry.entry_id)
            data = files.read(old) or b""
            files.change(old, lambda _: None)
            files.add({entry_file(run_id, "build", seq, entry.entry_id): data})
        assert texts(files, run_id) == ["one", "two"]

    def test_what_the_peer_wrote_is_read(self, files: StoreFolder) -> None:
        files.change(f"runs/{PEERS_RUN}/run.yaml", lambda _: RUN.encode())
        scalar = ENTRY.replace('"tags": []', '"tags": "parser"').replace(
            PEERS_ENTRY, "01M8PZKM3QH82B3EHB38JW5D7N"
        )
        files.add({entry_file(PEERS_RUN, "build", 1, PEERS_ENTRY): ENTRY.encode()})
        files.add({entry_file(PEERS_RUN, "build", 2, "01M8PZKM3QH82B3EHB38JW5D7N"): scalar.encode()})
        found = list_entries(EntryFiles(files), PEERS_RUN.lower())
        assert [entry.tags for entry in found.entries] == [(), ("parser",)]
        assert found.findings == []

    def test_a_phase_that_only_the_peer_would_make_is_read(self, files: StoreFolder) -> None:
        path = f"runs/{PEERS_RUN}/phases/aux/entries/0001-{PEERS_ENTRY}.json"
        files.add({path: ENTRY.encode()})
        found = list_entries(EntryFiles(files), PEERS_RUN, phase="aux")
        assert [entry.phase for entry in found.entries] == ["aux"]

    def test_a_copied_file_is_what_its_place_says(self) -> None:
        path = entry_file("01M8PZKM3KMAB0SYRHJ485PAMZ", "test", 1, "01M8PZKM3QH82B3EHB38JW5D7N")
        entry = entry_at(place_of(path), ENTRY.encode())
        assert (entry.run_id[-1], entry.phase, entry.entry_id[-1]) == ("Z", "test", "N")


@pytest.fixture
def reader_of(tmp_path: Path) -> Iterator[Callable[[StoreFolder], Shelf]]:
    """Makes the index of a store."""
    opened: list[Shelf] = []

    def made(files: StoreFolder) -> Shelf:
        opened.append(Shelf(tmp_path / "shelf.sqlite", files.root))
        return opened[-1]

    yield made
    for shelf in opened:
        shelf.close()


def test_the_index_answers_as_the_files_do(
    files: StoreFolder, run_id: str, reader_of: Callable[[StoreFolder], Shelf]
) -> None:
    add_entries(files, a_writer(), run_id, "build", [note("one"), note("two", thread_id=THREAD_ID)])
    files.add({entry_file(run_id, "test", 1, PEERS_ENTRY): b""})
    shelf, plain = reader_of(files), EntryFiles(files)
    wanted: dict[str, Any]
    questions: list[dict[str, Any]] = [
        {},
        {"phase": "build"},
        {"thread": THREAD_ID},
        {"text": "TWO"},
        {"phase": "aux"},
    ]
    for wanted in questions:
        told, read = list_entries(shelf, run_id, **wanted), list_entries(plain, run_id, **wanted)
        assert told.entries == read.entries
        assert [one.path for one in told.findings] == [one.path for one in read.findings]
    assert shelf.resting_on(THREAD_ID) == plain.resting_on(THREAD_ID)


def test_a_secret_is_seen_wherever_in_the_entry_it_stands(files: StoreFolder, run_id: str) -> None:
    for payload in ({"password": "hunter22x"}, {"log": ["x", {"deep": "AK" + "IAABCDEFGHIJKLMNOP"}]}):
        entry = add_entry(files, a_writer(), run_id, "build", type="note", payload=payload)
        assert entry_secrets(entry)
    assert (
        entry_secrets(add_entry(files, a_writer(), run_id, "build", type="note", payload={"text": "fine"}))
        == []
    )
