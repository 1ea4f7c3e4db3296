"""Takes away what ran out: sessions, codes, links, counts. For the jobs; nothing is let in by a row that is left."""

from __future__ import annotations

from psycopg import Connection

from raddle.server.tables.queries import queries

SQL = queries("raddle.server.accounts", "pruning.sql")


def prune(connection: Connection) -> int:
    """Delete what ran out; how many rows. A code is kept for an hour more, so that its device is told why."""
    return sum(connection.execute(statement).rowcount for statement in SQL.values())
