"""The commits of a store, newest first: who made them, when, and which files they changed."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from raddle.adapters.memory_repo.repository import NODE_TRAILER
from raddle.adapters.memory_repo.store_git import git_failed, run_store_git

_FORMAT = f"%x01%H%x00%ct%x00%an%x00%(trailers:key={NODE_TRAILER},valueonly,separator=%x2C)%x00%s%x00"
_PLAIN = ("--no-show-signature", "--no-decorate", "--no-renames", "--no-ext-diff", "--no-textconv")
_ENTRY = re.compile(
    rb"\x01([0-9a-f]{40,64})\x00(\d+)\x00([^\x00]*)\x00([^\x00]*)\x00([^\x00]*)\x00(.*?)(?=\x01[0-9a-f]{40,64}\x00|\Z)",
    re.DOTALL,
)


class LoggedCommit(Struct, frozen=True, kw_only=True):
    """`at`: in microseconds since 1970. `node_id`: empty where another program made it. `changed`: path -> `A` (new),
    `M` (changed) or `D` (gone)."""

    id: str
    at: int
    author: str
    node_id: str
    subject: str
    changed: dict[str, str]


def read_log(root: Path, limit: int) -> list[LoggedCommit]:
    """The newest `limit` commits of the store at `root`; none where nothing was committed yet."""
    asked = ["log", f"--max-count={limit}", f"--format={_FORMAT}", *_PLAIN]
    answer = run_store_git(
        root, [*asked, "--first-parent", "-m", "--root", "--name-status", "-z", "HEAD", "--"]
    )
    if answer.code != 0:
        if run_store_git(root, ["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).code != 0:
            return []
        raise git_failed(root, "log", answer)
    return [_logged(found) for found in _ENTRY.finditer(answer.stdout)]


def _logged(found: re.Match[bytes]) -> LoggedCommit:
    commit_id, seconds, author, node, subject, rest = found.groups()
    fields = [field for field in rest.strip(b"\n\0").split(b"\0") if field]
    changed = {
        path.decode(errors="surrogateescape"): status.strip().decode(errors="replace")[:1]
        for status, path in zip(fields[::2], fields[1::2], strict=False)
    }
    return LoggedCommit(
        id=commit_id.decode(),
        at=int(seconds) * 1_000_000,
        author=author.decode(errors="replace"),
        node_id=node.decode(errors="replace").strip(),
        subject=subject.decode(errors="replace"),
        changed=changed,
    )
