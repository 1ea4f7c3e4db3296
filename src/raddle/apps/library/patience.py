"""How often somebody who once did not answer in time is asked again: never.

Owns that rule for git. A repository on a disk that hangs would else cost an agent its time-out after every tool.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

logger = logging.getLogger("raddle")

Answer = TypeVar("Answer")


class Patience:
    """That of one session; it warns once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.is_lost = False

    def ask(self, question: Callable[[], Answer], timeout_seconds: float) -> Answer | None:
        """The answer; None, unasked, where an earlier one took `timeout_seconds` or more."""
        if self.is_lost:
            return None
        begun = self._clock()
        answer = question()
        if self._clock() - begun >= timeout_seconds:
            self.is_lost = True
            logger.warning(
                "git did not answer in %.0f s: it is not asked again in this session", timeout_seconds
            )
        return answer
