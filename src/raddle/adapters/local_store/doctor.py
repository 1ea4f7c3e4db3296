"""What is wrong in the folder of threads and, where asked, put right: each finding a value, nothing printed.

Looking changes nothing. Mending uses the store's own ways of writing, under its locks, so that a doctor may
work while agents do. What cannot be mended without a person's word (files set aside of which nothing better is
left, two files that hold one thread) is named every time, with what to do, until somebody does it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import msgspec
from msgspec import Struct

from raddle.actions.ports import Finding
from raddle.adapters.files import find_bytes
from raddle.adapters.local_store.journal import read_journal
from raddle.adapters.local_store.quarantine import (
    is_short,
    keep_copy,
    note_whole,
    quarantined,
    reason_of,
    set_aside,
)
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.local_store.thread_files_reading import (
    JOURNAL_ONLY,
    Files,
    ThreadReading,
    decode_checked,
    files_of,
)
from raddle.adapters.locks import LockFiles
from raddle.adapters.paths import Paths
from raddle.adapters.temporaries import abandoned_temporaries, remove_temporary
from raddle.model.errors import BrokenFormat, FormatError, NotFound, StorageError
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread
from raddle.model.threads.tree import TWIN_OF

_OLD_SECONDS = 3600
_CAN_BE_BUILT = "the bytes of its session are kept, and it can be built anew from them"


class Kept(Struct, frozen=True, kw_only=True):
    """What is kept of a thread beside its files, from which it can be built anew; `is_whole`: nothing of it is gone."""

    delta: Delta
    is_whole: bool = True


def _nothing_kept(_: str) -> Kept | None:
    return None


class Beside(Struct, frozen=True, kw_only=True):
    """What the doctor is told of what lies beside the thread files.

    `kept`: what there is of a thread whose files do not tell it whole; None where nothing is. `no_purge`: nobody
    purges or imports for so long. `known`: ids of threads that may have no file any more. `folders`: where else
    files are made. `no_import_runs`: True while nobody imports.
    """

    kept: Callable[[str], Kept | None] = _nothing_kept
    no_purge: Callable[[], AbstractContextManager[None]] = nullcontext
    known: Iterable[str] = ()
    folders: tuple[Path, ...] = ()
    no_import_runs: Callable[[], AbstractContextManager[bool]] = lambda: nullcontext(False)


def examine(
    paths: Paths,
    locks: LockFiles,
    author: Author,
    *,
    fix: bool = False,
    changed: Callable[[str], None] = lambda _: None,
    seen: Callable[[Thread], None] = lambda _: None,
    beside: Beside = Beside(),  # noqa: B008  a value that nobody can change
) -> list[Finding]:
    """Everything found, by path.

    With `fix`, journals are folded, lost messages become root turns, damaged files are restored from the last
    good revision or built anew from what is kept beside them, and what killed processes left is swept; `changed`
    is called as the store calls it. `seen` gets every thread as it is then.
    """
    told: list[Finding] = []
    doctor = _Doctor(paths, locks, author, changed=changed, seen=seen, beside=beside)
    before = list(quarantined(paths.threads_dir))
    told.extend(_half_made((paths.threads_dir, *beside.folders), beside.no_import_runs, fix=fix))
    for thread_id in doctor.thread_ids(beside.known):
        told.extend(doctor.mend(thread_id) if fix else doctor.look(thread_id))
    told.extend(doctor.set_aside(before))
    return sorted(told, key=lambda finding: (finding.path, finding.what))


class _Doctor:
    def __init__(
        self,
        paths: Paths,
        locks: LockFiles,
        author: Author,
        *,
        changed: Callable[[str], None],
        seen: Callable[[Thread], None],
        beside: Beside,
    ) -> None:
        self._paths = paths
        self._locks = locks
        self._seen = seen
        self._beside = beside
        self._heard: list[Finding] = []
        self._built_anew = ""
        self._unreadable: set[str] = set()
        self._with_copies = {_thread_of(kept) for kept in quarantined(paths.threads_dir)}
        """Threads of which files are set aside, or may be by now: to ask the folder for each would be too slow."""
        self._saved_elsewhere: set[str] = set()
        """Threads of which more is kept beside their files than is in them."""
        self._store = ThreadFiles(
            paths, locks, author, changing=changed, changed=changed, report=self._heard.append
        )
        self._reading = ThreadReading(paths, author, self._heard.append)

    def thread_ids(self, known: Iterable[str]) -> list[str]:
        """Every thread of which anything is there, if only a file that was set aside, and those that are `known`."""
        return sorted({*self._store.remains(), *known})

    def look(self, thread_id: str) -> list[Finding]:
        """What is wrong with a thread; nothing is changed."""
        files = files_of(self._paths, thread_id)
        self._heard.clear()
        self._unreadable.add(thread_id)
        self._saved_elsewhere.discard(thread_id)
        try:
            thread = self._read(files, thread_id)
            self._unreadable.discard(thread_id)
            self._heard.extend(_lost(files, thread))
            self._seen(thread)
            self._heard.extend(self._falls_short(files, thread))
        except (NotFound, BrokenFormat) as error:
            self._heard.extend(self._nothing_left(files, thread_id, error))
        except (FormatError, StorageError) as error:
            self._heard.append(Finding(path=str(files.json), what=error.message))
        return _unique(self._heard)

    def _read(self, files: Files, thread_id: str) -> Thread:
        """The thread, every file of it looked at. Its lock is free again before anybody asks what lies beside it."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(StorageError):  # a folder that may only be read has no lock to take
                stack.enter_context(self._locks.held(thread_id, shared=True))
            self._heard.extend(_wrong_parts(files, thread_id))
            return self._reading.load_locked(thread_id, may_write=False).thread

    def _falls_short(self, files: Files, thread: Thread) -> Iterator[Finding]:
        """What an earlier mending could not bring back, where it can be by now. `thread` is used up."""
        if self._is_short(thread.id):
            kept = self._kept(thread.id)
            if kept is not None and thread.join(kept.delta):
                self._saved_elsewhere.add(thread.id)
                yield Finding(
                    path=str(files.json), what=f"turns were lost with a damaged file; {_CAN_BE_BUILT}"
                )

    def _nothing_left(
        self, files: Files, thread_id: str, error: NotFound | BrokenFormat
    ) -> Iterator[Finding]:
        """That no file tells the thread, and what would help. None has to: it may be known by its name alone."""
        is_gone = isinstance(error, NotFound)
        what = "the thread file is gone, and no revision of it is left" if is_gone else error.message
        if self._kept(thread_id) is not None:
            self._saved_elsewhere.add(thread_id)
            yield Finding(path=str(files.json), what=f"{what}; {_CAN_BE_BUILT}")
        elif not is_gone or thread_id in self._store.remains():
            advice = (
                f"put {files.json.name} back from a backup, or run `raddle import` where its agent still has the "
                f"session; `raddle purge {thread_id}` removes what is left of it"
            )
            yield Finding(path=str(files.json), what=f"{what}: {advice}")

    def _is_short(self, thread_id: str) -> bool:
        return thread_id in self._with_copies and is_short(self._paths, thread_id)

    def _kept(self, thread_id: str) -> Kept | None:
        try:
            return self._beside.kept(thread_id)
        except (FormatError, StorageError) as error:
            self._heard.append(Finding(path=str(files_of(self._paths, thread_id).json), what=error.message))
            return None

    def mend(self, thread_id: str) -> list[Finding]:
        """What was wrong with a thread, each with what was done; nothing done where it is wrong still."""
        before = self.look(thread_id)
        if before:
            self._with_copies.add(thread_id)
        self._heard.clear()
        failed = self._built_anew = ""
        try:
            self._mend(thread_id, must_rewrite=bool(before))
        except StorageError as error:
            failed = error.message
        except (FormatError, NotFound):
            pass  # the second look says it, and what would help
        heard = _unique(self._heard)
        after = self.look(thread_id)
        still = {(finding.path, finding.what) for finding in after}
        told = {(finding.path, finding.what): finding for finding in (*after, *before, *heard)}
        mended = [
            finding if finding.done else self._outcome(finding, failed, is_left=key in still)
            for key, finding in told.items()
        ]
        if failed and not any(finding.failed for finding in mended):
            mended.extend(_not_folded(files_of(self._paths, thread_id), thread_id, failed))
        return mended

    def _outcome(self, finding: Finding, failed: str, *, is_left: bool) -> Finding:
        """A finding that nobody said anything of, after the attempt to mend its thread."""
        if failed:
            return msgspec.structs.replace(finding, failed=failed)
        done = self._built_anew or ("that is kept" if finding.what == JOURNAL_ONLY else "put right")
        return finding if is_left else msgspec.structs.replace(finding, done=done)

    def _mend(self, thread_id: str, *, must_rewrite: bool) -> None:
        files = files_of(self._paths, thread_id)
        with self._locks.held(thread_id):
            reason = _broken_previous(files, thread_id)
            if reason:
                kept = set_aside(self._paths, files.previous, reason)
                done = f"set aside as {kept.name}"
                self._heard.append(Finding(path=str(files.previous), what=reason, done=done))
        try:
            thread = self._store.load(thread_id)
        except (NotFound, BrokenFormat):
            if not self._build_anew(thread_id, files):
                raise
            thread = self._store.load(thread_id)
        else:
            has_lost = self._is_short(thread_id) or bool(read_journal(files.journal, thread_id).bad)
            if has_lost and self._build_anew(thread_id, files):
                thread = self._store.load(thread_id)
        if thread.tree.lost():
            self._store.join(thread_id, _as_roots(thread))
        self._store.fold(thread_id, anyway=must_rewrite)

    def _build_anew(self, thread_id: str, files: Files) -> bool:
        """Join what is kept of the thread beside its files; was there anything?"""
        with self._beside.no_purge():
            kept = self._beside.kept(thread_id)
            if kept is None:
                return False
            if not self._store.has(thread_id):
                self._keep_bad_lines(thread_id, files)
            if self._store.join(thread_id, kept.delta):
                some = "" if kept.is_whole else ", of which some are gone"
                self._built_anew = f"built anew from the kept bytes of its session{some}"
            if kept.is_whole:
                note_whole(self._paths, thread_id)
        return True

    def _keep_bad_lines(self, thread_id: str, files: Files) -> None:
        """A journal of which nothing can be read gives way to that of the new file."""
        with self._locks.held(thread_id):
            if read_journal(files.journal, thread_id).bad:
                keep_copy(self._paths, files.journal, "no line of it could be read")

    def set_aside(self, before: Collection[Path]) -> Iterator[Finding]:
        """What was set aside: a note where its thread is whole again (and it lay there `before`), else with advice."""
        for kept in quarantined(self._paths.threads_dir):
            thread_id = _thread_of(kept)
            reason = "; ".join(reason_of(self._paths, kept).splitlines()) or "nobody noted why"
            what = f"was set aside: {reason}"
            if thread_id not in self._unreadable and not is_short(self._paths, thread_id):
                if kept in before:
                    done = "its thread can be read; remove this copy once you miss nothing in it"
                    yield Finding(path=str(kept), what=what, done=done)
                continue
            advice = "`raddle doctor --fix` builds its thread anew"
            if thread_id not in self._saved_elsewhere:
                advice = (
                    "save from it what you need, then remove it; "
                    f"`raddle purge {thread_id}` removes all that is left of the thread"
                )
            yield Finding(path=str(kept), what=f"{what}; {advice}")


def _thread_of(kept: Path) -> str:
    """The thread that a file which was set aside is of, by its name."""
    return kept.name.partition(".")[0]


def _not_folded(files: Files, thread_id: str, failed: str) -> Iterator[Finding]:
    if read_journal(files.journal, thread_id).has_edits:
        what = "holds turns that are not in the readable file yet"
        yield Finding(path=str(files.journal), what=what, failed=failed)


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
        who = "1 message has" if count == 1 else f"{count} messages have"
        what = f"{who} no place in the tree (no parent, a circle, an id twice): {names}"
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


def _half_made(
    folders: Iterable[Path], no_import_runs: Callable[[], AbstractContextManager[bool]], *, fix: bool
) -> Iterator[Finding]:
    """Temporary files that nobody is making; while an import may run, only those that are older than an hour."""
    with no_import_runs() as is_quiet:
        for folder in folders:
            for path in abandoned_temporaries(folder, older_than_seconds=0 if is_quiet else _OLD_SECONDS):
                done, failed = "the next import removes it", ""
                if fix:
                    done = ""
                    try:
                        done = "removed" if remove_temporary(path) else "gone by itself"
                    except StorageError as error:
                        failed = error.message
                what = "was left half-made by a process that died"
                yield Finding(path=str(path), what=what, done=done, failed=failed)


def _unique(findings: list[Finding]) -> list[Finding]:
    """Each (path, what) once, what was done about it kept."""
    found: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.path, finding.what)
        if key not in found or finding.done:
            found[key] = finding
    return list(found.values())
