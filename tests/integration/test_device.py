"""A device keeps its id as long as it is the same store on the same machine, and no longer."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from raddle.adapters.device import Device, machine_id, this_device
from raddle.adapters.paths import Paths
from raddle.model.errors import StorageError


def paths_of(home: Path, *, data: str = "data") -> Paths:
    return Paths(
        data_dir=home / data, config_dir=home / "config", state_dir=home / "state", cache_dir=home / "cache"
    )


def edit_state(paths: Paths, **changes: object) -> None:
    """Change what the device file says of the only data folder it knows."""
    state = json.loads(paths.device_file.read_bytes())
    (record,) = state["data_dirs"].values()
    record.update(changes)
    paths.device_file.write_text(json.dumps(state))


def test_a_device_has_eight_hex_digits_and_keeps_them(tmp_path: Path) -> None:
    first = this_device(paths_of(tmp_path))
    assert re.fullmatch("[0-9a-f]{8}", first.id)
    assert first.former_ids == ()
    assert this_device(paths_of(tmp_path)) == first


def test_the_device_file_is_private_and_readable(tmp_path: Path) -> None:
    paths = paths_of(tmp_path)
    device = this_device(paths)
    assert device.id in paths.device_file.read_text()
    assert [path.stat().st_mode & 0o777 for path in (paths.device_file, paths.device_marker)] == [
        0o600,
        0o600,
    ]
    assert [path.stat().st_mode & 0o777 for path in (paths.data_dir, paths.state_dir)] == [0o700, 0o700]


def test_each_data_folder_is_a_device_of_its_own(tmp_path: Path) -> None:
    one, other = paths_of(tmp_path), paths_of(tmp_path, data="other")
    ids = {this_device(one).id, this_device(other).id}
    assert len(ids) == 2
    assert {this_device(one).id, this_device(other).id} == ids
    assert this_device(other).former_ids == ()


def test_another_way_to_the_same_folder_is_the_same_device(tmp_path: Path) -> None:
    device = this_device(paths_of(tmp_path))
    (tmp_path / "link").symlink_to("data")
    assert this_device(paths_of(tmp_path, data="link")) == device


def test_a_restored_backup_is_a_new_device_that_knows_its_old_id(tmp_path: Path) -> None:
    paths = paths_of(tmp_path)
    old = this_device(paths)
    shutil.copytree(paths.data_dir, tmp_path / "backup")
    paths.data_dir.rename(tmp_path / "lost")
    shutil.copytree(tmp_path / "backup", paths.data_dir)
    new = this_device(paths)
    assert new.id != old.id
    assert new.former_ids == (old.id,)
    assert this_device(paths) == new


def test_a_folder_that_was_restored_twice_never_takes_an_old_id_back(tmp_path: Path) -> None:
    paths = paths_of(tmp_path)
    first = this_device(paths)
    paths.data_dir.rename(tmp_path / "kept")
    second = this_device(paths)
    shutil.rmtree(paths.data_dir)
    (tmp_path / "kept").rename(paths.data_dir)
    third = this_device(paths)
    assert len({first.id, second.id, third.id}) == 3
    assert third.former_ids == (first.id, second.id)


def test_a_copied_home_is_a_new_device(tmp_path: Path) -> None:
    old = this_device(paths_of(tmp_path / "home"))
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    copy = this_device(paths_of(tmp_path / "copy"))
    assert copy == Device(id=copy.id, former_ids=(old.id,))
    assert copy.id != old.id
    assert this_device(paths_of(tmp_path / "home")) == old


def test_a_home_on_another_machine_is_a_new_device(tmp_path: Path) -> None:
    paths = paths_of(tmp_path)
    old = this_device(paths)
    edit_state(paths, machine="another machine")
    assert this_device(paths).former_ids == (old.id,)


def test_a_folder_made_anew_under_the_old_inode_is_a_new_device(tmp_path: Path) -> None:
    paths = paths_of(tmp_path)
    old = this_device(paths)
    for path in paths.data_dir.iterdir():
        path.unlink()
    assert this_device(paths).id != old.id


def test_a_folder_put_back_from_a_copy_in_place_is_a_new_device(tmp_path: Path) -> None:
    paths = paths_of(tmp_path)
    old = this_device(paths)
    marker = paths.device_marker.read_bytes()
    (tmp_path / "copy").write_bytes(marker)
    (tmp_path / "copy").replace(paths.device_marker)
    assert this_device(paths).id != old.id


def test_a_folder_whose_content_was_moved_to_another_is_a_new_device(tmp_path: Path) -> None:
    paths = paths_of(tmp_path)
    old = this_device(paths)
    paths.data_dir.rename(tmp_path / "before")
    paths.data_dir.mkdir()
    (tmp_path / "before" / ".device").rename(paths.device_marker)
    assert this_device(paths).id != old.id


def test_a_folder_that_another_device_wrote_to_meanwhile_is_a_new_device(tmp_path: Path) -> None:
    paths = paths_of(tmp_path)
    old = this_device(paths)
    paths.device_marker.write_bytes(b"0badcafe\n")
    new = this_device(paths)
    assert new.id not in {old.id, "0badcafe"}
    assert new.former_ids == (old.id, "0badcafe")


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"data_dirs": 3}', b"\xff\x00", b'{"data_dirs": {"/x": {}}}']
)
def test_an_unreadable_device_file_gives_a_new_id_and_is_kept_aside(damage: bytes, tmp_path: Path) -> None:
    paths = paths_of(tmp_path)
    old = this_device(paths)
    paths.device_file.write_bytes(damage)
    new = this_device(paths, clock=lambda: 17)
    assert new == Device(id=new.id, former_ids=(old.id,))
    assert new.id != old.id
    assert (paths.state_dir / "device.json.broken-17").read_bytes() == damage
    assert this_device(paths) == new


def test_a_folder_in_the_place_of_the_device_file_is_kept_aside_too(tmp_path: Path) -> None:
    paths = paths_of(tmp_path)
    paths.device_file.mkdir(parents=True)
    assert this_device(paths) == this_device(paths)


def test_processes_that_come_first_together_agree(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from raddle.adapters.paths import Paths\n"
        "from raddle.adapters.device import this_device\n"
        "home = Path(sys.argv[1]); sys.stdin.readline()\n"
        "print(this_device(Paths(data_dir=home/'d', config_dir=home, state_dir=home/'s', cache_dir=home)).id)"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = {process.communicate()[0] for process in started}
    assert len(said) == 1
    assert re.fullmatch(r"[0-9a-f]{8}\n", said.pop())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"")
    with pytest.raises(StorageError, match="state"):
        this_device(paths_of(tmp_path))


def test_the_machine_is_told_by_a_hash_that_stays() -> None:
    assert re.fullmatch("[0-9a-f]{32}", machine_id())
    assert machine_id() == machine_id()
    for file in (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")):
        assert not file.exists() or machine_id() not in file.read_text()
