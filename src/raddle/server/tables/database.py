"""The way to PostgreSQL: a bounded pool, and what its failures are called here.

A connection that a restart of the database cut is thrown away before anybody is given it; who waits too long for
one is told to come back, so that a slow database makes a short queue of refusals and not a long one of hangs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import Connection
from psycopg_pool import ConnectionPool, PoolTimeout, TooManyRequests

from raddle.model.errors import StorageError
from raddle.model.secret import Secret

_WAIT_SECONDS = 10.0
_STATEMENT_SECONDS = 60
_MOST_WAITING = 200
_OPTIONS = (
    f"-c statement_timeout={_STATEMENT_SECONDS}s -c lock_timeout=20s"
    " -c idle_in_transaction_session_timeout=60s -c timezone=UTC -c search_path=public"
)


class DatabaseAway(StorageError):
    """The database does not answer (now): nothing was done, and trying again is right."""

    code = "database_away"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the database does not answer: {reason}", "try again in a moment")


class Database:
    """Connections to one database, each in autocommit; a transaction is opened where it is needed."""

    def __init__(self, url: Secret, *, size: int = 12) -> None:
        self._url = url
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            url.reveal(),
            min_size=1,
            max_size=size,
            max_waiting=_MOST_WAITING,
            timeout=_WAIT_SECONDS,
            max_idle=300,
            reconnect_timeout=30,
            open=False,
            check=ConnectionPool.check_connection,
            kwargs={"autocommit": True, "options": _OPTIONS, "connect_timeout": 10},
            name="raddle",
        )

    def open(self) -> None:
        """Begin to connect; comes back at once, whether or not the database answers."""
        self._pool.open(wait=False)

    def close(self) -> None:
        """Let go of all connections."""
        self._pool.close(timeout=2)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection for the length of the block; DatabaseAway where none is to be had, or it breaks."""
        try:
            with self._pool.connection() as connection:
                yield connection
        except (PoolTimeout, TooManyRequests) as error:
            raise DatabaseAway("no connection is free") from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise DatabaseAway(reason_of(error)) from error

    def connect_alone(self) -> Connection:
        """A connection of its own, for who waits on it for notes: the pool's are too few for that."""
        return connect(self._url)


def connect(url: Secret) -> Connection:
    """One connection; DatabaseAway where it cannot be had."""
    try:
        return psycopg.connect(url.reveal(), autocommit=True, options=_OPTIONS, connect_timeout=10)
    except psycopg.Error as error:
        raise DatabaseAway(reason_of(error)) from error


def reason_of(error: psycopg.Error) -> str:
    """Why, in one line, without a value that somebody sent."""
    primary = error.diag.message_primary
    if error.sqlstate is not None:
        return f"{primary or type(error).__name__} ({error.sqlstate})"
    return type(error).__name__ if "password" in str(error) else " ".join(str(error).split())[:200]
