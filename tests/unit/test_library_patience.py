"""Git that once did not answer in time is not asked again."""

from __future__ import annotations

import logging

import pytest

from raddle.apps.library.patience import Patience


def test_after_one_time_out_nobody_asks_again_and_it_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    patience = Patience(lambda: now[0])

    def asked(seconds: float) -> str:
        now[0] += seconds
        return "news"

    with caplog.at_level(logging.WARNING, "raddle"):
        assert patience.ask(lambda: asked(9), 10) == "news"
        assert patience.ask(lambda: asked(15), 10) == "news"
    assert patience.ask(lambda: asked(1), 10) is None
    assert now[0] == 24
    assert caplog.text.count("not asked again") == 1
