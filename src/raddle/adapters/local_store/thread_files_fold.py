"""The fold: what the journal holds goes into the readable file, and the last revision stays.

The order of the renames is the whole point of this module. At every moment `.json` + `.journal` is the whole
thread, and `.prev` + `.journal.prev` + `.journal` is too; so the process may die between any two of them.
"""

from __future__ import annotations

from raddle.adapters.files import NewFile, write_atomic
from raddle.adapters.local_store.journal import Line, encode_line, identity_of
from raddle.adapters.local_store.journal_tail import footer_of
from raddle.adapters.local_store.quarantine import keep_copy
from raddle.adapters.local_store.thread_files_moves import keep_as, rename
from raddle.adapters.local_store.thread_files_reading import Files, Glance, Loaded
from raddle.adapters.paths import Paths
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.thread import Thread

SMALL_JOURNAL_BYTES = 64 * 1024
_SMALL_FILE_BYTES = 1 << 20


def is_due(journal_size: int, file_size: int, links: int) -> bool:
    """Has the journal outgrown 64 KiB and the file? Or did a fold of a small file stop half way, so that it still
    bears the name of the last revision too, and whoever writes over it would write over both?
    """
    if links > 1 and file_size <= _SMALL_FILE_BYTES:
        return True
    return journal_size > max(SMALL_JOURNAL_BYTES, file_size)


def keep_first_revision(files: Files, data: bytes) -> None:
    """Lay beside the `.json`, which holds `data`, the revision that the lines of its first journal complete.

    Were the `.json` damaged, those lines alone would be a thread without its beginning. A large file gets a
    second name instead of a copy, so that a first append costs what any other does: that outlives a program
    that renames another file into its place, though not one that writes over it.
    """
    if len(data) > _SMALL_FILE_BYTES:
        keep_as(files.json, files.previous, data)
    else:
        write_atomic(files.previous, data)


def fold(paths: Paths, files: Files, loaded: Loaded, device: str) -> None:
    """Write `loaded`, read under the lock that the caller holds, as the new `.json`; begin a new journal."""
    thread, glance = loaded
    if glance.journal.bad:
        lines = ", ".join(str(bad.number) for bad in glance.journal.bad)
        keep_copy(paths, files.journal, f"damaged lines: {lines}")
    with NewFile(files.json.parent) as new:
        new.write(encode_thread(thread))
        _keep_revision(files, glance)
        new.publish(files.json)
    # The folder is synced by now: were the journal's new name to reach the disk before the .json's, a power
    # cut would leave the old .json without its lines.
    if glance.journal.exists:
        rename(files.journal, files.previous_journal)
    begin_journal(files, thread, device)


def begin_journal(files: Files, thread: Thread, device: str) -> None:
    """A journal without an edit: what the first append needs, so that it need not read the `.json`."""
    identity = identity_of(files.json.stat())
    empty = Delta(base_version=thread.version, version=thread.version)
    line = Line(id=thread.id, file=identity, delta=empty, footer=footer_of(thread, device))
    write_atomic(files.journal, encode_line(line))


def _keep_revision(files: Files, glance: Glance) -> None:
    if glance.data is not None:
        keep_as(files.json, files.previous, glance.data)
