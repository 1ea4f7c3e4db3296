"""A machine's whole life with imports: sources grow, shrink, vanish and are copied, ledger and index are lost,
people edit, delete and purge; after every import nothing that was ever read is missing, and nothing is there twice."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from raddle.actions.importing.importer import thread_id_of
from raddle.wiring.purging import purge_thread
from tests.builders_claude_code import ClaudeSession
from tests.builders_import import Machine, write

SESSIONS = [f"{number:08d}-0000-4000-8000-000000000000" for number in range(3)]
session_ids = st.sampled_from(SESSIONS)


class Life(RuleBasedStateMachine):
    """The model: what each session's files hold now, and what must be in its thread."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="raddle-life-"))
        self.machine = Machine(self.folder)
        self.talks = {session: ClaudeSession(session) for session in SESSIONS}
        self.on_disk: dict[Path, list[tuple[bytes, str]]] = {}
        """Path -> (line, what it says) of what the file holds."""
        self.must_hold: dict[str, set[str]] = {session: set() for session in SESSIONS}
        self.titles: dict[str, str] = {}
        self.purged: set[str] = set()
        self.deleted: set[str] = set()
        self.number = 0
        self.is_imported = True

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def path_of(self, session: str, project: str = "-p") -> Path:
        return self.machine.file(f"{session}.jsonl", project)

    def save(self, path: Path) -> None:
        write(path, b"".join(line + b"\n" for line, _ in self.on_disk[path]))
        self.is_imported = False

    def new_words(self) -> str:
        self.number += 1
        return f"words{self.number}"

    @initialize()
    def begin(self) -> None:
        self.say(SESSIONS[0])

    @rule(session=session_ids)
    def say(self, session: str) -> None:
        """The session goes on, at the end of its file."""
        talk, words, path = self.talks[session], self.new_words(), self.path_of(session)
        if self.number % 3:
            talk.user(words)
        else:
            talk.says(words, message=f"msg_{words}")
        self.on_disk.setdefault(path, []).append((talk.lines[-1], words))
        self.save(path)

    @rule(session=session_ids, lines=st.integers(0, 3))
    def cut(self, session: str, lines: int) -> None:
        """Its file is rewritten with only its first lines, or emptied."""
        path = self.path_of(session)
        if path in self.on_disk:
            self.on_disk[path] = self.on_disk[path][:lines]
            self.save(path)

    @rule(session=session_ids)
    def remove(self, session: str) -> None:
        path = self.path_of(session)
        if self.on_disk.pop(path, None) is not None:
            path.unlink()

    @rule(session=session_ids, project=st.sampled_from(["-q", "-r"]))
    def copy(self, session: str, project: str) -> None:
        path = self.path_of(session)
        if path in self.on_disk:
            copied = self.path_of(session, project)
            self.on_disk[copied] = list(self.on_disk[path])
            self.save(copied)

    @rule(session=session_ids)
    def say_and_bring_in(self, session: str) -> None:
        """What happens most."""
        self.say(session)
        self.bring_in(is_revived=False)

    @rule(is_revived=st.booleans())
    def bring_in(self, *, is_revived: bool) -> None:
        if is_revived:  # what is there to be read, that is
            back = {path.stem for path in self.on_disk} & self.purged
            for session in back:
                self.must_hold[session] = set()
            self.purged -= back
        report = self.machine.bring_in(revive=is_revived)
        assert {problem.reason for problem in report.problems} <= {"its parent is not known here"}
        for path, lines in self.on_disk.items():
            session = path.stem
            if session not in self.purged:
                self.must_hold[session].update(words for _, words in lines)
        self.is_imported = True

    @rule(what=st.sampled_from(["ledger", "half the ledger", "cache"]))
    def lose(self, what: str) -> None:
        ledger = self.folder / "data" / "import-ledger.sqlite3"
        if what == "cache":
            shutil.rmtree(self.folder / "cache", ignore_errors=True)
        elif what == "ledger":
            ledger.unlink(missing_ok=True)
        elif ledger.exists():
            ledger.write_bytes(ledger.read_bytes()[: ledger.stat().st_size // 2])
        self.is_imported = False

    def thread_of(self, session: str) -> str:
        """The id of a session's thread that is there; empty where there is none."""
        thread_id = thread_id_of("claude-code", session)
        return thread_id if (self.folder / "data" / "threads" / f"{thread_id}.json").exists() else ""

    @rule(session=session_ids)
    def edit(self, session: str) -> None:
        thread_id = self.thread_of(session)
        if thread_id:
            words = self.new_words()
            with self.machine.stores() as stores, stores.threads.edit(thread_id) as editor:
                editor.rename(f"title {words}")
                editor.append("user", words)
            self.titles[session] = f"title {words}"
            self.must_hold[session].add(words)
            self.deleted.discard(session)

    @rule(session=session_ids)
    def delete(self, session: str) -> None:
        thread_id = self.thread_of(session)
        if thread_id:
            with self.machine.stores() as stores, stores.threads.edit(thread_id) as editor:
                editor.delete()
            self.deleted.add(session)

    @rule(session=session_ids)
    def purge(self, session: str) -> None:
        thread_id = self.thread_of(session)
        if thread_id:
            with self.machine.stores() as stores:
                purge_thread(stores, thread_id)
            self.purged.add(session)
            self.must_hold[session] = set()
            self.titles.pop(session, None)
            self.deleted.discard(session)

    @precondition(lambda self: self.is_imported)
    @invariant()
    def everything_is_there_once(self) -> None:
        expected = {
            thread_id_of("claude-code", session): session for session in SESSIONS if self.must_hold[session]
        }
        with self.machine.stores() as stores:
            assert set(stores.threads.ids()) == set(expected)
            for thread_id, session in expected.items():
                thread = stores.threads.load(thread_id)
                said = Counter(message.content for message in thread.messages)
                assert said == Counter(self.must_hold[session]), session
                assert thread.tree.lost() == []
                assert thread.is_deleted is (session in self.deleted)
                if session in self.titles:
                    assert thread.title == self.titles[session]
            rows = {row.id: row.message_count for row in stores.listed(limit=None)}
            assert rows == {
                thread_id: len(self.must_hold[session])
                for thread_id, session in expected.items()
                if session not in self.deleted
            }
            assert stores.index.verify() == []


def test_nothing_that_was_ever_read_is_missing_or_there_twice() -> None:
    run_state_machine_as_test(Life, settings=settings(max_examples=20, stateful_step_count=15))


@pytest.mark.soak
def test_nor_is_it_after_long_lives() -> None:
    run_state_machine_as_test(Life, settings=settings(max_examples=150, stateful_step_count=40))
