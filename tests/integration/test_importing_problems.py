"""Whatever is wrong with a file, a line or a process costs itself; it is named, and the rest is brought in."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.importing.claude_code_reader import ClaudeCodeReader
from raddle.adapters.agent_homes import source_bytes
from raddle.adapters.agent_homes.source_bytes import SourceBytes
from raddle.adapters.local_store.thread_spool import ThreadSpool
from raddle.model.errors import NotFound, StorageError
from raddle.wiring.import_lock import import_lock
from raddle.wiring.importing import import_sessions
from tests.builders_chatgpt import a_short_conversation, export_of
from tests.builders_claude_code import (
    OTHER_SESSION,
    SESSION,
    ClaudeSession,
    a_session_with_everything,
    a_short_session,
    a_sub_agent,
)
from tests.builders_import import Machine, add, counts, reasons, write
from tests.file_events import start_child
from tests.modes import bound_by_modes

GLUED = b'{"type":"user","message":{"role":"user","content":"torn'
LONG = 5_000


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def a_talk(session: str, *turns: str) -> ClaudeSession:
    talk = ClaudeSession(session)
    for turn in turns:
        talk.user(turn)
    return talk


class TestLines:
    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"\0" * 40, "nothing but NUL bytes"),
            (b"}{", "not a record"),
            (b"[1, 2]", "not a record"),
            (GLUED, "a torn record"),
            (b'{"type":"user","message":{"role":"user","content":"\xf0\x9f"}}', "UTF-8"),
            (b'{"type":"from-the-future"}', "a kind of line that is not known"),
        ],
    )
    def test_a_bad_line_is_named_by_file_line_and_reason_and_the_rest_is_read(
        self, machine: Machine, line: bytes, reason: str
    ) -> None:
        talk = a_short_session()
        data = talk.lines[0] + b"\n" + line + b"\n" + b"\n".join(talk.lines[1:]) + b"\n"
        path = machine.file(f"{SESSION}.jsonl")
        write(path, data)
        report = machine.bring_in()
        assert (counts(report)[0], report.agents["claude-code"].partial) == (1, 1)
        (problem,) = report.problems
        assert (problem.path, problem.line) == (str(path), 2)
        assert reason in problem.reason
        assert "The relay is open." in machine.texts()
        assert machine.source_of(path) == [data]
        assert machine.bring_in().problems == []

    def test_separators_inside_a_line_and_line_ends_of_another_system_are_no_problem(
        self, machine: Machine
    ) -> None:
        talk = a_talk(SESSION, "a\u2028b\u2029c\u0085d")
        write(machine.file(f"{SESSION}.jsonl"), talk.lines[0] + b"\r\n\r\n")
        assert machine.bring_in().problems == []
        assert machine.texts() == ["a\u2028b\u2029c\u0085d"]

    def test_a_record_over_several_lines_is_read_and_told(self, machine: Machine) -> None:
        talk = a_talk(SESSION, "hello")
        pretty = json.dumps(json.loads(talk.lines[0]), indent=2).encode()
        write(machine.file(f"{SESSION}.jsonl"), pretty + b"\n")
        assert reasons(machine.bring_in()) == ["a JSON object over several lines"]
        assert machine.texts() == ["hello"]

    def test_a_lone_surrogate_costs_itself(self, machine: Machine) -> None:
        talk = a_talk(SESSION, "before SURROGATE after")
        data = talk.data.replace(b"SURROGATE", b"\\ud83d")
        write(machine.file(f"{SESSION}.jsonl"), data)
        report = machine.bring_in()
        assert machine.texts() == ["before \ufffd after"]
        assert len(report.problems) == 1
        assert len(machine.finds("before")) == 1

    def test_a_line_too_long_to_read_is_named_and_kept(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(source_bytes, "MAX_LINE_BYTES", LONG)
        monkeypatch.setattr(source_bytes, "CHUNK_BYTES", 512)
        talk = a_talk(SESSION, "before", "x" * 10_000, "after")
        path = machine.keep(talk)
        report = machine.bring_in()
        assert machine.texts() == ["before", "after"]
        assert report.problems[0].line == 2
        assert "too long to read" in report.problems[0].reason
        assert machine.source_of(path) == [talk.data]

    def test_thousands_of_bad_lines_are_not_told_one_by_one(self, machine: Machine) -> None:
        talk = a_short_session()
        write(machine.file(f"{SESSION}.jsonl"), b"}{\n" * 5_000 + talk.data)
        report = machine.bring_in()
        assert 1 < len(report.problems) < 300
        assert "The relay is open." in machine.texts()


class TestFiles:
    def test_a_session_of_another_agent_is_named_and_nothing_of_it_kept(self, machine: Machine) -> None:
        copilot = b'{"type":"session.start","data":{"sessionId":"x","cwd":"/w"}}\n}{\n'
        write(machine.file(f"{OTHER_SESSION}.jsonl"), copilot)
        machine.keep(a_short_session())
        report = machine.bring_in()
        assert counts(report)[0] == 1
        assert reasons(report) == ["this is a session of copilot-cli, not of Claude Code: not read here"]
        assert machine.orphans() == set()
        assert b'"session.start"' not in machine.everything_stored()

    def test_files_that_are_no_sessions_cost_nobody_else_anything(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        (machine.claude / "-p").mkdir()
        (machine.claude / "-p" / "folder.jsonl").mkdir()
        (machine.claude / "-p" / "link.jsonl").symlink_to("nowhere")
        os.mkfifo(machine.claude / "-p" / "pipe.jsonl")
        write(machine.claude / "-p" / "picture.jsonl", os.urandom(5_000))
        report = machine.bring_in()
        assert counts(report)[0] == 1
        named = {Path(problem.path).name for problem in report.problems}
        assert named == {"folder.jsonl", "link.jsonl", "pipe.jsonl", "picture.jsonl"}

    def test_what_may_not_be_read_is_named_and_brought_in_once_it_may(self, machine: Machine) -> None:
        other = a_talk(OTHER_SESSION, "hello")
        paths = [machine.keep(a_short_session()), machine.keep(other, "-closed")]
        part = machine.keep(a_sub_agent())
        for path in (part, paths[1].parent):
            path.chmod(0)

        def look() -> None:
            report = machine.bring_in()
            assert counts(report)[0] == 1
            assert {problem.path for problem in report.problems} == {str(part), str(paths[1].parent)}
            assert all("permission denied" in reason for reason in reasons(report))
            for place in (part, paths[1].parent, paths[1]):
                with pytest.raises(NotFound):
                    machine.bring_in(str(place))

        bound_by_modes(look)
        for path in (part, paths[1].parent):
            path.chmod(0o700)
        report = machine.bring_in()
        assert (counts(report)[:2], report.problems) == ((1, 1), [])

    def test_a_file_that_goes_away_meanwhile_is_named(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        talk, gone = machine.keep(a_short_session()), machine.keep(a_talk(OTHER_SESSION, "hello"))
        opening = SourceBytes.__init__

        def vanish(self: SourceBytes, path: str) -> None:
            if path == str(gone):
                gone.unlink(missing_ok=True)
            opening(self, path)

        monkeypatch.setattr(SourceBytes, "__init__", vanish)
        report = machine.bring_in()
        assert (report.threads, [problem.path for problem in report.problems]) == (1, [str(gone)])
        assert talk.exists()

    def test_a_file_that_is_written_while_it_is_read_gives_all_it_has_in_the_end(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        talk = a_session_with_everything()
        half = sum(len(line) + 1 for line in talk.lines[:12]) + 30
        path = machine.file(f"{SESSION}.jsonl")
        write(path, talk.data[:half])
        reading = SourceBytes._chunks

        def grow(self: SourceBytes, start: int, end: int | None) -> Iterator[bytes]:
            for chunk in reading(self, start, end):
                yield chunk
                if path.stat().st_size == half:
                    add(path, talk.data[half:])

        monkeypatch.setattr(SourceBytes, "_chunks", grow)
        machine.bring_in()
        machine.bring_in()
        assert machine.source_of(path) == [talk.data]
        again = Machine(machine.folder / "again", home=machine.home)
        again.bring_in()
        assert machine.thread().messages == again.thread().messages


class TestMistakesOfOurOwn:
    """A bug met in one session costs that session; where it is stands in the report, its words do not."""

    @pytest.mark.parametrize("is_known", [False, True])
    def test_a_bug_in_a_reader_costs_one_session(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
    ) -> None:
        paths = [machine.keep(a_talk(SESSION, "secret words")), machine.keep(a_talk(OTHER_SESSION, "hello"))]
        if is_known:
            machine.bring_in()
        finish = ClaudeCodeReader.finish

        def stumble(self: ClaudeCodeReader, tail: bytes = b"") -> Any:
            if self._source.name == paths[0].name:
                raise KeyError("secret words")
            return finish(self, tail)

        for path in paths:
            add(path, b'{"type":"mode"}\n')
        with monkeypatch.context() as patched:
            patched.setattr(ClaudeCodeReader, "finish", stumble)
            report = machine.bring_in()
        (problem,) = report.problems
        assert problem.path == str(paths[0])
        assert "raddle made a mistake (KeyError in test_importing_problems.py, line" in problem.reason
        assert "secret" not in problem.reason
        assert report.threads == (0 if is_known else 1)
        assert machine.bring_in().threads == (0 if is_known else 1)
        assert len(machine.threads()) == 2


class TestDisksAndProcesses:
    @pytest.mark.parametrize("small", [0, 1 << 30])
    def test_a_disk_that_is_full_ends_the_import_with_one_error_and_the_next_one_completes(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, small: int
    ) -> None:
        monkeypatch.setattr("raddle.wiring.import_desk.SMALL_BYTES", small)
        for number in range(6):
            machine.keep(a_talk(f"{number:08d}-0000-4000-8000-000000000000", f"question {number}"))

        def no_room(self: ThreadSpool, frame: object) -> Path:
            raise StorageError("cannot write in threads: the disk is full", "free some space")

        with monkeypatch.context() as patched:
            patched.setattr(ThreadSpool, "write", no_room)
            with pytest.raises(StorageError, match="the disk is full"):
                machine.bring_in()
        assert machine.threads() == []
        assert machine.bring_in().threads == 6
        assert machine.orphans() == set()

    def test_a_worker_that_is_killed_is_one_error_and_the_next_import_completes(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("raddle.wiring.import_desk.SMALL_BYTES", 0)
        for number in range(1, 9):
            machine.keep(a_talk(f"{number:08d}-0000-4000-8000-000000000000", f"question {number} " * number))
        parent = os.getpid()
        write_thread = ThreadSpool.write

        def die(self: ThreadSpool, frame: Any) -> Path:
            path = write_thread(self, frame)
            if os.getpid() != parent and frame.title.startswith("question 3"):
                os.kill(os.getpid(), signal.SIGKILL)
            return path

        with monkeypatch.context() as patched:
            patched.setattr(ThreadSpool, "write", die)
            with pytest.raises(StorageError, match="killed by signal 9"):
                machine.bring_in()
        stored = len(machine.threads())
        assert stored >= 1, "what was finished before stays"
        with machine.stores() as stores:
            assert len(stores.listed(limit=None)) == stored
            assert stores.index.verify() == []
        assert machine.bring_in().threads == 8 - stored
        assert len(machine.threads()) == 8
        with machine.stores() as stores:
            assert len(stores.listed(limit=None)) == 8
            assert stores.index.verify() == []

    @pytest.mark.parametrize("small", [0, 1 << 30])
    def test_who_interrupts_an_import_keeps_what_was_read_and_leaves_no_worker(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, small: int
    ) -> None:
        monkeypatch.setattr("raddle.wiring.import_desk.SMALL_BYTES", small)
        for number in range(1, 9):
            machine.keep(a_talk(f"{number:08d}-0000-4000-8000-000000000000", f"question {number}"))

        def interrupt(done: int, total: int, messages: int) -> None:
            if messages >= 3:
                raise KeyboardInterrupt

        with machine.stores() as stores:
            with pytest.raises(KeyboardInterrupt) as interrupted:
                import_sessions(stores, (), since=None, revive=False, progress=interrupt)
            assert interrupted.tb is not None
            assert multiprocessing.active_children() == []
            assert len(stores.threads.ids()) == 3
            assert len(stores.listed(limit=None)) == 3
        assert machine.bring_in().threads == 5
        assert machine.orphans() == set()

    def test_a_second_import_says_who_holds_the_first(self, machine: Machine) -> None:
        machine.keep(a_short_session())

        def hold(ready: int, wait: int) -> None:
            with machine.stores() as stores, import_lock(stores):
                os.write(ready, b".")
                os.read(wait, 1)

        held, ready = os.pipe()
        wait, let_go = os.pipe()
        child = start_child(hold, ready, wait)
        os.read(held, 1)
        told = f"an import is running here: .*process {child.pid}"
        with machine.stores() as stores:
            with pytest.raises(StorageError, match=told), import_lock(stores, wait_seconds=0.05):
                raise AssertionError
            with stores.threads.create() as editor:
                editor.append("user", "people go on writing meanwhile")
            for thread_id in [stores.author.new_id() for _ in range(70)]:
                with stores.locks.held(f"T-{thread_id}", timeout_seconds=1):
                    pass
        os.write(let_go, b".")
        child.join()
        assert machine.bring_in().threads == 1

    def test_two_imports_at_once_wait_for_each_other(self, machine: Machine) -> None:
        for number in range(12):
            machine.keep(a_talk(f"{number:08d}-0000-4000-8000-000000000000", f"question {number}"))

        def bring_in() -> None:
            assert machine.bring_in().problems == []

        children = [start_child(bring_in) for _ in range(3)]
        for child in children:
            child.join()
        assert [child.exitcode for child in children] == [0, 0, 0]
        assert len(machine.threads()) == 12
        assert machine.orphans() == set()
        with machine.stores() as stores:
            assert stores.index.verify() == []

    def test_people_search_while_an_import_goes_on(self, machine: Machine) -> None:
        machine.keep(a_short_session())
        machine.bring_in()
        with machine.stores() as stores, import_lock(stores), stores.index.bulk() as bulk:
            bulk.add("half a session", [])
            child = start_child(lambda: os._exit(len(machine.finds("relay"))))
            child.join()
        assert child.exitcode == 1


class TestNamedPaths:
    """What a person named and got nothing from is told as such, each time."""

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("nul.jsonl", b"\0" * 500),
            ("cut.jsonl", b'{"type":"user","message":{"role":"us'),
            ("notes.txt", b"hello"),
            ("empty.jsonl", b""),
            ("summary.jsonl", b'{"type":"summary","summary":"A kiln","leafUuid":"x"}\n'),
            ("other.zip", b"PK\x03\x04" + b"x" * 100),
            ("cut.db", b"SQLite format 3\0" + b"x" * 100),
        ],
    )
    def test_a_path_from_which_nothing_can_be_read_is_named(
        self, machine: Machine, tmp_path: Path, name: str, data: bytes
    ) -> None:
        path, good = tmp_path / "given" / name, tmp_path / "good" / "talk.jsonl"
        write(path, data)
        write(good, a_short_session().data)
        for _ in range(2):
            report = machine.bring_in(str(good), str(path))
            assert report.unread == [str(path)]
            assert [problem.path for problem in report.problems] == [str(path)]

    @pytest.mark.parametrize("name", ["opencode.db", "a copy.db"])
    def test_of_a_damaged_database_it_is_told_that_it_is_damaged(
        self, machine: Machine, tmp_path: Path, name: str
    ) -> None:
        path = tmp_path / "given" / name
        write(path, b"SQLite format 3\0" + b"\x10\x00\x01\x01\x00\x40\x20\x20" + b"x" * 9000)
        (problem,) = machine.bring_in(str(path)).problems
        assert problem.reason.startswith("it cannot be read: SQLite says: ")

    def test_of_a_file_that_is_not_read_for_its_name_it_is_told_what_a_name_ends_in(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        path = tmp_path / "out.loom"
        write(path, b'{"id": "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c", "conversation": {"messages": []}}')
        (problem,) = machine.bring_in(str(path)).problems
        assert problem.reason.endswith(
            "was found here: the name of one ends in .db, .json, .jsonl, .zip, .zst"
        )

    def test_a_damaged_database_of_opencodes_in_a_folder_is_told_and_another_programs_is_not(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        for name in ("opencode.db", "places.db"):
            write(tmp_path / "given" / name, b"SQLite format 3\0" + b"x" * 9000)
        (problem,) = machine.bring_in(str(tmp_path / "given")).problems
        assert Path(problem.path).name == "opencode.db"

    def test_a_zip_that_is_encrypted_is_named(self, machine: Machine, tmp_path: Path) -> None:
        path = tmp_path / "export.zip"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("conversations.json", b"[]")
        data = bytearray(path.read_bytes())
        for sign, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            data[data.index(sign) + at] |= 1
        path.write_bytes(data)
        report = machine.bring_in(str(path))
        assert (report.unread, len(report.problems)) == ([str(path)], 1)

    def test_a_path_that_was_read_in_part_or_kept_away_is_not(self, machine: Machine, tmp_path: Path) -> None:
        folder, kept_away = tmp_path / "given", tmp_path / "secret" / "talk.jsonl"
        write(folder / "talk.jsonl", b"}{\n" + a_short_session().data)
        write(folder / "bad.jsonl", b"}{\n")
        write(kept_away, b"}{\n")
        machine.configure(f'[import]\nexclude = ["{kept_away.parent}/**"]\n')
        for _ in range(2):
            report = machine.bring_in(str(folder), str(folder / "talk.jsonl"), str(kept_away))
            assert (report.unread, len(report.left_out)) == ([], 1)

    def test_a_path_that_was_read_and_is_garbage_now_is_named_each_time(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        path = tmp_path / "talk.jsonl"
        write(path, a_short_session().data)
        assert machine.bring_in(str(path)).unread == []
        write(path, b"\x00\xfe garbage\n" * 5)
        for look in (machine.look, machine.bring_in, machine.bring_in, machine.look):
            found = look(str(path))
            assert list(found.unread) == [str(path)]
            assert {problem.path for problem in found.problems} == {str(path)}
        assert len(machine.thread().messages) == 4

    def test_a_path_of_which_one_file_says_something_is_read(self, machine: Machine, tmp_path: Path) -> None:
        write(tmp_path / "given/empty.jsonl", b"")
        write(tmp_path / "given/talk.jsonl", a_short_session().data)
        for look in (machine.look, machine.bring_in, machine.bring_in, machine.look):
            found = look(str(tmp_path / "given"))
            assert not found.unread
            assert not list(found.problems)

    def test_what_is_older_than_was_asked_for_is_no_path_without_anything(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        path = tmp_path / "talk.jsonl"
        write(path, a_short_session().data)
        os.utime(path, (1_000_000, 1_000_000))
        assert machine.bring_in(str(path), since="2020-01-01").unread == []

    def test_a_path_that_was_read_and_is_damaged_now_is_named(self, machine: Machine, tmp_path: Path) -> None:
        path = tmp_path / "export.zip"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("conversations.json", export_of(a_short_conversation()))
        assert machine.bring_in(str(path)).unread == []
        path.write_bytes(path.read_bytes()[:60])
        assert machine.bring_in(str(path)).unread == [str(path)]
