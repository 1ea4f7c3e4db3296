"""A session is read once: a grown file from its end, a rewritten one anew, a part again when its place is known."""

from __future__ import annotations

import pytest

from raddle.actions.importing.claude_code import ClaudeCode
from tests.builders_claude_code import (
    SESSION,
    ClaudeSession,
    a_session_with_everything,
    a_short_session,
    a_sub_agent,
    starts,
)
from tests.fakes.memory_sources import MemoryDisk
from tests.reading import named, read, same_thread

MAIN = f"{SESSION}.jsonl"
PARTS = f"{SESSION}/subagents"


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk(ClaudeCode())


def lines_of(session: ClaudeSession, count: int | None = None) -> bytes:
    return b"".join(line + b"\n" for line in session.lines[:count])


class TestGrowth:
    def test_a_grown_file_is_read_from_where_it_ended(self, disk: MemoryDisk) -> None:
        talk = a_session_with_everything()
        first = lines_of(talk, 12)
        path = disk.put(MAIN, first)
        disk.read()
        disk.put(MAIN, talk.data)
        disk.read()
        assert disk.bytes_read == len(talk.data) - len(first)
        whole = read(ClaudeCode(), named(MAIN, "-kiln"), talk.data)
        assert same_thread(disk.thread, whole.thread)
        assert disk.source_of(path) == [talk.data]

    def test_nothing_new_opens_nothing(self, disk: MemoryDisk) -> None:
        disk.put(MAIN, a_short_session().data)
        disk.read()
        assert disk.read() == []
        assert disk.opened == []

    def test_growth_at_every_line_gives_what_one_reading_gives(self, disk: MemoryDisk) -> None:
        talk = a_session_with_everything()
        for count in range(len(talk.lines) + 1):
            disk.put(MAIN, lines_of(talk, count))
            disk.read()
        whole = read(ClaudeCode(), named(MAIN, "-kiln"), talk.data)
        assert same_thread(disk.thread, whole.thread)

    def test_a_torn_last_line_is_read_when_it_is_whole(self, disk: MemoryDisk) -> None:
        talk = a_short_session()
        for cut in (700, 701, 1200, len(talk.data) - 1):
            disk.put(MAIN, talk.data[:cut])
            disk.read()
        path = disk.put(MAIN, talk.data)
        (told,) = disk.read()
        assert told.files[0].problems == ()
        assert same_thread(disk.thread, read(ClaudeCode(), named(MAIN, "-kiln"), talk.data).thread)
        assert disk.source_of(path) == [talk.data]

    def test_a_file_whose_only_line_has_no_end_yet_is_read(self, disk: MemoryDisk) -> None:
        talk = a_short_session()
        whole_line, part = talk.lines[0], talk.lines[1][:50]
        path = disk.put(MAIN, whole_line)
        disk.read()
        assert disk.texts() == ["Why is the kiln cold?"]
        disk.put(MAIN, whole_line + b"\n" + part)
        disk.read()
        assert disk.texts() == ["Why is the kiln cold?"]
        assert disk.source_of(path) == [whole_line + b"\n" + part]

    def test_a_file_that_grows_while_it_is_read_gives_the_rest_the_next_time(self, disk: MemoryDisk) -> None:
        talk = a_short_session()
        half = lines_of(talk, 2)
        path = disk.put(MAIN, half)
        disk.growth_while_read[path] = talk.data[len(half) :]
        disk.read()
        disk.read()
        assert disk.bytes_read == len(talk.data) - len(half)
        assert same_thread(disk.thread, read(ClaudeCode(), named(MAIN, "-kiln"), talk.data).thread)

    def test_a_lost_state_costs_one_reading_of_the_whole_and_no_byte_twice(self, disk: MemoryDisk) -> None:
        talk = a_session_with_everything()
        path = disk.put(MAIN, lines_of(talk, 12))
        disk.read()
        disk.states.clear()
        disk.put(MAIN, talk.data)
        disk.read()
        assert disk.bytes_read == len(talk.data)
        assert disk.source_of(path) == [talk.data]
        assert sum(len(data) for _, _, data in disk.kept[path]) == len(talk.data)
        assert disk.entries[path].generation == 0

    def test_a_reading_that_knew_too_little_is_thrown_away_and_begun_anew(self, disk: MemoryDisk) -> None:
        talk = a_session_with_everything()
        first = lines_of(talk, 12)
        path = disk.put(MAIN, first)
        disk.read()
        disk.states[path] = b"of another version"
        disk.put(MAIN, talk.data)
        disk.growth_while_read[path] = b'{"type":"mode"}\n'
        disk.read()
        assert disk.bytes_read == 2 * len(talk.data) - len(first)
        assert same_thread(disk.thread, read(ClaudeCode(), named(MAIN, "-kiln"), talk.data).thread)
        assert disk.source_of(path) == [talk.data]
        assert sum(len(data) for _, _, data in disk.kept[path]) == len(talk.data)

    def test_a_large_file_that_has_to_be_read_whole_is_left_to_who_can(self, disk: MemoryDisk) -> None:
        talk = a_short_session()
        path = disk.put(MAIN, lines_of(talk, 3))
        disk.read()
        disk.states[path] = b"of another version"
        disk.put(MAIN, talk.data)
        (told,) = disk.read(largest=100)
        assert (told.is_too_large, told.files, told.thread_id) == (True, (), "")


class TestRewrittenSources:
    """The archive never shrinks: what the source says now is added."""

    @pytest.mark.parametrize("how", ["cut", "blanked", "emptied", "compacted", "longer"])
    def test_a_rewritten_source_takes_nothing_away(self, disk: MemoryDisk, how: str) -> None:
        talk = a_session_with_everything()
        path = disk.put(MAIN, talk.data)
        disk.read()
        before = list(disk.thread.messages)
        other = ClaudeSession()
        other.user("So far: nothing much.")
        rewritten = {
            "cut": lines_of(talk, 8),
            "blanked": talk.data.replace(b"Both read.", b"").replace(b"Fired.", b""),
            "emptied": b"",
            "compacted": other.data,
            "longer": other.data + talk.data,
        }[how]
        disk.put(MAIN, rewritten)
        disk.read()
        after = {message.id: message for message in disk.thread.messages}
        assert all(len(after[message.id].content) >= len(message.content) for message in before)
        assert disk.entries[path].generation == 1
        assert disk.entries[path].thread_id
        assert disk.source_of(path) == [talk.data, *([rewritten] if rewritten else [])]

    def test_what_is_added_to_an_emptied_source_is_added_to_its_thread(self, disk: MemoryDisk) -> None:
        talk = a_short_session()
        path = disk.put(MAIN, talk.data)
        disk.read()
        disk.put(MAIN, b"")
        disk.read()
        more = ClaudeSession()
        more.now = talk.now
        more.user("Is it warm now?", under=None, uuid="0d9e1d9a-0000-4000-8000-000000000001")
        disk.put(MAIN, more.data)
        disk.read()
        assert "Is it warm now?" in disk.texts()
        assert "Why is the kiln cold?" in disk.texts()
        assert disk.entries[path].generation == 1

    def test_a_source_that_is_gone_takes_nothing_with_it(self, disk: MemoryDisk) -> None:
        path = disk.put(MAIN, a_short_session().data)
        disk.read()
        del disk.files[path]
        assert disk.read() == []
        assert "Why is the kiln cold?" in disk.texts()


class TestParts:
    """Sub-agents hang on the call that started them, in whatever order their files come."""

    def a_tree_of_agents(self) -> tuple[ClaudeSession, ClaudeSession, ClaudeSession]:
        main = ClaudeSession()
        main.user("look")
        main.says(starts("c1", "find the shelf"), message="m1")
        outer = ClaudeSession(agent="fffffff", start=main.now)
        outer.user("find the shelf")
        outer.says(starts("c2", "open the door"), message="m2")
        inner = ClaudeSession(agent="aaaaaaa", start=outer.now)
        inner.user("open the door")
        inner.says("It is open.", message="m3")
        return main, outer, inner

    def parent_of(self, disk: MemoryDisk, content: str) -> str | None:
        (message,) = [message for message in disk.thread.messages if message.content == content]
        above = disk.thread.tree.get(message.parent_id or "")
        return above.tool_calls[0].id if above is not None and above.tool_calls else None

    def places(self, disk: MemoryDisk) -> tuple[str | None, str | None]:
        return self.parent_of(disk, "find the shelf"), self.parent_of(disk, "open the door")

    def test_an_agent_that_an_agent_started_finds_its_place_though_its_file_comes_first(
        self, disk: MemoryDisk
    ) -> None:
        main, outer, inner = self.a_tree_of_agents()
        disk.put(MAIN, main.data)
        paths = [disk.put(f"{PARTS}/agent-{part.agent}.jsonl", part.data) for part in (outer, inner)]
        (told,) = disk.read()
        assert self.places(disk) == ("c1", "c2")
        assert [disk.source_of(path) for path in paths] == [[outer.data], [inner.data]]
        assert not any(file.entry.is_unplaced for file in told.files)

    def test_agents_three_deep_keep_their_order_though_the_clock_steps_back(self, disk: MemoryDisk) -> None:
        main = ClaudeSession()
        main.user("look")
        main.says(starts("c0", "go 1"), message="m0")
        disk.put(MAIN, main.data)
        for depth, name in enumerate("cba", 1):
            part = ClaudeSession(agent=name * 7, start=main.now - depth * 60_000_000)
            part.user(f"go {depth}")
            part.says(starts(f"c{depth}", f"go {depth + 1}"), message=f"m{depth}")
            disk.put(f"{PARTS}/agent-{part.agent}.jsonl", part.data)
        disk.read()
        for depth in (1, 2, 3):
            assert self.parent_of(disk, f"go {depth}") == f"c{depth - 1}"
        for message in disk.thread.messages:
            above = disk.thread.tree.get(message.parent_id or "")
            assert above is None or (above.order, above.id) < (message.order, message.id)

    def test_a_part_that_came_before_its_call_is_placed_when_the_call_comes(self, disk: MemoryDisk) -> None:
        main, outer, inner = self.a_tree_of_agents()
        disk.put(MAIN, lines_of(main, 1))
        parts = {disk.put(f"{PARTS}/agent-{part.agent}.jsonl", part.data): part for part in (outer, inner)}
        disk.read()
        assert self.places(disk) == (None, "c2")
        disk.put(MAIN, main.data)
        (told,) = disk.read()
        assert self.places(disk) == ("c1", "c2")
        assert [disk.source_of(path) for path in parts] == [[part.data] for part in parts.values()]
        assert not any(entry.is_unplaced for entry in disk.entries.values())
        assert [file.problems for file in told.files] == [() for _ in told.files]

    def test_a_part_that_nothing_places_is_not_read_again_while_nothing_more_is_known(
        self, disk: MemoryDisk
    ) -> None:
        main, _, inner = self.a_tree_of_agents()
        disk.put(MAIN, lines_of(main, 1))
        part = disk.put(f"{PARTS}/agent-{inner.agent}.jsonl", inner.data)
        disk.read()
        assert disk.entries[part].is_unplaced
        main.lines[1:] = []
        main.user("And now?")
        disk.put(MAIN, main.data)
        disk.read()
        assert part not in disk.opened
        assert disk.entries[part].is_unplaced

    def test_an_unplaced_part_that_grows_stays_one_and_is_placed_with_all_it_said(
        self, disk: MemoryDisk
    ) -> None:
        main, outer, _ = self.a_tree_of_agents()
        disk.put(MAIN, lines_of(main, 1))
        path = disk.put(f"{PARTS}/agent-{outer.agent}.jsonl", lines_of(outer, 1))
        disk.read()
        disk.put(f"{PARTS}/agent-{outer.agent}.jsonl", outer.data)
        disk.read()
        assert disk.entries[path].is_unplaced
        disk.put(MAIN, main.data)
        disk.read()
        assert self.parent_of(disk, "find the shelf") == "c1"
        assert disk.source_of(path) == [outer.data]

    def test_a_new_part_is_placed_by_what_the_unchanged_files_told(self, disk: MemoryDisk) -> None:
        main, outer, inner = self.a_tree_of_agents()
        disk.put(MAIN, main.data)
        disk.put(f"{PARTS}/agent-{outer.agent}.jsonl", outer.data)
        disk.read()
        path = disk.put(f"{PARTS}/agent-{inner.agent}.jsonl", inner.data)
        disk.read()
        assert disk.opened == [path]
        assert self.places(disk) == ("c1", "c2")

    def test_a_lost_state_of_one_file_takes_no_other_files_links_with_it(self, disk: MemoryDisk) -> None:
        main, outer, inner = self.a_tree_of_agents()
        disk.put(MAIN, main.data)
        path = disk.put(f"{PARTS}/agent-{inner.agent}.jsonl", inner.data)
        disk.read()
        disk.states[path] = b""
        disk.put(f"{PARTS}/agent-{outer.agent}.jsonl", outer.data)
        disk.read()
        assert self.places(disk) == ("c1", "c2")

    def test_a_part_goes_on_where_it_ended_and_stays_in_its_place(self, disk: MemoryDisk) -> None:
        main, outer, _ = self.a_tree_of_agents()
        disk.put(MAIN, main.data)
        disk.put(f"{PARTS}/agent-{outer.agent}.jsonl", lines_of(outer, 1))
        disk.read()
        disk.put(f"{PARTS}/agent-{outer.agent}.jsonl", outer.data)
        disk.read()
        assert disk.bytes_read == len(outer.lines[1]) + 1
        assert self.parent_of(disk, "find the shelf") == "c1"

    def test_parts_whose_main_file_is_gone_are_still_the_sessions(self, disk: MemoryDisk) -> None:
        main, outer, inner = self.a_tree_of_agents()
        path = disk.put(MAIN, main.data)
        disk.put(f"{PARTS}/agent-{outer.agent}.jsonl", outer.data)
        disk.read()
        del disk.files[path]
        disk.put(f"{PARTS}/agent-{inner.agent}.jsonl", inner.data)
        (told,) = disk.read()
        assert told.thread_id == disk.thread.id
        assert self.places(disk) == ("c1", "c2")


class TestDamage:
    def test_a_line_too_long_is_counted_told_and_kept(self, disk: MemoryDisk) -> None:
        talk = a_short_session()
        disk.longest = 5_000
        long = b'{"type":"user","x":"' + b"x" * 10_000 + b'"}'
        data = (
            talk.lines[0] + b"\n" + long + b"\n" + b"}{\n" + b"".join(line + b"\n" for line in talk.lines[1:])
        )
        path = disk.put(MAIN, data)
        (told,) = disk.read()
        problems = told.files[0].problems
        assert [(problem.line, problem.reason.split(" is ")[0]) for problem in problems[:1]] == [
            (2, f"a line of {len(long):,} bytes")
        ]
        assert problems[1].line == 3
        assert disk.texts() == [
            message.content for message in read(ClaudeCode(), named(MAIN), talk.data).thread.messages
        ]
        assert disk.source_of(path) == [data]

    def test_a_long_line_that_has_no_end_yet_is_told_and_waited_for(self, disk: MemoryDisk) -> None:
        talk = a_short_session()
        disk.longest = 5_000
        path = disk.put(MAIN, talk.data + b"x" * 6_000)
        (told,) = disk.read()
        (problem,) = told.files[0].problems
        assert problem.line == len(talk.lines) + 1
        assert disk.entries[path].read_to == len(talk.data)
        more = ClaudeSession()
        more.now = talk.now
        more.user("Still here?", uuid="0d9e1d9a-0000-4000-8000-000000000002", under=talk.last)
        data = talk.data + b"x" * 9_000 + b"\n" + more.data
        disk.put(MAIN, data)
        (told,) = disk.read()
        assert [problem.line for problem in told.files[0].problems] == [len(talk.lines) + 1]
        assert disk.texts()[-1] == "Still here?"
        assert disk.source_of(path) == [data]

    def test_a_file_that_cannot_be_read_costs_itself(self, disk: MemoryDisk) -> None:
        talk, part = a_short_session(), a_sub_agent()
        disk.put(MAIN, talk.data)
        path = disk.put(f"{PARTS}/agent-{part.agent}.jsonl", part.data)
        disk.unreadable.add(path)
        (told,) = disk.read()
        assert [problem.path for problem in told.problems] == [path]
        assert path not in disk.entries
        disk.unreadable.clear()
        disk.read()
        assert "It is shelf 4." in disk.texts()

    def test_a_part_that_goes_away_before_it_is_placed_costs_itself(self, disk: MemoryDisk) -> None:
        main, part = ClaudeSession(), a_sub_agent()
        main.user("look")
        main.says(starts("c1", "find the shelf"), message="m1")
        disk.put(MAIN, lines_of(main, 1))
        path = disk.put(f"{PARTS}/agent-{part.agent}.jsonl", part.data)
        disk.read()
        disk.unreadable.add(path)
        disk.put(MAIN, main.data)
        (told,) = disk.read()
        assert [problem.path for problem in told.problems] == [path]
        assert disk.entries[path].is_unplaced
        assert "look" in disk.texts()

    def test_a_file_of_another_agent_is_named_and_nothing_of_it_kept(self, disk: MemoryDisk) -> None:
        data = b'{"type":"session_meta","payload":{"id":"x","cwd":"/w"}}\n'
        path = disk.put(MAIN, data)
        (told,) = disk.read()
        assert (told.other_agent, told.thread_id) == ("codex", "")
        assert len(told.dropped) == 1
        assert disk.kept == {}
        assert disk.entries[path].read_to == 0
        assert disk.read() == []

    def test_a_long_line_without_a_session_around_it_is_not_said_to_be_kept(self, disk: MemoryDisk) -> None:
        disk.longest = 1_000
        for data, told_as in (
            (b"x" * 1_001 + b"\n", "1,001 bytes is"),
            (b"x" * 2_000, "2,000 bytes so far is"),
        ):
            disk.put(MAIN, data)
            (told,) = disk.read()
            reason = f"a line of {told_as} too long to read, and not kept"
            assert [problem.reason for problem in told.files[0].problems] == [reason]
            assert disk.kept == {}

    def test_a_file_that_turned_into_another_agents_is_told_as_that(self, disk: MemoryDisk) -> None:
        disk.put(MAIN, a_short_session().data)
        disk.read()
        disk.put(MAIN, b'{"type":"session_meta","payload":{"id":"x","cwd":"/w"}}\n')
        (told,) = disk.read()
        assert (told.other_agent, bool(told.thread_id)) == ("codex", True)
