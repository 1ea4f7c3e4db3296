"""Which databases raddle works on, and what it says of the others."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from raddle.model.errors import InvalidInput, StorageError, UserError
from raddle.server.embedded_pg.health import check_database
from raddle.server.embedded_pg.running import Running
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)


def make(postgres: Running, name: str, words: str) -> str:
    """A database made with these words, which the run's end takes away."""
    conninfo = make_conninfo(postgres.url, dbname="postgres")
    with contextlib.closing(psycopg.connect(conninfo, autocommit=True)) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 {words}".encode())
    return make_conninfo(postgres.url, dbname=name)


def extensions(conninfo: str) -> list[str]:
    with contextlib.closing(psycopg.connect(conninfo)) as connection:
        return [name for (name,) in connection.execute("SELECT extname FROM pg_extension")]


def test_our_own_database_passes(database: str) -> None:
    check_database(database)


def test_a_database_without_the_extension_passes_and_stays_without(postgres: Running) -> None:
    conninfo = make(postgres, "without_extension", "")
    check_database(conninfo)
    assert extensions(conninfo) == ["plpgsql"]


def drop_trgm_into_another_schema(conninfo: str) -> None:
    with contextlib.closing(psycopg.connect(conninfo, autocommit=True)) as connection:
        connection.execute("CREATE SCHEMA elsewhere; ALTER EXTENSION pg_trgm SET SCHEMA elsewhere")


def test_the_extension_may_live_in_any_schema(new_database: NewDatabase) -> None:
    check_database(new_database(drop_trgm_into_another_schema))


def test_a_locale_without_letters_is_refused_with_what_to_do(postgres: Running) -> None:
    conninfo = make(postgres, "plain_c", "LOCALE_PROVIDER libc LOCALE 'C' ENCODING 'UTF8'")
    with pytest.raises(UserError, match="no letters beyond ASCII") as refused:
        check_database(conninfo)
    assert "C.UTF-8" in refused.value.hint


def test_another_encoding_is_refused(postgres: Running) -> None:
    conninfo = make(postgres, "plain_bytes", "LOCALE_PROVIDER libc LOCALE 'C' ENCODING 'SQL_ASCII'")
    with pytest.raises(UserError, match="encoding is SQL_ASCII"):
        check_database(conninfo)


def test_a_user_who_may_not_add_the_extension_is_told_so(postgres: Running) -> None:
    conninfo = make(postgres, "not_ours", "")
    with contextlib.closing(psycopg.connect(conninfo, autocommit=True)) as connection:
        connection.execute("DROP ROLE IF EXISTS guest; CREATE ROLE guest")
    guest = make_conninfo(conninfo, options="-c role=guest")
    with pytest.raises(UserError, match="we may not add it") as refused:
        check_database(guest)
    assert "CREATE EXTENSION pg_trgm" in refused.value.hint


def test_nobody_at_the_address_is_an_error_of_storage(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not answer"):
        check_database(f"host={tmp_path} dbname=raddle password=hunter2")


@pytest.mark.parametrize("conninfo", ["postgresql//ada:hunter2@db/raddle", "pasword=hunter2", "hunter2"])
def test_an_address_that_does_not_read_is_refused_without_its_password(conninfo: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_database(conninfo)
    assert "hunter2" not in f"{refused.value} {refused.value.hint} {refused.value.__cause__}"
