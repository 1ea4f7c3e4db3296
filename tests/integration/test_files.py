"""Files are whole or absent, whatever the disk does; every test here uses a real one."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from raddle.adapters.file_batches import FileBatch
from raddle.adapters.files import (
    NewFile,
    append_durable,
    find_bytes,
    make_folder,
    storage_error,
    truncate_durable,
    write_atomic,
)
from raddle.adapters.temporaries import abandoned_temporaries, remove_temporary, sweep_temporaries
from raddle.model.errors import StorageError


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_private_and_replaces_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "thread.json"
    target.write_bytes(b"old")
    target.chmod(0o644)
    write_atomic(target, b"new")
    assert target.read_bytes() == b"new"
    assert mode_of(target) == 0o600
    assert names_in(tmp_path) == ["thread.json"]


def test_a_reader_who_has_the_old_file_open_keeps_it(tmp_path: Path) -> None:
    target = tmp_path / "thread.json"
    write_atomic(target, b"old")
    with target.open("rb") as reader:
        write_atomic(target, b"the new one")
        assert reader.read() == b"old"


def test_a_large_file_is_written_whole(tmp_path: Path) -> None:
    data = os.urandom(5 * 1024 * 1024)
    write_atomic(tmp_path / "blob", data)
    assert (tmp_path / "blob").read_bytes() == data


def test_a_file_in_pieces_may_learn_its_name_last(tmp_path: Path) -> None:
    with NewFile(tmp_path) as new:
        for piece in (b"one ", b"two ", b"three"):
            new.write(piece)
        new.publish(tmp_path / "named-by-its-hash")
    assert (tmp_path / "named-by-its-hash").read_bytes() == b"one two three"
    assert names_in(tmp_path) == ["named-by-its-hash"]


def test_a_file_that_is_not_published_is_gone(tmp_path: Path) -> None:
    def broken_off() -> None:
        with NewFile(tmp_path) as new:
            new.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    with NewFile(tmp_path) as new:
        new.write(b"thought better of it")
    assert names_in(tmp_path) == []


def test_a_name_that_is_as_long_as_a_name_can_be_works(tmp_path: Path) -> None:
    write_atomic(tmp_path / ("n" * 255), b"x")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"x"


def test_folders_are_made_private_all_the_way_and_old_ones_kept(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    make_folder(shared / "a" / "b")
    make_folder(shared / "a" / "b")
    assert [mode_of(shared), mode_of(shared / "a"), mode_of(shared / "a" / "b")] == [0o755, 0o700, 0o700]


def test_a_missing_file_reads_as_none(tmp_path: Path) -> None:
    assert find_bytes(tmp_path / "no") is None
    assert find_bytes(tmp_path / "no" / "file") is None


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda folder: write_atomic(folder / "gone" / "file", b"x"), "gone: it is not there"),
        (lambda folder: write_atomic(folder / "folder", b"x"), "folder: it is a folder"),
        (lambda folder: write_atomic(folder / ("n" * 256), b"x"), "the name is too long"),
        (lambda folder: write_atomic(folder / "file" / "x", b"x"), "a part of the path is not a folder"),
        (lambda folder: append_durable(folder / "folder", b"x"), "folder: it is a folder"),
        (lambda folder: append_durable(folder / "loop", b"x"), "loop: its symbolic links lead in a circle"),
        (lambda folder: make_folder(folder / "file"), "file: something else is already there"),
        (lambda folder: make_folder(folder / "file" / "x"), "x: a part of the path is not a folder"),
        (lambda folder: find_bytes(folder / "folder"), "folder: it is a folder"),
        (lambda folder: truncate_durable(folder / "gone", 0), "gone: it is not there"),
        (lambda folder: sweep_temporaries(folder / "file"), "file: a part of the path is not a folder"),
    ],
)
def test_every_refusal_names_the_path_and_the_reason_and_leaves_nothing(
    act: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    (tmp_path / "folder" / "full").mkdir(parents=True)
    (tmp_path / "file").write_bytes(b"kept")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StorageError) as caught:
        act(tmp_path)
    assert said in caught.value.message
    assert str(tmp_path) in caught.value.message
    assert caught.value.hint
    assert names_in(tmp_path) == ["file", "folder", "loop"]
    assert (tmp_path / "file").read_bytes() == b"kept"


def test_an_error_we_have_no_words_for_is_said_in_the_systems_own() -> None:
    error = storage_error(OSError(errno.EXDEV, "Invalid cross-device link"), Path("/x"), "write")
    assert error.message == "cannot write /x: Invalid cross-device link"
    assert storage_error(OSError(), Path("/x"), "read").message == "cannot read /x: OSError"


def test_a_path_that_is_no_text_can_still_be_named() -> None:
    path = Path(os.fsdecode(b"/x/\xff"))
    storage_error(OSError(errno.EIO, ""), path, "read").message.encode()


def test_appends_follow_each_other_and_tell_the_size(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    assert append_durable(journal, b"one\n") == 4
    assert append_durable(journal, b"two\n") == 8
    assert journal.read_bytes() == b"one\ntwo\n"
    assert mode_of(journal) == 0o600


def test_a_torn_tail_can_be_cut(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    append_durable(journal, b"whole\nto")
    truncate_durable(journal, 6)
    append_durable(journal, b"next\n")
    assert journal.read_bytes() == b"whole\nnext\n"


def test_a_batch_shows_nothing_before_it_is_done_and_then_all(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"old")
    for folder in range(20):
        (tmp_path / f"f{folder}").mkdir()
    with FileBatch() as batch:
        for number in range(200):
            batch.write(tmp_path / f"f{number % 20}" / str(number), b"%d" % number)
        batch.write(tmp_path / "1", b"once")
        batch.write(tmp_path / "1", b"twice")
        assert [path for path in tmp_path.glob("f*/*") if path.name.isdigit()] == []
        assert (tmp_path / "1").read_bytes() == b"old"
    assert {path.name: path.read_bytes() for path in tmp_path.glob("f*/[0-9]*")} == {
        str(number): b"%d" % number for number in range(200)
    }
    assert (tmp_path / "1").read_bytes() == b"twice"
    assert mode_of(tmp_path / "1") == 0o600
    assert list(tmp_path.rglob("*.tmp")) == []


def test_a_batch_that_is_broken_off_leaves_everything_as_it_was(tmp_path: Path) -> None:
    def broken_off() -> None:
        with FileBatch() as batch:
            batch.write(tmp_path / "a", b"new")
            batch.write(tmp_path / "b", b"new")
            raise KeyboardInterrupt

    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert names_in(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_batch_that_cannot_place_a_file_names_it_and_leaves_no_rubbish(tmp_path: Path) -> None:
    (tmp_path / "b" / "full").mkdir(parents=True)
    batch = FileBatch()
    for name in ("a", "b", "c"):
        batch.write(tmp_path / name, b"new")
    with pytest.raises(StorageError, match="b: it is a folder"):
        batch.commit()
    assert names_in(tmp_path) == ["a", "b"]


def test_a_batch_whose_folder_has_gone_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    batch = FileBatch()
    batch.write(folder / "a", b"new")
    (waiting,) = folder.iterdir()
    waiting.unlink()
    folder.rmdir()
    with pytest.raises(StorageError, match="gone"):
        batch.commit()


def test_an_empty_batch_does_nothing(tmp_path: Path) -> None:
    with FileBatch():
        assert names_in(tmp_path) == []
    assert names_in(tmp_path) == []


def test_what_a_killed_process_left_is_swept_after_an_hour(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from raddle.adapters.files import NewFile\n"
        "new = NewFile(Path(sys.argv[1])); new.write(b'half'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    write_atomic(tmp_path / "kept.json", b"x")
    (left,) = (path for path in tmp_path.iterdir() if path.suffix == ".tmp")
    written = left.stat().st_mtime_ns // 1000
    hour = 3_600_000_000
    assert sweep_temporaries(tmp_path, clock=lambda: written + hour - 1_000_000) == 0
    assert sweep_temporaries(tmp_path, clock=lambda: written + hour + 2_000_000) == 1
    assert names_in(tmp_path) == ["kept.json"]


def test_what_somebody_is_making_is_never_swept_however_old_it_is(tmp_path: Path) -> None:
    with NewFile(tmp_path) as new:
        new.write(b"slow")
        assert abandoned_temporaries(tmp_path, older_than_seconds=0) == []
        assert not remove_temporary(new.path)
        new.publish(tmp_path / "made.json")
    assert names_in(tmp_path) == ["made.json"]


def test_what_nobody_is_making_is_told_and_removed_at_once_where_no_import_waits_for_it(
    tmp_path: Path,
) -> None:
    left = NewFile(tmp_path).set_aside()
    assert abandoned_temporaries(tmp_path) == []
    assert abandoned_temporaries(tmp_path, older_than_seconds=0) == [left]
    assert remove_temporary(left)
    assert not remove_temporary(left)
    assert names_in(tmp_path) == []


def test_a_new_file_that_was_tidied_away_before_it_was_claimed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    tidied: list[Path] = []

    def tidy_first(fd: int, kind: int) -> None:
        if not tidied:
            tidied.extend(tmp_path.iterdir())
            tidied[0].unlink()
        lock(fd, kind)

    monkeypatch.setattr(fcntl, "flock", tidy_first)
    with NewFile(tmp_path) as new:
        new.write(b"whole")
        new.publish(tmp_path / "made.json")
    assert (len(tidied), (tmp_path / "made.json").read_bytes()) == (1, b"whole")


def test_a_folder_that_is_not_there_needs_no_sweeping(tmp_path: Path) -> None:
    assert sweep_temporaries(tmp_path / "not-yet") == 0


TRY_ALL = """
import os, sys
from pathlib import Path
from raddle.adapters.file_batches import FileBatch
from raddle.adapters.files import append_durable, make_folder, write_atomic
from raddle.model.errors import StorageError

def batch(folder):
    with FileBatch() as files:
        files.write(folder / "kept", data)

{before}
folder, data = Path(sys.argv[1]), bytes({size})
attempts = {{
    "write": lambda: write_atomic(folder / "kept", data),
    "append": lambda: append_durable(folder / "kept", data),
    "append to a new one": lambda: append_durable(folder / "new", data),
    "batch": lambda: batch(folder),
}}
for name, attempt in attempts.items():
    try:
        attempt()
    except StorageError as error:
        print(f"{{name}}: {{error.message}}")
    else:
        print(f"{{name}}: done")
print((folder / "kept").read_bytes(), sum(path.stat().st_size for path in folder.iterdir()))
"""


def test_a_limit_on_the_size_of_files_leaves_the_old_one_whole(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"old")
    before = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))"
    code = TRY_ALL.format(before=before, size=100_000)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    *attempts, last = done.stdout.splitlines()
    assert len(attempts) == 4
    assert [line for line in attempts if "larger than allowed" not in line or str(tmp_path) not in line] == []
    assert last == "b'old' 3"


def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "kept").write_bytes(b"old")
    (folder / "kept").chmod(0o444)
    folder.chmod(0o555)
    tmp_path.chmod(0o755)
    # Root may do everything, so the attempt is made as somebody else, who reaches the folder from inside.
    before = "os.chdir(sys.argv[2])\nif os.geteuid() == 0: os.seteuid(65534)"
    code = TRY_ALL.format(before=before, size=10)
    done = subprocess.run(
        [sys.executable, "-c", code, "locked", str(tmp_path)], capture_output=True, text=True, check=True
    )
    *attempts, last = done.stdout.splitlines()
    assert len(attempts) == 4
    assert [line for line in attempts if "locked" not in line or "permission denied" not in line] == []
    assert last == "b'old' 3"


def can_mount() -> bool:
    """Does this machine let a test have a file system of its own?"""
    try:
        done = subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0


needs_a_mount = pytest.mark.skipif(not can_mount(), reason="no file system can be mounted here (unshare -rm)")


def on_a_small_disk(folder: Path, *, before: str, size: int, then: str = "true") -> list[str]:
    """What TRY_ALL prints with `folder` on a disk of 64 KiB that holds `kept`, after the shell's `then`."""
    script = (
        f'mount -t tmpfs -o size=64k tmpfs "$1" && printf old > "$1/kept" && {then} && exec "$2" -c "$3" "$1"'
    )
    code = TRY_ALL.format(before=before, size=size)
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", str(folder), sys.executable, code],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@needs_a_mount
def test_a_full_disk_is_named_and_nothing_is_half_written(tmp_path: Path) -> None:
    *attempts, last = on_a_small_disk(tmp_path, before="", size=200_000)
    assert len(attempts) == 4
    assert [line for line in attempts if "the disk is full" not in line or str(tmp_path) not in line] == []
    assert last == "b'old' 3"


@needs_a_mount
def test_a_read_only_disk_is_named(tmp_path: Path) -> None:
    *attempts, last = on_a_small_disk(tmp_path, before="", size=10, then='mount -o remount,ro "$1"')
    assert len(attempts) == 4
    assert [line for line in attempts if "read-only" not in line or str(tmp_path) not in line] == []
    assert last == "b'old' 3"


@needs_a_mount
def test_a_batch_over_two_file_systems_is_written(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from raddle.adapters.file_batches import FileBatch\n"
        "here, there = Path(sys.argv[1]), Path(sys.argv[1]) / 'disk'\n"
        "with FileBatch() as batch:\n    batch.write(here / 'a', b'1'); batch.write(there / 'b', b'2')\n"
        "print((here / 'a').read_bytes() + (there / 'b').read_bytes())"
    )
    script = 'mkdir "$1/disk" && mount -t tmpfs tmpfs "$1/disk" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", str(tmp_path), sys.executable, code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "b'12'\n"
