"""Programs from npm that tests run: installed once, pinned, into a folder that outlives the tests.

A test that wants them is skipped where there is no npm, or nothing to install from, and says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.seal import REAL_HOMES

_INSTALL_SECONDS = 240


def npm_programs(pytestconfig: pytest.Config, pinned: Sequence[str], *, variable: str, what: str) -> Path:
    """The folder of the programs of those packages (`NAME@VERSION`): below the folder that `variable` names, else one
    in pytest's cache. `what`: what they are, for who reads why the test was skipped."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip(f"{what} come from npm, which is not on the PATH")
    named = os.environ.get(variable)
    assert pytestconfig.cache is not None
    cached = variable.removeprefix("PYTEST_").lower().replace("_", "-")
    folder = Path(named) if named else Path(pytestconfig.cache.mkdir(cached))
    folder.mkdir(parents=True, exist_ok=True)
    if not all(_is_there(folder, one) for one in pinned):
        _install(folder, pinned, variable, what)
    return folder / "node_modules" / ".bin"


def _install(folder: Path, pinned: Sequence[str], variable: str, what: str) -> None:
    by_hand = f"npm install --prefix FOLDER {' '.join(pinned)}, then {variable}=FOLDER"
    patience = ("--fetch-retries=1", "--fetch-timeout=20000")
    try:
        done = subprocess.run(
            ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", *patience, *pinned],
            env={**os.environ, "HOME": REAL_HOMES[0]},  # how npm reaches a registry is said there
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install {what} in {_INSTALL_SECONDS} s; by hand: {by_hand}")
    if done.returncode:
        why = [line for line in done.stderr.splitlines() if line.strip()]
        pytest.skip(f"npm cannot install {what} ({why[:1]}); by hand: {by_hand}")


def _is_there(folder: Path, pinned: str) -> bool:
    name, _, version = pinned.rpartition("@")
    try:
        package = json.loads((folder / "node_modules" / name / "package.json").read_text())
    except (OSError, ValueError):
        return False
    return bool(package.get("version") == version)
