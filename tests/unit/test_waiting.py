"""What is said of a wait: nothing of a short one, one line of a long one."""

from __future__ import annotations

import threading

import pytest

from raddle.apps.cli import diagnostics


def test_a_long_wait_is_told_once_and_a_short_one_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    told = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        told.set()

    monkeypatch.setattr(diagnostics, "say", say)
    with diagnostics.waiting("nobody"):
        pass
    monkeypatch.setattr(diagnostics, "_WONDERED_AFTER_SECONDS", 0.01)
    with diagnostics.waiting("https://hub.example"):
        assert told.wait(30)
    assert said == ["waiting for https://hub.example …"]
