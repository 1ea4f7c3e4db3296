"""Which device this is: eight hex digits for a data folder of a machine, new when either is another.

Every write of a register is stamped with it, and the proof that no write is lost (docs/formats) holds only
while no two stores share one: two places that made up ids, or one that kept the id of a restored backup,
would let a write pass for one that was seen before.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path

import msgspec
from msgspec import Struct

from raddle.adapters.files import find_bytes, make_folder, storage_error, write_atomic
from raddle.adapters.locks import LockFiles
from raddle.adapters.paths import Paths
from raddle.adapters.programs import run
from raddle.model.clock import Clock, system_clock
from raddle.model.errors import RaddleError, StorageError

_MACHINE_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_MACHINE_ID = re.compile(r"[0-9a-fA-F-]{32,36}\Z")
_MARKER = re.compile(rb"([0-9a-f]{8})\n\Z")
_PLATFORM_UUID = re.compile(rb'"IOPlatformUUID" = "([^"]+)"')


class Device(Struct, frozen=True, kw_only=True):
    """The device that writes to one data folder."""

    id: str
    former_ids: tuple[str, ...] = ()
    """What it was called before a restore or a copy, oldest first; never used again."""


class _Record(Struct, frozen=True, kw_only=True):
    """A device with what it is recognised by; any of it another makes it another device."""

    id: str
    machine: str
    inode: int
    """Of the data folder. Its device number would not do: btrfs, NFS and LVM may change it at each boot."""
    marker_inode: int
    """Of the marker inside it: a folder made anew where one was removed often gets the old inode again."""
    former_ids: tuple[str, ...] = ()


class _State(Struct, frozen=True, kw_only=True):
    """The device file: a record for each data folder, by its real path."""

    schema_version: int = 1
    data_dirs: dict[str, _Record] = {}


def this_device(paths: Paths, *, clock: Clock = system_clock) -> Device:
    """The device that this machine is for this data folder; where there is none it is made, folders too.

    Processes that come first at the same time agree. StorageError where the folders cannot be written.
    """
    make_folder(paths.data_dir)
    machine = machine_id()
    known = _known(_readable_state(paths), paths, machine)
    if known is not None:
        return known
    make_folder(paths.state_dir)
    with LockFiles(paths.device_locks_dir, stripes=1).held("device"):
        state = _readable_state(paths)
        if state is None:
            _keep_aside(paths.device_file, clock)
            state = _State()
        return _known(state, paths, machine) or _new(state, paths, machine)


def machine_id() -> str:
    """What tells this machine from others: systemd's machine id, Apple's platform UUID, else the host's name.

    Hashed, because the first two are nobody else's to know and the state folder may be copied about.
    """
    return hashlib.sha256(f"raddle device {_raw_machine_id()}".encode()).hexdigest()[:32]


def _raw_machine_id() -> str:
    for file in _MACHINE_ID_FILES:
        try:
            text = file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if _MACHINE_ID.match(text):  # a container's may be empty or say `uninitialized`
            return text
    uuid = _platform_uuid() if sys.platform == "darwin" else None
    return uuid or f"host {os.uname().nodename}"


def _platform_uuid() -> str | None:
    try:
        answer = run(["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"], timeout=5)
    except RaddleError:
        return None
    found = _PLATFORM_UUID.search(answer.stdout)
    return found[1].decode("ascii", "replace") if found else None


def _readable_state(paths: Paths) -> _State | None:
    """What the device file says, empty where there is none; None where it cannot be read."""
    try:
        data = find_bytes(paths.device_file)
        return _State() if data is None else msgspec.json.decode(data, type=_State)
    except (StorageError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _known(state: _State | None, paths: Paths, machine: str) -> Device | None:
    record = state.data_dirs.get(_name(paths)) if state is not None else None
    if record is None or record.machine != machine:
        return None
    if (record.inode, record.marker_inode) != (_inode(paths.data_dir), _inode(paths.device_marker)):
        return None
    if find_bytes(paths.device_marker) != _marker(record.id):
        return None
    return Device(id=record.id, former_ids=record.former_ids)


def _new(state: _State, paths: Paths, machine: str) -> Device:
    former = _former(state.data_dirs.get(_name(paths)), find_bytes(paths.device_marker) or b"")
    device = Device(id=os.urandom(4).hex(), former_ids=former)
    write_atomic(paths.device_marker, _marker(device.id))
    record = _Record(
        id=device.id,
        machine=machine,
        inode=_inode(paths.data_dir),
        marker_inode=_inode(paths.device_marker),
        former_ids=former,
    )
    new = msgspec.structs.replace(state, data_dirs={**state.data_dirs, _name(paths): record})
    write_atomic(paths.device_file, msgspec.json.format(msgspec.json.encode(new), indent=2) + b"\n")
    return device


def _former(before: _Record | None, marker: bytes) -> tuple[str, ...]:
    """Every id the data folder was written under; the marker knows one that the device file has lost."""
    ids = [*before.former_ids, before.id] if before is not None else []
    found = _MARKER.match(marker)
    if found and found[1].decode() not in ids:
        ids.append(found[1].decode())
    return tuple(ids)


def _keep_aside(file: Path, clock: Clock) -> None:
    try:
        file.replace(file.with_name(f"{file.name}.broken-{clock()}"))
    except OSError as error:
        raise storage_error(error, file, "set aside the unreadable") from error


def _name(paths: Paths) -> str:
    return os.fsencode(os.path.realpath(paths.data_dir)).decode(errors="backslashreplace")


def _marker(device_id: str) -> bytes:
    return f"{device_id}\n".encode()


def _inode(path: Path) -> int:
    """0 where there is none, which no file has."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise storage_error(error, path, "look at") from error
