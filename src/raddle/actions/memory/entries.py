"""Entries: what happens in a run, appended one file each, and listed. Owns what may be written into one.

An append needs no lock, no git and no look at the entries before it, so that it costs the same however many there
are. A second writer of entries would count through the folder each time, or give two of them one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from raddle.actions.memory.payloads import (
    LONGEST_LINK,
    LONGEST_TAG,
    check_payload,
    check_size,
    check_texts,
)
from raddle.actions.memory.ports import StoreFiles, Writer
from raddle.actions.memory.runs import current_phase, known_phase, read_run
from raddle.actions.memory.secrets_seen import seen_secrets
from raddle.actions.ports import Finding
from raddle.model.clock import format_time, parse_time
from raddle.model.errors import FormatError, InvalidInput
from raddle.model.ids import parse_message_id, parse_thread_id
from raddle.model.memory.entry import ENTRY_TYPES, ContextEntry, decode_entry, encode_entry
from raddle.model.memory.names import shown
from raddle.model.memory.repo_layout import (
    RUNS_FOLDER,
    Place,
    check_phase,
    entries_folder,
    entry_file,
    place_of,
    run_folder,
)
from raddle.model.memory.ulids import new_ulid, parse_ulid, ulid_time


class NewEntry(Struct, frozen=True, kw_only=True):
    """What is to be appended. `type`: one of ENTRY_TYPES. `payload`: any JSON object. `thread_id`, `message_id`: what
    it rests on."""

    type: str
    payload: Mapping[str, Any] = {}
    tags: Sequence[str] = ()
    links: Sequence[str] = ()
    thread_id: str | None = None
    message_id: str | None = None


class EntryLog:
    """Appends to the runs of one store. Kept by whoever appends often: what it looked up once (which phases a run
    has, how far a phase is numbered) it does not look up again."""

    def __init__(self, files: StoreFiles, writer: Writer) -> None:
        self._files = files
        self._writer = writer
        self._phases: dict[tuple[str, str], tuple[str, str]] = {}
        self._last: dict[tuple[str, str], int] = {}

    def add(self, run_id: str, phase: str, entry: NewEntry) -> ContextEntry:
        """The entry, which is on the disk now. As `add_all`."""
        return self.add_all(run_id, phase, [entry])[0]

    def add_all(self, run_id: str, phase: str, entries: Sequence[NewEntry]) -> list[ContextEntry]:
        """The entries in their order, which are on the disk now, with one wait for all; none of them where one is
        refused.

        `phase`: empty for the run's current one. NotFound for a run that is not there; InvalidInput for a phase that
        it does not have and for an entry that cannot be written; TooLarge.
        """
        if not entries:
            return []
        key = self._place(run_id, phase)
        first = self._next_seq(key)
        made = [self._made(key, entry) for entry in entries]
        files = {
            entry_file(*key, first + at, entry.entry_id): check_size(encode_entry(entry), "an entry")
            for at, entry in enumerate(made)
        }
        self._last[key] = first + len(made) - 1
        self._files.add(files)
        return made

    def _place(self, run_id: str, phase: str) -> tuple[str, str]:
        """Run and phase, canonical. Which phase is current changes, and is looked up each time."""
        known = self._phases.get((run_id, phase))
        if known is None:
            run = read_run(self._files, run_id)
            known = (run.run_id, known_phase(self._files, run, phase or current_phase(run)))
            if phase:
                self._phases[run_id, phase] = known
        return known

    def _next_seq(self, key: tuple[str, str]) -> int:
        last = self._last.get(key)
        return (last_seq(self._files, *key) if last is None else last) + 1

    def _made(self, key: tuple[str, str], entry: NewEntry) -> ContextEntry:
        if entry.message_id and not entry.thread_id:
            raise InvalidInput("a message is named without its thread", "name the thread too")
        return ContextEntry(
            entry_id=new_ulid(self._writer.new_id),
            run_id=key[0],
            phase=key[1],
            type=check_type(entry.type),
            ts=format_time(self._writer.now()),
            provenance=self._writer.provenance(
                thread_id=parse_thread_id(entry.thread_id) if entry.thread_id else None,
                message_id=parse_message_id(entry.message_id) if entry.message_id else None,
            ),
            payload=check_payload(dict(entry.payload), "the payload"),
            tags=check_texts(entry.tags, "tag", LONGEST_TAG),
            links=check_texts(entry.links, "link", LONGEST_LINK),
        )


def check_type(text: str) -> str:
    """`text` where it is one of ENTRY_TYPES; else InvalidInput names them."""
    if text not in ENTRY_TYPES:
        raise InvalidInput(f"{shown(text)} is no type of entry", f"it is one of {', '.join(ENTRY_TYPES)}")
    return text


def add_entry(
    files: StoreFiles,
    writer: Writer,
    run_id: str,
    phase: str,
    *,
    type: str,  # noqa: A002  the field's name in the file
    payload: Mapping[str, Any],
    tags: Sequence[str] = (),
    links: Sequence[str] = (),
    thread_id: str | None = None,
    message_id: str | None = None,
) -> ContextEntry:
    """Append one entry; see `EntryLog.add_all`. Who appends more than one keeps an EntryLog."""
    entry = NewEntry(
        type=type, payload=payload, tags=tags, links=links, thread_id=thread_id, message_id=message_id
    )
    return EntryLog(files, writer).add(run_id, phase, entry)


def add_entries(
    files: StoreFiles, writer: Writer, run_id: str, phase: str, entries: Sequence[NewEntry]
) -> list[ContextEntry]:
    """Append many, with one wait for the disk; see `EntryLog.add_all`."""
    return EntryLog(files, writer).add_all(run_id, phase, entries)


def last_seq(files: StoreFiles, run_id: str, phase: str) -> int:
    """The highest number of an entry of the phase; 0 where there is none."""
    folder = entries_folder(run_id, phase)
    numbers = {
        int(digits): name
        for name in files.names(folder)
        if (digits := name.partition("-")[0]).isascii() and digits.isdigit()
    }
    # From the highest on, for a name that only looks like an entry's does not count: to look at each takes too long.
    for number in sorted(numbers, reverse=True):
        if place_of(f"{folder}/{numbers[number]}").kind == "entry":
            return number
    return 0


def entry_secrets(entry: ContextEntry) -> list[str]:
    """The kinds of secrets that an entry seems to hold."""
    return seen_secrets(encode_entry(entry).decode())


class Entries(NamedTuple):
    """Entries in the order of their ULIDs, the newest last, and what is wrong with those that are not among them."""

    entries: list[ContextEntry]
    findings: list[Finding]


class EntryReader(Protocol):
    """What lists read: the files themselves, or something that was made of them and answers sooner."""

    def entries(self, run_id: str, phase: str | None = None) -> Entries:
        """Those of a run (a whole id, in upper case), or of one of its phases."""

    def resting_on(self, thread_id: str) -> Entries:
        """Those of any run that name this thread (a whole id) as what they rest on; no findings, for of a damaged file
        nobody knows what it rested on."""


class EntryFiles:
    """An EntryReader over the files themselves: each one is opened, each time."""

    def __init__(self, files: StoreFiles) -> None:
        self._files = files

    def entries(self, run_id: str, phase: str | None = None) -> Entries:
        """Those of a run, or of one of its phases."""
        return self._read(run_folder(run_id), phase=phase)

    def resting_on(self, thread_id: str) -> Entries:
        """Those of any run that name this thread."""
        found = self._read(RUNS_FOLDER, holding=thread_id.encode()).entries
        return Entries([entry for entry in found if entry.provenance.thread_id == thread_id], [])

    def _read(self, folder: str, *, phase: str | None = None, holding: bytes = b"") -> Entries:
        """The entries below a folder (of a phase) in whose bytes `holding` stands."""
        places = [
            place
            for place in map(place_of, self._files.paths(folder))
            if place.kind == "entry" and (not phase or place.phase == phase)
        ]
        found = Entries([], [])
        for place in sorted(places, key=lambda place: place.entry_id):
            data = self._files.read(place.path)
            if data is None or holding not in data:
                continue
            try:
                found.entries.append(entry_at(place, data))
            except FormatError as error:
                found.findings.append(Finding(path=place.path, what=error.message))
        return found


def entry_at(place: Place, data: bytes) -> ContextEntry:
    """The entry in the file of that place, which says what it is where the file says another thing (a copied folder).

    A FormatError where it cannot be read.
    """
    entry = decode_entry(data)
    if (entry.entry_id, entry.run_id, entry.phase) == (place.entry_id, place.run_id, place.phase):
        return entry
    return replace(entry, entry_id=place.entry_id, run_id=place.run_id, phase=place.phase)


def list_entries(
    reader: EntryReader,
    run_id: str | None,
    *,
    phase: str | None = None,
    type: str | None = None,  # noqa: A002  the field's name in the file
    tag: str | None = None,
    since: int | None = None,
    limit: int | None = None,
    text: str | None = None,
    thread: str | None = None,
) -> Entries:
    """The entries of a run to which all of these apply, the newest last; at most the `limit` newest ones.

    `run_id`: a whole id; None for every run, which goes with `thread` only. `since`: microseconds since 1970. `text`:
    each of its words stands somewhere in the payload, the tags or the links, in any case. `thread`: a thread id.
    """
    thread_id = parse_thread_id(thread) if thread else None
    phase = _canonical(phase)
    if run_id is not None:
        found = reader.entries(parse_ulid(run_id, "run id"), phase)
    elif thread_id is not None:
        found = reader.resting_on(thread_id)
    else:
        raise InvalidInput("entries of every run can be listed by thread only", "name the run, or the thread")
    wanted_words = text.casefold().split() if text else []
    kept = [
        entry
        for entry in found.entries
        if (not phase or entry.phase == phase)
        and (not type or entry.type == type)
        and (not tag or tag in entry.tags)
        and (thread_id is None or entry.provenance.thread_id == thread_id)
        and (since is None or _time_of(entry) >= since)
        and (not wanted_words or _holds(entry, wanted_words))
    ]
    return Entries(kept if limit is None else kept[-limit:] if limit > 0 else [], found.findings)


def _canonical(phase: str | None) -> str | None:
    """A phase in its canonical form; one of another program's that has none, as it is."""
    try:
        return check_phase(phase) if phase else None
    except InvalidInput:
        return phase


def _time_of(entry: ContextEntry) -> int:
    at = parse_time(entry.ts)
    return ulid_time(entry.entry_id) if at is None else at


def _holds(entry: ContextEntry, words: Iterable[str]) -> bool:
    said = "\n".join(_texts_in([entry.payload, entry.tags, entry.links])).casefold()
    return all(word in said for word in words)


def _texts_in(value: Any) -> Iterator[str]:
    """Every text in a plain value, keys of objects too, and numbers as they are written."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += [*part.values(), *part]
        elif isinstance(part, list | tuple):
            waiting += part
        elif part is not None:
            yield str(part)
