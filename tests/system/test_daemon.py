"""`raddle daemon` as a process: what it brings in, how it ends, and what it survives."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders_claude_code import OTHER_SESSION, ClaudeSession, a_short_session
from tests.builders_daemon import PATIENCE_SECONDS, DaemonProcess, called, status
from tests.builders_import import Machine, add
from tests.system.test_kill_import import state_of

ENDS_WITHIN_SECONDS = 2.0
_A_BUSY_MACHINE_SECONDS = 1.5
"""What a test allows besides: the machine that it runs on may have other things to do."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.claude.mkdir(parents=True)
    return made


def test_a_turn_that_an_agent_writes_becomes_a_thread_and_grows(machine: Machine) -> None:
    talk = ClaudeSession(OTHER_SESSION)
    talk.user("how hot is the kiln?")
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        path = machine.keep(talk)
        daemon.until(lambda: machine.finds("kiln"))
        before = len(talk.data)
        talk.says("cone six, says the pyrometer")
        add(path, talk.data[before:])
        daemon.until(lambda: machine.finds("pyrometer"))
        daemon.end()
    assert machine.texts() == ["how hot is the kiln?", "cone six, says the pyrometer"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_at_once_when_it_is_told_to(machine: Machine, number: signal.Signals) -> None:
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        assert daemon.end(number) < ENDS_WITHIN_SECONDS
    assert not status(machine)["is_running"]
    assert [line["event"] for line in daemon.log()][-1] == "ended"


def test_told_to_end_in_an_import_it_ends_soon_and_the_next_one_does_the_rest(machine: Machine) -> None:
    chance = random.Random(3)  # noqa: S311
    for number in range(60):
        talk = ClaudeSession(f"{number:08d}-0000-4000-8000-000000000000")
        for turn in range(40):
            talk.user(f"question {turn} of {number}")
            talk.says("of clay and fire " * 200)
        machine.keep(talk)
    for _ in range(4):
        with DaemonProcess(machine) as daemon:
            daemon.until(lambda: status(machine)["is_running"])
            daemon.pause(chance.random())
            assert daemon.end() < ENDS_WITHIN_SECONDS + _A_BUSY_MACHINE_SECONDS
    machine.bring_in()
    expected = Machine(machine.folder / "expected", home=machine.home)
    expected.bring_in()
    assert {thread.id: thread.whole().messages for thread in machine.threads()} == {
        thread_id: whole.messages for thread_id, whole in state_of(expected).items()
    }
    assert not list(machine.folder.rglob(".raddle-*.tmp"))


def test_one_works_on_a_data_folder_and_a_second_says_which(machine: Machine) -> None:
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        second = called(machine, "daemon")
        assert second.code == 4
        assert f"process {daemon.process.pid}" in second.err
        found = called(machine, "daemon", "status", "--json").json
        assert (found["is_running"], found["pid"]) == (True, daemon.process.pid)
        assert called(machine, "daemon", "status").out.startswith(f"at work: process {daemon.process.pid}")


def test_one_that_was_killed_is_not_at_work_and_the_next_one_begins(machine: Machine) -> None:
    machine.keep(a_short_session())
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        daemon.kill()
        found = status(machine)
        assert (found["is_running"], found["pid"], found["since"]) == (False, None, "")
        assert found["last_import"]
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        assert status(machine)["pid"] == daemon.process.pid
    assert len(machine.threads()) == 1


def test_stop_ends_it_and_says_where_there_is_none(machine: Machine) -> None:
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        stopped = called(machine, "daemon", "stop", "--json")
        assert stopped.json == {"pid": daemon.process.pid}
        assert daemon.process.wait(PATIENCE_SECONDS) == 0
    assert called(machine, "daemon", "stop").code == 3


def test_it_says_what_it_does_without_a_server_and_offline(machine: Machine) -> None:
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        found = status(machine)
        assert (found["server"], found["is_offline"], found["pending"]) == (None, False, None)
        daemon.end()
        assert "raddle login" in daemon.told()
    with DaemonProcess(machine, {"RADDLE_OFFLINE": "1", "RADDLE_SERVER": "https://raddle.invalid"}) as daemon:
        daemon.until(lambda: status(machine)["is_offline"])
        assert status(machine)["server"] is None


def test_a_server_that_is_not_there_keeps_nobody_from_importing(machine: Machine) -> None:
    env = {"RADDLE_SERVER": "http://127.0.0.1:9", "RADDLE_TOKEN": "t" * 40}
    with DaemonProcess(machine, env) as daemon:
        machine.keep(a_short_session())
        daemon.until(machine.threads)
        daemon.until(lambda: (status(machine)["last_error"] or {}).get("code") == "network")
        assert daemon.end() < ENDS_WITHIN_SECONDS
    assert "t" * 40 not in machine.everything_stored().decode(errors="replace")


LISTENS_AND_SAYS_NOTHING = """
import socket
with socket.create_server(("127.0.0.1", 0)) as here:
    print(here.getsockname()[1], flush=True)
    there, _ = here.accept()
    print("asked", flush=True)
    while there.recv(1000):
        pass
    here.accept()
"""


def test_a_server_that_never_answers_keeps_it_neither_from_its_work_nor_from_its_end(
    machine: Machine,
) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", LISTENS_AND_SAYS_NOTHING], stdout=subprocess.PIPE, text=True
    )
    with server:
        assert server.stdout is not None
        env = {"RADDLE_SERVER": f"http://127.0.0.1:{int(server.stdout.readline())}", "RADDLE_TOKEN": "t" * 40}
        with DaemonProcess(machine, env) as daemon:
            assert server.stdout.readline() == "asked\n"
            machine.keep(a_short_session())
            daemon.until(machine.threads)
            daemon.until(lambda: status(machine)["server"] == env["RADDLE_SERVER"])
            assert daemon.end() < ENDS_WITHIN_SECONDS
        server.kill()


def test_the_log_has_no_word_of_a_session(machine: Machine) -> None:
    talk = ClaudeSession(OTHER_SESSION)
    talk.user("a very private pot")
    with DaemonProcess(machine) as daemon:
        path = machine.keep(talk)
        add(path, b"no record, but a private line\n")
        daemon.until(lambda: machine.finds("private"))
        daemon.until(lambda: any(line["event"] == "import" and line["messages"] for line in daemon.log()))
        daemon.end()
    assert "private" not in str(daemon.log())
    assert OTHER_SESSION not in str(daemon.log())


def test_a_rule_that_is_added_holds_for_the_next_session(machine: Machine) -> None:
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        before = status(machine)["last_import"]
        machine.configure('[private]\nworkspaces = ["/**"]\n')
        daemon.until(lambda: status(machine)["last_import"] != before)  # it has begun anew
        machine.keep(a_short_session())
        daemon.until(machine.threads)
    assert machine.thread().is_private


def test_settings_that_cannot_be_read_stop_all_work_until_they_are_mended(machine: Machine) -> None:
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        machine.configure("[private\n")
        daemon.until(lambda: any(line.get("part") == "settings" for line in daemon.log()))
        machine.keep(a_short_session())
        daemon.pause(1.5)
        assert not _ids(machine)
        machine.configure("")
        daemon.until(lambda: _ids(machine))
        daemon.until(lambda: status(machine)["last_error"]["is_over"])


def _ids(machine: Machine) -> list[Path]:
    return list(machine.folder.joinpath("data", "threads").glob("T-*.json"))


def test_a_data_folder_that_goes_away_is_waited_for_and_not_made_anew(machine: Machine) -> None:
    data = machine.folder / "data"
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        data.rename(machine.folder / "unplugged")
        daemon.until(lambda: (status(machine)["last_error"] or {}).get("part") == "import")
        machine.keep(a_short_session())
        daemon.pause(1.5)
        assert not data.exists()
        machine.folder.joinpath("unplugged").rename(data)
        daemon.until(lambda: _ids(machine))
        daemon.until(lambda: status(machine)["is_running"])


def test_a_folder_of_an_agent_that_is_made_anew_is_followed(machine: Machine) -> None:
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        machine.claude.rename(machine.claude.with_name("moved away"))
        machine.keep(a_short_session())
        daemon.until(lambda: _ids(machine))


def test_a_thread_file_that_cannot_be_read_keeps_nobody_from_the_others(machine: Machine) -> None:
    threads = machine.folder / "data" / "threads"
    threads.mkdir(parents=True, mode=0o700)
    threads.joinpath("T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5bff.json").write_bytes(b"\0 no thread")
    with DaemonProcess(machine) as daemon:
        machine.keep(a_short_session())
        daemon.until(lambda: machine.finds("role:user"))
        assert daemon.end() < ENDS_WITHIN_SECONDS
