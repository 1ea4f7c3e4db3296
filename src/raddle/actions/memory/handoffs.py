"""Handoffs: what a phase publishes for the ones after it, and all that these read of it. Owns that its references lead
somewhere when it is published."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from raddle.actions.memory.payloads import check_payload, check_size
from raddle.actions.memory.ports import StoreFiles, Writer
from raddle.actions.memory.runs import known_phase, phases_in_order, read_run
from raddle.actions.memory.secrets_seen import seen_secrets
from raddle.actions.ports import Finding
from raddle.model.clock import format_time
from raddle.model.errors import FormatError, InvalidInput, NotFound
from raddle.model.ids import parse_message_id, parse_thread_id
from raddle.model.memory.artifact import decode_index
from raddle.model.memory.handoff import Evidence, Handoff, decode_handoff, encode_handoff
from raddle.model.memory.names import shown
from raddle.model.memory.repo_layout import PROJECT_FILE, handoff_file, index_file
from raddle.model.memory.run import Run


class Handoffs(NamedTuple):
    """Handoffs in the order of their phases, and what is wrong with those that are not among them."""

    handoffs: list[Handoff]
    findings: list[Finding]


LONGEST_HEADLINE = 500
"""Characters: everybody who takes up the project reads it."""


def publish_handoff(files: StoreFiles, writer: Writer, draft: Handoff) -> Handoff:
    """Publish `draft` as the handoff of its phase, in place of the one there is, which git keeps.

    Its time is now, its author is the writer's where the draft names none. NotFound for the run or an artifact,
    InvalidInput for a phase that the run does not have, no headline, or a reference that leads nowhere; TooLarge. A
    FormatError where the one there cannot be read: it is not replaced.
    """
    run = read_run(files, draft.run_id)
    for name in Handoff.__struct_fields__:
        if name in draft.unknown:
            raise InvalidInput(
                f"{name} is not what a handoff has there", "docs/formats/memory-repo.md shows one"
            )
    handoff = replace(
        draft,
        run_id=run.run_id,
        from_phase=known_phase(files, run, draft.from_phase),
        headline=_headline(draft.headline),
        key_results=check_payload(draft.key_results, "the results"),
        best_artifacts=_lines(draft.best_artifacts),
        decisions=_lines(draft.decisions),
        open_questions=_lines(draft.open_questions),
        figures=_lines(draft.figures),
        evidence=tuple(map(_checked_evidence, draft.evidence)),
        published_ts=format_time(writer.now()),
        author=draft.author or writer.author or None,
    )
    _check_artifacts(files, handoff)
    data = check_size(encode_handoff(handoff), "the handoff")

    def over(old: bytes | None) -> bytes:
        if old:  # what cannot be read is not ours to replace: a newer raddle's, or damaged
            decode_handoff(old)
        return data

    files.change(handoff_file(handoff.run_id, handoff.from_phase), over)
    return handoff


def show_handoff(files: StoreFiles, run_id: str, phase: str) -> Handoff:
    """The handoff of a phase; NotFound where none was published, a FormatError where it cannot be read."""
    run = read_run(files, run_id)
    name = known_phase(files, run, phase)
    handoff = _read(files, run, name)
    if handoff is None:
        raise NotFound("handoff of phase", name, "`raddle handoff publish` makes one")
    return handoff


def list_handoffs(files: StoreFiles, run_id: str) -> Handoffs:
    """Every handoff of a run."""
    run = read_run(files, run_id)
    return _of_phases(files, run, phases_in_order(files, run))


def upstream(files: StoreFiles, run_id: str, phase: str) -> Handoffs:
    """The handoffs of the phases before `phase`, in the project's order; all that a later phase reads of them.

    NotFound for the run, InvalidInput for a phase that it does not have.
    """
    run = read_run(files, run_id)
    name = known_phase(files, run, phase)
    order = phases_in_order(files, run)
    return _of_phases(files, run, order[: order.index(name)])


def handoff_secrets(handoff: Handoff) -> list[str]:
    """The kinds of secrets that a handoff seems to hold."""
    return seen_secrets(encode_handoff(handoff).decode())


def _of_phases(files: StoreFiles, run: Run, phases: tuple[str, ...]) -> Handoffs:
    found = Handoffs([], [])
    for phase in phases:
        try:
            path = handoff_file(run.run_id, phase)
        except InvalidInput as error:  # a phase of a name that no system but its own can hold
            found.findings.append(Finding(path=PROJECT_FILE, what=error.message))
            continue
        try:
            handoff = _read(files, run, phase)
        except FormatError as error:
            found.findings.append(Finding(path=path, what=error.message))
            continue
        if handoff is not None:
            found.handoffs.append(handoff)
    return found


def _read(files: StoreFiles, run: Run, phase: str) -> Handoff | None:
    """Where it stands says whose it is, also where a copied file says another thing."""
    data = files.read(handoff_file(run.run_id, phase))
    return None if data is None else replace(decode_handoff(data), run_id=run.run_id, from_phase=phase)


def _headline(text: str) -> str:
    headline = " ".join(text.split())
    if not headline:
        raise InvalidInput("a handoff needs a headline", "say in one line what the phase came to")
    if len(headline) > LONGEST_HEADLINE:
        raise InvalidInput(
            f"a headline of {len(headline):,} characters",
            f"one line, {LONGEST_HEADLINE} at most: more goes elsewhere",
        )
    return headline


def _lines(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text.strip() for text in texts if text.strip())


def _checked_evidence(piece: Evidence) -> Evidence:
    return replace(
        piece,
        thread_id=parse_thread_id(piece.thread_id),
        message_id=parse_message_id(piece.message_id) if piece.message_id else None,
    )


def _check_artifacts(files: StoreFiles, handoff: Handoff) -> None:
    named = dict.fromkeys((*handoff.best_artifacts, *handoff.figures))
    if not named:
        return
    data = files.read(index_file(handoff.run_id))
    index = None if data is None else decode_index(data)
    known = set() if index is None else {*index.artifacts, *index.unread}
    for artifact_id in named:
        if artifact_id not in known:
            hint = (
                f"the run has {', '.join(map(shown, sorted(known)[:8]))}"
                if known
                else "`raddle artifact add` makes one"
            )
            raise NotFound("artifact", artifact_id, hint)
