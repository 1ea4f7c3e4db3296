"""The published peer of the project memory, from the package index, in a venv of its own.

It is installed once, pinned, into a folder that outlives the tests: the one that PYTEST_PEER_FOLDER names, else one
in pytest's cache. A test that wants it is skipped where it cannot be had.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.seal import REAL_HOMES

PINNED = "redthread==0.14.0"
_INSTALL_SECONDS = 240


def peer_python(pytestconfig: pytest.Config) -> Path:
    """The Python that has the peer; the test is skipped where there can be none."""
    named = os.environ.get("PYTEST_PEER_FOLDER")
    assert pytestconfig.cache is not None
    folder = Path(named) if named else Path(pytestconfig.cache.mkdir("peer-program"))
    python = folder / "bin" / "python"
    if not python.exists() or subprocess.run([python, "-c", "import redthread"], check=False).returncode:
        _install(folder, python)
    return python


def _install(folder: Path, python: Path) -> None:
    by_hand = f"python3 -m venv FOLDER, FOLDER/bin/pip install {PINNED}, then PYTEST_PEER_FOLDER=FOLDER"
    environment = {**os.environ, "HOME": REAL_HOMES[0]}  # how pip reaches an index is said there
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--retries", "1", "--timeout", "20"]
    commands = [[sys.executable, "-m", "venv", "--clear", str(folder)], [*pip, PINNED]]
    for command in commands:
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_INSTALL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"the peer was not installed in {_INSTALL_SECONDS} s; by hand: {by_hand}")
        if done.returncode:
            why = [line for line in done.stderr.splitlines() if line.strip()]
            pytest.skip(f"the peer cannot be installed ({why[-1:]}); by hand: {by_hand}")
