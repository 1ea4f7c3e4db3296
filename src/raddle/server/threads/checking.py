"""What a push has to be before anything of it is written: sizes and numbers that the tables can hold, and values that
say what their field says.

A value that the database would refuse has to be named here, or it comes back as a 500. One that fits its field only
for whoever does not look (`is_private: "yes"`) would be taken for what it does not say. Registers that this version
does not know are a newer raddle's, and are kept as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from raddle.model.clock import parse_time
from raddle.model.errors import InvalidInput
from raddle.model.threads.codec import Decoded
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message
from raddle.model.threads.message_codec import misfits
from raddle.model.threads.register import Register
from raddle.model.threads.visibility import VISIBILITIES, parse_visibility

_MOST_VERSION = 1 << 53
"""What every JSON reader can still count."""
_MOST_ORDER = (1 << 63) - 1
_LONGEST_ID = 1_000
_LONGEST_PATH = 2_000
"""UTF-8 bytes: an entry of an index in PostgreSQL holds some 2,700."""
_LONGEST_ROLE = 200


def check_delta(delta: Delta) -> None:
    """InvalidInput, naming the field, for what cannot be stored."""
    for name, number in (("base_version", delta.base_version), ("version", delta.version)):
        if number > _MOST_VERSION:
            raise InvalidInput(f"{name} is greater than 2^53", "send the number that the hub answered with")
    if delta.is_empty:
        raise InvalidInput("append and set hold nothing", "send what is new")
    seen: set[str] = set()
    for place, message in enumerate(delta.messages):
        _check_message(f"append[{place}]", message)
        if message.id in seen:
            raise InvalidInput(f"append[{place}].id stands twice in one push")
        seen.add(message.id)
    for path, register in delta.registers.items():
        if not 0 < len(path.encode()) <= _LONGEST_PATH:
            raise InvalidInput(f"set: a path is empty or longer than {_LONGEST_PATH} bytes")
        _check_register(path, register)


def check_file(sent: Decoded) -> None:
    """InvalidInput, naming the field, for a thread file of which something would be left out or read otherwise."""
    for problem in sent.problems:
        raise InvalidInput(
            f"the file is not whole: {problem.partition(':')[0]}", "send what raddle exports as json"
        )
    if (sent.plain.get("visibility") is not None) and not is_visibility(sent.plain["visibility"]):
        raise InvalidInput(f"visibility is not {_VISIBILITY[1]}")


def _check_message(where: str, message: Message) -> None:
    if not 0 < len(message.id.encode()) <= _LONGEST_ID:
        raise InvalidInput(f"{where}.id is empty or longer than {_LONGEST_ID} bytes")
    if message.parent_id is not None and len(message.parent_id.encode()) > _LONGEST_ID:
        raise InvalidInput(f"{where}.parent_id is longer than {_LONGEST_ID} bytes")
    if message.parent_id == message.id:
        raise InvalidInput(f"{where}.parent_id is the message's own id", "a turn that begins a line has none")
    if not 0 <= message.order <= _MOST_ORDER:
        raise InvalidInput(f"{where}.seq is not between 0 and 2^63")
    if message.rev > _MOST_VERSION:
        raise InvalidInput(f"{where}.rev is greater than 2^53")
    if len(message.role.encode()) > _LONGEST_ROLE:
        raise InvalidInput(f"{where}.role is longer than {_LONGEST_ROLE} bytes")
    for name in misfits(message):
        raise InvalidInput(
            f"{where}.{name} is not of its type", "docs/formats/thread-file.md says what it is"
        )
    if message.ts and parse_time(message.ts) is None:
        raise InvalidInput(f"{where}.ts is not a time as RFC 3339 writes it", "or leave it out")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_visibility(value: Any) -> bool:
    """Is it one of the names that say who may read a thread, as `parse_visibility` reads them?"""
    try:
        return isinstance(value, str) and parse_visibility(value) in VISIBILITIES
    except InvalidInput:
        return False


_TEXT, _FLAG, _OBJECT = (_is_text, "a text"), (_is_flag, "true or false"), (_is_object, "an object")
_VISIBILITY = (is_visibility, f"one of {', '.join(VISIBILITIES)}")
_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "title": _TEXT,
    "visibility": _VISIBILITY,
    "is_private": _FLAG,
    "is_pinned": _FLAG,
    "is_archived": _FLAG,
    "is_shared_with_support": _FLAG,
    "deleted": _OBJECT,
    "source": _OBJECT,
    "agent_state": _OBJECT,
    "model": _OBJECT,
    "git": _OBJECT,
    "git_initial": _OBJECT,
    "workspace_root": _TEXT,
    "cwd": _TEXT,
    "git_remote_url": _TEXT,
    "created_at": _TEXT,
    "updated_at": _TEXT,
    "last_activity_at": _TEXT,
}
"""Register -> what stands in it, where anything does."""
_FAMILIES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "tag": _FLAG,
    "gone": _FLAG,
    "commit": _FLAG,
    "job": _OBJECT,
    "draft": _OBJECT,
}


def _check_register(path: str, register: Register) -> None:
    family, slash, _ = path.partition("/")
    fits = _FAMILIES.get(family) if slash else _KINDS.get(path)
    if fits is None:
        return
    for write in register.writes:
        if write.value is not None and not fits[0](write.value):
            name = f"{family}/…" if slash else path
            raise InvalidInput(f"set.{name} is not {fits[1]}", "docs/formats/thread-file.md says what it is")
