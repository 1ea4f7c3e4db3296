"""What kind of file system a path lies on: some keep less of a promise than others.

Owns the list of those that several machines share. There, memory that is mapped is not shared, and nobody is told
of what another machine wrote.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_NETWORK = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "lustre",
    "fuse.sshfs",
    "ncpfs",
    "beegfs",
}


def is_on_network(path: Path) -> bool:
    """Does `path` lie on a file system shared between machines? False where the system does not say (macOS)."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return False
    place = os.path.realpath(path)
    best, kind = "", ""
    for line in mounts:
        front, _, back = line.partition(" - ")
        mounted = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), front.split(" ")[4])
        if (place + "/").startswith(mounted.rstrip("/") + "/") and len(mounted) >= len(best):
            best, kind = mounted, back.split(" ")[0]
    return kind in _NETWORK
