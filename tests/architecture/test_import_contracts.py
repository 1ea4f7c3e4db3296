"""The contracts of pyproject.toml, run with the tests: who may import whom."""

from __future__ import annotations

import subprocess
import sys

from tests.seal import CHECKOUT

LINT = (
    "import sys; sys.path.insert(0, 'src'); from importlinter.cli import lint_imports;"
    " sys.exit(lint_imports(config_filename='pyproject.toml', no_cache=True, no_logo=True))"
)


def test_every_import_contract_is_kept() -> None:
    # In a process of its own: it switches off every logger that is there.
    found = subprocess.run(
        [sys.executable, "-c", LINT], check=False, cwd=CHECKOUT, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout
