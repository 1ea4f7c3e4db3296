"""The peer, agentsview, in a venv and a HOME of its own: how to install it, import with it, search with it.

    python -m bench.peer --cache DIR --claude-home DIR [--rounds 3] [--search 'session error']

Owns every setting the peer is run with. It reads the Claude folder from CLAUDE_PROJECTS_DIR and keeps its
database in AGENTSVIEW_DATA_DIR. `sync` normally starts a daemon that stays; here it never does. Its search
only answers through a server, so one is started, asked and stopped; that server would fetch price lists from
the net, which a proxy that does not exist prevents.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from bench.timing import MARK, Command, interleaved, left_behind, load_line, run_once, table

PACKAGE, VERSION = "agentsview", "0.46.1"
_NO_PROXY_THERE = "http://127.0.0.1:9"
_LISTENING = re.compile(r"listening at (http://127\.0\.0\.1:\d+)")
_COUNTED = re.compile(r"Database: (\d+) sessions, (\d+) messages")
_START_SECONDS, _STOP_SECONDS = 60.0, 10.0


def install(cache: str) -> str:
    """The path of the peer's program, installed into a venv under `cache` unless it is there already."""
    venv = os.path.join(cache, f"{PACKAGE}-{VERSION}")
    if not program_in(venv):
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        pip = [os.path.join(venv, "bin", "python"), "-m", "pip", "install", "--quiet", "--no-input"]
        subprocess.run([*pip, "--disable-pip-version-check", f"{PACKAGE}=={VERSION}"], check=True)
    found = program_in(venv)
    if not found:
        raise RuntimeError(f"{PACKAGE} {VERSION} has no program where it was expected, below {venv}")
    return found


def program_in(venv: str) -> str:
    """The peer's own program below `venv`, past the Python that only starts it; empty where there is none."""
    found = sorted(Path(venv).glob(f"lib/python*/site-packages/{PACKAGE}/bin/{PACKAGE}"))
    for program in found:
        program.chmod(program.stat().st_mode | 0o111)
    return str(found[0]) if found else ""


class Peer(Struct, frozen=True, kw_only=True):
    """The peer at work: its `program`, the Claude folder it reads (the one that holds `projects`), and
    `home`, a folder of its own that `reset` empties.
    """

    program: str
    claude_home: str
    home: str

    @property
    def database(self) -> str:
        """The folder with all that it keeps."""
        return os.path.join(self.home, "data")

    def environment(self) -> dict[str, str]:
        """All of its environment: nothing of ours but PATH."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": self.home,
            "CLAUDE_PROJECTS_DIR": os.path.join(self.claude_home, "projects"),
            "AGENTSVIEW_DATA_DIR": self.database,
            "AGENTSVIEW_NO_DAEMON": "1",
            "AGENTSVIEW_TELEMETRY_ENABLED": "0",
            "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
            "HTTP_PROXY": _NO_PROXY_THERE,
            "HTTPS_PROXY": _NO_PROXY_THERE,
            "NO_PROXY": "127.0.0.1,localhost",
            "NO_COLOR": "1",
        }

    def reset(self) -> None:
        """Forget everything it imported."""
        shutil.rmtree(self.home, ignore_errors=True)
        os.makedirs(self.database)

    def import_command(self) -> Command:
        """Import everything from scratch."""
        return Command(
            name=f"{PACKAGE} import",
            argv=[self.program, "sync"],
            environment=self.environment(),
            prepare=self.reset,
        )

    def again_command(self) -> Command:
        """Import again, with nothing new to find."""
        return Command(name=f"{PACKAGE} again", argv=[self.program, "sync"], environment=self.environment())

    def search_command(self, url: str, words: str, *, limit: int = 50) -> Command:
        """Ask the server at `url` for `words` in its index, sub-agents and short sessions included."""
        wide = ["--include-children", "--include-one-shot", "--include-automated"]
        ask = [
            "session",
            "search",
            "--server",
            url,
            "--fts",
            "--json",
            "--limit",
            str(limit),
            *wide,
            "--",
            words,
        ]
        return Command(name=f"{PACKAGE} search", argv=[self.program, *ask], environment=self.environment())

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        """Its server's address, for as long as the block lasts; RuntimeError where it does not come up, or
        does not go away.
        """
        mark = f"server-{os.getpid()}-{time.monotonic_ns()}"
        log = os.path.join(self.home, "serve.log")
        flags = ["--no-sync", "--no-browser", "--no-update-check", "--port", "0"]
        with open(log, "wb") as said:
            server = subprocess.Popen(
                [self.program, "serve", *flags],
                env=self.environment() | {MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield _address(server, log)
        finally:
            _stop(server)
        if rest := left_behind(mark):
            raise RuntimeError(f"the peer's server left processes behind: {rest}")


def _address(server: subprocess.Popen[bytes], log: str) -> str:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and server.poll() is None:
        if found := _LISTENING.search(Path(log).read_text(errors="replace")):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"the peer's server did not come up: {Path(log).read_text(errors='replace')[-1000:]}")


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Ask it to end, then make it."""
    if server.poll() is None:
        server.send_signal(signal.SIGTERM)
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def counted(output: str) -> tuple[int, int]:
    """(sessions, messages) that an import says its database holds; zeros where it does not say."""
    found = _COUNTED.search(output)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def main(arguments: list[str] | None = None) -> int:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="python -m bench.peer", description="Measure the peer by itself.")
    parser.add_argument("--cache", required=True, help="where its venv and its data may lie")
    parser.add_argument("--claude-home", required=True, help="the folder that holds `projects`")
    parser.add_argument("--venv", help="a venv that has it already")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--search", action="append", default=[], metavar="WORDS")
    options = parser.parse_args(arguments)
    if not os.path.isdir(os.path.join(options.claude_home, "projects")):
        parser.error(f"{options.claude_home} has no folder named projects")
    program = program_in(options.venv) if options.venv else install(options.cache)
    home = os.path.join(os.path.abspath(options.cache), "peer-home")
    peer = Peer(program=program, claude_home=os.path.abspath(options.claude_home), home=home)
    before = load_line()
    runs = interleaved([peer.import_command(), peer.again_command()], rounds=options.rounds)
    found, messages = counted(run_once(peer.again_command()).output)
    sys.stdout.write(f"{table(runs)}\n{found} sessions, {messages} messages\n")
    if options.search:
        with peer.serving() as url:
            commands = [
                Command(name=words, argv=one.argv, environment=one.environment)
                for words in options.search
                for one in [peer.search_command(url, words)]
            ]
            sys.stdout.write(f"{table(interleaved(commands, rounds=options.rounds))}\n")
    sys.stdout.write(f"before: {before}; after: {load_line()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
