"""What the steps of a session leave in its thread, and what becomes of those that cannot be saved."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest

from raddle.actions.ports import ThreadStore
from raddle.actions.recording import states
from raddle.actions.recording.recorder import GitNews, Opening, Recorder, Step, Turn
from raddle.actions.recording.sharing import told_in
from raddle.model.errors import StorageError
from raddle.model.ids import MonotonicIds
from raddle.model.threads.agent_state import AgentState, PendingToolCall
from raddle.model.threads.edits import Editor
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.message import Attachment
from raddle.model.threads.recalled import PRIVATE_KEY, RECALLED_KEY
from raddle.model.threads.thread import Thread
from tests.builders import THREAD_ID, WoundClock, an_author, texts
from tests.fakes.memory_store import MemoryFolder, MemoryStore

T = TypeVar("T")
ASKED = Step(state=states.asked(), turn=Turn(role="user", content="why?"))
ANSWERED = Step(state=AgentState(), turn=Turn(role="assistant", content="because"))
SNAPSHOT = GitSnapshot(branch="main", head="a" * 40, is_dirty=False, remote="example.org/me/kiln")


def answer(*, is_private: bool) -> str:
    """What raddle tells an agent of a thread."""
    marks = {RECALLED_KEY: "stored text"} | ({PRIVATE_KEY: True} if is_private else {})
    return json.dumps({**marks, "messages": [{"text": "the launch code is 4711"}]})


class TightStore(MemoryStore):
    """One on a disk that has `room` for so many turns yet; None: for all."""

    room: int | None = None

    def apply(self, thread_id: str, change: Callable[[Editor], T]) -> T:
        def fitting(editor: Editor) -> T:
            before = len(editor.thread.messages)
            done = change(editor)
            if self.room is not None:
                self.room -= len(editor.thread.messages) - before
                if self.room < 0:
                    self.room += len(editor.thread.messages) - before
                    raise StorageError("the disk is full")
            return done

        return super().apply(thread_id, fitting)


class Disk:
    """A store that can be full."""

    def __init__(self, folder: MemoryFolder | None = None) -> None:
        clock = WoundClock()
        self.author, self.folder = (
            an_author(clock=clock, new_id=MonotonicIds(clock)),
            folder or MemoryFolder(),
        )
        self.store = TightStore(self.author, self.folder)
        self.is_full = False

    def __call__(self) -> ThreadStore:
        if self.is_full:
            raise StorageError("the disk is full")
        return self.store

    @property
    def thread(self) -> Thread:
        return self.store.load(THREAD_ID)


@pytest.fixture
def disk() -> Disk:
    return Disk()


def as_it_is(text: str) -> tuple[str, tuple[Attachment, ...]]:
    return text, ()


def a_recorder(
    disk: Disk, keep_body: Any = as_it_is, *, keeps_unsaved: bool = False, **opening: Any
) -> Recorder:
    facts = {"is_new": True, **opening}
    return Recorder(disk, THREAD_ID, Opening(**facts), keep_body=keep_body, keeps_unsaved=keeps_unsaved)


def going_on(disk: Disk, **opening: Any) -> Recorder:
    thread = disk.thread
    tip = thread.tree.tip()
    facts = {
        "is_new": False,
        "head": tip.id if tip is not None else None,
        "state": thread.agent_state,
        "told": told_in(thread),
        **opening,
    }
    return a_recorder(disk, **facts)


def to(follow: Callable[[AgentState], AgentState], recorder: Recorder, **fields: Any) -> str:
    return recorder.take(Step(state=follow(recorder.state), **fields))


def test_a_session_in_which_nobody_spoke_is_not_written(disk: Disk) -> None:
    recorder = a_recorder(disk)
    recorder.take(Step(state=states.failed(AgentState(), "no key")))
    assert disk.store.ids() == []
    assert (recorder.has_written, recorder.state.kind) == (False, "error")


def test_what_was_noted_before_the_first_turn_is_written_with_it(disk: Disk) -> None:
    recorder = a_recorder(disk)
    recorder.take(Step(state=AgentState(), model=("anthropic", "m1")))
    assert recorder.unsaved == 0
    recorder.take(ASKED)
    assert (disk.thread.plain("provider"), disk.thread.plain("model")) == ("anthropic", "m1")


def test_the_first_turn_comes_with_everything_that_was_known(disk: Disk) -> None:
    recorder = a_recorder(
        disk,
        workspace_root="/w",
        cwd="/w/src",
        client_version="1",
        is_private=True,
        title="A talk",
        git=GitNews(snapshot=SNAPSHOT),
        model=("anthropic", "m1"),
    )
    asked = recorder.take(ASKED)
    thread = disk.thread
    assert thread.is_private
    assert thread.visibility == "private"
    assert thread.title == "A talk"
    assert [thread.plain(name) for name in ("workspace_root", "cwd", "client_version", "git_branch")] == [
        "/w",
        "/w/src",
        "1",
        "main",
    ]
    assert thread.agent_state.kind == "calling_llm"
    assert [message.id for message in thread.messages] == [asked]


def test_a_session_that_goes_on_becomes_private_with_its_first_step(disk: Disk) -> None:
    a_recorder(disk).take(ASKED)
    assert not disk.thread.is_private
    going_on(disk, is_private=True).take(ANSWERED)
    assert disk.thread.is_private


def test_a_step_that_makes_the_thread_private_does_so_in_the_write_of_its_words(disk: Disk) -> None:
    told: list[tuple[int, bool]] = []
    disk.store = TightStore(
        disk.author,
        disk.folder,
        changed=lambda _: told.append((len(disk.thread.messages), disk.thread.is_private)),
    )
    recorder = a_recorder(disk)
    recorder.take(ASKED)
    recorder.take(msgspec.structs.replace(ANSWERED, is_private=True))
    assert told == [(1, False), (2, True)]


@pytest.mark.parametrize(
    ("role", "content", "becomes_private"),
    [
        ("tool", answer(is_private=True), True),
        ("tool", f"Wall time: 0.1 seconds\nOutput:\n{answer(is_private=True)}", True),
        ("tool", answer(is_private=False), False),
        ("tool", "private_by_raddle and recalled_by_raddle are two keys", False),
        ("user", answer(is_private=True), False),
    ],
)
def test_an_answer_about_a_private_thread_makes_the_thread_that_holds_it_private(
    disk: Disk, role: str, content: str, becomes_private: bool
) -> None:
    recorder = a_recorder(disk)
    recorder.take(ASKED)
    recorder.take(Step(state=AgentState(), turn=Turn(role=role, content=content)))
    assert disk.thread.is_private == becomes_private


@pytest.mark.parametrize("keeps_unsaved", [False, True])
def test_what_made_a_step_private_that_could_not_be_saved_makes_the_next_one_so(
    disk: Disk, *, keeps_unsaved: bool
) -> None:
    recorder = a_recorder(disk, keeps_unsaved=keeps_unsaved)
    recorder.take(ASKED)
    disk.is_full = True
    with contextlib.nullcontext() if keeps_unsaved else pytest.raises(StorageError):
        recorder.take(msgspec.structs.replace(ANSWERED, is_private=True))
    disk.is_full = False
    recorder.take(ANSWERED)
    assert disk.thread.is_private
    disk.store.apply(THREAD_ID, lambda editor: editor.set_private(False))
    recorder.take(ASKED)
    assert not disk.thread.is_private, "it is owed once, and a person's word counts after it"


def test_a_session_goes_on_under_its_own_last_turn_whatever_others_say(disk: Disk) -> None:
    a_recorder(disk).take(ASKED)
    one, other = going_on(disk), going_on(disk)
    ours = one.take(ANSWERED)
    theirs = other.take(Step(state=AgentState(), turn=Turn(role="assistant", content="no idea")))
    more = one.take(Step(state=states.asked(), turn=Turn(role="user", content="I see")))
    tree = disk.thread.tree
    assert texts(tree.path_to_root(more)) == ["why?", "because", "I see"]
    assert texts(tree.path_to_root(theirs)) == ["why?", "no idea"]
    assert tree.is_leaf(theirs)
    assert one.head == more != ours


def test_an_answer_that_was_cut_and_tried_again_stands_beside_the_new_one(disk: Disk) -> None:
    recorder = a_recorder(disk)
    recorder.take(ASKED)
    cut = to(
        lambda s: states.failed(s, "reset"), recorder, turn=Turn(role="assistant", content="bec", is_cut=True)
    )
    to(states.retrying, recorder, goes_back=True)
    whole = recorder.take(ANSWERED)
    tree = disk.thread.tree
    assert texts(tree.path_to_root(whole)) == ["why?", "because"]
    assert texts(tree.path_to_root(cut)) == ["why?", "bec"]
    assert recorder.state == AgentState()


def test_a_turn_after_a_cut_one_stands_under_it_where_nothing_was_tried_again(disk: Disk) -> None:
    recorder = a_recorder(disk)
    recorder.take(ASKED)
    recorder.take(Step(state=states.asked(), turn=Turn(role="assistant", content="bec", is_cut=True)))
    last = recorder.take(Step(state=states.asked(), turn=Turn(role="user", content="go on")))
    assert texts(disk.thread.tree.path_to_root(last)) == ["why?", "bec", "go on"]


def test_a_retry_without_a_cut_answer_goes_back_nowhere(disk: Disk) -> None:
    recorder = a_recorder(disk)
    asked = recorder.take(ASKED)
    to(states.retrying, recorder, goes_back=True)
    assert recorder.head == asked


def test_a_step_that_cannot_be_saved_is_raised_and_did_not_happen(disk: Disk) -> None:
    recorder = a_recorder(disk)
    asked = recorder.take(ASKED)
    disk.is_full = True
    with pytest.raises(StorageError):
        recorder.take(ANSWERED)
    assert (recorder.state.kind, recorder.head, recorder.unsaved) == ("calling_llm", asked, 0)
    disk.is_full = False
    recorder.take(ANSWERED)
    assert texts(disk.thread.messages) == ["why?", "because"]


def test_steps_that_are_kept_are_saved_in_their_order_when_there_is_room(disk: Disk) -> None:
    recorder = a_recorder(disk, keeps_unsaved=True)
    disk.is_full = True
    assert recorder.take(ASKED) == ""
    assert recorder.take(ANSWERED) == ""
    assert (recorder.unsaved, recorder.state, recorder.has_written) == (2, AgentState(), False)
    assert recorder.trouble is not None
    disk.is_full = False
    last = recorder.take(Step(state=states.asked(), turn=Turn(role="user", content="I see")))
    assert texts(disk.thread.tree.path_to_root(last)) == ["why?", "because", "I see"]
    assert disk.thread.agent_state.kind == "calling_llm"
    assert recorder.unsaved == 0


def said(word: str, **more: Any) -> Step:
    return Step(state=AgentState(), turn=Turn(role="user", content=word), **more)


def test_of_steps_that_are_kept_as_many_are_saved_as_there_is_room_for(disk: Disk) -> None:
    recorder = a_recorder(disk, keeps_unsaved=True)
    recorder.take(ASKED)
    disk.is_full = True
    for word in "abcde":
        recorder.take(said(word))
    disk.is_full, disk.store.room = False, 2
    assert recorder.take(said("f")) == ""
    assert texts(disk.thread.messages) == ["why?", "a", "b"]
    assert recorder.unsaved == 4
    assert recorder.trouble is not None
    disk.store.room = 9
    last = recorder.take(said("g"))
    assert texts(disk.thread.tree.path_to_root(last)) == ["why?", *"abcdefg"]
    assert recorder.unsaved == 0


def test_what_makes_a_kept_step_private_makes_those_before_it_so_that_are_saved_alone(disk: Disk) -> None:
    recorder = a_recorder(disk, keeps_unsaved=True)
    recorder.take(ASKED)
    disk.is_full = True
    recorder.take(said("a"))
    recorder.take(said("b", is_private=True))
    disk.is_full, disk.store.room = False, 1
    recorder.take(said("c"))
    assert texts(disk.thread.messages) == ["why?", "a"]
    assert disk.thread.is_private


def test_a_long_text_is_kept_beside_the_message(disk: Disk) -> None:
    kept = Attachment(sha256="0" * 64, size=9, is_body=True)
    recorder = a_recorder(disk, lambda text: (text[:3], (kept,)) if len(text) > 5 else (text, ()))
    recorder.take(Step(state=states.asked(), turn=Turn(role="user", content="long text")))
    (message,) = disk.thread.messages
    assert (message.content, message.attachments) == ("lon", (kept,))


def test_commits_and_the_newest_state_of_the_repository_are_noted(disk: Disk) -> None:
    recorder = a_recorder(disk, git=GitNews(snapshot=SNAPSHOT))
    recorder.take(ASKED)
    now = GitSnapshot(branch="fix", head="c" * 40, is_dirty=True, remote="example.org/me/other")
    to(lambda state: state, recorder, git=GitNews(snapshot=now, commits=("b" * 40, "c" * 40)))
    thread = disk.thread
    assert thread.git_commits == ["a" * 40, "b" * 40, "c" * 40]
    assert (thread.plain("git_initial_branch"), thread.plain("git_branch")) == ("main", "fix")
    assert (thread.plain("git_start_dirty"), thread.plain("git_end_dirty")) == (False, True)
    assert thread.plain("git_remote_url") == "example.org/me/kiln"


def test_another_session_that_is_in_the_same_state_is_not_covered_either(disk: Disk) -> None:
    a_recorder(disk).take(ASKED)
    one, other = going_on(disk), going_on(disk)
    one.take(ASKED)
    other.take(ASKED)
    one.take(ANSWERED)
    assert disk.thread.agent_state.kind == "calling_llm"
    other.take(ANSWERED)
    assert disk.thread.agent_state == AgentState()


def test_calls_of_another_session_stay_open(disk: Disk) -> None:
    a_recorder(disk).take(ASKED)
    one, other = going_on(disk), going_on(disk)
    call = PendingToolCall(call_id="c1", tool_name="run")
    to(lambda s: states.answered(s, [call]), one, turn=Turn(role="assistant", content="I'll run it"))
    other.take(ASKED)
    other.take(ANSWERED)
    assert disk.thread.agent_state == AgentState(kind="executing_tools", pending_tool_calls=(call,))
    assert (one.state.kind, other.state.kind) == ("executing_tools", "waiting_for_user_input")
    to(lambda s: states.ran(s, "c1"), one, turn=Turn(role="tool", content="done"))
    assert disk.thread.agent_state == AgentState(kind="post_tools_hook")


def test_a_session_that_died_is_told_of_when_the_other_is_done_and_until_one_begins_anew(disk: Disk) -> None:
    a_recorder(disk).take(ASKED)
    going_on(disk).take(ANSWERED)
    dies, other = going_on(disk), going_on(disk)
    dies.take(ASKED)
    to(lambda state: states.retrying(state, "overloaded"), dies)
    for _ in range(2):
        other.take(ASKED)
        assert disk.thread.agent_state == AgentState(kind="calling_llm")
        other.take(ANSWERED)
        assert disk.thread.agent_state == dies.state
    anew = going_on(disk)
    assert anew.state == dies.state
    anew.take(ASKED)
    anew.take(ANSWERED)
    assert disk.thread.agent_state == AgentState()
    assert disk.thread.registers["agent_state"].latest.value.keys() == set(AgentState.__struct_fields__)


def test_nothing_stands_beside_the_state_while_one_session_alone_is_in_a_turn(disk: Disk) -> None:
    a_recorder(disk).take(ASKED)
    going_on(disk).take(ANSWERED)
    one, other = going_on(disk), going_on(disk)
    for session in (one, other, one):
        session.take(ASKED)
        assert set(disk.thread.registers["agent_state"].latest.value) == set(AgentState.__struct_fields__)
        session.take(ANSWERED)


def test_a_session_that_waits_writes_no_state_while_another_one_is_in_a_turn(disk: Disk) -> None:
    a_recorder(disk).take(ASKED)
    going_on(disk).take(ANSWERED)
    one, other = going_on(disk), going_on(disk)
    one.take(ASKED)
    before = disk.thread.registers["agent_state"]
    other.take(Step(state=AgentState(), turn=Turn(role="system", content="You are kind.")))
    assert disk.thread.registers["agent_state"] == before


def test_a_session_that_was_told_of_meanwhile_still_knows_its_own_state(disk: Disk) -> None:
    a_recorder(disk).take(ASKED)
    going_on(disk).take(ANSWERED)
    one, other = going_on(disk), going_on(disk)
    one.take(ASKED)
    other.take(ASKED)
    other.take(ANSWERED)
    assert disk.thread.agent_state == one.state
    one.take(ANSWERED)
    assert disk.thread.agent_state == AgentState()


def test_a_session_that_begins_while_another_one_is_in_a_turn_gives_that_up_until_its_next_step(
    disk: Disk,
) -> None:
    """It cannot know whether the other one lives."""
    one = a_recorder(disk)
    one.take(ASKED)
    other = going_on(disk)
    other.take(ASKED)
    other.take(ANSWERED)
    assert disk.thread.agent_state == AgentState()
    to(states.answering, one, answers=1)
    assert disk.thread.agent_state.kind == "processing_llm_response"
    other.take(ASKED)
    other.take(ANSWERED)
    assert disk.thread.agent_state.kind == "processing_llm_response"


@pytest.mark.parametrize(
    "beside", [None, 7, [], [7, None, {}], [{"as_of": 7}], [{"as_of": "1 a", "kind": 7}], {"as_of": "1 a"}]
)
def test_what_a_foreign_hand_wrote_into_the_state_stops_no_session(disk: Disk, beside: Any) -> None:
    a_recorder(disk).take(ASKED)
    value = {"kind": "calling_llm", "as_of": beside, "beside": beside, "theirs": 1}
    disk.store.apply(THREAD_ID, lambda editor: editor.write("agent_state", value))
    going_on(disk).take(ANSWERED)
    assert disk.thread.agent_state == AgentState()


def test_an_answer_that_could_not_be_saved_is_owed_no_longer(disk: Disk) -> None:
    recorder = a_recorder(disk)
    recorder.take(ASKED)
    to(states.answering, recorder, answers=1)
    disk.is_full = True
    with pytest.raises(StorageError):
        to(states.answered, recorder, answers=-1, turn=Turn(role="assistant", content="because"))
    disk.is_full = False
    recorder.take(ANSWERED)
    assert recorder.state == AgentState()
