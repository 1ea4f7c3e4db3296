"""The command line among its neighbours: pipes, terminals, closed streams, full disks and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import PROGRAM, Terminal, done, new, program, seen, terminal

ESCAPE = "\x1b["


@pytest.fixture
def thread() -> str:
    """A thread with a title and a few turns."""
    made = new("hello there", "--title", "Greetings")
    done("reply", made, "**hi**\n\n  code", "--role", "assistant")
    return made


def shell(line: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell, in which $RADDLE is the program."""
    command = " ".join(f"'{word}'" for word in PROGRAM)
    return subprocess.run(
        ["/bin/bash", "-c", f"set -o pipefail; {line.replace('$RADDLE', command)}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **env},
    )


@pytest.mark.parametrize("words", ["list", "search hello", "show ID", "show ID --tree", "branches ID", "-h"])
def test_data_in_a_pipe_is_plain_text(words: str, thread: str) -> None:
    answer = program(*words.replace("ID", thread).split())
    assert answer.code == 0
    assert answer.data
    assert b"\x1b" not in answer.data
    assert "\x1b" not in answer.err


@pytest.mark.parametrize("words", ["list", "search hello", "show ID"])
def test_a_terminal_is_drawn_in_colour_unless_no_colour_is_wished(words: str, thread: str) -> None:
    arguments = words.replace("ID", thread).split()
    assert ESCAPE in seen(*arguments)
    assert ESCAPE not in seen(*arguments, NO_COLOR="1")


@pytest.mark.parametrize(
    "words", ["list", "search hello", "show ID", "show ID --tree", "branches ID", "-h", "tag"]
)
@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_can_only_print_lines_gets_nothing_else(words: str, term: str, thread: str) -> None:
    with terminal(*words.replace("ID", thread).split(), TERM=term, FORCE_COLOR="1") as screen:
        screen.end()
    assert screen.shown
    assert "\x1b" not in screen.shown


@pytest.mark.parametrize("words", ["list", "search hello", "show ID", "tag"])
def test_colour_cannot_be_forced_into_a_pipe(words: str, thread: str) -> None:
    forced = {**os.environ, "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TERM": "xterm-256color"}
    answer = program(*words.replace("ID", thread).split(), env=forced)
    assert b"\x1b" not in answer.data
    assert "\x1b" not in answer.err


def test_json_on_a_terminal_is_pretty_and_without_colour(thread: str) -> None:
    assert seen("list", "--json").startswith('[\n  {\n    "id": ')
    assert ESCAPE not in seen("list", "--json")


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 120])
def test_what_is_drawn_fits_the_terminal(columns: int, thread: str) -> None:
    done("new", "東京湾の水位 " * 30, "--title", "A title that goes on " * 10)
    from raddle.apps.cli import words

    for arguments in (["list"], ["search", "東京湾"], ["show", thread], ["show", thread, "--tree"]):
        drawn = seen(*arguments, columns=columns, NO_COLOR="1")
        assert max(map(words.width, drawn.splitlines())) <= columns


def test_a_heading_stands_above_a_list_for_people_only(thread: str) -> None:
    assert "TITLE" in seen("list")
    assert len(done("list").lines) == 1


@pytest.fixture
def long_thread() -> str:
    """A thread that no screen holds."""
    return new("\n".join(f"line {number}" for number in range(200)), "--title", "Long")


def test_what_no_screen_holds_goes_through_the_pager(long_thread: str, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > '{tmp_path}/paged'\n")
    pager.chmod(0o700)
    with terminal("show", long_thread, PAGER=str(pager), NO_COLOR="1") as screen:
        assert screen.end() == 0
    paged = (tmp_path / "paged").read_text()
    assert "  line 199\n" in paged
    assert ESCAPE not in paged
    assert "line 1" not in screen.shown


def test_a_terminal_that_can_only_print_lines_has_no_pager(long_thread: str) -> None:
    shown = seen("show", long_thread, rows=24, TERM="dumb", PAGER="/bin/false")
    assert "line 199" in shown


def test_what_a_screen_holds_goes_through_no_pager(thread: str, tmp_path: Path) -> None:
    assert "hello there" in seen("show", thread, rows=24, PAGER="/bin/false")


def test_a_pager_that_is_left_early_is_no_error(long_thread: str) -> None:
    with terminal("show", long_thread, PAGER="head -n 3") as screen:
        assert screen.end() == 0
    assert "Traceback" not in screen.shown
    assert "error" not in screen.shown


@pytest.mark.parametrize("words", ["list --all", "list --json", "list --jsonl", "show ID", "search hello"])
def test_a_reader_that_has_seen_enough_is_no_error(words: str) -> None:
    ids = [new(f"hello {number} " + "x" * 3000, "--title", f"Number {number}") for number in range(40)]
    ran = shell(f"$RADDLE {words.replace('ID', ids[0])} | head -c 1")
    assert ran.returncode == 0
    assert len(ran.stdout) == 1
    assert "Traceback" not in ran.stderr
    assert "rror" not in ran.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", ["list", "show ID --json", "show ID", "-h"])
def test_output_that_cannot_be_written_is_a_storage_error(words: str, thread: str) -> None:
    ran = shell(f"$RADDLE {words.replace('ID', thread)} > /dev/full")
    assert ran.returncode == 6
    assert "cannot write the output: No space left on device" in ran.stderr
    assert len(ran.stderr.splitlines()) == (1 if "--json" in words else 2)


def test_a_closed_stdout_harms_nothing(thread: str) -> None:
    ran = shell("$RADDLE list >&-; $RADDLE new 'more' >&-; $RADDLE list --json")
    assert ran.returncode == 0, ran
    assert len(ran.stdout.splitlines()) == 1
    assert done("list", "--json").json[0]["title"] == "more"


def test_a_closed_stderr_or_stdin_harms_nothing() -> None:
    assert shell("$RADDLE show zz 2>&-").returncode == 2
    assert shell("$RADDLE new - <&-").returncode == 2
    assert shell("$RADDLE list 2>&- <&-").returncode == 0


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1"])
def test_a_narrow_locale_gets_what_it_can_show(locale: str) -> None:
    new("東京湾", "--title", "Tōkyō ★")
    answer = program("list", env={**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONIOENCODING": ""})
    assert answer.code == 0, answer
    assert program("list", env={**os.environ, "PYTHONIOENCODING": "ascii"}).data.isascii()


def test_bytes_that_are_no_text_are_refused_where_they_would_be_kept_and_harm_no_query() -> None:
    made = subprocess.run([*PROGRAM, "new", b"caf\xe9 \xff"], capture_output=True, text=True, check=False)
    assert made.returncode == 2
    assert "not UTF-8 (byte 4)" in made.stderr
    assert program("new", "-", stdin=Path("/bin/ls").read_bytes()).code == 2
    assert done("list", "--json").json == []
    asked = subprocess.run([*PROGRAM, "search", b"caf\xe9"], capture_output=True, check=False)
    assert asked.returncode == 0


@pytest.mark.parametrize("words", [("new", "-"), ("private",)])
def test_control_c_is_130_and_leaves_nothing_half_written(words: tuple[str, ...]) -> None:
    with terminal(*words) as screen:
        screen.wait_for("Ctrl-D")
        screen.type("half a tho")
        assert screen.interrupt() == 130
    assert screen.shown.splitlines()[-1] == "interrupted"
    assert "Traceback" not in screen.shown
    assert done("list", "--json").json == []


def test_text_typed_at_a_terminal_ends_with_control_d() -> None:
    with terminal("new", "-", "--json") as screen:
        screen.wait_for("Ctrl-D")
        screen.type("typed\n\x04")
        assert screen.end() == 0
    assert done("list", "--json").json[0]["title"] == "typed"


def test_control_c_at_a_question_erases_nothing(thread: str) -> None:
    with terminal("purge", thread) as screen:
        screen.wait_for("[y/N]")
        assert screen.interrupt() == 130
    assert len(done("list", "--json").json) == 1


def test_sigterm_ends_it_without_a_traceback() -> None:
    with subprocess.Popen(
        [*PROGRAM, "new", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as waiting:
        waiting.send_signal(signal.SIGTERM)
        _, err = waiting.communicate()
    assert waiting.returncode == -signal.SIGTERM
    assert err == b""


def test_completion_in_bash_knows_commands_options_and_threads(thread: str, tmp_path: Path) -> None:
    command = tmp_path / "raddle"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m raddle "$@"\n')
    command.chmod(0o700)
    asks = """
    eval "$(raddle completion bash)"
    complete_it() {
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        _raddle_completion raddle
        printf '%s ' "${COMPREPLY[@]}"; echo
    }
    complete -p raddle >/dev/null || exit 9
    complete_it raddle sea
    complete_it raddle list --js
    complete_it raddle show ""
    """
    ran = shell(asks, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert ran.returncode == 0, ran
    assert [line.split() for line in ran.stdout.splitlines()] == [
        ["search"],
        ["--json", "--jsonl"],
        [thread[:10]],
    ]


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_completion_script_is_one_its_shell_reads(name: str) -> None:
    script = done("completion", name).out
    assert "_RADDLE_COMPLETE" in script
    program_of = next(
        (f"{folder}/{name}" for folder in ("/bin", "/usr/bin") if Path(f"{folder}/{name}").exists()), ""
    )
    if program_of:
        checked = subprocess.run(
            [program_of, "-n"], input=script, text=True, capture_output=True, check=False
        )
        assert (checked.returncode, checked.stderr) == (0, "")


def test_a_window_of_no_size_is_taken_for_a_usual_one(thread: str) -> None:
    with Terminal((*PROGRAM, "list"), columns=0, rows=0) as screen:
        assert screen.end() == 0
    assert "Greetings" in screen.shown
