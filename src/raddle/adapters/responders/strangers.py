"""The words of a stranger who answers: one short line of them is shown, and never a key.

Servers and programs repeat what they were given, keys too, and send what would draw on a terminal: whatever of theirs
is told to a person, is told through here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from raddle.model.clock import system_clock
from raddle.model.errors import BrokenFormat
from raddle.model.tolerant_json import decode_tolerantly

LONGEST_SHOWN = 200
_SECRETS = re.compile(r"(?i)\b(bearer)\s+[^\s\"',;<>]{6,}|\bsk-[\w.*-]{4,}")
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,6})?\Z", re.ASCII)


def told(text: Any, key: str = "", most: int = LONGEST_SHOWN) -> str:
    """A stranger's text as one line of at most `most` characters that draws nothing and holds no key."""
    if not isinstance(text, str):
        return ""
    # The key goes first, or a cut might leave half of it; and again, where something stood between its letters.
    text = scrubbed(text, key)[: 20 * most]
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    line = scrubbed(" ".join(line.split()), key)
    return line if len(line) <= most else line[: most - 1] + "…"


def scrubbed(text: str, key: str = "") -> str:
    """`text` without the key, and without whatever looks like one."""
    if key:
        text = text.replace(key, "***")
    return _SECRETS.sub(lambda found: f"{found[1]} ***" if found[1] else "***", text)


def said_in(plain: Any) -> str:
    """What an error's body says, whichever of the usual shapes it has; empty where it is none of them."""
    for _ in range(4):
        if isinstance(plain, list) and plain:
            plain = plain[0]
        if not isinstance(plain, dict):
            break
        plain = next((plain[name] for name in ("error", "message", "detail", "msg") if plain.get(name)), "")
    return plain if isinstance(plain, str) else ""


def code_in(plain: Any) -> str:
    """The code or type of the error in it; empty where there is none."""
    error = plain.get("error") if isinstance(plain, dict) else None
    code = (error.get("code") or error.get("type")) if isinstance(error, dict) else None
    return code if isinstance(code, str) else ""


def wait_of(headers: Mapping[str, str], now: Callable[[], int] = system_clock) -> float | None:
    """Seconds that `Retry-After` says, as a number or as a date; None where it says nothing that can be read."""
    text = headers.get("retry-after", "").strip()
    if _NUMBER.match(text):
        return float(text)
    at = _seconds(text)
    if at is None:
        return None
    # By the server's own clock where it tells it: ours may be wrong by hours.
    here = _seconds(headers.get("date", ""))
    return max(0.0, at - (now() / 1_000_000 if here is None else here))


def is_event_data(data: str) -> bool:
    """Is it something that an API of models sends as one event, and not half of it?"""
    if data.strip() == "[DONE]":
        return True
    with contextlib.suppress(BrokenFormat):
        decode_tolerantly(data.encode("utf-8", "replace"))
        return True
    return False


def _seconds(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() if len(date) < 100 else None
    except (ValueError, OverflowError, OSError):
        return None
