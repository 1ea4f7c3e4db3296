"""What a push has to be before anything of it is written: sizes and numbers that the tables can hold.

A value that the database would refuse has to be named here, or it comes back as a 500.
"""

from __future__ import annotations

from raddle.model.errors import InvalidInput
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message

_MOST_VERSION = 1 << 53
"""What every JSON reader can still count."""
_MOST_ORDER = (1 << 63) - 1
_LONGEST_ID = 1_000
_LONGEST_PATH = 2_000
"""UTF-8 bytes: an entry of an index in PostgreSQL holds some 2,700."""


def check_delta(delta: Delta) -> None:
    """InvalidInput, naming the field, for what cannot be stored."""
    for name, number in (("base_version", delta.base_version), ("version", delta.version)):
        if number > _MOST_VERSION:
            raise InvalidInput(f"{name} is greater than 2^53", "send the number that the hub answered with")
    seen: set[str] = set()
    for place, message in enumerate(delta.messages):
        _check_message(f"append[{place}]", message)
        if message.id in seen:
            raise InvalidInput(f"append[{place}].id stands twice in one push")
        seen.add(message.id)
    for path in delta.registers:
        if not 0 < len(path.encode()) <= _LONGEST_PATH:
            raise InvalidInput(f"set: a path is empty or longer than {_LONGEST_PATH} bytes")


def _check_message(where: str, message: Message) -> None:
    if not 0 < len(message.id.encode()) <= _LONGEST_ID:
        raise InvalidInput(f"{where}.id is empty or longer than {_LONGEST_ID} bytes")
    if message.parent_id is not None and len(message.parent_id.encode()) > _LONGEST_ID:
        raise InvalidInput(f"{where}.parent_id is longer than {_LONGEST_ID} bytes")
    if not 0 <= message.order <= _MOST_ORDER:
        raise InvalidInput(f"{where}.seq is not between 0 and 2^63")
    if message.rev > _MOST_VERSION:
        raise InvalidInput(f"{where}.rev is greater than 2^53")
