"""The tools of phases: artifacts, the rolling summary, the handoff to the phases after."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from raddle.apps.mcp_server.paging import LARGEST_ANSWER, part_of
from raddle.apps.mcp_server.recalled import recalled, refuse_answers
from raddle.apps.mcp_server.run_tools import PhaseName, RunId
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.texts import tags_of, warn_of_secrets
from raddle.apps.mcp_server.tools import READS, SETS, Arguments, Call, Hints, Tool
from raddle.model.errors import FormatError, InvalidInput


class ArtifactPut(Arguments, frozen=True, kw_only=True):
    """A file that becomes an artifact."""

    source_path: Annotated[str, Meta(description="a file below the workspace")]
    kind: Annotated[str, Meta(description="in a word: report, figure, log")]
    phase: PhaseName = None
    artifact_id: Annotated[str | None, Meta(description="else the file's name")] = None
    run_id: RunId = None


class ArtifactGet(Arguments, frozen=True, kw_only=True):
    """One artifact; a part of a long text from `offset` on."""

    artifact_id: str
    run_id: RunId = None
    offset: Annotated[int, Meta(ge=0)] = 0


class SummaryUpdate(Arguments, frozen=True, kw_only=True):
    """The digest of a phase, whole."""

    markdown: str
    phase: PhaseName = None
    run_id: RunId = None


class OfPhase(Arguments, frozen=True, kw_only=True):
    """One phase of one run."""

    phase: PhaseName = None
    run_id: RunId = None


class SummaryGet(OfPhase, frozen=True, kw_only=True):
    """A summary; a long one a part at a time."""

    offset: Annotated[int, Meta(ge=0)] = 0


class HandoffPublish(Arguments, frozen=True, kw_only=True):
    """A handoff. `evidence`: threads, or `thread:message`."""

    headline: str
    phase: PhaseName = None
    key_results: dict[str, Any] | None = None
    best_artifacts: Annotated[list[str] | str | None, Meta(description="artifact ids")] = None
    decisions: list[str] | None = None
    open_questions: list[str] | None = None
    figures: Annotated[list[str] | str | None, Meta(description="artifact ids")] = None
    evidence: Annotated[list[str] | str | None, Meta(description="thread or thread:message")] = None
    run_id: RunId = None


def artifact_put(session: Session, given: ArtifactPut, call: Call) -> dict[str, Any]:
    """Keep a file of the workspace as an artifact."""
    from raddle.actions.memory.artifacts import add_artifact, artifact_id_of  # noqa: PLC0415
    from raddle.actions.memory.runs import current_phase, resolve_run  # noqa: PLC0415
    from raddle.wiring.memory_artifacts import artifact_source  # noqa: PLC0415
    from raddle.wiring.memory_blobs import MemoryBlobs  # noqa: PLC0415

    file = session.below_workspace(given.source_path, given.workspace)
    if not file.is_file():
        raise InvalidInput(f"{given.source_path[:200]} is no file", "name one file")
    with session.memory(given.workspace) as memory:
        run = resolve_run(memory.files, given.run_id or "")
        with artifact_source(memory, str(file)) as source, MemoryBlobs(memory) as stores:
            added = add_artifact(
                memory.files,
                stores,
                memory.writer(agent=session.agent or None),
                run_id=run.run_id,
                phase=given.phase or current_phase(run),
                artifact_id=given.artifact_id or artifact_id_of(source.name),
                kind=given.kind,
                source=source,
            )
        session.freshness.wrote(memory.root)
    one = added.artifact
    return {
        "artifact_id": one.artifact_id,
        "run_id": run.run_id,
        "phase": one.produced_by_phase,
        "sha256": one.sha256,
        "size_bytes": one.size_bytes,
        "state": "created" if added.is_new else "unchanged",
    }


def artifact_get(session: Session, given: ArtifactGet, call: Call) -> dict[str, Any]:
    """What is known of an artifact, and its text, a part at a time."""
    from raddle.actions.memory.artifacts import find_artifact, get_artifact  # noqa: PLC0415
    from raddle.actions.memory.runs import resolve_run  # noqa: PLC0415
    from raddle.wiring.memory_blobs import MemoryBlobs  # noqa: PLC0415

    with session.memory(given.workspace) as memory:
        run = resolve_run(memory.files, given.run_id or "")
        found = find_artifact(memory.files, run.run_id, given.artifact_id)
        told: dict[str, Any] = {
            "artifact_id": found.artifact_id,
            "run_id": run.run_id,
            "kind": found.kind,
            "phase": found.produced_by_phase,
            "sha256": found.sha256,
            "size_bytes": found.size_bytes,
        }
        if given.offset and given.offset >= found.size_bytes:
            raise InvalidInput(
                f"offset {given.offset:,} is past the end", f"the artifact has {found.size_bytes:,} bytes"
            )
        end = min(given.offset + LARGEST_ANSWER, found.size_bytes)
        with MemoryBlobs(memory) as stores:
            data = b"".join(get_artifact(memory.files, stores, found, given.offset, end))
    try:
        text, taken = _whole_characters(data, is_end=end == found.size_bytes)
    except UnicodeDecodeError:
        told["note"] = f"its bytes are no text: `raddle artifact get {found.artifact_id} -o FILE` writes them"
        return told
    session.recalled.note(f"artifact {found.artifact_id}", text)
    told["text"] = text
    if given.offset + taken < found.size_bytes:
        told["next_offset"] = given.offset + taken
    return recalled(told)


def _whole_characters(data: bytes, *, is_end: bool) -> tuple[str, int]:
    """A part of a text without a character that is cut through at its end, and how many bytes that are."""
    if b"\0" in data:
        raise UnicodeDecodeError("utf-8", data, 0, 1, "a NUL is no text")
    for cut in range(1 if is_end else 4):
        try:
            part = data[: len(data) - cut] if cut else data
            return part.decode(), len(part)
        except UnicodeDecodeError:
            if is_end or cut == 3:
                raise
    raise UnicodeDecodeError("utf-8", data, 0, 1, "not a text")


def summary_update(session: Session, given: SummaryUpdate, call: Call) -> dict[str, Any]:
    """Have this text as the summary of a phase; what it said before stays in the history."""
    from raddle.actions.memory.secrets_seen import seen_secrets  # noqa: PLC0415
    from raddle.actions.memory.summaries import set_summary  # noqa: PLC0415
    from raddle.model.memory.repo_layout import summary_file  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    text = given.markdown
    refuse_answers(text)
    kept = f"{text}\n" if text.strip() and not text.endswith("\n") else text
    with session.memory(given.workspace) as memory:
        run, phase = _place(memory, given.run_id, given.phase)
        with versions_kept(memory, [summary_file(run, phase)]):
            set_summary(memory.files, run, phase, kept if text.strip() else "")
        session.freshness.wrote(memory.root)
    return {"run_id": run, "phase": phase, **warn_of_secrets(seen_secrets(text))}


def summary_get(session: Session, given: SummaryGet, call: Call) -> dict[str, Any]:
    """The summary of a phase; an empty text where there is none."""
    from raddle.actions.memory.summaries import get_summary  # noqa: PLC0415

    with session.memory(given.workspace) as memory:
        run, phase = _place(memory, given.run_id, given.phase)
        text = get_summary(memory.files, run, phase)
    part, more = part_of(text or "", given.offset)
    session.recalled.note(f"summary of {phase}", part)
    return recalled({"run_id": run, "phase": phase, "markdown": part, **more})


def handoff_publish(session: Session, given: HandoffPublish, call: Call) -> dict[str, Any]:
    """Publish what the phases after need to know."""
    from raddle.actions.memory.handoffs import handoff_secrets, publish_handoff  # noqa: PLC0415
    from raddle.apps.mcp_server.evidence import evidence_of  # noqa: PLC0415
    from raddle.model.memory.handoff import Handoff  # noqa: PLC0415
    from raddle.model.memory.repo_layout import handoff_file  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    refuse_answers(given.headline, *(given.decisions or ()), *(given.open_questions or ()))
    with session.memory(given.workspace) as memory:
        run, phase = _place(memory, given.run_id, given.phase)
        draft = Handoff(
            from_phase=phase,
            run_id=run,
            headline=given.headline,
            key_results=given.key_results or {},
            best_artifacts=tags_of(given.best_artifacts),
            decisions=tuple(given.decisions or ()),
            open_questions=tuple(given.open_questions or ()),
            figures=tags_of(given.figures),
            evidence=tuple(
                evidence_of(memory.stores, text, session.access) for text in tags_of(given.evidence)
            ),
        )
        with versions_kept(memory, [handoff_file(run, phase)]):
            published = publish_handoff(memory.files, memory.writer(agent=session.agent or None), draft)
        session.freshness.wrote(memory.root)
    told = {"run_id": published.run_id, "phase": published.from_phase, "published": published.published_ts}
    return {**told, **warn_of_secrets(handoff_secrets(published))}


def handoff_get(session: Session, given: OfPhase, call: Call) -> dict[str, Any]:
    """The handoff of a phase."""
    from raddle.actions.memory.handoffs import show_handoff  # noqa: PLC0415
    from raddle.model.memory.documents import plain_of  # noqa: PLC0415

    with session.memory(given.workspace) as memory:
        run, phase = _place(memory, given.run_id, given.phase)
        try:
            found = show_handoff(memory.files, run, phase)
        except FormatError as error:
            error.hint = error.hint or "`raddle store verify` says more"
            raise
    session.recalled.note(f"handoff of {phase}", found.headline, *found.decisions, *found.open_questions)
    plain: dict[str, Any] = plain_of(found)
    return recalled({name: value for name, value in plain.items() if value not in (None, [], {}, "", ())})


def _place(memory: Any, run_id: str | None, phase: str | None) -> tuple[str, str]:
    """The run and the phase that are meant."""
    from raddle.actions.memory.runs import current_phase, known_phase, resolve_run  # noqa: PLC0415

    run = resolve_run(memory.files, run_id or "")
    return run.run_id, known_phase(memory.files, run, phase or current_phase(run))


TOOLS = (
    Tool(
        name="artifact_put",
        summary="Keep a file as an artifact of the run. It never changes: other bytes need another id.",
        arguments=ArtifactPut,
        run=artifact_put,
        hints=Hints(idempotent=True, open_world=True),
        gives=("artifact_id", "run_id", "phase", "sha256", "size_bytes", "state"),
    ),
    Tool(
        name="artifact_get",
        summary="Read an artifact: its facts, and its text a part at a time.",
        arguments=ArtifactGet,
        run=artifact_get,
        hints=Hints(read_only=True, idempotent=True, open_world=True),
        gives=(
            "artifact_id",
            "run_id",
            "kind",
            "phase",
            "sha256",
            "size_bytes",
            "text",
            "next_offset",
            "note",
        ),
    ),
    Tool(
        name="summary_update",
        summary="Replace the rolling summary of a phase.",
        arguments=SummaryUpdate,
        run=summary_update,
        hints=Hints(destructive=True, idempotent=True),
        gives=("run_id", "phase", "warning"),
    ),
    Tool(
        name="summary_get",
        summary="Read the summary of a phase.",
        arguments=SummaryGet,
        run=summary_get,
        hints=READS,
        gives=("run_id", "phase", "markdown", "next_offset"),
    ),
    Tool(
        name="handoff_publish",
        summary="Publish what later phases need to know of this one; all they read of it. Artifacts named must exist.",
        arguments=HandoffPublish,
        run=handoff_publish,
        hints=SETS,
        gives=("run_id", "phase", "published", "warning"),
    ),
    Tool(
        name="handoff_get",
        summary="Read the handoff of a phase.",
        arguments=OfPhase,
        run=handoff_get,
        hints=READS,
        gives=(
            "schema_version",
            "from_phase",
            "run_id",
            "headline",
            "key_results",
            "best_artifacts",
            "decisions",
            "open_questions",
            "figures",
            "published_ts",
            "author",
            "evidence",
        ),
    ),
)
