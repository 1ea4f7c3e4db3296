"""Tests of what may not be read, for people who run them as root, whom no mode of a file binds."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

from tests.file_events import start_child

_CAPABILITIES_VERSION_3 = 0x20080522


def bound_by_modes(action: Callable[[], object]) -> None:
    """Run `action` in a child that may read and write only what the modes of its own files allow."""

    def child() -> None:
        if os.getuid() == 0:
            _drop_capabilities()
        action()

    process = start_child(child)
    process.join()
    assert process.exitcode == 0


def _drop_capabilities() -> None:
    """Linux: what makes root read everything are capabilities of its process."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None, use_errno=True).capset(header, none) == 0, os.strerror(ctypes.get_errno())
