"""Whoever keeps something derived of the threads hears of a write before its first byte, and again after it."""

from __future__ import annotations

from pathlib import Path

from raddle.adapters.local_store.search_dirty import drop_taken, mark_dirty, take_dirty
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.locks import LockFiles
from raddle.adapters.paths import Paths
from raddle.model.ids import MonotonicIds
from raddle.model.threads.edits import Author
from tests.builders import texts
from tests.builders_store import a_store, a_writer, begin, files_in, paths_in, rewritten_by_the_seed
from tests.modes import bound_by_modes


def bytes_of(folder: Path, thread_id: str) -> int:
    """How much of a thread lies on the disk."""
    return sum(path.stat().st_size for path in folder.glob(f"{thread_id}.*"))


def test_a_write_is_noted_before_it_is_made_and_after(tmp_path: Path) -> None:
    """A kill in between then leaves a thread that is looked at once too often, never one that nobody finds."""
    paths = Paths(
        data_dir=tmp_path / "data",
        config_dir=tmp_path / "config",
        state_dir=tmp_path / "state",
        cache_dir=tmp_path / "cache",
    )
    time = iter(range(1_796_000_000_000_000, 1_797_000_000_000_000, 1_000))
    author = Author(device="a1b2c3d4", now=lambda: next(time), new_id=MonotonicIds(lambda: next(time)))
    heard: list[tuple[str, int]] = []

    def noted(kind: str, thread_id: str) -> None:
        heard.append((kind, bytes_of(paths.threads_dir, thread_id)))

    threads = ThreadFiles(
        paths,
        LockFiles(paths.locks_dir),
        author,
        changing=lambda thread_id: noted("before", thread_id),
        changed=lambda thread_id: noted("after", thread_id),
    )
    with threads.create() as editor:
        editor.reply(None, "user", "hello")
    thread_id = editor.thread.id
    threads.append(thread_id, "assistant", "hi")
    with threads.edit(thread_id) as editor:
        editor.rename("Greeting")
    assert [kind for kind, _ in heard] == ["before", "after"] * 3
    sizes = [size for _, size in heard]
    assert sizes[0] == 0
    assert all(before < after for before, after in zip(sizes[::2], sizes[1::2], strict=True))
    threads.load(thread_id)
    with threads.edit(thread_id) as editor:
        editor.rename("Greeting")
    assert len(heard) == 6, "what changes nothing is noted by nobody"


def test_what_another_program_wrote_is_noted_when_it_is_taken_over(tmp_path: Path) -> None:
    """Whoever opens the thread adopts it; a search should find the words too."""
    thread_id = begin(a_store(tmp_path), "hello", "hi")
    a_store(tmp_path).append(thread_id, "user", "more")
    rewritten_by_the_seed(files_in(tmp_path, thread_id).json, turn="from elsewhere")
    heard: list[str] = []
    paths = paths_in(tmp_path)
    store = ThreadFiles(paths, LockFiles(paths.locks_dir), a_writer(), changing=heard.append)
    assert "from elsewhere" in texts(store.load(thread_id).messages)
    assert heard == [thread_id]
    store.load(thread_id)
    assert heard == [thread_id], "it is taken over once"


def test_a_list_that_may_only_be_read_is_read_and_stays(tmp_path: Path) -> None:
    thread_id = begin(a_store(tmp_path))
    listed = tmp_path / "listed" / "dirty"
    mark_dirty(listed, thread_id)
    listed.parent.chmod(0o500)

    def take() -> None:
        taken = take_dirty(listed)
        assert taken.ids == (thread_id,)
        drop_taken(taken)

    try:
        bound_by_modes(take)
    finally:
        listed.parent.chmod(0o700)
    assert take_dirty(listed).ids == (thread_id,)
