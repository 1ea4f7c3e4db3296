"""What every test gets without asking: the seal, a home of its own, and the Hypothesis profile.

Also what makes a run of thousands of tests cheap: what was compiled is kept, and what was collected is not looked
through again for garbage.
"""

from __future__ import annotations

import gc
import itertools
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests import seal

PROFILE = os.environ.get("RADDLE_HYPOTHESIS_PROFILE", "ci")

settings.register_profile("ci", max_examples=50, derandomize=True, deadline=None, print_blob=True)
settings.register_profile("soak", max_examples=5_000, deadline=None, print_blob=True)
settings.load_profile(PROFILE)

seal.seal_process()

# A shell starts what runs in its background deaf to Ctrl-C, and so would be every program that a test presses it at.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Collecting makes hundreds of thousands of objects that all stay: see `pytest_collection_finish`.
gc.disable()

# Containers like to set it. Each worker, and each raddle that a test starts, would compile everything anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_homes = itertools.count()


def pytest_collection_finish() -> None:
    """From now on garbage is looked for, but not among what will be there to the end."""
    gc.freeze()
    gc.enable()


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
