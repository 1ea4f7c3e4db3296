"""How a server for agents is handed on to the daemon: who may be, and what is said about it first.

The caller says one line, the daemon answers with one, and from then on the bytes are the protocol's. No variable of the
environment is sent: what decides is compared by digests, and whoever is set up differently, or has a token of its own,
is served by a process of its own. Both sides are here, since they have to agree.
"""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import msgspec
from msgspec import Struct

from raddle import __version__
from raddle.adapters.local_socket import connect_to, identity_of, is_own, listen_at
from raddle.adapters.paths import Paths
from raddle.adapters.programs import clean_environment
from raddle.config import Config
from raddle.model.errors import StorageError

_ANSWER_SECONDS = 0.5
"""So long a daemon may take to say whether it serves: one that is that busy would be no gain."""
_ASKED_SECONDS = 2.0
_LONGEST_LINE = 1 << 16
_STEERING = ("HOME", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "SSH_ASKPASS", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Besides those that begin with GIT_ or end with _PROXY: how git reaches a remote, and where `~` leads."""


class Caller(Struct, frozen=True, kw_only=True):
    """What a caller says. `version`: of its raddle. `standing`: as `standing_of` has it. `workspace`, `store`: whole
    paths. The last two: what its agent may see besides."""

    version: str
    standing: dict[str, str]
    workspace: str
    store: str | None = None
    all_repositories: bool = False
    include_private: bool = False

    def settings(self, config: Config) -> Config:
        """Those of the daemon, with what is the caller's own."""
        return msgspec.structs.replace(config, workspace=Path(self.workspace), store=self.store)


class Answer(Struct, frozen=True, kw_only=True):
    """What the daemon says. `why`: why not, in a word."""

    is_served: bool
    why: str = ""


def socket_of(paths: Paths) -> Path:
    """Where the daemon of this data folder listens for agents."""
    return paths.state_dir / f"mcp-{paths.mark}.sock"


def agents_came(paths: Paths) -> bool:
    """Has the daemon of this data folder ever served an agent?"""
    return _mark_of(paths).exists()


def note_agents_came(paths: Paths) -> None:
    """Note that it has."""
    from raddle.adapters.files import make_folder, write_atomic  # noqa: PLC0415

    if not agents_came(paths):
        make_folder(paths.state_dir)
        write_atomic(_mark_of(paths), b"")


def _mark_of(paths: Paths) -> Path:
    return paths.state_dir / f"mcp-{paths.mark}.served"


def standing_of(config: Config) -> dict[str, str]:
    """What one process is set up with that another one needs to have too, to do its work: name -> digest of the value.
    A client hands few variables on to what it starts: the daemon may have more, but no others."""
    folders = (config.data_dir, config.config_dir, config.state_dir, config.cache_dir)
    told = {
        name: value
        for name, value in clean_environment().items()
        if name in _STEERING or name.startswith("GIT_") or name.upper().endswith("_PROXY")
    }
    told["folders"] = "\n".join(map(os.fspath, folders))
    told["server"] = config.server or ""
    told["offline"] = "yes" if config.is_offline else ""
    return {
        name: hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
        for name, value in told.items()
        if value
    }


def call_daemon(config: Config, *, all_repositories: bool, include_private: bool) -> socket.socket | None:
    """A connection to the daemon, which has said that it serves this caller; None where none does, at once or soon."""
    if config.token is not None:
        return None
    try:
        workspace = os.path.realpath(config.workspace or os.getcwd())  # noqa: PTH109  no Path is needed of it
        store = os.path.realpath(os.path.expanduser(config.store)) if config.store else None  # noqa: PTH111
        said = msgspec.json.encode(
            Caller(
                version=__version__,
                standing=standing_of(config),
                workspace=workspace,
                store=store,
                all_repositories=all_repositories,
                include_private=include_private,
            )
        )
    except (OSError, ValueError, UnicodeEncodeError):  # a folder that is gone, or whose name is no text
        return None
    connection = connect_to(socket_of(config.paths), seconds=_ANSWER_SECONDS)
    if connection is None:
        return None
    try:
        connection.sendall(said + b"\n")
        line = _line_of(connection)
        if line is not None and msgspec.json.decode(line, type=Answer).is_served:
            connection.settimeout(None)
            return connection
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        pass  # one that is ending, or that speaks otherwise
    connection.close()
    return None


class Doorway:
    """The socket on which the daemon of a data folder listens. For that daemon alone: it takes the place of whatever
    another one left there."""

    def __init__(self, paths: Paths) -> None:
        self._path = socket_of(paths)
        self.listening = listen_at(self._path)
        self._identity = identity_of(self._path)

    def is_there(self) -> bool:
        """Is its file still the one that it made?"""
        return self._identity is not None and identity_of(self._path) == self._identity

    def close(self) -> None:
        """Listen no more, and take the file away."""
        if self.is_there():
            self._path.unlink(missing_ok=True)
        self.listening.close()


def caller_at(connection: socket.socket, config: Config | None) -> Caller | None:
    """Who calls, once that has been answered; None for one that is not served. `config`: the daemon's settings, None
    where it has none now."""
    try:
        if not is_own(connection):
            return None
        connection.settimeout(_ASKED_SECONDS)
        line = _line_of(connection)
        caller = None if line is None else _read(line)
        why = _why_not(caller, config)
        connection.sendall(msgspec.json.encode(Answer(is_served=not why, why=why)) + b"\n")
        connection.settimeout(None)
    except OSError:
        return None
    return None if why else caller


def open_doorway(paths: Paths) -> Doorway:
    """Listen. StorageError where that cannot be."""
    try:
        return Doorway(paths)
    except OSError as error:
        raise StorageError(
            f"cannot listen for agents: {error.strerror}", "agents are served without"
        ) from error


def _why_not(caller: Caller | None, config: Config | None) -> str:
    if caller is None:
        return "not understood"
    if caller.version != __version__:
        return "another version"
    if config is None:
        return "no settings"
    if "folders" not in caller.standing or not caller.standing.items() <= standing_of(config).items():
        return "other settings"
    return "" if os.path.isabs(caller.workspace) else "not understood"  # noqa: PTH117


def _read(line: bytes) -> Caller | None:
    try:
        return msgspec.json.decode(line, type=Caller)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _line_of(connection: socket.socket) -> bytes | None:
    """The line that comes first, without its end; None where none does. Nothing may follow it unasked."""
    line = b""
    while not line.endswith(b"\n"):
        piece = connection.recv(_LONGEST_LINE)
        line += piece
        if not piece or len(line) > _LONGEST_LINE:
            return None
    return line[:-1]
