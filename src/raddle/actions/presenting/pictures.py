"""Pictures, told from what only says that it is one: the bytes are looked at, whatever a name promises.

A picture that is cut off or damaged is named instead of shown. Passed on, it would make a slide that a program repairs
or refuses, and nobody would know why.
"""

from __future__ import annotations

import struct
import zlib

from msgspec import Struct

LARGEST = 32 << 20
"""Bytes: what is larger makes a deck that nobody can mail."""
_MOST_PIXELS = 100_000_000
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_END = b"IEND"
_SOI, _EOI = b"\xff\xd8", b"\xff\xd9"
_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
"""JPEGs that every program shows: baseline, extended, progressive."""
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
_SCAN = 0xDA


class Picture(Struct, frozen=True, kw_only=True):
    """`ending`: `png` or `jpg`. `width`, `height`: pixels."""

    ending: str
    width: int
    height: int
    data: bytes


class NoPicture(Struct, frozen=True, kw_only=True):
    """Bytes that are not shown, and why."""

    why: str


def look_at(data: bytes) -> Picture | NoPicture:
    """The picture that `data` is, whole and not damaged; else why it is not shown."""
    if len(data) > LARGEST:
        return NoPicture(why=f"it has more than {LARGEST >> 20} MiB")
    if data.startswith(_PNG):
        found, ending = _png_size(data), "png"
    elif data.startswith(_SOI):
        found, ending = _jpeg_size(data), "jpg"
    elif _is_svg(data):
        return NoPicture(why="it is an SVG; a PNG of it can be shown")
    else:
        return NoPicture(why="it is neither a PNG nor a JPEG")
    if found is None:
        return NoPicture(why="the picture is damaged")
    if not 0 < found[0] * found[1] <= _MOST_PIXELS:
        return NoPicture(why=f"it has {found[0]:,} × {found[1]:,} pixels")
    return Picture(ending=ending, width=found[0], height=found[1], data=data)


def _png_size(data: bytes) -> tuple[int, int] | None:
    """(width, height) of a PNG whose every chunk is what its checksum says; None where one is not."""
    at, size = len(_PNG), None
    has_pixels = False
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind = data[at + 4 : at + 8]
        end = at + 12 + length
        if end > len(data):
            return None
        if zlib.crc32(data[at + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            return None
        if size is None:
            if kind != b"IHDR" or length != 13:
                return None
            size = struct.unpack_from(">II", data, at + 8)
        has_pixels = has_pixels or (kind == b"IDAT" and length > 0)
        if kind == _PNG_END:
            return (size[0], size[1]) if has_pixels else None
        at = end
    return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """(width, height) of a JPEG that goes on to its end; None where it does not."""
    at, size = 2, None
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker in _ALONE:
            at += 2
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        if length < 2 or at + 2 + length > len(data):
            return None
        if marker in _FRAMES and length >= 8:
            height, width = struct.unpack_from(">HH", data, at + 5)
            size = (width, height)
        if marker == _SCAN:
            return size if data.rfind(_EOI, at) > 0 else None
        at += 2 + length
    return None


def _is_svg(data: bytes) -> bool:
    return b"<svg" in data[:2000].lower()
