"""What a person does to one thread: each verb loads nothing it need not, edits once, and says what it did.

Every change goes through the store's `edit`, which holds the thread's lock and works on its newest state, so
that a verb never writes an older copy of a thread over a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from raddle.actions.ports import ThreadStore
from raddle.model.errors import Ambiguous, InvalidInput, NotFound
from raddle.model.ids import parse_message_id
from raddle.model.threads.branching import fork_into, promote_into
from raddle.model.threads.branching import graft as graft_path
from raddle.model.threads.edits import Editor
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.message import TURN, Attachment, Message
from raddle.model.threads.thread import Thread

TIP = "tip"
ROOT = "root"
_LEAST_END = 6
"""An id may be named by its end from so many characters on, which no start of another is likely to be."""

Rule = Callable[[Thread], bool]


def never(_: Thread) -> bool:
    """The rule that holds of no thread."""
    return False


def start_thread(
    threads: ThreadStore,
    text: str,
    *,
    title: str = "",
    role: str = "user",
    workspace_root: str | None = None,
    cwd: str | None = None,
    client_version: str = "",
    git: GitSnapshot | None = None,
    is_private: bool = False,
    attachments: tuple[Attachment, ...] = (),
) -> tuple[str, Message]:
    """A new thread with its first turn; a private one is so from its first byte. (thread id, message)."""
    if not text.strip() and not attachments:
        raise InvalidInput("a thread needs a first turn", "say it as TEXT, or give it on stdin with -")
    with threads.create() as editor:
        if is_private:
            editor.set_private(True)
        editor.start(workspace_root=workspace_root, cwd=cwd, client_version=client_version)
        editor.snapshot_git(git)
        if title:
            editor.rename(title)
        message = editor.reply(None, role, text, attachments=attachments)
        return editor.thread.id, message


def reply(
    threads: ThreadStore,
    thread_id: str,
    text: str,
    *,
    parent: str = TIP,
    role: str = "user",
    author: str = "",
    attachments: tuple[Attachment, ...] = (),
) -> Message:
    """A turn under `parent`: a message id or its start, `tip`, or `root` for a new line of conversation.

    `author`: who says it, where that is not this device's person."""
    if not text.strip() and not attachments:
        raise InvalidInput("a turn needs some text", "say it as TEXT, or give it on stdin with -")
    said: dict[str, Any] = {"attachments": attachments, **({"author": author} if author else {})}
    if parent == TIP:
        return threads.append(thread_id, role, text, **said)
    with threads.edit(thread_id) as editor:
        parent_id = None if parent == ROOT else find_message(editor.thread, parent).id
        return editor.reply(parent_id, role, text, **said)


def keep_draft(threads: ThreadStore, thread_id: str, text: str, *, parent: str = TIP) -> str:
    """This device's unsent text under `parent`; empty text clears it. The reply target it is kept under."""
    with threads.edit(thread_id) as editor:
        parent_id = _target(editor, parent)
        editor.set_draft(parent_id, text)
        return parent_id or ROOT


def undo(threads: ThreadStore, thread_id: str, turns: int) -> list[str]:
    """Take back the last turns; the ids of the messages that went."""
    with threads.edit(thread_id) as editor:
        return editor.undo(_at_least_one(turns))


def redo(threads: ThreadStore, thread_id: str, turns: int) -> list[str]:
    """Bring back turns that were taken back, the last first; the ids of the messages that came back.

    InvalidInput, and nothing comes back, where the words of one of these turns were erased meanwhile.
    """
    back: list[str] = []
    with threads.edit(thread_id) as editor:
        for number in range(_at_least_one(turns)):
            found = editor.redo()
            if not found:
                break
            if all(_is_erased(editor.thread, name) for name in found):
                raise _nothing_left(thread_id, number)
            back += found
    return back


def _is_erased(thread: Thread, message_id: str) -> bool:
    message = thread.tree.get(message_id)
    return message is None or message.is_purged


def _nothing_left(thread_id: str, before: int) -> InvalidInput:
    """`before`: how many turns could have come back before this one."""
    if before:
        can = f"bring back {before} at most: `raddle redo {thread_id} {before}`"
    else:
        can = f"`raddle show {thread_id} --removed` shows where it stood"
    return InvalidInput("the words of that turn were erased for good (purge --removed)", can)


def rename(threads: ThreadStore, thread_id: str, title: str, *, title_of: Callable[[str], str]) -> str:
    """Set the title; an empty one makes it what `title_of` makes of the thread's first words. The title it has then."""
    with threads.edit(thread_id) as editor:
        editor.rename(" ".join(title.split()) or title_of(_first_words(editor.thread)))
        return editor.thread.title


def _first_words(thread: Thread) -> str:
    said = (message.content for message in thread.tree.shown() if message.kind == TURN)
    return next((text for text in said if text.strip()), "")


class Tagging(NamedTuple):
    """The tags that a thread has then, and those that could not be taken away, since it did not have them."""

    tags: list[str]
    missing: list[str]


def tag(threads: ThreadStore, thread_id: str, add: Iterable[str], remove: Iterable[str] = ()) -> Tagging:
    """Add tags, then take some away."""
    missing = []
    with threads.edit(thread_id) as editor:
        for name in add:
            editor.tag(name)
        for name in remove:
            before = len(editor.thread.tags)
            editor.untag(name)
            if len(editor.thread.tags) == before:
                missing.append(name)
        return Tagging(editor.thread.tags, missing)


def fork_thread(
    threads: ThreadStore,
    thread_id: str,
    *,
    at: str | None = None,
    title: str = "",
    makes_private: Rule = never,
) -> str:
    """Copy the path to message `at`, or the whole thread, as a new one; its id.

    It is private where the source is, or where `makes_private` says so of the source.
    """
    source = threads.load(thread_id)
    message_id = None if at is None else find_message(source, at).id
    with threads.create() as editor:
        if makes_private(source):
            editor.set_private(True)
        fork_into(editor, source, message_id, title=title)
        return editor.thread.id


def promote_branch(threads: ThreadStore, thread_id: str, message: str, *, makes_private: Rule = never) -> str:
    """Make the branch that `message` stands on a thread of its own; its id. Private as in `fork_thread`."""
    source = threads.load(thread_id)
    message_id = find_message(source, message).id
    with threads.create() as editor:
        if makes_private(source):
            editor.set_private(True)
        promote_into(editor, source, message_id)
        return editor.thread.id


def graft(threads: ThreadStore, thread_id: str, leaf: str, under: str) -> list[str]:
    """Copy the path to `leaf` under another message (`root`: as a new line); the ids of the copies."""
    with threads.edit(thread_id) as editor:
        target = None if under == ROOT else find_message(editor.thread, under).id
        copies = graft_path(editor, find_message(editor.thread, leaf).id, target)
        return [message.id for message in copies]


def name_branch(threads: ThreadStore, thread_id: str, message: str, name: str) -> str:
    """Name the branch that `message` stands on; the message that starts it."""
    with threads.edit(thread_id) as editor:
        start = branch_start(editor.thread, find_message(editor.thread, message).id)
        editor.name_branch(start, name)
        return start


def archive_branch(threads: ThreadStore, thread_id: str, message: str, *, is_archived: bool) -> str:
    """Put the branch that `message` stands on away, or bring it back; the message that starts it."""
    with threads.edit(thread_id) as editor:
        start = branch_start(editor.thread, find_message(editor.thread, message).id)
        editor.archive_branch(start, is_archived)
        return start


def branch_start(thread: Thread, message_id: str) -> str:
    """The message that starts the branch on which a message stands."""
    line = thread.tree.branch_of(message_id)
    path = thread.tree.path_to_root(message_id)
    return next(message.id for message in path if thread.tree.branch_of(message.id) == line)


def leaf_of(thread: Thread, message_id: str) -> str:
    """The last message below this one along the line that goes on from it."""
    at = message_id
    while (going_on := thread.tree.continuation(at)) is not None:
        at = going_on.id
    return at


def find_message(thread: Thread, part: str) -> Message:
    """The message that `part` names: its whole id, the start of it, or the end of it, as lists show it."""
    parse_message_id(part)
    whole = thread.tree.get(part)
    if whole is not None:
        return whole
    lower = part.lower()
    found = [message for message in thread.tree if _is_named(message.id.lower(), lower)]
    if not found:
        raise NotFound("message", part, f"`raddle show {thread.id} --tree` lists them")
    if len(found) > 1:
        raise Ambiguous("message", part, [message.id for message in found])
    return found[0]


def _is_named(message_id: str, part: str) -> bool:
    return message_id.startswith(part) or (len(part) >= _LEAST_END and message_id.endswith(part))


def _target(editor: Editor, parent: str) -> str | None:
    if parent == ROOT:
        return None
    if parent == TIP:
        tip = editor.thread.tree.tip()
        return tip.id if tip is not None else None
    return find_message(editor.thread, parent).id


def _at_least_one(turns: int) -> int:
    if turns < 1:
        raise InvalidInput(f"{turns} is no number of turns", "it is 1 or more")
    return turns
