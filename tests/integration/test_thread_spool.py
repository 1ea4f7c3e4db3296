"""A thread that is spooled message by message becomes the file that a save of it would have written."""

from __future__ import annotations

import resource
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raddle.adapters.local_store import thread_spool
from raddle.adapters.local_store.thread_spool import ThreadSpool
from raddle.model.clock import format_time
from raddle.model.errors import StorageError
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message
from raddle.model.threads.register import one_write
from raddle.model.threads.thread import Thread
from tests.builders import NOON, SECOND, THREAD_ID, a_message
from tests.file_events import start_child


def a_frame() -> Thread:
    frame = Thread(THREAD_ID)
    frame.join(Delta(version=1, registers={"title": one_write(1, "", "Bowls — 青")}))
    return frame


def written(folder: Path, *batches: list[Message]) -> bytes:
    """The file that a spool makes of messages that come in batches."""
    spool = ThreadSpool(folder)
    try:
        for batch in batches:
            spool.add(batch)
        path = spool.write(a_frame())
    finally:
        spool.close()
    data = path.read_bytes()
    path.unlink()
    return data


def saved(*batches: list[Message]) -> bytes:
    thread = a_frame()
    for batch in batches:
        thread.join(Delta(messages=tuple(batch)))
    return encode_thread(thread)


MESSAGES = st.builds(
    lambda name, content, second, rev: a_message(
        name, content, ts=format_time(NOON + second * SECOND), rev=rev
    ),
    st.sampled_from("abcdefgh"),
    st.sampled_from(["", "one", "two \u2028 ‹three›", "x" * 300]),
    st.integers(0, 5),
    st.integers(0, 2),
)


@pytest.mark.parametrize("are_all_alike", [False, True])
@pytest.mark.parametrize("buffer", [1 << 20, 100])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(MESSAGES, max_size=4), max_size=6).filter(any))
def test_whatever_order_messages_come_in_the_file_is_that_of_the_joined_thread(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    buffer: int,
    are_all_alike: bool,
    batches: list[list[Message]],
) -> None:
    """`are_all_alike`: every id hashes to the same number."""
    if are_all_alike:
        monkeypatch.setattr(thread_spool, "hash", lambda _: -7, raising=False)
    monkeypatch.setattr(thread_spool, "_LEAST_TABLE", 2)
    monkeypatch.setattr(thread_spool, "_BUFFER_BYTES", buffer)
    monkeypatch.setattr(thread_spool, "_COPY_BYTES", buffer)
    assert written(tmp_path, *batches) == saved(*batches)
    assert list(tmp_path.iterdir()) == []


def test_what_stands_is_told_so_that_only_that_goes_to_the_index(tmp_path: Path) -> None:
    spool = ThreadSpool(tmp_path)
    first, grown = a_message("a", "half", rev=1), a_message("a", "half and whole", rev=2)
    assert spool.add([first, a_message("b", "other")]) == [first, a_message("b", "other")]
    assert spool.add([grown]) == [grown]
    assert spool.add([first]) == []
    assert len(spool) == 2
    spool.close()


def test_messages_that_are_read_anew_replace_what_came_under_their_ids(tmp_path: Path) -> None:
    spool = ThreadSpool(tmp_path)
    early = a_message("b", "prompt", ts=format_time(NOON))
    placed = a_message("b", "prompt", ts=format_time(NOON), seq=NOON + 5 * SECOND, parent_id="a")
    spool.add([a_message("a", "call", ts=format_time(NOON + SECOND)), early])
    assert spool.add([placed], anew=True) == [placed]
    path = spool.write(a_frame())
    spool.close()
    assert path.read_bytes() == saved([a_message("a", "call", ts=format_time(NOON + SECOND)), placed])


def test_the_file_and_the_spool_are_nobody_elses_to_read_and_leave_nothing_behind(tmp_path: Path) -> None:
    spool = ThreadSpool(tmp_path)
    spool.add([a_message("a", "x" * (2 << 20)), a_message("b", "y")])
    assert list(tmp_path.iterdir()) == []
    path = spool.write(a_frame())
    assert path.stat().st_mode & 0o777 == 0o600
    spool.close()
    assert list(tmp_path.iterdir()) == [path]


def test_memory_does_not_grow_with_what_is_spooled(tmp_path: Path) -> None:
    def spool_much() -> None:
        spool = ThreadSpool(tmp_path)
        words = "all work and no play " * 500
        spool.add([a_message("first", words)])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(10_000):
            at = NOON + (number ^ 1) * SECOND  # two by two in the wrong order
            spool.add([a_message(f"m{number}", words, ts=format_time(at))])
        path = spool.write(a_frame())
        assert path.stat().st_size > 100 << 20
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30 << 10

    child = start_child(spool_much)
    child.join()
    assert child.exitcode == 0


def test_a_message_that_is_spooled_is_held_as_some_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session of two gigabytes has half a million of them."""
    monkeypatch.setattr(thread_spool, "_BUFFER_BYTES", 0)
    spool = ThreadSpool(tmp_path)
    tracemalloc.start()
    try:
        for number in range(0, 6_000, 100):
            spool.add(
                [a_message(f"{at:0100}", ts=format_time(NOON + at)) for at in range(number, number + 100)]
            )
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        spool.close()
    assert held < 6_000 * 70


@pytest.mark.parametrize("limit", [4_096, 3 << 20])
def test_a_full_disk_is_one_error_that_names_the_place(tmp_path: Path, limit: int) -> None:
    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        spool = ThreadSpool(tmp_path)
        with pytest.raises(StorageError, match=str(tmp_path)):
            for number in range(3):
                spool.add([a_message(f"m{number}", "x" * (1 << 20)) for number in (number, number + 5)])
            spool.write(a_frame())
        spool.close()
        assert list(tmp_path.iterdir()) == []

    child = start_child(fill)
    child.join()
    assert child.exitcode == 0


def test_a_folder_that_is_gone_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="absent"):
        ThreadSpool(tmp_path / "absent").write(a_frame())
