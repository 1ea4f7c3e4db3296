"""The traps that simpler designs of the merge fell into, each with the smallest case that shows it.

Anna (`a`) and Bert (`b`) are two devices of one person. "The answer is lost" means that the hub took a push and
the device never learnt of it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from raddle.model.threads.adopt import first_sight
from raddle.model.threads.codec import decode_file
from raddle.model.threads.edits import Editor
from raddle.model.threads.thread import Thread, merge
from tests.builders import DAY, SECOND, THREAD_ID, WoundClock, texts
from tests.fakes.device import Device
from tests.fakes.hub import Hub
from tests.property.merge_laws import readings_of, state_of
from tests.property.merge_sources import legacy_copy

Edit = Callable[[Editor], object]


@pytest.fixture
def clock() -> WoundClock:
    return WoundClock()


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
def anna(clock: WoundClock) -> Device:
    return Device("aaaaaaaa", clock)


@pytest.fixture
def bert(clock: WoundClock) -> Device:
    return Device("bbbbbbbb", clock)


def do(device: Device, *edits: Edit) -> None:
    """Each edit on its own, a second after the one before."""
    for edit in edits:
        if isinstance(device.clock, WoundClock):
            device.clock.wind()
        with device.edit() as editor:
            edit(editor)


def say(content: str, role: str = "user") -> Edit:
    return lambda editor: editor.append(role, content)


def rename(title: str) -> Edit:
    return lambda editor: editor.rename(title)


def is_private(device: Device) -> bool:
    return device.thread.is_private


def is_deleted(device: Device) -> bool:
    return device.thread.is_deleted


def push_and_lose_the_answer(device: Device, hub: Hub) -> None:
    assert device.send(hub, device.pending(hub), crash=True)


def sync_all(hub: Hub, *devices: Device) -> None:
    """Everybody syncs until it is quiet; then all hold the same."""
    for _ in range(4):
        for device in devices:
            device.sync(hub)
    assert [device.sync(hub) for device in devices] == [0] * len(devices)
    assert len({state_of(device.thread) for device in (*devices,)} | {state_of(held(hub))}) == 1
    assert all(readings_of(device.thread) == readings_of(devices[0].thread) for device in devices)


def held(hub: Hub) -> Thread:
    return hub.holding(THREAD_ID).thread


def share(hub: Hub, anna: Device, bert: Device, *edits: Edit) -> None:
    """Anna makes the edits, and both know of them."""
    do(anna, *edits)
    sync_all(hub, anna, bert)


def shown(device: Device) -> list[str]:
    return texts(device.thread.tree.shown())


def test_1_a_redo_wins_over_an_undo_of_another_turn(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, say("m0"), lambda editor: editor.reply(None, "user", "m1"))
    first, second = (message.id for message in anna.thread.tree)
    do(anna, lambda editor: editor.write(f"gone/{first}", True))
    do(bert, lambda editor: editor.undo())
    assert shown(bert) == ["m0"]
    bert.sync(hub)
    do(bert, lambda editor: editor.redo())
    sync_all(hub, anna, bert)
    assert anna.thread.removed_messages == [first]
    assert not anna.thread.tree.is_removed(second)


def test_2_a_redo_is_not_undone_by_an_undo_whose_answer_was_lost(
    hub: Hub, anna: Device, bert: Device
) -> None:
    share(hub, anna, bert, say("m0"))
    do(anna, lambda editor: editor.undo())
    push_and_lose_the_answer(anna, hub)
    bert.pull(hub)
    assert shown(bert) == []
    do(bert, lambda editor: editor.redo())
    bert.push(hub)
    sync_all(hub, anna, bert)
    assert shown(anna) == ["m0"]


def test_3_a_widening_after_the_fact_holds(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, say("m0"))
    do(anna, lambda editor: editor.set_visibility("private"))
    push_and_lose_the_answer(anna, hub)
    bert.pull(hub)
    do(bert, lambda editor: editor.set_visibility("public"))
    bert.push(hub)
    sync_all(hub, anna, bert)
    assert anna.thread.visibility == "public"
    assert anna.thread.conflicts == []


def test_3_of_concurrent_visibilities_the_narrower_shows_and_a_person_is_asked(
    hub: Hub, anna: Device, bert: Device
) -> None:
    share(hub, anna, bert, say("m0"))
    do(anna, lambda editor: editor.set_visibility("private"))
    do(bert, lambda editor: editor.set_visibility("public"))
    sync_all(hub, anna, bert)
    assert bert.thread.visibility == "private"
    assert [conflict.path for conflict in bert.thread.conflicts] == ["visibility"]


def test_4_private_can_be_switched_back(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, say("m0"))
    do(anna, lambda editor: editor.set_private(True))
    anna.sync(hub)
    bert.sync(hub)
    assert is_private(bert)
    assert len(held(hub).tree) == 0
    do(anna, lambda editor: editor.set_private(False))
    sync_all(hub, anna, bert)
    assert not is_private(bert)
    assert shown(bert) == ["m0"] == texts(held(hub).tree)


def test_5_a_turn_does_not_renew_the_stamp_of_a_title(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, say("m0"))
    do(anna, rename("old"))
    do(bert, rename("newer"))
    do(anna, say("a later turn"))
    sync_all(hub, anna, bert)
    assert anna.thread.title == "newer"


def test_6_a_title_that_goes_back_to_its_first_value_stays_there(
    hub: Hub, anna: Device, bert: Device
) -> None:
    share(hub, anna, bert, rename("t"))
    do(anna, rename("x"))
    push_and_lose_the_answer(anna, hub)
    bert.pull(hub)
    do(bert, rename("t"))
    bert.push(hub)
    sync_all(hub, anna, bert)
    assert anna.thread.title == "t"
    assert anna.thread.conflicts == []


def test_7_a_landed_job_is_not_pending_again(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, say("m0"))
    asked = next(iter(anna.thread.tree)).id
    do(anna, lambda editor: editor.launch_job("j", asked, "someone"))
    push_and_lose_the_answer(anna, hub)
    bert.pull(hub)
    assert [job.job_id for job in bert.thread.pending_jobs] == ["j"]
    do(bert, lambda editor: editor.land_job("j", "the answer"))
    bert.push(hub)
    sync_all(hub, anna, bert)
    assert anna.thread.pending_jobs == []
    assert shown(anna) == ["m0", "the answer"]


def test_7_a_job_that_landed_where_its_launch_was_not_heard_of_is_not_pending(
    hub: Hub, anna: Device, bert: Device
) -> None:
    share(hub, anna, bert, say("m0"))
    asked = next(iter(anna.thread.tree)).id
    do(anna, lambda editor: editor.launch_job("j", asked, "someone"))
    do(bert, lambda editor: editor.land_job("j", "the answer", parent_id=asked))
    sync_all(hub, anna, bert)
    assert anna.thread.pending_jobs == []


def test_8_a_job_that_lands_on_two_devices_adds_one_reply(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, say("m0"), lambda editor: editor.launch_job("j", None, "someone"))
    do(bert, lambda editor: editor.land_job("j", "the answer"))
    do(anna, lambda editor: editor.land_job("j", "the answer"))
    sync_all(hub, anna, bert)
    assert shown(anna) == ["m0", "the answer"]
    assert anna.thread.pending_jobs == []


def test_8_the_hub_is_sent_the_form_of_a_reply_that_wins(hub: Hub, anna: Device, bert: Device) -> None:
    """Bert landed first, Anna pushed first: the hub holds the form that loses."""
    share(hub, anna, bert, say("m0"), lambda editor: editor.launch_job("j", None, "someone"))
    do(bert, lambda editor: editor.land_job("j", "the answer"))
    do(anna, lambda editor: editor.land_job("j", "the answer"))
    anna.sync(hub)
    bert.sync(hub)
    anna.sync(hub)
    assert {message.device for message in held(hub).tree if message.job_id} == {"bbbbbbbb"}
    assert state_of(anna.thread) == state_of(bert.thread)


def test_9_a_removed_tag_stays_away_without_a_base(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, lambda editor: editor.tag("x"))
    anna.lose_base(hub)
    do(anna, lambda editor: editor.untag("x"))
    sync_all(hub, anna, bert)
    assert bert.thread.tags == []


def test_9_a_cleared_draft_and_job_stay_away_without_a_base(hub: Hub, anna: Device, bert: Device) -> None:
    share(
        hub,
        anna,
        bert,
        lambda editor: editor.set_draft(None, "unsent"),
        lambda editor: editor.launch_job("j", None, "someone"),
    )
    anna.lose_base(hub)
    do(anna, lambda editor: editor.set_draft(None, ""), lambda editor: editor.clear_job("j"))
    sync_all(hub, anna, bert)
    assert bert.thread.drafts == {}
    assert bert.thread.pending_jobs == []


def test_10_two_drafts_of_one_slot_do_not_grow(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, lambda editor: editor.set_draft(None, "one"))
    do(anna, lambda editor: editor.set_draft(None, "two"))
    do(bert, lambda editor: editor.set_draft("elsewhere", "bert's"))
    do(bert, lambda editor: editor.write("draft/aaaaaaaa", {"root": "one, as bert saw it"}))
    for _ in range(3):
        anna.lose_base(hub)
        bert.lose_base(hub)
        sync_all(hub, anna, bert)
    assert anna.thread.drafts["aaaaaaaa"] == {"root": "two\n\none, as bert saw it"}
    assert anna.thread.drafts["bbbbbbbb"] == {"elsewhere": "bert's"}


def test_11_a_cleared_draft_is_not_back_after_a_lost_answer(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, say("m0"))
    tip = next(iter(anna.thread.tree)).id
    do(anna, lambda editor: editor.set_draft(tip, "to be sent"))
    push_and_lose_the_answer(anna, hub)
    do(anna, say("to be sent"))
    sync_all(hub, anna, bert)
    assert bert.thread.drafts == {}
    assert shown(bert) == ["m0", "to be sent"]


def test_12_a_rolled_back_turn_that_was_answered_orphans_nothing(
    hub: Hub, anna: Device, bert: Device
) -> None:
    share(hub, anna, bert, say("m"))
    do(anna, say("the reply", "assistant"))
    do(bert, lambda editor: editor.rollback_last_user_turn())
    assert shown(bert) == []
    sync_all(hub, anna, bert)
    assert shown(bert) == ["m", "the reply"]
    assert bert.thread.tree.lost() == []
    assert len(bert.thread.removed_messages) == 1


@pytest.mark.parametrize("first", ["anna", "bert"])
def test_13_which_reply_keeps_the_branch_does_not_depend_on_who_pushed_first(
    hub: Hub, anna: Device, bert: Device, first: str
) -> None:
    other_hub = Hub("other")
    share(hub, anna, bert, say("r"))
    do(anna, say("anna's", "assistant"))
    do(bert, say("bert's", "assistant"))
    early, late = (anna, bert) if first == "anna" else (bert, anna)
    early.sync(hub)
    late.sync(other_hub)
    for each in (hub, other_hub):
        sync_all(each, anna, bert)
    tree = bert.thread.tree
    root, annas, berts = tree
    assert (tree.branch_of(annas.id), tree.branch_of(berts.id)) == (tree.branch_of(root.id), berts.id)
    assert annas.branch_id == berts.branch_id == root.branch_id, "what an append wrote is never rewritten"


def test_14_what_stands_under_a_turn_that_lost_its_branch_goes_with_it(
    hub: Hub, anna: Device, bert: Device
) -> None:
    share(hub, anna, bert, say("m0"))
    do(bert, say("m3", "assistant"))
    do(anna, say("m1", "assistant"), say("m2"))
    sync_all(hub, anna, bert)
    tree = anna.thread.tree
    by_text = {message.content: tree.branch_of(message.id) for message in tree}
    assert by_text["m0"] == by_text["m3"]
    assert by_text["m1"] == by_text["m2"] != by_text["m0"]
    assert [branch.length for branch in tree.branches()] == [2, 2]


def test_15_a_clock_that_was_ahead_does_not_pin_the_tip(anna: Device, clock: WoundClock) -> None:
    clock.wind(DAY)
    do(anna, say("said a day ahead"))
    clock.wind(-DAY)
    do(anna, say("said now"))
    tip = anna.thread.tree.tip()
    assert tip is not None
    assert tip.content == "said now"
    assert tip.ts < anna.thread.messages[0].ts, "the wall clock is told as it was"


def test_15_a_title_set_with_a_clock_ahead_heals_at_the_next_edit(
    hub: Hub, anna: Device, bert: Device, clock: WoundClock
) -> None:
    clock.wind(365 * DAY)
    do(anna, rename("from the future"))
    clock.wind(-365 * DAY)
    sync_all(hub, anna, bert)
    do(bert, rename("from now"))
    sync_all(hub, anna, bert)
    assert anna.thread.title == "from now"


def test_16_diverged_legacy_copies_share_their_beginning_and_lose_no_text(
    hub: Hub, anna: Device, bert: Device
) -> None:
    for device, last in ((anna, "x"), (bert, "y")):
        found = first_sight(decode_file(legacy_copy("q0", last, title="legacy", minute=1)))
        device.thread.join(found.whole())
    sync_all(hub, anna, bert)
    assert sorted(shown(anna)) == ["q0", "x", "y"]
    assert anna.thread.title == "legacy"
    assert anna.thread.conflicts == [], "equal titles of two copies are one write"


def test_17_a_version_does_not_go_back(hub: Hub, anna: Device, bert: Device) -> None:
    do(anna, say("m0"), say("m1"))
    assert anna.thread.version == 2
    anna.sync(hub)
    assert anna.thread.version == hub.holding(THREAD_ID).version == 2
    do(bert, say("m2"))
    sync_all(hub, anna, bert)
    assert anna.thread.version == bert.thread.version == hub.holding(THREAD_ID).version == 3


def test_17_with_two_hubs_the_one_that_got_fewer_pushes_may_count_less_until_the_next_edit(
    clock: WoundClock,
) -> None:
    """A version counts pushes of one hub; it names nothing, and only the base's own is ever compared."""
    one, two = Hub("one"), Hub("two")
    anna, bert, carl = (Device(name * 8, clock) for name in "abc")
    do(anna, rename("x"))
    do(bert, lambda editor: editor.tag("bert's"))
    do(carl, lambda editor: editor.tag("carl's"))
    for device, hub in ((anna, one), (carl, one), (anna, one), (bert, two), (anna, two), (anna, one)):
        device.sync(hub)
    sync_all(one, anna, bert, carl)
    sync_all(two, anna, bert)
    assert state_of(held(one)) == state_of(held(two))
    assert (one.holding(THREAD_ID).version, two.holding(THREAD_ID).version) == (3, 2)
    do(bert, rename("y"))
    sync_all(two, anna, bert)
    sync_all(one, anna, bert, carl)
    assert one.holding(THREAD_ID).version == two.holding(THREAD_ID).version == carl.thread.version == 4


def test_18_conflicting_titles_are_the_same_list_in_every_order() -> None:
    devices = [Device(name * 8, WoundClock()) for name in "abc"]
    for device in devices:
        do(device, rename(device.device_id[0]))
    found = set()
    for one, two, three in permutations(device.thread for device in devices):
        merged = merge(merge(one, two), three)
        found.add(repr((merged.title, merged.conflicts)))
    assert len(found) == 1


def test_18_nobody_is_in_conflict_with_himself(hub: Hub, anna: Device, bert: Device) -> None:
    do(anna, rename("a"))
    anna.push(hub)
    anna.lose_base(hub)
    do(anna, rename("b"))
    sync_all(hub, anna, bert)
    assert anna.thread.title == "b"
    assert anna.thread.conflicts == []


def test_19_two_hubs_come_to_rest(clock: WoundClock) -> None:
    hubs = Hub("one"), Hub("two")
    devices = [Device(name * 8, clock) for name in "abc"]
    for device, title in zip(devices, ("b", "a", "a"), strict=True):
        do(device, rename(title))
    served = [
        (device, hub) for device in devices for hub in hubs if device is not devices[2] or hub is hubs[0]
    ]
    pushes = [sum(device.sync(hub) for device, hub in served) for _ in range(4)]
    assert pushes[0] > 0
    assert pushes[-2:] == [0, 0]
    assert len({state_of(device.thread) for device in devices}) == 1


def test_20_an_edit_after_a_delete_brings_the_thread_back(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, say("m0"))
    do(anna, lambda editor: editor.delete())
    assert is_deleted(anna)
    do(anna, say("m1"))
    assert not is_deleted(anna)
    sync_all(hub, anna, bert)
    assert not is_deleted(bert)
    assert bert.thread.conflicts == []


def test_20_an_edit_that_a_delete_did_not_know_of_keeps_the_thread(
    hub: Hub, anna: Device, bert: Device
) -> None:
    share(hub, anna, bert, say("m0"))
    do(bert, lambda editor: editor.tag("kept"))
    do(anna, lambda editor: editor.delete())
    sync_all(hub, anna, bert)
    assert not is_deleted(anna)
    (conflict,) = anna.thread.conflicts
    assert conflict.path == "deleted"
    assert [write.device for write in conflict.writes] == [anna.author.device]
    do(anna, lambda editor: editor.delete())
    sync_all(hub, anna, bert)
    assert is_deleted(bert)
    assert bert.thread.conflicts == []


def test_20_what_a_program_notes_does_not_keep_a_deleted_thread(hub: Hub, anna: Device, bert: Device) -> None:
    share(hub, anna, bert, say("m0"))
    do(bert, lambda editor: editor.set_model("provider", "model"))
    do(anna, lambda editor: editor.delete())
    sync_all(hub, anna, bert)
    assert is_deleted(bert)


def test_21_who_withdraws_holds_all_that_was_acknowledged(
    hub: Hub, anna: Device, bert: Device, clock: WoundClock
) -> None:
    carl = Device("cccccccc", clock)
    share(hub, anna, bert, say("m0"))
    carl.sync(hub)
    do(carl, say("carl's turn"))
    carl.sync(hub)
    del carl
    do(anna, lambda editor: editor.set_private(True))
    anna.push(hub)
    assert "carl's turn" in shown(anna)
    assert [*held(hub).registers] == ["is_private"]
    assert len(held(hub).tree) == 0
    bert.sync(hub)
    do(anna, lambda editor: editor.set_private(False))
    sync_all(hub, anna, bert)
    assert "carl's turn" in shown(bert)


def test_a_private_thread_is_not_told_to_a_hub_that_does_not_know_it(hub: Hub, anna: Device) -> None:
    do(anna, say("secret"), lambda editor: editor.set_private(True))
    anna.sync(hub)
    assert hub.holding(THREAD_ID).version == 0
    assert not hub.holding(THREAD_ID).changed


def test_a_push_costs_what_changed(hub: Hub, anna: Device) -> None:
    do(anna, *(say(f"turn {number}") for number in range(50)))
    anna.sync(hub)
    do(anna, rename("x"))
    assert len(anna.pending(hub).registers) == 2
    assert anna.pending(hub).messages == ()


def test_time_told_by_the_writer_is_kept_beside_the_order(anna: Device, clock: WoundClock) -> None:
    do(anna, say("first"))
    first = anna.thread.messages[0]
    clock.wind(-10 * SECOND)
    do(anna, say("second"))
    second = anna.thread.messages[1]
    assert second.ts < first.ts
    assert second.order > first.order
