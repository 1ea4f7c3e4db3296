"""What a hub is known to hold of a thread: only this tells what is still pending there.

A base moves by three events and no other: a push the hub accepted (it holds what was sent, not what was typed
meanwhile), an answer that is a whole state, an answer that follows on from the base without a gap. Without
a base everything is pending, and the join is right all the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from msgspec import Struct

from raddle.model.ids import canonical_json
from raddle.model.threads.delta import Delta, encode_register
from raddle.model.threads.message import Message
from raddle.model.threads.message_codec import encode_message
from raddle.model.threads.register import Register
from raddle.model.threads.thread import Thread


class Base(Struct, frozen=True, kw_only=True):
    """One hub's known holding: of each message (by id) and register (by path) the digest of its form there.

    Neither a message's `rev` nor a register's stamps would do. A job that landed on two devices is one message in
    two forms, and two importers may read one record differently: where the hub holds the form that loses, it
    has to be sent the other.
    """

    hub_epoch: str = ""
    version: int = 0
    messages: Mapping[str, int] = {}
    registers: Mapping[str, int] = {}


def digest_of(part: Message | Register) -> int:
    """48 bits that are equal for equal forms of a message or a register, on every machine."""
    plain = encode_message(part) if isinstance(part, Message) else encode_register(part)
    return int.from_bytes(hashlib.sha256(canonical_json(plain)).digest()[:6], "big")


def pending(thread: Thread, base: Base) -> Delta:
    """What the hub lacks. While the thread is private: at most the register `is_private`, and that only where the
    hub knows the thread."""
    if thread.is_private:
        registers = {"is_private": thread.registers["is_private"]} if base.version else {}
        messages: tuple[Message, ...] = ()
    else:
        registers = dict(thread.registers)
        messages = tuple(
            message for message in thread.tree if base.messages.get(message.id) != digest_of(message)
        )
    lacking = {
        path: register
        for path, register in registers.items()
        if base.registers.get(path) != digest_of(register)
    }
    return Delta(base_version=base.version, version=thread.version, messages=messages, registers=lacking)


def accepted(base: Base, sent: Delta, version: int, hub_epoch: str) -> Base:
    """The base after the hub took `sent` and answered `version`. A withdrawal leaves only its register there."""
    if withdraws(sent):
        return Base(hub_epoch=hub_epoch, version=version, registers=_digests(sent))
    return _with(base, sent, version, hub_epoch)


def answered(base: Base, answer: Delta, hub_epoch: str) -> Base:
    """The base after an answer of the hub: a whole state replaces it, the next piece adds to it, any other moves
    nothing."""
    if answer.base_version == 0:
        return _with(Base(), answer, answer.version, hub_epoch)
    if hub_epoch == base.hub_epoch and answer.base_version <= base.version <= answer.version:
        return _with(base, answer, answer.version, hub_epoch)
    return base


def _with(base: Base, delta: Delta, version: int, hub_epoch: str) -> Base:
    return Base(
        hub_epoch=hub_epoch,
        version=version,
        messages={**base.messages, **{message.id: digest_of(message) for message in delta.messages}},
        registers={**base.registers, **_digests(delta)},
    )


def _digests(delta: Delta) -> dict[str, int]:
    return {path: digest_of(register) for path, register in delta.registers.items()}


def withdraws(sent: Delta) -> bool:
    """Does it make the thread private, so that the hub keeps nothing but this?"""
    register = sent.registers.get("is_private")
    return register is not None and any(write.value is True for write in register.writes)
