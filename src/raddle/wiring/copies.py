"""Which other threads hold the same turns: forks, promoted branches, sessions that begin with another's history.

A turn that stands in two threads is one turn, with one id. Whoever erases its words in one thread has to be told
where else they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from raddle.adapters.files import find_bytes
from raddle.model.errors import FormatError, NotFound
from raddle.model.threads.tree import MessageTree
from raddle.wiring import Stores


def threads_with_copies(stores: Stores, thread_id: str, *, removed: bool = False) -> list[str]:
    """The other threads that hold turns of this one (`removed`: of those that were taken back), oldest first.

    None where the thread cannot be read: then nobody knows its turns. Reads every thread file once.
    """
    own = _tree_of(stores, thread_id)
    wanted = _first_ones(own, removed=removed) if own is not None else []
    return [
        other for other in _naming(stores, wanted) if other != thread_id and _holds(stores, other, wanted)
    ]


def _tree_of(stores: Stores, thread_id: str) -> MessageTree | None:
    """The messages of a thread; None where it cannot be read."""
    try:
        return stores.threads.load(thread_id).tree
    except (FormatError, NotFound):
        return None


def _naming(stores: Stores, message_ids: Sequence[str]) -> list[str]:
    """The threads in whose files one of these ids stands: few, so that few have to be understood."""
    quoted = [f'"{message_id}"'.encode() for message_id in message_ids]
    found = set()
    for thread_id in stores.threads.ids() if quoted else ():
        for file in (stores.paths.thread_file(thread_id), stores.paths.journal_file(thread_id)):
            data = find_bytes(file) or b""
            if any(each in data for each in quoted):
                found.add(thread_id)
    return sorted(found)


def _holds(stores: Stores, thread_id: str, message_ids: Sequence[str]) -> bool:
    """Does it have words of one of these messages?"""
    tree = _tree_of(stores, thread_id)
    found = [tree.get(message_id) for message_id in message_ids] if tree is not None else []
    return any(message is not None and not message.is_purged for message in found)


def _first_ones(tree: MessageTree, *, removed: bool) -> list[str]:
    """The messages above all others: whatever is copied, the path that leads there is copied with it."""
    chosen = {message.id for message in tree if not removed or tree.is_removed(message.id)}
    return [message.id for message in tree if message.id in chosen and message.parent_id not in chosen]
