"""The one door to file events: what changed below some folders, as it happens.

Events are hints, never the truth: some file systems lose them, a queue may overflow, a folder may be on another
machine. Whoever uses them looks at everything from time to time all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from raddle.adapters.file_systems import is_on_network
from raddle.model.errors import StorageError

GATHER_MS = 120
"""So long after the first event of a batch others are gathered: an agent writes a turn in several goes."""
_QUIET_MS = 40
"""A batch ends when this long nothing more came."""


class Stop(Protocol):
    """Asked often: is it over?"""

    def is_set(self) -> bool:
        """True from the moment it is."""


class NoFileEvents(StorageError):
    """Nobody tells what changes there: it has to be looked at."""

    code = "no_file_events"


def changes_below(folders: Sequence[Path], stop: Stop, *, wait_ms: int) -> Iterator[set[str]]:
    """The paths that were made, changed or removed, in batches; an empty set after each `wait_ms` of quiet.

    Ends when `stop` is set. NoFileEvents where the system has none to give; KeyboardInterrupt where a signal's
    handler raised something.
    """
    import watchfiles  # a command that watches nothing never needs it  # noqa: PLC0415

    for folder in folders:
        if is_on_network(folder):
            raise NoFileEvents(f"other machines may write below {folder}", "it is looked at instead")
    try:
        for batch in watchfiles.watch(
            *folders,
            watch_filter=None,
            debounce=GATHER_MS,
            step=_QUIET_MS,
            stop_event=stop,
            rust_timeout=wait_ms,
            yield_on_timeout=True,
            force_polling=False,
            ignore_permission_denied=True,
        ):
            yield {path for _, path in batch}
    except OSError as error:
        raise NoFileEvents(
            f"the system gives no file events: {error}", "the folders are looked at instead"
        ) from error
