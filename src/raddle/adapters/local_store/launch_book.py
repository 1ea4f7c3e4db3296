"""Launches that this machine has not seen the end of, and what came of their answers: a folder each.

Owns how a launch is known to be alive: its process holds a lock, which ends with it however that dies. What came is
written piece by piece as it comes, so that a process that is killed loses none of it.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from raddle.actions.answering.asking import Launch, Left, OpenLaunch
from raddle.actions.answering.ports import Piece
from raddle.adapters.files import GrowingFile, find_bytes, make_folder, storage_error
from raddle.adapters.locks import LockFiles, LockHeld

_NAME = "launch.jsonl"
_SYNC_SECONDS = 1.0
"""How much of an answer a power cut may take."""


class _Line(Struct, omit_defaults=True):
    """A line of the file: the launch, or one thing that happened to it."""

    launch: Launch | None = None
    taken: str = ""
    void: bool = False
    text: str = ""
    thinking: str = ""


class LaunchBook:
    """The book in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def open(self, launch: Launch) -> Iterator[OpenLaunch]:
        """Note a launch; alive until the block ends, or the process."""
        folder = self._folder / launch.job_id
        with self._alive(folder):
            file = GrowingFile(folder / _NAME)
            try:
                page = _Page(file)
                page.put(_Line(launch=launch), waits=True)
                yield page
            finally:
                file.close()

    def close(self, job_id: str) -> None:
        """Forget a launch."""
        folder = self._folder / job_id
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, folder, "remove") from error

    def holds(self, job_id: str) -> bool:
        """Is it in the book, alive or not?"""
        return any(job_id in {left.launch.job_id, left.taken_as} for left in self.all())

    def left(self, thread_id: str | None = None) -> Iterator[Left]:
        """Those that no process holds."""
        for folder in self._folders():
            with contextlib.suppress(LockHeld), self._alive(folder):
                left = _read(folder / _NAME)
                if left is None:
                    self.close(folder.name)  # it was noted, and never begun
                elif thread_id in {None, left.launch.thread_id}:
                    yield left

    def all(self) -> Iterator[Left]:
        """Every launch, alive or not."""
        for folder in self._folders():
            left = _read(folder / _NAME)
            if left is not None:
                yield left

    def forget_thread(self, thread_id: str) -> None:
        """Leave no word of a thread that is erased."""
        for left in list(self.all()):
            if left.launch.thread_id == thread_id:
                self.close(left.launch.job_id)

    def _folders(self) -> list[Path]:
        try:
            return sorted(folder for folder in self._folder.iterdir() if folder.is_dir())
        except FileNotFoundError:
            return []

    @contextlib.contextmanager
    def _alive(self, folder: Path) -> Iterator[None]:
        make_folder(folder)
        with LockFiles(folder, stripes=1).held("launch", timeout_seconds=0.0):
            yield


class _Page:
    """Writes what happens to one launch."""

    def __init__(self, file: GrowingFile) -> None:
        self._file = file
        self._synced = time.monotonic()

    def put(self, line: _Line, *, waits: bool = False) -> None:
        waits = waits or time.monotonic() - self._synced > _SYNC_SECONDS
        self._file.write(msgspec.json.encode(line) + b"\n", waits=waits)
        if waits:
            self._synced = time.monotonic()

    def keep(self, piece: Piece) -> None:
        """More of the answer."""
        self.put(_Line(text=piece.text, thinking=piece.thinking))

    def start_over(self) -> None:
        """What came is void."""
        self.put(_Line(void=True))

    def taken(self, job_id: str) -> None:
        """Who works on it calls it so; on the disk before anything else happens."""
        self.put(_Line(taken=job_id), waits=True)


def _read(file: Path) -> Left | None:
    """None where it does not say whose it is. A last line that is torn is left out."""
    launch: Launch | None = None
    taken = ""
    text: list[str] = []
    thinking: list[str] = []
    for data in (find_bytes(file) or b"").split(b"\n")[:-1]:
        try:
            line = msgspec.json.decode(data, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        launch, taken = line.launch or launch, line.taken or taken
        if line.void:
            text.clear()
            thinking.clear()
        text.append(line.text)
        thinking.append(line.thinking)
    if launch is None:
        return None
    return Left(launch=launch, taken_as=taken, text="".join(text), thinking="".join(thinking))
