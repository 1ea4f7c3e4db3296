"""Stops a cluster that nobody uses any more: a program of its own, for the case that raddle is killed.

It waits for the lease without waking up once, and tells the postmaster to stop when it has it. It imports nothing
of raddle, so that it costs little while it waits. Arguments: the lease's file, the postmaster's id, the cluster.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from pathlib import Path

STOP_SECONDS = 60.0
_PAUSE_SECONDS = 0.02


def exists(pid: int) -> bool:
    """Is there a process of that id, whoever it is?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_postmaster(pid: int, cluster: Path) -> bool:
    """Is `pid` a live process that works in `cluster`? Without /proc: one that the cluster names as such."""
    if not exists(pid):
        return False
    try:
        if Path("/proc/self/cwd").exists():
            return Path(f"/proc/{pid}/cwd").samefile(cluster)
        return (cluster / "postmaster.pid").read_text(errors="replace").split("\n", 1)[0].strip() == str(pid)
    except OSError:  # a zombie has no folder, and a stranger's is not shown
        return False


def stop_postmaster(pid: int, cluster: Path) -> bool:
    """Tell it to end its sessions and stop, then to drop everything; True when it is gone."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        if is_postmaster(pid, cluster):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if not is_postmaster(pid, cluster):
                return True
            time.sleep(_PAUSE_SECONDS)
    return False


def main(lease: str, pid: str, cluster: str) -> None:
    """Wait until nobody holds `lease`, then stop the postmaster."""
    fd = os.open(lease, os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(fd, fcntl.LOCK_EX)
    stop_postmaster(int(pid), Path(cluster))


if __name__ == "__main__":
    main(*sys.argv[1:])
