"""Where a cluster lies and whose it is: the one place that spells a path of it, and that chooses the account.

PostgreSQL refuses to run as root. As root, then, it runs as another account, which cannot enter a data folder
below a private home; so its cluster lies in a folder of the machine, marked by the data folder it belongs to.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import shutil
import socket
import stat
import tempfile
from pathlib import Path

from msgspec import Struct

from raddle.adapters.files import make_folder, new_temporary_folder, storage_error
from raddle.adapters.paths import mark_of
from raddle.adapters.programs import Account, clean_environment, run
from raddle.adapters.temporaries import sweep_temporaries
from raddle.model.errors import StorageError, UserError
from raddle.server.embedded_pg.pg_programs import WHEEL, PgPrograms

ROOTS_FOLDER = Path("/var/lib/raddle")
PORT = 5432
"""Names the socket's file, nothing else: there is no TCP."""
_ACCOUNTS = ("postgres", "nobody")
_LONGEST_SOCKET_PATH = 103
"""macOS's limit; Linux's is 107."""
_COPIED = ("bin", "lib", "share")


class Place(Struct, frozen=True, kw_only=True):
    """The folder of one cluster with everything around it."""

    folder: Path
    account: Account | None
    """Whom PostgreSQL runs as; None: us."""
    key: str
    """The data folder's mark."""

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own data folder."""
        return self.folder / "cluster"

    @property
    def settings(self) -> Path:
        """The settings files, written anew at every start."""
        return self.folder / "settings"

    @property
    def local_settings(self) -> Path:
        """What the operator sets, if anything: read after ours."""
        return self.folder / "local.conf"

    @property
    def locks(self) -> Path:
        """Who starts, and who uses."""
        return self.folder / "locks"

    @property
    def lease_file(self) -> Path:
        """What every process that uses the cluster holds shared."""
        return self.locks / "in-use"

    @property
    def log(self) -> Path:
        """What PostgreSQL says of itself."""
        return self.folder / "postgres.log"


def place_for(data_dir: Path, *, roots_folder: Path = ROOTS_FOLDER) -> Place:
    """Where the cluster of `data_dir` lies; its folder is made. UserError where no account can run it."""
    key = mark_of(data_dir)
    if os.geteuid() != 0:
        _require_named_account()
        folder = Path(os.path.realpath(data_dir)) / "postgres"
        make_folder(folder)
        return Place(folder=folder, account=None, key=key)
    folder = Path(os.path.realpath(roots_folder)) / key
    make_folder(folder)
    open_way(folder.parent)
    open_way(folder)
    return Place(folder=folder, account=_account(folder / "cluster"), key=key)


def open_way(folder: Path) -> None:
    """Let other accounts through `folder`, without showing them what is in it."""
    try:
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) | 0o011)
    except OSError as error:
        raise storage_error(error, folder, "open") from error


def open_to_read(file: Path) -> None:
    """Let other accounts read a file."""
    try:
        file.chmod(0o644)
    except OSError as error:
        raise storage_error(error, file, "open") from error


def give(path: Path, account: Account | None) -> None:
    """Make `account` the owner of what we made; nothing where it is us."""
    if account is None:
        return
    try:
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
    except OSError as error:
        raise storage_error(error, path, "give away") from error


def environment() -> dict[str, str]:
    """What PostgreSQL's programs see of ours: no home of ours, and nothing that is set for another PostgreSQL."""
    names = {"HOME", "XDG_RUNTIME_DIR", "TZ"}
    return {
        name: value
        for name, value in clean_environment().items()
        if name not in names and not name.startswith("PG")
    }


def socket_folder(place: Place) -> Path:
    """A private folder, made where it is missing, in which a socket can be: its path is short enough.

    StorageError where none of the places will do.
    """
    candidates = (
        place.folder / "socket",
        Path(f"/run/user/{os.geteuid()}/raddle-{place.key}"),
        Path(tempfile.gettempdir()) / f"raddle-{os.geteuid()}-{place.key}",
    )
    for folder in candidates:
        if _fits(folder) and folder.parent.is_dir():
            with contextlib.suppress(OSError):
                folder.mkdir(mode=0o700)
                give(folder, place.account)
            if _takes_sockets(folder, place):
                return folder
    raise StorageError(
        f"no place for PostgreSQL's socket: tried {', '.join(map(str, candidates))}",
        "set TMPDIR to a short path on a local disk",
    )


def forget_socket_folder(place: Place, folder: Path) -> None:
    """Remove a socket's folder that is outside the cluster's own."""
    if folder.parent != place.folder:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _fits(folder: Path) -> bool:
    """Can a conninfo name it? A comma parts one host from the next there."""
    path = os.fsencode(folder / f".s.PGSQL.{PORT}")
    return len(path) <= _LONGEST_SOCKET_PATH and b"," not in path


def _takes_sockets(folder: Path, place: Place) -> bool:
    """Is it a folder that nobody else can enter, on a file system that knows sockets?"""
    owner = os.geteuid() if place.account is None else place.account.uid
    trial = folder / f".try-{os.getpid()}"
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
            return False
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(trial))
        trial.unlink()
    except OSError:
        return False
    return True


def own_names(place: Place) -> list[str]:
    """The accounts that may come in: ours, and the one PostgreSQL runs as."""
    names = [pwd.getpwuid(os.geteuid()).pw_name]
    return names if place.account is None else [*names, place.account.name]


def _require_named_account() -> None:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise UserError(
            f"PostgreSQL does not run as user id {os.geteuid()}, which has no name on this machine",
            "add it to /etc/passwd, or name a server by RADDLE_DATABASE_URL",
        ) from None


def _account(cluster: Path) -> Account:
    """Whose the cluster is already; else the first there is of those that exist for such a purpose."""
    found: list[pwd.struct_passwd] = []
    with contextlib.suppress(FileNotFoundError, KeyError):
        found.append(pwd.getpwuid(cluster.stat().st_uid))
    for name in _ACCOUNTS:
        with contextlib.suppress(KeyError):
            found.append(pwd.getpwnam(name))
    for entry in found:
        if entry.pw_uid != 0:
            return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)
    raise UserError(
        f"PostgreSQL does not run as root, and there is no account {' or '.join(_ACCOUNTS)} to run it as",
        "run raddle as an ordinary user, or name a server by RADDLE_DATABASE_URL",
    )


def reachable_programs(programs: PgPrograms, place: Place) -> PgPrograms:
    """The programs where the account can run them: copied beside the cluster if it cannot enter their folder."""
    if place.account is None or _can_run(programs.folder, place.account):
        return programs
    mark = hashlib.sha256(os.fsencode(programs.folder)).hexdigest()[:8]
    copies = place.folder.parent / f"programs-{programs.version}-{mark}"
    folder = copies / WHEEL / "pginstall" / "bin"
    if not copies.is_dir():
        _copy_programs(programs.folder.parent, copies)
    if not _can_run(folder, place.account):
        raise StorageError(
            f"the account {place.account.name} cannot run {folder / 'postgres'}",
            "see that it may enter every folder of that path, and that the file system allows programs",
        )
    return PgPrograms(folder=folder, major=programs.major, version=programs.version)


def _can_run(folder: Path, account: Account) -> bool:
    try:
        said = run([str(folder / "initdb"), "--version"], env=environment(), account=account, timeout=30)
    except StorageError:
        return False
    return said.code == 0


def _copy_programs(installed: Path, copies: Path) -> None:
    """Copy an installation, with the wheel's own libraries that lie beside the package, as it lay."""
    temporary, held = new_temporary_folder(copies.parent)
    try:
        for name in _COPIED:
            if (installed / name).is_dir():
                shutil.copytree(installed / name, temporary / WHEEL / "pginstall" / name, symlinks=True)
        libraries = installed.parent.parent / f"{WHEEL}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, temporary / libraries.name)
        _open_all(temporary)
        temporary.rename(copies)
    except OSError as error:
        if not copies.is_dir():  # else another cluster's start was faster
            raise storage_error(error, copies, "copy PostgreSQL to") from error
    finally:
        os.close(held)
        sweep_temporaries(copies.parent, older_than_seconds=0)


def _open_all(folder: Path) -> None:
    """Let everybody read and run it, whatever umask it was installed under."""
    folder.chmod(0o755)
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(parent, name)
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(0o755 if mode & 0o100 else 0o644)
