"""What a settings file was before an entry of ours came into it, so that taking it out leaves no trace.

A file's text cannot say whether its empty `hooks` were there before, or which of its line ends are ours. So an install
notes what it changed, and no more of the file: settings hold other programs' secrets.
"""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from raddle.adapters.files import find_bytes, make_folder, write_atomic

Piece = tuple[int, int, bytes]
"""Where something stands in the file as it was left, from one byte to another, and what stood there before."""


class Note(Struct, frozen=True, kw_only=True):
    """Of one file. `sha256`: of the bytes that it was left with. `kept`: the containers that it had before, as `hooks`
    and the events in it, which stay however empty. `is_ours`: it was not there before. `is_folder_ours`: nor was its
    folder."""

    sha256: str
    pieces: tuple[Piece, ...] = ()
    kept: tuple[str, ...] = ()
    is_ours: bool = False
    is_folder_ours: bool = False


_decode = msgspec.json.Decoder(dict[str, Note]).decode


def read_notes(file: Path) -> dict[str, Note]:
    """Path of a settings file -> note. None of a file that does not read: then what is ours is found by its words."""
    try:
        return _decode(find_bytes(file) or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def write_notes(file: Path, notes: dict[str, Note]) -> None:
    """Put them in the place of those that are there."""
    make_folder(file.parent)
    write_atomic(file, msgspec.json.encode(notes))


def noted(before: bytes | None, after: bytes, kept: tuple[str, ...]) -> Note:
    """The note of a file that was `before` and is `after` now."""
    return Note(
        sha256=hashlib.sha256(after).hexdigest(),
        pieces=tuple(_pieces(before or b"", after)),
        kept=kept,
        is_ours=before is None,
    )


def undone(note: Note, data: bytes) -> bytes | None:
    """What the file was before; None where it is not any more what it was left as."""
    if hashlib.sha256(data).hexdigest() != note.sha256:
        return None
    for start, end, before in reversed(note.pieces):
        data = data[:start] + before + data[end:]
    return data


def _pieces(before: bytes, after: bytes) -> list[Piece]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    found = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            start = sum(map(len, new[:j1]))
            found.append(_trimmed(start, b"".join(old[i1:i2]), b"".join(new[j1:j2])))
    return found


def _trimmed(start: int, old: bytes, new: bytes) -> Piece:
    """Without what both begin and end with."""
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    return start + head, start + len(new) - tail, old[head : len(old) - tail]
