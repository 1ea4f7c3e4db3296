"""A store and its remote brought into step: commit, ask, merge by record, write, push. One function for everybody.

No state lives between two runs but the files, the branch and what the remote was last known to have, so a run that
dies anywhere is finished by the next one. The network is never waited for while the store's lock is held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from raddle.actions.memory.committing import Committed, Removals, commit_changes
from raddle.actions.memory.ports import (
    Asked,
    Commit,
    CommittedMeanwhile,
    StoreDisk,
    StoreHistory,
    StoreRemote,
    Writer,
)
from raddle.model.errors import FormatError, NetworkError
from raddle.model.memory.merge import MergedTree, Note, conflicts_in, merge_contents
from raddle.model.memory.merge_sides import Side, Sides
from raddle.model.memory.merge_trees import disk_steps, plan_merge
from raddle.model.memory.project import decode_project
from raddle.model.memory.repo_layout import PROJECT_FILE, conflict_path
from raddle.model.memory.ulids import derived_ulid

MOST_TRIES = 12
_LONGEST_PAUSE_SECONDS = 2.0

State = Literal["in_step", "kept_here", "no_remote", "not_agreed", "emptied", "offline", "pending"]


class SyncReport(Struct, frozen=True, kw_only=True):
    """How it ended, and what was done.

    in_step: both hold the same · kept_here: `publish: false` · no_remote · not_agreed: nobody said yet that the store
    goes to `url` · emptied: the remote had the branch and has it no more · offline: `why` · pending: others pushed
    each time we came.

    `waiting`: versions of a clash that nobody has settled yet. `committed`, `pulled`: paths that changed here before,
    and that changed here because of others. `rescue`: where commits are that the remote no longer rests on. `notes`:
    what a person should know of the merges.
    """

    state: State
    committed: tuple[str, ...] = ()
    pulled: tuple[str, ...] = ()
    is_pushed: bool = False
    notes: tuple[Note, ...] = ()
    waiting: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    blocked: dict[str, str] = {}
    rescue: str = ""
    url: str = ""
    why: str = ""


def sync(
    disk: StoreDisk,
    history: StoreHistory,
    remote: StoreRemote,
    writer: Writer,
    *,
    pause: Callable[[float], None],
    may_publish: bool = False,
    may_refill: bool = False,
    removals: Removals = "few",
    is_offline: bool = False,
) -> SyncReport:
    """Bring the store and its remote into step.

    `may_publish`: a person said that it goes to where the remote is. `may_refill`: and that a remote that was
    emptied is filled again. `removals`: what becomes of files that are gone from the folder (ManyRemoved). `pause`:
    waits so many seconds. NewerFormat: a store from the future; ConflictError: the remote is another project's.
    Being offline is an answer, not an error.
    """
    run = _Run(disk, history, remote, writer, removals)
    if not is_offline:
        run.ask_early()
    run.commit()
    url = remote.url()
    if run.stays_here():
        return run.report("kept_here")
    if url is None:
        return run.report("no_remote")
    if is_offline:
        return run.report("offline", why="raddle is set to ask the network for nothing")
    if not remote.is_agreed():
        if not may_publish:
            return run.report("not_agreed")
        remote.agree()
    try:
        return run.meet(pause, may_refill=may_refill or may_publish)
    except NetworkError as error:
        return run.report("offline", why=error.message)


class _Run:
    """One sync while it goes on."""

    def __init__(
        self,
        disk: StoreDisk,
        history: StoreHistory,
        remote: StoreRemote,
        writer: Writer,
        removals: Removals,
    ) -> None:
        self._removals = removals
        self._disk = disk
        self._history = history
        self._remote = remote
        self._writer = writer
        self._committed: set[str] = set()
        self._restored: set[str] = set()
        self._pulled: set[str] = set()
        self._blocked: dict[str, str] = {}
        self._notes: set[Note] = set()
        self._rescue = ""
        self._head: Commit | None = None
        self._project: str | None = None
        """The id of the project file in the newest commit."""
        self._says_no: dict[str, bool] = {}
        self._asked: Callable[[], Asked] | None = None

    def ask_early(self) -> None:
        """Ask the remote while the folder is looked at, where nothing that is known by now forbids to ask it."""
        if self._remote.url() is not None and self._remote.is_agreed() and self._says_no_here() is False:
            self._asked = self._remote.begin_asking()

    def commit(self) -> Committed:
        """What was written here since the last commit."""
        done = commit_changes(self._disk, self._history, self._writer, removals=self._removals)
        self._committed.update(done.changed)
        self._restored.update(done.restored)
        self._blocked = done.blocked
        self._head, self._project = done.head, done.project
        return done

    def stays_here(self) -> bool:
        """Does the project say so, in the folder or in the last commit?"""
        return self._says_no_here() or self._is_kept_by(self._project)

    def _says_no_here(self) -> bool | None:
        """Does the project file in the folder? None where there is none."""
        here = self._disk.read(PROJECT_FILE)
        if here is None:
            return None
        says_no = _says_no(here)
        self._says_no[self._disk.id_of(here)] = (
            says_no  # mostly that of the last commit, which need not be asked then
        )
        return says_no

    def _is_kept_by(self, project: str | None) -> bool:
        if project is None:
            return False
        if project not in self._says_no:
            self._says_no[project] = _says_no(self._history.contents([project])[project])
        return self._says_no[project]

    def meet(self, pause: Callable[[float], None], *, may_refill: bool) -> SyncReport:
        """Ask, merge, push, until nobody came in between."""
        for attempt in range(MOST_TRIES):
            asked = (self._asked or self._remote.begin_asking())()
            self._asked = None
            known, theirs = asked.known, asked.theirs
            if theirs is None and known is not None and not may_refill:
                return self.report("emptied")
            try:
                head = self._head if theirs is None else self._with(theirs, known)
            except CommittedMeanwhile:
                continue
            if head is None or (theirs is not None and head.id == theirs.id):
                return self.report("in_step")
            if self.stays_here():
                return self.report("kept_here")
            if self._remote.push(head.id):
                self._remote.agree()
                return self.report("in_step", is_pushed=True)
            pause(_jitter(self._writer) * min(_LONGEST_PAUSE_SECONDS, 0.05 * 2**attempt))
        return self.report("pending", why="others pushed each time; the next sync goes on")

    def _with(self, theirs: Commit, known: str | None) -> Commit:
        """Our newest commit, which rests on the remote's."""
        head = self._head
        if head is not None and theirs.id == known and theirs.id in (head.id, head.parent):
            return head  # nothing new to merge; what came into the folder since is the next sync's
        return self._take_in(theirs, known)

    def _take_in(self, theirs: Commit, known: str | None) -> Commit:
        """Merge the remote's commit with ours and bring the folder to it; the branch's newest commit after that."""
        with self._disk.locked():
            mine = self.commit().head
            base = self._base(mine, theirs) if mine is not None else None
            if mine is not None and self._was_forced(theirs, known):
                self._rescue = self._remote.keep_for_rescue(mine.id)
            if mine is not None and base == theirs.id:
                return mine
            held = self._history.tree(mine.id) if mine is not None else {}
            if mine is None or base == mine.id:
                new, becomes = theirs, self._history.tree(theirs.id)
                self._check(becomes)
            else:
                new = self._merged(mine, theirs, base)
                becomes = self._history.tree(new.id)
            self._write(held, becomes, theirs)
            self._history.move(new.id, expects=None if mine is None else mine.id)
            self._head, self._project = new, becomes.get(PROJECT_FILE)
            return new

    def _base(self, mine: Commit, theirs: Commit) -> str | None:
        if theirs.id in (mine.id, mine.parent):
            return theirs.id
        return self._history.base_of(mine.id, theirs.id)

    def _was_forced(self, theirs: Commit, known: str | None) -> bool:
        """Is what the remote had no longer below what it has?"""
        return known is not None and known != theirs.id and self._history.base_of(known, theirs.id) != known

    def _merged(self, mine: Commit, theirs: Commit, base: str | None) -> Commit:
        """One commit on theirs that holds both."""
        before = self._history.tree(base) if base is not None else {}
        there = self._history.tree(theirs.id)
        plan = plan_merge(before, self._history.tree(mine.id), there)
        sides = Sides(
            local=Side(node_id=mine.node_id, at=mine.at), remote=Side(node_id=theirs.node_id, at=theirs.at)
        )
        merged = merge_contents(plan, self._history.contents(plan.wanted), sides)
        self._notes.update(merged.notes)
        changes = _changes(there, merged)
        if not changes:
            return theirs
        return self._history.commit(
            changes,
            parent=theirs.id,
            message=f"merge: {len(changes)} file{'s' * (len(changes) != 1)}",
            writer=self._writer,
            moves=False,
        )

    def _check(self, tree: Mapping[str, str]) -> None:
        """NewerFormat where what comes is from the future: nothing of it is written."""
        self._is_kept_by(tree.get(PROJECT_FILE))

    def _write(self, held: Mapping[str, str], becomes: Mapping[str, str], theirs: Commit) -> None:
        """Bring the folder from what was committed to what is merged; what somebody wrote meanwhile stays."""
        steps = disk_steps(held, becomes)
        contents = self._history.contents(step.becomes for step in steps if step.becomes)
        left = self._disk.carry_out(steps, contents)
        aside = {
            conflict_path(
                step.path, theirs.node_id, derived_ulid(theirs.at, step.path.encode(), contents[step.becomes])
            ): (step, contents[step.becomes])
            for step in left
            if step.becomes is not None and step.path not in self._blocked
        }
        for path, (step, data) in aside.items():
            self._disk.change(path, lambda old, data=data: data if old is None else old)  # type: ignore[misc]
            self._notes.add(Note(kind="conflict", path=step.path, other=path))
        self._pulled.update(step.path for step in set(steps) - set(left))

    def report(self, state: State, *, is_pushed: bool = False, why: str = "") -> SyncReport:
        """How it ended."""
        return SyncReport(
            state=state,
            committed=tuple(sorted(self._committed)),
            pulled=tuple(sorted(self._pulled)),
            is_pushed=is_pushed,
            notes=tuple(sorted(self._notes)),
            waiting=conflicts_in(self._history.tree(self._head.id)) if self._head is not None else (),
            restored=tuple(sorted(self._restored)),
            blocked=self._blocked,
            rescue=self._rescue,
            url=self._remote.url() or "",
            why=why,
        )


def _changes(there: Mapping[str, str], merged: MergedTree) -> dict[str, str | bytes | None]:
    changes: dict[str, str | bytes | None] = {
        path: content_id for path, content_id in merged.entries.items() if there.get(path) != content_id
    }
    changes.update(merged.written)
    gone = there.keys() - merged.entries.keys() - merged.written.keys()
    return {**dict.fromkeys(gone), **changes}


def _says_no(data: bytes) -> bool:
    """Does a project file forbid to publish? One that cannot be read does: it may have said so."""
    try:
        return decode_project(data).publish is False
    except FormatError as error:
        if error.code == "newer_format":
            raise
        return True


def _jitter(writer: Writer) -> float:
    """Between a half and one and a half: two nodes that met once must not meet again."""
    return 0.5 + int(writer.new_id()[-4:], 16) / 0xFFFF
