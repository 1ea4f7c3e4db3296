"""A session given back as its own agent's file: the bytes that were kept of it, and what was added here since.

Owns which of a thread's source files is the session itself, and which generation of it is meant. Nothing of a source
is held in memory but a line of it at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from raddle.actions.exporting.native import (
    Candidates,
    Insertion,
    NativeWriter,
    SourceEnd,
    added_turns,
    candidates_of,
)
from raddle.actions.exporting.native_claude_code import ClaudeCodeWriter
from raddle.actions.exporting.native_codex import CodexWriter
from raddle.actions.exporting.native_gemini_cli import GeminiCliWriter
from raddle.actions.importing.registry import importer_of
from raddle.actions.importing.run_plan import Segment
from raddle.adapters.files import NewFile, make_folder
from raddle.model.errors import InvalidInput
from raddle.model.threads.message import Message, changed
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.session_files import SessionFile, session_files
from raddle.wiring.source_segments import bytes_of
from raddle.wiring.source_worth import is_here, lines_of, source_name

_INSTEAD = "--format json and markdown write what raddle itself holds of it"


class MissingBytes(InvalidInput):
    """Source bytes that an agent's file is made of are not here; another device may have given them to a server."""


class NativeForm(Struct, frozen=True, kw_only=True):
    """One agent's format. `is_tree`: do its lines name their parents?"""

    agent: str
    is_tree: bool
    writer: Callable[[Candidates], NativeWriter]


FORMS: dict[str, NativeForm] = {
    "claude-code": NativeForm(
        agent="claude-code", is_tree=True, writer=lambda candidates: ClaudeCodeWriter(candidates.around)
    ),
    "codex": NativeForm(agent="codex", is_tree=False, writer=lambda _: CodexWriter()),
    "gemini": NativeForm(agent="gemini-cli", is_tree=False, writer=lambda _: GeminiCliWriter()),
}


@runtime_checkable
class _KnowsPlaces(Protocol):
    """A reader that can tell after which message a record stands."""

    def message_after(self, uuid: str) -> str: ...


class NativeFile(Struct, frozen=True, kw_only=True):
    """One file to write. `name`: its path below the folder that the session's own file lies in."""

    name: str
    path: str
    segments: list[Segment]
    insertion: Insertion | None = None


class NativeSession(Struct, frozen=True, kw_only=True):
    """A session ready to be written.

    `generations`: the numbers, from 1, of what the main file was, and `generation` the one that is given. `added`: how
    many turns are written behind it, and `added_ids` which; `elsewhere`, `unwritten`: as in `Candidates`.
    """

    main: NativeFile
    others: tuple[NativeFile, ...]
    generations: tuple[int, ...]
    generation: int
    added: int = 0
    elsewhere: int = 0
    unwritten: int = 0
    added_ids: frozenset[str] = frozenset()


def native_session(
    stores: Stores, thread: Thread, form: str, *, leaf: str | None = None, generation: int | None = None
) -> NativeSession:
    """What to write. InvalidInput where the thread is no such session's, MissingBytes where they are not all here.

    `generation`: what the main file was before it was rewritten, as it was then; None: the newest in which something
    can be read, with the turns that were added here. Of several copies the main file is the agent's own, in its home.
    """
    native = FORMS[form]
    _check_agent(thread, native)
    files = _files(stores, thread, native.agent)
    main, others = files[0], files[1:]
    number = _chosen(main, generation)
    for file in files:
        _check_bytes(stores, file, file.generations[number if file is main else file.newest])
    candidates = Candidates()
    if generation is None:
        candidates = candidates_of(thread, leaf, is_tree=native.is_tree)
    given = NativeFile(name=main.name, path=main.path, segments=main.generations[number])
    added: frozenset[str] = frozenset()
    if candidates.messages:
        insertion, added = _insertion(stores, thread, native, given, candidates)
        given = replace(given, insertion=insertion)
    return NativeSession(
        main=given,
        others=tuple(
            NativeFile(name=file.name, path=file.path, segments=file.generations[file.newest])
            for file in others
        ),
        generations=tuple(one + 1 for one in main.generations),
        generation=number + 1,
        added=len(added),
        added_ids=added,
        elsewhere=candidates.elsewhere,
        unwritten=candidates.unwritten,
    )


def kept_lines(stores: Stores, thread: Thread, agent: str) -> NativeFile | None:
    """The main file of a session that shares a store with others, such as OpenCode's: its newest lines as they were
    kept; None where they are not all here."""
    try:
        main = _files(stores, thread, agent)[0]
        segments = main.generations[main.newest]
        _check_bytes(stores, main, segments)
    except InvalidInput:
        return None
    return NativeFile(name=main.name, path=main.path, segments=segments)


def messages_in(
    stores: Stores, agent: str, file: NativeFile, see: Callable[[bytes], None] = lambda _: None
) -> dict[str, Message]:
    """The messages of a session's file by their ids, as an import reads them, without what they say; `see` is shown
    every line."""
    reader = importer_of(agent).open(source_name(file.path))
    found: dict[str, Message] = {}

    def note() -> None:
        for message in reader.take().messages:
            found[message.id] = changed(message, content="", thinking="", tool_calls=(), extra={})

    tail = b""
    for line, is_ended in lines_of(chunks_of(stores, file)):
        if not is_ended:
            tail = line or b""
        elif line is None:
            reader.skip_line("too long")
        else:
            see(line)
            reader.feed((line,))
            note()
    reader.finish(tail)
    note()
    return found


def chunks_of(stores: Stores, file: NativeFile) -> Iterator[bytes]:
    """The file's bytes; BrokenFormat where a part of what was kept is damaged."""
    insertion, offset = file.insertion, 0
    for data in bytes_of(stores.blobs, file.segments):
        if insertion is not None and offset <= insertion.at < offset + len(data):
            cut = insertion.at - offset
            yield data[:cut]
            yield insertion.data
            yield data[cut:]
        else:
            yield data
        offset += len(data)
    if insertion is not None and insertion.at >= offset:
        yield insertion.data


def check_whole(stores: Stores, file: NativeFile) -> None:
    """Read it once for nothing, so that damage is met before the first byte is given away."""
    for segment in file.segments:
        for _ in stores.blobs.chunks(segment.sha256):
            pass


def folder_at(path: str) -> Path | None:
    """The folder that a person means by `path`: one that is there, or one named with a `/` at its end."""
    try:
        place = Path(path).expanduser().absolute()
        is_named = path.endswith("/") and "\0" not in path
        return place if is_named or place.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # no path at all: whoever writes to it says so
        return None


def made_folder(folder: Path) -> Path:
    """The same, there now; StorageError where it cannot be made."""
    make_folder(folder)
    return folder


def write_session(stores: Stores, session: NativeSession, folder: Path) -> list[tuple[Path, int]]:
    """Write every file of it below `folder`, each whole or not at all; (path, size) of each.

    None gets its name before all of them are written.
    """
    waiting: list[tuple[NewFile, Path, int]] = []
    try:
        for file in (session.main, *session.others):
            path = folder / file.name
            make_folder(path.parent)
            new = NewFile(path.parent)
            waiting.append((new, path, 0))
            waiting[-1] = (new, path, _fill(stores, new, file))
        for new, path, _ in waiting:
            new.publish(path)
    finally:
        for new, _, _ in waiting:
            new.discard()
    return [(path, size) for _, path, size in waiting]


def _fill(stores: Stores, new: NewFile, file: NativeFile) -> int:
    size = 0
    for data in chunks_of(stores, file):
        new.write(data)
        size += len(data)
    return size


def _files(stores: Stores, thread: Thread, agent: str) -> list[SessionFile]:
    """The session's files, its main one first."""
    files = session_files(stores, thread.id, agent)
    if not files:
        raise _without_bytes(stores, thread)
    return files


def _check_agent(thread: Thread, native: NativeForm) -> None:
    label = importer_of(native.agent).label
    source = thread.source
    if source is None:
        raise InvalidInput(f"this thread did not come from {label}: it has no session file", _INSTEAD)
    if source.agent != native.agent:
        own = next((name for name, form in FORMS.items() if form.agent == source.agent), "")
        hint = f"--format {own} gives its own file; {_INSTEAD}" if own else _INSTEAD
        raise InvalidInput(f"this thread came from {source.agent}, not from {label}", hint)


def _without_bytes(stores: Stores, thread: Thread) -> InvalidInput:
    if thread.id in stores.ledger.without_bytes() | stores.ledger.purged():
        return InvalidInput("the source bytes of this thread were erased by a purge", _INSTEAD)
    return MissingBytes(
        "the source bytes of this thread are not kept here",
        f"`raddle import` keeps them where the agent still has the session; {_INSTEAD}",
    )


def _check_bytes(stores: Stores, file: SessionFile, segments: list[Segment]) -> None:
    if not is_here(stores, segments):
        raise MissingBytes(
            f"some of the source bytes of {PurePath(file.path).name} are lost",
            f"`raddle doctor` names them; {_INSTEAD}",
        )


def _chosen(main: SessionFile, wanted: int | None) -> int:
    if wanted is None:
        return main.newest
    if wanted - 1 not in main.generations:
        known = ", ".join(str(number + 1) for number in main.generations)
        raise InvalidInput(f"there is no generation {wanted} of its source", f"kept here: {known}")
    return wanted - 1


def _insertion(
    stores: Stores, thread: Thread, native: NativeForm, file: NativeFile, candidates: Candidates
) -> tuple[Insertion | None, frozenset[str]]:
    """(the lines of what was added, the ids of these turns): the file is read once, as an import reads it."""
    writer = native.writer(candidates)
    reader = importer_of(native.agent).open(source_name(file.path))
    where = reader.message_after if isinstance(reader, _KnowsPlaces) else _nowhere
    present: set[str] = set()
    size, last = 0, b"\n"

    def scanned() -> Iterator[bytes]:
        nonlocal size, last
        for data in bytes_of(stores.blobs, file.segments):
            writer.scan(data)
            size, last = size + len(data), data[-1:]
            yield data

    def note() -> None:
        present.update(message.id for message in reader.take().messages if message.id in candidates.around)

    tail = b""
    for line, is_ended in lines_of(scanned()):
        if not is_ended:
            tail = line or b""
        elif line is None:
            reader.skip_line("too long")
        else:
            reader.feed((line,))
            writer.see(line, where)
            note()
    ending = reader.finish(tail)
    if tail:
        writer.see(tail, where)
    note()
    added = added_turns(thread, candidates, present)
    if not added:
        return None, frozenset()
    session_id = ending.session_id or (thread.source.session_id if thread.source is not None else "")
    end = SourceEnd(size=size, is_ended=last == b"\n")
    return writer.insertion(added, session_id, end), frozenset(one.message.id for one in added)


def _nowhere(_: str) -> str:
    return ""
