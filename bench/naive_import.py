"""The naive import: `json` line by line, one file a session, raw text into FTS5 as it comes.

    python -m bench.naive_import CLAUDE_HOME OUT

What a weekend's script would do, and the line that any cleverness has to beat: no tree, no merged records, no
source bytes, no recovery.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any


def texts_of(record: dict[str, Any]) -> str:
    """All text of a record's message: blocks, tool inputs and outputs."""
    content = (record.get("message") or {}).get("content")
    if isinstance(content, str):
        return content
    parts: list[str] = []
    for block in content or ():
        if isinstance(block, dict):
            parts += [block.get("text") or "", block.get("thinking") or ""]
            if "input" in block:
                parts.append(json.dumps(block["input"]))
            inner = block.get("content")
            if isinstance(inner, str):
                parts.append(inner)
            elif isinstance(inner, list):
                parts += [part.get("text") or "" for part in inner if isinstance(part, dict)]
    return "\n".join(part for part in parts if part)


def main(home: str, out: str) -> None:
    """Import every session file below `home` into `out`."""
    Path(out).mkdir(parents=True)
    index = sqlite3.connect(Path(out) / "index.db")
    index.execute("CREATE VIRTUAL TABLE messages USING fts5(session, text)")
    for path in sorted(Path(home).glob("projects/**/*.jsonl")):
        messages: list[dict[str, Any]] = []
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                if isinstance(record, dict) and record.get("type") in ("user", "assistant"):
                    messages.append(record)
        (Path(out) / f"{path.stem}.json").write_text(
            json.dumps({"messages": messages}, indent=2, ensure_ascii=False)
        )
        rows = [(path.stem, text) for record in messages if (text := texts_of(record))]
        index.executemany("INSERT INTO messages VALUES (?, ?)", rows)
        index.commit()


if __name__ == "__main__":
    main(*sys.argv[1:])
