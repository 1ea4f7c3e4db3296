"""The tree over a thread's messages: who answers whom, what shows, which branch a turn is on.

An index over immutable messages, kept as they arrive: `children`, `is_leaf` and `get` take constant time,
`path_to_root` the length of the path, an append at the end of the order constant time. Branch ids are
computed here from what the appends wrote and are never stored back; whatever points into the tree from
outside holds a message id.

Broken input is kept, not repaired: a message whose parent is missing, or that stands on a cycle, is *lost*
(`lost`), and every method is safe on it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from raddle.model.threads.message import Message

Key = tuple[int, str]
"""(order, id): sorts the messages of a thread."""
TWIN_OF = "twin_of"
"""The key of `Message.extra` that names the message whose id this one had too, in a broken file."""


class Branch(NamedTuple):
    """A line of the conversation: from the message that `start`s it to the last one on it, `tip`."""

    id: str
    start: str
    tip: str
    length: int


class MessageTree:
    """All messages of one thread, by id, by parent and in (order, id) order; `gone` holds the removed ids."""

    def __init__(self, messages: Iterable[Message] = (), gone: Iterable[str] = ()) -> None:
        self._messages: dict[str, Message] = {}
        self._keys: dict[str, Key] = {}
        self._order: list[Key] = []
        self._order_is_sorted = True
        self._children: dict[str | None, list[Key]] = {}
        self._gone: set[str] = set(gone)
        self._hidden: set[str] | None = None if self._gone else set()
        self._branches: dict[str, str] | None = None
        for message in messages:
            self.put(message)

    def __len__(self) -> int:
        return len(self._messages)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._messages

    def __iter__(self) -> Iterator[Message]:
        """Every message, removed ones too, in (order, id) order."""
        for _, message_id in self._sorted():
            yield self._messages[message_id]

    def get(self, message_id: str) -> Message | None:
        """The message of that id, removed or not."""
        return self._messages.get(message_id)

    def key(self, message_id: str) -> Key:
        """(order, id) of a message that is there."""
        return self._keys[message_id]

    def put(self, message: Message) -> None:
        """Add a message, or put a fuller one in the place of its earlier form."""
        key = (message.order, message.id)
        old = self._keys.get(message.id)
        if old is not None:
            self._take_out(old)
        self._messages[message.id] = message
        self._keys[message.id] = key
        if self._order and self._order_is_sorted and key < self._order[-1]:
            self._order_is_sorted = False
        self._order.append(key)
        siblings = self._children.setdefault(message.parent_id, [])
        if siblings and key < siblings[-1]:
            insort(siblings, key)
        else:
            siblings.append(key)
        self._branches = None
        if self._gone:
            self._show_above(message, was_there=old is not None)

    def set_gone(self, gone: Iterable[str]) -> None:
        """Say anew which messages are removed."""
        self._gone = set(gone)
        self._hidden = None if self._gone else set()
        self._branches = None

    def is_removed(self, message_id: str) -> bool:
        """Was it taken back (and does nothing shown stand under it)?"""
        return message_id in self._hidden_ids()

    def shown(self) -> Iterator[Message]:
        """What a reader sees, in (order, id) order. A removed message shows while something shown stands under it."""
        hidden = self._hidden_ids()
        if not hidden:
            return iter(self)
        return (message for message in self if message.id not in hidden)

    def tip(self) -> Message | None:
        """The shown message outside sidechains with the greatest (order, id): what the next turn answers."""
        hidden = self._hidden_ids()
        for _, message_id in reversed(self._sorted()):
            message = self._messages[message_id]
            if not message.is_sidechain and message_id not in hidden:
                return message
        return None

    def children(self, parent_id: str | None, *, removed: bool = False) -> list[Message]:
        """The replies to a message, or the root turns for None, in (order, id) order; shown ones unless `removed`."""
        keys = self._children.get(parent_id, ())
        if removed:
            return [self._messages[message_id] for _, message_id in keys]
        hidden = self._hidden_ids()
        return [self._messages[message_id] for _, message_id in keys if message_id not in hidden]

    def is_leaf(self, message_id: str) -> bool:
        """Is it there, with no shown reply? A sub-agent's turns under a call are not replies to it."""
        message = self._messages.get(message_id)
        if message is None:
            return False
        hidden = self._hidden_ids()
        return not any(
            child_id not in hidden and (message.is_sidechain or not self._messages[child_id].is_sidechain)
            for _, child_id in self._children.get(message_id, ())
        )

    def heads(self) -> list[Message]:
        """The shown leaves outside sidechains, newest last."""
        return [message for message in self.shown() if not message.is_sidechain and self.is_leaf(message.id)]

    def path_to_root(self, message_id: str | None) -> list[Message]:
        """Root first, down to that message; empty for an unknown id; ends at a missing parent or a cycle."""
        path: list[Message] = []
        seen: set[str] = set()
        at = message_id
        while at is not None and at not in seen:
            message = self._messages.get(at)
            if message is None:
                break
            seen.add(at)
            path.append(message)
            at = message.parent_id
        path.reverse()
        return path

    def below(self, message_id: str) -> list[Message]:
        """The message and all that stands under it, removed ones too, parents before children."""
        if message_id not in self._messages:
            return []
        found: dict[str, Message] = {}
        waiting = [message_id]
        while waiting:
            at = waiting.pop()
            if at in found:
                continue
            found[at] = self._messages[at]
            waiting.extend(child_id for _, child_id in reversed(self._children.get(at, ())))
        return list(found.values())

    def lost(self) -> list[Message]:
        """Messages without a place of their own: those whose parent is missing, those on a cycle, all under
        them, and second messages of one id, which the reader of the file set beside the first (`twin_of`).
        """
        twins = {message.id for message in self._messages.values() if TWIN_OF in message.extra}
        if not twins and all(self._stands_under_its_parent(message) for message in self._messages.values()):
            return []
        reached: set[str] = set()
        waiting = [message_id for _, message_id in self._children.get(None, ())]
        while waiting:
            at = waiting.pop()
            if at not in reached:
                reached.add(at)
                waiting.extend(child_id for _, child_id in self._children.get(at, ()))
        return [message for message in self if message.id not in reached or message.id in twins]

    def branch_of(self, message_id: str) -> str:
        """The id of the branch a message shows on; empty for an unknown id."""
        return self._branch_ids().get(message_id, "")

    def fork_depth(self, message_id: str) -> int:
        """How many forks lie between the root and this message."""
        branches = {self.branch_of(message.id) for message in self.path_to_root(message_id)}
        return max(len(branches) - 1, 0)

    def branches(self) -> list[Branch]:
        """The shown branches by their start's (order, id); sub-agents' lines are among them."""
        found: dict[str, Branch] = {}
        names = self._branch_ids()
        for message in self.shown():
            name = names[message.id]
            known = found.get(name)
            if known is None:
                found[name] = Branch(name, message.id, message.id, 1)
            else:
                found[name] = Branch(name, known.start, message.id, known.length + 1)
        return list(found.values())

    def continuation(self, message_id: str) -> Message | None:
        """The child that continues this message's branch, if one does."""
        for child in self.children(message_id):
            if self.branch_of(child.id) == self.branch_of(message_id):
                return child
        return None

    def _sorted(self) -> list[Key]:
        if not self._order_is_sorted:
            self._order.sort()
            self._order_is_sorted = True
        return self._order

    def _take_out(self, key: Key) -> None:
        old = self._messages[key[1]]
        order = self._sorted()
        del order[bisect_left(order, key)]
        self._children[old.parent_id].remove(key)

    def _stands_under_its_parent(self, message: Message) -> bool:
        if message.parent_id is None:
            return True
        parent = self._keys.get(message.parent_id)
        return parent is not None and parent < self._keys[message.id]

    def _hidden_ids(self) -> Collection[str]:
        """The removed messages under which nothing shown stands."""
        if self._hidden is None:
            hidden: set[str] = set()
            waiting = sorted(self._keys[message_id] for message_id in self._gone if message_id in self._keys)
            while waiting:
                key = waiting.pop()
                children = self._children.get(key[1], ())
                if key[1] in hidden or any(
                    child_id not in hidden and child_id != key[1] for _, child_id in children
                ):
                    continue
                hidden.add(key[1])
                above = self._keys.get(self._messages[key[1]].parent_id or "")
                if above is not None and above > key and above[1] in self._gone:
                    waiting.append(above)  # in a broken file: later than its reply, it was asked too early
            self._hidden = hidden
        return self._hidden

    def _show_above(self, message: Message, *, was_there: bool) -> None:
        """A reply that arrives under a removed message makes the way to it show again."""
        if was_there or message.id in self._gone or self._hidden is None:
            self._hidden = None
            return
        at = message.parent_id
        while at is not None and at in self._hidden:
            self._hidden.discard(at)
            at = self._messages[at].parent_id

    def _branch_ids(self) -> dict[str, str]:
        if self._branches is None:
            self._branches = self._compute_branches()
        return self._branches

    def _compute_branches(self) -> dict[str, str]:
        """Among the children that stored their parent's branch, the first by (shown before removed, order, id)
        continues it; every other message starts one, named by what it stored unless an earlier start took that
        name, else by its own id."""
        hidden = self._hidden_ids()
        continues: set[str] = set()
        for parent_id, children in self._children.items():
            parent = self._messages.get(parent_id) if parent_id is not None else None
            if parent is None:
                continue
            same = [
                (child_id in hidden, order, child_id)
                for order, child_id in children
                if self._messages[child_id].branch_id == parent.branch_id
                and self._messages[child_id].is_sidechain == parent.is_sidechain
            ]
            if same:
                continues.add(min(same)[2])
        branches: dict[str, str] = {}
        taken: set[str] = set()
        for key in self._sorted():
            message = self._messages[key[1]]
            above = branches.get(message.parent_id or "")
            if message.id in continues and above is not None:
                branches[message.id] = above
                continue
            name = message.branch_id
            if not name or name in taken or self._keys.get(name, key) > key:
                name = message.id  # the id of a later message is left to it, or its branch would have no name
            taken.add(name)
            branches[message.id] = name
        return branches
