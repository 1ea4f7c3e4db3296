"""The server of this machine: which it is, by whose token it is asked, and how this device signs in there and out.

Nothing here imports an HTTP client before something is asked of a server.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Self

from raddle.model.errors import Ambiguous, InvalidInput, NotFound, NotSignedIn, RaddleError, UserError

if TYPE_CHECKING:
    from raddle.adapters.credentials import Credentials
    from raddle.adapters.remote.http_hub import HttpHub
    from raddle.adapters.remote.http_link import HttpLink
    from raddle.model.protocol.signing_in import DeviceAuthorization, DeviceShown, Me
    from raddle.wiring import Stores

_SIGN_IN = "`raddle login` signs in"
_LONGEST_NAME = 100
_LEAST_OF_AN_ID = 4
"""Fewer characters may name the only device there is by chance."""


class Signed(NamedTuple):
    """A sign-in that is done. `in_keyring`: is the token kept there, and not in a file?"""

    server: str
    me: Me
    in_keyring: bool


def server_of(stores: Stores, *, is_needed: bool = True) -> str:
    """The address of the server: as it is set, else the one signed in to last; empty, or UserError, where none is."""
    server = _parsed(stores.config.server) if stores.config.server else _credentials(stores).last_server()
    if not server and is_needed:
        raise UserError("no server is known", "sign in to one: `raddle login --server URL`")
    return server or ""


def is_signed_in(stores: Stores) -> bool:
    """Has this device a token for its server? Asks no network."""
    server = server_of(stores, is_needed=False)
    if not server or stores.config.token is not None:
        return bool(server)
    try:
        return _credentials(stores).login(server) is not None
    except NotSignedIn:  # the keyring has lost it
        return False


def open_remote(stores: Stores, *, insecure: bool = False, is_hurried: bool = False) -> HttpHub:
    """The server as a hub; use as a context manager. Nothing is asked yet. `is_hurried`: it has to answer soon.

    UserError where no server is known or the network is not to be asked, NotSignedIn where there is no token.
    """
    link = open_link(stores, insecure=insecure, is_hurried=is_hurried)
    from raddle.adapters.remote.http_hub import HttpHub  # noqa: PLC0415  heavy: httpx

    return HttpHub(link)


def open_link(stores: Stores, *, insecure: bool = False, is_hurried: bool = False) -> HttpLink:
    """The same, for calls about devices and about who asks."""
    server = server_of(stores)
    _expect_online(stores)
    kept = _credentials(stores)
    if stores.config.token is not None:
        token, is_insecure = stores.config.token.reveal(), kept.is_insecure(server)
    else:
        login = kept.login(server)
        if login is None:
            raise NotSignedIn(f"this device is not signed in to {server}", _SIGN_IN)
        token, is_insecure = login.token, login.is_insecure
    return _link(server, token, is_insecure=insecure or is_insecure, is_hurried=is_hurried)


class SigningIn:
    """A sign-in that has begun: `authorization` says what a person does now. Use as a context manager."""

    def __init__(self, stores: Stores, link: HttpLink, *, is_insecure: bool) -> None:
        from raddle.adapters.remote.sign_in import ask_to_be_let_in  # noqa: PLC0415  heavy: httpx

        self._stores = stores
        self._link = link
        self._is_insecure = is_insecure
        self.authorization: DeviceAuthorization = ask_to_be_let_in(link, device_name())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()

    def finish(self, *, wait: Callable[[float], object] = time.sleep) -> Signed:
        """Wait until the person let this device in, and keep its token. `wait`: lets so many seconds pass."""
        from raddle.adapters.remote.sign_in import wait_for_token  # noqa: PLC0415  heavy: httpx

        answer = wait_for_token(self._link, self.authorization, wait=wait)
        return _keep(self._stores, self._link.server, answer.access_token, is_insecure=self._is_insecure)


def begin_sign_in(stores: Stores, server: str = "", *, insecure: bool = False) -> SigningIn:
    """Ask the server (empty: the one that is known) to let this device in."""
    address = _parsed(server) if server else server_of(stores)
    _expect_online(stores)
    link = _link(address, "", is_insecure=insecure)
    try:
        return SigningIn(stores, link, is_insecure=insecure)
    except BaseException:
        link.close()
        raise


def sign_in_with(stores: Stores, token: str, server: str = "", *, insecure: bool = False) -> Signed:
    """Keep a token that was made elsewhere, once the server has said whose it is."""
    address = _parsed(server) if server else server_of(stores)
    _expect_online(stores)
    return _keep(stores, address, token, is_insecure=insecure)


def sign_out(stores: Stores) -> str:
    """End this device's token and forget it; the server's address.

    NetworkError where the server could not be told: here it is forgotten all the same.
    """
    from raddle.adapters.remote.sign_in import log_out  # noqa: PLC0415  heavy: httpx

    if stores.config.token is not None:
        raise UserError(
            "the token comes from RADDLE_TOKEN, where raddle cannot forget it",
            "unset it; `raddle devices revoke` ends it on the server",
        )
    server = server_of(stores)
    with open_link(stores) as link:
        try:
            log_out(link)
        except RaddleError as error:
            error.hint = "it is forgotten here; on another device, `raddle devices revoke` ends it there too"
            raise
        finally:
            _credentials(stores).forget(server)
    return server


def who_am_i(stores: Stores) -> tuple[str, Me]:
    """(The server, who this device is there)."""
    from raddle.adapters.remote.sign_in import who_am_i as ask  # noqa: PLC0415  heavy: httpx

    with open_link(stores) as link:
        return link.server, ask(link)


def list_devices(stores: Stores) -> list[DeviceShown]:
    """The devices that this person has let in, newest first."""
    from raddle.adapters.remote.sign_in import list_devices as ask  # noqa: PLC0415  heavy: httpx

    with open_link(stores) as link:
        return ask(link)


def revoke_device(
    stores: Stores, device: str, *, is_meant: Callable[[DeviceShown], bool]
) -> DeviceShown | None:
    """Let a device in no more, named by its id, the start of it, or its name; None where `is_meant` says no.

    This very one is signed out.
    """
    from raddle.adapters.remote.sign_in import list_devices as ask  # noqa: PLC0415  heavy: httpx
    from raddle.adapters.remote.sign_in import revoke_device as revoke  # noqa: PLC0415

    with open_link(stores) as link:
        found = _the_one(ask(link), device)
        if not is_meant(found):
            return None
        revoke(link, found.id)
        if found.is_current and stores.config.token is None:
            _credentials(stores).forget(link.server)
    return found


def _the_one(devices: list[DeviceShown], named: str) -> DeviceShown:
    found = [device for device in devices if device.name == named]
    if not found and len(named) < _LEAST_OF_AN_ID:
        raise InvalidInput(
            f"{named!r} is no device's name, and too short for the start of an id",
            f"`raddle devices` lists them; {_LEAST_OF_AN_ID} characters of an id will do",
        )
    found = found or [device for device in devices if device.id.startswith(named.lower())]
    if not found:
        raise NotFound("device", named, "`raddle devices` lists them")
    if len(found) > 1:
        raise Ambiguous("device", named, [device.id for device in found])
    return found[0]


def _keep(stores: Stores, server: str, token: str, *, is_insecure: bool) -> Signed:
    from raddle.adapters.remote.sign_in import log_out, who_am_i  # noqa: PLC0415  heavy: httpx

    with _link(server, token, is_insecure=is_insecure) as link:
        me = who_am_i(link)
    kept = _credentials(stores)
    former = None
    with contextlib.suppress(NotSignedIn):  # the keyring has lost it: then nobody can end it from here
        former = kept.login(server)
    in_keyring = kept.keep(server, token, is_insecure=is_insecure)
    if former is not None and former.token != token:
        # One device, one token. Where the server does not hear it, `raddle devices` still shows the former one.
        with contextlib.suppress(RaddleError), _link(server, former.token, is_insecure=is_insecure) as link:
            log_out(link)
    return Signed(server, me, in_keyring)


def _link(server: str, token: str, *, is_insecure: bool, is_hurried: bool = False) -> HttpLink:
    from raddle.adapters.remote.http_link import HURRIED, PATIENT, HttpLink  # noqa: PLC0415  heavy: httpx

    patience = HURRIED if is_hurried else PATIENT
    return HttpLink(server, token, is_insecure=is_insecure, patience=patience)


def _credentials(stores: Stores) -> Credentials:
    from raddle.adapters.credentials import Credentials  # noqa: PLC0415  most commands ask no server

    return Credentials(stores.paths.credentials_file, stores.paths.credentials_locks_dir)


def _parsed(server: str) -> str:
    from raddle.adapters.remote.addresses import parse_server  # noqa: PLC0415  most commands ask no server

    return parse_server(server)


def _expect_online(stores: Stores) -> None:
    if stores.config.is_offline:
        raise UserError("RADDLE_OFFLINE says that the network is not to be asked", "unset it, then try again")


def device_name() -> str:
    """What the person will know this device by."""
    return os.uname().nodename.partition(".")[0][:_LONGEST_NAME] or "a device"
