"""What `raddle up` does about a server: one of this person's own in the background, this machine signed in to it.

Only the command line sees both the server's accounts and this machine's sign-in.
"""

from __future__ import annotations

import getpass
import importlib.util
from typing import NamedTuple

from raddle.config import Config
from raddle.model.clock import system_clock
from raddle.model.errors import ConflictError, InvalidInput, NotSignedIn, RaddleError, StorageError
from raddle.model.ids import MonotonicIds
from raddle.wiring import Stores

PORT = 7370
_PARTS = ("litestar", "uvicorn", "psycopg", "argon2")


class Up(NamedTuple):
    """The server that runs, and who owns it. `is_new`: was the account just made? `taken_port`: the one that it should
    have listened on, where another program has that; else 0."""

    address: str
    owner: str
    is_new: bool
    taken_port: int = 0


def has_server_parts() -> bool:
    """Is what the server needs installed?"""
    return all(importlib.util.find_spec(name) is not None for name in _PARTS)


def bring_up(stores: Stores, config: Config, *, port: int = PORT) -> Up:
    """Start the server where it does not run, make the owner's account where there is none, sign this machine in."""
    from raddle.wiring.own_server import last_port, start_own_server  # noqa: PLC0415

    wanted, taken = last_port(stores.paths) or port, 0
    try:
        running = start_own_server(config, stores.paths, port=wanted)
    except StorageError:
        if not wanted:
            raise
        running = start_own_server(config, stores.paths, port=0)  # somebody else has that port
        taken = wanted
    name = _signed_in(stores, running.address)
    if name:
        return Up(running.address, name, is_new=False, taken_port=taken)
    owner, token = _own(config)
    from raddle.wiring.remote import sign_in_with  # noqa: PLC0415

    signed = sign_in_with(stores, token, running.address)
    return Up(running.address, signed.me.name, is_new=owner, taken_port=taken)


def _signed_in(stores: Stores, address: str) -> str:
    """Who this machine is signed in as there; empty where it is not."""
    from raddle.wiring.remote import server_of, who_am_i  # noqa: PLC0415

    if server_of(stores, is_needed=False) != address:
        return ""
    try:
        return who_am_i(stores)[1].name
    except (NotSignedIn, RaddleError):
        return ""


def _own(config: Config) -> tuple[bool, str]:
    """(Whether the account is new, a token of it)."""
    from raddle.model.protocol.signing_in import THREADS  # noqa: PLC0415
    from raddle.server.accounts.devices import mint  # noqa: PLC0415
    from raddle.server.accounts.users import count_users, create_user, find_user  # noqa: PLC0415
    from raddle.server.serving import database_of  # noqa: PLC0415
    from raddle.server.tables.database import connect  # noqa: PLC0415
    from raddle.wiring.remote import device_name  # noqa: PLC0415

    new_id = MonotonicIds(system_clock)
    name = _person()
    with database_of(config) as url, connect(url) as connection:
        person, is_new = find_user(connection, name), False
        if person is None:
            try:
                is_admin = not count_users(connection)
                person = create_user(connection, name, None, new_id=new_id, is_admin=is_admin)
                is_new = True
            except ConflictError:  # another `up` was faster
                person = find_user(connection, name)
                if person is None:
                    raise
        return is_new, mint(connection, person, device_name(), [THREADS], new_id=new_id)


def _person() -> str:
    """The name of the account: that of who is signed in to this machine."""
    from raddle.server.accounts.names import parse_user_name  # noqa: PLC0415

    try:
        return parse_user_name(getpass.getuser())
    except (OSError, KeyError, InvalidInput):  # a user id without a name
        return "owner"
