"""The seal around every test: no ambient settings, no network, nothing of the person's own home.

It closes the process that runs the tests. A program that a test starts inherits the sealed environment,
so it too sees a home of the test's own, but its sockets are its own affair.
"""

from __future__ import annotations

import os
import pwd
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
REAL_HOMES = tuple(
    sorted(
        {os.path.realpath(home) for home in (pwd.getpwuid(os.getuid()).pw_dir, os.environ.get("HOME", "/"))}
    )
)
"""The person's home as the machine and as the environment name it, before anything was sealed."""

KEPT_NAMES = frozenset({"PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "NODE_EXTRA_CA_CERTS"})
KEPT_PREFIXES = ("PYTEST_", "PYTHON", "COV_", "COVERAGE_", "HYPOTHESIS_")
"""What a test process may inherit; every other variable goes, whatever program reads it."""

_PATH_EVENTS = frozenset(
    {
        "open",
        "os.chmod",
        "os.chown",
        "os.link",
        "os.listdir",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.scandir",
        "os.symlink",
        "os.truncate",
        "os.utime",
        "sqlite3.connect",
    }
)
_MOVES = frozenset({"os.link", "os.rename", "os.symlink"})
_NAME_LOOKUPS = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})


class SealBroken(Exception):
    """A test reached for the person's home or for the network."""


def seal_process() -> None:
    """Scrub the environment and refuse sockets and the real home, from now to the end of this process."""
    for name in list(os.environ):
        if name not in KEPT_NAMES and not name.startswith(KEPT_PREFIXES):
            del os.environ[name]
    os.environ.update(sealed_environment(Path(tempfile.gettempdir()) / "no-home-outside-a-test"))
    time.tzset()
    # An audit hook sees calls made from C too (sqlite3, ssl), and nobody can patch it away.
    sys.addaudithook(_refuse)


def sealed_environment(home: Path) -> Mapping[str, str]:
    """The variables that every test sees besides the kept ones, around its own `home`."""
    return {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        "TZ": "UTC",
    }


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    """Raise SealBroken at an audit event that leaves the seal; called by the interpreter."""
    if event in _PATH_EVENTS:
        for given in args[:2] if event in _MOVES else args[:1]:
            if isinstance(given, str | bytes | os.PathLike) and is_sealed_off(given):
                raise SealBroken(
                    f"{event}: {os.fsdecode(given)} is the person's own; use the test's home or tmp_path"
                )
    elif event == "socket.__new__":
        family = args[1]
        if family not in (socket.AF_UNIX, -1):
            raise SealBroken(f"a socket of family {family!r}: tests speak over AF_UNIX or not at all")
    elif event in _NAME_LOOKUPS:
        raise SealBroken(f"{event}{args!r}: tests look no name up")


def is_sealed_off(path: str | bytes | os.PathLike[Any]) -> bool:
    """Does `path` lie in a dot-folder (or Library) of a real home, and in nothing the tests run from?"""
    # Called at every open: pathlib would cost ten times as much.
    whole = os.path.abspath(os.fsdecode(path).removeprefix("file:"))  # noqa: PTH100
    for home in REAL_HOMES:
        inner = whole.removeprefix(home.rstrip("/") + "/")
        if inner != whole and (inner.startswith(".") or inner.split("/", 1)[0] == "Library"):
            return not any(whole == root or whole.startswith(root + "/") for root in _open_roots())
    return False


def _open_roots() -> Iterable[str]:
    """What stays open wherever it lies: the checkout, the interpreter, its packages, the temp folder."""
    yield from (str(CHECKOUT), sys.prefix, sys.base_prefix, tempfile.gettempdir())
    yield from (entry for entry in sys.path if entry)
