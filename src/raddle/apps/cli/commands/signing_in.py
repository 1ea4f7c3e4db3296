"""`raddle login`, `logout`, `whoami`, `devices`: who this device is to the server, and which others are let in."""

from __future__ import annotations

import sys

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import Words, as_json, with_stores
from raddle.model.errors import InvalidInput
from raddle.wiring import Stores

_LONGEST_TOKEN = 1_000


@click.command(
    help="""Sign this device in to a sync server: prints a page to open, in any browser, and a code to type there, and
    waits until that is done.

    The token goes into the keyring of this system where there is one, else into a file that only you can read.""",
)
@click.option(
    "--server", metavar="URL", type=Words(), help="Which server; without it the one that is set, or the last."
)
@click.option(
    "--insecure", is_flag=True, help="Let the server be plain http, though it is not this machine: in a VPN."
)
@click.option("--token-stdin", is_flag=True, help="Read a token from stdin, and ask nobody.")
@with_stores
def login(stores: Stores, server: str | None, insecure: bool, token_stdin: bool) -> None:
    """Say who is signed in."""
    from raddle.wiring.remote import begin_sign_in, sign_in_with  # noqa: PLC0415  other commands need none of it

    if token_stdin:
        signed = sign_in_with(stores, _token_of_stdin(), server or "", insecure=insecure)
    else:
        with begin_sign_in(stores, server or "", insecure=insecure) as begun:
            asked = begun.authorization
            diagnostics.say(f"open {asked.verification_uri} and type the code {asked.user_code}")
            if asked.verification_uri_complete != asked.verification_uri:
                diagnostics.suggest(f"or open {asked.verification_uri_complete}")
            diagnostics.say("waiting …")
            signed = begun.finish()
    output.line(f"signed in to {signed.server} as {words.one_line(signed.me.name)}")
    if not signed.in_keyring:
        kept = words.short_path(str(stores.paths.credentials_file))
        diagnostics.suggest(f"no keyring here takes the token: it is in {kept}, which only you can read")
    if stores.config.token is not None:
        diagnostics.note("RADDLE_TOKEN is set, and is used instead of the token that was kept now")
    diagnostics.suggest("`raddle sync` brings your threads there, and those of your other devices here")


def _token_of_stdin() -> str:
    token = output.text_of_stdin().strip()
    if (
        not token
        or len(token) > _LONGEST_TOKEN
        or not token.isascii()
        or not token.isprintable()
        or " " in token
    ):
        raise InvalidInput("what stdin gave is no token", "give the token alone, on one line")
    return token


@click.command(
    help="Sign this device out: its token means nobody any more, and is forgotten. Your threads stay."
)
@with_stores
def logout(stores: Stores) -> None:
    """Say where it was signed in."""
    from raddle.wiring.remote import sign_out  # noqa: PLC0415  other commands need none of it

    output.line(f"signed out of {sign_out(stores)}")


@click.command(help="Say who this device is signed in as, and to which server.")
@as_json
@with_stores
def whoami(stores: Stores, json: bool) -> None:
    """Ask the server."""
    from raddle.wiring.remote import who_am_i  # noqa: PLC0415  other commands need none of it

    server, me = who_am_i(stores)
    value = {
        "server": server,
        "name": me.name,
        "user_id": me.user_id,
        "device_id": me.device_id,
        "device_name": me.device_name,
        "scopes": list(me.scopes),
        "is_admin": me.is_admin,
    }
    called = f", on the device {words.one_line(me.device_name)}" if me.device_name else ""
    output.answer(json, value, f"{words.one_line(me.name)} on {server}{called}")


@click.group(
    invoke_without_command=True,
    help="""List the devices that you let in, newest first, and what each may do.

    `raddle devices revoke ID` lets one in no more: at once, on the whole server.""",
)
@as_json
@click.pass_context
def devices(ctx: click.Context, json: bool) -> None:
    """Without a command of its own: the same as `raddle devices list`."""
    if ctx.invoked_subcommand is None:
        _list_devices(json=json)


@devices.command("list", help="List the devices that you let in, newest first.")
@as_json
def list_(json: bool) -> None:
    """Print them."""
    _list_devices(json=json)


@with_stores
def _list_devices(stores: Stores, *, json: bool) -> None:
    from raddle.wiring.remote import list_devices  # noqa: PLC0415  other commands need none of it

    found = list_devices(stores)
    if json:
        output.json(
            [
                {
                    "id": device.id,
                    "name": device.name,
                    "scopes": list(device.scopes),
                    "created_at": device.created_at,
                    "last_used_at": device.last_used_at or "",
                    "is_current": device.is_current,
                }
                for device in found
            ]
        )
        return
    now = stores.clock()
    rows = [
        (
            words.one_line(device.id),
            words.one_line(device.name) + (" (this one)" if device.is_current else ""),
            words.one_line(" ".join(device.scopes)),
            f"used {words.ago(device.last_used_at, now)}" if device.last_used_at else "never used",
        )
        for device in found
    ]
    for text in words.table(
        rows, (40, 60, 40, 40), styles=("dim", "bold", None, "dim"), width=output.columns(), shrink=(1, 0)
    ):
        output.styled(text)


@devices.command(
    help="""Let the device ID in no more; a start of its id will do, or its name.

    Of the very device that you are at it asks first; -y answers."""
)
@click.argument("device", metavar="ID", type=Words())
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
@with_stores
def revoke(stores: Stores, device: str, *, yes: bool, json: bool) -> None:
    """Say which it was."""
    from raddle.wiring.remote import revoke_device  # noqa: PLC0415  other commands need none of it

    found = revoke_device(
        stores, device, is_meant=lambda one: yes or not one.is_current or _is_meant(one.name)
    )
    if found is None:
        diagnostics.say("nothing was done")
        return
    value = {"id": found.id, "name": found.name, "is_current": found.is_current}
    output.answer(json, value, f"{words.one_line(found.name)} is let in no more")
    if found.is_current:
        diagnostics.note("that is this device: it is signed out")


def _is_meant(name: str) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput(
            f"{words.one_line(name)} is this very device, and nobody is here to say that it is meant",
            "`raddle logout` signs it out; or say -y",
        )
    return click.confirm(f"{words.one_line(name)} is this very device. Sign it out?", err=True)
