"""The devices of who asks: listed, renamed, let in no more. Nobody else's are there."""

from __future__ import annotations

from datetime import datetime

from litestar import Response, delete, get, patch
from litestar.params import FromPath, RawBody

from raddle.model.clock import format_time
from raddle.model.protocol.signing_in import DeviceShown
from raddle.server.accounts import devices
from raddle.server.http.bodies import MOST_FORM_BYTES, read_fields, text_field
from raddle.server.http.described import FORM, JSON, NO_DEVICE, Says, operation
from raddle.server.http.given import AnyRequest, GivenCaller, GivenDatabase


@get(
    "/api/devices",
    sync_to_thread=True,
    operation_class=operation({200: Says("They.", "DeviceList")}),
)
def list_devices(caller: GivenCaller, database: GivenDatabase) -> Response[list[DeviceShown]]:
    """The devices of who asks that are let in, newest first."""
    with database.connection() as connection:
        found = devices.list_devices(connection, caller.user)
    shown = [
        DeviceShown(
            id=str(device.id),
            name=device.name,
            scopes=device.scopes,
            created_at=_time(device.created_at),
            last_used_at=None if device.last_used_at is None else _time(device.last_used_at),
            is_current=device.id == caller.device,
        )
        for device in found
    ]
    return Response(shown, headers={"Cache-Control": "no-store"})


@patch(
    "/api/devices/{device_id:str}",
    status_code=204,
    sync_to_thread=True,
    request_max_body_size=MOST_FORM_BYTES,
    operation_class=operation(
        {204: Says("It is called so."), 404: NO_DEVICE}, takes="DeviceName", kinds=(JSON, FORM)
    ),
)
def rename_device(
    request: AnyRequest,
    device_id: FromPath[str],
    body: RawBody,
    caller: GivenCaller,
    database: GivenDatabase,
) -> None:
    """Call a device something else: `{"name": …}`."""
    device = devices.parse_device_id(device_id)
    name = text_field(read_fields(request, body), "name")
    with database.connection() as connection:
        devices.rename(connection, caller.user, device, name)


@delete(
    "/api/devices/{device_id:str}",
    status_code=204,
    sync_to_thread=True,
    operation_class=operation({204: Says("It is let in no more."), 404: NO_DEVICE}),
)
def revoke_device(device_id: FromPath[str], caller: GivenCaller, database: GivenDatabase) -> None:
    """Let a device in no more, from now on, on every process of this server."""
    device = devices.parse_device_id(device_id)
    with database.connection() as connection:
        devices.revoke(connection, caller.user, device)


def _time(moment: datetime) -> str:
    return format_time(round(moment.timestamp() * 1_000_000))


HANDLERS = [list_devices, rename_device, revoke_device]
