"""A thread's journal: one line an edit, each with its checksum, its place, and what the next append needs.

`docs/formats/thread-file.md` ("Journal") is this module in prose. A line is `crc32 json`, the JSON being
`{"format", "id", "file", "delta", "next"}`: the Delta, the identity of the `.json` it follows, and a footer
from which the next turn can be written without a look at the thread. Whoever appends without cutting a torn
tail first would glue two lines into one bad one, so every append goes through `append_line`.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from raddle.adapters.files import append_durable, find_bytes, storage_error, truncate_durable
from raddle.model.errors import BrokenFormat, NewerFormat
from raddle.model.threads.delta import (
    Delta,
    decode_delta,
    decode_register,
    delta_from_json,
    encode_delta,
    encode_register,
)
from raddle.model.threads.message import Message
from raddle.model.threads.register import Register

FORMAT = 1
_TAIL_BYTES = 8 * 1024
"""How much is read to find the last line; more only where that line is longer."""
_CRC_DIGITS = 8
_NO_FOOTER = Raw(b"null")


class FileIdentity(NamedTuple):
    """Tells a file from whatever replaces it or is written over it."""

    inode: int
    size: int
    mtime_ns: int


class Tip(Struct, frozen=True, kw_only=True):
    """What a reply to the tip needs of it. The tip of a footer is always a leaf."""

    id: str
    branch_id: str
    role: str
    order: int


class Footer(Struct, frozen=True, kw_only=True):
    """What the next turn needs of a thread that is not deleted.

    Its clock, its tip (None: no turn yet), and the registers that a turn rewrites, with what they saw.
    """

    device: str
    """Whose draft is among the registers."""
    version: int
    clock: int
    tip: Tip | None
    registers: dict[str, Register]


class Line(Struct, frozen=True, kw_only=True):
    """One edit. `footer` is None where the next one has to look at the whole thread."""

    id: str
    file: FileIdentity
    delta: Delta
    footer: Footer | None = None


class BadLine(NamedTuple):
    """A line that says nothing: its number, from 1, and why."""

    number: int
    reason: str


class Journal(Struct, frozen=True, kw_only=True):
    """All of a journal. `end`: the size of its whole lines; what stands after it was never acknowledged."""

    lines: tuple[Line, ...] = ()
    bad: tuple[BadLine, ...] = ()
    end: int = 0
    size: int = 0
    exists: bool = False

    @property
    def is_torn(self) -> bool:
        """Did a write stop in the middle of a line?"""
        return self.end != self.size

    @property
    def file(self) -> FileIdentity | None:
        """The `.json` that the last line follows; None where no line tells."""
        return self.lines[-1].file if self.lines else None

    @property
    def has_edits(self) -> bool:
        """Does any line change the thread?"""
        return any(not line.delta.is_empty for line in self.lines)


class Tail(Struct, frozen=True, kw_only=True):
    """The end of a journal: the size of its whole lines, its size, its last whole line if that is good."""

    end: int
    size: int
    line: Line | None


class _Next(Struct, omit_defaults=True):
    device: str
    version: int
    clock: int
    tip: Tip | bool | None = None
    """True: the last message of the delta."""
    registers: dict[str, Any] = msgspec.field(default_factory=dict, name="set")


class _Delta(Struct, forbid_unknown_fields=True):
    """A delta as nearly all are, so that its messages need no second look."""

    base_version: int = 0
    version: int = 0
    append: list[Message] = []
    set: dict[str, Any] = {}


class _Line(Struct):
    format: int
    id: str
    file: FileIdentity
    delta: Raw
    next: Raw = _NO_FOOTER


class _Format(Struct):
    format: int = 0


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_format = msgspec.json.Decoder(_Format).decode
_decode_plain_delta = msgspec.json.Decoder(_Delta).decode
_decode_next = msgspec.json.Decoder(_Next | None).decode
_encode = msgspec.json.Encoder().encode


def encode_line(line: Line) -> bytes:
    """The bytes of a line, its newline included. What the delta holds is not said again in the footer."""
    plain: dict[str, Any] = {
        "format": FORMAT,
        "id": line.id,
        "file": line.file,
        "delta": encode_delta(line.delta),
    }
    if line.footer is not None:
        plain["next"] = _Next(
            device=line.footer.device,
            version=line.footer.version,
            clock=line.footer.clock,
            tip=True if line.footer.tip in _tip_within(line.delta) else line.footer.tip,
            registers={
                path: encode_register(register)
                for path, register in line.footer.registers.items()
                if path not in line.delta.registers
            },
        )
    data = _encode(plain)
    return b"%08x %b\n" % (zlib.crc32(data), data)


def decode_line(data: bytes, thread_id: str, *, with_footer: bool = True) -> Line:
    """A line without its newline. BrokenFormat: damaged, another thread's. NewerFormat: a newer raddle's."""
    crc, body = data[:_CRC_DIGITS], data[_CRC_DIGITS + 1 :]
    if crc != b"%08x" % zlib.crc32(body):
        raise BrokenFormat("the checksum does not fit")
    try:
        found = _decode_line(body)
        footer = _decode_next(found.next) if with_footer else None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        _refuse_newer(body)
        raise BrokenFormat(f"not a line of a journal: {error}") from error
    if found.format > FORMAT:
        raise NewerFormat("the journal", found.format, FORMAT)
    if found.id != thread_id:
        raise BrokenFormat(f"it belongs to thread {found.id[:60]}")
    delta = _decode_delta(found.delta)
    return Line(
        id=found.id,
        file=found.file,
        delta=delta,
        footer=_footer(footer, delta) if footer is not None else None,
    )


def _decode_delta(data: Raw) -> Delta:
    try:
        plain = _decode_plain_delta(data)
    except (msgspec.MsgspecError, RecursionError):
        return delta_from_json(bytes(data))  # it holds what a newer version or another program wrote
    others = {"base_version": plain.base_version, "version": plain.version, "set": plain.set}
    return msgspec.structs.replace(decode_delta(others), messages=tuple(plain.append))


def _tip_within(delta: Delta) -> tuple[Tip, ...]:
    """The last message of the delta as the tip that it most often is."""
    return tuple(
        Tip(id=last.id, branch_id=last.branch_id, role=last.role, order=last.order)
        for last in delta.messages[-1:]
    )


def _refuse_newer(body: bytes) -> None:
    try:
        found = _decode_format(body).format
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return
    if found > FORMAT:
        raise NewerFormat("the journal", found, FORMAT)


def _footer(plain: _Next, delta: Delta) -> Footer:
    registers = {path: decode_register(register) for path, register in plain.registers.items()}
    tip = plain.tip
    if isinstance(tip, bool):
        if not (tip and delta.messages):
            raise BrokenFormat("the tip is to be found in a delta without messages")
        tip = _tip_within(delta)[0]
    return Footer(
        device=plain.device,
        version=plain.version,
        clock=plain.clock,
        tip=tip,
        registers=registers | dict(delta.registers),
    )


def read_journal(path: Path, thread_id: str) -> Journal:
    """Every whole line. A bad one costs itself; NewerFormat where a newer raddle wrote any."""
    data = find_bytes(path)
    if data is None:
        return Journal()
    end = data.rfind(b"\n") + 1
    lines: list[Line] = []
    bad: list[BadLine] = []
    for number, line in enumerate(data[:end].split(b"\n")[:-1], 1):
        try:
            lines.append(decode_line(line, thread_id, with_footer=False))
        except BrokenFormat as error:
            bad.append(BadLine(number, error.message))
    return Journal(lines=tuple(lines), bad=tuple(bad), end=end, size=len(data), exists=True)


def read_tail(path: Path, thread_id: str) -> Tail | None:
    """The end of the journal, without reading what stands before; None where there is no line."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, path, "read") from error
    try:
        size = os.fstat(fd).st_size
        found = _last_line(fd, size)
    except OSError as error:
        raise storage_error(error, path, "read") from error
    finally:
        os.close(fd)
    if found is None:
        return None
    data, end = found
    try:
        line = decode_line(data, thread_id)
    except BrokenFormat:
        return Tail(end=end, size=size, line=None)  # whoever reads the whole names it
    return Tail(end=end, size=size, line=line)


def _last_line(fd: int, size: int) -> tuple[bytes, int] | None:
    """The last line that has its newline, without it, and where it ends."""
    length = _TAIL_BYTES
    while True:
        start = max(size - length, 0)
        data = os.pread(fd, size - start, start)
        end = data.rfind(b"\n")
        before = data.rfind(b"\n", 0, end) if end > 0 else -1
        if before >= 0 or (end > 0 and start == 0):
            return data[before + 1 : end], start + end + 1
        if start == 0:
            return None
        length *= 8


def append_line(path: Path, line: Line, *, end: int, size: int) -> int:
    """Add `line` durably; the journal's new size.

    `end` and `size` as read under the lock that the caller holds: a torn tail between them is cut off first.
    """
    if end != size:
        truncate_durable(path, end)
    return append_durable(path, encode_line(line))


def identity_of(status: os.stat_result) -> FileIdentity:
    """What tells the file of this `stat` from any later one."""
    return FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns)
