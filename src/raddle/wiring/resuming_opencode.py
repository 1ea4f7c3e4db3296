"""A thread made into a session of OpenCode, by the door that its own program has: `opencode import`.

Its database is its own, and nothing here writes to it: it is read, to know whether a session is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from raddle.actions.importing.registry import importer_of
from raddle.actions.importing.source_reading import SourceError
from raddle.actions.resuming.opencode import (
    OwnSession,
    argv,
    document,
    last_prompt,
    model_of,
    own_session,
    session_id_of,
    with_model,
)
from raddle.actions.resuming.registry import OPENCODE
from raddle.actions.resuming.session import Header
from raddle.actions.resuming.told import Told, Turn, as_copies
from raddle.adapters.agent_homes.session_places import OpenCodeSession, home_folder, opencode_session
from raddle.adapters.files import make_folder, write_atomic
from raddle.adapters.programs import Completed, clean_environment, find_program, run
from raddle.model.errors import InvalidInput, StorageError
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.native_export import chunks_of, kept_lines, messages_in
from raddle.wiring.resumed import BECOMES_ANOTHER, Resumed, fetch, header_of, leads_to, warnings_on
from raddle.wiring.source_worth import lines_of

PROGRAM = "opencode"
_TRIES = 100
_PATIENCE_SECONDS = 120.0
_VARIABLES = ("HOME", "XDG_DATA_HOME", "OPENCODE_DB")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MODEL = re.compile(r"[A-Za-z0-9._-]+/\S+\Z")


def prepare_opencode(stores: Stores, thread: Thread, told: Told, workspace: str) -> Resumed:
    """Have the program bring the session in; where there is no program, write what it is to bring in."""
    return _Preparation(stores, thread, told, workspace).resumed()


class _Own:
    """OpenCode's own session as it was kept. `rest`: the turns to add."""

    def __init__(self, session_id: str, lines: list[bytes], rest: tuple[Turn, ...]) -> None:
        self.session_id = session_id
        self._lines = lines
        self.rest = rest

    def under(self, session_id: str) -> OwnSession | None:
        """Under that id; None where a part of it cannot be told whole."""
        return own_session(self._lines, self.session_id, session_id)


class _Preparation:
    def __init__(self, stores: Stores, thread: Thread, told: Told, workspace: str) -> None:
        self._stores, self._thread, self._told, self._workspace = stores, thread, told, workspace
        self._warnings = warnings_on(thread, told)
        environment = stores.config.environment
        given = {name: value for name in _VARIABLES if (value := environment(name))}
        self._environment = clean_environment() | given
        self._home = Path(environment("HOME") or "~").expanduser()
        self._program = find_program(PROGRAM, self._environment)

    def resumed(self) -> Resumed:
        own = self._own()
        for session_id in self._ids(own):
            kept = own.under(session_id) if own is not None else None
            turns = own.rest if own is not None and kept is not None else self._told.turns
            becomes_another = own is None or session_id != own.session_id
            if becomes_another:
                turns = as_copies(turns, self._thread.id)
            header = header_of(self._stores, self._thread, self._told, session_id, self._workspace)
            there = self._there(session_id)
            if there is None:
                data = self._document(header, turns, kept)
                if kept is not None and becomes_another:
                    self._warnings.append(BECOMES_ANOTHER)
                return self._brought_in(session_id, data, is_own=kept is not None)
            if _is_same(there, document(header, turns, kept), is_own=kept is not None):
                self._warnings.append("OpenCode has this session already: nothing was written")
                folder = there.directory if Path(there.directory).is_dir() else self._workspace
                return self._answer(session_id, argv(session_id), folder, is_own=kept is not None)
        raise InvalidInput(
            f"{_TRIES} sessions of this conversation are there already",
            "remove those that are no longer wanted: opencode session delete ID",
        )

    def _document(self, header: Header, turns: Sequence[Turn], kept: OwnSession | None) -> bytes:
        header = msgspec.structs.replace(header, model=self._model())
        if kept is not None and not any(turn.role == "user" for turn in turns):
            kept = self._with_a_model_of_here(kept, header)
        return document(header, turns, kept)

    def _ids(self, own: _Own | None) -> Iterator[str]:
        if own is not None:
            yield own.session_id
        parts = (self._stores.author.device, self._thread.id, self._told.last.id, self._workspace)
        for number in range(_TRIES):
            yield session_id_of(*parts, number, at=self._told.last.order)

    def _there(self, session_id: str) -> OpenCodeSession | None:
        home = home_folder(importer_of(OPENCODE).home, self._stores.config.environment, self._home)
        named = self._stores.config.environment("OPENCODE_DB")
        database = home / named if named else home / "opencode.db"
        try:
            return opencode_session(database, session_id)
        except SourceError as error:
            raise StorageError(f"OpenCode's database cannot be read: {error.reason}", error.hint) from error

    def _own(self) -> _Own | None:
        source = self._thread.source
        if source is None or source.agent != OPENCODE:
            return None
        file = kept_lines(self._stores, self._thread, OPENCODE)
        if file is None:
            fetch(self._stores, self._thread, OPENCODE, self._warnings)
            file = kept_lines(self._stores, self._thread, OPENCODE)
        if file is None:
            self._warnings.append("the session's own bytes are not kept here: the conversation is told anew")
            return None
        found = messages_in(self._stores, OPENCODE, file)
        rest = tuple(turn for turn in self._told.turns if turn.message.id not in found)
        added = frozenset(message.id for turn in rest for message in _messages_of(turn))
        lines = [line for line, _ in lines_of(chunks_of(self._stores, file)) if line]
        own = _Own(source.session_id, lines, rest)
        is_whole = own.under(source.session_id) is not None
        if not is_whole or not leads_to(self._told, found, added) or not _is_end(self._told.turns, rest):
            self._warnings.append(
                "OpenCode's own session does not end where this goes on: the conversation is told anew"
            )
            return None
        return own

    def _model(self) -> str:
        """A model that the program has: the one it is set to, else the thread's, else the first; empty: unknown.

        A session that names another one last makes it fail.
        """
        if self._program is None:
            return ""
        asked = self._run("debug", "config")
        try:
            found = msgspec.json.decode(asked.stdout, type=dict[str, object]).get("model")
        except (msgspec.DecodeError, RecursionError):
            found = None
        if isinstance(found, str) and _MODEL.match(found):
            return found
        models = self._models()
        of_thread = f"{self._thread.plain('provider')}/{self._thread.plain('model')}"
        return of_thread if of_thread in models else next(iter(models), "")

    def _models(self) -> list[str]:
        listed = self._run("models").stdout.decode(errors="replace").split()
        return [name for name in listed if _MODEL.match(name)]

    def _with_a_model_of_here(self, own: OwnSession, header: Header) -> OwnSession:
        """The same, where the last prompt names a model that the program has."""
        at = last_prompt(own.messages)
        if at < 0 or self._program is None or model_of(own.messages[at]) in (header.model, *self._models()):
            return own
        return own._replace(messages=with_model(own.messages, at, header.model))

    def _brought_in(self, session_id: str, data: bytes, *, is_own: bool) -> Resumed:
        folder = self._stores.paths.cache_dir / "resumed"
        make_folder(folder)
        path = folder / f"{session_id}.json"
        write_atomic(path, data)
        if self._program is None:
            self._warnings.append(
                f"{PROGRAM} is not on PATH; when it has run, go on with: {' '.join(argv(session_id))}"
            )
            command = (PROGRAM, "import", str(path))
            return self._answer(session_id, command, self._workspace, is_own=is_own, path=path)
        done = self._run("import", str(path))
        if done.code or done.is_timed_out or session_id.encode() not in done.stdout:
            words = _COLOURS.sub("", (done.stderr or done.stdout).decode(errors="replace"))
            told = words.strip().splitlines()
            reason = (
                "it took too long" if done.is_timed_out else told[0] if told else f"exit code {done.code}"
            )
            raise StorageError(
                f"opencode would not bring the session in: {reason}", f"by hand: opencode import {path}"
            )
        path.unlink(missing_ok=True)
        return self._answer(session_id, argv(session_id), self._workspace, is_own=is_own)

    def _run(self, *words: str) -> Completed:
        return run(
            (PROGRAM, *words),
            cwd=Path(self._workspace),
            timeout=_PATIENCE_SECONDS,
            env=self._environment,
        )

    def _answer(
        self,
        session_id: str,
        command: tuple[str, ...],
        folder: str,
        *,
        is_own: bool,
        path: Path | None = None,
    ) -> Resumed:
        return Resumed(
            agent=OPENCODE,
            session_id=session_id,
            path=path,
            argv=command,
            cwd=Path(folder),
            is_own=is_own,
            messages=self._told.messages,
            warnings=tuple(self._warnings),
        )


def _is_same(there: OpenCodeSession, data: bytes, *, is_own: bool) -> bool:
    """Does a session that is there hold all messages of this document? Its own one may have gone on since."""
    ours = {message["info"]["id"] for message in msgspec.json.decode(data)["messages"]}
    return ours <= set(there.messages) if is_own else ours == set(there.messages)


def _messages_of(turn: Turn) -> list[Message]:
    results = [call.result.message for call in turn.calls if call.result.message is not None]
    return [turn.message, *results]


def _is_end(turns: Sequence[Turn], rest: Sequence[Turn]) -> bool:
    """Are these the last ones, so that they can stand behind all others?"""
    return not rest or tuple(turns[-len(rest) :]) == tuple(rest)
