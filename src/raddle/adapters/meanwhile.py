"""Work that goes on beside us, mostly a program that is waited for: two of them at once take as long as one.

`concurrent.futures` does the same, and its import takes as long as a small sync.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Meanwhile(Generic[T]):
    """`work`, begun at once in a thread of its own, which nobody waits for when the process ends."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._answers: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._do, name="meanwhile", daemon=True)
        self._thread.start()

    def result(self) -> T:
        """What it answered, once it has; or what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answers[0]

    def _do(self) -> None:
        try:
            self._answers.append(self._work())
        except BaseException as error:  # noqa: BLE001  it is raised where the answer is asked for
            self._error = error
