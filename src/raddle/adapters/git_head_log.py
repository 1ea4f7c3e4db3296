"""Where HEAD has been between two looks, from git's own log of it: for commits on branches that were left again.

Owns which entries of the log are commits that were made and which only moved HEAD to what was there. The branches
themselves would not tell: another worktree may have moved them. The log is each worktree's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from raddle.adapters.git import folder_of_head, run_git
from raddle.model.errors import RaddleError

_MOST_BYTES = 256 * 1024
"""Of the end of a log; what a tool does moves HEAD some hundred times at most."""
_MOST_TIPS = 50
_LINE = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*> ([0-9]{1,12}) [+-][0-9]{4}\t(.*)\Z")
_MADE = re.compile(
    rb"(?:commit|cherry-pick|revert|am)\b"
    rb"|[^:]*\((?:pick|reword|edit|squash|fixup|continue|merge)\)"  # of a rebase, whatever began it
    rb"|.*: Merge made by"
)
_NOWHERE = re.compile(r"0+\Z")


class Move(Struct, frozen=True):
    """HEAD went from `old` to `new` (full shas; zeros: from nowhere) at `second` of the Unix time.

    `is_made`: because a commit was made; `is_checkout`: because another branch was checked out.
    """

    old: str
    new: str
    second: int
    is_made: bool
    is_checkout: bool


def log_end(workspace: Path) -> str:
    """Where the log of HEAD ends now, for `moves_since`; empty outside a repository. No process, never an error."""
    log = _log_of(workspace)
    return "" if log is None else _end_of(log)


def moves_since(workspace: Path, end: str) -> list[Move]:
    """How HEAD moved since `log_end` said `end`, oldest first.

    Nothing where another repository is there by now, or the log was rewritten (`git gc`) or is not kept.
    """
    log = _log_of(workspace)
    if log is None:
        return []
    inode, size, place = _parts(end)
    inode_now, size_now, place_now = _parts(_end_of(log))
    is_same = place == place_now and size <= size_now and inode in (inode_now, 0)
    return _moves_in(_read(log, size, size_now)) if is_same and size < size_now else []


def moves_from(workspace: Path, second: int) -> list[Move]:
    """How HEAD moved from `second` of the Unix time on, oldest first, by the clocks of whoever moved it."""
    log = _log_of(workspace)
    if log is None:
        return []
    moves = _moves_in(_read(log, 0, _parts(_end_of(log))[1]))
    return [move for move in moves if move.second >= second]


def commits_made(
    workspace: Path, moves: Sequence[Move], *, known: Collection[str] = (), limit: int = 200
) -> tuple[str, ...]:
    """The commits that these moves made and did not throw away again, oldest first, the newest `limit` of them.

    git is asked only where one of the places that HEAD was left at is not `known`. What was there before (a pull,
    what another branch holds) is none of them. Never an error.
    """
    made = {move.new for move in moves if move.is_made}
    left = [move.old for move in moves if move.is_checkout] + [move.new for move in moves[-1:]]
    tips = [sha for sha in dict.fromkeys(left) if sha in made and sha not in known][-_MOST_TIPS:]
    if not tips:
        return ()
    visited = dict.fromkeys(sha for move in moves for sha in (move.old, move.new))
    before = [f"^{sha}" for sha in visited if sha not in made and _NOWHERE.match(sha) is None]
    try:
        answer = run_git(
            ["rev-list", "--topo-order", "--reverse", f"--max-count={limit}", "--stdin"],
            cwd=workspace,
            input="\n".join([*tips, *before, ""]).encode(),
            timeout=10,
        )
    except RaddleError:  # no git, or no such folder any more: what is known is known
        return tuple(tips)
    return tuple(answer.stdout.decode().split()) if answer.code == 0 else tuple(tips)


def _log_of(workspace: Path) -> Path | None:
    folder = folder_of_head(workspace)
    return None if folder is None else folder / "logs" / "HEAD"


def _end_of(log: Path) -> str:
    """Inode, size and place; 0 and 0 where there is no log yet."""
    try:
        status = log.stat()
    except (OSError, ValueError):
        return f"0 0 {log}"
    return f"{status.st_ino} {status.st_size} {log}"


def _parts(end: str) -> tuple[int, int, str]:
    inode, _, rest = end.partition(" ")
    size, _, place = rest.partition(" ")
    return int(inode or 0), int(size or 0), place


def _read(log: Path, start: int, end: int) -> bytes:
    """The whole lines between two places of the log, but no more than its last bytes."""
    at = max(start, end - _MOST_BYTES)
    try:
        with log.open("rb") as file:
            file.seek(at)
            data = file.read(end - at)
    except OSError:
        return b""
    return data if at == start else data.partition(b"\n")[2]


def _moves_in(data: bytes) -> list[Move]:
    return list(_moves(data.split(b"\n")))


def _moves(lines: Iterable[bytes]) -> Iterable[Move]:
    for line in lines:
        found = _LINE.match(line)
        if found is not None:
            old, new, second, what = found.groups()
            yield Move(
                old=old.decode(),
                new=new.decode(),
                second=int(second),
                is_made=_MADE.match(what) is not None,
                is_checkout=what.startswith(b"checkout:"),
            )
