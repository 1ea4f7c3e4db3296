"""`raddle summary` and `raddle handoff`: the digest of a phase, and what it publishes for the ones after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.commands.memory_entries import json_object, rests_on
from raddle.apps.cli.memory_options import phase_option, run_option, with_memory
from raddle.apps.cli.memory_words import handoff_lines, tell_conflicts, tell_findings, warn_of_secrets
from raddle.apps.cli.options import TextOrStdin, Words, as_json
from raddle.apps.cli.plain_json import encoded
from raddle.model.errors import InvalidInput, NotFound, StorageError

if TYPE_CHECKING:
    from raddle.actions.ports import Finding
    from raddle.model.memory.handoff import Evidence, Handoff
    from raddle.wiring import Stores
    from raddle.wiring.memory import ProjectMemory


@click.group(
    help="""Read or write the digest of a phase: what somebody who comes to it now needs to know.

    It is written as a whole; git keeps the earlier ones."""
)
def summary() -> None:
    """Commands on summaries."""


@summary.command(help="Print the summary of a phase.")
@run_option
@phase_option()
@as_json
@with_memory
def get(memory: ProjectMemory, run_id: str | None, phase: str | None, json: bool) -> None:
    """Print it as it is."""
    from raddle.actions.memory.summaries import get_summary  # noqa: PLC0415
    from raddle.model.memory.repo_layout import summary_file  # noqa: PLC0415

    run, phase = _place(memory, run_id, phase)
    text = get_summary(memory.files, run, phase)
    if text is None:
        raise NotFound("summary of phase", phase, "`raddle summary set TEXT` writes one")
    if json:
        output.json({"run_id": run, "phase": phase, "text": text})
    else:
        shown = words.safe_lines(text) if output.is_terminal() else text
        output.write(shown if shown.endswith("\n") else shown + "\n")
    tell_conflicts(memory.files, summary_file(run, phase), f"the summary of {phase}")


@summary.command(
    name="set", help="Have TEXT (-: stdin) as the summary of a phase; an empty one takes it away."
)
@click.argument("text", metavar="TEXT", type=TextOrStdin())
@run_option
@phase_option()
@as_json
@with_memory
def set_(memory: ProjectMemory, text: str, run_id: str | None, phase: str | None, json: bool) -> None:
    """Print the phase."""
    from raddle.actions.memory.secrets_seen import seen_secrets  # noqa: PLC0415
    from raddle.actions.memory.summaries import set_summary  # noqa: PLC0415
    from raddle.model.memory.repo_layout import summary_file  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    run, phase = _place(memory, run_id, phase)
    kept = f"{text}\n" if text.strip() and not text.endswith("\n") else text
    with versions_kept(memory, [summary_file(run, phase)]):
        set_summary(memory.files, run, phase, kept if text.strip() else "")
    warn_of_secrets("the summary", seen_secrets(text))
    output.answer(json, {"run_id": run, "phase": phase}, phase)


def _place(memory: ProjectMemory, run_id: str | None, phase: str | None) -> tuple[str, str]:
    """The run and the phase that are meant."""
    from raddle.actions.memory.runs import current_phase, known_phase, resolve_run  # noqa: PLC0415

    run = resolve_run(memory.files, run_id or "")
    return run.run_id, known_phase(memory.files, run, phase or current_phase(run))


@click.group(
    help="""Publish what the next phase needs to know, and read it.

    A handoff is all that a later phase reads of an earlier one. Publishing again replaces it; git keeps the earlier
    ones."""
)
def handoff() -> None:
    """Commands on handoffs."""


@handoff.command(
    help="""Publish the handoff of a phase: from options, from a JSON file, or from both.

    Artifacts that it names have to be there. --result takes JSON, and what is no JSON is a text.

    \b
    raddle handoff publish --headline "Parser twice as fast" --result files_per_second=2100 \\
        --decision "keep the parser in C" --best model --evidence T-018e2b""",
)
@click.option("--headline", metavar="TEXT", type=TextOrStdin(), help="In one line, what the phase came to.")
@click.option("--result", "results", metavar="NAME=VALUE", multiple=True, type=Words(), help="A key result.")
@click.option(
    "--decision", "decisions", metavar="TEXT", multiple=True, type=TextOrStdin(), help="What was decided."
)
@click.option(
    "--question", "questions", metavar="TEXT", multiple=True, type=TextOrStdin(), help="What is open."
)
@click.option("--best", metavar="ARTIFACT", multiple=True, type=Words(), help="An artifact to go on with.")
@click.option(
    "--figure", "figures", metavar="ARTIFACT", multiple=True, type=Words(), help="An artifact to show."
)
@click.option("--evidence", metavar="THREAD[:MESSAGE]", multiple=True, type=Words(), help="What it rests on.")
@click.option("--file", metavar="FILE", type=Words(), help="A handoff as JSON; - for stdin.")
@run_option
@phase_option()
@as_json
@with_memory
def publish(
    memory: ProjectMemory,
    headline: str | None,
    results: tuple[str, ...],
    decisions: tuple[str, ...],
    questions: tuple[str, ...],
    best: tuple[str, ...],
    figures: tuple[str, ...],
    evidence: tuple[str, ...],
    file: str | None,
    run_id: str | None,
    phase: str | None,
    json: bool,
) -> None:
    """Print its run and phase."""
    from msgspec.structs import replace  # noqa: PLC0415  not needed for a help text

    from raddle.actions.memory.handoffs import handoff_secrets, publish_handoff  # noqa: PLC0415
    from raddle.model.memory.repo_layout import handoff_file  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    given = {} if file is None else _given(file)
    named = given.get("from_phase")
    run, phase = _place(memory, run_id, phase or (named if isinstance(named, str) else None))
    written = _draft(
        {**given, "run_id": run, "from_phase": phase, "headline": headline or given.get("headline", "")}
    )
    draft = replace(
        written,
        key_results={**written.key_results, **dict(map(_result, results))},
        decisions=(*written.decisions, *decisions),
        open_questions=(*written.open_questions, *questions),
        best_artifacts=(*written.best_artifacts, *best),
        figures=(*written.figures, *figures),
        evidence=(*written.evidence, *(_evidence(memory.stores, text) for text in evidence)),
    )
    with versions_kept(memory, [handoff_file(run, phase)]):
        published = publish_handoff(memory.files, memory.writer(), draft)
    warn_of_secrets("the handoff", handoff_secrets(published))
    output.answer(json, _shape(published), f"{published.run_id}  {published.from_phase}")


@handoff.command(help="Print the handoff of a phase; without --phase those of every phase.")
@run_option
@phase_option("The phase; else all that have published one.")
@as_json
@with_memory
def show(memory: ProjectMemory, run_id: str | None, phase: str | None, json: bool) -> None:
    """Print it to read, or as JSON."""
    from raddle.actions.memory.handoffs import list_handoffs, show_handoff  # noqa: PLC0415
    from raddle.actions.memory.runs import resolve_run  # noqa: PLC0415
    from raddle.model.memory.repo_layout import handoff_file  # noqa: PLC0415

    run = resolve_run(memory.files, run_id or "").run_id
    findings: list[Finding] = []
    if phase:
        shown = [show_handoff(memory.files, run, phase)]
    else:
        shown, findings = list_handoffs(memory.files, run)
        tell_findings(findings)
    if json:
        output.json(_shape(shown[0]) if phase else [_shape(one) for one in shown])
    else:
        _print_handoffs(shown, memory.stores.clock())
        if not shown and not findings:
            diagnostics.say("no phase has published a handoff yet")
    for one in shown:
        tell_conflicts(memory.files, handoff_file(run, one.from_phase), f"the handoff of {one.from_phase}")


def _print_handoffs(shown: Sequence[Handoff], now: int) -> None:
    for at, one in enumerate(shown):
        if at:
            output.line()
        for line in handoff_lines(one, now):
            output.styled(line)


def _given(file: str) -> dict[str, Any]:
    """The JSON object in a file, or on stdin."""
    if file == "-":
        return json_object(output.text_of_stdin(), "what stdin gave")
    try:
        text = Path(file).read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise NotFound("file", file, "name the file that holds the handoff, or - for stdin") from error
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}", "see whether that is the file") from error
    except ValueError as error:  # a NUL in the name, or a file that is no text
        raise InvalidInput(
            f"{file!r} is no JSON file", "it holds a handoff, or - stands for stdin"
        ) from error
    return json_object(text, file)


def _draft(plain: dict[str, Any]) -> Handoff:
    """The handoff that somebody wrote as JSON; InvalidInput says what in it is none."""
    from raddle.model.errors import FormatError  # noqa: PLC0415
    from raddle.model.memory.handoff import decode_handoff  # noqa: PLC0415

    try:
        return decode_handoff(encoded(plain))
    except FormatError as error:
        raise InvalidInput(error.message, "docs/formats/memory-repo.md shows a handoff") from error


def _result(text: str) -> tuple[str, Any]:
    """`name=value`; a value that is no JSON is a text."""
    import msgspec  # noqa: PLC0415  not needed for a help text

    name, sign, value = text.partition("=")
    if not (sign and name.strip()):
        raise InvalidInput(f"{text[:40]!r} is no result", "a result is NAME=VALUE")
    try:
        return name.strip(), msgspec.json.decode(value.encode())
    except (msgspec.MsgspecError, RecursionError):
        return name.strip(), value


def _evidence(stores: Stores, text: str) -> Evidence:
    """`thread` or `thread:message`; the thread may be cut to the start of its id where it is on this machine."""
    from raddle.model.memory.handoff import Evidence  # noqa: PLC0415

    thread, _, message = text.partition(":")
    thread_id, message_id = rests_on(stores, thread, message or None)
    return Evidence(thread_id=thread_id or "", message_id=message_id)


def _shape(one: Handoff) -> dict[str, Any]:
    """A handoff as its file has it (docs/formats/memory-repo.md)."""
    from raddle.model.memory.documents import plain_of  # noqa: PLC0415

    plain: dict[str, Any] = plain_of(one)
    return plain
