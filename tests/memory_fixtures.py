"""Two clones in step with one hub, as tests of what happens between them begin: import the fixtures by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memory_clones import Clone, make_hub


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A bare repository that clones meet at."""
    return make_hub(tmp_path / "hub.git")


@pytest.fixture
def ada(tmp_path: Path, hub: Path) -> Clone:
    """A clone with a project in it that the hub has too."""
    clone = Clone(tmp_path / "ada", hub)
    clone.begin()
    assert clone.sync().state == "in_step"
    return clone


@pytest.fixture
def bob(tmp_path: Path, hub: Path, ada: Clone) -> Clone:
    """Another one, in step."""
    clone = Clone(tmp_path / "bob", hub)
    assert clone.sync().state == "in_step"
    return clone
