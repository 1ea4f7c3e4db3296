"""The second seed's thread file: read, written, and read again after its own program went on with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from raddle.model.clock import parse_time
from raddle.model.errors import BrokenFormat, NotFound
from raddle.model.threads.codec import decode_file, encode_thread
from raddle.model.threads.edits import Editor
from raddle.model.threads.quorum import QuorumFile, decode_quorum, encode_quorum, is_quorum
from raddle.model.threads.thread import Thread, merge
from tests.builders import a_line, a_message, a_thread, an_author, texts

A, B, C, D = "a" * 32, "b" * 32, "c" * 32, "d" * 32
START = 1_790_000_000


def turn(
    message_id: str, content: str, parent_id: str | None = None, branch_id: str = A, **more: Any
) -> dict[str, Any]:
    """A message in the order of the program's own fields."""
    plain: dict[str, Any] = {"id": message_id}
    if parent_id is not None:
        plain["parent_id"] = parent_id
    plain |= {"branch_id": branch_id, "role": more.pop("role", "user"), "content": content}
    ts = more.pop("ts", START)
    return {**plain, **more, "ts": ts}


def a_file(*messages: dict[str, Any], **fields: Any) -> bytes:
    """A file as the program writes it: two spaces, no newline at the end."""
    plain = {
        "id": "thread-0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "subject": "Q3 audit",
        "created": START,
        "updated": START + 10,
        **fields,
        "messages": list(messages),
    }
    return json.dumps(plain, indent=2, ensure_ascii=False).encode()


FORKED = a_file(
    turn(A, "wsup?"),
    turn(B, "Hi!", A, role="assistant", policy_id="nsed:review", job_id="job-1", ts=START + 1),
    turn(C, "foo ✓", B, ts=START + 1),
    turn(D, "other", B, D, ts=START + 1),
    active_policy="nsed:review",
    orchestrator="https://nsed.example",
    server_thread="session-1",
    pending_job="job-2",
    draft="and then",
)


def after(known: Thread, data: bytes) -> Thread:
    """`known` with what the file says now."""
    thread = known.copy()
    thread.join(decode_quorum(data).delta(known))
    return thread


class TestReading:
    def test_every_field_has_its_place(self) -> None:
        file = decode_quorum(FORKED)
        thread = file.thread()
        assert file.problems == ()
        assert thread.title == "Q3 audit"
        assert (parse_time(thread.time("created_at")) or 0) == START * 1_000_000
        assert (parse_time(thread.time("updated_at")) or 0) == (START + 10) * 1_000_000
        assert thread.shows("active_policy") == "nsed:review"
        assert thread.shows("orchestrator") == "https://nsed.example"
        assert thread.shows("server_thread") == "session-1"
        assert [(job.job_id, job.parent_id, job.responder) for job in thread.pending_jobs] == [
            ("job-2", D, "orchestrator")
        ]
        assert thread.drafts == {"quorum": {D: "and then"}}
        answer = thread.tree.get(B)
        assert answer is not None
        assert (answer.policy_id, answer.job_id, answer.role) == ("nsed:review", "job-1", "assistant")

    def test_the_original_id_is_the_source_and_ours_is_made_of_it(self) -> None:
        one, two = decode_quorum(FORKED), decode_quorum(a_file(id="thread-x"))
        source = one.thread().source
        assert source is not None
        assert (source.agent, source.session_id) == ("quorum", "thread-0a1b2c3d4e5f60718293a4b5c6d7e8f9")
        assert one.thread_id == decode_quorum(FORKED).thread_id != two.thread_id

    def test_the_order_is_that_of_the_list_whatever_its_clocks_say(self) -> None:
        times = (START, START - 99, START)
        listed = (
            turn(A, "one", ts=times[0]),
            turn(B, "two", A, ts=times[1]),
            turn(C, "three", B, ts=times[2]),
        )
        thread = decode_quorum(a_file(*listed)).thread()
        assert texts(thread.messages) == ["one", "two", "three"]
        assert [parse_time(m.ts) for m in thread.messages] == [second * 1_000_000 for second in times]
        tip = thread.tree.tip()
        assert tip is not None
        assert tip.id == C

    def test_the_first_reply_goes_on_and_the_second_forks(self) -> None:
        tree = decode_quorum(FORKED).thread().tree
        assert [tree.fork_depth(name) for name in (A, B, C, D)] == [0, 0, 0, 1]
        assert [tree.branch_of(name) for name in (A, B, C, D)] == [A, A, A, D]

    def test_an_id_that_is_no_uuid_means_the_message_of_this_thread_only(self) -> None:
        messages = (turn("1", "one"), turn("2 / ü", "two", "1"))
        here, there = decode_quorum(a_file(*messages)), decode_quorum(a_file(*messages, id="thread-x"))
        assert {m.id for m in here.messages} & {m.id for m in there.messages} == set()
        assert [m.parent_id for m in here.messages] == [None, here.messages[0].id]

    def test_is_quorum_tells_it_from_a_thread_file(self) -> None:
        assert is_quorum(json.loads(FORKED))
        assert is_quorum({"id": "x", "subject": "", "created": 1, "updated": 1})
        ours = json.loads(encode_thread(decode_quorum(FORKED).thread()))
        assert not any(is_quorum(other) for other in (None, "x", {"id": "x"}, ours))


class TestLegacy:
    LINEAR = (
        {"role": "user", "content": "q1", "ts": START},
        {"role": "assistant", "content": "a1", "ts": START},
        {"role": "user", "content": "q1", "ts": START, "id": "", "branch_id": ""},
    )

    def test_a_linear_list_becomes_one_branch_each_turn_under_the_one_before(self) -> None:
        messages = decode_quorum(a_file(*self.LINEAR)).messages
        assert [m.parent_id for m in messages] == [None, messages[0].id, messages[1].id]
        assert {m.branch_id for m in messages} == {messages[0].id}

    def test_loading_the_same_legacy_file_twice_gives_equal_ids(self) -> None:
        once, again = decode_quorum(a_file(*self.LINEAR)), decode_quorum(a_file(*self.LINEAR))
        assert once.messages == again.messages

    def test_a_mix_keeps_its_edges_and_fills_what_is_missing(self) -> None:
        file = decode_quorum(
            a_file(turn(A, "root"), turn(B, "child", A), {"role": "user", "content": "stray", "ts": 9})
        )
        root, child, stray = file.messages
        assert child.parent_id == root.id
        assert stray.parent_id == child.id
        assert stray.branch_id == child.branch_id


class TestWriting:
    def test_what_was_read_is_written_to_the_byte(self) -> None:
        assert encode_quorum(decode_quorum(FORKED).thread()) == FORKED

    def test_and_so_it_is_after_a_life_as_our_own_file(self) -> None:
        stored = decode_file(encode_thread(decode_quorum(FORKED).thread()))
        assert stored.is_as_written
        assert encode_quorum(stored.thread()) == FORKED

    def test_unknown_fields_and_odd_values_survive_at_both_levels(self) -> None:
        data = a_file(
            turn("m 1", "one", mood="good", stars=None),
            turn("m 2", "two", "m 1", policy_id=7, ts="noon"),
            mood={"a": [1]},
            draft=5,
            visibility="whatever",
        )
        file = decode_quorum(data)
        assert len(file.problems) == 3
        assert json.loads(encode_quorum(file.thread())) == json.loads(data)
        assert json.loads(encode_quorum(decode_file(encode_thread(file.thread())).thread())) == json.loads(
            data
        )

    def test_a_turn_that_was_taken_back_is_not_written(self) -> None:
        thread = decode_quorum(FORKED).thread()
        Editor(thread, an_author()).write_all([(f"gone/{D}", True)])
        assert [m["id"] for m in json.loads(encode_quorum(thread))["messages"]] == [A, B, C]

    def test_what_shows_as_the_branch_is_written_as_the_branch(self) -> None:
        thread = decode_quorum(a_file(turn(A, "root"), turn(C, "late", A, ts=START + 9))).thread()
        thread.join(decode_quorum(a_file(turn(A, "root"), turn(B, "early", A, ts=START + 1))).delta(thread))
        written = {m["content"]: m["branch_id"] for m in json.loads(encode_quorum(thread))["messages"]}
        assert written == {"root": A, "early": A, "late": C}

    def test_a_thread_of_our_own_keeps_its_id_and_has_nothing_the_program_does_not_know(self) -> None:
        thread = a_thread(*a_line("one", "two"), title="Ours")
        editor = Editor(thread, an_author())
        editor.set_draft("m2", "unsent")
        editor.launch_job("job-1", "m1", "openai")
        editor.launch_job("job-2", "m2", "openai")
        plain = json.loads(encode_quorum(thread))
        assert plain["id"] == thread.id
        assert list(plain) == ["id", "subject", "created", "updated", "pending_job", "draft", "messages"]
        assert (plain["subject"], plain["draft"], plain["pending_job"]) == ("Ours", "unsent", "job-2")
        assert list(plain["messages"][1]) == ["id", "parent_id", "branch_id", "role", "content", "ts"]

    def test_notices_and_sub_agents_are_left_out_and_what_stands_under_them_moves_up(self) -> None:
        one = a_message("m1", "one", seq=1)
        notice = a_message("n", "<env>", parent_id="m1", kind="notice", seq=2)
        sub = a_message("s", "sub", parent_id="m1", is_sidechain=True, seq=3)
        two = a_message("m2", "two", parent_id="n", branch_id="m1", seq=4)
        written = json.loads(encode_quorum(a_thread(one, notice, sub, two)))["messages"]
        assert [(m["id"], m.get("parent_id")) for m in written] == [("m1", None), ("m2", "m1")]

    def test_one_branch_is_written_alone(self) -> None:
        written = json.loads(encode_quorum(decode_quorum(FORKED).thread(), D))["messages"]
        assert [m["id"] for m in written] == [A, B, D]
        with pytest.raises(NotFound):
            encode_quorum(decode_quorum(FORKED).thread(), "nobody")

    def test_a_file_that_raddle_wrote_comes_back_as_a_thread_of_its_own(self) -> None:
        thread = a_thread(*a_line("one", "two"), title="Ours")
        back = decode_quorum(encode_quorum(thread))
        assert back.thread_id != thread.id
        assert encode_quorum(back.thread()) == encode_quorum(thread)


def went_on(export: bytes, *messages: dict[str, Any], **fields: Any) -> bytes:
    """An export, after its program went on with it and wrote it anew."""
    plain = json.loads(export) | fields
    plain["messages"] += messages
    return json.dumps(plain, indent=2).encode()


class TestAnExportThatComesBack:
    def test_its_new_turns_are_those_of_the_thread_it_was_made_of(self) -> None:
        thread = a_thread(*a_line("one", "two"), title="Ours")
        _, two = thread.messages
        file = decode_quorum(
            went_on(encode_quorum(thread), turn(A, "three", two.id, ts=0), turn(B, "four", A, ts=0))
        )
        thread.join(file.turns_for(thread))
        assert texts(thread.tree.path_to_root(B)) == ["one", "two", "three", "four"]
        tip = thread.tree.tip()
        assert tip is not None
        assert tip.id == B, "whatever the clock of that program says"
        assert (thread.title, thread.source, thread.drafts) == ("Ours", None, {})

    def test_what_the_export_has_less_of_takes_nothing_away(self) -> None:
        thread = a_thread(a_message("m1", "one", ts="2026-11-30T12:00:00.5Z", thinking="hm"), title="Ours")
        Editor(thread, an_author()).set_draft("m1", "typing")
        export = went_on(encode_quorum(thread), subject="Theirs", draft="", server_thread="s")
        assert decode_quorum(export).turns_for(thread).is_empty

    def test_ids_that_are_no_uuids_are_known_again(self) -> None:
        thread = a_thread(a_message("m 1", "one", seq=1), a_message("m 2", "two", parent_id="m 1", seq=2))
        export = went_on(encode_quorum(thread), turn("x y", "three", "m 2"), turn(A, "four", "x y"))
        thread.join(decode_quorum(export).turns_for(thread))
        assert texts(thread.tree.path_to_root(A)) == ["one", "two", "three", "four"]
        assert decode_quorum(export).turns_for(thread).is_empty
        assert [m["id"] for m in json.loads(encode_quorum(thread))["messages"]] == ["m 1", "m 2", "x y", A]

    def test_two_machines_that_read_it_have_the_same_turns(self) -> None:
        one = a_thread(*a_line("one", "two"))
        export = went_on(encode_quorum(one), turn(A, "three", one.messages[0].id, ts=0))
        other = one.copy()
        Editor(other, an_author("bbbbbbbb")).append("user", "meanwhile")
        one.join(decode_quorum(export).turns_for(one))
        other.join(decode_quorum(export).turns_for(other))
        assert one.tree.get(A) == other.tree.get(A)


class TestReadingAgain:
    def test_an_unchanged_file_says_nothing_new(self) -> None:
        known = decode_quorum(FORKED).thread()
        assert decode_quorum(FORKED).delta(known).is_empty

    def test_new_turns_are_added_and_known_ones_left_alone(self) -> None:
        known = decode_quorum(a_file(turn(A, "one"))).thread()
        grown = after(
            known, a_file(turn(A, "other words"), turn(B, "two", A, role="assistant"), updated=START + 20)
        )
        assert texts(grown.messages) == ["one", "two"]

    def test_a_turn_that_is_gone_from_the_file_stays(self) -> None:
        known = decode_quorum(FORKED).thread()
        assert len(after(known, a_file(turn(A, "wsup?"), updated=START + 20)).messages) == 4

    def test_a_job_and_a_draft_that_are_gone_from_the_file_are_cleared(self) -> None:
        known = decode_quorum(FORKED).thread()
        again = after(known, a_file())
        assert (again.pending_jobs, again.drafts) == ([], {})
        assert again.shows("server_thread") is None

    def test_a_draft_that_changes_while_updated_stands_still_is_followed(self) -> None:
        thread = decode_quorum(a_file(turn(A, "one"), draft="z")).thread()
        for text in ("a", "zz", "b"):
            thread = after(thread, a_file(turn(A, "one"), draft=text))
            assert thread.drafts == {"quorum": {A: text}}

    def test_an_older_copy_takes_nothing_back(self) -> None:
        known = decode_quorum(a_file(turn(A, "one"), subject="new", updated=START + 99)).thread()
        again = after(known, a_file(turn(A, "one"), subject="old", updated=START, pending_job="job-0"))
        assert again.title == "new"

    def test_what_a_person_wrote_here_is_left_alone(self) -> None:
        known = decode_quorum(FORKED).thread()
        Editor(known, an_author()).rename("my own title")
        assert after(known, a_file(subject="theirs", updated=START + 99)).title == "my own title"

    def test_two_machines_that_read_one_file_have_one_thread(self) -> None:
        one, two = decode_quorum(FORKED).thread(), decode_quorum(FORKED).thread()
        assert one.whole() == merge(one, two).whole()


class TestDamage:
    @pytest.mark.parametrize(
        "data", [b"", b"{", b"[]", b"7", b'{"messages": []}', b'{"id": 7}', b'{"id": "x", "messages": {}}']
    )
    def test_what_is_no_thread_at_all_is_broken(self, data: bytes) -> None:
        with pytest.raises(BrokenFormat):
            decode_quorum(data)

    def read(self, *messages: Any, **fields: Any) -> QuorumFile:
        return decode_quorum(a_file(*messages, **fields))

    def test_a_message_that_is_no_object_costs_itself_only(self) -> None:
        listed: list[Any] = [turn(A, "one"), 7, turn(B, "two", A)]
        file = self.read(*listed)
        assert texts(file.messages) == ["one", "7", "two"]
        assert [m.role for m in file.messages] == ["user", "unknown", "user"]
        assert file.problems[0] == "message 2 is not an object: kept as text"

    def test_missing_times_and_texts_are_named(self) -> None:
        file = self.read({"content": ["x"]}, created=None, updated="now")
        assert file.problems == (
            "the thread's created is not a time in seconds",
            "the thread's updated is not a time in seconds",
            "message 1: its content is not text",
            "message 1: its ts is not a time in seconds",
        )
        assert file.messages[0].content == '["x"]'
        assert json.loads(encode_quorum(file.thread()))["updated"] == "now"

    def test_a_second_message_of_one_id_is_kept_beside_the_first(self) -> None:
        file = self.read(turn(A, "one"), turn(B, "two", A), turn(B, "two, differently", A), turn(B, "two", A))
        assert texts(file.messages) == ["one", "two", "two, differently"]
        assert len({m.id for m in file.messages}) == 3
        assert texts(file.thread().tree.lost()) == ["two, differently"]
        assert file.problems[0] == "message 4 stands twice: taken once"

    def test_bytes_that_are_half_broken_cost_what_they_touch(self) -> None:
        data = FORKED.replace("✓".encode(), b"\xff\\ud800")
        file = decode_quorum(data)
        assert file.messages[2].content == "foo ��"
        assert len(file.problems) == 2

    @pytest.mark.parametrize("value", [10**30, -(10**30), True, 1.5])
    def test_a_time_that_no_calendar_holds_is_kept(self, value: Any) -> None:
        data = a_file(turn(A, "one", ts=value), created=value)
        file = decode_quorum(data)
        assert len(file.problems) == 2
        assert json.loads(encode_quorum(file.thread())) == json.loads(data)
