"""Taking back the turn that somebody stands under, wherever the newest turn of the thread is.

Owns which turn that is: one who talks in one window never takes back what was said in another.
"""

from __future__ import annotations

from raddle.actions.answering.asking import is_turn_of_a_user
from raddle.actions.ports import ThreadStore
from raddle.model.errors import InvalidInput


def take_back_at(threads: ThreadStore, thread_id: str, head: str | None) -> tuple[list[str], str | None]:
    """Take back the last turn on the path to `head`, and all under it: (ids that went, where one stands then).

    InvalidInput, and nothing goes, where a turn was said under `head`, which whoever stands there has not seen.
    """
    with threads.edit(thread_id) as editor:
        tree = editor.thread.tree
        turn = next((each for each in reversed(tree.path_to_root(head)) if is_turn_of_a_user(each)), None)
        if turn is None or head is None:
            return [], head
        below = [each.id for each in tree.below(head) if each.id != head and is_turn_of_a_user(each)]
        if any(not tree.is_removed(name) for name in below):
            raise InvalidInput(
                "somebody went on under your last turn",
                f"`raddle show {thread_id}` shows it, `raddle undo {thread_id}` takes back the newest",
            )
        return editor.remove(turn.id), turn.parent_id
