"""What an import has to do, decided before a session is read: what is new, changed, unchanged or left out.

Pure: what was found (a `stat`, a name, a workspace) against what the ledger remembers and the rules say.
Whether a changed file only grew is a question to its bytes, so the plan says *changed* and the reading
decides (`session.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

import msgspec
from msgspec import Struct

from raddle.actions.importing.importer import Links
from raddle.actions.importing.rules import Rules

HEAD_BYTES = 4096
"""How much of a file's beginning, and of what stands before the offset, is hashed to know it again."""

PURGED = "it was purged here; --revive brings it back"


class FileProblem(Struct, frozen=True, kw_only=True):
    """What could not be read as it stands: the file or folder, its line (None: as a whole), and the reason."""

    path: str
    line: int | None = None
    reason: str


class LeftOut(Struct, frozen=True, kw_only=True):
    """A file that a rule, or an earlier purge, kept out."""

    path: str
    reason: str


class SourceFile(Struct, frozen=True, kw_only=True):
    """A file of another agent as `stat` and its first bytes show it.

    `session`: files of one key belong together. `root`: the agent's folder that it was found in. `workspace`:
    what its content names, where a rule asks for it.
    """

    path: str
    agent: str
    session: str
    size: int
    mtime_ns: int
    inode: int
    is_main: bool = True
    """False for a sub-agent's file, which is read after its session's main file."""
    root: str = "/"
    workspace: str = ""
    collection: str = ""
    """The path of the file that holds it with others; empty where it is a file of its own."""
    where: str = ""
    """Where it is found in its collection, as that says itself."""
    base: str = ""
    """The session that it was forked from, whose turns stand in that one's file alone."""


class SourceEntry(Struct, frozen=True, kw_only=True):
    """A row of the ledger: what was read of one source file, and to where."""

    path: str
    agent: str
    session: str
    is_main: bool = True
    thread_id: str
    """Empty where it held no session yet."""
    size: int
    mtime_ns: int
    inode: int
    read_to: int
    """Bytes read: up to the end of the last whole record."""
    lines: int
    head: str
    """Hash of the first HEAD_BYTES (or of all that was read, if less)."""
    tail: str
    """Hash of the HEAD_BYTES before `read_to`."""
    generation: int
    """Counts how often the file was found rewritten."""
    is_unplaced: bool = False
    """A part whose starting call was not found yet."""
    problems: int = 0
    base: str = ""
    """The session that it was forked from, while the turns before that are not known."""


def unread(entry: SourceEntry) -> SourceEntry:
    """The same as if nothing of it had been read, but for its generation: its thread is gone, and wanted again."""
    return msgspec.structs.replace(
        entry, thread_id="", size=-1, read_to=0, lines=0, head="", tail="", is_unplaced=False
    )


class Segment(Struct, frozen=True, kw_only=True):
    """Bytes `start` to `end` of one generation of a source file, kept as the blob `sha256`.

    One that ends in an unfinished line is overlapped by the next, which begins with that line.
    """

    generation: int
    start: int
    end: int
    sha256: str
    thread_id: str


class SessionPlan(Struct, frozen=True, kw_only=True):
    """What has to be read of a session: at most one main file, which comes first, and parts.

    `known`: those of its files that were read before, the main one first, whether they are read now or not.
    `unplaced`: parts that did not change, read again if their starting call turns up. `base`: the session that this
    one was forked from, where its turns can be known now: then it is read from its start.
    """

    agent: str
    session: str
    files: tuple[SourceFile, ...]
    known: tuple[str, ...] = ()
    unplaced: tuple[SourceFile, ...] = ()
    is_new: bool
    """Nothing of it is in any thread yet."""
    size: int
    """Bytes that may have to be read."""
    base: str = ""

    @property
    def key(self) -> str:
        """Names it among the sessions of one run."""
        return f"{self.agent} {self.session} {self.files[0].path}"


class Task(Struct, frozen=True, kw_only=True):
    """A session to be read from its start. `entries`, `links`: what is known of its files, and what they told."""

    plan: SessionPlan
    entries: dict[str, SourceEntry] = {}
    links: Links | None = None


class PassedOver(Struct, kw_only=True):
    """How many sessions were found and not looked into: `older` than was asked for, `purged` here earlier, or
    `empty` as they were when they were last read."""

    older: int = 0
    purged: int = 0
    empty: int = 0


class Plan(Struct, frozen=True, kw_only=True):
    """Sessions to read, the largest first; how many have nothing new; what is not read, and why."""

    sessions: tuple[SessionPlan, ...]
    unchanged: Mapping[str, int]
    """Agent -> sessions with nothing new."""
    left_out: tuple[LeftOut, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    passed_over: PassedOver = msgspec.field(default_factory=PassedOver)


def plan_import(
    found: Iterable[SourceFile | FileProblem],
    known: Mapping[str, SourceEntry],
    rules: Rules,
    *,
    purged: AbstractSet[str] = frozenset(),
    since: int | None = None,
) -> Plan:
    """What to read. A file whose size, time and inode are as remembered is not opened.

    `purged`: threads that stay gone. `since`: sessions of which no file changed after it (microseconds) are
    passed over.
    """
    files: dict[str, SourceFile] = {}
    problems: list[FileProblem] = []
    for one in found:
        if isinstance(one, FileProblem):
            problems.append(one)
        else:
            files.setdefault(one.path, one)
    plans: list[SessionPlan] = []
    waiting: list[SessionPlan] = []
    left_out: list[LeftOut] = []
    unchanged: dict[str, int] = {}
    passed_over = PassedOver()
    for group in _groups(files.values(), known):
        if since is not None and all(file.mtime_ns // 1000 < since for file in group.files):
            passed_over.older += 1
            continue
        told = len(left_out)
        kept = _kept(group, rules, known, purged, left_out)
        plan = _plan_of(group, kept, known)
        fork = _fork_of(group, kept, known)
        if fork is not None:
            waiting.append(fork)
        if plan is not None:
            plans.append(plan)
        elif kept and any(entry.thread_id for entry in group.entries):
            agent = group.files[0].agent
            unchanged[agent] = unchanged.get(agent, 0) + 1
        else:
            passed_over.empty += bool(kept)
            passed_over.purged += told == len(left_out) and any(
                entry.thread_id in purged for entry in group.entries
            )
    plans = _with_forks(plans, waiting, known, purged, unchanged)
    plans.sort(key=lambda plan: (-plan.size, plan.key))
    plans = _after_their_bases(plans)
    return Plan(
        sessions=tuple(plans),
        unchanged=unchanged,
        left_out=tuple(left_out),
        problems=tuple(dict.fromkeys(problems)),
        passed_over=passed_over,
    )


class _Group(Struct):
    """A main file and its parts: those that were found, and those that the ledger knows besides."""

    files: list[SourceFile]
    entries: list[SourceEntry]


def _groups(files: Iterable[SourceFile], known: Mapping[str, SourceEntry]) -> list[_Group]:
    """A group for each main file, with the parts that lie nearest to it.

    Two main files of one session may be copies, or two sessions after all (a resume writes the other's id):
    each is read by itself, and threads of one id are joined.
    """
    sessions: dict[tuple[str, str], list[SourceFile]] = {}
    for file in files:
        sessions.setdefault((file.agent, file.session), []).append(file)
    remembered: dict[tuple[str, str], list[SourceEntry]] = {}
    for entry in known.values():
        key = (entry.agent, entry.session)
        if key in sessions:
            remembered.setdefault(key, []).append(entry)
    groups: list[_Group] = []
    for key, members in sessions.items():
        entries = remembered.get(key, [])
        mains = {file.path for file in members if file.is_main}
        mains |= {entry.path for entry in entries if entry.is_main}
        home_of = _home_finder(mains, is_named=bool(key[1]))
        by_home: dict[str, _Group] = {}
        for file in members:
            by_home.setdefault(home_of(file.path), _Group([], [])).files.append(file)
        for entry in entries:
            if (group := by_home.get(home_of(entry.path))) is not None:
                group.entries.append(entry)
        for group in by_home.values():
            told = {entry.path for entry in group.entries}
            own = (known.get(file.path) for file in group.files if file.path not in told)
            group.entries.extend(entry for entry in own if entry is not None)
        groups.extend(by_home.values())
    return groups


def _home_finder(mains: AbstractSet[str], *, is_named: bool) -> Callable[[str], str]:
    """Gives the main file that a file belongs to. Where there is none, parts of one session are together, and
    those of which nothing names the session stay apart."""
    ordered = sorted(mains)

    def home_of(path: str) -> str:
        if path in mains:
            return path
        if not mains:
            return "" if is_named else path
        return max(ordered, key=lambda main: _shared_folders(main, path))

    return home_of


def _shared_folders(one: str, other: str) -> int:
    shared = 0
    for mine, theirs in zip(one.split("/"), other.split("/"), strict=False):
        if mine != theirs:
            break
        shared += 1
    return shared


def _kept(
    group: _Group,
    rules: Rules,
    known: Mapping[str, SourceEntry],
    purged: AbstractSet[str],
    left_out: list[LeftOut],
) -> list[SourceFile]:
    """The files that nothing leaves out. What leaves a main file out leaves its parts out too."""
    of_main = next((rules.leaves_out(file.path, file.workspace) for file in group.files if file.is_main), "")
    is_purged = any(entry.thread_id in purged for entry in group.entries)
    kept = []
    for file in group.files:
        reason = of_main or rules.leaves_out(file.path, file.workspace)
        if reason:
            left_out.append(LeftOut(path=file.path, reason=reason))
        elif not is_purged:
            kept.append(file)
        elif not _is_unchanged(file, known.get(file.path)):
            left_out.append(LeftOut(path=file.path, reason=PURGED))
    return kept


def _plan_of(group: _Group, kept: list[SourceFile], known: Mapping[str, SourceEntry]) -> SessionPlan | None:
    changed = [file for file in kept if not _is_unchanged(file, known.get(file.path))]
    if not changed:
        return None
    changed.sort(key=lambda file: (not file.is_main, file.path))
    entries = sorted(group.entries, key=lambda entry: (not entry.is_main, entry.path))
    before = [*entries, *(known[file.path] for file in changed if file.path in known)]
    waiting = {entry.path for entry in entries if entry.is_unplaced} - {file.path for file in changed}
    return SessionPlan(
        agent=changed[0].agent,
        session=changed[0].session,
        files=tuple(changed),
        known=tuple(entry.path for entry in entries),
        unplaced=tuple(file for file in kept if file.path in waiting),
        is_new=not any(entry.thread_id for entry in before),
        size=sum(_left(file, known.get(file.path)) for file in changed),
    )


def _fork_of(group: _Group, kept: list[SourceFile], known: Mapping[str, SourceEntry]) -> SessionPlan | None:
    """A session that does not have the turns before it was forked, read from its start; None where none is that."""
    for file in kept:
        entry = known.get(file.path)
        is_read = entry is not None and bool(entry.thread_id)
        base = entry.base if entry is not None and is_read else file.base
        if not (file.is_main and base):
            continue
        plan = _plan_of(group, kept, known) or _plan_of(group, [file], {})
        assert plan is not None
        return msgspec.structs.replace(plan, is_new=not is_read, size=max(plan.size, file.size), base=base)
    return None


def _with_forks(
    plans: list[SessionPlan],
    waiting: list[SessionPlan],
    known: Mapping[str, SourceEntry],
    purged: AbstractSet[str],
    unchanged: dict[str, int],
) -> list[SessionPlan]:
    """The same, with the forks whose first session is there, or comes now."""
    if not waiting:
        return plans
    there = {(plan.agent, plan.session) for plan in plans}
    there |= {
        (entry.agent, entry.session)
        for entry in known.values()
        if entry.thread_id and entry.thread_id not in purged
    }
    forks = {fork.key: fork for fork in waiting if (fork.agent, fork.base) in there}
    planned = {plan.key for plan in plans}
    for key, fork in forks.items():
        if key not in planned:
            unchanged[fork.agent] -= 1
    return [*forks.values(), *(plan for plan in plans if plan.key not in forks)]


def _after_their_bases(plans: list[SessionPlan]) -> list[SessionPlan]:
    """The same, forks last, and one of a fork behind that one: what it goes on from is stored when it is read."""
    bases = {(plan.agent, plan.session): plan.base for plan in plans if plan.base}

    def depth(plan: SessionPlan) -> int:
        steps, at = 0, (plan.agent, plan.session)
        while at in bases and steps <= len(bases):
            steps, at = steps + 1, (plan.agent, bases[at])
        return steps

    return sorted(plans, key=depth) if bases else plans


def _is_unchanged(file: SourceFile, entry: SourceEntry | None) -> bool:
    return entry is not None and (file.size, file.mtime_ns, file.inode) == (
        entry.size,
        entry.mtime_ns,
        entry.inode,
    )


def _left(file: SourceFile, entry: SourceEntry | None) -> int:
    if entry is None or file.size < entry.read_to:
        return file.size
    return file.size - entry.read_to
