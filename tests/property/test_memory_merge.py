"""Laws of the merge of two stores, on stories of two nodes that change copies of one."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raddle.model.memory.merge_sides import Side, Sides
from tests.property import memory_merge_laws
from tests.property.memory_stories import ACTS, Files, Node, Story, first_files, play, stories


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(stories())
def test_two_copies_of_a_store_become_one_and_nothing_is_lost(story: Story) -> None:
    memory_merge_laws.check(story)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_clones_that_sync_in_any_order_come_to_one_tree(data: st.DataObject) -> None:
    """Four clones and a remote, each sync a merge on top of the remote's head, as `raddle store sync` does it."""
    names = [f"node-{number}" for number in range(1, 5)]
    hub = first_files()
    heads = {name: dict(hub) for name in names}
    disks = {name: dict(hub) for name in names}
    written: list[str] = []
    for turn in range(data.draw(st.integers(3, 7))):
        name = data.draw(st.sampled_from(names))
        play(data.draw, ACTS, disks[name], Node(name, 30 + 10 * turn), most=3)
        written += [path for path in disks[name] if "/entries/" in path]
        hub, heads[name], disks[name] = synced(hub, heads[name], disks[name], Node(name, 35 + 10 * turn))
    for turn, name in enumerate([*names, *names]):
        hub, heads[name], disks[name] = synced(hub, heads[name], disks[name], Node(name, 500 + turn))
    assert all(disk == hub for disk in disks.values())
    assert set(written) <= hub.keys()


def synced(hub: Files, head: Files, disk: Files, node: Node) -> tuple[Files, Files, Files]:
    """The remote, the clone's head and its disk after a sync: one commit on top of the remote's."""
    sides = Sides(local=Side(node_id=node.name, at=node.at), remote=Side(node_id="hub", at=node.at - 1))
    files, _ = memory_merge_laws.merged(head, disk, hub, sides)
    return files, dict(files), dict(files)
