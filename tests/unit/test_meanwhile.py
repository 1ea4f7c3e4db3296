"""Work beside us: its answer, or its error, where it is asked for."""

from __future__ import annotations

import threading

import pytest

from raddle.adapters.meanwhile import Meanwhile


def test_it_goes_on_while_we_do() -> None:
    begun, goes = threading.Event(), threading.Event()

    def work() -> int:
        begun.set()
        goes.wait(5)
        return 7

    meanwhile = Meanwhile(work)
    assert begun.wait(5)
    goes.set()
    assert meanwhile.result() == 7
    assert meanwhile.result() == 7


def test_its_error_is_raised_where_the_answer_is_asked_for() -> None:
    def work() -> int:
        raise ValueError("no")

    meanwhile = Meanwhile(work)
    with pytest.raises(ValueError, match="no"):
        meanwhile.result()
