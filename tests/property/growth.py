"""What the growth properties of all importers ask of a reading, whatever session an agent's own steps made up."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence

from hypothesis import strategies as st

from raddle.actions.importing.importer import Importer, SourceName
from raddle.model.threads.message import Message
from tests.reading import Reading, difference, read, read_on, same_thread

TOKEN = re.compile(r"w\d+w")
"""A word of a made-up session: whoever makes one up says each of them once."""


def words_in(reading: Reading) -> dict[str, int]:
    """How many messages say each word."""
    counts: dict[str, int] = {}
    for message in reading.thread.messages:
        said = {message.content, message.thinking, json.dumps([c.arguments_json for c in message.tool_calls])}
        for word in {word for text in said for word in TOKEN.findall(text)}:
            counts[word] = counts.get(word, 0) + 1
    return counts


def must_be_in_reach(reading: Reading, *, heads: int) -> None:
    """Nothing is lost, there are `heads` ends at most, and messages stand in their order, parents first."""
    tree = reading.thread.tree
    assert tree.lost() == []
    assert len(tree.heads()) <= heads
    messages = list(tree)
    assert [message.order for message in messages] == sorted({message.order for message in messages})
    for message in messages:
        above = tree.get(message.parent_id or "")
        assert above is None or tree.key(above.id) < tree.key(message.id)


def must_grow_to_the_same(
    importer: Importer, file: SourceName, lines: Sequence[bytes], cuts: Iterable[int]
) -> None:
    """Read in goes that end at `cuts`, the way an import does it, a file gives what it gives at once."""
    whole = read(importer, file, lines)
    places = sorted({0, len(lines), *(cut % (len(lines) + 1) for cut in cuts)})
    grown = read(importer, file, lines[: places[0]])
    for start, end in itertools.pairwise(places):
        after = read(importer, file, lines[start:end], before=grown) if grown.ending.state else None
        if after is None or after.ending.needs_whole:
            after = read(importer, file, lines[:end])
            after.thread.join(grown.thread.whole())
        grown = after
    assert same_thread(grown.thread, whole.thread), difference(grown.thread, whole.thread)
    assert grown.ending.thread_id == whole.ending.thread_id


def must_read_a_torn_line_when_it_is_whole(
    importer: Importer, file: SourceName, lines: Sequence[bytes], data: st.DataObject
) -> None:
    """Read while its last line was half written, then on from there, a file gives what it gives at once."""
    whole = read(importer, file, lines)
    at = data.draw(st.integers(0, len(lines) - 1))
    cut = data.draw(st.integers(0, len(lines[at])))
    begun = read(importer, file, b"".join(line + b"\n" for line in lines[:at]) + lines[at][:cut])
    after = read(importer, file, lines[at:], before=begun) if begun.ending.state else whole
    if not after.ending.needs_whole:
        assert same_thread(after.thread, whole.thread), difference(after.thread, whole.thread)


def kept_in_place(
    importer: Importer, file: SourceName, lines: Sequence[bytes], cut: int
) -> Iterator[tuple[Message, Message]]:
    """(a message of the first lines, the same after the rest), each of which stands where it stood."""
    cut %= len(lines) + 1
    grown = read_on(importer, file, lines[:cut], lines[cut:])
    for before in read(importer, file, lines[:cut]).thread.messages:
        after = grown.thread.tree.get(before.id)
        assert after is not None
        assert (after.parent_id, after.branch_id, after.order) == (
            before.parent_id,
            before.branch_id,
            before.order,
        )
        yield before, after


def with_junk(lines: Sequence[bytes], damage: Iterable[tuple[int, bytes]]) -> list[bytes]:
    """The lines, and lines of junk between them."""
    damaged = list(lines)
    for at, junk in damage:
        damaged.insert(at % (len(damaged) + 1), junk.replace(b"\n", b" "))
    return damaged
