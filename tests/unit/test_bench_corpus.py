"""The made-up corpus: the same seed gives the same bytes, and what real sessions are full of is in it."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.corpus.__main__ import main
from bench.corpus.plan import Plan, Written, write_corpus
from bench.corpus.shape import Shape, measure, rows
from bench.corpus.tools import Habits
from bench.corpus.words import Zipf

TINY = Plan(megabytes=0.4, threads=3, seed=5)


class Corpus:
    """A corpus of 30 MB, written once for all tests here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: Written = write_corpus(str(folder), Plan(megabytes=30, seed=7))
        self.shape: Shape = measure(str(folder))
        self.files = {path: records(path) for path in sorted(folder.rglob("*.jsonl"))}

    def all(self) -> list[dict[str, Any]]:
        return [record for found in self.files.values() for record in found]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(tmp_path_factory.mktemp("corpus"))


def records(path: Path) -> list[dict[str, Any]]:
    out = []
    for line in path.read_bytes().split(b"\n"):
        try:
            out.append(json.loads(line))
        except ValueError:
            continue
    return out


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_typed(record: dict[str, Any]) -> bool:
    return record.get("type") == "user" and "permissionMode" in record


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert write_corpus(str(one), TINY) == write_corpus(str(other), TINY)
    assert content(one) == content(other)


def test_another_seed_gives_other_sessions(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write_corpus(str(one), TINY)
    write_corpus(str(other), Plan(megabytes=0.4, threads=3, seed=6))
    assert not content(one).keys() & content(other).keys()


def test_it_is_as_large_as_asked(corpus: Corpus) -> None:
    assert corpus.written.bytes == corpus.shape.bytes
    assert corpus.written.files == corpus.shape.files
    assert 29e6 < corpus.written.bytes < 31e6


def test_messages_and_threads_can_be_asked_for_in_place_of_bytes(tmp_path: Path) -> None:
    lean = Habits(output=0.27, talk=0.5, keeps_originals=False)
    written = write_corpus(str(tmp_path), Plan(messages=1500, threads=20, habits=lean))
    assert written.threads == len(list(tmp_path.glob("projects/*/*.jsonl"))) == 20
    assert 1500 <= written.messages < 1700


def test_most_of_the_bytes_are_what_no_reader_needs(corpus: Corpus) -> None:
    assert 0.3 < corpus.shape.tool_use_result / corpus.shape.bytes < 0.6
    assert 0.1 < sum(corpus.shape.texts.values()) / corpus.shape.bytes < 0.3


def test_every_kind_of_record_is_in_it(corpus: Corpus) -> None:
    known = {"user", "assistant", "progress", "system", "file-history-snapshot", "summary", "queue-operation"}
    assert known <= corpus.shape.records.keys()
    progress = {one["data"]["type"] for one in corpus.all() if one["type"] == "progress"}
    assert progress == {"hook_progress", "bash_progress", "agent_progress"}
    assert any(one.get("subtype") == "compact_boundary" for one in corpus.all())
    assert any(one.get("isMeta") for one in corpus.all() if one["type"] == "user")


def test_an_api_message_is_spread_over_records_that_repeat_its_usage(corpus: Corpus) -> None:
    assert corpus.shape.split[2] > corpus.shape.split[1] > 0
    assert corpus.shape.split[3] > 0


def test_parallel_calls_branch_where_nobody_forked(corpus: Corpus) -> None:
    branched = 0
    for found in corpus.files.values():
        children = Counter(one["parentUuid"] for one in found if one.get("parentUuid"))
        typed = {one["parentUuid"] for one in found if is_typed(one)}
        branched += sum(1 for parent, count in children.items() if count > 1 and parent not in typed)
    assert branched > 100


def test_some_person_went_back_and_typed_again(corpus: Corpus) -> None:
    typed = Counter(one["parentUuid"] for one in corpus.all() if is_typed(one) and one["parentUuid"])
    assert max(typed.values()) > 1


def test_some_call_failed_and_every_result_answers_a_call(corpus: Corpus) -> None:
    asked, answered, failed = set(), set(), 0
    for one in corpus.all():
        said = one.get("message", {}).get("content")
        for block in said if isinstance(said, list) else []:
            if block["type"] == "tool_use":
                asked.add(block["id"])
            if block["type"] == "tool_result":
                answered.add(block["tool_use_id"])
                failed += bool(block.get("is_error"))
    lost_in_glued_lines = 3 * corpus.shape.bad_lines
    assert len(answered - asked) <= lost_in_glued_lines
    assert failed > 10


def test_two_records_are_glued_on_a_line_here_and_there(corpus: Corpus) -> None:
    bad = [
        line
        for path in corpus.files
        for line in path.read_bytes().split(b"\n")
        if line and b"}{" in line and not _is_json(line)
    ]
    assert 0 < len(bad) <= corpus.shape.bad_lines


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_a_sub_agents_file_belongs_to_the_session_beside_it(corpus: Corpus) -> None:
    paths = [path for path in corpus.files if path.name.startswith("agent-")]
    assert paths
    for path in paths:
        assert path.with_suffix(".meta.json").is_file()
        owner = path.parent.parent.name
        assert {(one["isSidechain"], one["sessionId"]) for one in records(path) if "sessionId" in one} == {
            (True, owner)
        }


def test_a_resumed_session_begins_with_the_uuids_of_an_earlier_one(tmp_path: Path) -> None:
    write_corpus(str(tmp_path), Plan(megabytes=4, threads=90, seed=2))
    seen: Counter[str] = Counter()
    for path in tmp_path.glob("projects/*/*.jsonl"):
        seen.update({one["uuid"] for one in records(path) if "uuid" in one})
    assert sum(1 for count in seen.values() if count > 1) > 5


def test_noise_is_a_random_token_every_so_many_characters(tmp_path: Path) -> None:
    write_corpus(str(tmp_path / "plain"), TINY)
    write_corpus(str(tmp_path / "noisy"), Plan(megabytes=0.4, threads=3, seed=5, habits=Habits(noise=200)))
    plain, noisy = measure(str(tmp_path / "plain")), measure(str(tmp_path / "noisy"))
    assert _long_words(noisy) > _long_words(plain) + noisy.texts["tool output"] / 1000


def _long_words(shape: Shape) -> int:
    """How many different words look like a sha or the end of a uuid."""
    return sum(1 for word in shape.vocabulary if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{12}", word))


def test_common_words_are_common_and_the_vocabulary_goes_on_growing(corpus: Corpus) -> None:
    vocabulary = corpus.shape.vocabulary
    assert sum(count for _, count in vocabulary.most_common(100)) > 0.3 * corpus.shape.tokens
    assert len(vocabulary) > 1.3 * corpus.shape.words_early > 3000


def test_zipf_draws_the_first_most_often() -> None:
    rng = random.Random(1)  # noqa: S311  # a vocabulary is no secret
    drawn = Counter(Zipf(["a", "b", "c"], exponent=2.0).draw(rng, 600))
    assert drawn["a"] > drawn["b"] > drawn["c"] > 0


def test_the_command_writes_and_says_how_much(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "out"), "--megabytes", "0.3", "--threads", "2", "--seed", "9"]) == 0
    assert capsys.readouterr().out.startswith("2 files, 2 threads, ")


def test_the_command_writes_into_nothing_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_shape_has_a_row_for_every_figure(corpus: Corpus) -> None:
    names = [name for name, _ in rows(corpus.shape)]
    assert len(names) == len(set(names)) > 20
