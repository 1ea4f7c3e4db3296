"""An export of ChatGPT becomes threads; the next one adds what is new and takes nothing away."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from raddle.model.threads.codec import encode_thread
from tests.builders_chatgpt import (
    SESSION,
    Conversation,
    a_conversation_with_everything,
    a_short_conversation,
    export_of,
    uuid_of,
)
from tests.builders_import import Machine, counts, reasons, write


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def numbers(machine: Machine, path: Path) -> tuple[int, int, int, int]:
    return counts(machine.bring_in(str(path)), "chatgpt")


def said(machine: Machine) -> dict[str, list[str]]:
    """Session -> what its thread says."""
    return {
        thread.shows("source")["session_id"]: [m.content for m in thread.messages]
        for thread in machine.threads()
    }


def test_an_export_becomes_threads_that_are_found(machine: Machine) -> None:
    path = machine.home / "Downloads" / "conversations.json"
    everything = a_conversation_with_everything()
    everything.session = uuid_of("everything")
    write(path, export_of(a_short_conversation(), everything))
    report = machine.bring_in(str(path))
    assert (report.threads, report.problems) == (2, [])
    assert set(said(machine)) == {SESSION, everything.session}
    assert len(machine.finds("relay")) == 2
    assert len(machine.finds("窯")) == 1
    assert machine.orphans() == set()


def test_the_bytes_of_a_conversation_are_kept_as_its_lines(machine: Machine) -> None:
    path = machine.home / "conversations.json"
    write(path, export_of(a_short_conversation()))
    machine.bring_in(str(path))
    lines = b"".join(line + b"\n" for line in a_short_conversation().lines)
    assert machine.source_of(Path(f"{path}#{SESSION}")) == [lines]


def test_a_later_export_adds_what_is_new_and_what_was_deleted_stays(machine: Machine) -> None:
    path = machine.home / "conversations.json"
    gone, talk = a_short_conversation(uuid_of("gone")), a_short_conversation()
    write(path, export_of(gone, talk))
    assert numbers(machine, path)[:2] == (2, 0)
    before = said(machine)
    talk.user("And now?")
    write(path, export_of(Conversation(uuid_of("empty")), talk))
    assert numbers(machine, path) == (0, 1, 0, 1)
    after = said(machine)
    assert after[uuid_of("gone")] == before[uuid_of("gone")]
    assert after[SESSION] == [*before[SESSION], "And now?"]


def test_the_zip_and_what_is_in_it_are_the_same_threads(machine: Machine) -> None:
    talks = [a_short_conversation(uuid_of(f"talk {number}")) for number in range(3)]
    zipped = machine.home / "export.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("conversations-000.json", export_of(*talks[:2]))
        made.writestr("conversations-001.json", export_of(talks[2]))
    path = machine.home / "unpacked" / "conversations.json"
    write(path, export_of(*talks))
    assert numbers(machine, zipped)[0] == 3
    threads = [encode_thread(thread) for thread in machine.threads()]
    new, grown, _, messages = numbers(machine, path)
    assert (new, grown, messages) == (0, 0, 0)
    assert [encode_thread(thread) for thread in machine.threads()] == threads


def test_damage_is_named_by_file_and_line_and_the_rest_is_read(machine: Machine) -> None:
    path = machine.home / "conversations.json"
    other = a_short_conversation(uuid_of("other"))
    write(path, export_of(a_short_conversation(), other).replace(b"How do I", b"How \\ud83d do I", 1))
    report = machine.bring_in(str(path))
    assert [(one.path, one.line, one.reason) for one in report.problems] == [
        (f"{path}#{SESSION}", 5, "a lone surrogate")
    ]
    assert said(machine)[uuid_of("other")][2] == "How do I see that?"


def test_an_export_that_was_cut_short_says_so(machine: Machine) -> None:
    path = machine.home / "conversations.json"
    write(path, export_of(a_short_conversation(), a_short_conversation(uuid_of("other")))[:-900])
    told, *more = reasons(machine.bring_in(str(path)))
    assert told.startswith("conversation 2 (bytes ")
    assert told.endswith("is damaged: what can be read of it is")
    assert more == ["a torn record"]
    assert len(said(machine)) == 2
