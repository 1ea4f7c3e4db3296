"""The laws every hub keeps that a device syncs with (`actions.sync.ports.Remote`).

A hub's test makes a subclass of `RemoteLaws` and gives the fixture `hubs`. What only one way to a hub can show
(a connection that breaks, answers of a stranger) is in the tests of that way.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import pytest

from raddle.actions.sync.ports import Remote
from raddle.model.errors import ConflictError, InvalidInput, NotFound, Purged
from raddle.model.protocol.hub import GONE, Change, Pushed
from raddle.model.protocol.sources import SourceSegment
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread
from tests.builders import THREAD_ID, a_line, a_message, a_thread, an_author, texts

OTHER_ID = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5bff"
THIRD_ID = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5c00"
BYTES = b"the bytes of a picture"
SHA256 = hashlib.sha256(BYTES).hexdigest()
PAGE = 2
"""Lines of the feed in one answer: small, so that a few threads make pages."""


class Hubs(Protocol):
    """A hub with two people on it; its feed comes in pages of `PAGE`."""

    def mine(self) -> Remote:
        """The hub as one of them, on any of their devices."""

    def theirs(self) -> Remote:
        """The same as the other."""

    def begin_epoch(self) -> None:
        """Another life of the hub, as after a restore."""


def new(*messages: Message, **edits: Any) -> Delta:
    """A push that begins a thread."""
    thread = a_thread(*messages, **edits)
    return Delta(version=thread.version, messages=tuple(thread.tree), registers=dict(thread.registers))


def more(base: Pushed, *messages: Message, **edits: Any) -> Delta:
    """A push on what the hub answered last."""
    delta = new(*messages, **edits)
    return Delta(
        base_version=base.version,
        version=base.version + 1,
        messages=delta.messages,
        registers=delta.registers,
    )


def whole(remote: Remote, thread_id: str = THREAD_ID) -> Thread:
    """All that the hub holds of a thread, page by page."""
    thread = Thread(thread_id)
    version, epoch = 0, ""
    while True:
        answer = remote.since(thread_id, version, epoch)
        assert answer.delta.base_version == version
        thread.join(answer.delta)
        if not answer.has_more:
            assert thread.version == answer.delta.version
            return thread
        assert answer.delta.version > version, "a page that brings one no further"
        version, epoch = answer.delta.version, answer.hub_epoch


def feed(remote: Remote, cursor: str = "") -> tuple[list[Change], str]:
    """(All lines after `cursor`, the cursor at their end)."""
    lines: list[Change] = []
    while True:
        page = remote.changes(cursor)
        assert len(page.changes) <= PAGE
        lines += page.changes
        cursor = page.cursor
        if not page.has_more:
            return lines, cursor


def withdrawal(thread: Thread) -> Delta:
    """The push that takes a thread back."""
    editor = Editor(thread, an_author("bbbbbbbb"))
    version = thread.version
    editor.set_private(True)
    return Delta(
        base_version=version,
        version=version + 1,
        registers={"is_private": thread.registers["is_private"]},
    )


def segment(data: bytes = BYTES, *, start: int = 0, **fields: Any) -> SourceSegment:
    """A part of a source file that holds `data` at `start`."""
    values: dict[str, Any] = {
        "key": "k" * 32,
        "name": "a session.jsonl",
        "agent": "claude-code",
        "sha256": hashlib.sha256(data).hexdigest(),
        "generation": 0,
        "start": start,
        "end": start + len(data),
        "size": len(data),
    }
    return SourceSegment(**{**values, **fields})


class RemoteLaws:
    """Subclass this, give the fixture `hubs`, and name the class Test…"""

    @pytest.fixture
    def remote(self, hubs: Hubs) -> Remote:
        return hubs.mine()

    def test_what_is_pushed_is_there_for_my_other_devices(self, hubs: Hubs, remote: Remote) -> None:
        pushed = remote.push(THREAD_ID, new(*a_line("hello", "hi"), title="a greeting"), "")
        assert pushed.is_accepted
        seen = whole(hubs.mine())
        assert (texts(seen.messages), seen.title, seen.version) == (
            ["hello", "hi"],
            "a greeting",
            pushed.version,
        )

    def test_a_push_on_the_newest_version_is_accepted(self, remote: Remote) -> None:
        first = remote.push(THREAD_ID, new(a_message()), "")
        second = remote.push(THREAD_ID, more(first, a_message("m2", "hi", parent_id="m1")), first.hub_epoch)
        assert second.is_accepted
        assert second.version > first.version
        assert texts(whole(remote).messages) == ["hello", "hi"]

    def test_a_push_on_an_older_version_is_refused_with_what_it_lacks(self, remote: Remote) -> None:
        first = remote.push(THREAD_ID, new(a_message()), "")
        second = remote.push(THREAD_ID, more(first, a_message("m2", "hi", parent_id="m1")), first.hub_epoch)
        late = remote.push(THREAD_ID, more(first, a_message("m3", "ho", parent_id="m1")), first.hub_epoch)
        assert late.answer is not None
        assert late.version == late.answer.delta.version == second.version
        assert late.answer.delta.base_version == first.version
        assert texts(late.answer.delta.messages) == ["hi"]
        assert [message.id for message in whole(remote).tree] == ["m1", "m2"], "and nothing of it is kept"

    def test_a_thread_that_is_begun_twice_is_refused_with_all_of_it(self, remote: Remote) -> None:
        remote.push(THREAD_ID, new(a_message()), "")
        again = remote.push(THREAD_ID, new(a_message("m9", "another beginning")), "")
        assert again.answer is not None
        assert again.answer.delta.base_version == 0
        assert texts(again.answer.delta.messages) == ["hello"]

    def test_a_push_whose_answer_was_lost_may_be_sent_again(self, remote: Remote) -> None:
        first = remote.push(THREAD_ID, new(a_message()), "")
        sent = more(first, a_message("m2", "hi", parent_id="m1"), title="named")
        second = remote.push(THREAD_ID, sent, first.hub_epoch)
        again = remote.push(THREAD_ID, sent, first.hub_epoch)
        assert again.version == second.version
        if again.answer is not None:  # a hub that keeps no receipts says what it holds: all that was sent
            assert again.answer.delta.messages == sent.messages
        assert len(whole(remote).tree) == 2

    def test_a_thread_that_is_not_there_is_answered_as_empty(self, remote: Remote) -> None:
        answer = remote.since(THREAD_ID, 0, "")
        assert answer.delta == Delta()
        assert not answer.has_more

    def test_since_a_version_only_what_came_after_is_answered(self, remote: Remote) -> None:
        first = remote.push(THREAD_ID, new(a_message(), title="one"), "")
        second = remote.push(THREAD_ID, more(first, a_message("m2", "hi", parent_id="m1")), first.hub_epoch)
        answer = remote.since(THREAD_ID, first.version, first.hub_epoch)
        assert (answer.delta.base_version, answer.delta.version) == (first.version, second.version)
        assert (texts(answer.delta.messages), dict(answer.delta.registers)) == (["hi"], {})
        nothing = remote.since(THREAD_ID, second.version, first.hub_epoch).delta
        assert nothing.is_empty
        assert nothing.version == second.version

    def test_a_version_that_the_hub_never_had_is_answered_with_all_of_it(self, remote: Remote) -> None:
        pushed = remote.push(THREAD_ID, new(a_message()), "")
        answer = remote.since(THREAD_ID, pushed.version + 40, pushed.hub_epoch)
        assert answer.delta.base_version == 0
        assert texts(answer.delta.messages) == ["hello"]

    def test_pages_joined_are_the_whole_thread(self, remote: Remote) -> None:
        pushed = remote.push(THREAD_ID, new(a_message("m0", "first", branch_id="m0")), "")
        parent = "m0"
        for number in range(1, 4):
            turn = a_message(f"m{number}", f"{number}" * 1_500_000, parent_id=parent, branch_id="m0")
            pushed = remote.push(THREAD_ID, more(pushed, turn), pushed.hub_epoch)
            parent = turn.id
        seen = whole(remote)
        assert seen.version == pushed.version
        assert [len(text) for text in texts(seen.messages)] == [5, 1_500_000, 1_500_000, 1_500_000]

    def test_text_of_every_kind_comes_back_as_it_was(self, remote: Remote) -> None:
        text = 'NUL \0, tab \t, 日本語, \u202e, emoji 👩‍👩‍👧, quote " \\ end'
        remote.push(THREAD_ID, new(a_message(content=text), title=text), "")
        seen = whole(remote)
        assert (texts(seen.messages), seen.title) == ([text], text)

    def test_a_withdrawal_erases_every_word(self, remote: Remote) -> None:
        remote.push(THREAD_ID, new(*a_line("hello", "hi"), title="a greeting"), "")
        mine = whole(remote)
        epoch = remote.since(THREAD_ID, 0, "").hub_epoch
        pushed = remote.push(THREAD_ID, withdrawal(mine), epoch)
        assert pushed.is_accepted
        left = remote.since(THREAD_ID, 0, "").delta
        assert (left.version, left.messages, set(left.registers)) == (pushed.version, (), {"is_private"})
        since_before = remote.since(THREAD_ID, pushed.version - 1, epoch).delta
        assert (since_before.messages, set(since_before.registers)) == ((), {"is_private"})

    def test_a_withdrawal_that_says_more_is_not_taken(self, remote: Remote) -> None:
        first = remote.push(THREAD_ID, new(a_message()), "")
        taken_back = withdrawal(whole(remote))
        talkative = Delta(
            base_version=first.version,
            version=first.version + 1,
            messages=(a_message("m2", "a secret", parent_id="m1"),),
            registers=taken_back.registers,
        )
        with pytest.raises(InvalidInput):
            remote.push(THREAD_ID, talkative, first.hub_epoch)
        assert texts(whole(remote).messages) == ["hello"]

    def test_the_feed_tells_each_thread_in_the_order_of_its_last_change(self, remote: Remote) -> None:
        first = remote.push(THREAD_ID, new(a_message()), "")
        other = remote.push(OTHER_ID, new(a_message("n1")), "")
        third = remote.push(THIRD_ID, new(a_message("o1")), "")
        second = remote.push(THREAD_ID, more(first, title="newer"), first.hub_epoch)
        lines, cursor = feed(remote)
        assert [(line.thread_id, line.version) for line in lines] == [
            (OTHER_ID, other.version),
            (THIRD_ID, third.version),
            (THREAD_ID, second.version),
        ]
        assert feed(remote, cursor)[0] == []

    def test_the_feed_goes_on_where_a_device_left_it(self, remote: Remote) -> None:
        assert feed(remote)[0] == []
        _, cursor = feed(remote)
        remote.push(THREAD_ID, new(a_message()), "")
        lines, cursor = feed(remote, cursor)
        assert [line.thread_id for line in lines] == [THREAD_ID]
        for thread_id, message_id in ((OTHER_ID, "n1"), (THIRD_ID, "o1")):
            remote.push(thread_id, new(a_message(message_id)), "")
        assert [line.thread_id for line in feed(remote, cursor)[0]] == [OTHER_ID, THIRD_ID]

    def test_a_refused_push_is_not_in_the_feed(self, remote: Remote) -> None:
        remote.push(THREAD_ID, new(a_message()), "")
        _, cursor = feed(remote)
        remote.push(THREAD_ID, new(a_message("m9")), "")
        assert feed(remote, cursor)[0] == []

    def test_the_feed_says_that_a_thread_is_deleted(self, remote: Remote) -> None:
        remote.push(THREAD_ID, new(a_message()), "")
        mine = whole(remote)
        editor = Editor(mine, an_author("bbbbbbbb"))
        version = mine.version
        editor.delete()
        made = editor.delta()
        deletion = Delta(base_version=version, version=version + 1, registers=made.registers)
        remote.push(THREAD_ID, deletion, remote.since(THREAD_ID, 0, "").hub_epoch)
        assert [line.is_deleted for line in feed(remote)[0]] == [True]

    def test_in_another_epoch_all_is_answered_and_no_old_base_is_pushed_on(
        self, hubs: Hubs, remote: Remote
    ) -> None:
        first = remote.push(THREAD_ID, new(a_message()), "")
        lines, cursor = feed(remote)
        hubs.begin_epoch()
        again = hubs.mine()
        answer = again.since(THREAD_ID, first.version, first.hub_epoch)
        assert answer.hub_epoch != first.hub_epoch
        assert (answer.delta.base_version, texts(answer.delta.messages)) == (0, ["hello"])
        pushed = again.push(THREAD_ID, more(first, title="on an old base"), first.hub_epoch)
        assert pushed.answer is not None
        assert pushed.answer.delta.base_version == 0
        assert feed(again, cursor)[0] == lines, "the feed begins anew"

    def test_what_others_have_is_not_there_for_me(self, hubs: Hubs, remote: Remote) -> None:
        remote.push(THREAD_ID, new(a_message()), "")
        remote.put_blob(SHA256, iter([BYTES]), len(BYTES))
        theirs = hubs.theirs()
        assert theirs.since(THREAD_ID, 0, "").delta == Delta()
        assert feed(theirs)[0] == []
        assert not theirs.has_blob(SHA256)
        with pytest.raises(NotFound):
            next(theirs.blob(SHA256))

    def test_a_blob_comes_back_as_it_was_given(self, hubs: Hubs, remote: Remote) -> None:
        assert not remote.has_blob(SHA256)
        remote.put_blob(SHA256, iter([BYTES[:5], BYTES[5:]]), len(BYTES))
        other_device = hubs.mine()
        assert other_device.has_blob(SHA256)
        assert b"".join(other_device.blob(SHA256)) == BYTES

    @pytest.mark.parametrize("size", [0, 3_000_001])
    def test_a_blob_may_have_any_size(self, remote: Remote, size: int) -> None:
        data = bytes(range(256)) * (size // 256) + bytes(size % 256)
        sha256 = hashlib.sha256(data).hexdigest()
        pieces = [data[at : at + 70_000] for at in range(0, size, 70_000)]
        remote.put_blob(sha256, iter(pieces), size)
        assert b"".join(remote.blob(sha256)) == data

    def test_a_blob_that_is_given_again_changes_nothing(self, remote: Remote) -> None:
        for _ in range(2):
            remote.put_blob(SHA256, iter([BYTES]), len(BYTES))
        assert b"".join(remote.blob(SHA256)) == BYTES

    def test_bytes_of_another_hash_are_refused(self, remote: Remote) -> None:
        with pytest.raises(InvalidInput):
            remote.put_blob(SHA256, iter([BYTES[::-1]]), len(BYTES))
        assert not remote.has_blob(SHA256)

    def test_a_blob_that_nobody_gave_is_not_found(self, remote: Remote) -> None:
        with pytest.raises(NotFound):
            list(remote.blob(SHA256))

    def test_what_devices_keep_of_a_threads_sources_is_told_to_the_others(
        self, hubs: Hubs, remote: Remote
    ) -> None:
        version = remote.push(THREAD_ID, new(a_message()), "").version
        remote.put_blob(SHA256, iter([BYTES]), len(BYTES))
        more_of_it = segment(b"more", start=len(BYTES))
        assert remote.put_sources(THREAD_ID, "aaaaaaaa", [segment()], version) == ()
        assert remote.put_sources(THREAD_ID, "bbbbbbbb", [segment(), more_of_it], version) == (
            more_of_it.sha256,
        ), "and those that nobody has given are named"
        told = {each.device: each.segments for each in hubs.mine().sources(THREAD_ID)}
        assert told == {"aaaaaaaa": (segment(),), "bbbbbbbb": (segment(), more_of_it)}
        remote.put_sources(THREAD_ID, "bbbbbbbb", [more_of_it], version)
        remote.put_sources(THREAD_ID, "aaaaaaaa", [], version)
        assert [(each.device, each.segments) for each in remote.sources(THREAD_ID)] == [
            ("bbbbbbbb", (more_of_it,))
        ]

    def test_sources_are_no_news_of_a_thread(self, remote: Remote) -> None:
        pushed = remote.push(THREAD_ID, new(a_message()), "")
        _, cursor = feed(remote)
        remote.put_sources(THREAD_ID, "aaaaaaaa", [segment()], pushed.version)
        assert feed(remote, cursor)[0] == []
        assert remote.push(THREAD_ID, more(pushed, title="newer"), pushed.hub_epoch).is_accepted

    def test_sources_of_a_thread_that_is_newer_there_are_refused(self, remote: Remote) -> None:
        first = remote.push(THREAD_ID, new(a_message()), "")
        remote.push(THREAD_ID, more(first, title="newer"), first.hub_epoch)
        with pytest.raises(ConflictError):
            remote.put_sources(THREAD_ID, "aaaaaaaa", [segment()], first.version)
        assert remote.sources(THREAD_ID) == ()

    def test_sources_of_a_thread_that_is_not_mine_are_not_found(self, hubs: Hubs, remote: Remote) -> None:
        version = remote.push(THREAD_ID, new(a_message()), "").version
        remote.put_sources(THREAD_ID, "aaaaaaaa", [segment()], version)
        theirs = hubs.theirs()
        with pytest.raises(NotFound):
            theirs.sources(THREAD_ID)
        with pytest.raises(NotFound):
            theirs.put_sources(THREAD_ID, "aaaaaaaa", [], version)
        assert len(remote.sources(THREAD_ID)) == 1

    def test_a_private_thread_has_no_sources_there_and_gets_none(self, remote: Remote) -> None:
        first = remote.push(THREAD_ID, new(a_message()), "")
        remote.put_sources(THREAD_ID, "aaaaaaaa", [segment()], first.version)
        pushed = remote.push(THREAD_ID, withdrawal(whole(remote)), first.hub_epoch)
        assert remote.sources(THREAD_ID) == ()
        with pytest.raises(InvalidInput):
            remote.put_sources(THREAD_ID, "aaaaaaaa", [segment()], pushed.version)

    def test_when_words_are_erased_the_sources_that_hold_them_go_from_every_device(
        self, remote: Remote
    ) -> None:
        first = remote.push(THREAD_ID, new(*a_line("hello", "hi")), "")
        for device in ("aaaaaaaa", "bbbbbbbb"):
            remote.put_sources(THREAD_ID, device, [segment()], first.version)
        thread = whole(remote)
        editor = Editor(thread, an_author("bbbbbbbb"))
        editor.purge(["m2"])
        made = editor.delta()
        erasure = Delta(
            base_version=first.version, version=first.version + 1, messages=made.messages, registers={}
        )
        assert remote.push(THREAD_ID, erasure, first.hub_epoch).is_accepted
        assert texts(whole(remote).messages) == ["hello", ""]
        assert remote.sources(THREAD_ID) == ()

    def test_what_is_purged_is_gone_for_ever_and_the_feed_says_so(self, hubs: Hubs, remote: Remote) -> None:
        first = remote.push(THREAD_ID, new(a_message()), "")
        remote.put_sources(THREAD_ID, "aaaaaaaa", [segment()], first.version)
        with pytest.raises(NotFound):
            hubs.theirs().purge(THREAD_ID)
        remote.purge(THREAD_ID)
        for ask in (
            lambda: remote.since(THREAD_ID, 0, ""),
            lambda: remote.push(THREAD_ID, new(a_message()), ""),
            lambda: remote.push(THREAD_ID, more(first, title="newer"), first.hub_epoch),
            lambda: remote.sources(THREAD_ID),
            lambda: remote.put_sources(THREAD_ID, "aaaaaaaa", [segment()], first.version + 1),
            lambda: remote.purge(THREAD_ID),
        ):
            with pytest.raises(Purged):
                ask()
        assert [(line.thread_id, line.kind) for line in feed(remote)[0]] == [(THREAD_ID, GONE)]
        with pytest.raises(NotFound):
            remote.purge(OTHER_ID)
