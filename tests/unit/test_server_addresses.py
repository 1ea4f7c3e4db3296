"""One spelling of each server's address, and which servers may be spoken to in the clear."""

from __future__ import annotations

import pytest

from raddle.adapters.hosts import host_of, is_safe
from raddle.adapters.remote.addresses import parse_server
from raddle.adapters.remote.http_link import HttpLink
from raddle.model.errors import InvalidInput, UserError


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("https://raddle.example.org", "https://raddle.example.org"),
        (" https://Raddle.Example.org:443/ ", "https://raddle.example.org"),
        ("HTTPS://raddle.example.org/team//", "https://raddle.example.org/team"),
        ("raddle.example.org", "https://raddle.example.org"),
        ("raddle.example.org:8443", "https://raddle.example.org:8443"),
        ("http://raddle.example.org:80", "http://raddle.example.org"),
        ("localhost:8283", "http://localhost:8283"),
        ("127.0.0.1", "http://127.0.0.1"),
        ("[::1]:8283", "http://[::1]:8283"),
        ("https://[2001:DB8::1]/", "https://[2001:db8::1]"),
    ],
)
def test_an_address_has_one_spelling(given: str, address: str) -> None:
    assert parse_server(given) == address
    assert parse_server(address) == address


@pytest.mark.parametrize(
    "given",
    [
        "",
        " ",
        "https://",
        "ftp://raddle.example.org",
        "file:///etc/passwd",
        "https://ada:hunter2@raddle.example.org",
        "https://raddle.example.org?x=1",
        "https://raddle.example.org#x",
        "https://raddle.example.org:99999",
        "https://raddle.example.org:x",
        "https://[::1",
        "https://raddle example.org",
        "https://raddle.example.org\\@evil.example",
        "https://a\0b",
        "x" * 1_000,
    ],
)
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_server(given)
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    "server", ["https://example.org", "http://127.0.0.9:1", "http://[::1]", "http://localhost"]
)
def test_https_and_this_machine_are_safe(server: str) -> None:
    assert is_safe(server)
    HttpLink(server).close()


@pytest.mark.parametrize(
    "server", ["http://example.org", "http://10.0.0.1", "http://localhost.example.org", "http://0.0.0.0"]
)
def test_plain_http_to_another_machine_has_to_be_asked_for(server: str) -> None:
    assert not is_safe(server)
    with pytest.raises(UserError) as caught:
        HttpLink(server, "rdl_token")
    assert "--insecure" in caught.value.hint
    HttpLink(server, "rdl_token", is_insecure=True).close()


def test_a_person_calls_a_server_by_its_host() -> None:
    assert host_of("https://raddle.example.org:8443/team") == "raddle.example.org:8443"


@pytest.mark.parametrize("token", ["a b", "a\r\nX-Evil: 1", "é", "x" * 2_000])
def test_a_token_that_cannot_be_one_is_not_sent(token: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        HttpLink("https://example.org", token)
    assert token not in caught.value.message
