"""The tokens of this device, one for each server: in the keyring of the system where there is one, else in a file.

The one place that keeps, finds and forgets them. The file (0600) also says which server was signed in to last, and
where each token is; a second place would leave a token behind that `raddle logout` does not know of.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from raddle.adapters.files import find_bytes, make_folder, write_atomic
from raddle.adapters.locks import LockFiles
from raddle.model.errors import BrokenFormat, NewerFormat, NotSignedIn, StorageError

_SERVICE = "raddle"
_API_SERVICE = "raddle responder"
_REAL_FROM = 1.0
"""keyring gives a backend that keeps nothing, or keeps it in the clear, a lower priority than this."""
_VERSION = 1


class Keyring(Protocol):
    """What is asked of a keyring, as the package of that name has it."""

    def get_password(self, service: str, username: str) -> str | None:
        """The secret; None where there is none."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep it."""

    def delete_password(self, service: str, username: str) -> None:
        """Forget it."""


class Login(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A server that was signed in to. `token`: empty where the keyring has it."""

    token: str = ""
    is_insecure: bool = False
    """Was it said that the way there need not be encrypted?"""


class _Kept(Struct, frozen=True, kw_only=True):
    schema_version: int = _VERSION
    last_server: str | None = None
    servers: dict[str, Login] = {}


def system_keyring() -> Keyring | None:
    """The keyring of this system; None where there is none to be trusted, or `keyring` is not installed."""
    try:
        import keyring  # noqa: PLC0415  heavy, and an option (docs/adr/0082)

        found = keyring.get_keyring()
        is_real = found.priority >= _REAL_FROM
    except Exception:  # noqa: BLE001  backends of many makers: one that fails is one that is not there
        return None
    return found if is_real else None


class Credentials:
    """The tokens in `file`, and in the keyring that `find_keyring` answers when one is needed."""

    def __init__(
        self, file: Path, locks_dir: Path, *, find_keyring: Callable[[], Keyring | None] = system_keyring
    ) -> None:
        self._file = file
        self._locks = LockFiles(locks_dir, stripes=1)
        self._find_keyring = find_keyring

    def last_server(self) -> str | None:
        """The server that was signed in to last, and may have been signed out of; None where none ever was."""
        return self._kept().last_server

    def is_insecure(self, server: str) -> bool:
        """Was it said at the sign-in that the way to that server need not be encrypted?"""
        found = self._kept().servers.get(server)
        return found is not None and found.is_insecure

    def login(self, server: str) -> Login | None:
        """What is known of that server, with its token; None where this device is not signed in there.

        NotSignedIn where the keyring should have the token and does not give it.
        """
        found = self._kept().servers.get(server)
        if found is None or found.token:
            return found
        keyring = self._find_keyring()
        token = None if keyring is None else _asked(lambda: keyring.get_password(_SERVICE, server))
        if not token:
            raise NotSignedIn(
                f"the keyring does not give the token for {server}",
                "unlock it, or sign in anew: `raddle login`",
            )
        return msgspec.structs.replace(found, token=token)

    def keep(self, server: str, token: str, *, is_insecure: bool = False) -> bool:
        """Keep a token, as that of the server signed in to last. Did the keyring take it?"""
        in_keyring = self._into_keyring(server, token)
        login = Login(token="" if in_keyring else token, is_insecure=is_insecure)
        self._change(lambda kept: _Kept(last_server=server, servers={**kept.servers, server: login}))
        return in_keyring

    def forget(self, server: str) -> None:
        """Forget the token for a server, wherever it is; not that it is the server of this machine."""
        keyring = self._find_keyring()
        if keyring is not None:
            _asked(lambda: keyring.delete_password(_SERVICE, server))

        def without(kept: _Kept) -> _Kept:
            others = {name: login for name, login in kept.servers.items() if name != server}
            return _Kept(last_server=kept.last_server, servers=others)

        self._change(without)

    def _into_keyring(self, server: str, token: str) -> bool:
        """Is it in the keyring, and does that give it back?"""
        keyring = self._find_keyring()
        if keyring is None:
            return False
        _asked(lambda: keyring.set_password(_SERVICE, server, token))
        return bool(_asked(lambda: keyring.get_password(_SERVICE, server)) == token)

    def _change(self, change: Callable[[_Kept], _Kept]) -> None:
        make_folder(self._file.parent)
        with self._locks.held("credentials"):
            new = change(self._kept())
            write_atomic(self._file, msgspec.json.format(msgspec.json.encode(new), indent=2) + b"\n")

    def _kept(self) -> _Kept:
        data = find_bytes(self._file)
        if data is None:
            return _Kept()
        try:
            kept = msgspec.json.decode(data, type=_Kept)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            # msgspec names the field and never what it holds.
            raise BrokenFormat(
                f"{self._file} cannot be read", "remove it, then sign in again: `raddle login`"
            ) from error
        if kept.schema_version > _VERSION:
            raise NewerFormat(str(self._file), kept.schema_version, _VERSION)
        return kept


def _asked(ask: Callable[[], Any]) -> Any:
    """What the keyring answers; None where it fails: locked, asked and refused, or gone with its session."""
    try:
        return ask()
    except Exception:  # noqa: BLE001  each backend raises its own; without it the file is used
        return None


class ApiKeys:
    """Keys of responders: in the keyring of the system and nowhere else."""

    def __init__(self, *, find_keyring: Callable[[], Keyring | None] = system_keyring) -> None:
        self._find_keyring = find_keyring

    def find(self, responder: str) -> str | None:
        """The key; None where the keyring has none or is locked, or there is no keyring."""
        keyring = self._find_keyring()
        return None if keyring is None else _asked(lambda: keyring.get_password(_API_SERVICE, responder))

    def keep(self, responder: str, key: str) -> None:
        """Keep it, in place of the one before. StorageError where there is no keyring, or it does not take it."""
        keyring = self._find_keyring()
        hint = "set the variable that key_env names instead"
        if keyring is None:
            raise StorageError(f"this machine has no keyring to keep the key of {responder} in", hint)
        try:
            keyring.set_password(_API_SERVICE, responder, key)
        except Exception as error:  # each backend raises its own, and it may name what it was given
            raise StorageError(f"the keyring did not take the key of {responder}", hint) from error

    def forget(self, responder: str) -> bool:
        """Forget it; was there one? StorageError where the keyring does not let it go."""
        keyring = self._find_keyring()
        if keyring is None or not self.find(responder):
            return False
        try:
            keyring.delete_password(_API_SERVICE, responder)
        except Exception as error:
            raise StorageError(
                f"the keyring keeps the key of {responder}", "unlock it, then try again"
            ) from error
        return True
