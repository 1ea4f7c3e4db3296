"""What is wrong in the folder of threads and, where asked, put right: each finding a value, nothing printed.

Looking changes nothing. Mending uses the store's own ways of writing, under its locks, so that a doctor may
work while agents do. What cannot be mended without a person's word (files set aside, two files that hold one
thread) is named every time, until somebody removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator

import msgspec

from raddle.actions.ports import Finding
from raddle.adapters.files import find_bytes, storage_error, sweep_temporaries
from raddle.adapters.local_store.journal import read_journal
from raddle.adapters.local_store.quarantine import quarantined, reason_of, set_aside
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.local_store.thread_files_reading import Files, ThreadReading, decode_checked, files_of
from raddle.adapters.locks import LockFiles
from raddle.adapters.paths import Paths
from raddle.model.clock import system_clock
from raddle.model.errors import BrokenFormat, FormatError, NotFound, StorageError
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread
from raddle.model.threads.tree import TWIN_OF

_JOURNAL_NAME = re.compile(r"(T-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.journal(?:\.prev)?\Z")
_HALF_MADE = re.compile(r"\.raddle-.*\.tmp\Z")
_HALF_MADE_SECONDS = 3600


def examine(
    paths: Paths,
    locks: LockFiles,
    author: Author,
    *,
    fix: bool = False,
    changed: Callable[[str], None] = lambda _: None,
) -> list[Finding]:
    """Everything found, by path.

    With `fix`, journals are folded, lost messages become root turns, damaged files are restored from the last
    good revision, and what killed processes left is swept; `changed` is called as the store calls it.
    """
    told: list[Finding] = []
    doctor = _Doctor(paths, locks, author, changed)
    told.extend(_set_aside_before(paths))
    told.extend(_half_made(paths, fix=fix))
    for thread_id in doctor.thread_ids():
        told.extend(doctor.mend(thread_id) if fix else doctor.look(thread_id))
    return sorted(told, key=lambda finding: (finding.path, finding.what))


class _Doctor:
    def __init__(
        self, paths: Paths, locks: LockFiles, author: Author, changed: Callable[[str], None]
    ) -> None:
        self._paths = paths
        self._locks = locks
        self._heard: list[Finding] = []
        self._store = ThreadFiles(paths, locks, author, changed=changed, report=self._heard.append)
        self._reading = ThreadReading(paths, author, self._heard.append)

    def thread_ids(self) -> list[str]:
        """Every thread of which anything is there, if only a journal."""
        journals = (_JOURNAL_NAME.match(name) for name in _names(self._paths))
        return sorted({*self._store.ids(), *(found[1] for found in journals if found)})

    def look(self, thread_id: str) -> list[Finding]:
        """What is wrong with a thread; nothing is changed."""
        files = files_of(self._paths, thread_id)
        self._heard.clear()
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(StorageError):  # a folder that may only be read has no lock to take
                stack.enter_context(self._locks.held(thread_id, shared=True))
            try:
                self._heard.extend(_wrong_parts(files, thread_id))
                thread = self._reading.load_locked(thread_id, may_write=False).thread
                self._heard.extend(_lost(files, thread))
            except NotFound:
                self._heard.append(Finding(path=str(files.json), what="nothing of the thread is left"))
            except (FormatError, StorageError) as error:
                self._heard.append(Finding(path=str(files.json), what=error.message))
        return _unique(self._heard)

    def mend(self, thread_id: str) -> list[Finding]:
        """What was wrong with a thread, each with what was done; nothing done where it is wrong still."""
        before = self.look(thread_id)
        self._heard.clear()
        try:
            self._mend(thread_id, must_rewrite=bool(before))
        except (FormatError, StorageError, NotFound) as error:
            self._heard.append(Finding(path=str(files_of(self._paths, thread_id).json), what=error.message))
        heard = _unique(self._heard)
        still = {(finding.path, finding.what) for finding in self.look(thread_id)}
        told = {(finding.path, finding.what): finding for finding in (*before, *heard)}
        return [
            finding
            if finding.done or (finding.path, finding.what) in still
            else msgspec.structs.replace(finding, done="put right")
            for finding in told.values()
        ]

    def _mend(self, thread_id: str, *, must_rewrite: bool) -> None:
        files = files_of(self._paths, thread_id)
        with self._locks.held(thread_id):
            reason = _broken_previous(files, thread_id)
            if reason:
                kept = set_aside(self._paths, files.previous, reason)
                done = f"set aside as {kept.name}"
                self._heard.append(Finding(path=str(files.previous), what=reason, done=done))
        thread = self._store.load(thread_id)
        if thread.tree.lost():
            self._store.join(thread_id, _as_roots(thread))
        self._store.fold(thread_id, anyway=must_rewrite)


def _wrong_parts(files: Files, thread_id: str) -> Iterator[Finding]:
    """What a load does not meet."""
    journal = read_journal(files.journal, thread_id)
    if journal.is_torn:
        what = f"ends with {journal.size - journal.end} bytes of a line that was never whole"
        yield Finding(path=str(files.journal), what=what)
    reason = _broken_previous(files, thread_id)
    if reason:
        yield Finding(path=str(files.previous), what=reason)


def _broken_previous(files: Files, thread_id: str) -> str:
    """Why the last revision cannot be read; empty where it can, or where there is none."""
    data = find_bytes(files.previous)
    if data is not None:
        try:
            decode_checked(data, thread_id, files.previous)
        except BrokenFormat as error:
            return error.message
        except FormatError:
            return ""  # another version's, or another thread's: not damaged
    return ""


def _lost(files: Files, thread: Thread) -> Iterator[Finding]:
    tops = _tops(thread)
    if tops:
        names = ", ".join(message.id for message in tops[:5]) + (", …" if len(tops) > 5 else "")
        count = len(thread.tree.lost())
        what = f"{count} messages have no place in the tree (no parent, a circle, an id twice): {names}"
        yield Finding(path=str(files.json), what=what)


def _tops(thread: Thread) -> list[Message]:
    """The lost messages that lead to all the others: those without their parent, and one of each circle."""
    lost = thread.tree.lost()
    found: list[Message] = []
    reached: set[str] = set()
    orphans = [message for message in lost if message.parent_id not in thread.tree]
    for message in (*orphans, *lost):
        if message.id not in reached:
            found.append(message)
            reached.update(below.id for below in thread.tree.below(message.id))
    return found


def _as_roots(thread: Thread) -> Delta:
    """The tops as root turns; the greater `rev` makes that hold on every device.

    A second message of one id whose parent is in its place stays there: it is only no longer called lost.
    """
    lost = {message.id for message in thread.tree.lost()}
    placed = []
    for top in _tops(thread):
        stays = top.parent_id in thread.tree and top.parent_id not in lost
        extra = {key: value for key, value in top.extra.items() if key != TWIN_OF}
        parent_id = top.parent_id if stays else None
        placed.append(msgspec.structs.replace(top, parent_id=parent_id, rev=top.rev + 1, extra=extra))
    return Delta(base_version=thread.version, version=thread.version + 1, messages=tuple(placed))


def _set_aside_before(paths: Paths) -> Iterator[Finding]:
    for kept in quarantined(paths.threads_dir):
        reason = reason_of(paths, kept) or "nobody noted why"
        yield Finding(path=str(kept), what=f"was set aside: {reason}")


def _half_made(paths: Paths, *, fix: bool) -> Iterator[Finding]:
    """Temporary files older than an hour; a younger one may be on its way to its place."""
    limit = system_clock() // 1_000_000 - _HALF_MADE_SECONDS
    for name in _names(paths):
        path = paths.threads_dir / name
        try:
            if not _HALF_MADE.match(name) or path.stat().st_mtime >= limit:
                continue
        except FileNotFoundError:
            continue  # it got its place meanwhile
        except OSError as error:
            raise storage_error(error, path, "look at") from error
        yield Finding(
            path=str(path), what="was left half-made by a process that died", done="removed" if fix else ""
        )
    if fix:
        sweep_temporaries(paths.threads_dir, older_than_seconds=_HALF_MADE_SECONDS)


def _names(paths: Paths) -> list[str]:
    try:
        with os.scandir(paths.threads_dir) as entries:
            return sorted(entry.name for entry in entries)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, paths.threads_dir, "list") from error


def _unique(findings: list[Finding]) -> list[Finding]:
    """Each (path, what) once, what was done about it kept."""
    found: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.path, finding.what)
        if key not in found or finding.done:
            found[key] = finding
    return list(found.values())
