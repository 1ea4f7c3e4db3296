"""Other programs, run for real: what they see, what they cost, and that they end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from raddle.adapters.programs import (
    Completed,
    clean_environment,
    find_program,
    ordinary_environment,
    run,
    stream,
)
from raddle.model.errors import InvalidInput, NotFound, StorageError


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_program_says_what_it_says(tmp_path: Path) -> None:
    code = "import sys, os; print(os.getcwd()); print('!', file=sys.stderr); sys.exit(3)"
    done = run(python(code), cwd=tmp_path)
    assert (done.stdout, done.stderr, done.code) == (f"{tmp_path}\n".encode(), b"!\n", 3)
    assert not done.is_timed_out
    assert not done.is_cut


def test_a_megabyte_goes_in_and_comes_out() -> None:
    data = os.urandom(1_000_000)
    done = run(python("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"), input=data)
    assert done.stdout == data


def test_a_program_that_reads_nothing_is_not_waited_for() -> None:
    done = run(python("print('done')"), input=b"x" * 1_000_000)
    assert (done.stdout, done.code) == (b"done\n", 0)


def test_a_program_without_input_sees_an_end_and_no_terminal() -> None:
    done = run(
        python("import sys, os; print(sys.stdin.read() == '', os.isatty(0), os.getsid(0) == os.getpid())")
    )
    assert done.stdout == b"True False True\n"


def test_words_for_a_shell_are_only_words(tmp_path: Path) -> None:
    hostile = ["$(touch evil)", "; touch evil", "*", "a b", "-n", "`touch evil`"]
    done = run(python("import sys; print(sys.argv[1:])") + hostile, cwd=tmp_path)
    assert done.stdout.decode().strip() == str(hostile)
    assert list(tmp_path.iterdir()) == []


def test_our_secrets_stay_with_us_and_messages_are_in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADDLE_TOKEN", "hunter2")
    monkeypatch.setenv("RADDLE_DATABASE_URL", "postgresql://ada:hunter2@db")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    done = run(python("import os; print(dict(os.environ))"))
    assert b"hunter2" not in done.stdout
    assert b"'LC_ALL': 'C'" in done.stdout
    assert b"LANGUAGE" not in done.stdout
    assert b"/run/agent" in done.stdout
    assert clean_environment()["HOME"] == os.environ["HOME"]


def test_an_environment_of_ones_own_is_the_whole_of_it() -> None:
    done = run(["env"], env={"PATH": "/usr/bin:/bin", "ONLY": "this"})
    assert set(done.stdout.split()) == {b"PATH=/usr/bin:/bin", b"ONLY=this"}


def test_only_absolute_folders_of_path_are_looked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    (tmp_path / "notes").write_text("no program")
    monkeypatch.chdir(tmp_path)
    assert find_program("tool", {"PATH": ".::bin"}) is None
    assert find_program("./tool", {"PATH": "/bin"}) is None
    assert find_program("tool", {"PATH": f":.:{tmp_path}"}) == str(program)
    assert find_program(str(program), {}) == str(program)
    assert find_program("notes", {"PATH": str(tmp_path)}) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["tool"]).stdout == b"mine\n"


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no program 'no-such-program'"):
        run(["no-such-program"])
    with pytest.raises(NotFound, match="no folder"):
        run(["env"], cwd=tmp_path / "gone")


def test_what_cannot_be_started_is_named(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("no shebang, no ELF")
    program.chmod(0o755)
    with pytest.raises(StorageError, match="tool: Exec format error"):
        run([str(program)])
    with pytest.raises(InvalidInput, match="null"):
        run(["env", "a\0b"])


def test_too_much_output_is_cut_and_its_program_stopped() -> None:
    done = run(python("while True: print('x' * 999)"), limit_bytes=10_000)
    assert done.is_cut
    assert len(done.stdout) == 10_000
    assert done.code in {-signal.SIGTERM, -signal.SIGKILL}


def test_output_of_just_the_allowed_length_is_whole() -> None:
    done = run(python("print('x' * 9_999)"), limit_bytes=10_000)
    assert not done.is_cut
    assert len(done.stdout) == 10_000


STUBBORN_FAMILY = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
alive = os.open(sys.argv[1], os.O_WRONLY)
subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[alive])  # ignores it too
while True:
    print("x" * 999)
"""


def is_running(pid: int) -> bool:
    """A zombie that nobody has waited for yet does not run."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:1] not in {"", "Z"}


def test_a_program_out_of_time_is_stopped() -> None:
    done = run(python("import signal; signal.pause()"), timeout=0.2)
    assert done.is_timed_out
    assert done.code == -signal.SIGTERM


def test_a_program_that_is_stopped_goes_with_all_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    # The reader's end closes when the last of the family has died, and not before.
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    done = run([*python(STUBBORN_FAMILY), str(tmp_path / "alive")], limit_bytes=10_000)
    assert done.is_cut
    assert done.code == -signal.SIGKILL
    assert select.select([alive], [], [], 10)[0] == [alive]
    assert os.read(alive, 1) == b""
    os.close(alive)


def test_a_program_that_is_stopped_may_tidy_up() -> None:
    code = "import os, signal\nsignal.signal(15, lambda *_: os._exit(7))\nwhile True: print('x' * 999)"
    done = run(python(code), limit_bytes=10_000)
    assert done.is_cut
    assert done.code == 7


def test_a_program_that_closes_its_output_and_stays_is_stopped_too() -> None:
    code = "import os, signal\nos.close(1); os.close(2)\nsignal.pause()"
    assert run(python(code), timeout=0.5).is_timed_out


def test_something_left_running_in_the_background_is_not_waited_for() -> None:
    code = (
        "import subprocess, sys\n"
        "forever = [sys.executable, '-c', 'import signal; signal.pause()']\n"
        "left = subprocess.Popen(forever, start_new_session=True)\n"
        "print(left.pid)"
    )
    before = time.monotonic()
    done = run(python(code), timeout=60)
    assert time.monotonic() - before < 50
    left = int(done.stdout)
    assert done.code == 0
    assert not done.is_timed_out
    assert is_running(left)
    os.kill(left, signal.SIGKILL)


def test_ctrl_c_takes_the_program_along(tmp_path: Path) -> None:
    code = (
        "import sys; from raddle.adapters.programs import run\n"
        "inner = 'import os, signal, sys; open(sys.argv[1], \"w\").write(str(os.getpid())); signal.pause()'\n"
        "run([sys.executable, '-c', inner, sys.argv[1]])"
    )
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    with subprocess.Popen([sys.executable, "-c", code, str(fifo)], stderr=subprocess.PIPE) as ours:
        inner = int(fifo.read_text())
        ours.send_signal(signal.SIGINT)
        assert ours.stderr is not None
        assert b"KeyboardInterrupt" in ours.stderr.read()
    assert not is_running(inner)


def test_many_threads_may_run_programs_at_once() -> None:
    answers: list[bytes] = []
    threads = [
        threading.Thread(target=lambda text: answers.append(run(["echo", text]).stdout), args=[str(number)])
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [b"%d\n" % number for number in range(8)]


def test_no_pipe_is_left_open() -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        run(["true"])
    assert len(list(Path("/dev/fd").iterdir())) == before


def streamed(*args: object, **kwargs: object) -> tuple[list[bytes], list[Completed]]:
    """(What came, piece by piece; how it ended)."""
    ends: list[Completed] = []

    def whole() -> Generator[bytes, None, None]:
        ends.append((yield from stream(*args, **kwargs)))  # type: ignore[arg-type]

    return list(whole()), ends


def test_what_a_program_prints_comes_while_it_runs() -> None:
    code = (
        "import sys; print(sys.stdin.readline()); print('!', file=sys.stderr); sys.stdin.read(); sys.exit(3)"
    )
    pieces, ends = streamed(python(code), input=b"one\n")
    assert b"".join(pieces) == b"one\n\n"
    assert ends == [Completed(stdout=b"", stderr=b"!\n", code=3)]
    going_on = stream(python("import signal; print('one', flush=True); signal.pause()"))
    assert next(going_on).startswith(b"one")
    going_on.close()


def test_a_program_that_is_not_heard_any_more_goes_with_all_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    going_on = stream([*python(STUBBORN_FAMILY), str(tmp_path / "alive")])
    assert next(going_on)
    going_on.close()
    assert select.select([alive], [], [], 10)[0] == [alive]
    assert os.read(alive, 1) == b""
    os.close(alive)


def test_a_program_has_time_as_long_as_it_says_something() -> None:
    code = "import signal, time\nfor n in range(6): print(n, flush=True); time.sleep(0.2)\nsignal.pause()"
    pieces, (end,) = streamed(python(code), quiet_seconds=1.0)
    assert b"".join(pieces).split() == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert end.is_timed_out


def test_a_stream_is_bounded_and_its_errors_keep_their_end() -> None:
    pieces, (end,) = streamed(python("while True: print('x' * 999)"), limit_bytes=10_000)
    assert (len(b"".join(pieces)), end.is_cut) == (10_000, True)
    _, (end,) = streamed(python("import sys; sys.stderr.write('x' * 200_000 + 'end')"))
    assert len(end.stderr) == 64 * 1024
    assert end.stderr.endswith(b"xend")


def test_a_program_that_speaks_to_the_person_may_do_so_in_their_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RADDLE_TOKEN", "hunter2")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert "RADDLE_TOKEN" not in ordinary_environment()
    assert ordinary_environment()["LC_ALL"] == "de_DE.UTF-8"


def test_what_a_thread_waits_for_is_stopped_when_we_end(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from raddle.adapters.meanwhile import Meanwhile; from raddle.adapters.programs import run\n"
        "note = Path(sys.argv[1])\n"
        "Meanwhile(lambda: run(['sh', '-c', f'echo $$ > {note}; exec sleep 60']))\n"
        "while not note.exists() or not note.read_text().strip(): time.sleep(0.01)\n"
    )
    note = tmp_path / "pid"
    subprocess.run([sys.executable, "-c", code, str(note)], check=True, timeout=20)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
