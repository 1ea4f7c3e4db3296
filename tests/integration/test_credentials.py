"""Tokens are kept where they are safest, found again, and forgotten whole."""

from __future__ import annotations

import functools
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.backends.fail
import keyring.errors
import pytest

from raddle.adapters.credentials import ApiKeys, Credentials, Keyring, system_keyring
from raddle.model.errors import BrokenFormat, NewerFormat, NotSignedIn, StorageError

SERVER, OTHER = "https://raddle.example.org", "https://other.example.org"


class MemoryKeyring:
    """A keyring; `is_locked`: it refuses everything."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._expect_open()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._expect_open()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._expect_open()
        if self.kept.pop((service, username), None) is None:
            raise keyring.errors.PasswordDeleteError("not found")

    def _expect_open(self) -> None:
        if self.is_locked:
            raise keyring.errors.KeyringLocked("locked")


def kept_in(folder: Path, ring: Keyring | None = None) -> Credentials:
    """What another process of the same device sees."""
    return Credentials(folder / "state/servers.json", folder / "state/locks", find_keyring=lambda: ring)


def text_of(folder: Path) -> str:
    return (folder / "state/servers.json").read_text()


def token_of(credentials: Credentials, server: str = SERVER) -> str | None:
    login = credentials.login(server)
    return None if login is None else login.token


def test_without_a_keyring_a_token_is_in_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    assert not kept_in(tmp_path).keep(SERVER, "rdl_1")
    assert token_of(kept_in(tmp_path)) == "rdl_1"
    file = tmp_path / "state/servers.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_with_a_keyring_no_file_holds_the_token(tmp_path: Path) -> None:
    ring = MemoryKeyring()
    assert kept_in(tmp_path, ring).keep(SERVER, "rdl_1")
    assert token_of(kept_in(tmp_path, ring)) == "rdl_1"
    assert "rdl_1" not in text_of(tmp_path)
    assert list(ring.kept.values()) == ["rdl_1"]


def test_a_keyring_that_refuses_is_gone_round(tmp_path: Path) -> None:
    ring = MemoryKeyring()
    ring.is_locked = True
    assert not kept_in(tmp_path, ring).keep(SERVER, "rdl_1")
    assert token_of(kept_in(tmp_path, ring)) == "rdl_1"


def test_a_token_that_the_keyring_does_not_give_is_said_to_be_locked_up(tmp_path: Path) -> None:
    ring = MemoryKeyring()
    kept_in(tmp_path, ring).keep(SERVER, "rdl_1")
    ring.is_locked = True
    for now in (ring, None):
        with pytest.raises(NotSignedIn):
            kept_in(tmp_path, now).login(SERVER)


def test_each_server_has_its_own_token_and_the_last_one_counts(tmp_path: Path) -> None:
    assert kept_in(tmp_path).last_server() is None
    for server, token in ((SERVER, "rdl_1"), (OTHER, "rdl_2"), (SERVER, "rdl_3")):
        kept_in(tmp_path).keep(server, token)
        assert kept_in(tmp_path).last_server() == server
    assert (token_of(kept_in(tmp_path)), token_of(kept_in(tmp_path), OTHER)) == ("rdl_3", "rdl_2")
    assert token_of(kept_in(tmp_path), "https://third.example.org") is None


@pytest.mark.parametrize("has_keyring", [False, True])
def test_what_is_forgotten_is_nowhere_and_the_server_stays_known(tmp_path: Path, has_keyring: bool) -> None:
    ring = MemoryKeyring() if has_keyring else None
    for _ in range(2):
        kept_in(tmp_path, ring).keep(SERVER, "rdl_1")
        kept_in(tmp_path, ring).keep(OTHER, "rdl_2")
        kept_in(tmp_path, ring).forget(OTHER)
    kept_in(tmp_path, ring).forget(OTHER)
    assert token_of(kept_in(tmp_path, ring), OTHER) is None
    assert token_of(kept_in(tmp_path, ring)) == "rdl_1"
    assert kept_in(tmp_path, ring).last_server() == OTHER
    assert "rdl_2" not in text_of(tmp_path)
    assert ring is None or list(ring.kept.values()) == ["rdl_1"]


def test_a_token_from_the_time_before_the_keyring_leaves_the_file(tmp_path: Path) -> None:
    kept_in(tmp_path).keep(SERVER, "rdl_1")
    ring = MemoryKeyring()
    kept_in(tmp_path, ring).keep(SERVER, "rdl_2")
    assert "rdl_" not in text_of(tmp_path)


def test_that_a_way_need_not_be_encrypted_is_kept_with_the_token(tmp_path: Path) -> None:
    kept_in(tmp_path).keep(SERVER, "rdl_1", is_insecure=True)
    assert kept_in(tmp_path).is_insecure(SERVER)
    assert not kept_in(tmp_path).is_insecure(OTHER)
    kept_in(tmp_path).keep(SERVER, "rdl_2")
    assert not kept_in(tmp_path).is_insecure(SERVER)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"servers": {"x": "rdl_secret"}}', b"\xff"])
def test_a_file_that_cannot_be_read_is_named_without_its_words(tmp_path: Path, data: bytes) -> None:
    kept_in(tmp_path).keep(SERVER, "rdl_1")
    (tmp_path / "state/servers.json").write_bytes(data)
    with pytest.raises(BrokenFormat) as caught:
        kept_in(tmp_path).login(SERVER)
    assert "servers.json" in caught.value.message
    assert "rdl_secret" not in f"{caught.value.message} {caught.value.__cause__}"


def test_a_file_of_a_newer_raddle_is_left_as_it_is(tmp_path: Path) -> None:
    kept_in(tmp_path).keep(SERVER, "rdl_1")
    (tmp_path / "state/servers.json").write_text('{"schema_version": 2}')
    with pytest.raises(NewerFormat):
        kept_in(tmp_path).keep(SERVER, "rdl_2")
    assert text_of(tmp_path) == '{"schema_version": 2}'


class _Backend(keyring.backend.KeyringBackend):
    """A backend of the real package, as an operating system has one."""

    priority: float = 5

    @functools.cached_property
    def inner(self) -> MemoryKeyring:
        return MemoryKeyring()

    def get_password(self, service: str, username: str) -> str | None:
        return self.inner.get_password(service, username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self.inner.set_password(service, username, password)

    def delete_password(self, service: str, username: str) -> None:
        self.inner.delete_password(service, username)


class _InTheClear(_Backend):
    priority = 0.5


@pytest.fixture
def systems_keyring() -> Iterator[None]:
    """What keyring found before this test, put back after it."""
    before = keyring.get_keyring()
    yield
    keyring.set_keyring(before)


def test_a_real_keyring_is_used(tmp_path: Path, systems_keyring: None) -> None:
    make: type[Any] = _Backend  # its maker in the package has no types
    backend = make()
    keyring.set_keyring(backend)
    credentials = Credentials(tmp_path / "servers.json", tmp_path / "locks")
    assert credentials.keep(SERVER, "rdl_1")
    assert backend.inner.kept == {("raddle", SERVER): "rdl_1"}
    credentials.forget(SERVER)
    assert backend.inner.kept == {}


@pytest.mark.parametrize("backend", [_InTheClear, keyring.backends.fail.Keyring])
def test_a_keyring_that_keeps_nothing_or_in_the_clear_is_none(
    systems_keyring: None, backend: type[keyring.backend.KeyringBackend]
) -> None:
    keyring.set_keyring(backend())
    assert system_keyring() is None


def test_the_key_of_who_answers_is_in_the_keyring_until_it_is_forgotten() -> None:
    kept = MemoryKeyring()
    keys = ApiKeys(find_keyring=lambda: kept)
    assert keys.find("far") is None
    assert not keys.forget("far")
    keys.keep("far", "sk-1")
    keys.keep("near", "sk-2")
    assert (keys.find("far"), keys.find("near")) == ("sk-1", "sk-2")
    assert keys.forget("far")
    assert (keys.find("far"), keys.find("near")) == (None, "sk-2")


def test_a_key_is_never_kept_where_no_keyring_takes_it() -> None:
    locked = MemoryKeyring()
    locked.is_locked = True
    for find in (lambda: None, lambda: locked):
        keys = ApiKeys(find_keyring=find)
        assert keys.find("far") is None
        with pytest.raises(StorageError) as told:
            keys.keep("far", "sk-very-secret")
        assert "very-secret" not in f"{told.value.message} {told.value.hint}"
