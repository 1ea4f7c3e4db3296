"""A ledger that is lost or damaged costs one reading: nothing comes twice, and nothing that was purged comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from raddle.actions.ports import Finding
from raddle.config import load_config
from raddle.model.threads.delta import Delta
from raddle.wiring import Stores
from raddle.wiring.importing import dry_run, import_sessions
from raddle.wiring.purging import purge_removed, purge_thread
from tests.builders_claude_code import OTHER_SESSION, ClaudeSession, a_session_with_everything, a_sub_agent
from tests.builders_import import Machine, add, counts, write

Loss = Callable[[Path], object]


def lose(ledger: Path) -> None:
    ledger.unlink()


def overwrite(ledger: Path) -> None:
    ledger.write_bytes(b"not a database" * 100)


def cut_short(ledger: Path) -> None:
    ledger.write_bytes(ledger.read_bytes()[: ledger.stat().st_size // 2])


def blank_a_page(ledger: Path) -> None:
    data = ledger.read_bytes()
    ledger.write_bytes(data[:8192] + b"\xff" * 4096 + data[12288:])


LOSSES = pytest.mark.parametrize("loss", [lose, overwrite, cut_short, blank_a_page])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.keep(a_session_with_everything())
    machine.keep(a_sub_agent())
    other = ClaudeSession(OTHER_SESSION)
    other.user("a second talk")
    machine.keep(other)
    return machine


def ledger_of(machine: Machine) -> Path:
    return machine.folder / "data" / "import-ledger.sqlite3"


def everything(machine: Machine) -> dict[str, Delta]:
    return {thread.id: thread.whole() for thread in machine.threads()}


def thread_files(machine: Machine) -> dict[str, bytes]:
    folder = machine.folder / "data" / "threads"
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@LOSSES
def test_the_next_import_changes_no_thread_and_adds_nothing(machine: Machine, loss: Loss) -> None:
    machine.bring_in()
    with machine.stores() as stores:
        stores.index.refresh()
    before, files = everything(machine), thread_files(machine)
    loss(ledger_of(machine))
    for _ in range(2):
        report = machine.bring_in()
        assert (counts(report), report.threads, report.problems) == ((0, 0, 2, 0), 0, [])
        assert everything(machine) == before
        assert thread_files(machine) == files
    assert machine.orphans() == set()
    for path in machine.claude.rglob("*.jsonl"):
        assert machine.source_of(path) == [path.read_bytes()]


@LOSSES
def test_what_was_purged_stays_gone(machine: Machine, loss: Loss) -> None:
    machine.bring_in()
    other = next(thread.id for thread in machine.threads() if "second" in thread.title)
    kept = next(thread.id for thread in machine.threads() if thread.id != other)
    with machine.stores() as stores:
        purge_thread(stores, other)
        with stores.threads.edit(kept) as editor:
            editor.undo()
        purge_removed(stores, kept)
    before = everything(machine)
    loss(ledger_of(machine))
    report = machine.bring_in()
    assert report.threads == 0
    assert everything(machine) == before
    assert machine.orphans() == set()
    with machine.stores() as stores:
        assert stores.ledger.segments_of(kept) == []
    assert machine.bring_in(revive=True).threads == 1
    assert len(machine.threads()) == 2


@LOSSES
def test_a_session_that_grew_meanwhile_is_read_on(machine: Machine, loss: Loss) -> None:
    machine.bring_in()
    loss(ledger_of(machine))
    more = ClaudeSession(OTHER_SESSION, start=1_800_000_000_000_000)
    more.user("one more question")
    add(machine.claude / "-home-dev-src-kiln" / f"{OTHER_SESSION}.jsonl", more.data)
    assert counts(machine.bring_in()) == (0, 1, 1, 1)


@LOSSES
def test_a_deleted_thread_stays_deleted(machine: Machine, loss: Loss) -> None:
    machine.bring_in()
    gone = machine.threads()[0].id
    with machine.stores() as stores, stores.threads.edit(gone) as editor:
        editor.delete()
    loss(ledger_of(machine))
    machine.bring_in()
    with machine.stores() as stores:
        assert [row.id for row in stores.deleted()] == [gone]
        assert gone not in {row.id for row in stores.listed(limit=None)}


def test_damage_is_told_in_one_finding_and_the_damaged_file_is_kept(machine: Machine) -> None:
    machine.bring_in()
    ledger = ledger_of(machine)
    overwrite(ledger)
    told: list[Finding] = []
    with Stores(load_config(machine.environment), clock=machine.clock, report=told.append) as stores:
        preview = dry_run(stores, (), since=None)
        assert [row.sessions for row in preview.agents] == [2]
        assert ledger.read_bytes() == b"not a database" * 100
        import_sessions(stores, (), since=None, revive=False, progress=lambda *_: None)
    look, mended = told
    assert "damaged" in look.what
    assert mended.done.startswith("set aside as import-ledger.sqlite3.broken-1 and made anew")
    assert (ledger.parent / "import-ledger.sqlite3.broken-1").read_bytes() == b"not a database" * 100


def test_a_thread_is_read_though_the_ledger_is_damaged(machine: Machine) -> None:
    machine.bring_in()
    overwrite(ledger_of(machine))
    with machine.stores() as stores:
        (note,) = stores.notes_on(stores.threads.load(stores.threads.ids()[0]))
    assert "is damaged" in note
    assert "raddle import" in note


def test_a_purge_mends_a_damaged_ledger_and_is_remembered(machine: Machine) -> None:
    machine.bring_in()
    thread_id = machine.threads()[0].id
    overwrite(ledger_of(machine))
    with machine.stores() as stores:
        purge_thread(stores, thread_id)
        assert stores.ledger.purged() == {thread_id}
    machine.bring_in()
    assert thread_id not in everything(machine)


@pytest.mark.parametrize("meets", ["import", "purge"])
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_purge_leaves_no_ledger_that_was_set_aside(machine: Machine, meets: str, *, is_whole: bool) -> None:
    machine.bring_in()
    ledger, thread_id = ledger_of(machine), machine.threads()[0].id
    ledger.write_bytes(b"glockenspiel" * 1000)
    ledger.with_name(ledger.name + "-journal").write_bytes(b"glockenspiel" * 100)
    if meets == "import":
        machine.bring_in()
        assert b"glockenspiel" in machine.everything_stored()
    with machine.stores() as stores:
        if is_whole:
            purge_thread(stores, thread_id)
        else:
            with stores.threads.edit(thread_id) as editor:
                editor.undo()
            purge_removed(stores, thread_id)
    assert b"glockenspiel" not in machine.everything_stored()
    assert [path.name for path in ledger.parent.iterdir() if "broken" in path.name] == []


def test_the_import_says_so_where_lines_of_the_purge_marks_cannot_be_read(machine: Machine) -> None:
    machine.bring_in()
    marks = machine.folder / "data" / "purged.txt"
    marks.write_bytes(b"\0" * 60 + b"\n")
    told: list[Finding] = []
    with Stores(load_config(machine.environment), clock=machine.clock, report=told.append) as stores:
        import_sessions(stores, (), since=None, revive=False, progress=lambda *_: None)
    assert [(finding.path, "cannot be read" in finding.what) for finding in told] == [(str(marks), True)]


def test_a_session_written_backwards_loses_nothing_and_repeats_only_what_was_written_in_parts(
    tmp_path: Path,
) -> None:
    """An API message has the id of its first line; which that is, is all that the order of a file says of ids."""
    machine = Machine(tmp_path)
    talk = ClaudeSession()
    for number in range(5):
        talk.user(f"question {number}")
        talk.says(f"one line {number}", message=f"msg_{number}")
    talk.user("the last question")
    talk.says("begun", message="msg_parts")
    talk.says("and ended", message="msg_parts")
    path = machine.keep(talk)
    machine.bring_in()
    before = {message.id: message for message in machine.thread().messages}
    write(path, b"".join(line + b"\n" for line in reversed(talk.lines)))
    machine.bring_in()
    after = {message.id: message for message in machine.thread().messages}
    assert before.keys() <= after.keys()
    (repeated,) = [message for message_id, message in after.items() if message_id not in before]
    assert sorted(repeated.content.split("\n\n")) == ["and ended", "begun"]
