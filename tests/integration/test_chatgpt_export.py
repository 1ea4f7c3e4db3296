"""Exports of ChatGPT as files: which they are, what is listed in them, and how a conversation is opened."""

from __future__ import annotations

import json
import os
import tracemalloc
import zipfile
from hashlib import shake_128
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.importing.chatgpt import ChatGPT
from raddle.actions.importing.collection import Member
from raddle.actions.importing.run_plan import FileProblem
from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes import chatgpt_scan, zip_entries
from raddle.adapters.agent_homes.chatgpt_export import is_export, open_collection
from raddle.adapters.agent_homes.chatgpt_scan import conversations
from tests.builders_chatgpt import (
    OTHER_SESSION,
    SESSION,
    Conversation,
    a_conversation_of_another_exporter,
    a_conversation_with_everything,
    a_conversation_without_times,
    a_short_conversation,
    export_of,
    uuid_of,
)
from tests.reading import Reading, named, read

HEAD = 4096


class InMemory:
    """Bytes that are read as a file is, and a count of how many were."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.given = 0

    def read(self, offset: int, size: int) -> bytes:
        found = self.data[offset : offset + size]
        self.given += len(found)
        return found


def is_known(path: Path) -> bool:
    return is_export(str(path), path.read_bytes()[:HEAD])


def listed(path: Path) -> tuple[list[Member], list[str]]:
    """The members of an export, and what of it cannot be read."""
    found = list(open_collection(str(path)).members())
    problems = [one for one in found if isinstance(one, FileProblem)]
    assert all(problem.path == str(path) for problem in problems)
    return [one for one in found if isinstance(one, Member)], [one.reason for one in problems]


def imported(path: Path, member: Member) -> Reading:
    source = open_collection(str(path)).open(member)
    kept: list[bytes] = []
    batches = list(source.read(0, 1, kept.append))
    lines = [line for batch in batches for line in batch.lines]  # type: ignore[union-attr]
    assert b"".join(kept) == b"".join(line + b"\n" for line in lines)
    return read(ChatGPT(), named(member.session), lines)


def texts(path: Path) -> dict[str, list[str]]:
    """Session -> what is said in it, of every conversation that can be opened."""
    return {member.session: imported(path, member).texts() for member in listed(path)[0]}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "conversations.json"
    path.write_bytes(
        export_of(
            a_short_conversation(), a_conversation_without_times(), a_conversation_of_another_exporter()
        )
    )
    return path


@pytest.fixture
def zipped(tmp_path: Path) -> Path:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("chat.html", "<html>" + "x" * 1000)
        made.writestr("conversations-001.json", export_of(a_conversation_of_another_exporter()))
        made.writestr("conversations-000.json", export_of(a_short_conversation()))
        made.writestr("shared_conversations.json", "[]")
    return path


def test_an_export_lists_its_conversations_and_opens_each_alone(export: Path) -> None:
    members, problems = listed(export)
    assert problems == []
    assert [member.session for member in members] == [SESSION, OTHER_SESSION, "my conversation"]
    assert members[0].size == len(a_short_conversation().data)
    assert members[0].changed_ns == round(a_short_conversation().value["update_time"] * 1000) * 1_000_000
    assert texts(export) == {
        SESSION: [
            "Why is the kiln cold?",
            "The relay may be open.",
            "How do I see that?",
            "Look at the log.",
        ],
        OTHER_SESSION: ["one", "two", "two again", "three"],
        "my conversation": ["Why is the kiln cold?", "It is off.", "Why?"],
    }


def test_a_conversation_alone_is_an_export_of_one(tmp_path: Path) -> None:
    talk = a_conversation_with_everything()
    for name, data in (("a.json", talk.data), ("b.json", json.dumps(talk.value, indent=2).encode())):
        path = tmp_path / name
        path.write_bytes(data)
        assert is_known(path)
        (member,) = listed(path)[0]
        assert imported(path, member).texts() == read(ChatGPT(), named("x"), talk.lines).texts()


def test_a_capture_of_a_page_is_an_export_of_one(tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    capture = {
        "polylogue_capture_kind": "browser_llm_session",
        "session": {"provider": "chatgpt", "turns": [{"text": "x" * 5000}]},
        "raw_provider_payload": a_short_conversation().value,
    }
    path.write_bytes(json.dumps(capture).encode())
    assert is_known(path)
    (member,) = listed(path)[0]
    assert (member.session, len(imported(path, member).messages)) == (SESSION, 4)


def test_an_export_with_a_wrapper_is_one_too(tmp_path: Path) -> None:
    path = tmp_path / "wrapped.json"
    path.write_bytes(b'{ "conversations" : ' + export_of(a_short_conversation()) + b" }\n")
    assert is_known(path)
    assert listed(path) == ([listed(path)[0][0]], [])


def test_what_is_no_export_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(b'[{"uuid":"a","name":"b","chat_messages":[]}]')
    assert not is_known(path)
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as made:
        made.writestr("readme.txt", "hello")
    assert not is_known(other)


def test_an_empty_export_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(b"[]")
    assert is_known(path)
    assert listed(path) == ([], [])


def test_opening_a_conversation_looks_at_its_own_bytes_only(export: Path) -> None:
    members, _ = listed(export)
    start, end = (int(one) for one in members[1].where.split(":")[:2])
    data, changed = export.read_bytes(), export.stat().st_mtime_ns
    export.write_bytes(b"\xff" * start + data[start:end] + b"\xff" * (len(data) - end))
    os.utime(export, ns=(changed, changed))
    assert imported(export, members[1]).texts() == ["one", "two", "two again", "three"]


def test_a_conversation_that_stands_in_it_twice_is_two_members_and_one_thread(tmp_path: Path) -> None:
    longer = a_short_conversation()
    longer.user("And then?")
    path = tmp_path / "conversations.json"
    path.write_bytes(export_of(a_short_conversation(), longer))
    members, _ = listed(path)
    assert [member.session for member in members] == [SESSION, f"{SESSION} (2)"]
    one, other = (imported(path, member) for member in members)
    assert one.ending.thread_id == other.ending.thread_id
    assert len(other.messages) == 5


def test_an_export_that_changes_after_it_was_listed_is_not_misread(export: Path) -> None:
    members, _ = listed(export)
    export.write_bytes(export_of(a_conversation_of_another_exporter(), a_short_conversation()))
    os.utime(export, ns=(1, 1))
    with pytest.raises(SourceError, match="it changed while it was read"):
        open_collection(str(export)).open(members[0])


def test_the_stamp_is_what_stat_says(export: Path) -> None:
    before = open_collection(str(export)).stat()
    assert before == open_collection(str(export)).stat()
    assert before.size == export.stat().st_size
    os.utime(export, ns=(1, 1))
    assert open_collection(str(export)).stat() != before
    with pytest.raises(SourceError):
        open_collection(str(export) + ".gone").stat()


def test_a_zip_is_read_where_it_lies(zipped: Path) -> None:
    before = zipped.read_bytes()
    assert is_known(zipped)
    assert [member.session for member in listed(zipped)[0]] == [SESSION, "my conversation"]
    assert texts(zipped) == {
        SESSION: [
            "Why is the kiln cold?",
            "The relay may be open.",
            "How do I see that?",
            "Look at the log.",
        ],
        "my conversation": ["Why is the kiln cold?", "It is off.", "Why?"],
    }
    assert zipped.read_bytes() == before
    assert os.listdir(zipped.parent) == [zipped.name]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_any_conversation_in_a_large_zip_can_be_opened_in_any_order(tmp_path: Path, method: int) -> None:
    said: dict[str, list[str]] = {}
    talks = []
    for number in range(60):
        talk = Conversation(uuid_of(f"talk {number}"))
        said[talk.session] = [shake_128(f"{number} {turn}".encode()).hexdigest(12_000) for turn in range(4)]
        for words in said[talk.session]:
            talk.user(words)
        talks.append(talk)
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr("folder/conversations.json", export_of(*talks))
    members, problems = listed(path)
    assert (len(members), problems) == (60, [])
    for member in sorted(members, key=lambda member: member.session):
        assert imported(path, member).texts() == said[member.session]


def test_a_zip_that_was_cut_short_is_told(zipped: Path) -> None:
    data = zipped.read_bytes()
    zipped.write_bytes(data[: len(data) * 2 // 3])
    assert is_known(zipped)
    with pytest.raises(SourceError, match="it is no whole zip file"):
        listed(zipped)


def test_a_zip_whose_bytes_are_damaged_is_told(zipped: Path) -> None:
    data = bytearray(zipped.read_bytes())
    with zipfile.ZipFile(zipped) as made:
        at = made.getinfo("conversations-000.json").header_offset + 60
    data[at : at + 30] = b"\xff" * 30
    zipped.write_bytes(data)
    with pytest.raises(SourceError, match=r"conversations-000\.json in it cannot be read"):
        listed(zipped)


def test_a_zip_whose_file_is_not_where_it_says_is_told(zipped: Path) -> None:
    data = bytearray(zipped.read_bytes())
    with zipfile.ZipFile(zipped) as made:
        at = made.getinfo("conversations-000.json").header_offset
    data[at : at + 4] = b"\0\0\0\0"
    zipped.write_bytes(data)
    with pytest.raises(SourceError, match="it is no whole zip file"):
        listed(zipped)


def test_an_encrypted_or_strangely_packed_zip_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as made:
        made.writestr("conversations.json", export_of(a_short_conversation()))
    with pytest.raises(SourceError) as raised:
        listed(path)
    assert raised.value.hint == "unpack the zip and import what is in it"


def test_a_damaged_conversation_costs_itself_and_is_told(tmp_path: Path) -> None:
    broken = a_short_conversation(uuid_of("broken")).data
    broken = broken.replace(b'"How do I see that?"]', b'"How do I see that?"}', 1)
    path = tmp_path / "conversations.json"
    path.write_bytes(
        b"[" + b", ".join([a_short_conversation().data, broken, a_conversation_without_times().data]) + b"]"
    )
    members, problems = listed(path)
    assert [member.session for member in members] == [SESSION, uuid_of("broken"), OTHER_SESSION]
    assert len(problems) == 1
    assert problems[0].startswith("conversation 2 (bytes ")
    assert len(texts(path)[uuid_of("broken")]) == 3


@pytest.mark.parametrize("window", [1024, 1 << 20])
def test_damage_that_its_reader_will_meet_is_told_once_and_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(chatgpt_scan, "_WINDOW_BYTES", window)
    monkeypatch.setattr(chatgpt_scan, "_SEARCH_BYTES", 4 * window)
    one, other = a_short_conversation(), a_conversation_without_times()
    data = (
        export_of(one, other).replace(b"How do I", b"How \\ud83d do I").replace(b"two again", b"two \\udc00")
    )
    path = tmp_path / "conversations.json"
    path.write_bytes(data)
    members, problems = listed(path)
    assert [member.session for member in members] == [SESSION, OTHER_SESSION]
    assert problems == []
    told = [[problem.line for problem in imported(path, member).problems] for member in members]
    assert told == [[5], [5]]


def test_a_bracket_too_many_does_not_take_the_name_of_a_conversation(tmp_path: Path) -> None:
    broken = a_short_conversation(uuid_of("broken")).data
    data = export_of(a_short_conversation(), a_conversation_without_times())
    for old, new in ((b', "moderation_results"', b'}, "moderation_results"'), (b', "id": "', b'}}, "id": "')):
        path = tmp_path / "conversations.json"
        path.write_bytes(b"[" + broken.replace(old, new, 1) + b", " + data[1:])
        members, problems = listed(path)
        assert [member.session for member in members] == [uuid_of("broken"), SESSION, OTHER_SESSION], old
        assert len(problems) == 1
        assert len(texts(path)[uuid_of("broken")]) == 4


def test_a_torn_conversation_is_told_from_the_next_in_whatever_order_its_fields_are(tmp_path: Path) -> None:
    talks = [a_short_conversation(uuid_of(f"talk {number}")) for number in range(4)]
    texts_of = [json.dumps(dict(reversed(talk.value.items()))) for talk in talks]
    torn = texts_of[2][: texts_of[2].index("Look at")]
    path = tmp_path / "conversations.json"
    path.write_text(f"[null, {texts_of[0]}, {texts_of[1]}, {torn}, {texts_of[3]}]")
    members, problems = listed(path)
    assert [member.session for member in members] == [talk.session for talk in talks]
    assert len(problems) == 2


@pytest.mark.parametrize("cut", ["title", "mapping", "current_node"])
def test_an_export_that_was_cut_short_keeps_what_is_there(export: Path, cut: str) -> None:
    data = export.read_bytes()
    at = data.rindex(f'"{cut}"'.encode())
    export.write_bytes(data[:at])
    members, problems = listed(export)
    assert [member.session for member in members[:2]] == [SESSION, OTHER_SESSION]
    assert len(problems) == 1
    assert len(members) == (3 if cut == "current_node" else 2)
    if len(members) == 3:
        assert imported(export, members[2]).texts() == ["Why is the kiln cold?", "It is off.", "Why?"]


@pytest.mark.parametrize("window", [64, 1 << 20])
@pytest.mark.parametrize("rest", [b"", b",", b", ", b",\n  ", b"\n\0\0"])
@pytest.mark.parametrize("start", [b"[", b'{"conversations": ['])
def test_an_export_that_was_cut_between_two_conversations_is_told(
    monkeypatch: pytest.MonkeyPatch, start: bytes, rest: bytes, window: int
) -> None:
    monkeypatch.setattr(chatgpt_scan, "_WINDOW_BYTES", window)
    talks = [a_short_conversation(), a_conversation_without_times()]
    whole = start + b", ".join(talk.data for talk in talks)
    found = list(conversations(InMemory(whole + rest)))
    assert [one.session for one in found if one.is_readable] == [SESSION, OTHER_SESSION]
    (told,) = [one.reason for one in found if one.reason]
    assert told.startswith("it ends too early, after 2 conversations")
    ending = b"]" if start == b"[" else b"]}"
    assert not any(one.reason for one in conversations(InMemory(whole + b"\n" + ending + b"\n")))


def test_a_list_that_was_cut_before_its_first_conversation_is_told() -> None:
    (told,) = conversations(InMemory(b"[\n"))
    assert told.reason.startswith("it ends too early, after 0 conversations")


@pytest.mark.parametrize("wrapper", [b"[%s]", b'{"conversations": [%s]}', b"%s"])
def test_a_mark_of_the_byte_order_is_no_damage(tmp_path: Path, wrapper: bytes) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(b"\xef\xbb\xbf" + wrapper % a_short_conversation().data)
    assert is_known(path)
    members, problems = listed(path)
    assert ([member.session for member in members], problems) == ([SESSION], [])
    assert len(texts(path)[SESSION]) == 4


def test_what_is_no_conversation_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    talk = a_short_conversation().data
    path = tmp_path / "conversations.json"
    path.write_bytes(b'[null, {"title": "x", "create_time": 1}, ' + talk + b', 3, "text", ' + talk + b"]")
    members, problems = listed(path)
    assert [member.session for member in members] == [SESSION, f"{SESSION} (2)"]
    assert len(problems) == 4


def test_the_ways_back_into_a_zip_are_so_many_however_many_files_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zip_entries, "_STEP_BYTES", 5_000)
    monkeypatch.setattr(zip_entries, "_PIECE_BYTES", 5_000)
    monkeypatch.setattr(zip_entries, "_MOST_MARKS", 30)
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for number in range(30):
            talk = Conversation(uuid_of(f"talk {number}"))
            talk.user(shake_128(b"%d" % number).hexdigest(100_000))
            made.writestr(f"conversations-{number:03}.json", export_of(talk))
    tracemalloc.start()
    try:
        members, problems = listed(path)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(members), problems) == (30, [])
    assert held < 30 * 3 * 45_000  # the beginning, the end and about one more of each


def test_a_conversation_that_is_too_long_costs_itself() -> None:
    long = Conversation(uuid_of("long"))
    for _ in range(20):
        long.user("x" * 200_000)
    source = InMemory(export_of(a_short_conversation(), long, a_conversation_without_times()))
    found = list(conversations(source, largest=1 << 20))
    assert [one.session for one in found] == [SESSION, "", OTHER_SESSION]
    assert found[1].reason.endswith("is too long to read")
    assert not found[1].is_readable


@given(st.data(), st.sampled_from([64, 1000, 1 << 20]))
def test_conversations_are_found_whatever_their_size(data: st.DataObject, window: int) -> None:
    talks = []
    for number in range(data.draw(st.integers(0, 5))):
        talk = Conversation(uuid_of(f"talk {number}"), title=data.draw(st.text(max_size=20)) or None)
        talk.user(data.draw(st.text(max_size=40)) + "x" * data.draw(st.sampled_from([1, 1000, 100_000])))
        talks.append(talk)
    source = InMemory(export_of(*talks))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chatgpt_scan, "_WINDOW_BYTES", window)
        found = list(conversations(source))
    assert [one.session for one in found] == [talk.session for talk in talks]
    assert [source.data[one.start : one.end] for one in found] == [talk.data for talk in talks]
    assert all(one.reason == "" for one in found)
    assert source.given < 4 * source.size + 4 * window


@given(st.integers(0, 9000), st.integers(0, 300), st.binary(max_size=8), st.sampled_from([64, 3000, 1 << 20]))
def test_damage_takes_no_conversation_with_it_but_the_one_it_is_in(
    start: int, size: int, junk: bytes, window: int
) -> None:
    talks = [a_short_conversation(uuid_of(f"talk {number}")) for number in range(4)]
    data = export_of(*talks)
    places = [(found.start, found.end) for found in conversations(InMemory(data))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chatgpt_scan, "_WINDOW_BYTES", window)
        patch.setattr(chatgpt_scan, "_SEARCH_BYTES", 5000)
        found = list(conversations(InMemory(data[:start] + junk + data[start + size :])))
    sound = {one.session for one in found}
    for talk, (first, last) in zip(talks, places, strict=True):
        is_hit = start - 4 <= last and start + size + 4 >= first
        if not is_hit and not _ate_a_beginning(start, size, places):
            assert talk.session in sound, (start, size, junk)


def _ate_a_beginning(start: int, size: int, places: list[tuple[int, int]]) -> bool:
    """Is a conversation's beginning gone, so that it looks like the end of the one before it?"""
    return any(start - 4 <= first + 45 and start + size >= first - 4 for first, _ in places)
