"""Work given to other processes is done once, told as it comes, and ends with whoever asked for it."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from raddle.adapters.locks import LockFiles
from raddle.adapters.workers import answers
from raddle.model.errors import StorageError

Send = Callable[[bytes], None]


def echo(task: bytes, send: Send) -> None:
    for number in range(3):
        send(b"%s.%d" % (task, number))


def quiet(task: bytes, send: Send) -> None:
    """Work that has nothing to say."""


def name_itself(task: bytes, send: Send) -> None:
    send(b"%d" % os.getpid())


def send_much(size: int, task: bytes, send: Send) -> None:
    send(task * size)


def die(how: int, task: bytes, send: Send) -> None:
    send(b"began " + task)
    if task == b"2":
        os.kill(os.getpid(), how)
    send(b"ended " + task)


def give_up(task: bytes, send: Send) -> None:
    raise SystemExit(3)


def tell_for_ever(task: bytes, send: Send) -> None:
    while True:
        send(b"%d" % os.getpid())


@pytest.mark.parametrize("processes", [0, 1, 2, 5])
def test_every_task_is_answered_whole_and_in_its_own_order(processes: int) -> None:
    tasks = [b"%d" % number for number in range(12)]
    got = list(answers(echo, tasks, processes=processes))
    for task in tasks:
        assert [one for one in got if one.split(b".")[0] == task] == [b"%s.%d" % (task, n) for n in range(3)]
    assert len(got) == 36


@pytest.mark.parametrize("processes", [0, 2])
def test_work_without_answers_and_no_work_at_all_end(processes: int) -> None:
    assert list(answers(quiet, [b"1", b"2", b"3"], processes=processes)) == []
    assert list(answers(echo, [], processes=processes)) == []


def test_the_work_is_done_elsewhere_by_as_many_as_there_is_work_for() -> None:
    pids = set(answers(name_itself, [b"x"] * 2, processes=8))
    assert 0 < len(pids) <= 2
    assert b"%d" % os.getpid() not in pids
    assert set(answers(name_itself, [b"x"], processes=0)) == {b"%d" % os.getpid()}


def test_answers_larger_than_a_pipe_come_whole() -> None:
    work = functools.partial(send_much, 1 << 20)
    assert sorted(map(len, answers(work, [b"a", b"bb", b"ccc"], processes=2))) == [
        1 << 20,
        2 << 20,
        3 << 20,
    ]


def test_tasks_are_asked_for_only_when_somebody_can_do_them() -> None:
    asked: list[int] = []

    def tasks() -> Iterable[bytes]:
        for number in range(50):
            asked.append(number)
            yield b"%d" % number

    stream = answers(echo, tasks(), processes=2)
    next(stream)
    assert len(asked) < 10
    stream.close()


@pytest.mark.parametrize(
    ("how", "told"), [(signal.SIGKILL, "killed by signal 9"), (signal.SIGTERM, "killed by signal 15")]
)
def test_a_worker_that_dies_is_one_clear_error_and_what_came_before_it_stays(how: int, told: str) -> None:
    got: list[bytes] = []
    with pytest.raises(StorageError, match=told) as error:
        got.extend(answers(functools.partial(die, how), [b"1", b"2", b"3", b"4"], processes=1))
    assert "run it again" in error.value.hint
    assert multiprocessing.active_children() == []


def test_a_worker_that_gives_up_is_told_by_its_exit_code() -> None:
    with pytest.raises(StorageError, match="exit code 3"):
        list(answers(give_up, [b"1", b"2"], processes=2))


def test_who_stops_listening_leaves_no_worker_behind() -> None:
    stream = answers(tell_for_ever, [b"1", b"2"], processes=2)
    pids = {int(next(stream)) for _ in range(20)}
    stream.close()
    assert multiprocessing.active_children() == []
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_workers_end_with_a_parent_that_is_killed_and_hold_none_of_its_locks(tmp_path: Path) -> None:
    read, write = os.pipe()

    def parent() -> None:
        with LockFiles(tmp_path).held("import"):
            stream = iter(answers(tell_for_ever, [b"1", b"2"], processes=2))
            os.write(write, b" ".join({next(stream) for _ in range(50)}))
            os.write(write, b"\n")
            signal.pause()

    child = multiprocessing.get_context("fork").Process(target=parent)  # a daemon may have no workers
    child.start()
    os.close(write)
    told = b""
    while data := os.read(read, 100):
        told += data
        if told.endswith(b"\n"):
            break
    child.kill()
    child.join()
    with LockFiles(tmp_path).held("import", timeout_seconds=1):
        pass
    deadline = time.monotonic() + 10
    waiting = {int(pid) for pid in told.split()}
    while waiting and time.monotonic() < deadline:
        waiting = {pid for pid in waiting if is_running(pid)}
    assert waiting == set()


def is_running(pid: int) -> bool:
    """Is it there, and no mere entry that waits for init to take note?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
