"""What was purged stays written down: readable, added to by several processes, through crashes and by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.adapters.local_store.purge_marks import PurgeMarks
from raddle.adapters.locks import LockFiles
from raddle.model.errors import InvalidInput, StorageError
from tests.file_events import deaths_of, start_child
from tests.modes import bound_by_modes

ONE, TWO, THREE = (f"T-{number:08d}-0000-8000-8000-000000000000" for number in (1, 2, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "purged.txt"


def marks_at(path: Path) -> PurgeMarks:
    return PurgeMarks(path, LockFiles(path.parent / "locks"))


def standing(path: Path) -> tuple[set[str], set[str]]:
    marks = marks_at(path)
    return marks.whole(), marks.in_part()


def test_the_last_line_about_a_thread_holds_and_whole_goes_before_part(path: Path) -> None:
    marks = marks_at(path)
    assert standing(path) == (set(), set())
    assert not path.parent.exists()
    marks.note({ONE: False, TWO: True})
    assert standing(path) == ({TWO}, {ONE})
    marks.note({ONE: True})
    marks.note({ONE: False})
    assert standing(path) == ({ONE, TWO}, set())
    marks.revive(ONE)
    assert standing(path) == ({TWO}, set())
    marks.note({ONE: False})
    assert standing(path) == ({TWO}, {ONE})


def test_a_person_can_read_it_and_write_in_it(path: Path) -> None:
    marks_at(path).note({ONE: True})
    text = path.read_text()
    assert text.startswith("# Threads that were purged here")
    assert text.endswith(f"\npurged {ONE}\n")
    path.write_text(f"  purged {TWO}\r\n\n# a note of mine\npurged-turns {THREE}")
    assert standing(path) == ({TWO}, {THREE})
    marks_at(path).revive(TWO)
    assert standing(path) == (set(), {THREE})
    assert marks_at(path).unreadable() == 0


@pytest.mark.parametrize(
    "torn", [f"purged {TWO}"[:-1].encode(), b"\0" * 40, b"pur", f"revived {ONE}"[:20].encode()]
)
def test_a_torn_line_costs_itself_and_is_counted(path: Path, torn: bytes) -> None:
    marks_at(path).note({ONE: True})
    with path.open("ab") as file:
        file.write(torn)
    marks_at(path).note({THREE: True})
    assert standing(path) == ({ONE, THREE}, set())
    assert marks_at(path).unreadable() == 1


def test_bytes_that_a_crash_left_before_a_mark_do_not_hide_it(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"\0\0\xff" + f"purged {ONE}".encode() + b"\0\npurged " + TWO.encode() + b"-0\n")
    assert standing(path) == ({ONE}, set())


def test_a_file_that_cannot_be_read_is_an_error_and_not_an_empty_one(path: Path) -> None:
    marks_at(path).note({ONE: True})
    path.chmod(0)

    def look() -> None:
        with pytest.raises(StorageError, match=str(path)):
            marks_at(path).whole()

    bound_by_modes(look)


def test_what_is_no_id_is_not_written(path: Path) -> None:
    with pytest.raises(InvalidInput):
        marks_at(path).note({"../x\npurged": True})
    assert not path.exists()


def test_marks_of_several_processes_are_all_kept(path: Path) -> None:
    ids = [f"T-{number:08d}-0000-8000-8000-000000000000" for number in range(40)]

    def write(own: list[str]) -> None:
        for thread_id in own:
            marks_at(path).note({thread_id: True})

    children = [start_child(write, ids[start::4]) for start in range(4)]
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 4
    assert standing(path) == (set(ids), set())
    assert marks_at(path).unreadable() == 0


def test_a_death_at_any_touch_of_a_file_forgets_nothing_that_was_noted(path: Path) -> None:
    marks_at(path).note({ONE: True})
    for _ in deaths_of(lambda: marks_at(path).note({TWO: True})):
        assert standing(path)[0] >= {ONE}
    assert standing(path)[0] == {ONE, TWO}
    assert path.stat().st_mode & 0o777 == 0o600
