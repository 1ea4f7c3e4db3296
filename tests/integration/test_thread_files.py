"""The thread files as a disk, other programs and dying processes meet them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raddle.actions.ports import Finding
from raddle.adapters.local_store.journal import read_journal
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.local_store.thread_files_reading import Files
from raddle.model.errors import (
    BrokenFormat,
    FormatError,
    NewerFormat,
    NotFound,
    OlderFormat,
    StorageError,
)
from raddle.model.threads.codec import decode_file, encode_thread
from raddle.model.threads.edits import Editor
from raddle.model.threads.thread import Thread
from tests.builders import a_line, a_thread, an_author, texts
from tests.builders_store import a_store, a_writer, begin, equal, files_in, grow_old

LONG = "x" * 40_000
"""Two of these take a journal past the size at which it is folded."""


def names_in(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[2] or path.name for path in folder.iterdir())


def plain_of(file: Path) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(file.read_bytes())
    return plain


def is_whole_without_the_file(folder: Path, files: Files, whole: Thread) -> bool:
    """Is everything still there when the .json is not? (Tried on a copy.)"""
    copy = folder / "copy" / "data" / "threads"
    copy.mkdir(parents=True)
    for file in files:
        if file.exists() and file != files.json:
            (copy / file.name).write_bytes(file.read_bytes())
    seen = a_store(folder / "copy").load(whole.id)
    for file in copy.iterdir():
        file.unlink()
    copy.rmdir()
    return equal(seen, whole)


# Where things lie.


def test_files_are_private_readable_and_where_they_should_be(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store, "hello", title="Größe")
    store.append(thread_id, "assistant", "hi")
    files = files_in(tmp_path, thread_id)
    assert files.json.parent == tmp_path / "data" / "threads"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (files.json, files.journal)] == [0o600, 0o600]
    assert stat.S_IMODE(files.json.parent.stat().st_mode) == 0o700
    assert "Größe" in files.json.read_text(encoding="utf-8")
    assert plain_of(files.json)["conversation"]["messages"][0]["content"] == "hello"


def test_an_append_writes_a_line_and_leaves_the_file_alone(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    files = files_in(tmp_path, thread_id)
    before = files.json.read_bytes()
    for number in range(3):
        store.append(thread_id, "assistant", f"turn {number}")
    assert files.json.read_bytes() == before
    assert len(read_journal(files.journal, thread_id).lines) == 3


class _Opened:
    """Paths that were opened while somebody listened."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._listens = False
        sys.addaudithook(self._hear)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        self.paths.clear()
        self._listens = True
        yield
        self._listens = False

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self._listens and event == "open" and isinstance(args[0], str):
            self.paths.append(args[0])


_opened = _Opened()


def test_an_append_reads_only_the_end_of_the_journal_and_writes_as_little_for_any_length(
    tmp_path: Path,
) -> None:
    grown: list[int] = []
    for length in (2, 2_000):
        store = a_store(tmp_path / str(length))
        thread = a_thread(*a_line(*["words"] * length))
        store.save(thread)
        store.append(thread.id, "user", "first")
        files = files_in(tmp_path / str(length), thread.id)
        size = files.journal.stat().st_size
        with _opened.listening():
            store.append(thread.id, "assistant", "second")
        opened = {Path(path).name for path in _opened.paths if thread.id in path}
        assert opened == {files.journal.name}
        grown.append(files.journal.stat().st_size - size)
    assert abs(grown[0] - grown[1]) < 30  # the digits of a longer thread's version and size


# The fold.


def test_a_journal_that_outgrew_its_file_is_folded(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    files = files_in(tmp_path, thread_id)
    for number in range(5):
        store.append(thread_id, "user", f"{number} {LONG}")
    assert files.journal.stat().st_size < 2 * len(LONG)
    assert len(plain_of(files.json)["conversation"]["messages"]) == 6
    assert [text.split()[0] for text in texts(store.load(thread_id).messages)] == ["hello", *"01234"]


def test_a_small_thread_folds_seldom(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    for number in range(40):
        store.append(thread_id, "user", f"turn {number}")
    assert len(plain_of(files_in(tmp_path, thread_id).json)["conversation"]["messages"]) == 1


def test_a_long_thread_folds_in_proportion(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread = a_thread(*a_line(*[LONG] * 10))
    store.save(thread)
    for _ in range(8):
        store.append(thread.id, "user", LONG)
    assert len(plain_of(files_in(tmp_path, thread.id).json)["conversation"]["messages"]) == 10
    for _ in range(4):
        store.append(thread.id, "user", LONG)
    assert len(plain_of(files_in(tmp_path, thread.id).json)["conversation"]["messages"]) > 10


def test_the_last_revision_and_its_lines_stay(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    files = files_in(tmp_path, thread_id)
    first = files.json.read_bytes()
    store.append(thread_id, "assistant", "hi")
    assert files.previous.read_bytes() == first
    store.fold(thread_id)
    assert files.previous.read_bytes() == first
    assert len(read_journal(files.previous_journal, thread_id).lines) == 1
    assert files.json.stat().st_nlink == 1
    second = files.json.read_bytes()
    store.append(thread_id, "user", "more")
    store.fold(thread_id)
    assert files.previous.read_bytes() == second


def test_the_thread_is_whole_without_its_file_at_every_moment(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    files = files_in(tmp_path, thread_id)
    steps: list[Callable[[], object]] = [
        lambda: store.append(thread_id, "assistant", "hi"),
        lambda: store.fold(thread_id),
        lambda: store.append(thread_id, "user", LONG),
        lambda: store.append(thread_id, "user", LONG),
        lambda: store.append(thread_id, "user", "more"),
        lambda: store.fold(thread_id, anyway=True),
        lambda: store.fold(thread_id, anyway=True),
        lambda: store.save(a_thread(*a_line("elsewhere"), thread_id=thread_id)),
        files.json.unlink,
        lambda: store.load(thread_id),
        lambda: store.append(thread_id, "user", "and more"),
    ]
    for step in steps:
        step()
        assert is_whole_without_the_file(tmp_path, files, store.load(thread_id))


def test_a_first_append_to_a_long_thread_neither_reads_nor_copies_it(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread = a_thread(*a_line(*[LONG] * 40))
    store.save(thread)
    files = files_in(tmp_path, thread.id)
    with _opened.listening():
        store.append(thread.id, "user", "first")
    assert {Path(path).name for path in _opened.paths if thread.id in path} == {files.journal.name}
    assert files.previous.samefile(files.json)
    store.append(thread.id, "user", LONG)
    assert len(plain_of(files.json)["conversation"]["messages"]) == 40
    store.fold(thread.id)
    assert not files.previous.samefile(files.json)
    assert is_whole_without_the_file(tmp_path, files, store.load(thread.id))


# Dying processes.


def _die_at(event_number: int, action: Callable[[], object]) -> bool:
    """Run `action` in a child that is killed at its n-th event on files; did it live?"""

    def child() -> None:
        seen = 0

        def hook(event: str, _: tuple[Any, ...]) -> None:
            nonlocal seen
            if event == "open" or event in {"os.rename", "os.link", "os.remove", "os.truncate", "os.mkdir"}:
                seen += 1
                if seen == event_number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        action()
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0


def _deaths(action: Callable[[], object]) -> Iterator[int]:
    """1, 2, …: `action` died at that event, until it lived through."""
    for number in range(1, 200):
        if _die_at(number, action):
            return
        yield number
    raise AssertionError("it never ends")


def test_a_fold_that_dies_anywhere_leaves_the_same_thread(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store)
    store.append(thread_id, "user", "after death 0")
    files = files_in(tmp_path, thread_id)
    deaths = 0
    for death in _deaths(lambda: store.fold(thread_id, anyway=True)):
        deaths = death
        assert store.ids() == [thread_id]
        whole = store.load(thread_id)
        assert is_whole_without_the_file(tmp_path, files, whole)
        store.append(thread_id, "user", f"after death {death}")
        seen = texts(a_store(tmp_path).load(thread_id).messages)
        assert seen == ["hello", *(f"after death {number}" for number in range(death + 1))]
    assert deaths > 8
    assert found == []


def test_an_append_that_dies_anywhere_is_there_or_not(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "user", "a first line")
    known = store.load(thread_id)
    for death in _deaths(lambda: store.append(thread_id, "assistant", "perhaps")):
        seen = store.load(thread_id)
        assert {message.id for message in known.messages} <= {message.id for message in seen.messages}
        store.append(thread_id, "user", f"after death {death}")
        known = store.load(thread_id)
        tip = known.tree.tip()
        assert tip is not None
        assert tip.content == f"after death {death}"
        assert known.tree.lost() == []


def test_a_first_edit_that_dies_anywhere_leaves_the_thread_readable(tmp_path: Path) -> None:
    thread = a_thread(*a_line("hello", "hi"))
    for death in range(1, 40):
        folder = tmp_path / str(death)
        store = a_store(folder)
        store.save(thread)
        lived = _die_at(death, lambda store=store: store.append(thread.id, "user", "more"))  # type: ignore[misc]
        assert texts(store.load(thread.id).messages)[:2] == ["hello", "hi"]
        store.append(thread.id, "user", "later")
        assert is_whole_without_the_file(folder, files_in(folder, thread.id), store.load(thread.id))
        if lived:
            return
    raise AssertionError("it never ends")


def test_a_removal_that_dies_anywhere_can_be_asked_for_again(tmp_path: Path) -> None:
    for death in range(1, 40):
        store = a_store(tmp_path / str(death))
        thread_id = begin(store)
        store.append(thread_id, "assistant", "hi")
        store.fold(thread_id)
        lived = _die_at(death, lambda store=store, name=thread_id: store.delete_files(name))  # type: ignore[misc]
        left = store.ids()
        assert left == [] or (left == [thread_id] and not lived)
        assert store.delete_files(thread_id) == bool(left)
        assert names_in(tmp_path / str(death) / "data" / "threads") == []
        if lived:
            return
    raise AssertionError("it never ends")


def test_mending_that_dies_anywhere_is_mended(tmp_path: Path) -> None:
    for death in range(1, 60):
        folder = tmp_path / str(death)
        store = a_store(folder)
        thread_id = begin(store)
        store.append(thread_id, "assistant", "hi")
        whole = store.load(thread_id)
        file = files_in(folder, thread_id).json
        file.write_bytes(b"{ torn")
        grow_old(file)
        lived = _die_at(death, lambda store=store, name=thread_id: store.load(name))  # type: ignore[misc]
        assert equal(store.load(thread_id), whole)
        assert decode_file(file.read_bytes()).id == thread_id
        if lived:
            return
    raise AssertionError("it never ends")


def test_what_a_killed_process_left_half_made_is_swept_when_it_is_old(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "threads"
    folder.mkdir(parents=True)
    old, young = folder / ".raddle-old.tmp", folder / ".raddle-young.tmp"
    for path in (old, young):
        path.write_bytes(b"half")
    grow_old(old)
    begin(a_store(tmp_path))
    assert not old.exists()
    assert young.exists()


def _append_many(folder: Path, thread_id: str, name: str) -> None:
    store = a_store(folder)
    for number in range(40):
        store.append(thread_id, "user", f"{name} {number} {'x' * 2_000}")


def test_processes_that_append_at_once_lose_nothing_and_fork_nothing(tmp_path: Path) -> None:
    thread_id = begin(a_store(tmp_path))
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_append_many, args=(tmp_path, thread_id, name)) for name in ("one", "other")
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    seen = a_store(tmp_path).load(thread_id)
    said = {" ".join(text.split()[:2]) for text in texts(seen.messages)}
    assert said == {"hello", *(f"{name} {number}" for name in ("one", "other") for number in range(40))}
    assert len(seen.tree.heads()) == 1
    assert len(seen.tree.branches()) == 1


# Damage.


def _tear(data: bytes) -> bytes:
    return data[: len(data) // 2]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "torn": _tear,
    "cut before its end": lambda data: data[:-3],
    "zeros": lambda data: b"\0" * len(data),
    "empty": lambda _: b"",
    "zeros at its end": lambda data: _tear(data) + b"\0" * (len(data) - len(data) // 2),
    "another kind of file": lambda _: b"\x7fELF\x02\x01",
    "no thread": lambda _: b'{"hello": 1}',
    "a list": lambda _: b"[]",
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("is_folded", [False, True])
def test_a_damaged_file_is_set_aside_and_the_thread_is_read_from_its_last_revision(
    tmp_path: Path, kind: str, *, is_folded: bool
) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store, "hello", "hi", title="a title")
    store.append(thread_id, "user", "before the fold")
    if is_folded:
        store.fold(thread_id)
    store.append(thread_id, "assistant", "after it")
    whole = store.load(thread_id)
    files = files_in(tmp_path, thread_id)
    damaged = DAMAGE[kind](files.json.read_bytes())
    files.json.write_bytes(damaged)
    grow_old(files.json)

    assert equal(store.load(thread_id), whole)
    kept = files.json.with_name(f"{files.json.name}.broken-1")
    assert kept.read_bytes() == damaged
    assert kept.with_name(f"{kept.name}.reason").read_text(encoding="utf-8").strip() == found[0].what
    assert [finding.path for finding in found] == [str(files.json)] * 2
    assert found[0].done == f"set aside as {kept.name}"
    assert "restored" in found[1].done
    assert store.ids() == [thread_id]

    found.clear()
    assert equal(a_store(tmp_path, report=found.append).load(thread_id), whole)
    store.append(thread_id, "user", "goes on")
    assert texts(store.load(thread_id).messages)[-1] == "goes on"
    assert found == []


def test_a_file_damaged_again_is_set_aside_beside_the_first(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    whole = store.load(thread_id)
    file = files_in(tmp_path, thread_id).json
    for damage in (b"first", b"second"):
        file.write_bytes(damage)
        grow_old(file)
        assert equal(store.load(thread_id), whole)
    kept = [file.with_name(f"{file.name}.broken-{number}").read_bytes() for number in (1, 2)]
    assert kept == [b"first", b"second"]


def test_where_nothing_is_left_the_error_names_what_was_set_aside(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread = a_thread(*a_line("hello"))
    store.import_many([(thread.id, encode_thread(thread))])
    file = files_in(tmp_path, thread.id).json
    file.write_bytes(b"{ torn")
    grow_old(file)
    for _ in range(2):
        with pytest.raises(BrokenFormat) as error:
            store.load(thread.id)
        assert str(file.with_name(f"{file.name}.broken-1")) in error.value.hint
    assert store.ids() == []
    store.import_many([(thread.id, encode_thread(thread))])
    assert equal(store.load(thread.id), thread)


def test_a_damaged_line_costs_that_edit_and_is_named(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store)
    for tag in ("one", "two", "three"):
        with store.edit(thread_id) as editor:
            editor.tag(tag)
    journal = files_in(tmp_path, thread_id).journal
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + lines[1].replace(b"two", b"2wo") + lines[2])
    assert store.load(thread_id).tags == ["one", "three"]
    assert [(finding.path, finding.what.split(":")[0]) for finding in found] == [
        (str(journal), "line 2 is damaged (the checksum does not fit)")
    ]
    store.append(thread_id, "assistant", "hi")
    assert store.fold(thread_id)
    assert b"2wo" in journal.with_name(f"{journal.name}.broken-1").read_bytes()
    found.clear()
    assert store.load(thread_id).tags == ["one", "three"]
    assert found == []


def test_bytes_that_are_not_utf_8_cost_a_character_not_the_thread(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store, "caf\u00e9")
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(file.read_bytes().replace("\u00e9".encode(), b"\xe9"))
    assert texts(store.load(thread_id).messages) == ["caf\ufffd"]
    assert [finding.path for finding in found] == [str(file)]


@pytest.mark.parametrize(
    ("found_format", "error"), [(2, NewerFormat), (0, OlderFormat), ("old", OlderFormat)]
)
def test_a_file_of_another_format_is_an_error_and_is_not_touched(
    tmp_path: Path, found_format: object, error: type[FormatError]
) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(msgspec.json.encode(plain_of(file) | {"format": found_format}))
    before = {path.name: path.read_bytes() for path in file.parent.iterdir()}
    for verb in (
        lambda: store.load(thread_id),
        lambda: store.append(thread_id, "user", "no"),
        lambda: store.fold(thread_id),
        lambda: store.save(a_thread(*a_line("x"), thread_id=thread_id)),
    ):
        with pytest.raises(error):
            verb()
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == before


def test_a_file_under_another_threads_name_is_named_and_left(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    other = "T-018e2b3c-0000-7000-8000-000000000000"
    file, copy = files_in(tmp_path, thread_id).json, files_in(tmp_path, other).json
    copy.write_bytes(file.read_bytes())
    with pytest.raises(FormatError, match=thread_id):
        store.load(other)
    assert copy.read_bytes() == file.read_bytes()


# Other programs.


def rewritten_by_the_seed(file: Path, **changes: Any) -> None:
    """The file as the first seed's program leaves it: its own fields, messages without ids."""
    plain = plain_of(file)
    known = {"stamps", "format", "drafts", "removed_messages", "deleted_at", "client_version", "source"}
    seed = {key: value for key, value in plain.items() if key not in known}
    seed["metadata"] = {key: value for key, value in seed["metadata"].items() if key != "branches"}
    kept = ("role", "content", "tool_calls", "tool_call_id", "tool_name")
    seed["conversation"] = {
        "messages": [
            {key: message[key] for key in kept if key in message}
            for message in plain["conversation"]["messages"]
        ]
    }
    for key, value in changes.items():
        if key == "title":
            seed["metadata"]["title"] = value
        elif key == "turn":
            seed["conversation"]["messages"].append({"role": "user", "content": value})
        else:
            seed[key] = value
    file.write_bytes(msgspec.json.format(msgspec.json.encode(seed), indent=2))


def test_a_rewrite_by_another_program_is_taken_over_once(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store, "hello", "hi", title="ours")
    with store.edit(thread_id) as editor:
        editor.set_draft(None, "unsent")
        editor.write("x/vendor", 7)
    store.append(thread_id, "user", "in the journal only")
    before = store.load(thread_id)
    files = files_in(tmp_path, thread_id)
    rewritten_by_the_seed(files.json, title="theirs", turn="said elsewhere")

    seen = store.load(thread_id)
    assert seen.title == "theirs"
    assert texts(seen.messages) == ["hello", "hi", "in the journal only", "said elsewhere"]
    assert {message.id for message in before.messages} <= {message.id for message in seen.messages}
    assert (seen.drafts, seen.shows("x/vendor")) == (before.drafts, 7)
    assert [finding.what for finding in found] == ["was written by another program"]

    assert equal(a_store(tmp_path, a_writer("aaaaaaaa")).load(thread_id), seen)
    assert decode_file(files.json.read_bytes()).is_as_written
    assert is_whole_without_the_file(tmp_path, files, seen)
    store.append(thread_id, "assistant", "goes on")
    assert texts(store.load(thread_id).messages)[-1] == "goes on"


def test_a_rewrite_that_changed_nothing_changes_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store, "hello", "hi", title="ours")
    store.append(thread_id, "user", "more")
    store.fold(thread_id)
    before = store.load(thread_id)
    rewritten_by_the_seed(files_in(tmp_path, thread_id).json)
    assert equal(store.load(thread_id), before)


def test_an_older_copy_put_back_by_hand_takes_nothing_away(tmp_path: Path) -> None:
    """A file that is ours, whole and old: the lines that were folded into its successor are joined again."""
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store)
    files = files_in(tmp_path, thread_id)
    old = files.json.read_bytes()
    store.append(thread_id, "assistant", "hi")
    store.fold(thread_id)
    store.append(thread_id, "user", "more")
    before = store.load(thread_id)
    files.json.write_bytes(old)
    assert equal(store.load(thread_id), before)
    store.append(thread_id, "user", "still here")
    assert texts(a_store(tmp_path).load(thread_id).messages) == ["hello", "hi", "more", "still here"]


def test_a_copied_or_restored_folder_reads_the_same_and_is_written_quietly(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path / "one")
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    whole = store.load(thread_id)
    folder = tmp_path / "other" / "data" / "threads"
    folder.mkdir(parents=True)
    for file in files_in(tmp_path / "one", thread_id):
        if file.exists():
            (folder / file.name).write_bytes(file.read_bytes())
    other = a_store(tmp_path / "other", report=found.append)
    assert equal(other.load(thread_id), whole)
    other.append(thread_id, "user", "more")
    assert texts(other.load(thread_id).messages) == ["hello", "hi", "more"]
    assert found == []


def test_a_file_that_no_raddle_wrote_opens_as_it_is_and_stays_so_until_it_is_edited(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store, "hello", "hi", title="a title")
    file = files_in(tmp_path, thread_id).json
    rewritten_by_the_seed(file)
    bytes_before = file.read_bytes()
    first, second = store.load(thread_id), a_store(tmp_path).load(thread_id)
    assert equal(first, second)
    assert file.read_bytes() == bytes_before
    store.append(thread_id, "user", "more")
    assert texts(store.load(thread_id).messages) == ["hello", "hi", "more"]
    store.fold(thread_id)
    assert plain_of(file)["stamps"]
    assert texts(store.load(thread_id).messages) == ["hello", "hi", "more"]
    assert found == []


def test_a_title_changed_in_a_text_editor_is_an_edit(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store, title="before")
    store.append(thread_id, "assistant", "hi")
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(file.read_bytes().replace(b'"before"', b'"by hand"'))
    seen = store.load(thread_id)
    assert seen.title == "by hand"
    assert len(seen.registers["title"].writes) == 1
    assert equal(store.load(thread_id), seen)


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_rewrite_of_a_long_thread_before_its_first_fold_loses_no_turn(
    tmp_path: Path, *, is_renamed: bool
) -> None:
    """Its last revision is only a second name, which a program that writes over the file writes over as well."""
    store = a_store(tmp_path)
    thread = a_thread(*a_line(*[LONG] * 40))
    store.save(thread)
    store.append(thread.id, "user", "in the journal only")
    files = files_in(tmp_path, thread.id)
    if is_renamed:
        copy = files.json.with_name("copy")
        copy.write_bytes(files.json.read_bytes())
        rewritten_by_the_seed(copy, title="theirs", turn="said elsewhere")
        copy.replace(files.json)
    else:
        rewritten_by_the_seed(files.json, title="theirs", turn="said elsewhere")
    seen = store.load(thread.id)
    for _ in range(2):
        seen = store.load(thread.id)
        assert seen.title == "theirs"
        assert {"in the journal only", "said elsewhere"} <= set(texts(seen.messages))
        assert texts(seen.messages).count(LONG) == 40
    if is_renamed:
        assert {message.id for message in thread.messages} <= {message.id for message in seen.messages}
    store.append(thread.id, "assistant", "goes on")
    store.fold(thread.id)
    assert "goes on" in texts(store.load(thread.id).messages)


# A disk that will not.


def test_a_full_disk_is_one_error_that_names_the_path_and_leaves_the_thread(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    before = store.load(thread_id)
    files = files_in(tmp_path, thread_id)

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))
        for change, path in (
            (lambda: store.append(thread_id, "user", LONG), files.journal),
            (lambda: store.save(a_thread(*a_line(LONG))), files.json.parent),
        ):
            try:
                change()
            except StorageError as error:
                if str(path) in error.message:
                    continue
            os._exit(1)
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert equal(store.load(thread_id), before)
    assert names_in(files.json.parent) == ["journal", "json", "prev"]
    store.append(thread_id, "user", "room again")


def test_a_fold_that_fails_does_not_fail_the_append(tmp_path: Path) -> None:
    found: list[Finding] = []
    store = a_store(tmp_path, report=found.append)
    thread_id = begin(store)
    store.append(thread_id, "assistant", "hi")
    files = files_in(tmp_path, thread_id)
    files.previous.unlink()
    files.previous.mkdir()  # nothing can be put in its place
    store.append(thread_id, "user", LONG)
    store.append(thread_id, "user", LONG)
    assert [finding.path for finding in found] == [str(files.journal)]
    assert len(store.load(thread_id).messages) == 4


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "threads").write_bytes(b"a file")
    with pytest.raises(StorageError, match="threads"):
        begin(a_store(tmp_path))


def test_an_index_that_cannot_be_told_does_not_fail_the_write(tmp_path: Path) -> None:
    found: list[Finding] = []

    def refuse(_: str) -> None:
        raise StorageError("the list is full")

    store = a_store(tmp_path, changed=refuse, report=found.append)
    thread_id = begin(store)
    assert texts(store.load(thread_id).messages) == ["hello"]
    assert ["the list is full" in finding.what for finding in found] == [True]


# Many at once, and none at all.


def test_temporary_files_are_taken_over_or_joined(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    there = a_thread(*a_line("one"))
    store.save(there)
    new = a_thread(*a_line("three"), thread_id="T-018e2b3c-0000-7000-8000-000000000000")
    folder = tmp_path / "data" / "threads"
    prepared = [(a_thread(*a_line("one", "two")), "a"), (new, "b")]
    for thread, name in prepared:
        (folder / f".raddle-{name}.tmp").write_bytes(encode_thread(thread))
    placed = store.import_many((thread.id, str(folder / f".raddle-{name}.tmp")) for thread, name in prepared)
    assert [one.is_new for one in placed] == [False, True]
    assert texts(store.load(there.id).messages) == ["one", "two"]
    assert equal(store.load(new.id), new)
    assert [path.name for path in folder.iterdir() if path.suffix == ".tmp"] == []


def test_a_purge_of_words_leaves_none_of_them_on_the_disk(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store, "hello", "a secret")
    store.append(thread_id, "user", "another secret")
    store.fold(thread_id)
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(file.read_bytes()[:-9])
    grow_old(file)
    with store.edit(thread_id) as editor:
        editor.purge([message.id for message in editor.thread.tree if "secret" in message.content])
    store.scrub(thread_id)
    assert [path for path in file.parent.iterdir() if b"secret" in path.read_bytes()] == []
    assert texts(store.load(thread_id).messages) == ["hello", "", ""]


def test_removing_a_thread_removes_all_of_it(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id, other = begin(store), begin(store)
    for name in (thread_id, other):
        store.append(name, "assistant", "hi")
        store.fold(name)
        store.append(name, "user", "more")
    file = files_in(tmp_path, thread_id).json
    file.write_bytes(b"{ torn")
    grow_old(file)
    store.load(thread_id)
    store.delete_files(thread_id)
    left = {path.name for path in file.parent.iterdir()}
    assert {name for name in left if name.startswith(thread_id)} == set()
    assert texts(store.load(other).messages) == ["hello", "hi", "more"]


def test_a_sweep_sees_every_change(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    thread_id = begin(store)
    seen = [store.revisions()]
    for change in (
        lambda: store.append(thread_id, "assistant", "hi"),
        lambda: store.append(thread_id, "user", "more"),
        lambda: store.fold(thread_id),
        lambda: rewritten_by_the_seed(files_in(tmp_path, thread_id).json, title="theirs"),
    ):
        change()
        assert store.revisions() not in seen
        seen.append(store.revisions())
    store.load(thread_id)
    assert store.revisions() != seen[-1]
    settled = store.revisions()
    store.load(thread_id)
    assert store.revisions() == settled


def test_looking_at_an_empty_place_makes_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    assert store.ids() == []
    assert store.revisions() == {}
    with pytest.raises(NotFound):
        store.resolve("T-0")
    assert not (tmp_path / "data" / "threads").exists()


def test_names_that_are_no_thread_are_not_listed(tmp_path: Path) -> None:
    store: ThreadFiles = a_store(tmp_path)
    thread_id = begin(store)
    folder = files_in(tmp_path, thread_id).json.parent
    for name in (
        "notes.json",
        f"{thread_id}.json.bak",
        f"copy of {thread_id}.json",
        "T-1.json",
        f"{thread_id[:-1]}G.json",
    ):
        (folder / name).write_bytes(b"{}")
    assert store.ids() == [thread_id]


def test_a_turn_of_another_device_is_answered_with_its_own_footers_left_alone(tmp_path: Path) -> None:
    """A device that takes over a data folder does not take the other's draft for its own."""
    one, other = a_store(tmp_path), a_store(tmp_path, a_writer("bbbbbbbb"))
    thread_id = begin(one)
    with one.edit(thread_id) as editor:
        editor.set_draft(None, "one's")
    other.append(thread_id, "user", "more")
    assert other.load(thread_id).drafts == {"aaaaaaaa": {"root": "one's"}}
    thread = other.load(thread_id)
    Editor(thread, an_author("cccccccc")).tag("x")
    assert one.save(thread)
