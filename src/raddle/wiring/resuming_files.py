"""A session for an agent that keeps its sessions as files of lines: its own one, or a new one that tells a thread.

Owns which of the two it is, and under which id. A session that is there already is used where it is the same, and
never changed: its agent may be writing to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from raddle.actions.importing.importer import MAX_LINE_BYTES
from raddle.actions.importing.registry import importer_of
from raddle.actions.resuming.registry import name_of
from raddle.actions.resuming.session import Move, ResumedForm, as_copied
from raddle.actions.resuming.told import Told, as_copies
from raddle.adapters.agent_homes.session_places import PLACES, Places, Present, home_folder, same_start
from raddle.adapters.files import NewFile
from raddle.model.errors import InvalidInput
from raddle.model.ids import derived_id, derived_thread_id
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.native_export import (
    MissingBytes,
    NativeFile,
    NativeSession,
    chunks_of,
    messages_in,
    native_session,
)
from raddle.wiring.resumed import BECOMES_ANOTHER, Resumed, fetch, header_of, leads_to, warnings_on

_TRIES = 100
"""Ids that are tried for a new session."""


def prepare_file(stores: Stores, thread: Thread, told: Told, form: ResumedForm, workspace: str) -> Resumed:
    """Write what is not there yet, whole or not at all."""
    return _Preparation(stores, thread, told, form, workspace).resumed()


class OwnBytes(Struct, frozen=True, kw_only=True):
    """The agent's own session as it was kept, with what was added. `folder`: the first one that a line tells; `stubs`:
    what is written behind all of it."""

    session: NativeSession
    folder: str
    stubs: bytes


class _Preparation:
    """One session for an agent that keeps lines in a folder."""

    def __init__(self, stores: Stores, thread: Thread, told: Told, form: ResumedForm, workspace: str) -> None:
        self._stores, self._thread, self._told = stores, thread, told
        self._form, self._workspace = form, workspace
        home = importer_of(form.agent).home
        environment = stores.config.environment
        user_home = Path(environment("HOME") or "~").expanduser()
        folder = home_folder(home, environment, user_home)
        self._name = name_of(form.agent)
        self._places: Places = PLACES[self._name](folder)
        self._warnings = warnings_on(thread, told)

    def resumed(self) -> Resumed:
        own = self._own()
        return self._told_anew() if own is None else self._as_own(own)

    def _own(self) -> OwnBytes | None:
        """The agent's own session; None where it is another agent's, or does not lead to where it goes on."""
        source = self._thread.source
        if source is None or source.agent != self._form.agent:
            return None
        try:
            session = self._native()
        except InvalidInput as error:
            self._warnings.append(f"{error.message}: the conversation is told anew")
            return None
        leads_here, folder = self._look_at(session)
        if not leads_here:
            self._warnings.append(
                f"{self._form.label}'s own session does not end where this goes on: the conversation is told anew"
            )
            return None
        stubs = self._stubs(session)
        if stubs is None:
            self._warnings.append(
                f"a call in {self._form.label}'s own session has no result: the conversation is told anew"
            )
            return None
        if session.elsewhere:
            self._warnings.append(f"{session.elsewhere} turns that were added on other branches are left out")
        return OwnBytes(session=session, folder=folder, stubs=stubs)

    def _stubs(self, session: NativeSession) -> bytes | None:
        """What is written behind the session for calls without a result; None where that does not help."""
        if self._form.stubs is None or all(turn.is_answered for turn in self._told.turns):
            return b""
        *before, last = self._told.turns
        if not all(turn.is_answered for turn in before) or session.main.name.endswith(".json"):
            return None
        return b"".join(line + b"\n" for line in self._form.stubs(last))

    def _native(self) -> NativeSession:
        leaf = self._told.last.id
        try:
            return native_session(self._stores, self._thread, self._name, leaf=leaf)
        except MissingBytes:
            fetch(self._stores, self._thread, self._form.agent, self._warnings)
        return native_session(self._stores, self._thread, self._name, leaf=leaf)

    def _look_at(self, session: NativeSession) -> tuple[bool, str]:
        """(does it end where this goes on?, the first folder that it tells)."""
        folder = ""

        def see(line: bytes) -> None:
            nonlocal folder
            folder = folder or self._form.folder_in(line)

        plain = NativeFile(name=session.main.name, path=session.main.path, segments=session.main.segments)
        found = messages_in(self._stores, self._form.agent, plain, see)
        return leads_to(self._told, found, session.added_ids), folder

    def _as_own(self, own: OwnBytes) -> Resumed:
        """The session under its own id, or, where that is taken by something else, under a new one."""
        assert self._thread.source is not None
        its_id = self._thread.source.session_id
        for session_id in (its_id, *self._new_ids()):
            move = Move(
                workspace=own.folder,
                to_workspace=self._workspace,
                session=its_id,
                to_session=session_id,
                at=self._time(),
            )
            present = self._places.find(session_id)
            if present is None:
                path = self._write_own(own, move)
                if path is not None:
                    if move.is_new_session:
                        self._warnings.append(BECOMES_ANOTHER)
                    return self._answer(session_id, path, self._workspace, is_own=True)
                continue
            workspace = self._usable(present, own, move)
            if workspace:
                self._warnings.append(f"{self._form.label} has this session already: nothing was written")
                return self._answer(session_id, present.path, workspace, is_own=True)
        raise _nothing_free()

    def _usable(self, present: Present, own: OwnBytes, move: Move) -> str:
        """The folder in which a session that is there goes on as this one; empty where it is another."""
        folders = [self._workspace, present.workspace, own.folder]
        found = [
            folder
            for folder in folders
            if folder and Path(folder).is_dir() and self._places.is_found_from(present.path, folder)
        ]
        if not found:
            return ""
        forms = [self._main(own, move)]
        if not move.is_new_session and not own.stubs:
            forms.append(chunks_of(self._stores, own.session.main))
        return found[0] if any(same_start(present.path, form)[0] for form in forms) else ""

    def _write_own(self, own: OwnBytes, move: Move) -> Path | None:
        began = move.at if move.is_new_session else self._began()
        name = Path(own.session.main.name).name
        path = self._places.place(move.to_session, self._workspace, began, name)
        for other in own.session.others:
            beside = self._places.beside(path, other.name)
            if beside is not None:
                _publish(beside, self._moved(other, move))
        return path if _publish(path, self._main(own, move)) else None

    def _main(self, own: OwnBytes, move: Move) -> Iterator[bytes]:
        """The main file."""
        last = b"\n"
        for data in self._moved(own.session.main, move):
            last = data[-1:] or last
            yield data
        if own.stubs:
            yield own.stubs if last == b"\n" else b"\n" + own.stubs

    def _moved(self, file: NativeFile, move: Move) -> Iterator[bytes]:
        """The file's bytes as they stand after the move."""
        for line, is_whole in whole_lines(chunks_of(self._stores, file)):
            moved = self._form.move_line(line, move) if is_whole else line
            yield as_copied(moved, self._thread.id) if is_whole and move.is_new_session else moved

    def _told_anew(self) -> Resumed:
        """A new session that tells the path."""
        turns = as_copies(self._told.turns, self._thread.id)
        for session_id in self._new_ids():
            header = header_of(self._stores, self._thread, self._told, session_id, self._workspace)
            lines = [line + b"\n" for line in self._form.write(header, turns)]
            present = self._places.find(session_id)
            if present is None:
                path = self._places.place(session_id, self._workspace, header.began)
                if not _publish(path, iter(lines)):
                    continue
            elif same_start(present.path, iter(lines)) == (True, True):
                path = present.path
            else:
                continue
            return self._answer(session_id, path, self._workspace, is_own=False)
        raise _nothing_free()

    def _new_ids(self) -> Iterator[str]:
        """Ids for a new session, the same ones each time this is asked for on this device."""
        parts = (self._stores.author.device, self._thread.id, self._told.last.id, self._workspace)
        for number in range(_TRIES):
            if (
                self._name == "gemini"
            ):  # its files are named for the minute and the first characters of the id
                yield derived_id("resumed", self._form.agent, *parts, number)
            else:
                found = derived_thread_id(self._time(), "resumed", self._form.agent, *parts, number)
                yield found.removeprefix("T-")

    def _time(self) -> int:
        """After everything that is told: what the agent adds is later."""
        return (self._told.last.order // 1000 + 1) * 1000

    def _began(self) -> int:
        return self._told.turns[0].message.order

    def _answer(self, session_id: str, path: Path, workspace: str, *, is_own: bool) -> Resumed:
        return Resumed(
            agent=self._name,
            session_id=session_id,
            path=path,
            argv=self._form.argv(session_id),
            cwd=Path(workspace),
            is_own=is_own,
            messages=self._told.messages,
            warnings=tuple(self._warnings),
        )


def whole_lines(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """(bytes, are they the whole of a line, without its end?) of a file; a line too long to be read comes in pieces."""
    held = b""
    is_long = False
    for chunk in chunks:
        *lines, rest = (held + chunk).split(b"\n")
        for line in lines:
            yield line, not is_long
            yield b"\n", False
            is_long = False
        held = rest
        if len(held) > MAX_LINE_BYTES:
            yield held, False
            held, is_long = b"", True
    if held:
        yield held, not is_long


def _publish(path: Path, chunks: Iterator[bytes]) -> bool:
    """Write a file whole, where nothing is yet; False where something is."""
    with NewFile(path.parent) as new:
        for chunk in chunks:
            new.write(chunk)
        return new.publish_new(path)


def _nothing_free() -> InvalidInput:
    return InvalidInput(
        f"{_TRIES} sessions of this conversation are there already",
        "remove those that are no longer wanted",
    )
