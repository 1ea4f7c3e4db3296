"""`raddle import` as a person meets it: what it says of what it left out, and how it ends when it is stopped."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.actions.importing.registry import agents
from raddle.config import load_config
from raddle.wiring import Stores
from tests.builders_claude_code import OTHER_SESSION, SESSION, ClaudeSession, a_short_session
from tests.builders_import import Machine, write
from tests.command_line import PROGRAM, done, program, raddle

BIG = 12 << 20
"""More than is read without workers."""


@pytest.fixture
def machine(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path / "machine")
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    return machine


def a_bad_session(machine: Machine, session: str, bad: int) -> Path:
    talk = ClaudeSession(session)
    talk.user("a good line")
    path = machine.file(f"{session}.jsonl")
    write(path, talk.data + b"".join(b'{"type":"strange-%d"}\n' % number for number in range(bad)))
    return path


def test_a_file_with_many_problems_does_not_hide_the_others(machine: Machine) -> None:
    a_bad_session(machine, SESSION, 60)
    a_bad_session(machine, OTHER_SESSION, 2)
    lines = done("import").err.splitlines()
    assert len(lines) == 3 + 1 + 2
    assert [SESSION in line for line in lines] == [True] * 3 + [False] * 3
    assert lines[3] == "… and 57 more in this file (--all-problems, or --json)"
    assert all(OTHER_SESSION in line for line in lines[4:])


def test_every_problem_is_told_where_it_is_asked_for(machine: Machine) -> None:
    path = a_bad_session(machine, SESSION, 60)
    assert len(done("import", "--json").json["problems"]) == 60
    path.rename(path.with_name(f"{OTHER_SESSION}.jsonl"))
    assert len(done("import", "--all-problems").err.splitlines()) == 60


def test_many_files_with_problems_are_counted_past_the_first(machine: Machine) -> None:
    for number in range(12):
        a_bad_session(machine, f"{number:08d}-0000-4000-8000-000000000000", 3)
    lines = done("import").err.splitlines()
    assert len(lines) == 6 * 3 + 1
    assert lines[-1] == "… and 18 problems in 6 more files (--all-problems, or --json)"


def test_where_rules_leave_all_out_it_says_how_many_and_which_rule(machine: Machine) -> None:
    for number in range(9):
        talk = ClaudeSession(f"{number:08d}-0000-4000-8000-000000000000")
        talk.user("a talk")
        machine.keep(talk)
    machine.configure(f"[import]\nexclude = ['{machine.home}/**']\n")
    for words, nothing in (("import", "nothing was imported"), ("import --dry-run", "nothing new to read")):
        answer = done(*words.split())
        assert answer.lines == [f"{nothing}: 9 files left out"]
        lines = answer.err.splitlines()
        assert len(lines) == 6
        assert all("[import] exclude" in line for line in lines)
        assert lines[-1].startswith("… and 4 more files left out: [import] exclude")
    assert len(done("import", "--all-problems").err.splitlines()) == 9
    assert len(done("import", "--dry-run", "--json").json["left_out"]) == 9


def test_a_home_that_cannot_be_read_is_named_and_does_not_read_as_nothing_there(machine: Machine) -> None:
    machine.claude.parent.mkdir(parents=True)
    machine.claude.symlink_to("projects")
    answer = done("import")
    assert answer.lines == ["nothing was imported: 1 place could not be read"]
    assert answer.err == "~/.claude/projects: it cannot be read: its symbolic links lead in a circle\n"


def test_a_machine_without_agents_is_told_so(machine: Machine) -> None:
    answer = done("import")
    assert (answer.lines, answer.err) == (["no sessions of another agent were found on this machine"], "")


@pytest.mark.parametrize("command", ["import", "up"])
def test_a_damaged_ledger_is_mended_and_told_in_one_line(
    machine: Machine, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RADDLE_OFFLINE", "1")  # no server of `up`'s
    machine.keep(a_short_session())
    done("import")
    (machine.folder / "data" / "import-ledger.sqlite3").write_bytes(b"not a database" * 100)
    answer = done(command)
    (line,) = [line for line in answer.err.splitlines() if "ledger" in line]
    assert "damaged" in line
    assert "set aside" in line
    assert "ledger" not in done(command).err
    assert len(machine.threads()) == 1


def test_a_path_that_is_not_there_is_named_once(machine: Machine) -> None:
    answer = raddle("import", "/not/there")
    assert answer.code == 3
    assert answer.err.count("/not/there") == 1


def test_a_relative_path_where_the_current_folder_is_gone_says_that(machine: Machine, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    answer = program("import", "./x", cwd=gone, preexec_fn=gone.rmdir)  # the child stands in it when it goes
    assert (answer.code, answer.err.splitlines()[0]) == (6, "error: the current folder is gone")


@pytest.fixture
def large(machine: Machine) -> Machine:
    """A home of which an import is at work for a while, with workers."""
    words = "kiln and clay " * 60
    for number in range(40):
        talk = ClaudeSession(f"{number:08d}-0000-4000-8000-000000000000")
        for turn in range(BIG // 40 // 2 // len(words)):
            talk.user(f"question {number}.{turn} {words}")
            talk.says(f"answer {number}.{turn} {words}", message=f"msg_{number}_{turn}")
        machine.keep(talk)
    return machine


def half_made(machine: Machine) -> Iterator[Path]:
    return (machine.folder / "data").rglob(".raddle-*")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_import_that_is_stopped_tidies_up_and_keeps_what_it_finished(
    large: Machine, number: signal.Signals
) -> None:
    """As a terminal does it, which tells the whole group; the moment is when the first thread stands."""
    child = subprocess.Popen(
        [*PROGRAM, "import"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    threads = large.folder / "data" / "threads"
    assert child.stderr is not None
    assert select.select([child.stderr], [], [], 60)[0], "it says that it began"
    assert b"importing" in child.stderr.readline()
    while child.poll() is None and not any(half_made(large)):
        select.select([], [], [], 0.005)
    os.killpg(child.pid, number)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (128 + number, b"")
    assert err.decode() == "stopped: what was finished is kept; `raddle import` does the rest\n"
    assert list(half_made(large)) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)
    finished = len(list(threads.glob("*.json")))
    assert finished < 40
    report = done("import", "--json").json
    assert report["threads"] == 40 - finished
    assert large.orphans() == set()
    with Stores(load_config(large.environment)) as stores:
        assert stores.index.verify() == []
        assert len(stores.listed(limit=None)) == 40


def test_a_signal_that_is_ignored_stays_ignored(large: Machine) -> None:
    """`nohup raddle import` goes on when its terminal goes."""
    code = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        "os.execv(sys.executable, [sys.executable, '-m', 'raddle', 'import'])"
    )
    started = [sys.executable, "-c", code]
    child = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert child.stderr is not None
    assert b"importing" in child.stderr.readline()
    os.killpg(child.pid, signal.SIGHUP)
    out, _ = child.communicate(timeout=60)
    assert (child.returncode, b"40 new threads" in out) == (0, True)


def test_a_path_from_which_nothing_can_be_read_is_told_and_ends_with_3(
    machine: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "saved.jsonl"
    path.write_bytes(b"}{\n")
    for _ in range(2):
        answer = raddle("import", str(path))
        assert answer.code == 3
        told, *error = answer.err.splitlines()
        assert told.endswith("saved.jsonl:1: not a record")
        assert error[0].startswith("error: no session that can be read at ")
    assert raddle("import", str(path), "--json").code == 3
    path.write_bytes(path.read_bytes() + a_short_session().data)
    assert raddle("import", str(path)).code == 0


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("torn.jsonl", b'{"type":"user","uuid":"1"\n'),
        ("other.jsonl", b'{"a":1}\n'),
        ("words.txt", b"hi\n"),
        ("thread.json", b'{"id":"T-00000000-0000-7000-8000-000000000000","conversation":'),
    ],
)
def test_a_dry_run_of_a_path_that_gives_nothing_ends_as_the_import_does(
    machine: Machine, tmp_path: Path, name: str, data: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    for _ in range(2):  # also where the ledger has it as one that said nothing
        dry = raddle("import", "--dry-run", str(path))
        real = raddle("import", str(path))
        assert (dry.code, dry.err) == (real.code, real.err)
        assert dry.code == 3
        assert dry.out.startswith("nothing new to read: 1 place could not be read")


@pytest.mark.parametrize(("typed", "meant"), [("clade-code", "claude-code"), ("Codex", "codex")])
def test_an_agent_that_is_misspelt_is_guessed(machine: Machine, typed: str, meant: str) -> None:
    answer = raddle("import", typed)
    assert answer.code == 3
    assert f"did you mean {meant}?" in answer.err


@pytest.mark.parametrize("data", [b"", b'{"type":"summary","summary":"Of another","leafUuid":"x"}\n'])
def test_a_session_that_says_nothing_is_told_as_such_each_time_and_by_a_dry_run_too(
    machine: Machine, tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "saved.jsonl"
    path.write_bytes(data)
    for words in (["--dry-run"], [], [], ["--dry-run"]):
        answer = raddle("import", *words, str(path))
        assert answer.code == 3
        assert ("nobody says anything in it" if data else "it is empty") in answer.err


def test_a_dry_run_of_a_folder_counts_what_says_something(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b"}{\n")
    answer = raddle("import", "--dry-run", "--json", str(tmp_path / "bad.jsonl"))
    assert (answer.code, answer.json["agents"]) == (3, [])
    assert [problem["line"] for problem in answer.json["problems"]] == [1]
    (tmp_path / "good.jsonl").write_bytes(a_short_session().data)
    (row,) = done("import", "--dry-run", "--json", str(tmp_path)).json["agents"]
    assert row["sessions"] >= 1
    machine.keep(a_short_session())
    done("import")
    assert done("import", "--dry-run", str(machine.claude)).lines == ["nothing new to read"]


def test_what_was_found_and_not_looked_into_does_not_read_as_nothing_there(machine: Machine) -> None:
    machine.keep(a_short_session())
    answer = done("import", "--since", "2099-01-01")
    assert answer.lines == ["nothing was imported: 1 session older than --since"]
    done("import")
    with machine.stores() as stores:
        (thread_id,) = stores.threads.ids()
    done("purge", thread_id, "--yes")
    assert done("import").lines == ["nothing was imported: 1 session purged here (--revive brings back)"]


@pytest.mark.parametrize("other", [["--since", "7d"], ["--revive"], ["--dry-run"]])
def test_to_follow_goes_with_nothing_that_is_done_once(machine: Machine, other: list[str]) -> None:
    answer = raddle("import", "--watch", *other)
    assert answer.code == 2
    assert "--watch goes with none" in answer.err


def test_who_follows_is_told_what_came_and_is_stopped_in_order(machine: Machine) -> None:
    talk = a_short_session()
    path = machine.keep(talk)
    with subprocess.Popen(
        [*PROGRAM, "import", "--watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        told = [child.stdout.readline() for _ in range(3)]
        assert b"claude-code" in told[1]
        assert b"following" in child.stderr.readline()
        more = ClaudeSession(path.stem, start=1_800_000_000_000_000)
        more.user("and on", uuid="0b0b0b0b-0000-4000-8000-000000000000")
        with path.open("ab") as file:
            file.write(more.data)
        assert child.stdout.readline() == b"claude-code: 1 message\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(20) == 128 + signal.SIGTERM
        assert child.stderr.read().startswith(b"stopped: ")


def test_an_agent_goes_by_what_people_call_it_too(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.keep(a_short_session())
    assert done("import", "claude").lines[1].startswith("claude-code")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claude").mkdir()
    answer = raddle("import", "claude")
    assert (answer.code, "no session" in answer.err) == (3, True), "a folder of that name is what was meant"


def test_the_help_names_every_agent() -> None:
    shown = done("import", "--help").out
    assert [agent for agent in agents() if agent not in shown.lower()] == []
