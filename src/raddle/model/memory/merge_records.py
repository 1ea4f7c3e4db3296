"""Two versions of a run or a project as one, field by field: each field has one rule, and the rule stands here.

Nothing of either side is taken away; what both changed to two things no rule decides is the later side's, and named
as a clash, so that the caller keeps the other version beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from raddle.model.errors import ConflictError
from raddle.model.memory.merge_sides import Settled, earliest, latest, pick, replaced, settled_field
from raddle.model.memory.project import Project
from raddle.model.memory.run import PHASE_STATUSES, RUN_STATUSES, Run, Stint
from raddle.model.three_way import keys_of_both, merge_mappings, merge_sequences


def merge_runs(base: Run | None, local: Run, remote: Run, settle: Settled) -> Run:
    """Status and phases by their order where both moved them on; every phase and every stint of either side."""
    older = base or Run(run_id="")
    return replaced(
        local,
        run_id=settled_field(settle, "run_id", older.run_id, local.run_id, remote.run_id),
        status=pick(older.status, local.status, remote.status, _weightier(RUN_STATUSES)),
        parent_run_id=settled_field(
            settle, "parent_run_id", older.parent_run_id, local.parent_run_id, remote.parent_run_id
        ),
        phases=_merge_phases(older.phases, local.phases, remote.phases),
        nodes=_merge_stints(older.nodes, local.nodes, remote.nodes, settle),
        created_ts=earliest(local.created_ts, remote.created_ts),
        unknown=merge_mappings(older.unknown, local.unknown, remote.unknown, settle),
    )


def merge_projects(base: Project | None, local: Project, remote: Project, settle: Settled) -> Project:
    """Every phase of either side; `publish` as the more careful one has it. ConflictError: these are two projects."""
    if local.project_id != remote.project_id:
        raise ConflictError(
            f"this store is of project {local.project_id!r}, its remote of {remote.project_id!r}",
            "give the store a remote of its own",
        )
    older = base or Project(project_id="", phases=())
    publish = _more_careful(local.publish, remote.publish)
    return replaced(
        local,
        name=settled_field(settle, "name", older.name, local.name, remote.name),
        phases=pick(
            older.phases,
            local.phases,
            remote.phases,
            lambda one, other: merge_sequences(older.phases, one, other),
        ),
        created_ts=earliest(local.created_ts, remote.created_ts),
        publish=pick(base.publish, local.publish, remote.publish, _more_careful) if base else publish,
        blobs=merge_mappings(older.blobs, local.blobs, remote.blobs, settle, ("blobs",)),
        unknown=merge_mappings(older.unknown, local.unknown, remote.unknown, settle),
    )


def _merge_phases(base: dict[str, str], local: dict[str, str], remote: dict[str, str]) -> dict[str, str]:
    weightier = _weightier(PHASE_STATUSES)
    return {
        phase: pick(base.get(phase), local[phase], remote[phase], weightier)
        if phase in local and phase in remote
        else local.get(phase, remote.get(phase, ""))
        for phase in keys_of_both(base, local, remote)
    }


def _merge_stints(
    base: Sequence[Stint], local: Sequence[Stint], remote: Sequence[Stint], settle: Settled
) -> tuple[Stint, ...]:
    """Every stint of either side, in the order in which they joined."""
    before, here, there = _by_stint(base), _by_stint(local), _by_stint(remote)
    merged = {**there, **here}
    for key in here.keys() & there.keys():
        merged[key] = _merge_stint(before.get(key), here[key], there[key], settle)
    return tuple(merged[key] for key in sorted(merged, key=lambda key: (key[1], key[0], key[2])))


def _by_stint(stints: Sequence[Stint]) -> dict[tuple[str, str, int], Stint]:
    """By node and time; where a node joined twice at one time, by which of them it is."""
    found: dict[tuple[str, str, int], Stint] = {}
    for stint in stints:
        count = 0
        while (stint.node_id, stint.joined, count) in found:
            count += 1
        found[stint.node_id, stint.joined, count] = stint
    return found


def _merge_stint(base: Stint | None, local: Stint, remote: Stint, settle: Settled) -> Stint:
    older = base or Stint(node_id="", joined="")
    return replaced(
        local,
        host=settled_field(settle, "host", older.host, local.host, remote.host),
        left=pick(older.left, local.left, remote.left, _later_leave),
        unknown=merge_mappings(older.unknown, local.unknown, remote.unknown, settle, ("nodes",)),
    )


def _later_leave(one: str | None, other: str | None) -> str | None:
    return latest(one or "", other or "") or None


def _weightier(order: Sequence[str]) -> Callable[[str, str], str]:
    """The one that stands later in `order`; a word that is not in it weighs least."""

    def choose(one: str, other: str) -> str:
        return max(one, other, key=lambda word: (order.index(word) if word in order else -1, word))

    return choose


def _more_careful(one: bool | None, other: bool | None) -> bool | None:
    """Never before unsaid before ever."""
    return min(one, other, key=lambda publish: {False: 0, None: 1, True: 2}[publish])
