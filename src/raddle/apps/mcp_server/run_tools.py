"""The tools of runs: begin and end one, note what happens in it, read it, and take it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from raddle.actions.memory.handoffs import LONGEST_HEADLINE
from raddle.apps.mcp_server.memory_tools import Cursor, Limit, listed
from raddle.apps.mcp_server.paging import CHARACTERS_A_TOKEN, LARGEST_ANSWER, Budget, after, page
from raddle.apps.mcp_server.recalled import recalled
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.texts import tags_of, warn_of_secrets
from raddle.apps.mcp_server.tools import ADDS, READS, SETS, Arguments, Call, Hints, Tool
from raddle.model.errors import InvalidInput, NotFound, RaddleError

if TYPE_CHECKING:
    from raddle.actions.memory.run_overview import RunOverview
    from raddle.model.memory.entry import ContextEntry
    from raddle.model.memory.run import Run
    from raddle.wiring.memory import ProjectMemory

_PATIENCE_SECONDS = 3.0
"""So long taking up a project waits for what others wrote; then it says that it did not."""
_TOKENS = 4000

RunId = Annotated[str | None, Meta(description="or the start of its id; else the newest active run")]
PhaseName = Annotated[str | None, Meta(description="else the active one")]


class RunStart(Arguments, frozen=True, kw_only=True):
    """A new run."""

    phases: Annotated[list[str] | str | None, Meta(description="else the project's")] = None
    parent: Annotated[str | None, Meta(description="the run it goes on from")] = None


class RunList(Arguments, frozen=True, kw_only=True):
    """A page of runs."""

    limit: Limit = 20
    cursor: Cursor = None


class RunFinish(Arguments, frozen=True, kw_only=True):
    """The end of a run."""

    run_id: RunId = None
    failed: bool = False


class ContextLog(Arguments, frozen=True, kw_only=True):
    """An entry. `payload` may be a text, which is kept as its `text`."""

    type: Annotated[
        str, Meta(description="metric, decision, code_change, artifact_ref, error, milestone or note")
    ]
    phase: PhaseName = None
    payload: Annotated[
        dict[str, Any] | str | None, Meta(description='what happened, {"text": …} or numbers by name')
    ] = None
    tags: list[str] | str | None = None
    links: Annotated[list[str] | str | None, Meta(description="commits, URLs, paths, ids")] = None
    thread_id: Annotated[str | None, Meta(description="the conversation it rests on")] = None
    message_id: str | None = None
    run_id: RunId = None


class ContextRead(Arguments, frozen=True, kw_only=True):
    """A page of entries, the newest first page."""

    phase: str | None = None
    type: str | None = None
    tag: str | None = None
    run_id: RunId = None
    limit: Limit = 50
    cursor: Cursor = None


class ContextBootstrap(Arguments, frozen=True, kw_only=True):
    """How much is told."""

    run_id: RunId = None
    recent_runs: Annotated[int, Meta(ge=0, le=100)] = 5
    memory_limit: Annotated[int, Meta(ge=0, le=1000)] = 100
    tokens: Annotated[int, Meta(ge=200, le=100_000, description="about how long the answer may be")] = _TOKENS
    cursor: Annotated[str | None, Meta(description="for more memories")] = None


def run_start(session: Session, given: RunStart, call: Call) -> dict[str, Any]:
    """Begin a run."""
    from raddle.actions.memory.runs import resolve_run, start_run  # noqa: PLC0415

    with session.memory(given.workspace) as memory:
        begun = start_run(
            memory.files,
            memory.writer(agent=session.agent or None),
            phases=None if given.phases is None else list(tags_of(given.phases)),
            parent=None if given.parent is None else resolve_run(memory.files, given.parent).run_id,
        )
        session.freshness.wrote(memory.root)
    return run_shape(begun)


def run_list(session: Session, given: RunList, call: Call) -> dict[str, Any]:
    """Runs, the newest first."""
    from raddle.actions.memory.runs import list_runs  # noqa: PLC0415

    with session.memory(given.workspace) as memory:
        found = list_runs(memory.files)
    rest = after(found.runs, given.cursor, lambda run: run.run_id)
    shown, following = page(rest, given.limit, run_shape, lambda run: run.run_id)
    told: dict[str, Any] = {"runs": shown, "total": len(found.runs)}
    if following:
        told["cursor"] = following
    if found.findings:
        told["damaged"] = [f"{one.path}: {one.what}" for one in found.findings]
    return told


def run_finish(session: Session, given: RunFinish, call: Call) -> dict[str, Any]:
    """End a run."""
    from raddle.actions.memory.runs import fail_run, finish_run, resolve_run  # noqa: PLC0415

    with session.memory(given.workspace) as memory:
        meant = resolve_run(memory.files, given.run_id or "")
        if not given.run_id and meant.status != "active":
            raise InvalidInput("no run is active", "name the run: run_list lists them")
        end = fail_run if given.failed else finish_run
        ended = end(memory.files, memory.writer(agent=session.agent or None), meant.run_id)
        session.freshness.wrote(memory.root)
    return run_shape(ended)


def run_shape(run: Run) -> dict[str, Any]:
    """A run: its id, how it stands, its phases."""
    told = {
        "run_id": run.run_id,
        "status": run.status,
        "phases": run.phases,
        "created": run.created_ts,
        "parent_run_id": run.parent_run_id,
    }
    return {name: value for name, value in told.items() if value}


def context_log(session: Session, given: ContextLog, call: Call) -> dict[str, Any]:
    """Append an entry."""
    from raddle.actions.memory.entries import add_entry, entry_secrets  # noqa: PLC0415
    from raddle.actions.memory.runs import resolve_run  # noqa: PLC0415

    payload = {"text": given.payload} if isinstance(given.payload, str) else given.payload or {}
    if not (payload or given.tags or given.links or given.thread_id):
        raise InvalidInput("the entry says nothing", 'give payload: {"text": "…"}')
    for text in payload.values():
        if isinstance(text, str):
            session.recalled.refuse_copy(text)
    with session.memory(given.workspace) as memory:
        added = add_entry(
            memory.files,
            memory.writer(agent=session.agent or None),
            resolve_run(memory.files, given.run_id or "").run_id,
            given.phase or "",
            type=given.type,
            payload=payload,
            tags=tags_of(given.tags),
            links=tags_of(given.links),
            thread_id=given.thread_id,
            message_id=given.message_id,
        )
        session.freshness.wrote(memory.root)
    told = {"entry_id": added.entry_id, "run_id": added.run_id, "phase": added.phase}
    return {**told, **warn_of_secrets(entry_secrets(added))}


def context_read(session: Session, given: ContextRead, call: Call) -> dict[str, Any]:
    """Entries of a run, the newest ones of what was asked for, in the order of time."""
    from raddle.actions.memory.entries import check_type, list_entries  # noqa: PLC0415
    from raddle.actions.memory.runs import known_phase, resolve_run  # noqa: PLC0415
    from raddle.wiring.memory_shelf import open_shelf  # noqa: PLC0415

    if given.type:
        check_type(given.type)
    with session.memory(given.workspace) as memory:
        run = resolve_run(memory.files, given.run_id or "")
        phase = None if given.phase is None else known_phase(memory.files, run, given.phase)
        with open_shelf(memory) as shelf:
            found = list_entries(shelf, run.run_id, phase=phase, type=given.type, tag=given.tag)
    newest_first = list(reversed(found.entries))
    rest = after(newest_first, given.cursor, lambda entry: entry.entry_id)
    shown, following = page(
        rest,
        given.limit,
        lambda entry: entry_shape(session, entry),
        lambda entry: entry.entry_id,
        Budget(LARGEST_ANSWER // CHARACTERS_A_TOKEN),
    )
    told: dict[str, Any] = {"run_id": run.run_id, "entries": shown[::-1], "total": len(found.entries)}
    if following:
        told["cursor"] = following
    if found.findings:
        told["damaged"] = [f"{one.path}: {one.what}" for one in found.findings]
    return recalled(told)


def entry_shape(session: Session, entry: ContextEntry) -> dict[str, Any]:
    """An entry, what is empty left out; noted as given out."""
    for text in entry.payload.values():
        if isinstance(text, str):
            session.recalled.note(f"entry {entry.entry_id}", text)
    told = {
        "entry_id": entry.entry_id,
        "phase": entry.phase,
        "type": entry.type,
        "at": entry.ts,
        "payload": entry.payload,
        "tags": entry.tags,
        "links": entry.links,
        "agent": entry.provenance.agent,
        "node_id": entry.provenance.node_id,
        "thread_id": entry.provenance.thread_id,
        "message_id": entry.provenance.message_id,
    }
    return {name: value for name, value in told.items() if value}


def context_bootstrap(session: Session, given: ContextBootstrap, call: Call) -> dict[str, Any]:
    """What to know before any work: how the run stands, what was handed over, what is remembered; within a budget."""
    from raddle.actions.memory.memory_conflicts import other_versions  # noqa: PLC0415
    from raddle.wiring.memory_shelf import open_shelf  # noqa: PLC0415

    budget = Budget(given.tokens)
    with session.memory(given.workspace) as memory:
        news = "" if given.cursor else session.freshness.come_into_step(memory.root, _PATIENCE_SECONDS)
        told: dict[str, Any] = {
            "project": {
                "project_id": memory.project.project_id,
                "name": memory.project.name,
                "phases": memory.project.phases,
            }
        }
        if news:
            told["sync"] = news
        with open_shelf(memory) as shelf:
            lines = shelf.memories(None, "")
        if not given.cursor:
            told["run"] = _run_told(session, memory, given.run_id, budget)
            told["recent_runs"] = _recent(
                session, memory, told["run"].get("run_id"), given.recent_runs, budget
            )
            if waiting := other_versions(memory.files):
                told["conflicts"] = f"{len(waiting)} to be settled: `raddle memory resolve` lists them"
    told |= listed(lines, limit=given.memory_limit, cursor=given.cursor, budget=budget)
    told["next"] = (
        "memory_read, memory_search, context_read, thread_search for more; cursor for more memories"
    )
    return recalled({name: value for name, value in told.items() if value})


def _run_told(session: Session, memory: ProjectMemory, run_id: str | None, budget: Budget) -> dict[str, Any]:
    """The run that is meant, as far as there is room; empty where there is none yet."""
    from raddle.actions.memory.run_overview import overview  # noqa: PLC0415
    from raddle.actions.memory.runs import resolve_run  # noqa: PLC0415
    from raddle.wiring.memory_shelf import IndexedEntries  # noqa: PLC0415

    try:
        run = resolve_run(memory.files, run_id or "")
    except NotFound:
        if run_id:
            raise
        return {}
    try:
        found = overview(memory.files, IndexedEntries(memory), run.run_id)
    except RaddleError as error:
        return {**run_shape(run), "damaged": error.message}
    return {**run_shape(found.run), **_told_of(session, found, budget)}


def _recent(
    session: Session, memory: ProjectMemory, current: str | None, most: int, budget: Budget
) -> list[dict[str, Any]]:
    """The runs before, the newest first, each with the headlines that it handed over."""
    from raddle.actions.memory.handoffs import list_handoffs  # noqa: PLC0415
    from raddle.actions.memory.runs import list_runs  # noqa: PLC0415

    told: list[dict[str, Any]] = []
    for run in [run for run in list_runs(memory.files).runs if run.run_id != current][:most]:
        shape = run_shape(run)
        if headlines := {
            one.from_phase: _line(one.headline) for one in list_handoffs(memory.files, run.run_id).handoffs
        }:
            shape["headlines"] = headlines
        if not budget.takes(shape):
            break
        session.recalled.note(f"handoffs of run {run.run_id}", *headlines.values())
        told.append(shape)
    return told


def _line(headline: str) -> str:
    """Not more of it than a line: another program may have written any length."""
    return headline if len(headline) <= LONGEST_HEADLINE else f"{headline[:LONGEST_HEADLINE]} …"


def _told_of(session: Session, found: RunOverview, budget: Budget) -> dict[str, Any]:
    told: dict[str, Any] = {}
    handoffs: list[dict[str, Any]] = []
    for handoff in reversed(found.handoffs):
        shape: dict[str, Any] = {
            "phase": handoff.from_phase,
            "headline": handoff.headline,
            "key_results": handoff.key_results,
            "decisions": handoff.decisions,
            "open_questions": handoff.open_questions,
        }
        if not budget.takes(shape):
            shape = {"phase": handoff.from_phase, "headline": _line(handoff.headline), "more": "handoff_get"}
            budget.takes(shape)
        session.recalled.note(f"handoff of {handoff.from_phase}", handoff.headline, *handoff.decisions)
        handoffs.insert(0, {name: value for name, value in shape.items() if value})
    if handoffs:
        told["handoffs"] = handoffs
    if found.summary:
        text, is_whole = budget.cut(found.summary, share=0.4)
        session.recalled.note(f"summary of {found.summary_phase}", text)
        told["summary"] = {
            "phase": found.summary_phase,
            "text": text,
            **({} if is_whole else {"more": "summary_get"}),
        }
    entries: list[dict[str, Any]] = []
    for entry in reversed(found.entries):
        shape = entry_shape(session, entry)
        if not budget.takes(shape):
            told["more_entries"] = "context_read"
            break
        entries.insert(0, shape)
    if entries:
        told["entries"] = entries
    if found.findings:
        told["damaged"] = [f"{one.path}: {one.what}" for one in found.findings]
    return told


TOOLS = (
    Tool(
        name="context_bootstrap",
        summary="Call first: the project, its current run, handoffs, newest entries and the index of its memory.",
        arguments=ContextBootstrap,
        run=context_bootstrap,
        hints=Hints(read_only=True, idempotent=True, open_world=True),
        gives=("project", "sync", "run", "recent_runs", "conflicts", "memories", "total", "cursor", "next"),
    ),
    Tool(
        name="run_start",
        summary="Begin a run: one attempt through the phases.",
        arguments=RunStart,
        run=run_start,
        hints=ADDS,
        gives=("run_id", "status", "phases", "created", "parent_run_id"),
    ),
    Tool(
        name="run_list",
        summary="List runs, newest first.",
        arguments=RunList,
        run=run_list,
        hints=READS,
        gives=("runs", "total", "cursor", "damaged"),
    ),
    Tool(
        name="run_finish",
        summary="End a run: done, or failed.",
        arguments=RunFinish,
        run=run_finish,
        hints=SETS,
        gives=("run_id", "status", "phases", "created", "parent_run_id"),
    ),
    Tool(
        name="context_log",
        summary="Note what happened in the run: one entry, which never changes.",
        arguments=ContextLog,
        run=context_log,
        hints=ADDS,
        gives=("entry_id", "run_id", "phase", "warning"),
    ),
    Tool(
        name="context_read",
        summary="Read entries of a run, the newest page first.",
        arguments=ContextRead,
        run=context_read,
        hints=READS,
        gives=("run_id", "entries", "total", "cursor", "damaged"),
    ),
)
