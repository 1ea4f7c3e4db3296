"""Brings a database to the shape that this raddle needs; forward only, under one lock, in two steps.

`pre` files fit the code before and after them, so that servers may be exchanged one by one; `post` files take
away what only the old code used, and run once no old server is left (`raddle serve migrate --finish`).
"""

from __future__ import annotations

import re
from importlib import resources
from typing import NamedTuple

from psycopg import Connection, Error

from raddle.model.errors import NewerFormat, StorageError

_FILE = re.compile(r"(\d{4})_(pre|post)_[a-z0-9_]+\.sql\Z")
_LOCK = 7_233_536_270_001
"""Of the advisory locks of a database: the one that migrations take."""


class Migration(NamedTuple):
    """One file: its number, its step, its name and its SQL."""

    number: int
    step: str
    name: str
    sql: bytes


def migrations() -> list[Migration]:
    """All of them, in order."""
    found = []
    for file in resources.files("raddle.server.tables.migrations").iterdir():
        match = _FILE.match(file.name)
        if match is not None:
            found.append(Migration(int(match[1]), match[2], file.name, file.read_bytes()))
    return sorted(found)


def applied(connection: Connection) -> set[str]:
    """The names of the files that this database has seen."""
    connection.execute(
        b"CREATE TABLE IF NOT EXISTS migrations"
        b" (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    return {name for (name,) in connection.execute(b"SELECT name FROM migrations")}


def migrate(connection: Connection, *, finish: bool = False) -> list[str]:
    """Apply what is missing (`post` files with `finish` alone, save in an empty database); the names of those.

    All or nothing: one transaction. NewerFormat where a newer raddle was here, StorageError where SQL fails.
    """
    known = migrations()
    try:
        with connection.transaction():
            connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            done = applied(connection)
            strangers = sorted(done - {migration.name for migration in known})
            if strangers:
                raise NewerFormat("the database", strangers[-1], known[-1].name)
            missing = [
                migration
                for migration in known
                if migration.name not in done and (migration.step == "pre" or finish or not done)
            ]
            for migration in missing:
                connection.execute(migration.sql)
                connection.execute(b"INSERT INTO migrations (name) VALUES (%s)", (migration.name,))
            return [migration.name for migration in missing]
    except Error as error:
        raise StorageError(
            f"the database could not be brought up to date: {error}", "nothing was changed in it"
        ) from error


def unmigrated(connection: Connection) -> list[str]:
    """The names of `pre` files that this database has not seen."""
    done = applied(connection)
    return [each.name for each in migrations() if each.step == "pre" and each.name not in done]
