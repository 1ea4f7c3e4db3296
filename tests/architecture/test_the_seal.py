"""The seal of tests/seal.py, tried from inside: a seal nobody tries is a wish."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from tests import seal

SECRET_PLACES = (
    ".claude/projects",
    ".codex",
    ".gemini",
    ".local/share/raddle/threads",
    ".config/raddle",
    ".ssh/config",
)


def real_home() -> Path:
    """The person's home as the password file has it."""
    return Path(seal.REAL_HOMES[0])


def test_home_is_an_empty_folder_of_the_tests_own(home: Path) -> None:
    assert Path.home() == home
    assert list(home.iterdir()) == []
    (home / "left-behind").write_text("the next test must not see this")


def test_the_next_test_has_another_home(home: Path) -> None:
    assert list(home.iterdir()) == []


def test_every_users_folder_lies_in_that_home(home: Path) -> None:
    folders = (
        platformdirs.user_data_dir("raddle"),
        platformdirs.user_config_dir("raddle"),
        platformdirs.user_state_dir("raddle"),
        platformdirs.user_cache_dir("raddle"),
        platformdirs.user_runtime_dir("raddle"),
    )
    assert [folder for folder in folders if home not in Path(folder).parents] == []


def test_no_setting_of_the_person_is_left(home: Path) -> None:
    ours = seal.sealed_environment(home).keys() | seal.KEPT_NAMES
    left = [name for name in os.environ if name not in ours and not name.startswith(seal.KEPT_PREFIXES)]
    assert left == []


def test_a_program_that_a_test_starts_sees_the_same_home(home: Path) -> None:
    code = (
        "import os, pathlib; print(pathlib.Path.home(), [n for n in os.environ if n.startswith('RADDLE_')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{home} []\n"


def test_git_knows_nothing_of_the_person(tmp_path: Path) -> None:
    done = subprocess.run(
        ["git", "config", "--list"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == ""


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_network_socket_is_refused(family: socket.AddressFamily) -> None:
    with pytest.raises(seal.SealBroken):
        socket.socket(family)


def test_a_name_lookup_is_refused() -> None:
    with pytest.raises(seal.SealBroken):
        socket.getaddrinfo("localhost", 80)


def test_a_request_is_refused_and_not_taken_for_being_offline() -> None:
    with pytest.raises(seal.SealBroken):
        urllib.request.urlopen("http://127.0.0.1:9/")


def test_unix_sockets_and_event_loops_work(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "s"))
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"x")
        assert right.recv(1) == b"x"
    asyncio.run(asyncio.sleep(0))


@pytest.mark.parametrize("place", SECRET_PLACES)
@pytest.mark.parametrize(
    "reach",
    [
        lambda path: path.read_bytes(),
        lambda path: path.write_text("x"),
        lambda path: path.mkdir(parents=True),
        os.listdir,
        lambda path: os.open(path, os.O_CREAT | os.O_WRONLY),
        lambda path: path.rename("elsewhere"),
        lambda path: Path("elsewhere").replace(path),
        lambda path: path.unlink(),
        sqlite3.connect,
        lambda path: sqlite3.connect(f"file:{path}?mode=ro", uri=True),
    ],
    ids=[
        "read",
        "write",
        "mkdir",
        "list",
        "create",
        "move away",
        "move in",
        "remove",
        "database",
        "database by URI",
    ],
)
def test_the_persons_own_folders_cannot_be_reached(
    place: str, reach: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(seal.SealBroken):
        reach(real_home() / place)


def test_a_relative_way_round_is_seen_through(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(seal.SealBroken):
        Path(os.path.relpath(real_home() / ".claude.json")).read_text()


def test_the_interpreter_and_the_checkout_stay_open() -> None:
    assert not seal.is_sealed_off(sys.executable)
    assert not seal.is_sealed_off(pytest.__file__)
    assert not seal.is_sealed_off(seal.CHECKOUT / ".git")
