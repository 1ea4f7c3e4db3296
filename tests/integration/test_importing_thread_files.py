"""Threads that Loom and quorum keep, and our own exports, come in whole; edits on both sides are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.exporting.registry import form_named
from raddle.model.threads.quorum import encode_quorum
from raddle.model.threads.thread import Thread
from raddle.wiring.purging import purge_thread
from tests.builders_claude_code import a_session_with_everything, a_sub_agent
from tests.builders_import import Machine, counts, reasons, write

LOOM_ID = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def loom_path(machine: Machine) -> Path:
    return machine.home / ".local/share/loom/threads" / f"{LOOM_ID}.json"


def a_loom_file(*turns: str, **fields: Any) -> bytes:
    """As the first seed's program writes it: the whole thread, anew at every turn."""
    messages = [
        {"role": "assistant" if number % 2 else "user", "content": turn} for number, turn in enumerate(turns)
    ]
    thread = {
        "id": LOOM_ID,
        "version": len(turns),
        "created_at": "2026-02-01T09:00:00Z",
        "updated_at": f"2026-02-01T09:{len(turns):02d}:00Z",
        "last_activity_at": f"2026-02-01T09:{len(turns):02d}:00Z",
        "workspace_root": "/home/dev/kiln",
        "loom_version": "0.1.0",
        "conversation": {"messages": messages},
        "metadata": {"title": "Kiln", "tags": ["clay"], "is_pinned": False},
        "visibility": "organisation",
        "of_a_later_version": {"kept": True},
        **fields,
    }
    return json.dumps(thread, indent=2).encode()


def a_quorum_file(*turns: str, **fields: Any) -> bytes:
    messages = [
        {
            "id": f"m{n}",
            "parent_id": f"m{n - 1}" if n else None,
            "branch_id": "b",
            "role": "user",
            "content": turn,
            "ts": 1_770_000_000 + n,
        }
        for n, turn in enumerate(turns)
    ]
    thread = {
        "id": "one",
        "subject": "Kiln",
        "created": 1_770_000_000,
        "updated": 1_770_000_000 + len(turns),
        "messages": messages,
        **fields,
    }
    return json.dumps(thread, indent=2).encode()


class TestLoom:
    def test_a_thread_comes_in_under_its_own_id_with_all_it_holds(self, machine: Machine) -> None:
        path = loom_path(machine)
        write(path, a_loom_file("Is it warm?", "No."))
        assert counts(machine.bring_in(), "loom") == (1, 0, 0, 2)
        thread = machine.thread()
        assert (thread.id, thread.title, thread.tags) == (LOOM_ID, "Kiln", ["clay"])
        assert machine.texts() == ["Is it warm?", "No."]
        assert thread.source is not None
        assert (thread.source.agent, thread.source.session_id) == ("loom", LOOM_ID)
        assert thread.shows("x/of_a_later_version") == {"kept": True}
        assert machine.finds("warm") == [LOOM_ID]
        assert machine.source_of(path) == [path.read_bytes()]

    def test_again_changes_nothing_even_where_the_file_was_touched(self, machine: Machine) -> None:
        path = loom_path(machine)
        data = a_loom_file("Is it warm?", "No.")
        write(path, data)
        machine.bring_in()
        before = machine.thread()
        assert counts(machine.bring_in(), "loom") == (0, 0, 1, 0)
        write(path, data)
        assert counts(machine.bring_in(), "loom") == (0, 0, 1, 0)
        assert machine.thread().registers == before.registers

    def test_what_its_program_adds_and_changes_is_added_and_changed(self, machine: Machine) -> None:
        path = loom_path(machine)
        write(path, a_loom_file("Is it warm?", "No."))
        machine.bring_in()
        metadata = {"title": "Cold kiln", "tags": ["fire"]}
        write(path, a_loom_file("Is it warm?", "No.", "And now?", metadata=metadata))
        assert counts(machine.bring_in(), "loom") == (0, 1, 0, 1)
        thread = machine.thread()
        assert (thread.title, thread.tags, thread.conflicts) == ("Cold kiln", ["fire"], [])
        assert machine.texts() == ["Is it warm?", "No.", "And now?"]
        assert len(machine.source_of(path)) == 2

    def test_edits_here_outlive_a_program_that_never_saw_them(self, machine: Machine) -> None:
        path = loom_path(machine)
        write(path, a_loom_file("Is it warm?", "No."))
        machine.bring_in()
        with machine.stores() as stores, stores.threads.edit(LOOM_ID) as editor:
            editor.rename("Mine")
            editor.tag("here")
            editor.untag("clay")
            editor.append("user", "I think so.")
        write(path, a_loom_file("Is it warm?", "No.", "And now?"))
        machine.bring_in()
        thread = machine.thread()
        assert (thread.title, thread.tags, thread.conflicts) == ("Mine", ["here"], [])
        assert sorted(machine.texts()) == sorted(["Is it warm?", "No.", "I think so.", "And now?"])
        write(
            path,
            a_loom_file("Is it warm?", "No.", "And now?", metadata={"title": "Theirs", "tags": ["clay"]}),
        )
        machine.bring_in()
        assert (machine.thread().title, machine.thread().tags) == ("Theirs", ["here"])

    @pytest.mark.parametrize("lost", ["ledger", "blobs"])
    def test_edits_here_outlive_it_too_where_what_it_said_before_is_not_known(
        self, machine: Machine, lost: str
    ) -> None:
        path = loom_path(machine)
        write(path, a_loom_file("Is it warm?"))
        machine.bring_in()
        with machine.stores() as stores, stores.threads.edit(LOOM_ID) as editor:
            editor.rename("Mine")
        if lost == "ledger":
            (machine.folder / "data" / "import-ledger.sqlite3").unlink()
        else:
            for blob in list((machine.folder / "data" / "blobs").rglob("*.zst")):
                blob.unlink()
        write(path, a_loom_file("Is it warm?", "No.", metadata={"title": "Theirs", "tags": ["fire"]}))
        machine.bring_in()
        thread = machine.thread()
        assert thread.title == "Mine"
        assert "fire" in thread.tags
        assert machine.texts() == ["Is it warm?", "No."]

    def test_a_shorter_file_takes_nothing_away(self, machine: Machine) -> None:
        path = loom_path(machine)
        write(path, a_loom_file("Is it warm?", "No.", "And now?"))
        machine.bring_in()
        write(path, a_loom_file("Is it warm?"))
        machine.bring_in()
        assert machine.texts() == ["Is it warm?", "No.", "And now?"]

    @pytest.mark.parametrize(
        "data",
        [b'{"id": "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c", "conversation": {"mess', b'{"conversation": []}'],
    )
    def test_a_malformed_file_costs_itself_and_is_read_when_it_is_whole(
        self, machine: Machine, data: bytes
    ) -> None:
        write(loom_path(machine).with_name("bad.json"), data)
        write(loom_path(machine), a_loom_file("Is it warm?"))
        report = machine.bring_in()
        assert (counts(report, "loom"), len(report.problems)) == ((1, 0, 0, 1), 1)
        assert report.problems[0].path.endswith("bad.json")
        assert machine.bring_in().problems == []
        write(loom_path(machine).with_name("bad.json"), a_loom_file("Is it warm?", "No."))
        assert machine.bring_in().problems == []
        assert machine.texts() == ["Is it warm?", "No."]

    def test_one_bad_message_is_told_and_the_rest_comes_in(self, machine: Machine) -> None:
        data = json.loads(a_loom_file("Is it warm?", "No."))
        data["conversation"]["messages"].insert(1, 7)
        write(loom_path(machine), json.dumps(data).encode())
        report = machine.bring_in()
        assert reasons(report) == ["message 2 is not an object: kept as text"]
        assert machine.texts() == ["Is it warm?", "7", "No."]


class TestQuorum:
    def path(self, machine: Machine) -> Path:
        return machine.home / ".nsed/threads/one.json"

    def test_a_thread_comes_in_and_grows(self, machine: Machine) -> None:
        write(self.path(machine), a_quorum_file("Is it warm?"))
        assert counts(machine.bring_in(), "quorum") == (1, 0, 0, 1)
        write(self.path(machine), a_quorum_file("Is it warm?", "And now?"))
        assert counts(machine.bring_in(), "quorum") == (0, 1, 0, 1)
        assert machine.texts() == ["Is it warm?", "And now?"]
        assert counts(machine.bring_in(), "quorum") == (0, 0, 1, 0)
        assert json.loads(encode_quorum(machine.thread()))["subject"] == "Kiln"

    def test_edits_here_outlive_a_program_that_never_saw_them(self, machine: Machine) -> None:
        write(self.path(machine), a_quorum_file("Is it warm?"))
        machine.bring_in()
        thread_id = machine.thread().id
        with machine.stores() as stores, stores.threads.edit(thread_id) as editor:
            editor.rename("Mine")
            editor.append("user", "I think so.")
        write(self.path(machine), a_quorum_file("Is it warm?", "And now?"))
        machine.bring_in()
        assert machine.thread().title == "Mine"
        assert sorted(machine.texts()) == sorted(["Is it warm?", "I think so.", "And now?"])

    def test_a_file_that_is_another_programs_is_not_taken(self, machine: Machine) -> None:
        write(self.path(machine), b'{"name": "package", "messages": []}')
        report = machine.bring_in()
        assert (report.agents, report.problems) == ({}, [])


class TestOurOwnExports:
    def test_an_export_comes_into_another_data_folder_as_an_equal_thread(self, tmp_path: Path) -> None:
        one, other = Machine(tmp_path / "one"), Machine(tmp_path / "other")
        one.keep(a_session_with_everything())
        one.keep(a_sub_agent())
        one.bring_in()
        thread = one.thread()
        with one.stores() as stores, stores.threads.edit(thread.id) as editor:
            editor.rename("Mine")
            editor.append("user", "again")
            editor.undo()
        thread = one.thread()
        export = tmp_path / "export.json"
        export.write_bytes(form_named("json").export(thread, None))
        report = other.bring_in(str(export))
        assert (report.threads, report.problems) == (1, [])
        self.must_be_equal(other.thread(), thread)
        assert other.bring_in(str(export)).messages == 0
        assert one.bring_in(str(export)).messages == 0
        self.must_be_equal(one.thread(), thread)

    def test_two_machines_that_went_on_apart_meet_in_an_export(self, tmp_path: Path) -> None:
        one, other = Machine(tmp_path / "one"), Machine(tmp_path / "other")
        export = tmp_path / "export.json"
        one.keep(a_session_with_everything())
        one.bring_in()
        thread_id = one.thread().id
        export.write_bytes(form_named("json").export(one.thread(), None))
        other.bring_in(str(export))
        for machine, words in ((one, "from one"), (other, "from the other")):
            with machine.stores() as stores:
                stores.threads.append(thread_id, "user", words)
        write(export, form_named("json").export(other.thread(), None))
        one.bring_in(str(export))
        assert {"from one", "from the other"} <= set(one.texts())
        assert one.thread().tree.lost() == []

    def test_turns_that_quorum_added_to_an_export_come_into_the_thread(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path)
        machine.keep(a_session_with_everything())
        machine.bring_in()
        thread = machine.thread()
        export = machine.home / ".nsed/threads/one.json"
        write(export, encode_quorum(thread))
        assert counts(machine.bring_in(), "quorum") == (0, 0, 1, 0)
        assert machine.thread().registers == thread.registers
        self.go_on(export, "Anything else?")
        assert counts(machine.bring_in(), "quorum") == (0, 1, 0, 1)
        assert machine.thread().id == thread.id
        assert machine.texts()[-1] == "Anything else?"
        assert counts(machine.bring_in(), "quorum") == (0, 0, 1, 0)
        with machine.stores() as stores:
            assert stores.notes_on(machine.thread()) == [], "the session itself was not rewritten"

    def test_an_export_for_quorum_of_a_thread_that_is_not_here_is_a_thread_of_its_own(
        self, tmp_path: Path
    ) -> None:
        one, other = Machine(tmp_path / "one"), Machine(tmp_path / "other")
        one.keep(a_session_with_everything())
        one.bring_in()
        export = tmp_path / "export.json"
        export.write_bytes(encode_quorum(one.thread()))
        other.bring_in(str(export))
        assert other.thread().id != one.thread().id

    def test_an_export_for_quorum_does_not_bring_back_what_was_purged(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path)
        machine.keep(a_session_with_everything())
        machine.bring_in()
        export = machine.home / ".nsed/threads/one.json"
        write(export, encode_quorum(machine.thread()))
        machine.bring_in()
        with machine.stores() as stores:
            purge_thread(stores, machine.thread().id)
        self.go_on(export, "Anything else?")
        machine.bring_in()
        with machine.stores() as stores:
            assert stores.threads.ids() == []

    def go_on(self, export: Path, words: str) -> None:
        plain = json.loads(export.read_bytes())
        last = plain["messages"][-1]
        plain["messages"].append(
            last | {"id": "f" * 32, "parent_id": last["id"], "role": "user", "content": words}
        )
        write(export, json.dumps(plain, indent=2).encode())

    def must_be_equal(self, one: Thread, other: Thread) -> None:
        assert (one.id, one.version, one.messages, one.registers) == (
            other.id,
            other.version,
            other.messages,
            other.registers,
        )
