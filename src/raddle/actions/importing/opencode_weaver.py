"""Turns the lines of one OpenCode session into messages that stand where they belong.

Owns the ids of the messages, and what becomes of a message that is told again: OpenCode updates its records in place,
so a line may say more than it did, or less.

A fork copies messages under new ids, with their times: what is equal in both is the time, the first words, and the
message that is answered. An id is made of these, so that a turn that two sessions share is one turn.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from raddle.actions.importing.bodies import put
from raddle.actions.importing.bounded import forget_oldest, keep_last
from raddle.actions.importing.fullness import fullness
from raddle.actions.importing.importer import Lookup, Taken, message_id_of
from raddle.actions.importing.opencode_facts import Facts, microseconds, see_message, type_title
from raddle.actions.importing.opencode_lines import Line
from raddle.actions.importing.opencode_tree import Stand, Strand, Tree, Turn
from raddle.actions.importing.opencode_turns import (
    Piece,
    carried_in,
    first_words,
    fuller,
    pieces_of,
    strange_parts,
)
from raddle.actions.importing.opencode_undone import Undone
from raddle.actions.importing.parts import USER, Aside
from raddle.model.clock import format_time
from raddle.model.threads.message import TURN, Message, changed

AGENT = "opencode"
_REMEMBERED = 1 << 16
_GIVEN, _LONG = 256, 1 << 16
"""Messages that are held to be told again, and the characters of one that is too long for that."""


class Weaver:
    """The messages of one session and its sub-agents. `is_recalled`: it goes on from a state."""

    def __init__(self, lookup: Lookup | None, report: Callable[[str], None]) -> None:
        self.tree = Tree()
        self.facts = Facts()
        self.undone = Undone()
        self.is_recalled = False
        self.is_lost = False
        """Did a message come whose place a state should have known?"""
        self._lookup = lookup
        self._report = report
        self._strangers: set[str] = set()
        self._stands: dict[str, Stand] = {}
        """Where the messages of this reading stand."""
        self._owners: dict[str, str] = {}
        """Id of a message -> the record that has it."""
        self._given: dict[str, Message] = {}
        """The last messages that were given, as they were."""
        self._taken = Taken(messages=[], blobs=[])

    def take(self) -> Taken:
        """What is finished so far."""
        taken, self._taken = self._taken, Taken(messages=[], blobs=[])
        return taken

    def recall_turns(self) -> None:
        """After the tree was recalled: who owns which id."""
        self.is_recalled = True
        self._owners = {turn.id: raw_id for raw_id, turn in self.tree.turns.items()}

    def message(self, line: Line) -> None:
        """A message, told for the first time or again."""
        strand = self.tree.strand_of(line.session or self.tree.root)
        if line.info is None or line.info.unreadable is not None:
            self._report(
                "a message that is no JSON object"
            )  # it may be half written: the next reading has it whole
            return
        if not strand.is_side and self._take_back(line, strand):
            return
        aside = Aside()
        pieces = pieces_of(line, aside)
        self._taken.blobs += aside.blobs
        self._tell(line, aside)
        see_message(self.facts, line, pieces[0].provider, pieces[0].model, is_side=strand.is_side)
        turn = self.tree.turns.get(line.id) or self._first_met(line, strand)
        said = [piece for piece in pieces if not piece.is_empty]
        self.tree.remember(line.id, turn)
        for piece in said:
            self._add(line, strand, turn, piece)
        ids = [_piece_id(turn, piece) for piece in said]
        self.undone.see(line, strand, ids, is_typed=pieces[0].is_typed)

    def _take_back(self, line: Line, strand: Strand) -> bool:
        """A record that raddle wrote: the messages it carries are what they were. False where it carries none."""
        carried = carried_in(line)
        if not carried:
            return False
        if line.id not in self.tree.turns:
            for message in carried:
                if self.is_recalled and self._stored(message.id) is not None:
                    self.tree.meet_again(message.id, message.order, message.branch_id)
                else:
                    self.tree.stand(strand, message)
                self._put(message)
        self.tree.remember(line.id, Turn(carried[0].id, line.session, carried[-1].id, []))
        first = carried[0]
        see_message(self.facts, line, first.provider, first.model, is_side=False)
        is_typed = first.role == USER and first.kind == TURN
        if is_typed:
            type_title(self.facts, first.content)
        self.undone.see(line, strand, [message.id for message in carried], is_typed=is_typed)
        return True

    def _tell(self, line: Line, aside: Aside) -> None:
        for repair in dict.fromkeys(aside.repairs):
            self._report(repair)
        for stranger in strange_parts(line):
            if stranger not in self._strangers:
                self._strangers.add(stranger)
                named = (
                    repr(stranger)
                    if stranger.replace("-", "").isalpha() and stranger.isascii()
                    else "no name"
                )
                self._report(f"a kind of part that is not known: {named}")

    def _first_met(self, line: Line, strand: Strand) -> Turn:
        """The turn of a record that is new to this reader; it may stand in the thread already."""
        turn = Turn(self._id(line), line.session, "", [])
        stored = self._stored(turn.id) if self.is_recalled else None
        if stored is None:
            turn.tip = self._tip_before(line, strand)
        else:
            self._meet_again(line, turn, stored)
        return turn

    def _tip_before(self, line: Line, strand: Strand) -> str:
        """The message after which a record that says nothing stands."""
        if line.after is None:
            return ""
        before = self.tree.turns.get(line.after)
        if before is not None:
            return before.tip
        self.is_lost = self.is_lost or self.is_recalled
        return strand.tip.message_id if strand.has_messages else ""

    def _meet_again(self, line: Line, turn: Turn, stored: Message) -> None:
        """Remember what the thread has of a record that this reader's state had forgotten."""
        for piece in pieces_of(line, Aside()):
            found = self._stored(_piece_id(turn, piece)) if piece.key else stored
            if found is not None:
                turn.pieces.append(_number(piece.key))
                turn.tip = found.id
                self.tree.meet_again(found.id, found.order, found.branch_id)

    def _id(self, line: Line) -> str:
        """The id of a message: the same in a fork; the record's own where nothing else tells it apart."""
        at = line.info.time.created if line.info is not None and line.info.time is not None else None
        role = line.info.role if line.info is not None else ""
        if not at:
            return self._owned(message_id_of(AGENT, line.id), line.id)
        if role == USER:
            found = message_id_of(AGENT, role, int(at), first_words(line).hex())
        else:
            above = (line.info.parent_id if line.info is not None else None) or ""
            parent = self.tree.turns.get(above)
            self.is_lost = self.is_lost or (self.is_recalled and bool(above) and parent is None)
            found = message_id_of(AGENT, role, int(at), above if parent is None else parent.id)
        return self._owned(found, line.id)

    def _owned(self, message_id: str, raw_id: str) -> str:
        """`message_id`, unless another record has it already: two of one kind in one millisecond."""
        owner = self._owners.setdefault(message_id, raw_id)
        forget_oldest(self._owners, _REMEMBERED)
        return message_id if owner == raw_id else message_id_of(AGENT, raw_id)

    def _add(self, line: Line, strand: Strand, turn: Turn, piece: Piece) -> None:
        """A piece of a record: a new message, or one that says more than it did."""
        number = _number(piece.key)
        message_id = _piece_id(turn, piece)
        if number in turn.pieces:
            self._say_again(message_id, piece, strand)
            return
        stand = self._place(line, strand, turn, piece, message_id)
        turn.pieces.append(number)
        turn.tip = message_id
        keep_last(self._stands, message_id, stand, _REMEMBERED)
        self._see_calls(piece, message_id, stand.seq)
        if piece.is_typed and not strand.is_side:
            type_title(self.facts, piece.content)
        self._put(_message(message_id, stand, piece, strand))

    def _place(self, line: Line, strand: Strand, turn: Turn, piece: Piece, message_id: str) -> Stand:
        is_first = not turn.pieces
        if is_first and strand.is_side and not strand.has_messages:
            self.tree.hang(strand, line.session, piece.content)
        after = line.after if is_first else line.id
        spot, is_late = self.tree.spot_after(after, strand, is_typed=is_first and piece.is_typed)
        at = 0 if piece.key else microseconds(piece.at)
        return self.tree.append(spot, strand, message_id, at, is_late=is_late)

    def _see_calls(self, piece: Piece, message_id: str, seq: int) -> None:
        for session, prompt in piece.starts:
            self.tree.started(session, prompt, message_id, seq)

    def _say_again(self, message_id: str, piece: Piece, strand: Strand) -> None:
        """A message that was told before: it is given again where it says more now."""
        stored = self._stored(message_id)
        stand = self._stands.get(message_id)
        if stored is None and stand is None:
            self.is_lost = self.is_lost or self.is_recalled
            return
        if stand is None:
            assert stored is not None
            stand = Stand(stored.parent_id, stored.branch_id, stored.order)
        self._see_calls(piece, message_id, stand.seq)
        new = _message(message_id, stand, piece, strand)
        if stored is None:
            self._put(new)  # what it said is not at hand: whichever says more will stand
        elif not stored.is_purged:
            both = fuller(stored, new)
            if both.rev > stored.rev:
                self._put(both)

    def _put(self, message: Message) -> None:
        message = put(self._taken, message)
        self._given.pop(message.id, None)
        if len(message.content) < _LONG:
            keep_last(self._given, message.id, message, _GIVEN)

    def _stored(self, message_id: str) -> Message | None:
        given = self._given.get(message_id)
        return given if given is not None or self._lookup is None else self._lookup(message_id)


def _message(message_id: str, stand: Stand, piece: Piece, strand: Strand) -> Message:
    at = microseconds(piece.at)
    is_start = strand.is_side and stand.parent_id == (strand.start.message_id or None)
    message = Message(
        id=message_id,
        parent_id=stand.parent_id,
        branch_id=stand.branch_id,
        role=piece.role,
        content=piece.content,
        ts=format_time(at) if at else "",
        seq=None if stand.seq == at else stand.seq,
        tool_calls=piece.tool_calls,
        tool_call_id=piece.tool_call_id,
        tool_name=piece.tool_name,
        is_error=piece.is_error,
        thinking=piece.thinking,
        attachments=piece.attachments,
        provider=piece.provider,
        model=piece.model,
        usage=piece.usage,
        is_sidechain=strand.is_side,
        kind=piece.kind,
        extra=piece.extra | strand.about if is_start else piece.extra,
    )
    return changed(message, rev=fullness(message))


def _piece_id(turn: Turn, piece: Piece) -> str:
    return message_id_of(AGENT, turn.id, piece.key) if piece.key else turn.id


def _number(key: str) -> int:
    return zlib.crc32(key.encode(errors="replace"))
