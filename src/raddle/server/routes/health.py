"""Is the server well: `/health` for whoever balances, `/metrics` for whoever watches. No name, no word of anybody."""

from __future__ import annotations

from litestar import Response, get

from raddle import __version__
from raddle.server.http.described import TEXT, Says, operation
from raddle.server.http.given import GivenCounts, GivenHub
from raddle.server.routes.json_bodies import json_response
from raddle.server.tables.database import DatabaseAway


@get(
    "/health",
    sync_to_thread=True,
    operation_class=operation(
        {200: Says("All is well.", "Health"), 503: Says("There is no database.", "Health")}, is_open=True
    ),
)
def health(hub: GivenHub) -> Response[bytes]:
    """The version, and whether the database answers: 200 while the server runs, 503 without its database."""
    try:
        with hub.database.connection() as connection:
            connection.execute(b"SELECT 1")
    except DatabaseAway:
        return json_response({"status": "no database", "version": __version__, "database": "away"}, 503)
    return json_response({"status": "ok", "version": __version__, "database": "ok"})


@get(
    "/metrics",
    sync_to_thread=False,
    operation_class=operation({200: Says("The counts.", "Metrics", TEXT)}, is_open=True),
)
def metrics(counts: GivenCounts) -> Response[bytes]:
    """Counts of this process, as Prometheus reads them."""
    return Response(counts.text().encode(), media_type="text/plain; version=0.0.4; charset=utf-8")


HANDLERS = [health, metrics]
