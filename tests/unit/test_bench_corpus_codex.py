"""The made-up Codex home: the same seed gives the same bytes, and the importer reads all of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from bench.corpus.codex import Plan, write_corpus
from raddle.actions.importing.codex import Codex
from raddle.model.threads.message import COMPACTION
from tests.reading import Reading, named, read

PLAN = Plan(megabytes=1.5, sessions=4, seed=3, compactions=60)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("codex")
    written = write_corpus(str(folder), PLAN)
    found = content(folder)
    assert (written.files, written.bytes) == (4, sum(map(len, found.values())))
    return found


def readings(home: dict[str, bytes]) -> list[Reading]:
    return [read(Codex(), named(Path(name).name), data, batch=200) for name, data in home.items()]


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(
    tmp_path: Path, home: dict[str, bytes]
) -> None:
    write_corpus(str(tmp_path / "again"), PLAN)
    assert content(tmp_path / "again") == home
    write_corpus(str(tmp_path / "other"), Plan(megabytes=0.3, sessions=2, seed=4))
    assert not content(tmp_path / "other").keys() & home.keys()


def test_it_is_as_large_as_asked(home: dict[str, bytes]) -> None:
    assert 1.4e6 < sum(map(len, home.values())) < 2.2e6


def test_every_kind_of_line_is_in_it(home: dict[str, bytes]) -> None:
    kinds = Counter(json.loads(line)["type"] for data in home.values() for line in data.split(b"\n") if line)
    assert kinds.keys() == {
        "session_meta", "turn_context", "world_state", "response_item", "event_msg", "token_usage_record",
        "compacted",
    }  # fmt: skip


def test_all_of_it_is_read_and_nothing_of_it_twice(home: dict[str, bytes]) -> None:
    found = readings(home)
    for reading in found:
        assert reading.problems == []
        assert reading.thread.tree.lost() == []
        texts = [message.content for message in reading.thread.messages if len(message.content) > 200]
        assert len(texts) == len(set(texts))
    assert any(message.kind == COMPACTION for reading in found for message in reading.thread.messages)
