"""Whatever happens to the files of a thread between two edits, in whatever order, nothing said is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.model.threads.edits import Editor
from tests.builders import SECOND, WoundClock, texts
from tests.builders_store import (
    LONG,
    a_store,
    a_writer,
    begin,
    equal,
    files_in,
    grow_old,
    is_whole_without_the_file,
    rewritten_by_the_seed,
)


class Life:
    """A thread, what was said in it, and what can happen to its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = WoundClock()
        self.store: ThreadFiles = a_store(folder, a_writer(clock=self.clock))
        self.id = begin(self.store, "hello")
        self.files = files_in(folder, self.id)
        self.said = {"hello"}
        self.titles = {""}
        self.store.append(self.id, "assistant", "hi")
        self.old = self.files.json.read_bytes()

    def _say(self, words: str) -> str:
        self.clock.wind(SECOND)
        self.said.add(words)
        return words

    def append(self, number: int) -> None:
        self.store.append(self.id, "user", self._say(f"append {number}"))

    def append_much(self, number: int) -> None:
        self.store.append(self.id, "user", self._say(f"much {number} {LONG}"))

    def edit(self, number: int) -> None:
        with self.store.edit(self.id) as editor:
            editor.reply(None, "user", self._say(f"edit {number}"))
            editor.tag(f"tag-{number}")

    def undo(self, _: int) -> None:
        self.store.apply(self.id, lambda editor: editor.undo())

    def hear_from_elsewhere(self, number: int) -> None:
        thread = self.store.load(self.id)
        Editor(thread, a_writer("bbbbbbbb", self.clock)).append("user", self._say(f"elsewhere {number}"))
        self.store.save(thread)

    def fold(self, number: int) -> None:
        self.store.fold(self.id, anyway=bool(number % 2))

    def keep_a_copy(self, _: int) -> None:
        self.old = self.files.json.read_bytes()

    def put_the_copy_back(self, _: int) -> None:
        self.files.json.write_bytes(self.old)

    def tear_the_file(self, number: int) -> None:
        data = self.files.json.read_bytes()
        self.files.json.write_bytes(data[: len(data) * (number % 7) // 7])
        grow_old(self.files.json)
        self.store.load(self.id)

    def remove_the_file(self, _: int) -> None:
        self.files.json.unlink()
        self.store.load(self.id)

    def tear_the_journal(self, number: int) -> None:
        with self.files.journal.open("ab") as file:
            file.write(b'0123abcd {"format":1,"id":"T-'[: 1 + number])

    def rewrite_elsewhere(self, number: int) -> None:
        self.store.load(self.id)
        self.titles.add(f"title {number}")
        rewritten_by_the_seed(
            self.files.json, title=f"title {number}", turn=self._say(f"written by another program {number}")
        )
        self.store.load(self.id)

    def copy_the_folder(self, _: int) -> None:
        """As a restored backup: other inodes, other times."""
        for file in self.files:
            if file.exists():
                data = file.read_bytes()
                file.unlink()
                file.write_bytes(data)


HAPPENINGS = (
    Life.append,
    Life.append_much,
    Life.edit,
    Life.undo,
    Life.hear_from_elsewhere,
    Life.fold,
    Life.keep_a_copy,
    Life.put_the_copy_back,
    Life.tear_the_file,
    Life.remove_the_file,
    Life.tear_the_journal,
    Life.rewrite_elsewhere,
    Life.copy_the_folder,
)


@given(st.lists(st.sampled_from(HAPPENINGS), max_size=10))
def test_nothing_said_is_lost(
    tmp_path_factory: pytest.TempPathFactory, happenings: list[Callable[[Life, int], None]]
) -> None:
    life = Life(tmp_path_factory.mktemp("life"))
    for number, happening in enumerate(happenings, 1):
        happening(life, number)
        seen = life.store.load(life.id)
        assert life.said - set(texts(seen.messages)) == set()
        assert seen.tree.lost() == []
        assert seen.title in life.titles
        assert equal(a_store(life.folder, a_writer(clock=life.clock)).load(life.id), seen)
    assert is_whole_without_the_file(life.folder, life.files, life.store.load(life.id))
