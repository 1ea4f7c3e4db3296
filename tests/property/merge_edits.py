"""Everything that the state machine's people do to a thread, and what must hold at once where they did it.

Each story takes a replica and a number that picks among the turns, names or values there are. A story that
finds nothing to do does nothing.
"""

from __future__ import annotations

from raddle.model.threads.adopt import adopt, first_sight
from raddle.model.threads.agent_state import AGENT_STATE_KINDS, AgentState, PendingToolCall
from raddle.model.threads.codec import decode_file
from raddle.model.threads.deletion import is_real_device
from raddle.model.threads.delta import Delta
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.message import Message
from raddle.model.threads.thread import diff
from raddle.model.threads.visibility import VISIBILITIES
from tests.property.merge_laws import state_of
from tests.property.merge_oracle import law
from tests.property.merge_replica import Replica, Story
from tests.property.merge_sources import LEGACY_COPIES, RECORDS, imported, rewritten_by_the_seed

ROLES = ("user", "assistant", "user")
JOBS = ("job-0", "job-1")
NAMES = ("alpha", "beta")


def _pick(replica: Replica, number: int) -> Message | None:
    """One of the turns there are, the newest first."""
    messages = list(replica.thread.tree)
    return messages[-1 - number % len(messages)] if messages else None


def _settled(replica: Replica, path: str) -> None:
    asked = [conflict.path for conflict in replica.thread.conflicts]
    law(path not in asked, "writing once more settles a conflict", path)


def append(replica: Replica, number: int) -> None:
    was_deleted = replica.thread.is_deleted
    with replica.edit() as editor:
        was_tip = replica.thread.tree.tip()
        new = editor.append(ROLES[number % 3], f"words {replica.world.count()}")
    replica.say(f"append {new.id} under {new.parent_id}")
    if was_deleted:
        law(not replica.thread.is_deleted, "an edit brings a deleted thread back")
        _settled(replica, "deleted")
    tree = replica.thread.tree
    tip = tree.tip()
    law(tip is not None and tip.id == new.id, "a new turn is the tip")
    law(new.parent_id == (was_tip.id if was_tip else None), "an append answers the tip")


def reply(replica: Replica, number: int) -> None:
    parent = _pick(replica, number)
    if parent is None:
        return
    tree = replica.thread.tree
    is_first = tree.is_leaf(parent.id) and not tree.is_removed(parent.id) and not parent.is_sidechain
    with replica.edit() as editor:
        new = editor.reply(parent.id, ROLES[number % 3], f"words {replica.world.count()}")
    replica.say(f"reply {new.id} under {parent.id}")
    law(new.order > parent.order, "a reply comes after what it answers")
    continues = tree.branch_of(new.id) == tree.branch_of(parent.id)
    law(continues == is_first, "the first reply continues, the second forks", new.id, parent.id)
    tip = tree.tip()
    law(tip is not None and tip.id == new.id, "a new turn is the tip")


def sidechain(replica: Replica, number: int) -> None:
    parent = _pick(replica, number)
    if parent is None:
        return
    tree = replica.thread.tree
    was_leaf, before = tree.is_leaf(parent.id), tree.tip()
    is_first = was_leaf and not tree.is_removed(parent.id) and parent.is_sidechain
    with replica.edit() as editor:
        new = editor.reply(parent.id, "assistant", f"aside {replica.world.count()}", is_sidechain=True)
    replica.say(f"sidechain {new.id} under {parent.id}")
    after = tree.tip()
    if not tree.is_removed(parent.id) and before is not None and parent.order <= before.order:
        law(after == before or parent.id in replica.thread.removed_messages, "a sidechain is never the tip")
    continues = tree.branch_of(new.id) == tree.branch_of(parent.id)
    law(continues == is_first, "a sidechain has a branch of its own, and stays on it", new.id, parent.id)
    if not parent.is_sidechain:
        law(tree.is_leaf(parent.id) == was_leaf, "a sidechain is no reply")


def new_root(replica: Replica, number: int) -> None:
    with replica.edit() as editor:
        new = editor.reply(None, "user", f"root {replica.world.count()}")
    replica.say(f"root {new.id}")
    law(replica.thread.tree.branch_of(new.id) == new.id, "a new root starts a branch")


def rollback(replica: Replica, number: int) -> None:
    shown = list(replica.thread.tree.shown())
    with replica.edit() as editor:
        went = editor.rollback_last_user_turn()
    replica.say(f"rollback: {went}")
    if went:
        last = shown[-1]
        law(replica.thread.tree.is_removed(last.id), "what was rolled back is hidden")
        drafts = replica.thread.drafts.get(replica.device_id, {})
        law(last.content in drafts.get(last.parent_id or "root", ""), "a rollback gives the text back")


def undo(replica: Replica, number: int) -> None:
    before = [message.id for message in replica.thread.tree.shown()]
    with replica.edit() as editor:
        taken = editor.undo(1 + number % 2)
    replica.say(f"undo {taken}")
    after = {message.id for message in replica.thread.tree.shown()}
    law(not after & set(taken), "an undo hides the turns it took", taken)
    kept = set(before) - set(replica.thread.removed_messages)
    law(after >= kept, "an undo hides nothing else", kept - after)


def redo(replica: Replica, number: int) -> None:
    with replica.edit() as editor:
        back = editor.redo(1 + number % 2)
    replica.say(f"redo {back}")
    shown = {message.id for message in replica.thread.tree.shown()}
    law(shown >= set(back), "a redo shows the turns it brought back", back)


def purge(replica: Replica, number: int) -> None:
    message = _pick(replica, number)
    if message is None:
        return
    with replica.edit() as editor:
        editor.purge([message.id])
    replica.say(f"purge {message.id}")
    held = replica.thread.tree.get(message.id)
    law(held is not None and held.content == "", "the words of a purged turn are gone")


def rename(replica: Replica, number: int) -> None:
    title = f"title {'abc'[number % 3]}"
    with replica.edit() as editor:
        editor.rename(title)
    replica.say(f"rename {title!r}")
    law(replica.thread.title == title, "an own edit takes effect", replica.thread.title, title)
    _settled(replica, "title")


def pin(replica: Replica, number: int) -> None:
    with replica.edit() as editor:
        editor.pin(bool(number % 2))
    replica.say(f"pin {bool(number % 2)}")
    law(replica.thread.is_pinned == bool(number % 2), "an own edit takes effect")


def archive(replica: Replica, number: int) -> None:
    with replica.edit() as editor:
        editor.archive(bool(number % 2))
    replica.say(f"archive {bool(number % 2)}")
    law(replica.thread.is_archived == bool(number % 2), "an own edit takes effect")


def git(replica: Replica, number: int) -> None:
    head = f"{number % 3}" * 7
    snapshot = GitSnapshot(branch=f"branch-{number % 2}", head=head, is_dirty=bool(number % 2))
    with replica.edit() as editor:
        editor.snapshot_git(snapshot, [f"{number % 4}" * 6])
    replica.say(f"git {snapshot.branch} {head}")
    shown = replica.thread.plain("git_branch"), replica.thread.plain("git_current_commit_sha")
    law(shown == (snapshot.branch, head), "an own snapshot takes effect, whole", shown)


def agent_state(replica: Replica, number: int) -> None:
    calls = tuple(PendingToolCall(call_id=f"c{call}") for call in range(number % 3))
    state = AgentState(kind=AGENT_STATE_KINDS[number % 7], retries=number, pending_tool_calls=calls)
    with replica.edit() as editor:
        editor.set_agent_state(state)
    replica.say(f"agent state {state.kind}")
    law(replica.thread.agent_state == state, "an own edit takes effect")


def model(replica: Replica, number: int) -> None:
    with replica.edit() as editor:
        editor.set_model(f"provider-{number % 3}", f"model-{number % 3}")
    replica.say(f"model {number % 3}")
    shown = replica.thread.plain("provider"), replica.thread.plain("model")
    law(shown == (f"provider-{number % 3}", f"model-{number % 3}"), "an own edit takes effect", shown)


def visibility(replica: Replica, number: int) -> None:
    wanted = VISIBILITIES[number % 3]
    with replica.edit() as editor:
        editor.set_visibility(wanted)
    replica.say(f"visibility {wanted}")
    law(replica.thread.visibility == wanted, "an own edit takes effect", replica.thread.visibility, wanted)
    _settled(replica, "visibility")


def support(replica: Replica, number: int) -> None:
    with replica.edit() as editor:
        editor.share_with_support(bool(number % 2))
    replica.say(f"support {bool(number % 2)}")
    law(replica.thread.is_shared_with_support == bool(number % 2), "an own edit takes effect")


def private(replica: Replica, number: int) -> None:
    with replica.edit() as editor:
        editor.set_private(bool(number % 2))
    replica.say(f"private {bool(number % 2)}")
    law(replica.thread.is_private == bool(number % 2), "an own edit takes effect")


def tag(replica: Replica, number: int) -> None:
    name = NAMES[number % 2]
    with replica.edit() as editor:
        editor.tag(name)
    replica.say(f"tag {name}")
    law(name in replica.thread.tags, "an own edit takes effect")


def untag(replica: Replica, number: int) -> None:
    name = NAMES[number % 2]
    with replica.edit() as editor:
        editor.untag(name)
    replica.say(f"untag {name}")
    law(name not in replica.thread.tags, "an own edit takes effect")


def draft(replica: Replica, number: int) -> None:
    parent = _pick(replica, number) if number % 4 else None
    text = f"draft {replica.world.count()}" if number % 3 else ""
    with replica.edit() as editor:
        editor.set_draft(parent.id if parent else None, text)
    replica.say(f"draft {text!r} under {parent.id if parent else 'root'}")
    shown = replica.thread.drafts.get(replica.device_id, {}).get(parent.id if parent else "root", "")
    law(shown == text, "an own draft is as it was typed", shown, text)


def clear_draft(replica: Replica, number: int) -> None:
    drafts = [(device, target) for device, targets in replica.thread.drafts.items() for target in targets]
    if drafts:
        device, target = drafts[number % len(drafts)]
        with replica.edit() as editor:
            editor.clear_draft(device, None if target == "root" else target)
        replica.say(f"clear draft of {device} under {target}")
        law(target not in replica.thread.drafts.get(device, {}), "a cleared draft is gone")


def launch(replica: Replica, number: int) -> None:
    parent, job_id = _pick(replica, number), JOBS[number % 2]
    if parent is None or any(message.job_id == job_id for message in replica.thread.tree):
        return
    with replica.edit() as editor:
        editor.launch_job(job_id, parent.id, "someone")
    replica.say(f"launch {job_id} under {parent.id}")
    law(job_id in [job.job_id for job in replica.thread.pending_jobs], "a launched job is pending")


def land(replica: Replica, number: int) -> None:
    job_id = JOBS[number % 2]
    entry = replica.thread.shows(f"job/{job_id}")
    if entry is None:
        return
    with replica.edit() as editor:
        editor.land_job(job_id, f"result of {job_id}")
        editor.land_job(job_id, f"result of {job_id}")
    replica.say(f"land {job_id}")
    landed = [message for message in replica.thread.tree if message.job_id == job_id]
    law(len(landed) <= 1, "a job lands once", job_id)
    law(job_id not in [job.job_id for job in replica.thread.pending_jobs], "a landed job is not pending")


def clear_job(replica: Replica, number: int) -> None:
    job_id = JOBS[number % 2]
    with replica.edit() as editor:
        editor.clear_job(job_id)
    replica.say(f"clear {job_id}")
    law(job_id not in [job.job_id for job in replica.thread.pending_jobs], "a cleared job is not pending")


def delete(replica: Replica, number: int) -> None:
    with replica.edit() as editor:
        editor.delete()
    replica.say("delete")
    law(replica.thread.is_deleted, "an own delete takes effect")


def restore(replica: Replica, number: int) -> None:
    with replica.edit() as editor:
        editor.restore()
    replica.say("restore")
    law(not replica.thread.is_deleted, "a restore brings the thread back")


def name_branch(replica: Replica, number: int) -> None:
    message = _pick(replica, number)
    if message is not None:
        with replica.edit() as editor:
            editor.name_branch(message.id, NAMES[number % 2])
        replica.say(f"name the branch of {message.id}")
        marks = replica.thread.branch_marks[message.id]
        law(marks["name"] == NAMES[number % 2], "an own edit takes effect")


def migrate(replica: Replica, number: int) -> None:
    """A machine that holds nothing yet opens its own legacy copy of the thread."""
    if replica.heard:
        return
    found = first_sight(decode_file(LEGACY_COPIES[number % 3]))
    _take_in(replica, found.whole())
    replica.say(f"migrate copy {number % 3}")


def reimport(replica: Replica, number: int) -> None:
    """The importer reads as many records of the session as there are by now."""
    messages, registers = imported(replica.thread, 1 + number % RECORDS)
    _take_in(replica, Delta(messages=tuple(messages), registers=registers))
    replica.say(f"import {1 + number % RECORDS} records")


def _take_in(replica: Replica, delta: Delta) -> None:
    """Join what several machines may find alike, as one edit wherever it is found."""
    world = replica.world
    for message in delta.messages:
        replica.heard |= world.find(f"message/{message.id}", message.rev, "")
    for path, register in delta.registers.items():
        for write in register.writes:
            if not is_real_device(write.device):
                replica.heard |= world.find(path, write.n, write.device)
    if replica.thread.join(Delta(messages=delta.messages, registers=delta.registers)):
        replica.thread.join(Delta(version=max(replica.thread.version + 1, delta.version)))


def seed_opens(replica: Replica, number: int) -> None:
    """A program of the first seed loads the file and saves it as it was."""
    decoded = decode_file(rewritten_by_the_seed(replica.thread))
    adopted = adopt(replica.thread, decoded, replica.author)
    law(state_of(adopted) == state_of(replica.thread), "an untouched rewrite changes nothing")
    law(adopted.version == replica.thread.version, "an untouched rewrite is no edit")
    replica.say("the seed's program rewrites the file, untouched")


def seed_edits(replica: Replica, number: int) -> None:
    """A program of the first seed loads the file, edits, and saves it."""
    changes = (
        {"title": f"seed's {number}"},
        {"turn": f"seed's turn {replica.world.count()}"},
        {"tag": "seed"},
        {"is_pinned": not replica.thread.is_pinned},
    )[number % 4]
    decoded = decode_file(rewritten_by_the_seed(replica.thread, **changes))
    adopted = adopt(replica.thread, decoded, replica.author)
    changed = diff(replica.thread, adopted)
    replica.keep(changed)
    replica.thread.join(changed)
    replica.say(f"the seed's program edits the file: {changes}")
    thread = replica.thread
    law(changes.get("title", thread.title) == thread.title, "an edit by the seed's program shows")
    law(changes.get("is_pinned", thread.is_pinned) == thread.is_pinned, "an edit by the seed's program shows")
    law("tag" not in changes or "seed" in thread.tags, "an edit by the seed's program shows")
    if "turn" in changes:
        law(changed.messages[0].content == changes["turn"], "a turn by the seed's program is taken in")
    law(len(changed.messages) == ("turn" in changes), "a rewrite by the seed's program adds what it adds")


STORIES: dict[str, Story] = {
    story.__name__: story
    for story in (
        *(append, reply, sidechain, new_root, rollback, undo, redo, purge),
        *(rename, pin, archive, git, agent_state, model, visibility, support, private, tag, untag),
        *(draft, clear_draft, launch, land, clear_job, delete, restore, name_branch),
        *(migrate, reimport, seed_opens, seed_edits),
    )
}

STORIES_THAT_MEET: tuple[tuple[str, ...], ...] = (
    ("append", "reply", "new_root", "sidechain"),
    ("append", "reply", "undo", "redo", "rollback"),
    ("append", "launch", "land", "clear_job"),
    ("append", "draft", "clear_draft", "rollback"),
    ("append", "delete", "restore", "rename", "tag"),
    ("launch", "land", "delete", "reply"),
    ("append", "private", "rename", "draft"),
    ("rename", "pin", "visibility", "support"),
    ("tag", "untag", "git", "agent_state", "model", "archive"),
    ("reimport", "reply", "undo", "rename", "delete"),
    ("migrate", "append", "rename", "seed_edits"),
    ("append", "reply", "seed_edits", "seed_opens", "undo", "rename"),
    ("append", "reply", "purge", "name_branch"),
    ("launch", "land", "purge", "reply"),
    ("rename",),
    ("visibility", "private"),
)
"""Stories that have to do with one another."""
