"""How processes are timed: what their children use counts, what they leave running is found."""

from __future__ import annotations

import sys

import pytest

from bench.timing import Command, Run, interleaved, run_once, table

BURN = "sum(range(3_000_000)); block = bytearray(60_000_000)"


def python(name: str, code: str) -> Command:
    return Command(name=name, argv=[sys.executable, "-I", "-S", "-c", code])


def test_a_childs_time_and_memory_are_its_parents() -> None:
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', {BURN!r}])"
    idle, busy = run_once(python("idle", "pass")), run_once(python("busy", nested))
    assert busy.cpu > idle.cpu
    assert busy.peak_rss > 60_000_000 > idle.peak_rss > 0


def test_rounds_go_through_all_commands_in_turn_after_the_warm_up() -> None:
    order: list[str] = []

    def noting(name: str) -> Command:
        argv = [sys.executable, "-I", "-S", "-c", "pass"]
        return Command(name=name, argv=argv, prepare=lambda: order.append(name))

    commands = [noting("a"), noting("b")]
    runs = interleaved(commands, rounds=2, warm_ups=1)
    assert order == ["a", "b"] * 3
    assert {name: len(own) for name, own in runs.items()} == {"a": 2, "b": 2}


def test_a_failed_run_is_an_error_with_what_it_said() -> None:
    with pytest.raises(RuntimeError, match=r"wrong ended with 3: no such luck"):
        run_once(python("wrong", "import sys; print('no such luck'); sys.exit(3)"))


def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"ended with nothing: no-such-program: No such file"):
        run_once(Command(name="absent", argv=["no-such-program"]))


@pytest.mark.skipif(sys.platform != "linux", reason="the environment of other processes is read from /proc")
def test_a_process_that_stays_is_found_even_in_a_session_of_its_own() -> None:
    code = "import time; time.sleep(4)"
    stay = (
        f"import subprocess, sys; command = [sys.executable, '-I', '-S', '-c', {code!r}];"
        "quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL};"
        "subprocess.Popen(command, start_new_session=True, **quiet)"
    )
    with pytest.raises(RuntimeError, match=r"left processes behind"):
        run_once(python("daemon", stay))


def test_the_table_has_medians_and_ratios_to_the_first() -> None:
    def run(wall: float) -> Run:
        return Run(wall=wall, user=wall, system=0.0, peak_rss=2_000_000, together_rss=0, output="")

    ours, theirs = [run(1.0), run(2.0), run(9.0)], [run(2.0), run(6.0), run(9.0)]
    head, first, second = table({"ours": ours, "theirs": theirs}).splitlines()
    assert head.split()[:3] == ["wall", "s", "min-max"]
    assert first.split()[:3] == ["ours", "2.000", "1.000-9.000"]
    assert second.split()[-3:] == ["2.00", "2.00", "1.00"]
