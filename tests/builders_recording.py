"""Programs that record their sessions, as processes of their own; and the repositories they work in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import raddle

PATIENCE_SECONDS = 60
PREAMBLE = """
import asyncio, os, signal, sys, threading
import raddle

def reached(what="here"):
    os.write(1, f"{what}\\n".encode())

def wait():
    while True:
        signal.pause()

def calls(*ids):
    return [{"id": name, "name": "run", "arguments": {}} for name in ids]
"""


def git(folder: Path, *arguments: str) -> str:
    """Run git as the person would; its output."""
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def a_repository(folder: Path) -> Path:
    """A repository on `main` with one commit and nothing to commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    git(folder, "remote", "add", "origin", "git@example.org:me/kiln.git")
    return folder


def commit(folder: Path, text: str) -> str:
    """One more commit; its sha."""
    (folder / "file.txt").write_text(text)
    git(folder, "add", "file.txt")
    git(folder, "commit", "-q", "-m", text)
    return git(folder, "rev-parse", "HEAD")


class Program:
    """A process that records; what it says on stdout comes line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def hear(self) -> str:
        """The next line it says; empty at its end."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def go_on(self) -> None:
        """Let it read a line from its stdin."""
        assert self.process.stdin is not None
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()

    def send(self, number: int) -> int:
        """Send it a signal and wait for its end; its exit code, minus the number of the signal that it died of."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def errors(self) -> str:
        """What it said on stderr, at its end."""
        assert self.process.stderr is not None
        return self.process.stderr.read()


@contextmanager
def running(code: str, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Program]:
    """Run a program that may use the names of PREAMBLE; whatever is left of it is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    with process:
        try:
            yield Program(process)
        finally:
            process.kill()


def the_thread() -> raddle.Thread:
    """The only thread of this test's home."""
    with raddle.open() as store:
        (thread,) = store
    return thread


def stored(thread_id: str) -> raddle.Thread:
    """The thread as another program reads it."""
    with raddle.open() as store:
        return store.get(thread_id)
