"""What a command must not pay for, seen in a fresh interpreter.

The import contracts read the source; only a run shows what a deferred import still loads.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = frozenset(
    {
        "asyncio",
        "concurrent.futures",
        "http.client",
        "httpx",
        "keyring",
        "litestar",
        "mcp",
        "multiprocessing",
        "pptx",
        "psycopg",
        "rich",
        "sqlite3",
        "ssl",
        "textual",
        "urllib.request",
        "zstandard",
    }
)
"""Modules that cost more than a line of help is worth: 5 ms each at the least, mcp a second."""

RUN_AND_LIST = """
import sys
from raddle.apps.cli.main import run
sys.argv = ["raddle", *sys.argv[1:]]
try:
    run()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def modules_after(code: str, *args: str) -> set[str]:
    """The modules that a fresh interpreter holds once `code` has run and listed them on stderr."""
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_a_line_of_help_loads_nothing_heavy(flag: str) -> None:
    assert modules_after(RUN_AND_LIST, flag) & HEAVY == set()


def test_help_of_one_command_does_not_load_the_others() -> None:
    loaded = modules_after(RUN_AND_LIST, "list", "--help")
    assert loaded & HEAVY == set()


@pytest.mark.parametrize(
    "words", [("list",), ("search", "word"), ("login", "--help"), ("whoami", "--help"), ("devices", "--help")]
)
def test_a_command_that_asks_no_server_loads_nothing_that_could(words: tuple[str, ...]) -> None:
    assert (
        modules_after(RUN_AND_LIST, *words) & {"http.client", "httpx", "keyring", "litestar", "ssl"} == set()
    )


def test_import_raddle_loads_no_room() -> None:
    code = "import raddle, sys; print(*sorted(sys.modules), file=sys.stderr)"
    loaded = modules_after(code)
    assert [name for name in loaded if name.startswith("raddle.")] == []
    assert loaded & HEAVY == set()
