"""What a hub is known to hold of a thread: only this tells what is still pending there.

A base moves by three events and no other: a push the hub accepted (it holds what was sent, not what was typed
meanwhile), an answer that is a whole state, an answer that follows on from the base without a gap. Without
a base everything is pending, and the join is right all the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message
from raddle.model.threads.register import Register
from raddle.model.threads.thread import Thread

Stamps = tuple[tuple[tuple[int, str], ...], tuple[tuple[str, int], ...]]
"""(standing (n, device) pairs, seen device -> n pairs) of a register: all of it but the values."""


class Base(Struct, frozen=True, kw_only=True):
    """One hub's known holding. `messages`: id -> (rev, is purged)."""

    hub_epoch: str = ""
    version: int = 0
    messages: Mapping[str, tuple[int, bool]] = {}
    registers: Mapping[str, Stamps] = {}


def stamps_of(register: Register) -> Stamps:
    """What identifies a register's state without its values."""
    return tuple((write.n, write.device) for write in register.writes), tuple(sorted(register.saw.items()))


def pending(thread: Thread, base: Base) -> Delta:
    """What the hub lacks. While the thread is private: at most the register `is_private`, and that only where the
    hub knows the thread."""
    if thread.is_private:
        registers = {"is_private": thread.registers["is_private"]} if base.version else {}
        messages: tuple[Message, ...] = ()
    else:
        registers = dict(thread.registers)
        messages = tuple(message for message in thread.tree if _lacks(base, message))
    lacking = {
        path: register
        for path, register in registers.items()
        if base.registers.get(path) != stamps_of(register)
    }
    return Delta(base_version=base.version, version=thread.version, messages=messages, registers=lacking)


def _lacks(base: Base, message: Message) -> bool:
    held = base.messages.get(message.id)
    if held is None:
        return True
    rev, is_purged = held
    if is_purged:
        return False
    return message.is_purged or rev < message.rev


def accepted(base: Base, sent: Delta, version: int, hub_epoch: str) -> Base:
    """The base after the hub took `sent` and answered `version`. A withdrawal leaves only its register there."""
    if _withdraws(sent):
        return Base(hub_epoch=hub_epoch, version=version, registers=_stamps(sent))
    return _with(base, sent, version, hub_epoch)


def answered(base: Base, answer: Delta, hub_epoch: str) -> Base:
    """The base after an answer of the hub: a whole state replaces it, the next piece adds to it, any other moves nothing."""
    if answer.base_version == 0:
        return _with(Base(), answer, answer.version, hub_epoch)
    if hub_epoch == base.hub_epoch and answer.base_version <= base.version <= answer.version:
        return _with(base, answer, answer.version, hub_epoch)
    return base


def _with(base: Base, delta: Delta, version: int, hub_epoch: str) -> Base:
    messages = dict(base.messages)
    for message in delta.messages:
        messages[message.id] = (message.rev, message.is_purged)
    return Base(
        hub_epoch=hub_epoch,
        version=version,
        messages=messages,
        registers={**base.registers, **_stamps(delta)},
    )


def _stamps(delta: Delta) -> dict[str, Stamps]:
    return {path: stamps_of(register) for path, register in delta.registers.items()}


def _withdraws(sent: Delta) -> bool:
    register = sent.registers.get("is_private")
    return register is not None and any(write.value is True for write in register.writes)
