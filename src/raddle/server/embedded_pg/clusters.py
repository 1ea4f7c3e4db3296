"""Makes a cluster, whole or not at all, and says which version one is of.

The one place that runs `initdb`: with other words than these, pg_trgm would lose every letter beyond ASCII.
"""

from __future__ import annotations

import os
from pathlib import Path

from raddle.adapters.files import new_temporary_folder, storage_error
from raddle.adapters.programs import Completed, run
from raddle.adapters.temporaries import sweep_temporaries
from raddle.model.errors import StorageError, UserError
from raddle.server.embedded_pg.pg_programs import PgPrograms, find_programs_of
from raddle.server.embedded_pg.places import Place, environment, give
from raddle.server.embedded_pg.settings import SUPERUSER

_BUILTIN_LOCALE_SINCE = 17
_LOCALES = ("C.UTF-8", "C.utf8", "en_US.UTF-8")
"""Of the system's: which of them there are differs, and each knows the letters of all languages."""
_INITDB_SECONDS = 300.0


def ensure_cluster(place: Place, programs: PgPrograms, *, is_durable: bool) -> None:
    """See that there is a cluster that `programs` can run; the caller holds the lock of starts.

    UserError where it is of another major version, StorageError where it is damaged or cannot be made.
    """
    sweep_temporaries(place.folder, older_than_seconds=0)
    major = cluster_major(place.cluster)
    if major is None:
        _make_cluster(place, programs, is_durable=is_durable)
    elif major != programs.major:
        raise _other_version(place, major, programs)


def cluster_major(cluster: Path) -> int | None:
    """The major version that made the cluster; None where there is no cluster."""
    try:
        text = (cluster / "PG_VERSION").read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        if not cluster.exists():
            return None
        text = ""
    except OSError as error:
        raise storage_error(error, cluster, "read") from error
    if not text.isdigit():
        raise StorageError(
            f"{cluster} is no PostgreSQL cluster, or a damaged one: PG_VERSION does not read",
            "bring it back from a backup; or move it away, and an empty one is made",
        )
    return int(text)


def _other_version(place: Place, major: int, programs: PgPrograms) -> UserError:
    fitting = find_programs_of(major)
    where = str(fitting.folder) if fitting else f"the folder of PostgreSQL {major}'s programs"
    return UserError(
        f"the database in {place.cluster} is of PostgreSQL {major}; the programs in {programs.folder} "
        f"are version {programs.version}, which cannot read it",
        f"set RADDLE_PG_BIN to {where}; or move it: with those programs pg_dump the database {SUPERUSER}, "
        "move the folder away, start raddle once without RADDLE_PG_BIN, and restore with psql",
    )


def _make_cluster(place: Place, programs: PgPrograms, *, is_durable: bool) -> None:
    # A kill half-way leaves a temporary folder, which the next start sweeps.
    temporary, held = new_temporary_folder(place.folder)
    try:
        give(temporary, place.account)
        _run_initdb(temporary, place, programs, is_durable=is_durable)
        temporary.rename(place.cluster)
        # What is on the disk of the folder itself, initdb has seen to.
        _sync_names(place.folder)
    except OSError as error:
        raise storage_error(error, place.cluster, "make") from error
    finally:
        os.close(held)


def _run_initdb(folder: Path, place: Place, programs: PgPrograms, *, is_durable: bool) -> None:
    first, *others = _locale_words(programs.major)
    haste = [] if is_durable else ["--no-sync"]
    said = _initdb(folder, [*first, *haste], place, programs)
    for words in others:
        if b"invalid locale name" in said.stderr:
            said = _initdb(folder, [*words, *haste], place, programs)
    if said.code == 0:
        return
    reason = "it took too long" if said.is_timed_out else said.stderr.decode(errors="replace").strip()
    raise StorageError(
        f"cannot make a database in {place.folder}: {reason}",
        "see what it says; or name a server of yours by RADDLE_DATABASE_URL",
    )


def _initdb(folder: Path, words: list[str], place: Place, programs: PgPrograms) -> Completed:
    argv = [
        str(programs.folder / "initdb"),
        f"--pgdata={folder}",
        f"--username={SUPERUSER}",
        "--encoding=UTF8",
        "--auth-local=peer",
        "--auth-host=reject",
        "--data-checksums",
        "--no-instructions",
        *words,
    ]
    return run(argv, env=environment(), account=place.account, timeout=_INITDB_SECONDS)


def _locale_words(major: int) -> list[list[str]]:
    """What to ask of initdb, in order: the same answers on every machine, and letters of every language."""
    if major >= _BUILTIN_LOCALE_SINCE:
        builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        return [[*builtin, f"--lc-ctype={name}"] for name in _LOCALES]
    return [["--locale-provider=libc", f"--locale={name}"] for name in _LOCALES]


def _sync_names(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
