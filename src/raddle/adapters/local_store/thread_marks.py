"""Which state the files of a thread are in, and what was written since: for whoever follows threads.

A mark is the identity of the `.json` and how far its journal reaches. Only while that `.json` stays in its place
does the journal grow and nothing else; so what was written since a mark is the rest of the journal, or it cannot
be told and the thread has to be loaded. A mark that a fold could slip under would hide a turn for ever.
"""

from __future__ import annotations

import os

from raddle.actions.sync.ports import Mark, Tail
from raddle.adapters.files import storage_error
from raddle.adapters.local_store.journal import FileIdentity, decode_line, identity_of, read_tail
from raddle.adapters.paths import Paths
from raddle.model.errors import FormatError
from raddle.model.ids import is_thread_id
from raddle.model.threads.thread import Thread


class ThreadMarks:
    """Marks of the threads below `paths`; reads, takes no lock, changes nothing."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def mark(self, thread_id: str) -> Mark | None:
        """The state of a thread's files now; None where its journal does not follow its `.json`, or there is none."""
        file = self._identity(thread_id)
        if file is None:
            return None
        tail = read_tail_leniently(self._paths, thread_id)
        if tail is None:
            return None
        end, follows = tail
        if follows is not None and follows != file:
            return None
        return Mark(_text(file), end) if self._identity(thread_id) == file else None

    def marks(self) -> dict[str, Mark]:
        """How every thread's files look from outside: equal to a mark where nothing was written since it."""
        files: dict[str, str] = {}
        journals: dict[str, int] = {}
        try:
            with os.scandir(self._paths.threads_dir) as entries:
                for entry in entries:
                    name, _, suffix = entry.name.partition(".")
                    if suffix not in {"json", "journal"} or not is_thread_id(name):
                        continue
                    try:
                        status = entry.stat()
                    except FileNotFoundError:  # it was folded away meanwhile
                        continue
                    if suffix == "json":
                        files[name] = _text(identity_of(status))
                    else:
                        journals[name] = status.st_size
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise storage_error(error, self._paths.threads_dir, "list") from error
        return {name: Mark(files[name], journals.get(name, 0)) for name in sorted(files)}

    def tail(self, thread_id: str, mark: Mark) -> Tail | None:
        """What was written since `mark`; None where the files say too little."""
        file = self._identity(thread_id)
        if file is None or _text(file) != mark.file:
            return None
        data = self._journal_from(thread_id, mark.after)
        if data is None or self._identity(thread_id) != file:
            return None
        end = data.rfind(b"\n") + 1
        thread = Thread(thread_id)
        for line in data[:end].split(b"\n")[:-1]:
            try:
                found = decode_line(line, thread_id, with_footer=False)
            except FormatError:
                return None
            if found.file != file:
                return None
            thread.join(found.delta)
        return Tail(delta=thread.whole(), mark=Mark(mark.file, mark.after + end))

    def _identity(self, thread_id: str) -> FileIdentity | None:
        path = self._paths.thread_file(thread_id)
        try:
            return identity_of(path.stat())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, path, "look at") from error

    def _journal_from(self, thread_id: str, start: int) -> bytes | None:
        """The journal from a place on that must be the start of a line; None where it is not."""
        path = self._paths.journal_file(thread_id)
        try:
            with path.open("rb", buffering=0) as file:
                if start:
                    file.seek(start - 1)
                    if file.read(1) != b"\n":
                        return None
                return file.readall()
        except FileNotFoundError:
            return None if start else b""
        except OSError as error:
            raise storage_error(error, path, "read") from error


def read_tail_leniently(paths: Paths, thread_id: str) -> tuple[int, FileIdentity | None] | None:
    """(End of the whole lines, the `.json` that the last follows); None where the last line says nothing."""
    tail = read_tail(paths.journal_file(thread_id), thread_id)
    if tail is None:
        return 0, None
    return None if tail.line is None else (tail.end, tail.line.file)


def _text(identity: FileIdentity) -> str:
    return "-".join(str(part) for part in identity)
