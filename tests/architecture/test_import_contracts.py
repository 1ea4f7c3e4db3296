"""The contracts of pyproject.toml, run with the tests: who may import whom."""

from __future__ import annotations

import pytest
from importlinter.cli import lint_imports

from tests.seal import CHECKOUT


def test_every_import_contract_is_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.syspath_prepend(str(CHECKOUT / "src"))
    status = lint_imports(config_filename="pyproject.toml", no_cache=True, no_logo=True)
    assert status == 0, capsys.readouterr().out
