"""Runs, entries and handoffs as lines for a terminal, and the warnings that several commands of a memory share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from raddle.apps.cli import diagnostics, words
from raddle.apps.cli.plain_json import encoded, mended

if TYPE_CHECKING:
    from raddle.actions.memory.ports import StoreFiles
    from raddle.actions.ports import Finding
    from raddle.model.memory.entry import ContextEntry
    from raddle.model.memory.handoff import Handoff

_LONGEST_LOOK = 2000
"""Characters of a text that are looked at to fill one line."""
_STATUS_COLOURS = {"active": "yellow", "done": "green", "failed": "red"}


def warn_of_secrets(what: str, kinds: Sequence[str]) -> None:
    """Say that what was just written seems to hold secrets of these kinds, where it does; never which."""
    if kinds:
        diagnostics.warn(
            f"{what} seems to hold {' and '.join(kinds)}; a store is synced, and its history keeps what was in it"
        )


def tell_conflicts(files: StoreFiles, path: str, what: str) -> None:
    """A line where other versions of what stands at `path` wait to be settled; `what`: what a person calls it."""
    from raddle.actions.memory.memory_conflicts import versions_beside  # noqa: PLC0415

    waiting = versions_beside(files, path)
    if waiting:
        count = words.count(len(waiting), "other version")
        diagnostics.note(f"{words.one_line(what)} has {count}: `raddle memory resolve` lists them")


def tell_findings(findings: Iterable[Finding]) -> None:
    """A line for each file that could not be read: it cost itself only."""
    for finding in findings:
        diagnostics.found(finding)


def status(text: str) -> str:
    """A status in its colour."""
    return words.style(words.one_line(text), _STATUS_COLOURS.get(text))


def count_entries(number: int) -> str:
    """`1 entry`, `1,204 entries`."""
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


def entry_lines(entries: Sequence[ContextEntry], *, room: int | None, with_run: bool = False) -> list[str]:
    """A line for each: when, (run,) phase, type, what it says, its tags. Cut to `room`."""
    rows = [
        [
            words.local_minute(entry.ts),
            *([entry.run_id] if with_run else []),
            words.one_line(entry.phase),
            words.one_line(entry.type),
            " ".join(filter(None, [said(entry.payload), *(words.one_line(f"#{tag}") for tag in entry.tags)])),
        ]
        for entry in entries
    ]
    run = (26,) if with_run else ()
    return words.table(
        rows,
        (16, *run, 20, 12, 400),
        styles=("dim", *(("dim",) if with_run else ()), None, "cyan", None),
        width=room,
        shrink=(3 + len(run),),
    )


def said(payload: dict[str, Any]) -> str:
    """What a payload says in one line: its `text`, then the rest as `name=value`."""
    text = payload.get("text")
    parts = [text[:_LONGEST_LOOK]] if isinstance(text, str) else []
    parts += [
        f"{name}={value if isinstance(value, str) else encoded(value).decode()}"[:_LONGEST_LOOK]
        for name, value in payload.items()
        if not (name == "text" and isinstance(text, str))
    ]
    return words.one_line(" ".join(map(mended, parts)))


def handoff_lines(handoff: Handoff, now: int) -> Iterator[str]:
    """A handoff to read: the headline, the results, and each of its lists that says something."""
    yield words.style(words.one_line(handoff.headline), "bold")
    facts = [f"phase {handoff.from_phase}", f"run {handoff.run_id}"]
    if handoff.published_ts:
        facts.append(words.ago(handoff.published_ts, now))
    if handoff.author:
        facts.append(f"by {handoff.author}")
    yield words.style(words.one_line("  ".join(facts)), "dim")
    results = [
        (
            words.one_line(name),
            said({"text": value} if isinstance(value, str) else {"": value}).removeprefix("="),
        )
        for name, value in handoff.key_results.items()
    ]
    yield from _section("Results", words.table(results, (40, 400), styles=(None, None)))
    for title, texts in (
        ("Decisions", handoff.decisions),
        ("Open questions", handoff.open_questions),
        ("Best artifacts", handoff.best_artifacts),
        ("Figures", handoff.figures),
        ("Rests on", [_named(piece.thread_id, piece.message_id) for piece in handoff.evidence]),
    ):
        yield from _section(title, [f"- {words.one_line(text)}" for text in texts])


def _named(thread_id: str, message_id: str | None) -> str:
    return f"{thread_id}:{message_id}" if message_id else thread_id


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield words.style(title, "bold")
        yield from (f"  {line}" for line in lines)
