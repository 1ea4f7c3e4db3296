"""Is a database one that raddle can work on? Asked before anything is written to it.

A second answer would let in a database that loses every Japanese word on its way into the search.
"""

from __future__ import annotations

import contextlib

import psycopg
from psycopg import errors, sql

from raddle.model.errors import InvalidInput, StorageError, UserError
from raddle.server.embedded_pg.pg_programs import OLDEST_MAJOR

_LOCALE_HINT = (
    "make it anew: CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8' "
    "(from 17 on better LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LC_CTYPE 'C.UTF-8')"
)
_TRGM_HINT = (
    "install PostgreSQL's contrib package, and as a superuser of that database: CREATE EXTENSION pg_trgm"
)


def check_database(conninfo: str, *, timeout_seconds: int = 10) -> None:
    """Refuse a database that raddle cannot work on, and leave every other as it was found.

    UserError with the reason: older than 15, not in UTF-8, without pg_trgm, or of a locale in which pg_trgm
    sees no letters beyond ASCII. InvalidInput where `conninfo` does not read, StorageError where nobody answers.
    """
    try:
        connection = psycopg.connect(conninfo, connect_timeout=timeout_seconds)
    except psycopg.ProgrammingError:
        # Its words may quote the conninfo, and so a password.
        raise InvalidInput(
            "RADDLE_DATABASE_URL does not read as the address of a database",
            "write it as postgresql://user@host/database",
        ) from None
    except psycopg.OperationalError as error:
        raise StorageError(
            f"the database does not answer: {_first_line(error)}",
            "see that PostgreSQL runs, and that RADDLE_DATABASE_URL is right",
        ) from error
    with contextlib.closing(connection):
        try:
            check_connection(connection)  # closing undoes what it did
        except psycopg.Error as error:
            raise StorageError(
                f"the database refuses a first look: {_first_line(error)}",
                "see that it can be written to, and try again",
            ) from error


def check_connection(connection: psycopg.Connection) -> None:
    """The same of an open connection, in the caller's transaction: committed, it leaves the extension there."""
    version = connection.info.server_version
    if version < OLDEST_MAJOR * 10_000:
        raise UserError(
            f"the database is PostgreSQL {version // 10_000}; raddle needs {OLDEST_MAJOR} or newer",
            "upgrade it, or name another by RADDLE_DATABASE_URL",
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise UserError(f"the database's encoding is {encoding}, not UTF8", _LOCALE_HINT)
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except (errors.FeatureNotSupported, errors.UndefinedFile) as error:
        raise UserError("the database's PostgreSQL has no extension pg_trgm", _TRGM_HINT) from error
    except errors.InsufficientPrivilege as error:
        raise UserError("the database has no extension pg_trgm, and we may not add it", _TRGM_HINT) from error
    schema = connection.execute(
        "SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'pg_trgm'"
    ).fetchone()
    assert schema is not None  # it was made above
    shown = connection.execute(
        sql.SQL("SELECT {}.show_trgm('日本')").format(sql.Identifier(schema[0]))
    ).fetchone()
    if shown is None or not shown[0]:
        raise UserError(
            "the database's locale knows no letters beyond ASCII: words in it are lost", _LOCALE_HINT
        )


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0]
