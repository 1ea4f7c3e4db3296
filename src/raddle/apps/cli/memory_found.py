"""What a search in a project's memory found, as lines for a person and as JSON for a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from raddle.apps.cli import diagnostics, output, words

if TYPE_CHECKING:
    from raddle.actions.memory.memory_search import MemoryAnswer, MemoryHit

_INDENT = "    "
_MOST_LINES = 2


def shape_of(hit: MemoryHit) -> dict[str, Any]:
    """A hit in the shape of docs/reference/json.md."""
    return {
        "kind": hit.kind,
        "name": hit.name,
        "path": hit.path,
        "namespace": hit.namespace,
        "key": hit.key,
        "run_id": hit.run_id,
        "phase": hit.phase,
        "entry_id": hit.entry_id,
        "at": hit.at,
        "tags": hit.tags,
        "snippet": hit.snippet.text,
        "marks": hit.snippet.marks,
        "score": round(hit.score, 6),
    }


def shape_of_answer(answer: MemoryAnswer) -> dict[str, Any]:
    """An answer in that shape."""
    return {
        "total": answer.total,
        "looked_at": answer.looked_at,
        "ignored": answer.ignored,
        "notes": answer.notes,
        "hits": [shape_of(hit) for hit in answer.hits],
    }


def shown(answer: MemoryAnswer, now: int) -> Iterator[str]:
    """Hits as lines: what it is, its name, when; then the words around what was found."""
    room = output.columns()
    for at, hit in enumerate(answer.hits):
        if at:
            yield ""
        facts = "  ".join(
            filter(None, [words.ago(hit.at, now, is_short=True), *(f"#{tag}" for tag in hit.tags)])
        )
        kind = words.style(hit.kind, "cyan")
        yield f"{kind}  {words.style(words.one_line(hit.name), 'bold')}  {words.style(words.one_line(facts), 'dim')}"
        yield from _snippet(hit.snippet.text, hit.snippet.marks, room)


def _snippet(text: str, marks: Sequence[tuple[int, int]], room: int | None) -> Iterator[str]:
    parts = [(0, len(text))]
    if room is not None:
        parts = words.wrapped(text, room - len(_INDENT) - 2)[:_MOST_LINES]
    for start, end in parts:
        line, at = "", start
        for one, other in marks:
            begin, finish = max(one, start), min(other, end)
            if begin < finish:
                line += text[at:begin] + words.style(text[begin:finish], "red")
                at = finish
        yield _INDENT + line + text[at:end]


def say_looked_at(answer: MemoryAnswer, *, json: bool = False) -> None:
    """What was looked at, so that an empty answer from the wrong place shows that it is from the wrong place."""
    if not json:
        more = f", {len(answer.hits)} shown" if len(answer.hits) < answer.total else ""
        ignored = f"; ignored: {words.one_line(' '.join(answer.ignored))}" if answer.ignored else ""
        looked = words.count(answer.looked_at, "file")
        diagnostics.say(f"{answer.total:,} found{more}; looked at {looked} of this memory{ignored}")
    for note in answer.notes:
        diagnostics.note(words.one_line(note))
