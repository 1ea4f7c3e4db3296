"""What a reading adds to a thread: news and nothing else, and a message that was read too early moves."""

from __future__ import annotations

from raddle.actions.importing.importer import Write
from raddle.actions.importing.joining import news_of
from raddle.model.clock import format_time
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import imported_registers
from raddle.model.threads.message import Attachment
from raddle.model.threads.thread import Thread
from tests.builders import NOON, SECOND, THREAD_ID, a_message, a_thread, an_author

NOTHING: frozenset[str] = frozenset()
WRITES: list[Write] = [("title", 5, "Kiln"), ("created_at", 3, format_time(NOON))]


def stored(*names: str) -> Thread:
    thread = Thread(THREAD_ID)
    messages = tuple(a_message(name, name) for name in names)
    thread.join(Delta(version=4, messages=messages, registers=imported_registers({}, WRITES)))
    return thread


def test_what_is_there_is_no_news() -> None:
    news = news_of(stored("a", "b"), [a_message("a", "a"), a_message("b", "b")], WRITES, NOTHING)
    assert (news.delta.is_empty, news.new, news.is_first) == (True, 0, False)
    assert news.delta.version == 4


def test_of_a_thread_that_is_not_there_all_is_news() -> None:
    news = news_of(None, [a_message("a"), a_message("b")], WRITES, NOTHING)
    assert (news.new, news.is_first, news.delta.version, set(news.delta.registers)) == (
        2,
        True,
        1,
        {"title", "created_at"},
    )


def test_a_new_message_a_grown_one_and_a_later_title_are_news() -> None:
    grown = a_message("a", "a and more", rev=2)
    news = news_of(stored("a", "b"), [grown, a_message("c")], [("title", 9, "Bowls")], NOTHING)
    assert (news.delta.messages, news.new, set(news.delta.registers)) == (
        (grown, a_message("c")),
        1,
        {"title"},
    )


def test_what_a_person_wrote_and_what_is_older_is_left_alone() -> None:
    mine = a_thread(a_message("a"), author=an_author(), title="Mine")
    news = news_of(mine, [a_message("a", rev=-1)], [("title", NOON * 2, "Theirs")], NOTHING)
    assert news.delta.is_empty


def test_attachments_that_some_message_shows_are_told_and_purged_ones_are_not() -> None:
    picture = Attachment(sha256="ab" * 32)
    with_picture = a_message("a", "see", attachments=(picture,))
    assert news_of(None, [with_picture], [], NOTHING).shown == {picture.sha256}
    purged = a_thread(with_picture.purged())
    news = news_of(purged, [with_picture], [], NOTHING)
    assert (news.shown, news.delta.is_empty) == (set(), True)


def test_a_message_that_was_read_too_early_moves_whatever_its_clock_said() -> None:
    early = a_message("s", "prompt", is_sidechain=True)
    placed = a_message("s", "prompt", is_sidechain=True, parent_id="a", seq=NOON + SECOND)
    thread = a_thread(a_message("a", "call"), early)
    assert news_of(thread, [placed], [], NOTHING).delta.is_empty, (
        "a copy that knows no better does not move it"
    )
    news = news_of(thread, [placed], [], {"s"})
    thread.join(news.delta)
    moved = thread.tree.get("s")
    assert moved is not None
    assert (moved.parent_id, moved.order) == ("a", NOON + SECOND)
    assert news_of(thread, [placed], [], {"s"}).delta.is_empty, "it moves once"


def test_a_purged_message_does_not_come_back_by_moving() -> None:
    early = a_message("s", "prompt", is_sidechain=True)
    placed = a_message("s", "prompt", is_sidechain=True, parent_id="a", seq=NOON + SECOND)
    assert news_of(a_thread(early.purged()), [placed], [], {"s"}).delta.is_empty
