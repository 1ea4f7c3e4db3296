"""The laws of the merge, each over one replica (or hub) and what it has heard of; the state machine asks them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from raddle.model.ids import canonical_json
from raddle.model.threads.delta import encode_register
from raddle.model.threads.message import Message
from raddle.model.threads.message_codec import encode_message
from raddle.model.threads.quorum import decode_quorum, encode_quorum
from raddle.model.threads.thread import Thread
from tests.property.merge_oracle import History, law

LATEST_WINS = ("title", "is_pinned", "is_archived", "model", "git", "git_initial", "agent_state")
ASKED_ABOUT = ("title", "is_pinned", "visibility", "is_shared_with_support")


def state_of(thread: Thread) -> bytes:
    """All of a thread but its version, as bytes that are equal only for equal states."""
    return canonical_json(
        [
            [encode_message(message) for message in thread.tree],
            {path: encode_register(register) for path, register in thread.registers.items()},
        ]
    )


def readings_of(thread: Thread) -> dict[str, Any]:
    """Everything that shows of a thread."""
    tree = thread.tree
    tip = tree.tip()
    return {
        "shown": [message.id for message in tree.shown()],
        "tip": tip.id if tip is not None else None,
        "branches": tree.branches(),
        "branch_of": {message.id: tree.branch_of(message.id) for message in tree},
        "children": {message.id: [child.id for child in tree.children(message.id)] for message in tree},
        "leaves": [message.id for message in tree if tree.is_leaf(message.id)],
        "lost": [message.id for message in tree.lost()],
        "title": thread.title,
        "tags": thread.tags,
        "flags": [
            thread.is_pinned,
            thread.is_archived,
            thread.is_private,
            thread.is_shared_with_support,
            thread.visibility,
        ],
        "removed": thread.removed_messages,
        "drafts": thread.drafts,
        "jobs": thread.pending_jobs,
        "commits": thread.git_commits,
        "deleted_at": thread.deleted_at,
        "edit_clock": thread.edit_clock,
        "conflicts": thread.conflicts,
        "marks": thread.branch_marks,
        "summary": thread.summary(),
    }


def check_replica(thread: Thread, history: History, heard: int) -> None:
    """Every law about what one replica holds and shows."""
    kept = check_messages(thread, history, heard)
    check_tree(thread)
    check_registers(thread, history, heard)
    check_families(thread, history, heard)
    check_conflicts(thread, history, heard, kept)


def check_messages(thread: Thread, history: History, heard: int) -> dict[str, Message]:
    """No turn is lost, none comes from nowhere, and of several forms of one the right one is held."""
    expected = history.messages(heard)
    kept = {message.id: message for message in thread.tree}
    law(kept.keys() >= expected.keys(), "no turn is lost", sorted(expected.keys() - kept.keys()))
    law(kept.keys() <= expected.keys(), "no turn comes from nowhere", sorted(kept.keys() - expected.keys()))
    for message_id, message in kept.items():
        forms = expected[message_id]
        purged = any(form.is_purged for form in forms)
        law(message.is_purged == purged, "a purged turn stays purged", message_id)
        if purged:
            forms = [form.purged() for form in forms]
        law(message in forms, "a turn is held as somebody wrote it", message_id)
        if not purged:
            law(message.rev == max(form.rev for form in forms), "the fuller form of a turn wins", message_id)
    landed = [(message.job_id, message.content) for message in kept.values() if message.job_id]
    law(len(landed) == len(set(landed)), "a result lands once", landed)
    return kept


def check_tree(thread: Thread) -> None:
    """The shape of what shows."""
    tree = thread.tree
    shown = {message.id for message in tree.shown()}
    removed = set(thread.removed_messages)
    for message in tree:
        law(message.id in shown or message.id in removed, "what nobody removed is shown", message.id)
        if message.parent_id is None:
            continue
        parent = tree.get(message.parent_id)
        law(parent is not None, "no turn is an orphan", message.id)
        law(tree.key(message.parent_id) < tree.key(message.id), "a parent comes before its child", message.id)
        if message.id in shown:
            law(message.parent_id in shown, "a shown reply has a shown parent", message.id)
    _check_hidden(thread, shown, removed)
    _check_branches(thread)
    tip = tree.tip()
    outside = [message.id for message in tree.shown() if not message.is_sidechain]
    law((tip.id if tip else None) == (outside[-1] if outside else None), "the tip is the last shown turn")


def _check_hidden(thread: Thread, shown: set[str], removed: set[str]) -> None:
    """A removed turn shows only for the sake of what is shown under it."""
    answered = {message.parent_id for message in thread.tree if message.id in shown}
    idle = {message_id for message_id in shown & removed if message_id not in answered}
    law(not idle, "a removed turn without shown replies is hidden", sorted(idle))


def _check_branches(thread: Thread) -> None:
    """At most one child continues a branch, and each branch id starts once."""
    tree = thread.tree
    starts: list[str] = []
    for message in tree:
        branch = tree.branch_of(message.id)
        if message.parent_id is None or branch != tree.branch_of(message.parent_id):
            starts.append(branch)
        going_on = [
            child.id
            for child in tree.children(message.id, removed=True)
            if tree.branch_of(child.id) == branch
        ]
        law(len(going_on) <= 1, "at most one child continues a branch", message.id, going_on)
    law(len(starts) == len(set(starts)), "each branch id starts once", starts)


def check_registers(thread: Thread, history: History, heard: int) -> None:
    """What shows of the registers with a path of their own."""
    for path in LATEST_WINS:
        values = history.values(path, heard)
        shown = thread.shows(path)
        if values:
            law(
                any(canonical_json(shown) == canonical_json(value) for value in values),
                f"{path} shows a value that nobody has replaced",
                shown,
                values,
            )
        else:
            law(shown is None, f"{path} shows nothing that nobody wrote", shown)
    law(thread.visibility == history.visibility(heard), "the narrowest visibility shows", thread.visibility)
    law(thread.is_private == history.is_private(heard), "private while any value says so", thread.is_private)
    support = history.values("is_shared_with_support", heard)
    law(
        thread.is_shared_with_support == (bool(support) and all(support)),
        "support reads only where all values say so",
        support,
    )


def check_families(thread: Thread, history: History, heard: int) -> None:
    """Tags, commits, removals, jobs and drafts."""
    tags = history.true_names(heard, "tag/", by_all=False)
    law(thread.tags == tags, "a tag is there while any value says so", thread.tags, tags)
    commits = history.true_names(heard, "commit/", by_all=False)
    law(sorted(thread.git_commits) == commits, "no commit is lost", thread.git_commits, commits)
    removed = history.removed(heard)
    law(thread.removed_messages == removed, "removed only where all say so", thread.removed_messages, removed)
    jobs = sorted(job.job_id for job in thread.pending_jobs)
    law(jobs == history.jobs(heard), "pending are the jobs neither landed nor cleared", jobs)
    expected = history.drafts(heard)
    law(
        thread.drafts.keys() == expected.keys(),
        "drafts are exactly the unsettled ones",
        thread.drafts,
        expected,
    )
    for device, targets in thread.drafts.items():
        law(targets.keys() == expected[device].keys(), "drafts are exactly the unsettled ones", device)
        for target, text in targets.items():
            parts = {part for draft in expected[device][target] for part in draft.split("\n\n")}
            law(set(text.split("\n\n")) == parts, "a draft is exactly its unsettled texts", text, parts)


def check_conflicts(thread: Thread, history: History, heard: int, kept: dict[str, Message]) -> None:
    """A person is asked about exactly the unsettled writes; a delete holds only where no edit was missed."""
    is_deleted = history.is_deleted(heard, kept)
    law(thread.is_deleted == is_deleted, "a delete holds where it knew every edit", thread.is_deleted)
    asked = {
        conflict.path: sorted({canonical_json(value) for value in conflict.values})
        for conflict in thread.conflicts
    }
    expected = {path: found for path in ASKED_ABOUT if (found := history.conflict(path, heard))}
    deletes = history.values("deleted", heard)
    if any(value is not None for value in deletes) and not is_deleted:
        expected["deleted"] = sorted({canonical_json(value) for value in deletes})
    law(asked == expected, "conflicts are exactly the unsettled writes", asked, expected)


def check_in_order(thread: Thread) -> None:
    """Messages stand in (order, id) order, each once."""
    keys = [thread.tree.key(message.id) for message in thread.tree]
    law(all(one < other for one, other in pairwise(keys)), "messages stand in order, each once")


def check_second_seed(thread: Thread) -> None:
    """A file for the second seed's program reads back as what shows, on the same branches."""
    read = decode_quorum(encode_quorum(thread)).thread()
    shown = [message for message in thread.tree.shown() if not message.is_sidechain]
    mine = [(message.role, message.content, thread.tree.branch_of(message.id)) for message in shown]
    theirs = [(message.role, message.content, read.tree.branch_of(message.id)) for message in read.tree]
    law(mine == theirs, "a file for the second seed's program keeps turns and branches", mine, theirs)
    law(not read.tree.lost(), "a file for the second seed's program has no orphans")
