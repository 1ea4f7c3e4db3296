"""The made-up Gemini CLI home: the same seed gives the same bytes, and the importer reads all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.corpus.gemini_cli import Plan, write_corpus
from raddle.actions.importing.gemini_cli import GeminiCli
from raddle.model.threads.message import COMPACTION
from tests.reading import Reading, named, read

PLAN = Plan(megabytes=2.5, sessions=4, seed=6, old=0.3, events=1)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("session-*"))}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("gemini")
    written = write_corpus(str(folder), PLAN)
    found = content(folder)
    assert (written.files, written.bytes) == (4, sum(map(len, found.values())))
    return found


@pytest.fixture(scope="module")
def readings(home: dict[str, bytes]) -> list[Reading]:
    return [read(GeminiCli(), named(Path(name).name), data, batch=200) for name, data in home.items()]


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(
    tmp_path: Path, home: dict[str, bytes]
) -> None:
    write_corpus(str(tmp_path / "again"), PLAN)
    assert content(tmp_path / "again") == home
    write_corpus(str(tmp_path / "other"), Plan(megabytes=0.3, sessions=2, seed=4))
    assert not content(tmp_path / "other").keys() & home.keys()


def test_it_is_as_large_as_asked(home: dict[str, bytes]) -> None:
    assert 2.0e6 < sum(map(len, home.values())) < 4e6


def test_every_kind_of_record_is_in_it(home: dict[str, bytes]) -> None:
    assert {name.rpartition(".")[2] for name in home} == {"json", "jsonl"}
    whole = b"".join(home.values())
    for mark in (
        b'{"$set":{"messages":',
        b'{"$rewindTo":',
        b"<state_snapshot>",
        b"<tool_output_masked>",
        b"inlineData",
    ):
        assert mark in whole, mark


def test_all_of_it_is_read_and_nothing_of_it_twice(readings: list[Reading]) -> None:
    for reading in readings:
        assert reading.problems == []
        assert reading.thread.tree.lost() == []
        said = [m.content for m in reading.thread.messages if m.role != "tool" and len(m.content) > 200]
        assert len(said) == len(set(said))
        answered = [m.tool_call_id for m in reading.thread.messages if m.role == "tool"]
        assert len(answered) == len(set(answered))
    assert any(message.kind == COMPACTION for reading in readings for message in reading.thread.messages)
    assert any(len(reading.thread.tree.heads()) > 1 for reading in readings)
