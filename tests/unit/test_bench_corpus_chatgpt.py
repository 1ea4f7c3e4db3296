"""The made-up exports of ChatGPT: the same seed gives the same bytes, and an import reads all of them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from bench.corpus.chatgpt import write_corpus
from raddle.actions.importing.chatgpt import ChatGPT
from raddle.actions.importing.chatgpt_layout import conversation_lines
from tests.reading import named, read


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        write_corpus(str(tmp_path / name), 0.2, seed=seed)
    one, again, other = (
        (tmp_path / name / "conversations.json").read_bytes() for name in ("one", "again", "other")
    )
    assert one == again != other


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    done = write_corpus(str(tmp_path), 0.5)
    talks = json.loads((tmp_path / "conversations.json").read_bytes())
    readings = [read(ChatGPT(), named("x"), conversation_lines(json.dumps(one).encode())) for one in talks]
    assert len(talks) == done.conversations
    assert sum(len([m for m in one.thread.messages if m.ts]) for one in readings) == done.messages
    assert [problem for one in readings for problem in one.problems] == []
    kinds = {message.role for one in readings for message in one.thread.messages}
    assert kinds == {"user", "assistant", "tool"}
    assert any(len(one.thread.tree.branches()) > 1 for one in readings)


def test_a_zip_holds_the_same_in_parts(tmp_path: Path) -> None:
    write_corpus(str(tmp_path), 0.5)
    done = write_corpus(str(tmp_path), 0.5, is_zipped=True)
    with zipfile.ZipFile(tmp_path / "chatgpt-export.zip") as made:
        names = [name for name in made.namelist() if name.startswith("conversations-")]
        talks = [talk for name in names for talk in json.loads(made.read(name))]
    assert talks == json.loads((tmp_path / "conversations.json").read_bytes())
    assert done.conversations == len(talks)
