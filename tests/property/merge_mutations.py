"""The kernel with one rule taken away, for each rule: a list of faults that the state machine has to notice.

A mutation replaces one function (of the kernel, or of the hub in memory) by one that forgets its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import pytest

from raddle.model.ids import derived_id
from raddle.model.protocol.hub import Answer
from raddle.model.threads import adopt, base, edits, fields, thread
from raddle.model.threads.base import Base
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.fields import Field, latest
from raddle.model.threads.message import Message
from raddle.model.threads.register import Register, Write, join_registers
from raddle.model.threads.thread import Thread
from raddle.model.threads.tree import MessageTree
from tests.fakes.hub import Holding, Hub
from tests.property.merge_replica import Replica

Patch = pytest.MonkeyPatch


class Mutation(NamedTuple):
    """`take_away` removes the rule; `stories` and `accidents` are those among which its absence shows."""

    take_away: Callable[[Patch], None]
    stories: tuple[str, ...]
    accidents: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The rule that is missing, in words."""
        return self.take_away.__name__


def _show(patch: Patch, path: str, shows: Callable[[Register], Any]) -> None:
    table: dict[str, Field] = fields.FIELDS if path in fields.FIELDS else fields.FAMILIES
    patch.setitem(table, path, msgspec.structs.replace(table[path], shows=shows))


def siblings_are_kept(patch: Patch) -> None:
    """Plain "latest wins": of two concurrent values the earlier one is gone."""

    def join(one: Register, other: Register) -> Register:
        joined = join_registers(one, other)
        return Register((joined.latest,), joined.saw)

    patch.setattr(thread, "join_registers", join)


def a_register_knows_what_it_saw(patch: Patch) -> None:
    """Without `saw` a value that was overwritten cannot be told from one that is new."""

    def join(one: Register, other: Register) -> Register:
        standing: dict[str, Write] = {}
        for write in sorted((*one.writes, *other.writes), key=lambda write: write[:2]):
            standing[write.device] = write
        writes = tuple(sorted(standing.values(), key=lambda write: write[:2]))
        return one if writes == one.writes else Register(writes, {write.device: write.n for write in writes})

    patch.setattr(thread, "join_registers", join)


def the_clock_is_hybrid(patch: Patch) -> None:
    """The machine's own clock, whatever the thread has seen."""
    whole_join = Thread.join

    def join(self: Thread, delta: Delta) -> bool:
        news = whole_join(self, delta)
        self.clock = 0
        return news

    patch.setattr(Thread, "join", join)


def the_tip_is_by_order(patch: Patch) -> None:
    """The tip by wall clock."""

    def tip(self: MessageTree) -> Message | None:
        turns = [message for message in self.shown() if not message.is_sidechain]
        return max(turns, key=lambda message: message.ts, default=None)

    patch.setattr(MessageTree, "tip", tip)


def a_removed_turn_that_was_answered_stays_shown(patch: Patch) -> None:
    patch.setattr(MessageTree, "_hidden_ids", lambda self: {name for name in self._gone if name in self})


def branches_are_computed(patch: Patch) -> None:
    """What the append wrote is shown as it is."""
    patch.setattr(
        MessageTree, "_branch_ids", lambda self: {message.id: message.branch_id for message in self}
    )


def removed_only_if_all_say_so(patch: Patch) -> None:
    _show(patch, "gone", fields.any_true)


def a_tag_is_there_if_any_says_so(patch: Patch) -> None:
    _show(patch, "tag", fields.all_true)


def a_cleared_job_stays_cleared(patch: Patch) -> None:
    _show(patch, "job", latest)


def every_draft_is_kept(patch: Patch) -> None:
    _show(patch, "draft", lambda register: register.latest.value or {})


def narrower_wins(patch: Patch) -> None:
    _show(patch, "visibility", latest)


def private_wins(patch: Patch) -> None:
    _show(patch, "is_private", lambda register: register.latest.value is True)


def support_needs_all(patch: Patch) -> None:
    _show(patch, "is_shared_with_support", fields.any_true)


def the_id_of_a_landed_job_is_derived(patch: Patch) -> None:
    numbers: Iterator[int] = iter(range(1_000_000))
    patch.setattr(edits, "derived_id", lambda *parts: derived_id(*parts, next(numbers)))


def the_id_of_a_migrated_turn_holds_its_content(patch: Patch) -> None:
    """Thread, place and role alone."""

    def linear_id(thread_id: str, before_id: str | None, plain: Mapping[str, Any]) -> str:
        return derived_id("linear", thread_id, before_id, plain.get("role"))

    patch.setattr(adopt, "linear_id", linear_id)


def the_fuller_form_of_a_turn_wins(patch: Patch) -> None:
    def join(one: Message, other: Message) -> Message:
        return one if one == other else min(one, other, key=lambda message: (message.rev, message.order))

    patch.setattr(thread, "join_messages", join)


def a_purged_turn_stays_purged(patch: Patch) -> None:
    def join(one: Message, other: Message) -> Message:
        return one if one == other else max(one, other, key=lambda message: (message.rev, message.content))

    patch.setattr(thread, "join_messages", join)


def a_delete_holds_only_what_it_had_seen(patch: Patch) -> None:
    """Whoever deletes deletes all."""

    def deleted_at(self: Thread) -> str | None:
        register = self.registers.get("deleted")
        if register is None or any(write.value is None for write in register.writes):
            return None
        return str(register.latest.value["at"])

    patch.setattr(Thread, "deleted_at", property(deleted_at))


def an_edit_brings_a_deleted_thread_back(patch: Patch) -> None:
    patch.setattr(Editor, "_revive", lambda self, path: None)


def a_hub_counts_every_push(patch: Patch) -> None:
    """The pusher's own number, even where the hub has that number already."""
    patch.setattr(Hub, "next_version", lambda self, holding, delta: delta.version)


def a_hub_is_never_behind_the_pusher(patch: Patch) -> None:
    """One more than before, however far the pusher is."""
    patch.setattr(Hub, "next_version", lambda self, holding, delta: holding.version + 1)


def pushes_compare_and_set(patch: Patch) -> None:
    patch.setattr(Hub, "is_current", lambda self, holding, delta, hub_epoch: True)


def a_withdrawal_compares_and_sets(patch: Patch) -> None:
    strict = Hub.is_current

    def is_current(self: Hub, holding: Holding, delta: Delta, hub_epoch: str) -> bool:
        return "is_private" in delta.registers or strict(self, holding, delta, hub_epoch)

    patch.setattr(Hub, "is_current", is_current)


def the_answer_after_an_erasure_is_whole(patch: Patch) -> None:
    def must_answer_whole(self: Hub, holding: Holding, version: int, hub_epoch: str) -> bool:
        return version == 0 or version > holding.version or hub_epoch != self.epoch

    patch.setattr(Hub, "must_answer_whole", must_answer_whole)


def a_restored_hub_is_of_another_epoch(patch: Patch) -> None:
    patch.setattr(Hub, "epoch", property(lambda self: self.name))


def nothing_private_leaves(patch: Patch) -> None:
    whole = base.pending
    patch.setattr(
        "tests.fakes.device.pending",
        lambda of, known: whole(_open_twin(of), known),
    )


def _open_twin(of: Thread) -> Thread:
    """The thread as it would be if nobody had made it private."""
    twin = Thread(of.id)
    state = of.whole()
    registers = {path: register for path, register in state.registers.items() if path != "is_private"}
    twin.join(Delta(version=state.version, messages=state.messages, registers=registers))
    return twin


def the_flag_leaves_only_to_a_hub_that_knows(patch: Patch) -> None:
    whole = base.pending

    def pending(of: Thread, known: Base) -> Delta:
        delta = whole(of, known)
        if of.is_private and not known.version:
            return Delta(version=of.version, registers={"is_private": of.registers["is_private"]})
        return delta

    patch.setattr("tests.fakes.device.pending", pending)


def the_base_is_what_was_sent(patch: Patch) -> None:
    """The base takes what the device holds by the time the answer comes."""

    def send(self: Replica, hub: Hub, sent: Delta, *, crash: bool = False, heard: int | None = None) -> bool:
        is_accepted = whole_send(self, hub, sent, crash=crash, heard=heard)
        if is_accepted and not crash:
            known = self.base(hub)
            self.bases[hub.name] = base.accepted(known, self.pending(hub), known.version, known.hub_epoch)
        return is_accepted

    whole_send = Replica.send
    patch.setattr(Replica, "send", send)


def the_base_tells_the_forms_of_a_turn_apart(patch: Patch) -> None:
    """A base that holds the `rev` of a message and the stamps of a register, and no more."""

    def digest_of(part: Message | Register) -> int:
        if isinstance(part, Message):
            return hash((part.rev, part.is_purged))
        return hash((tuple(write[:2] for write in part.writes), tuple(sorted(part.saw.items()))))

    patch.setattr(base, "digest_of", digest_of)


def an_answer_after_a_gap_moves_no_base(patch: Patch) -> None:
    def answered(known: Base, answer: Delta, hub_epoch: str) -> Base:
        return whole(
            known,
            msgspec.structs.replace(answer, base_version=min(answer.base_version, known.version)),
            hub_epoch,
        )

    whole = base.answered
    patch.setattr("tests.fakes.device.answered", answered)


def an_older_answer_moves_nothing_back(patch: Patch) -> None:
    def answered(known: Base, answer: Delta, hub_epoch: str) -> Base:
        found = whole(known, answer, hub_epoch)
        if answer.base_version <= known.version and answer.version < known.version:
            return msgspec.structs.replace(found, version=answer.version)
        return found

    whole = base.answered
    patch.setattr("tests.fakes.device.answered", answered)


def an_erased_hub_is_known_to_hold_nothing(patch: Patch) -> None:
    patch.setattr(base, "withdraws", lambda sent: False)


def a_delta_holds_only_what_changed(patch: Patch) -> None:
    def pending(of: Thread, known: Base) -> Delta:
        delta = whole(of, known)
        if delta.is_empty or of.is_private:
            return delta
        return msgspec.structs.replace(delta, messages=tuple(of.tree), registers=dict(of.registers))

    whole = base.pending
    patch.setattr("tests.fakes.device.pending", pending)


def a_merge_writes_nothing(patch: Patch) -> None:
    """Whoever merges notes that he did."""

    def receive(
        self: Replica, hub: Hub, answer: Answer, *, crash: bool = False, heard: int | None = None
    ) -> None:
        whole(self, hub, answer, crash=crash, heard=heard)
        if not answer.delta.is_empty:
            with self.edit() as editor:
                editor.write("x/merged_at", editor.author.now())

    whole = Replica.receive
    patch.setattr(Replica, "receive", receive)


def a_sidechain_is_no_reply(patch: Patch) -> None:
    def is_leaf(self: MessageTree, message_id: str) -> bool:
        return message_id in self and not self.children(message_id)

    patch.setattr(MessageTree, "is_leaf", is_leaf)


def a_sidechain_is_never_the_tip(patch: Patch) -> None:
    patch.setattr(MessageTree, "tip", lambda self: max(self.shown(), key=_place, default=None))


def _place(message: Message) -> tuple[int, str]:
    return message.order, message.id


def a_restored_disk_gets_a_new_device_id(patch: Patch) -> None:
    patch.setattr(Replica, "_new_device_id", lambda self: None)


MUTATIONS = (
    Mutation(siblings_are_kept, ("rename", "visibility")),
    Mutation(a_register_knows_what_it_saw, ("rename", "tag", "untag")),
    Mutation(the_clock_is_hybrid, ("append", "rename"), ("clock_is_set",)),
    Mutation(the_tip_is_by_order, ("append", "reply"), ("clock_is_set",)),
    Mutation(a_removed_turn_that_was_answered_stays_shown, ("append", "undo", "reply")),
    Mutation(branches_are_computed, ("append", "reply")),
    Mutation(removed_only_if_all_say_so, ("append", "undo", "redo")),
    Mutation(a_tag_is_there_if_any_says_so, ("tag", "untag")),
    Mutation(a_cleared_job_stays_cleared, ("append", "launch", "clear_job")),
    Mutation(every_draft_is_kept, ("append", "draft", "clear_draft")),
    Mutation(narrower_wins, ("visibility",)),
    Mutation(private_wins, ("append", "private")),
    Mutation(support_needs_all, ("support",)),
    Mutation(the_id_of_a_landed_job_is_derived, ("append", "launch", "land")),
    Mutation(the_id_of_a_migrated_turn_holds_its_content, ("migrate",)),
    Mutation(the_fuller_form_of_a_turn_wins, ("reimport", "append")),
    Mutation(a_purged_turn_stays_purged, ("append", "purge")),
    Mutation(a_delete_holds_only_what_it_had_seen, ("delete", "append", "rename")),
    Mutation(an_edit_brings_a_deleted_thread_back, ("delete", "append", "rename")),
    Mutation(a_hub_counts_every_push, ("append", "rename")),
    Mutation(a_hub_is_never_behind_the_pusher, ("append", "rename")),
    Mutation(pushes_compare_and_set, ("append", "rename")),
    Mutation(a_withdrawal_compares_and_sets, ("append", "private")),
    Mutation(the_answer_after_an_erasure_is_whole, ("append", "private")),
    Mutation(a_restored_hub_is_of_another_epoch, ("append", "rename"), ("hub_backup", "hub_restore")),
    Mutation(nothing_private_leaves, ("append", "private")),
    Mutation(the_flag_leaves_only_to_a_hub_that_knows, ("append", "private")),
    Mutation(the_base_is_what_was_sent, ("append", "rename")),
    Mutation(the_base_tells_the_forms_of_a_turn_apart, ("append", "launch", "land")),
    Mutation(an_erased_hub_is_known_to_hold_nothing, ("append", "private")),
    Mutation(a_delta_holds_only_what_changed, ("append", "rename")),
    Mutation(a_merge_writes_nothing, ("append",)),
    Mutation(a_sidechain_is_no_reply, ("append", "sidechain")),
    Mutation(a_sidechain_is_never_the_tip, ("append", "sidechain")),
    Mutation(an_answer_after_a_gap_moves_no_base, ("append", "rename"), ("event_after_a_gap",)),
    Mutation(
        a_restored_disk_gets_a_new_device_id, ("rename", "visibility"), ("backup", "restore", "clock_is_set")
    ),
)
