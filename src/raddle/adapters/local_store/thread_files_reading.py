"""A thread from its files: the `.json` and its journal, or, where those do not fit, what else is left of it.

Four files hold a thread. `.json` with `.journal` is the whole of it, and so is `.prev` with `.journal.prev`
and `.journal`: the second set is read where the first is damaged, gone, or was written by another program.
Every file is joined, never chosen, so a file that is older than another, or a line that was folded already,
does no harm. Readers take no lock: the journal is read before the `.json`, so that a fold in between can
only show lines twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from raddle.actions.ports import Finding
from raddle.adapters.files import find_bytes, storage_error, write_atomic
from raddle.adapters.local_store.journal import (
    FileIdentity,
    Journal,
    Line,
    append_line,
    identity_of,
    read_journal,
)
from raddle.adapters.local_store.journal_tail import footer_of
from raddle.adapters.local_store.quarantine import note_short, quarantined, set_aside
from raddle.adapters.paths import Paths
from raddle.model.clock import system_clock
from raddle.model.errors import BrokenFormat, FormatError, NotFound, StorageError
from raddle.model.threads.adopt import open_file, with_new_words
from raddle.model.threads.codec import Decoded, decode_file, encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author
from raddle.model.threads.thread import Thread, diff

Report = Callable[[Finding], None]

JOURNAL_ONLY = "the thread file and its last revision are gone: only what the journal holds is left"

_YOUNG_SECONDS = 2
_PATIENCE = 5
"""How often a broken file that was just written is read again, 50 ms apart: it may be half written."""


class Files(NamedTuple):
    """The files of one thread."""

    json: Path
    journal: Path
    previous: Path
    previous_journal: Path


def files_of(paths: Paths, thread_id: str) -> Files:
    """Where the thread of a whole id lies."""
    return Files(
        json=paths.thread_file(thread_id),
        journal=paths.journal_file(thread_id),
        previous=paths.previous_file(thread_id),
        previous_journal=paths.previous_journal(thread_id),
    )


class Glance(Struct, frozen=True, kw_only=True):
    """The journal and the `.json` as they lay there; `links` counts the names that the `.json` has."""

    journal: Journal
    data: bytes | None = None
    identity: FileIdentity | None = None
    links: int = 0


class Loaded(NamedTuple):
    """A thread, and what was seen of its files on the way."""

    thread: Thread
    glance: Glance


def look(files: Files, thread_id: str) -> Glance:
    """Read the journal, then the `.json`."""
    journal = read_journal(files.journal, thread_id)
    try:
        with files.json.open("rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            data = file.read()
    except FileNotFoundError:
        return Glance(journal=journal)
    except OSError as error:
        raise storage_error(error, files.json, "read") from error
    return Glance(journal=journal, data=data, identity=identity_of(status), links=status.st_nlink)


def decode_checked(data: bytes, thread_id: str, path: Path) -> Decoded:
    """A thread file of that id. BrokenFormat: damaged. FormatError: another format, or thread."""
    decoded = decode_file(data, is_ours=True)
    if decoded.id != thread_id:
        raise FormatError(
            f"{path} holds the thread {decoded.id}",
            f"move it to {decoded.id}.json, or away; `raddle doctor` lists such files",
        )
    return decoded


class ThreadReading:
    """Reads threads, and mends what it finds broken, each mending reported; `changing` hears of one before it.

    Whoever calls `load_locked` holds the thread's lock; `load_unlocked` needs none and changes nothing.
    """

    def __init__(
        self,
        paths: Paths,
        author: Author,
        report: Report,
        *,
        changing: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._paths = paths
        self._author = author
        self._report = report
        self._changing = changing

    def load_unlocked(self, thread_id: str) -> Thread | None:
        """The thread where its files are as raddle left them; None where it takes the lock to look at them.

        NewerFormat, OlderFormat and other files under this name are raised; nothing is touched.
        """
        files = files_of(self._paths, thread_id)
        return self._regular(thread_id, files, look(files, thread_id))

    def load_locked(self, thread_id: str, *, may_write: bool = True, must_write: bool = False) -> Loaded:
        """The thread, its files mended where need be.

        `may_write` False: only read. A mending that the disk refuses is an error where `must_write`, else a
        finding. NotFound where nothing is there; BrokenFormat, naming what was set aside, if nothing is left.
        """
        files = files_of(self._paths, thread_id)
        glance = look(files, thread_id)
        thread = self._regular(thread_id, files, glance)
        if thread is not None:
            return Loaded(thread, glance)
        mending = _Mending(
            self._paths, self._author, self._report, thread_id, may_write=may_write, changing=self._changing
        )
        try:
            return mending.mend(glance)
        except StorageError as error:
            if must_write or mending.thread is None:
                raise
            self._report(Finding(path=str(files.json), what=f"could not be put right: {error.message}"))
            return Loaded(mending.thread, glance)

    def _regular(self, thread_id: str, files: Files, glance: Glance) -> Thread | None:
        if glance.data is None:
            return None
        try:
            decoded = decode_checked(glance.data, thread_id, files.json)
        except BrokenFormat:
            return None
        follows = glance.journal.file
        if decoded.is_as_written and decoded.has_ids:
            if follows is not None and follows != glance.identity:
                return None
            thread = decoded.thread()
        elif follows is None and not decoded.is_stamped and not is_there(files.previous):
            thread = open_file(decoded, None, self._author)
        else:
            return None
        report_problems(self._report, files, decoded.problems, glance.journal)
        return _with_lines(thread, glance.journal)


def report_problems(report: Report, files: Files, problems: Iterable[str], journal: Journal) -> None:
    """Tell what was repaired in reading a file, and which lines of its journal say nothing."""
    for problem in problems:
        report(Finding(path=str(files.json), what=problem))
    for bad in journal.bad:
        what = f"line {bad.number} is damaged ({bad.reason}): what it held is lost"
        report(Finding(path=str(files.journal), what=what))


def status_of(path: Path) -> os.stat_result | None:
    """What the system says of a file, None where there is none; StorageError where nobody may look."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, path, "look at") from error


def is_there(path: Path) -> bool:
    """Is there a file? StorageError where nobody may look."""
    return status_of(path) is not None


class _Mending:
    """One thread whose files do not fit together, under its lock."""

    def __init__(
        self,
        paths: Paths,
        author: Author,
        report: Report,
        thread_id: str,
        *,
        may_write: bool,
        changing: Callable[[str], None],
    ) -> None:
        self._paths = paths
        self._author = author
        self._report = report
        self._id = thread_id
        self._files = files_of(paths, thread_id)
        self._may_write = may_write
        self._changing = changing
        self.thread: Thread | None = None
        """What there is of it, once that is known."""

    def mend(self, glance: Glance) -> Loaded:
        decoded, glance = self._decode(glance)
        known = self._known(glance.journal)
        if decoded is None:
            thread = known if known is not None else self._remains(glance.journal)
            return self._rewrite(thread, None, glance)
        report_problems(self._report, self._files, decoded.problems, glance.journal)
        is_unchanged = glance.journal.file == glance.identity
        own = decoded.thread() if is_unchanged and decoded.is_stamped else self._open(decoded)
        own = self.thread = _with_lines(own, glance.journal)
        if is_unchanged or (known is None and not decoded.is_stamped):
            # What reads otherwise than its stamps, though nobody touched it, is not taken for an edit; and a
            # file that no raddle has stamped reads the same every time.
            return Loaded(own, glance)
        if known is None:
            return self._rewrite(own, None, glance)
        joined = self._open(decoded, known)
        joined.join(known.whole())
        joined.join(with_new_words(known, decoded))
        self.thread = joined
        if decoded.is_as_written and decoded.has_ids and _is_nothing(diff(own, joined)):
            return self._note_identity(joined, glance)
        return self._rewrite(joined, known, glance)

    def _open(self, decoded: Decoded, known: Thread | None = None) -> Thread:
        return open_file(decoded, known, self._author)

    def _decode(self, glance: Glance) -> tuple[Decoded | None, Glance]:
        """The file decoded; None where there is none or it had to be set aside."""
        for attempt in range(_PATIENCE + 1):
            if glance.data is None:
                return None, glance
            try:
                return decode_checked(glance.data, self._id, self._files.json), glance
            except BrokenFormat as error:
                if attempt < _PATIENCE and _is_young(glance):
                    time.sleep(0.05)
                    glance = look(self._files, self._id)
                    continue
                self._set_aside(self._files.json, error.message)
                return None, Glance(journal=glance.journal)
        raise AssertionError("the last attempt returns")

    def _set_aside(self, path: Path, reason: str) -> None:
        if not self._may_write:
            self._report(Finding(path=str(path), what=reason))
            return
        kept = set_aside(self._paths, path, reason)
        self._report(Finding(path=str(path), what=reason, done=f"set aside as {kept.name}"))

    def _known(self, journal: Journal) -> Thread | None:
        """What the last revision with all lines since then says; None where there is no such revision."""
        data = find_bytes(self._files.previous)
        if data is None:
            return None
        try:
            decoded = decode_checked(data, self._id, self._files.previous)
        except BrokenFormat as error:
            self._set_aside(self._files.previous, error.message)
            return None
        except FormatError as error:
            self._report(Finding(path=str(self._files.previous), what=error.message))
            return None
        thread = self._open(decoded)
        previous_journal = read_journal(self._files.previous_journal, self._id)
        return _with_lines(_with_lines(thread, previous_journal), journal)

    def _remains(self, journal: Journal) -> Thread:
        """What the journals alone hold, where the `.json` and the `.prev` are both gone."""
        thread = _with_lines(Thread(self._id), read_journal(self._files.previous_journal, self._id))
        _with_lines(thread, journal)
        if not len(thread.tree) and not thread.registers:
            raise self._nothing_left()
        if self._may_write:
            note_short(self._paths, self._id)
        self._report(Finding(path=str(self._files.json), what=JOURNAL_ONLY))
        return thread

    def _nothing_left(self) -> NotFound | BrokenFormat:
        kept = [str(path) for path in quarantined(self._paths.threads_dir, self._id)]
        if not kept and not is_there(self._files.json):
            return NotFound("thread", self._id, "`raddle list` lists them")
        return BrokenFormat(
            f"thread {self._id} is damaged and no good revision is left",
            "`raddle doctor --fix` builds it anew where the bytes of its session are kept; what there was is kept "
            f"as {', '.join(kept) or self._files.json}",
        )

    def _rewrite(self, thread: Thread, known: Thread | None, glance: Glance) -> Loaded:
        """Put `thread` in the place of what does not fit; `known` is what the other files already say."""
        self.thread = thread
        is_foreign = glance.data is not None
        what = "was written by another program" if is_foreign else "was damaged or is gone"
        if not self._may_write:
            self._report(Finding(path=str(self._files.json), what=what))
            return Loaded(thread, glance)
        self._changing(self._id)
        if known is not None:
            news = diff(known, thread)
            if not _is_nothing(news):
                # Into the journal first: the .prev and the journals must say it before the .json does.
                self._append(thread, news, glance, glance.identity or FileIdentity(0, 0, 0))
        data = encode_thread(thread)
        write_atomic(self._files.json, data)
        if not is_there(self._files.previous):
            write_atomic(self._files.previous, data)
        done = "its changes are taken over" if is_foreign else "restored from the last good revision"
        self._report(Finding(path=str(self._files.json), what=what, done=done))
        return self._note_identity(thread, look(self._files, self._id))

    def _note_identity(self, thread: Thread, glance: Glance) -> Loaded:
        """Say in the journal which `.json` it follows now."""
        if self._may_write and glance.identity is not None:
            self._append(
                thread, Delta(base_version=thread.version, version=thread.version), glance, glance.identity
            )
            glance = look(self._files, self._id)
        return Loaded(thread, glance)

    def _append(self, thread: Thread, delta: Delta, glance: Glance, identity: FileIdentity) -> None:
        line = Line(id=self._id, file=identity, delta=delta, footer=footer_of(thread, self._author.device))
        append_line(self._files.journal, line, end=glance.journal.end, size=glance.journal.size)


def _with_lines(thread: Thread, journal: Journal) -> Thread:
    for line in journal.lines:
        thread.join(line.delta)
    return thread


def _is_nothing(delta: Delta) -> bool:
    return delta.is_empty and delta.version <= delta.base_version


def _is_young(glance: Glance) -> bool:
    if glance.identity is None:
        return False
    return abs(system_clock() * 1000 - glance.identity.mtime_ns) < _YOUNG_SECONDS * 1_000_000_000
