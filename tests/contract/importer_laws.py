"""The laws every importer keeps, tried on session files of its own.

An importer's test makes a subclass of `ImporterLaws`, names the importer and gives a handful of files; each
law is then tried at every line of every file. What only one agent's format can show (forks, replays,
sub-agents) is in that importer's unit tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct

from raddle.actions.importing.importer import Importer, SourceName, thread_id_of
from raddle.model.clock import parse_time
from raddle.model.ids import is_thread_id, parse_message_id
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.fields import FIELDS
from raddle.model.threads.message import COMPACTION, NOTICE, SUMMARY, TURN
from tests.reading import Reading, difference, named, read, read_on, same_thread

STATE_BYTES = 128 << 10
_JUNK = (b"\0" * 64, b'\xff\xfe{"half', b"}{", b"null", b"[1]", b'{"type":"from-the-future","x":1}')


def _with_numbers(line: bytes, number: int) -> bytes:
    """The line with that in the place of every number; one that is no JSON as it is."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [changed(inner) for inner in value]
        return number if isinstance(value, int | float) and not isinstance(value, bool) else value

    try:
        return json.dumps(changed(json.loads(line)), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except ValueError:
        return line


class SessionFile(Struct, frozen=True, kw_only=True):
    """A session file to try the laws on; `problems`: how many it is known to have."""

    name: str
    source: SourceName
    lines: list[bytes]
    problems: int = 0

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)


class ImporterLaws:
    """Subclass this, say which importer and which files, and name the class Test…"""

    importer: Importer
    files: tuple[SessionFile, ...]

    def each(self) -> Iterator[tuple[SessionFile, Reading]]:
        for file in self.files:
            yield file, read(self.importer, file.source, file.data)

    def as_written(self, ts: str) -> bytes:
        """A message's time as the agent writes it, to the second."""
        return ts[:19].encode()

    def must_equal(self, mine: Reading, whole: Reading, told: str) -> None:
        assert mine.ending.thread_id == whole.ending.thread_id, told
        assert same_thread(mine.thread, whole.thread), f"{told}\n{difference(mine.thread, whole.thread)}"

    def test_a_file_holds_a_session(self) -> None:
        for file, reading in self.each():
            assert reading.thread.messages, file.name
            assert is_thread_id(reading.ending.thread_id), file.name
            assert len(reading.problems) == file.problems, (file.name, reading.problems)

    def test_importing_twice_is_importing_once(self) -> None:
        for file, reading in self.each():
            again = read(self.importer, file.source, file.data)
            self.must_equal(again, reading, file.name)
            assert not again.thread.join(reading.thread.whole()), "a second import brings news"

    def test_a_copy_under_another_name_is_the_same_session(self) -> None:
        for file, reading in self.each():
            if file.source.sidecar or file.source.folders:
                continue  # its place among its session's files is part of what it is
            for name in (f"copy of {file.source.name}", "11111111-2222-4333-8444-555555555555.jsonl"):
                copy = read(self.importer, named(name), file.data)
                self.must_equal(copy, reading, f"{file.name} as {name}")

    def test_a_session_cut_short_has_the_same_thread_id(self) -> None:
        for file, reading in self.each():
            for cut in range(1, len(file.lines)):
                part = read(self.importer, file.source, file.lines[:cut])
                assert part.ending.thread_id in ("", reading.ending.thread_id), f"{file.name} at {cut}"

    def test_ids_come_from_the_session_alone(self) -> None:
        for file, reading in self.each():
            ending = reading.ending
            assert ending.thread_id == thread_id_of(self.importer.agent, ending.session_id), file.name
            for message in reading.thread.messages:
                assert parse_message_id(message.id)

    def test_a_file_that_grows_gives_what_it_gives_at_once(self) -> None:
        for file, reading in self.each():
            for cut in range(1, len(file.lines)):
                grown = read_on(self.importer, file.source, file.lines[:cut], file.lines[cut:])
                self.must_equal(grown, reading, f"{file.name} grew at {cut}")

    def test_a_file_that_grows_line_by_line_gives_what_it_gives_at_once(self) -> None:
        for file, reading in self.each():
            grown = read(self.importer, file.source, b"")
            for at, line in enumerate(file.lines):
                after = read(self.importer, file.source, [line], before=grown)
                if after.ending.needs_whole or not after.ending.state:
                    whole = read(self.importer, file.source, file.lines[: at + 1])
                    whole.thread.join(grown.thread.whole())
                    after = whole
                grown = after
            self.must_equal(grown, reading, file.name)

    def test_a_last_line_that_was_half_written_is_read_when_it_is_whole(self) -> None:
        for file, reading in self.each():
            for cut in range(1, len(file.lines)):
                line = file.lines[cut]
                torn = b"".join(one + b"\n" for one in file.lines[:cut]) + line[: len(line) * 2 // 3]
                before = read(self.importer, file.source, torn)
                if not before.ending.state:
                    continue
                after = read(self.importer, file.source, file.lines[cut:], before=before)
                if not after.ending.needs_whole:
                    self.must_equal(after, reading, f"{file.name} torn in line {cut + 1}")

    def test_a_last_line_without_its_end_is_read_once(self) -> None:
        for file, reading in self.each():
            unended = read(self.importer, file.source, file.data[:-1])
            self.must_equal(unended, reading, file.name)
            after = read(self.importer, file.source, file.lines[-1:], before=unended)
            if not after.ending.needs_whole:
                self.must_equal(after, reading, file.name)

    def test_the_archive_never_shrinks_with_its_source(self) -> None:
        for file, reading in self.each():
            for cut in range(1, len(file.lines)):
                archive = reading.thread.copy()
                archive.join(read(self.importer, file.source, file.lines[:cut]).thread.whole())
                for message in reading.thread.messages:
                    kept = archive.tree.get(message.id)
                    assert kept is not None, file.name
                    assert len(kept.content) >= len(message.content), (file.name, cut)

    @pytest.mark.parametrize("junk", _JUNK, ids=repr)
    def test_a_line_of_junk_costs_nothing_but_itself(self, junk: bytes) -> None:
        for file, reading in self.each():
            for at in range(len(file.lines) + 1):
                lines = [*file.lines[:at], junk, *file.lines[at:]]
                damaged = read(self.importer, file.source, lines)
                self.must_equal(damaged, reading, f"{file.name} with {junk!r} before line {at + 1}")
                if not junk.startswith(b'{"type'):
                    told = {problem.line for problem in damaged.problems}
                    assert at + 1 in told, f"{file.name}: {damaged.problems}"

    def test_numbers_that_no_store_takes_harm_nobody(self) -> None:
        for file, _ in self.each():
            for at, line in enumerate(file.lines):
                odd = _with_numbers(line, 10**30)
                reading = read(self.importer, file.source, [*file.lines[:at], odd, *file.lines[at + 1 :]])
                assert encode_thread(reading.thread), f"{file.name}, line {at + 1}"

    def test_a_torn_copy_of_a_line_costs_nothing_but_itself(self) -> None:
        for file, reading in self.each():
            for at, line in enumerate(file.lines):
                lines = [*file.lines[:at], line[: len(line) // 2], *file.lines[at:]]
                damaged = read(self.importer, file.source, lines)
                self.must_equal(damaged, reading, f"{file.name} torn before line {at + 1}")
                assert any(problem.line == at + 1 for problem in damaged.problems), file.name

    def test_two_lines_glued_together_are_both_read(self) -> None:
        for file, reading in self.each():
            for at in range(len(file.lines) - 1):
                glued = file.lines[at] + file.lines[at + 1]
                damaged = read(self.importer, file.source, [*file.lines[:at], glued, *file.lines[at + 2 :]])
                if len(damaged.thread.messages) != len(reading.thread.messages):
                    pytest.fail(f"{file.name}: lines {at + 1} and {at + 2}: {damaged.problems}")
                self.must_equal(damaged, reading, f"{file.name}: lines {at + 1} and {at + 2}")

    def test_line_ends_of_another_system_and_empty_lines_change_nothing(self) -> None:
        for file, reading in self.each():
            data = b"\xef\xbb\xbf" + b"\r\n\r\n".join(file.lines) + b"\r\n"
            self.must_equal(read(self.importer, file.source, data), reading, file.name)

    def test_a_lost_line_takes_no_other_with_it(self) -> None:
        for file, reading in self.each():
            for at in range(len(file.lines)):
                less = read(self.importer, file.source, [*file.lines[:at], *file.lines[at + 1 :]])
                assert less.thread.tree.lost() == [], f"{file.name} without line {at + 1}"
                assert len(less.thread.messages) >= len(reading.thread.messages) - 3, file.name

    def test_a_line_too_long_to_read_is_counted_and_told(self) -> None:
        for file, _ in self.each():
            reader = self.importer.open(file.source)
            reader.feed(file.lines[:1])
            reader.skip_line("too long")
            reader.feed([b"}{"])
            lines = [problem.line for problem in reader.problems]
            assert lines[-2:] == [2, 3], file.name

    def test_a_parent_stands_before_its_children(self) -> None:
        for file, reading in self.each():
            known = {message.id: (message.order, message.id) for message in reading.thread.messages}
            for message in reading.thread.messages:
                if message.parent_id is not None and message.parent_id in known:
                    assert known[message.parent_id] < known[message.id], file.name
            assert reading.thread.tree.lost() == [] or file.source.folders, file.name

    def test_messages_are_given_in_their_order(self) -> None:
        for file, reading in self.each():
            seen: set[str] = set()
            orders = [m.order for m in reading.messages if not (m.id in seen or seen.add(m.id))]  # type: ignore[func-returns-value]
            assert orders == sorted(orders), file.name

    def test_branch_ids_are_what_an_append_would_have_written(self) -> None:
        for file, reading in self.each():
            has_reply: set[str] = set()
            for message in reading.thread.messages:
                above = reading.thread.tree.get(message.parent_id or "")
                if above is None or above.is_sidechain != message.is_sidechain or above.id in has_reply:
                    assert message.branch_id == message.id, file.name
                else:
                    assert message.branch_id == above.branch_id, file.name
                if above is not None and above.is_sidechain == message.is_sidechain:
                    has_reply.add(above.id)

    def test_nothing_is_invented(self) -> None:
        for file, reading in self.each():
            for message in reading.thread.messages:
                assert message.device == ""
                assert message.kind in (TURN, NOTICE, COMPACTION, SUMMARY)
                assert message.rev >= 0
                if message.ts:
                    assert parse_time(message.ts) is not None, file.name
                    assert self.as_written(message.ts) in file.data, file.name
            for path, n, value in reading.ending.registers:
                assert path in FIELDS, path
                assert isinstance(n, int)
                assert value not in (None, "", {}), path

    def test_registers_are_written_once_each(self) -> None:
        for file, reading in self.each():
            paths = [path for path, _, _ in reading.ending.registers]
            assert len(paths) == len(set(paths)), file.name

    def test_the_source_is_the_agent_and_its_session_and_nothing_local(self) -> None:
        for _, reading in self.each():
            if (source := reading.register("source")) is not None:
                assert source == {"agent": self.importer.agent, "session_id": reading.ending.session_id}

    def test_a_state_is_small(self) -> None:
        for file, reading in self.each():
            assert len(reading.ending.state) < STATE_BYTES, file.name

    def test_a_state_that_is_damaged_or_foreign_asks_for_the_whole_file(self) -> None:
        for file, reading in self.each():
            for state in (b"\x00", b"not a state", reading.ending.state[: len(reading.ending.state) // 2]):
                reader = self.importer.open(file.source, state=state or b"?")
                reader.feed(file.lines)
                assert reader.finish().needs_whole, file.name
                assert self.importer.links(state) is None

    def test_an_empty_file_holds_no_session(self) -> None:
        for data in (b"", b"\n\n", b"\0\0\0"):
            reading = read(self.importer, named("empty.jsonl"), data)
            assert reading.messages == []
            assert reading.ending.thread_id == ""
