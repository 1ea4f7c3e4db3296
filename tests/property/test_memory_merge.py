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
    line = [first_files()]
    bases = dict.fromkeys(names, 0)
    disks = {name: dict(line[0]) for name in names}
    written: list[str] = []
    for turn in range(data.draw(st.integers(3, 7))):
        name = data.draw(st.sampled_from(names))
        play(data.draw, ACTS, disks[name], Node(name, 30 + 10 * turn), most=3)
        written += [path for path in disks[name] if "/entries/" in path]
        sync(line, bases, disks, Node(name, 35 + 10 * turn))
        if turn == 2 and data.draw(st.booleans()):  # somebody pushes an older state by force
            del line[data.draw(st.integers(1, len(line))) :]
            bases = {name: min(base, len(line) - 1) for name, base in bases.items()}
    for turn, name in enumerate([*names, *names]):
        sync(line, bases, disks, Node(name, 500 + turn))
    assert all(disk == line[-1] for disk in disks.values())
    assert set(written) <= line[-1].keys()
    memory_merge_laws.check_artifacts_lead_to_their_bytes(line[-1])


def sync(line: list[Files], bases: dict[str, int], disks: dict[str, Files], node: Node) -> None:
    """One commit on top of the remote's line; `bases`: up to where a clone has it."""
    sides = Sides(local=Side(node_id=node.name, at=node.at), remote=Side(node_id="hub", at=node.at - 1))
    files, _ = memory_merge_laws.merged(line[bases[node.name]], disks[node.name], line[-1], sides)
    if files != line[-1]:
        line.append(files)
    bases[node.name] = len(line) - 1
    disks[node.name] = dict(files)
