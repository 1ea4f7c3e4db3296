"""Locks between real processes and threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from raddle.adapters.locks import LockFiles, LockHeld
from raddle.model.errors import StorageError

HOLD = """
import sys
from pathlib import Path
from raddle.adapters.locks import LockFiles
with LockFiles(Path(sys.argv[1])).held(*sys.argv[3:], shared=sys.argv[2] == "shared"):
    print("held", flush=True)
    sys.stdin.readline()
"""

COUNT = """
import sys
from pathlib import Path
from raddle.adapters.locks import LockFiles
locks, counter = LockFiles(Path(sys.argv[1])), Path(sys.argv[2])
for _ in range(200):
    with locks.held("counter"):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


@contextmanager
def another_process(folder: Path, *names: str, kind: str = "exclusive") -> Iterator[subprocess.Popen[str]]:
    """A process that holds the locks of `names` until the block ends, or it is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), kind, *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.stdin.close()


def is_free(locks: LockFiles, name: str, *, shared: bool = False) -> bool:
    """Can this process have the lock at once?"""
    try:
        with locks.held(name, shared=shared, timeout_seconds=0):
            return True
    except StorageError:
        return False


def test_a_lock_of_another_process_is_waited_for_and_its_holder_named(tmp_path: Path) -> None:
    locks = LockFiles(tmp_path)
    with another_process(tmp_path, "a") as process:
        with pytest.raises(LockHeld) as caught, locks.held("a", timeout_seconds=0.05):
            pass
        assert caught.value.pid == process.pid
        assert f"process {process.pid} holds it" in caught.value.message
        assert str(tmp_path) in caught.value.message
        assert caught.value.hint
    with locks.held("a", timeout_seconds=10):
        assert not is_free_in_a_thread(locks, "a")


def test_a_lock_ends_with_a_killed_process(tmp_path: Path) -> None:
    with another_process(tmp_path, "a") as process:
        process.kill()
        process.wait()
        assert is_free(LockFiles(tmp_path), "a")


def is_free_in_a_thread(locks: LockFiles, name: str) -> bool:
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(is_free(locks, name)))
    thread.start()
    thread.join()
    return answers[0]


def test_two_processes_never_hold_one_lock_at_once(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    arguments = [sys.executable, "-c", COUNT, str(tmp_path / "locks"), str(counter)]
    workers = [subprocess.Popen(arguments) for _ in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    assert counter.read_text() == "400"


def test_two_threads_never_hold_one_lock_at_once(tmp_path: Path) -> None:
    locks = LockFiles(tmp_path / "locks")
    count = [0]

    def work() -> None:
        for _ in range(100):
            with locks.held("counter"):
                before = count[0]
                os.sched_yield()
                count[0] = before + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == [400]


def test_another_thread_of_ones_own_process_is_named_as_such(tmp_path: Path) -> None:
    locks = LockFiles(tmp_path)
    said: list[str] = []

    def ask() -> None:
        try:
            with locks.held("a", timeout_seconds=0):
                said.append("had it")
        except LockHeld as error:
            said.append(f"{error.message} {error.pid}")

    with locks.held("a"):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert "another thread of this process" in said[0]
    assert said[0].endswith(" None")


def test_a_thread_may_take_again_what_it_holds(tmp_path: Path) -> None:
    locks, same = LockFiles(tmp_path), LockFiles(tmp_path)
    with locks.held("a"):
        with same.held("a", timeout_seconds=0), locks.held("a", shared=True, timeout_seconds=0):
            pass
        assert not is_free_in_a_thread(locks, "a")
    assert is_free_in_a_thread(locks, "a")


def test_a_shared_lock_does_not_become_exclusive(tmp_path: Path) -> None:
    locks = LockFiles(tmp_path)
    with locks.held("a", shared=True), pytest.raises(RuntimeError, match="shared"), locks.held("a"):
        pass
    assert is_free(locks, "a")


def test_readers_share_a_lock_and_keep_writers_out(tmp_path: Path) -> None:
    locks = LockFiles(tmp_path)
    with another_process(tmp_path, "a", kind="shared"):
        assert is_free(locks, "a", shared=True)
        assert not is_free(locks, "a")
    with another_process(tmp_path, "a"):
        assert not is_free(locks, "a", shared=True)


def test_different_names_wait_for_each_other_only_where_they_share_a_file(tmp_path: Path) -> None:
    names = [f"thread {number}" for number in range(400)]
    with another_process(tmp_path, names[0]):
        blocked = sum(not is_free(LockFiles(tmp_path), name) for name in names)
        assert not is_free(LockFiles(tmp_path), names[0])
    assert 1 <= blocked < 40


def test_several_names_are_one_order_everywhere(tmp_path: Path) -> None:
    names = [str(number) for number in range(50)]
    arguments = [sys.executable, "-c", HOLD, str(tmp_path), "exclusive"]
    forwards = subprocess.Popen([*arguments, *names], stdin=subprocess.DEVNULL)
    backwards = subprocess.Popen([*arguments, *reversed(names)], stdin=subprocess.DEVNULL)
    assert [forwards.wait(), backwards.wait()] == [0, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc when the waiting has begun")
def test_who_waits_for_one_of_several_holds_none_that_comes_after_it(tmp_path: Path) -> None:
    locks = LockFiles(tmp_path)
    file_of = {name: tmp_path / f"{zlib.crc32(name.encode()) % 64:02d}.lock" for name in ("a", "b")}
    first, second = sorted(file_of, key=lambda name: file_of[name])
    for names in ([first, second], [second, first]):
        waiting = threading.Thread(target=lambda names=names: is_free_within(locks, names, seconds=30))
        with locks.held(first):
            waiting.start()
            while times_open(file_of[first]) < 2:
                os.sched_yield()
            second_was_free = is_free(locks, second)
        waiting.join()
        assert second_was_free


def is_free_within(locks: LockFiles, names: list[str], *, seconds: float) -> bool:
    with locks.held(*names, timeout_seconds=seconds):
        return True


def test_the_set_of_lock_files_is_fixed(tmp_path: Path) -> None:
    locks = LockFiles(tmp_path / "locks", stripes=8)
    for number in range(300):
        with locks.held(str(number)):
            pass
    assert sorted(path.name for path in (tmp_path / "locks").iterdir()) == [
        f"{stripe:02d}.lock" for stripe in range(8)
    ]
    assert (tmp_path / "locks").stat().st_mode & 0o777 == 0o700


def times_open(file: Path) -> int:
    """How often this process has `file` open."""
    return sum(os.path.realpath(link) == str(file) for link in Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc when the waiting has begun")
def test_who_waited_for_a_lock_file_that_was_removed_meanwhile_locks_the_new_one(tmp_path: Path) -> None:
    locks, file = LockFiles(tmp_path, stripes=1), tmp_path / "00.lock"
    has_it, may_go = threading.Event(), threading.Event()

    def wait_for_it() -> None:
        with locks.held("a"):
            has_it.set()
            may_go.wait()

    thread = threading.Thread(target=wait_for_it)
    with locks.held("a"):
        thread.start()
        while times_open(file) < 2:
            os.sched_yield()
        file.unlink()
    has_it.wait()
    was_free = is_free(locks, "a")
    may_go.set()
    thread.join()
    assert not was_free
    assert is_free(locks, "a")


def test_a_forked_child_does_not_take_its_parents_lock_for_its_own(tmp_path: Path) -> None:
    locks = LockFiles(tmp_path)
    code = (
        "import os, sys; from pathlib import Path; from raddle.adapters.locks import LockFiles\n"
        "from raddle.model.errors import StorageError\n"
        "locks = LockFiles(Path(sys.argv[1]))\n"
        "with locks.held('a'):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        try:\n"
        "            with locks.held('a', timeout_seconds=0): os._exit(1)\n"
        "        except StorageError: os._exit(0)\n"
        "    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == 0
    assert is_free(locks, "a")


def test_a_lock_that_cannot_be_made_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="file"), LockFiles(tmp_path / "file").held("a"):
        pass


def test_somebody_elses_lock_can_be_shared_by_a_reader(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from raddle.adapters.locks import LockFiles\n"
        "from raddle.model.errors import StorageError\n"
        "os.chdir(sys.argv[1]); os.chmod('.', 0o755); os.chmod('locks', 0o755)\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        "locks = LockFiles(Path('locks'))\n"
        "locks._folder = Path('locks')\n"
        "with locks.held('a', shared=True): print('read')\n"
        "try:\n    with locks.held('a'): pass\n"
        "except StorageError as error: print(error.message)"
    )
    with LockFiles(tmp_path / "locks").held("a"):
        pass
    for file in (tmp_path / "locks").iterdir():
        file.chmod(0o444)
    (tmp_path / "locks").chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    read, refused = done.stdout.splitlines()
    assert read == "read"
    assert "permission denied" in refused
