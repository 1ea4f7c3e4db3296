"""Which addresses may be spoken to in the clear, and what a person calls them.

One answer for a server of threads and for one of models: what is safe for a token is safe for a key, and no more is.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(name: str) -> bool:
    """Is it this very machine?"""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def is_safe(server: str) -> bool:
    """Can nobody on the way read what is said there?"""
    parts = urlsplit(server)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


def host_of(server: str) -> str:
    """What a person calls it: `raddle.example.org`, with its port where it has one."""
    return urlsplit(server).netloc
