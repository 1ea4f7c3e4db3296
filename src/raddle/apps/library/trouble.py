"""An error of ours beside one of the program's: the program's own goes first.

Owns that rule for everything that is left by an exception: an agent's `except ToolFailed` must not miss what
it waits for because the disk was full at the same moment.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from raddle.model.errors import RaddleError

logger = logging.getLogger("raddle")


@contextlib.contextmanager
def beside(error: BaseException | None) -> Iterator[None]:
    """Let an error of ours out of the block; where the program's `error` is on its way, note it there instead."""
    try:
        yield
    except RaddleError as trouble:
        if error is None:
            raise
        logger.warning("not saved: %s", trouble.message)
        error.add_note(f"raddle could not save this: {trouble.message}")
