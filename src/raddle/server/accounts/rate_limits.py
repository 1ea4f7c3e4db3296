"""How often something may be tried, counted in the database, so that a guesser gains nothing by asking each process.

A bucket that leaks: so many tries at once, and then one for each drop that leaves it. One row a bucket, one
statement a try. What is counted (a name, an address) is kept as a hash.
"""

from __future__ import annotations

import hashlib
import ipaddress
from typing import NamedTuple

from psycopg import Connection

from raddle.model.errors import TooManyRequests
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.accounts", "rate_limits.sql")


class Limit(NamedTuple):
    """`burst` tries at once, then one every `each` seconds."""

    what: str
    burst: int
    each: float


SIGN_IN_BY_ADDRESS = Limit("sign-ins", 20, 10)
SIGN_IN_BY_NAME = Limit("sign-ins", 10, 30)
USER_CODE_BY_ADDRESS = Limit("codes", 30, 10)
# An office behind one address sets up many devices in a morning.
DEVICE_BY_ADDRESS = Limit("devices", 200, 2)


def take(connection: Connection, limit: Limit, of: str) -> None:
    """Count a try by `of`; TooManyRequests, with the seconds to wait, where there were too many."""
    key = hashlib.sha256(repr((limit, of)).encode("utf-8", "surrogatepass")).digest()
    values = {"key": key, "each": limit.each, "slack": (limit.burst - 1) * limit.each}
    if connection.execute(SQL["take"], values).fetchone() is not None:
        return
    found = connection.execute(SQL["wait"], {"key": key}).fetchone()
    wait = limit.each if found is None else found[0] - (limit.burst - 1) * limit.each
    raise TooManyRequests(f"too many {limit.what} in a short time", max(wait, 1.0))


def network_of(address: str) -> str:
    """What one person has of addresses: of IPv6 the first half, of IPv4 the address itself."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((int(ip) >> 64 << 64, 64)).network_address)
    return str(ip)
