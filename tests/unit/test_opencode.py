"""What only OpenCode's records can show: changes in place, forks under new ids, steps back, sub-agents' sessions."""

from __future__ import annotations

from typing import Any

import pytest

from raddle.actions.importing.importer import Links
from raddle.actions.importing.opencode import OpenCode
from raddle.model.threads.message import COMPACTION, NOTICE, TURN
from tests.builders_opencode import (
    FOLDER,
    SESSION,
    START,
    STEP,
    OpenCodeSession,
    a_session_with_everything,
    a_short_session,
    delegates,
    failed,
    file,
    ran,
    runs,
    shown,
    thinks,
    tokens,
)
from tests.reading import Reading, difference, named, read, read_on, same_thread

OTHER = "ses_fork0000000000000000000001"


def imported(session: OpenCodeSession) -> Reading:
    return read(OpenCode(), named(SESSION), session.lines)


def grown(session: OpenCodeSession, cut: int) -> Reading:
    return read_on(OpenCode(), named(SESSION), session.lines[:cut], session.lines[cut:])


def test_a_message_has_its_words_thoughts_calls_and_results() -> None:
    reading = imported(a_short_session())
    assert reading.path() == ["Why is the kiln cold?", "I'll look.", "relay open", "The relay is open."]
    said = reading.message("I'll look.")
    assert said.thinking == "Look at the log."
    assert (said.tool_calls[0].tool_name, said.tool_calls[0].arguments_json) == (
        "bash",
        {"command": "tail log"},
    )
    assert (said.provider, said.model) == ("mock", "m1")
    answered = reading.message("relay open")
    assert (answered.role, answered.tool_call_id, answered.tool_name) == ("tool", "c1", "bash")
    assert answered.parent_id == said.id
    assert answered.ts == "2026-02-01T09:00:04.500000Z"


def test_the_facts_of_a_session_are_its_registers() -> None:
    reading = imported(a_short_session())
    assert reading.register("title") == "Cold kiln"
    assert reading.register("workspace_root") == FOLDER
    assert reading.register("cwd") == FOLDER
    assert reading.register("client_version") == "1.18.33"
    assert reading.register("model") == {"provider": "mock", "model": "m1"}
    assert reading.register("created_at") == "2026-02-01T09:00:00.000000Z"
    assert reading.register("last_activity_at") == "2026-02-01T09:00:03.500000Z"
    assert reading.register("source") == {"agent": "opencode", "session_id": SESSION}


def test_a_session_without_a_title_of_its_own_is_called_by_the_first_words_typed() -> None:
    session = OpenCodeSession(title="New session - 2026-02-01T09:00:00.000Z")
    session.user(shown("not typed"))
    session.user("Dry the bowls\nslowly")
    assert imported(session).register("title") == "Dry the bowls"
    session.header(SESSION, title="Drying bowls")
    assert imported(session).register("title") == "Drying bowls"


def test_a_title_that_changed_is_written_later_than_the_one_before() -> None:
    session = a_short_session()
    first = imported(session)
    session.header(SESSION, title="Warm kiln")
    assert read(OpenCode(), named(SESSION), session.lines[-1:], before=first).register("title") == "Warm kiln"


def test_cached_tokens_stand_apart_and_thoughts_count_as_output() -> None:
    session = OpenCodeSession()
    asked = session.user("how much?")
    session.says(asked, "new", info={"tokens": tokens(40, reasoning=10), "cost": 0.00058})
    session.says(
        asked, "old", info={"tokens": {"input": 120, "output": 16, "reasoning": 6}, "cost": {"usd": 1}}
    )
    session.says(asked, "none", info={"tokens": {**tokens(0, input_tokens=0), "cache": {}}, "cost": 0})
    reading = imported(session)
    usage = reading.message("new").usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (400, 50, 800)
    assert (usage.cache_write_tokens, usage.cost_usd) == (0, 0.00058)
    usage = reading.message("old").usage
    assert usage is not None
    assert (usage.output_tokens, usage.cost_usd) == (16, None)
    assert reading.message("none").usage is None


def test_a_message_of_several_steps_counts_each_of_them_once() -> None:
    session = OpenCodeSession()
    asked = session.user("go")
    step = {"type": "step-finish", "reason": "stop", "cost": 0.5}
    session.says(asked, "done", {**step, "tokens": tokens(3)}, {**step, "tokens": tokens(4)}, out=4)
    usage = imported(session).message("done").usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (800, 7, 0.5)


def test_what_the_program_put_beside_typed_words_is_a_notice() -> None:
    session = OpenCodeSession()
    session.user("read @kiln.md", shown("<path>kiln.md</path>"), file("file:///kiln.md", mime="text/plain"))
    session.user(shown("The following tool was executed by the user"))
    typed, context, told = imported(session).thread.messages
    assert (typed.content, typed.kind, typed.extra) == ("read @kiln.md", TURN, {"files": ["file:///kiln.md"]})
    assert (context.content, context.kind, context.parent_id) == ("<path>kiln.md</path>", NOTICE, typed.id)
    assert (told.kind, told.parent_id) == (NOTICE, context.id)


def test_a_picture_is_an_attachment_also_one_that_a_tool_gave() -> None:
    session = OpenCodeSession()
    asked = session.user("see", file())
    shot = ran("c1", "a shot")
    shot["state"]["attachments"] = [file("data:image/png;base64,d29ybGQ=", name="shot.png")]
    session.says(asked, shot, file("data:text/plain,50%25%20off", mime="text/plain", name="sale.txt"))
    reading = imported(session)
    assert [blob.body for blob in reading.blobs] == [b"hello", b"world", b"50% off"]
    assert [one.name for one in reading.message("see").attachments] == ["dot.png"]
    assert [one.name for one in reading.message("a shot").attachments] == ["shot.png"]


def test_a_compaction_is_a_summary_and_what_stood_before_it_stays() -> None:
    reading = imported(a_session_with_everything())
    assert reading.message("So far: bowls.").kind == COMPACTION
    path = reading.path()
    assert path.index("Both ran.") < path.index("So far: bowls.") < path.index("go on")


def test_an_answer_that_failed_tells_its_error_and_is_no_answer() -> None:
    session = OpenCodeSession()
    asked = session.user("go")
    session.says(asked, info={"error": {"name": "APIError", "data": {"message": "overloaded"}}})
    session.says(
        asked, "half an ans", info={"error": {"name": "MessageAbortedError", "data": {"message": "x"}}}
    )
    reading = imported(session)
    alone = reading.message("APIError: overloaded")
    assert (alone.kind, alone.is_error) == (NOTICE, True)
    half = reading.message("half an ans")
    assert (half.kind, half.is_error, half.extra) == (TURN, True, {"error": "MessageAbortedError"})


def test_sub_agents_hang_on_the_call_that_started_them() -> None:
    reading = imported(a_session_with_everything())
    call = reading.message("I delegate.")
    for prompt in ("look left", "look right"):
        start = reading.message(prompt)
        assert (start.parent_id, start.is_sidechain, start.branch_id) == (call.id, True, start.id)
        assert start.extra["agent_type"] == "general"
    assert reading.message("left!").is_sidechain
    assert "left is clear" in reading.path(), "the result of the call is in the main line"
    assert not any(
        message.is_sidechain for message in reading.thread.tree.path_to_root(reading.message("go on").id)
    )


@pytest.mark.parametrize(
    "call",
    [
        delegates("t1", "look left", "ses_left"),
        delegates("t1", "something", output='<task id="ses_left" state="completed">'),
        delegates("t1", "something", output="task_id: ses_left (for resuming)"),
        delegates("t1", "look left"),
    ],
    ids=["metadata", "output", "old output", "prompt"],
)
def test_each_trace_of_a_call_leads_to_its_sub_agent(call: dict[str, Any]) -> None:
    session = OpenCodeSession()
    asked = session.user("delegate")
    session.says(asked, "first call", call)
    session.says(asked, "later words")
    session.sub_agent("ses_left")
    session.user("look left", session="ses_left")
    reading = imported(session)
    assert reading.message("look left").parent_id == reading.message("first call").id


def test_a_sub_agent_of_a_sub_agent_hangs_on_its_call() -> None:
    session = OpenCodeSession()
    session.says(session.user("delegate"), "one", delegates("t1", "look left", "ses_left"))
    session.sub_agent("ses_left")
    session.says(
        session.user("look left", session="ses_left"),
        "two",
        delegates("t2", "look deeper", "ses_deep"),
        session="ses_left",
    )
    session.sub_agent("ses_deep", parent="ses_left")
    session.user("look deeper", session="ses_deep")
    reading = imported(session)
    assert reading.message("look deeper").parent_id == reading.message("two").id


def test_a_sub_agent_whose_call_is_not_known_is_lost_from_nobody() -> None:
    session = a_short_session()
    session.sub_agent("ses_left")
    session.user("look left", session="ses_left")
    start = imported(session).message("look left")
    assert start.is_sidechain
    assert start.parent_id == imported(session).message("The relay is open.").id


def test_a_fork_is_a_thread_of_its_own_whose_shared_turns_have_the_same_ids() -> None:
    session = a_session_with_everything()
    fork = session.fork(OTHER)
    fork.says(fork.user("another way"), "fine")
    original, copy = imported(session), imported(fork)
    assert original.ending.thread_id != copy.ending.thread_id
    shared = {message.id for message in original.thread.messages if not message.is_sidechain}
    mine = {message.id for message in copy.thread.messages}
    assert shared < mine
    assert len(mine - shared) == 2
    for message in copy.thread.messages:
        if message.id in shared:
            assert message.content == original.thread.tree.get(message.id).content  # type: ignore[union-attr]


def test_a_fork_from_the_middle_shares_what_came_before() -> None:
    session = a_short_session()
    last = session.user("And now?")
    fork = session.fork(OTHER, before=last)
    fork.user("And then?")
    original, copy = imported(session).thread.messages, imported(fork).thread.messages
    assert [message.id for message in copy[:-1]] == [message.id for message in original[:-1]]
    assert copy[-1].id != original[-1].id


def test_two_sessions_begun_in_one_millisecond_share_nothing() -> None:
    one, other = OpenCodeSession(), OpenCodeSession(OTHER)
    for session, words in ((one, "Heat it"), (other, "Dry it")):
        session.says(session.user(words), "Done.")
    mine, theirs = ({message.id for message in imported(session).thread.messages} for session in (one, other))
    assert not mine & theirs


def test_sub_agents_asked_the_same_in_one_millisecond_stay_apart() -> None:
    session = OpenCodeSession()
    session.says(
        session.user("delegate"),
        "calls",
        delegates("t1", "look", "ses_one1"),
        delegates("t2", "look", "ses_two2"),
    )
    for name in ("ses_one1", "ses_two2"):
        session.sub_agent(name)
        session.now = START + 9000
        session.says(session.user("look", session=name), "seen", session=name)
    messages = imported(session).thread.messages
    assert [message.content for message in messages].count("look") == 2
    assert [message.content for message in messages].count("seen") == 2


def test_a_message_that_is_half_written_is_finished_in_place() -> None:
    session = OpenCodeSession()
    asked = session.user("go")
    message = session.says(asked, runs("c1", command="ls"), info={"tokens": tokens(0, input_tokens=0)})
    session.change(
        message, thinks("hm"), "On it.", ran("c1", "a", command="ls"), *STEP, info={"tokens": tokens(7)}
    )
    for cut in range(1, len(session.lines)):
        reading = grown(session, cut)
        assert reading.path() == ["go", "On it.", "a"], cut
        said = reading.message("On it.")
        assert said.thinking == "hm"
        assert said.usage is not None
        assert said.usage.output_tokens == 7


def test_the_result_of_a_call_after_which_the_talk_went_on_is_not_hidden() -> None:
    session = OpenCodeSession()
    message = session.says(session.user("go"), "calling", runs("c1", command="sleep"))
    session.user("meanwhile")
    session.change(message, "calling", ran("c1", "late", command="sleep"))
    for cut in range(1, len(session.lines)):
        assert grown(session, cut).path() == ["go", "calling", "meanwhile", "late"], cut


def test_a_part_that_was_emptied_later_blanks_nothing() -> None:
    session = OpenCodeSession()
    message = session.says(session.user("go"), "words", thinks("thoughts"), ran("c1", "long output"))
    session.change(message, "w", {**thinks(""), "text": ""}, ran("c1", "", compacted=True))
    for cut in range(1, len(session.lines)):
        reading = grown(session, cut)
        assert reading.path() == ["go", "words", "long output"], cut
        assert reading.message("words").thinking == "thoughts"


def test_what_is_told_again_unchanged_is_no_news() -> None:
    session = a_session_with_everything()
    before = imported(session)
    for name in session.messages:
        session.tell(name)
    after = read(OpenCode(), named(SESSION), session.lines[-len(session.messages) :], before=before)
    assert after.messages == []
    assert same_thread(after.thread, before.thread)


def test_a_message_emptied_in_one_field_and_grown_in_another_keeps_both() -> None:
    session = OpenCodeSession()
    message = session.says(session.user("go"), thinks("thoughts"), runs("c1", command="ls"))
    before = imported(session)
    session.change(message, "a long answer, longer than the thoughts were", runs("c2", command="ps"))
    after = read(OpenCode(), named(SESSION), session.lines[-1:], before=before)
    said = after.message("a long answer, longer than the thoughts were")
    assert said.thinking == "thoughts"
    assert sorted(call.id for call in said.tool_calls) == ["c1", "c2"]


def test_an_older_store_read_after_a_newer_one_takes_nothing_back() -> None:
    session = OpenCodeSession()
    message = session.says(session.user("go"), runs("c1", command="ls"))
    older = session.lines.copy()
    session.change(message, "Done.", ran("c1", "a", command="ls"), *STEP)
    newer = [session.lines[0], session.lines[1], session.lines[-1]]
    one, other = read(OpenCode(), named(SESSION), newer), read(OpenCode(), named(SESSION), older)
    whole = one.thread.copy()
    whole.join(other.thread.whole())
    assert [message.content for message in whole.messages] == ["go", "Done.", "a"]
    assert {message.id for message in other.thread.messages} <= {
        message.id for message in one.thread.messages
    }


def test_typing_again_after_a_step_back_is_a_fork_of_the_person() -> None:
    session = a_short_session()
    last = session.last[SESSION]
    session.says(session.user("Heat it"), "Hot.")
    session.says(session.user("No, dry it", after=last), "Dry.")
    reading = imported(session)
    assert reading.message("Heat it").parent_id == reading.message("No, dry it").parent_id
    assert reading.path()[-2:] == ["No, dry it", "Dry."]
    assert reading.message("No, dry it").branch_id == reading.message("No, dry it").id


def _taken_back(session: OpenCodeSession, message: str, part: str = "") -> None:
    revert = {"messageID": message, **({"partID": part} if part else {})}
    session.now += 1000
    session.header(SESSION, revert=revert)
    places = list(session.messages)
    for name in places[places.index(message) :]:
        session.tell(name)


def test_what_was_taken_back_is_marked_as_removed_and_stays() -> None:
    session = a_short_session()
    asked = session.user("Heat it")
    session.says(asked, "Hot.", ran("c9", "200 degrees"))
    cut = len(session.lines)
    _taken_back(session, asked)
    for reading in (grown(session, cut), imported(session)):
        assert reading.path()[-1] == "The relay is open."
        assert len(reading.thread.messages) == 7
        assert len(reading.thread.removed_messages) == 3


def test_what_was_taken_back_and_brought_back_stands_again() -> None:
    session = a_short_session()
    session.says(asked := session.user("Heat it"), "Hot.")
    _taken_back(session, asked)
    cut = len(session.lines)
    session.now += 1000
    session.header(SESSION, revert=None)
    for reading in (grown(session, cut), grown(session, cut - 1)):
        assert reading.path()[-2:] == ["Heat it", "Hot."]
        assert reading.thread.removed_messages == []


def test_a_step_back_that_moves_marks_and_unmarks() -> None:
    session = a_short_session()
    session.says(first := session.user("Heat it"), "Hot.")
    session.says(second := session.user("Hotter"), "Hotter.")
    _taken_back(session, second)
    cut = len(session.lines)
    _taken_back(session, first)
    assert len(grown(session, cut).thread.removed_messages) == 4
    cut = len(session.lines)
    _taken_back(session, second)
    assert grown(session, cut).path()[-1] == "Hot."


def test_what_was_taken_back_stays_so_when_somebody_typed_over_it() -> None:
    session = a_short_session()
    last = session.last[SESSION]
    session.says(asked := session.user("Heat it"), "Hot.")
    _taken_back(session, asked)
    cut = len(session.lines)
    session.now += 1000
    session.header(SESSION, revert=None)
    session.says(session.user("No, dry it", after=last), "Dry.")
    reading = grown(session, cut)
    assert reading.path()[-2:] == ["No, dry it", "Dry."]
    assert len(reading.thread.removed_messages) == 2
    assert "Hot." in reading.texts()


def test_a_step_back_inside_a_message_leaves_that_message() -> None:
    session = a_short_session()
    *_, last = session.messages
    session.user("And now?")
    _taken_back(session, last, part="prt_x")
    reading = imported(session)
    assert reading.path()[-1] == "The relay is open."
    assert len(reading.thread.removed_messages) == 1


def test_sub_agents_of_a_call_that_was_taken_back_go_with_it() -> None:
    session = a_short_session()
    asked = session.user("delegate")
    session.says(asked, "calls", delegates("t1", "look left", "ses_left"))
    session.sub_agent("ses_left")
    session.user("look left", session="ses_left")
    _taken_back(session, asked)
    reading = imported(session)
    assert reading.message("look left").id in reading.thread.removed_messages
    assert reading.path()[-1] == "The relay is open."


def test_a_session_that_grew_is_read_on_though_its_middle_is_forgotten() -> None:
    session = OpenCodeSession()
    first = session.says(session.user("begin"), "calling", runs("c1", command="make"))
    for number in range(300):
        session.says(session.user(f"question {number}"), f"answer {number}")
    before = imported(session)
    asked = next(name for name, row in session.messages.items() if row["parts"][0].get("text") == "begin")
    cut = len(session.lines)
    session.tell(asked)
    session.change(first, "calling, and done", ran("c1", "made", command="make"))
    session.user("the end")
    after = read(OpenCode(), named(SESSION), session.lines[cut:], before=before)
    assert not after.ending.needs_whole
    assert after.message("calling, and done").parent_id == after.message("begin").id
    assert after.path()[-2:] == ["made", "the end"]
    assert len(after.thread.messages) == len(before.thread.messages) + 2


def test_what_a_state_cannot_place_asks_for_the_whole_session() -> None:
    session = OpenCodeSession()
    first = session.says(session.user("begin"), "calling")
    for number in range(300):
        session.says(session.user(f"question {number}"), f"answer {number}")
    before = imported(session)
    session.user("beside the first answer", after=first)
    assert read(OpenCode(), named(SESSION), session.lines[-1:], before=before).ending.needs_whole


def test_a_state_stays_small_however_long_the_session() -> None:
    session = OpenCodeSession()
    for number in range(400):
        calls = [ran(f"call_{number}_{at}_with_a_long_name", "x") for at in range(6)]
        starts = delegates(f"task_{number}", f"look {number}", f"ses_of_a_sub_agent_{number:08}")
        session.says(session.user(f"question {number}"), *calls, starts)
        child = session.sub_agent(f"ses_of_a_sub_agent_{number:08}", "look around " * 5)
        session.says(session.user(f"look {number}", session=child), *calls, session=child)
    assert len(imported(session).ending.state) < 100_000


def test_unknown_parts_are_told_once_by_their_kind_and_cost_nothing() -> None:
    session = OpenCodeSession()
    for _ in range(2):
        session.user("words", {"type": "hologram", "secret": "do not tell"}, {"type": "a secret, told"})
    reading = imported(session)
    reasons = [problem.reason for problem in reading.problems]
    assert reasons == [
        "a kind of part that is not known: 'hologram'",
        "a kind of part that is not known: no name",
    ]
    assert reading.texts() == ["words", "words"]


def test_fields_of_unexpected_types_cost_themselves() -> None:
    session = OpenCodeSession()
    session.user(
        {"type": "text", "text": "kept", "synthetic": "no"}, {"type": "tool", "state": {"status": 7}}
    )
    reading = imported(session)
    assert "kept" in reading.texts()
    assert [problem.line for problem in reading.problems] == [2]


def test_a_record_that_is_no_json_is_told_and_may_come_whole_later() -> None:
    session = a_short_session()
    torn = b'{"opencode":"message","id":"m9","session":"s","after":null,"info":{"unreadable":"{\\"ro"},"parts":[]}'
    reading = read(OpenCode(), named(SESSION), [*session.lines, torn])
    assert [problem.reason for problem in reading.problems] == ["a message that is no JSON object"]
    assert same_thread(reading.thread, imported(session).thread), difference(
        reading.thread, imported(session).thread
    )


def test_a_failed_call_is_an_error_and_a_running_one_has_no_result() -> None:
    session = OpenCodeSession()
    session.says(session.user("go"), failed("c1", "not found", path="x"), runs("c2", command="sleep"))
    _, calls, result = imported(session).thread.messages
    assert [call.id for call in calls.tool_calls] == ["c1", "c2"]
    assert (result.content, result.is_error, result.tool_call_id) == ("not found", True, "c1")


def test_two_messages_without_a_time_that_say_the_same_are_two() -> None:
    session = OpenCodeSession()
    for _ in range(2):
        session.message({"role": "user", "time": {}}, "continue")
    assert imported(session).texts() == ["continue", "continue"]


def test_lines_are_known_by_their_first_bytes() -> None:
    place = OpenCode().place(named("kept.jsonl"), a_short_session().data[:200])
    assert place is not None
    assert place.session == SESSION
    assert OpenCode().place(named("x.jsonl"), b'{"type":"user","sessionId":"x"}') is None


def test_a_state_tells_its_session() -> None:
    state = imported(a_short_session()).ending.state
    assert OpenCode().links(state) == Links(session_id=SESSION)
    assert OpenCode().links(b"nonsense") is None
