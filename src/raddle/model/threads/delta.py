"""A Delta is a partial thread: some messages, some registers, and the versions they lie between.

It is a line of the local journal, the body of a push, of a 409, of a live event. Joining one twice, late or
out of order is safe; joining is all that is ever done with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.errors import BrokenFormat
from raddle.model.threads.message import Message
from raddle.model.threads.message_codec import decode_message, encode_message
from raddle.model.threads.register import Register, register_of


class Delta(Struct, frozen=True, kw_only=True):
    """What changed. `base_version`: the version it was made on (0: a whole state). `version`: the thread's after it."""

    base_version: int = 0
    version: int = 0
    messages: tuple[Message, ...] = ()
    registers: Mapping[str, Register] = {}

    @property
    def is_empty(self) -> bool:
        """Does it hold no message and no register?"""
        return not self.messages and not self.registers


def encode_register(register: Register) -> Any:
    """The short form `[[n, device, value]]` where the register saw nothing but its write; else `{"is", "saw"}`."""
    writes = [list(write) for write in register.writes]
    if len(register.writes) == 1:
        only = register.writes[0]
        if register.saw == {only.device: only.n}:
            return writes
    return {"is": writes, "saw": dict(sorted(register.saw.items()))}


def decode_register(plain: Any) -> Register:
    """Plain JSON of either form as a register; BrokenFormat where it is neither."""
    saw: Any = {}
    writes: Any = plain
    if isinstance(plain, dict):
        writes, saw = plain.get("is"), plain.get("saw", {})
    if not isinstance(writes, list) or not isinstance(saw, dict) or not (writes or saw):
        raise BrokenFormat("a register is not [[n, device, value], …]")
    for write in writes:
        if not (
            isinstance(write, list) and len(write) == 3 and _is_clock(write[0]) and isinstance(write[1], str)
        ):
            raise BrokenFormat("a write of a register is not [n, device, value]")
    if not all(_is_clock(n) for n in saw.values()):
        raise BrokenFormat("a register's saw is not {device: n}")
    return register_of(((n, device, value) for n, device, value in writes), saw)


def encode_delta(delta: Delta) -> dict[str, Any]:
    """`delta` as plain JSON: `{"base_version", "version", "append": […], "set": {path: register}}`."""
    plain: dict[str, Any] = {"base_version": delta.base_version, "version": delta.version}
    if delta.messages:
        plain["append"] = [encode_message(message) for message in delta.messages]
    if delta.registers:
        plain["set"] = {path: encode_register(register) for path, register in delta.registers.items()}
    return plain


def decode_delta(plain: Any) -> Delta:
    """Plain JSON as a Delta; BrokenFormat says what does not fit."""
    if not isinstance(plain, dict):
        raise BrokenFormat("a delta is not a JSON object")
    base_version, version = plain.get("base_version", 0), plain.get("version", 0)
    append, registers = plain.get("append", []), plain.get("set", {})
    if not (_is_clock(base_version) and _is_clock(version)):
        raise BrokenFormat("a delta's versions are not whole numbers")
    if not isinstance(append, list) or not isinstance(registers, dict):
        raise BrokenFormat("a delta's append is a list and its set an object")
    return Delta(
        base_version=base_version,
        version=version,
        messages=tuple(decode_message(message) for message in append),
        registers={path: decode_register(register) for path, register in registers.items()},
    )


def delta_to_json(delta: Delta) -> bytes:
    """`delta` as one line of compact UTF-8 JSON (no newline)."""
    return msgspec.json.encode(encode_delta(delta))


def delta_from_json(data: bytes) -> Delta:
    """One line of JSON as a Delta; BrokenFormat where it is damaged."""
    try:
        plain = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BrokenFormat(f"a delta is not JSON: {error}") from error
    return decode_delta(plain)


def _is_clock(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
