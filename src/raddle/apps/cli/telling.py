"""The server told at once what a command changed in threads that it has; where it cannot be, one line says so."""

from __future__ import annotations

from collections.abc import Collection

from raddle.apps.cli import diagnostics
from raddle.wiring import Stores


def tell(stores: Stores, thread_ids: Collection[str], *, still: str = "") -> None:
    """Tell it, if this device is signed in and the server has one of these threads; else no network is asked.

    `still`: what is true as long as it does not know, where that is worth a warning also to who works offline.
    """
    from raddle.wiring.syncing import tell_server  # noqa: PLC0415  the help of other commands needs none of it

    error = tell_server(stores, thread_ids)
    if error is None or (stores.config.is_offline and not still):
        return
    told = f"the server was not told: {error.message}; the next sync tells it"
    diagnostics.warn(f"{still}: {told}" if still else told)
