"""The time of a record as a message has it.

Owns the spelling: importers that wrote one time in two ways would write one message in two forms.
"""

from __future__ import annotations

from raddle.model.clock import format_time


def as_ts(text: str, at: int) -> str:
    """`at` (microseconds), which the source spells `text`, as a message's `ts`.

    `2026-01-15T23:23:50.402Z`, as nearly all are, is that already, but for three digits.
    """
    if len(text) == 24 and text[10] == "T" and text[19] == "." and text[17:19] < "60" and text[23] == "Z":
        return f"{text[:23]}000Z"
    return format_time(at)
