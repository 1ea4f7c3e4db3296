"""Two machines and a real server, and nobody who runs a sync: what is written on one is on the other a moment later."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Self

from tests.builders_claude_code import OTHER_SESSION, ClaudeSession
from tests.builders_daemon import PATIENCE_SECONDS, DaemonProcess, called, status
from tests.builders_import import Machine, add
from tests.command_line import PROGRAM
from tests.postgres import NewDatabase

pytest_plugins = ["tests.postgres"]


class ServerProcess:
    """`raddle serve` on a machine of its own. As a context manager it is ended."""

    def __init__(self, machine: Machine, *, port: int = 0) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, "serve", "--port", str(port)],
            env={**os.environ, **machine.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stderr is not None
        told = ""
        for line in self.process.stderr:
            told += line.decode()
            found = re.search(r"listening on (http://\S+:(\d+))", told)
            if found:
                self.address, self.port = found[1], int(found[2])
                return
        self.end()
        raise AssertionError(f"the server did not begin: {told}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End it, and wait until it has."""
        if self.process.stderr is None or self.process.stderr.closed:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE_SECONDS)
        finally:
            self.process.kill()
            self.process.communicate()


def test_a_turn_on_one_machine_is_on_the_other_also_after_the_server_was_away(
    tmp_path: Path, new_database: NewDatabase
) -> None:
    host = Machine(tmp_path / "host")
    host.variables["RADDLE_DATABASE_URL"] = new_database()
    one, other = Machine(tmp_path / "one"), Machine(tmp_path / "other")
    for machine in (one, other):
        machine.claude.mkdir(parents=True)
    talk = ClaudeSession(OTHER_SESSION)
    talk.user("how hot is the kiln?")
    with ServerProcess(host) as server:
        assert called(host, "serve", "user", "add", "ada").code == 0
        token = called(host, "serve", "token", "ada", "--json").json["token"]
        env = {"RADDLE_SERVER": server.address, "RADDLE_TOKEN": token}
        with DaemonProcess(one, env) as here, DaemonProcess(other, env) as there:
            path = one.keep(talk)
            there.until(lambda: other.finds("kiln"))
            there.until(lambda: status(other)["is_listening"])
            before = len(talk.data)
            talk.says("cone six, says the pyrometer")
            add(path, talk.data[before:])
            there.until(lambda: other.finds("pyrometer"))

            server.end()
            before = len(talk.data)
            talk.user("and the glaze?")
            add(path, talk.data[before:])
            here.until(lambda: status(one)["pending"] == 1 and not status(one)["last_error"]["is_over"])
            with ServerProcess(host, port=server.port):
                there.until(lambda: other.finds("glaze"))
                here.until(lambda: status(one)["pending"] == 0)
                here.end()
                there.end()
    assert other.texts() == one.texts()
    assert token not in str(here.log()) + str(there.log())
