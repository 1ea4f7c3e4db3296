"""What a worker of an import sends its parent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raddle.actions.importing.rules import Rules
from raddle.actions.importing.run_plan import SessionPlan, SourceFile, Task
from raddle.adapters.local_store import search_ready
from raddle.wiring.import_worker import Rows, Setup, convert_session, decode_answer, encode_task


def test_words_come_in_small_pieces_even_of_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a printed document is: what the parent is sent, it holds."""
    monkeypatch.setattr(search_ready, "MOST_CHARACTERS", 1_000)
    messages = [
        {"id": f"m{number}", "timestamp": "2026-06-03T08:00:00Z", "type": "user", "content": "word " * 50}
        for number in range(40)
    ]
    head = {"sessionId": "s", "projectHash": "p", "startTime": "2026-06-03T08:00:00Z"}
    path = tmp_path / "session-1.json"
    path.write_text(json.dumps({**head, "messages": messages}, indent=2))
    for name in ("threads", "blobs"):
        (tmp_path / name).mkdir()
    setup = Setup(
        run="run",
        threads_dir=str(tmp_path / "threads"),
        blobs_dir=str(tmp_path / "blobs"),
        rules=Rules(),
        agents=frozenset(("gemini-cli",)),
    )
    size = path.stat().st_size
    file = SourceFile(path=str(path), agent="gemini-cli", session="s", size=size, mtime_ns=1, inode=1)
    plan = SessionPlan(agent="gemini-cli", session="s", files=(file,), is_new=True, size=size)
    sent: list[bytes] = []
    convert_session(setup, encode_task(Task(plan=plan)), sent.append)
    rows = [answer.ready.words for answer in map(decode_answer, sent) if isinstance(answer, Rows)]
    assert sum(map(len, rows)) == 40
    assert max(map(len, rows)) == 4
