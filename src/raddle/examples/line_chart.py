"""A line chart as a PNG, drawn with the standard library alone, so that the examples have a figure to hand on."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

WIDTH, HEIGHT = 640, 360
_EDGE = 24
_PAPER, _AXIS, _LINE = b"\xff\xff\xff", b"\xc4\xcd\xd2", b"\x0b\x7a\x75"


def line_chart(values: Sequence[float]) -> bytes:
    """The values from left to right, the largest at the top."""
    pixels = [[_PAPER] * WIDTH for _ in range(HEIGHT)]
    for x in range(_EDGE, WIDTH - _EDGE):
        pixels[HEIGHT - _EDGE][x] = _AXIS
    for y in range(_EDGE, HEIGHT - _EDGE):
        pixels[y][_EDGE] = _AXIS
    low, high = min(values), max(values)
    spread = (high - low) or 1.0
    heights = [HEIGHT - _EDGE - (value - low) / spread * (HEIGHT - 2 * _EDGE) for value in values]
    span = WIDTH - 2 * _EDGE - 1
    before = heights[0]
    for step in range(span):
        place = step / span * (len(values) - 1)
        left = int(place)
        right = min(left + 1, len(values) - 1)
        now = heights[left] + (heights[right] - heights[left]) * (place - left)
        top, bottom = sorted((round(before), round(now)))
        for y in range(max(top - 1, 0), min(bottom + 2, HEIGHT)):
            pixels[y][_EDGE + 1 + step] = _LINE
        before = now
    rows = b"".join(b"\0" + b"".join(row) for row in pixels)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows, 9)), _chunk(b"IEND", b"")]
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
