"""What every test gets without asking: the seal, a home of its own, and the Hypothesis profile."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests import seal

PROFILE = os.environ.get("RADDLE_HYPOTHESIS_PROFILE", "ci")

settings.register_profile("ci", max_examples=50, derandomize=True, deadline=None, print_blob=True)
settings.register_profile("soak", max_examples=5_000, deadline=None, print_blob=True)
settings.load_profile(PROFILE)

seal.seal_process()

_homes = itertools.count()


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty home folder, this test's own, and the sealed environment around it."""
    folder = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))
    folder.mkdir(parents=True, mode=0o700)
    for name, value in seal.sealed_environment(folder).items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def samples() -> Path:
    """The folder of real session files beside the checkout; the test is skipped on machines without it."""
    folder = seal.CHECKOUT.parent / "shared" / "samples"
    if not folder.is_dir():
        pytest.skip(f"no session files of real agents at {folder}")
    return folder
