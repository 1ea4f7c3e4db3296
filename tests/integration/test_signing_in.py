"""A device signs in to a real server and out again, and what becomes of a sign-in that goes another way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from psycopg import Connection

from raddle.adapters.remote.http_link import HttpLink
from raddle.adapters.remote.sign_in import (
    ask_to_be_let_in,
    list_devices,
    log_out,
    revoke_device,
    wait_for_token,
    who_am_i,
)
from raddle.model.errors import Forbidden, NetworkError, NotFound, NotSignedIn, RaddleError, UserError
from raddle.model.protocol.signing_in import DeviceAuthorization
from raddle.server.accounts import device_flow
from tests.builders_served import Served, serving
from tests.builders_server import a_person, connected, prepare
from tests.fakes.hostile_server import Says, answer, hostile
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

BEGUN: dict[str, Any] = {
    "device_code": "the-secret-half",
    "user_code": "BCDF-GHJK",
    "verification_uri": "https://raddle.example.org/device",
    "verification_uri_complete": "https://raddle.example.org/device?user_code=BCDF-GHJK",
    "expires_in": 600,
    "interval": 5,
}
TOKEN = {"access_token": "rdl_t", "scope": "threads", "device_id": "d", "device_name": "laptop"}


@pytest.fixture
def connection(new_database: NewDatabase) -> Iterator[Connection]:
    with connected(new_database(prepare)) as connection:
        yield connection


@pytest.fixture
def served(connection: Connection, tmp_path: Path) -> Iterator[Served]:
    with serving(connection.info.dsn, tmp_path / "blobs") as server:
        yield server


def let_in(served: Served, connection: Connection, name: str) -> HttpLink:
    """A link by the token of a device that somebody new let in, as it asked for the first time."""
    person = a_person(connection, name)
    with served.link() as link:
        begun = ask_to_be_let_in(link, f"{name}'s laptop")

        def approve(_: float) -> None:
            device_flow.approve(connection, begun.user_code, person.user)

        return served.link(wait_for_token(link, begun, wait=approve).access_token)


def test_a_device_that_was_let_in_is_known_until_it_signs_out(served: Served, connection: Connection) -> None:
    with let_in(served, connection, "ada") as link:
        me = who_am_i(link)
        assert (me.name, me.device_name, me.scopes) == ("ada", "ada's laptop", ("threads",))
        assert [(device.name, device.is_current) for device in list_devices(link)] == [("ada's laptop", True)]
        log_out(link)
        with pytest.raises(NotSignedIn):
            who_am_i(link)
        log_out(link)


def test_one_device_lets_another_in_no_more(served: Served, connection: Connection) -> None:
    with let_in(served, connection, "ada") as link, let_in(served, connection, "bob") as theirs:
        mine, other = list_devices(link)[0], list_devices(theirs)[0]
        for unknown in (other.id, "no-id", "../me", ""):
            with pytest.raises(RaddleError) as caught:
                revoke_device(link, unknown)
            assert isinstance(caught.value, NotFound | NetworkError)
        revoke_device(link, mine.id)
        with pytest.raises(NotSignedIn):
            list_devices(link)
        assert who_am_i(theirs).name == "bob"


def test_a_device_that_is_denied_is_told(served: Served, connection: Connection) -> None:
    with served.link() as link:
        begun = ask_to_be_let_in(link, "laptop")
        with pytest.raises(Forbidden):
            wait_for_token(link, begun, wait=lambda _: device_flow.deny(connection, begun.user_code))


def test_a_name_that_the_server_does_not_take_is_said(served: Served) -> None:
    with served.link() as link, pytest.raises(UserError):
        ask_to_be_let_in(link, "\u202e")


def refusal(error: str, **members: Any) -> Says:
    """What the server says instead of a token."""
    return answer(json.dumps({"error": error, **members}).encode(), "400 Bad Request")


def waits(*answers: Says) -> tuple[list[float], RaddleError | str]:
    """(How long was waited before each question, the token or the error) with a server that answers so."""
    waited: list[float] = []
    with hostile(*answers) as server, server.link() as link:
        try:
            found = wait_for_token(link, msgspec.convert(BEGUN, DeviceAuthorization), wait=waited.append)
        except RaddleError as error:
            return waited, error
    return waited, found.access_token


GIVEN = answer(json.dumps(TOKEN).encode())


def test_it_asks_as_often_as_it_may_and_slower_when_told() -> None:
    pending, slower = refusal("authorization_pending", interval=5), refusal("slow_down")
    assert waits(pending, pending, slower, pending, GIVEN) == ([5, 5, 5, 10, 10], "rdl_t")
    assert waits(refusal("slow_down", interval=40), GIVEN) == ([5, 40], "rdl_t")
    assert waits(refusal("slow_down", interval=10**9), GIVEN) == ([5, 60], "rdl_t")


def test_a_network_that_fails_now_and_then_is_lived_through() -> None:
    pending, away = refusal("authorization_pending"), answer(b"", "503 Away")
    waited, token = waits(away, away, pending, away, GIVEN)
    assert (waited, token) == ([5, 10, 20, 20, 40], "rdl_t")
    busy = answer(b"{}", "429 Busy", Retry_After="20")
    assert waits(busy, GIVEN) == ([5, 20], "rdl_t")


def test_a_server_that_stays_away_ends_it() -> None:
    waited, error = waits(answer(b'{"detail": "it is away"}', "503 Away"))
    assert isinstance(error, NetworkError)
    assert len(waited) == 5


def test_a_code_that_nobody_typed_runs_out() -> None:
    waited, error = waits(refusal("authorization_pending"))
    assert isinstance(error, UserError)
    assert sum(waited) == BEGUN["expires_in"]
    assert isinstance(waits(refusal("expired_token"))[1], UserError)


@pytest.mark.parametrize("error", ["invalid_grant", "invalid_client", "\x1b[2J", "", "x" * 10_000])
def test_any_other_refusal_ends_it(error: str) -> None:
    waited, found = waits(refusal(error))
    assert isinstance(found, UserError | NetworkError) or len(waited) == 5


@pytest.mark.parametrize("member", [{"access_token": ""}, {"access_token": 5}, {"token_type": "mac"}])
def test_a_token_that_is_none_is_not_taken(member: dict[str, Any]) -> None:
    assert isinstance(waits(answer(json.dumps({**TOKEN, **member}).encode()))[1], NetworkError)


@pytest.mark.parametrize(
    "member",
    [
        {"user_code": "\x1b[2J"},
        {"user_code": "two words"},
        {"user_code": ""},
        {"verification_uri": "javascript:alert(1)"},
        {"verification_uri": "https://x\n"},
        {"verification_uri_complete": "x" * 5_000},
        {"interval": "soon"},
        {"device_code": None},
    ],
)
def test_what_cannot_be_shown_to_a_person_is_not(member: dict[str, Any]) -> None:
    said = answer(json.dumps({**BEGUN, **member}).encode())
    with hostile(said) as server, server.link() as link, pytest.raises(NetworkError):
        ask_to_be_let_in(link, "laptop")
