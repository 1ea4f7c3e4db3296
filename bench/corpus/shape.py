"""Measures the shape of a Claude Code home, so that a made one can be laid beside a real one.

    python -m bench.corpus.shape DIR [DIR…]

Owns the figures by which two homes are compared; reads any `.jsonl` below DIR and writes nothing.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

_TOKEN = re.compile(r"[^\W_]+")
_FIRST_TOKENS = 100_000
_encode = msgspec.json.Encoder().encode


class Shape(Struct, kw_only=True):
    """Figures of a home. Sizes in bytes; texts in characters. `bad_lines` are not one JSON value."""

    files: int = 0
    bytes: int = 0
    lines: int = 0
    bad_lines: int = 0
    longest_line: int = 0
    records: Counter[str] = msgspec.field(default_factory=Counter)
    record_bytes: Counter[str] = msgspec.field(default_factory=Counter)
    texts: Counter[str] = msgspec.field(default_factory=Counter)
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    tool_use_result: int = 0
    split: Counter[int] = msgspec.field(default_factory=Counter)
    tokens: int = 0
    words_early: int = 0
    vocabulary: Counter[str] = msgspec.field(default_factory=Counter)
    compressed: int = 0
    largest_file: int = 0


def _texts(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(what it is, the text) of what a reader would search in `record`."""
    content = record["message"].get("content") or ""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    who = "user" if record["type"] == "user" else "assistant"
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            yield who, block["text"]
        elif kind == "thinking":
            yield "thinking", block["thinking"]
        elif kind == "tool_use":
            yield "tool input", _encode(block.get("input")).decode()
        elif kind == "tool_result":
            inner = block.get("content") or ""
            yield (
                "tool output",
                inner if isinstance(inner, str) else "".join(one.get("text", "") for one in inner),
            )


def _add_record(shape: Shape, record: dict[str, Any], size: int) -> None:
    kind = str(record.get("type"))
    shape.records[kind] += 1
    shape.record_bytes[kind] += size
    if "toolUseResult" in record:
        shape.tool_use_result += len(_encode(record["toolUseResult"]))
    if record.get("isCompactSummary"):
        shape.counts["compactions"] += 1
    if kind not in ("user", "assistant") or "message" not in record:
        return
    for what, text in _texts(record):
        shape.texts[what] += len(text)
        shape.counts[what] += 1
        words = _TOKEN.findall(text.lower())
        shape.vocabulary.update(words)
        shape.tokens += len(words)
        if shape.tokens <= _FIRST_TOKENS:
            shape.words_early = len(shape.vocabulary)


def measure(directory: str) -> Shape:
    """The figures of every `.jsonl` below `directory`."""
    shape = Shape()
    try:
        from zstandard import ZstdCompressor  # noqa: PLC0415

        compress = ZstdCompressor(level=3).compress
    except ImportError:
        compress = None
    for path in sorted(Path(directory).rglob("*.jsonl")):
        whole = path.read_bytes()
        shape.files += 1
        shape.bytes += len(whole)
        shape.largest_file = max(shape.largest_file, len(whole))
        shape.compressed += len(compress(whole)) if compress else 0
        by_message: Counter[str] = Counter()
        for line in whole.split(b"\n"):
            if not line:
                continue
            shape.lines += 1
            shape.longest_line = max(shape.longest_line, len(line))
            try:
                record = msgspec.json.decode(line)
            except msgspec.DecodeError:
                shape.bad_lines += 1
                continue
            if isinstance(record, dict):
                _add_record(shape, record, len(line))
                if record.get("type") == "assistant":
                    by_message[record["message"].get("id", "")] += 1
        shape.split.update(by_message.values())
    return shape


def rows(shape: Shape) -> list[tuple[str, str]]:
    """(name, value) of each figure worth comparing; shares are of all bytes, or of all records."""
    whole, records = max(shape.bytes, 1), max(shape.records.total(), 1)
    out = [
        ("files", f"{shape.files}"),
        ("MB", f"{shape.bytes / 1e6:.1f}"),
        ("lines", f"{shape.lines}"),
        ("bytes a line", f"{shape.bytes / max(shape.lines, 1):.0f}"),
        ("longest line, kB", f"{shape.longest_line / 1e3:.0f}"),
        ("largest file, MB", f"{shape.largest_file / 1e6:.1f}"),
        ("lines that are not one JSON value", f"{shape.bad_lines}"),
        ("toolUseResult, share of bytes", f"{shape.tool_use_result / whole:.3f}"),
        ("progress, share of bytes", f"{shape.record_bytes['progress'] / whole:.3f}"),
    ]
    kinds = ("assistant", "progress", "user", "file-history-snapshot", "system", "queue-operation", "summary")
    out += [(f"{kind}, share of records", f"{shape.records[kind] / records:.4f}") for kind in kinds]
    out.append(("compactions in 100,000 records", f"{shape.counts['compactions'] / records * 1e5:.0f}"))
    texts = sum(shape.texts.values())
    out.append(("text to search, share of bytes", f"{texts / whole:.3f}"))
    for what in ("tool output", "tool input", "thinking", "assistant", "user"):
        mean = shape.texts[what] / max(shape.counts[what], 1)
        out.append(
            (f"{what}, share of text (mean length)", f"{shape.texts[what] / max(texts, 1):.3f} ({mean:.0f})")
        )
    messages = max(shape.split.total(), 1)
    spread = " ".join(f"{size}:{count / messages:.2f}" for size, count in sorted(shape.split.items())[:5])
    out.append(("records of one API message", spread))
    if shape.compressed:
        out.append(("bytes / zstd level 3 by file", f"{whole / shape.compressed:.2f}"))
    once = sum(1 for count in shape.vocabulary.values() if count == 1)
    top = sum(count for _, count in shape.vocabulary.most_common(100))
    out.append(("tokens", f"{shape.tokens}"))
    out.append(("distinct in the first 100,000", f"{shape.words_early}"))
    out.append(("distinct in all", f"{len(shape.vocabulary)}"))
    out.append(("seen once, share of distinct", f"{once / max(len(shape.vocabulary), 1):.2f}"))
    out.append(("share of the 100 commonest", f"{top / max(shape.tokens, 1):.2f}"))
    return out


def main(directories: list[str]) -> int:
    """Print the figures of each of `directories`, side by side."""
    columns = [rows(measure(directory)) for directory in directories]
    for name, _ in columns[0] if columns else []:
        values = [dict(column).get(name, "") for column in columns]
        sys.stdout.write(f"{name:44}" + "".join(f"{value:>28}" for value in values) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
