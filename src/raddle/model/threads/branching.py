"""Verbs on branches: list, compare, fork, promote, graft.

Owns what a branch is for a person: a line of conversation with a name, known by any message on it. Names and
archive marks hang on message ids, so they stay with the words they were given to when an offline reply that
comes late takes over a branch id.

Copies are of two kinds. A *new thread* shares its turns with the old one, ids and all: a turn that stands
in two threads is one turn. A *graft* makes turns of their own (`extra.copied_from`), for an id stands once
a thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread
from raddle.model.threads.visibility import PRIVATE

_CARRIED = ("workspace_root", "cwd", "git_remote_url", "model", "git", "git_initial")


class BranchRow(Struct, frozen=True, kw_only=True):
    """One branch as a list shows it. `under`: the message it leaves from (None: it starts at a root)."""

    id: str
    start: str
    tip: str
    length: int
    under: str | None = None
    fork_depth: int = 0
    name: str = ""
    is_archived: bool = False
    is_sidechain: bool = False
    is_current: bool = False
    """Does the thread's tip stand on it?"""


class Comparison(NamedTuple):
    """Two paths from the last message they share on: `fork` (None: they share none), and what follows in
    each.
    """

    fork: Message | None
    one: list[Message]
    other: list[Message]


def list_branches(thread: Thread) -> list[BranchRow]:
    """The shown branches, by the (order, id) of their starts."""
    tree = thread.tree
    tip = tree.tip()
    current = tree.branch_of(tip.id) if tip is not None else ""
    marks = _marks(thread)
    # A branch leaves from one that starts before it, so its depth is known without walking its path.
    depths: dict[str, int] = {}
    rows = []
    for branch in tree.branches():
        start = tree.get(branch.start)
        under = start.parent_id if start is not None else None
        depths[branch.id] = depths.get(tree.branch_of(under or ""), -1) + 1
        name = marks.get((branch.id, "name"))
        rows.append(
            BranchRow(
                id=branch.id,
                start=branch.start,
                tip=branch.tip,
                length=branch.length,
                under=under,
                fork_depth=depths[branch.id],
                name=name if isinstance(name, str) else "",
                is_archived=marks.get((branch.id, "is_archived")) is True,
                is_sidechain=start is not None and start.is_sidechain,
                is_current=branch.id == current,
            )
        )
    return rows


def _marks(thread: Thread) -> dict[tuple[str, str], object]:
    """(branch id, mark) -> value; where several messages of one branch are marked, the mark made last."""
    found: dict[tuple[str, str], tuple[int, str, object]] = {}
    for name, register in thread.family("branch"):
        message_id, _, mark = name.rpartition("/")
        branch_id = thread.tree.branch_of(message_id)
        made = (register.clock, message_id)
        if branch_id and made > found.get((branch_id, mark), (-1, ""))[:2]:
            found[branch_id, mark] = (*made, thread.shows(f"branch/{name}"))
    return {place: value for place, (_, _, value) in found.items()}


def compare(thread: Thread, one: str, other: str) -> Comparison:
    """Two leaves (or any two messages) from where their paths part. NotFound for an unknown message."""
    first, second = _path(thread, one), _path(thread, other)
    shared = _shared(first, second)
    return Comparison(first[shared - 1] if shared else None, first[shared:], second[shared:])


def fork_into(
    new: Editor, source: Thread, message_id: str | None = None, *, title: str = ""
) -> list[Message]:
    """Fill a new thread with the path to a message of `source`, or with all that shows in it (None).

    Turns keep their ids. The new thread is its editor's own: it has none of the old one's drafts, jobs and
    marks and is not public; what was private stays private. NotFound for an unknown message, InvalidInput
    where there is nothing to copy.
    """
    chosen = list(source.tree.shown()) if message_id is None else _path(source, message_id)
    return _fill(new, source, chosen, message_id, title or source.title)


def promote_into(new: Editor, source: Thread, message_id: str, *, title: str = "") -> list[Message]:
    """Fill a new thread with the branch that a message stands on: the path that leads there, and all that
    shows under the branch's start. Turns keep their ids; the old thread keeps them too. Errors as for
    `fork_into`.
    """
    tree = source.tree
    path = _path(source, message_id)
    line = tree.branch_of(message_id)
    start = next(message for message in path if tree.branch_of(message.id) == line)
    under = [message for message in tree.below(start.id) if not tree.is_removed(message.id)]
    name = _marks(source).get((line, "name"))
    chosen = [*tree.path_to_root(start.parent_id), *under]
    return _fill(
        new, source, chosen, message_id, title or (name if isinstance(name, str) else "") or source.title
    )


def graft(
    editor: Editor, leaf: str, under: str | None, *, source: Thread | None = None, start: str | None = None
) -> list[Message]:
    """Copy a path under another message (None: as a new root); the copies, the first one first.

    The path ends at `leaf`, in `source` or in the editor's own thread. It begins at `start`, else where it
    parts from the path to `under`. Copies are new turns of the editor's device, with `extra.copied_from`;
    they carry no usage, for nothing was spent on them. Purged and removed turns are passed over. NotFound
    for an unknown message, InvalidInput where `start` is not on the path or nothing is left to copy.
    """
    source = source or editor.thread
    path = _path(source, leaf)
    if start is not None:
        begin = next((n for n, message in enumerate(path) if message.id == start), None)
        if begin is None:
            raise InvalidInput(
                f"{start!r} is not on the path to {leaf!r}", "start at a message above the leaf"
            )
    else:
        begin = _shared(path, editor.thread.tree.path_to_root(under)) if source.id == editor.thread.id else 0
    chosen = [m for m in path[begin:] if not m.is_purged and not source.tree.is_removed(m.id)]
    if not chosen:
        raise InvalidInput(f"nothing of the path to {leaf!r} is left to copy", "name another leaf or start")
    copies: list[Message] = []
    for message in chosen:
        copies.append(_copy(editor, message, copies[-1].id if copies else under, source.id))
    return copies


def _copy(editor: Editor, message: Message, parent_id: str | None, thread_id: str) -> Message:
    return editor.add(
        parent_id,
        message.role,
        message.content,
        author=message.author,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        tool_name=message.tool_name,
        is_error=message.is_error,
        thinking=message.thinking,
        attachments=message.attachments,
        provider=message.provider,
        model=message.model,
        policy_id=message.policy_id,
        kind=message.kind,
        extra={"copied_from": {"thread_id": thread_id, "message_id": message.id}},
    )


def _fill(
    new: Editor, source: Thread, messages: Iterable[Message], message_id: str | None, title: str
) -> list[Message]:
    copied = [message for message in messages if not source.tree.is_removed(message.id)]
    if not copied:
        raise InvalidInput(
            f"thread {source.id} has no turn to copy", "choose a thread with at least one turn"
        )
    if source.is_private:
        new.set_private(True)
    if source.visibility == PRIVATE:
        new.set_visibility(PRIVATE)
    new.start()
    for path in _CARRIED:
        new.write(path, source.shows(path))
    for tag in source.tags:
        new.tag(tag)
    new.rename(title)
    tip = message_id or copied[-1].id
    new.write("x/metadata/extra/forked_from", {"thread_id": source.id, "message_id": tip})
    for message in copied:
        new.put(message)
    return copied


def _path(thread: Thread, message_id: str) -> list[Message]:
    if message_id not in thread.tree:
        raise NotFound("message", message_id, f"`raddle show {thread.id} --tree` lists them")
    return thread.tree.path_to_root(message_id)


def _shared(one: list[Message], other: list[Message]) -> int:
    """How many messages two paths have in common from the root on."""
    pairs = zip(one, other, strict=False)
    return next(
        (n for n, (left, right) in enumerate(pairs) if left.id != right.id), min(len(one), len(other))
    )
