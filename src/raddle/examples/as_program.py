"""An example run by hand: what is wrong and what to do, and no traceback."""

from __future__ import annotations

from collections.abc import Callable

from raddle.model.errors import RaddleError


def run(work: Callable[[], object]) -> None:
    """Do the work of a phase. Exit code 1 where it cannot be done."""
    try:
        work()
    except RaddleError as error:
        raise SystemExit(f"error: {error.message}\n{error.hint}") from error
