"""The one door to git (2.30 or newer).

A second one would forget what makes git answer the same everywhere: no GIT_DIR inherited from a hook, no
prompt, no lock taken for a mere look, no program run because a repository's own config names it.
Why the command line and not a library: docs/adr/0020-git-through-its-plumbing.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from raddle.adapters import programs
from raddle.adapters.programs import Completed
from raddle.model.errors import RaddleError
from raddle.model.threads.git_facts import GitSnapshot, slug_of_remotes

_KEPT_PREFIXES = ("GIT_SSH", "GIT_SSL_", "GIT_HTTP_")
_KEPT = frozenset(
    {
        "GIT_ASKPASS",
        "GIT_CEILING_DIRECTORIES",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_PROXY_COMMAND",
    }
)
"""Where the person's own settings and credentials come from. All else that is inherited says which
repository, index or author some other git process was busy with."""

_SET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",  # 2.44: a look at a partial clone asks no network
    "GIT_PAGER": "cat",
}
# A repository's own config may name a program as its file-system monitor, and a status would run it. Empty,
# not `false`: before 2.36 the value is a command's name whatever it says.
_ALWAYS = ("-c", "core.fsmonitor=")

_HEADS_BYTES = 64 * 1024
"""Of a status the head and the first entry are enough."""
_LONGEST_PATH = 8 * 1024
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_REMOTE_KEYS = r"^(remote\..*\.url|url\..*\.insteadof)$"


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment git runs in: the person's settings and credentials, no other repository's."""
    clean = programs.clean_environment()
    kept = {name: value for name, value in clean.items() if not name.startswith("GIT_") or _is_kept(name)}
    return {**kept, **_SET, **(extra or {})}


def _is_kept(name: str) -> bool:
    return name in _KEPT or name.startswith(_KEPT_PREFIXES)


def run_git(
    arguments: Sequence[str],
    *,
    cwd: Path,
    input: bytes = b"",  # noqa: A002  # the word that subprocess uses for it
    timeout: float = 60.0,
    env: Mapping[str, str] | None = None,
    limit_bytes: int = 64 * 1024 * 1024,
) -> Completed:
    """Run `git arguments…` in the folder `cwd`; `env` is added to `git_environment()`.

    Its exit code is the caller's to read; `timeout` is in seconds. NotFound where there is no git or no such
    folder.
    """
    return programs.run(
        ["git", *_ALWAYS, *arguments],
        cwd=cwd,
        input=input,
        timeout=timeout,
        env=git_environment(env),
        limit_bytes=limit_bytes,
    )


def git_version() -> tuple[int, ...] | None:
    """`(2, 39, 5)`; None where there is no git."""
    try:
        answer = run_git(["--version"], cwd=Path("/"), timeout=10)
    except RaddleError:
        return None
    found = re.search(rb"\d+(?:\.\d+)+", answer.stdout)
    return tuple(int(part) for part in found.group().split(b".")) if found else None


def read_git(workspace: Path, *, timeout: float = 10.0) -> GitSnapshot | None:
    """What git says of the repository that `workspace` lies in; None where there is none, or no git, or git
    does not trust its owner.

    Two processes, none outside a repository. `is_dirty` is what the person's own `git status` calls not
    clean, untracked files included; None for a bare repository, and where the answer takes longer than
    `timeout` seconds or the index is broken. A look changes nothing on the disk. Never an error.
    """
    root = _root_above(workspace)
    if root is None:
        return None
    try:
        facts = _status(workspace, timeout=timeout) or _heads(workspace)
        if facts is None:
            return None
        branch, head, is_dirty = facts
        remote = _remote(workspace)
    except RaddleError:  # no git, or the folder has gone meanwhile: nothing to say is an answer here
        return None
    is_bare = is_dirty is None and not os.path.lexists(root / ".git")
    return GitSnapshot(
        branch=branch, head=head, is_dirty=is_dirty, remote=remote, root=None if is_bare else str(root)
    )


def read_head(workspace: Path) -> str | None:
    """The commit that the repository around `workspace` is at; None where there is none, never an error."""
    if _root_above(workspace) is None:
        return None
    try:
        answer = run_git(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], cwd=workspace, timeout=5)
    except RaddleError:  # no git, or the folder has gone meanwhile
        return None
    return _sha(answer.stdout.strip())


def read_remote(workspace: Path) -> str | None:
    """The slug of the remote of the repository around `workspace`; None where there is none, never an error."""
    if _root_above(workspace) is None:
        return None
    try:
        return _remote(workspace)
    except RaddleError:  # no git, or the folder has gone meanwhile
        return None


def settings_revision(workspace: Path) -> str:
    """A text that is another whenever the settings of the repository around `workspace` were written, or another
    repository is around it; empty where there is none. No process, never an error.

    The person's own settings (`~/.gitconfig`) and included files are not looked at.
    """
    root = _root_above(workspace)
    if root is None:
        return ""
    folder = _folder_of(root)
    places = (_shared_folder(folder) / "config", folder / "config.worktree")
    return " ".join([str(root), *(_revision(place) for place in places)])


def find_root(workspace: Path) -> Path | None:
    """The folder of the repository or worktree around `workspace`; None where there is none. No process, no error."""
    return _root_above(workspace)


def folder_of_head(workspace: Path) -> Path | None:
    """The folder in which HEAD of the repository or worktree around `workspace` lies; None where there is none."""
    root = _root_above(workspace)
    return None if root is None else _folder_of(root)


def place_of_relative_remotes(root: Path) -> Path:
    """The folder that a remote's relative path starts at: the repository's own, for its worktrees too."""
    shared = Path(os.path.realpath(_shared_folder(_folder_of(root))))
    return shared.parent if shared.name == ".git" else shared


def _folder_of(root: Path) -> Path:
    pointed = _pointed_to(root / ".git", "gitdir:")
    return pointed or (root / ".git" if _is_repository(root / ".git") else root)


def _shared_folder(folder: Path) -> Path:
    """Where the settings lie that a worktree shares with its repository."""
    return _pointed_to(folder / "commondir", "") or folder


def _pointed_to(file: Path, before: str) -> Path | None:
    """The path that a file of git's holds behind `before`, from the file's folder on; None where it is no such file."""
    try:
        text = file.read_bytes()[:_LONGEST_PATH]
    except OSError:
        return None
    path = os.fsdecode(text).rstrip("\r\n")
    return file.parent / path.removeprefix(before).lstrip(" ") if path.startswith(before) else None


def _revision(file: Path) -> str:
    try:
        status = file.stat()
    except (OSError, ValueError):
        return "-"
    return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"


def _root_above(workspace: Path) -> Path | None:
    """The folder at or above `workspace` that has a `.git` or is a bare repository; spares a process."""
    try:
        place = workspace.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):  # gone, a NUL in it, or links in a circle
        return None
    if not place.is_dir():
        return None
    for folder in (place, *place.parents):
        # A file `.git` leads to the repository of a worktree or a submodule.
        if (folder / ".git").is_file() or _is_repository(folder / ".git") or _is_repository(folder):
            return folder
    return None


def _is_repository(folder: Path) -> bool:
    return os.path.lexists(folder / "HEAD") and (folder / "objects").is_dir()


def _status(workspace: Path, *, timeout: float) -> tuple[str | None, str | None, bool | None] | None:
    """Branch, head and dirtiness in one process; None where git does not answer or does not in time."""
    answer = run_git(
        ["status", "--porcelain=v2", "--branch", "--no-ahead-behind", "--no-renames", "-z"],
        cwd=workspace,
        timeout=timeout,
        limit_bytes=_HEADS_BYTES,
    )
    if answer.is_timed_out or (answer.code != 0 and not answer.is_cut):
        return None
    lines = answer.stdout.split(b"\0")
    heads = dict(line[2:].split(b" ", 1) for line in lines if line.startswith(b"# ") and b" " in line[2:])
    branch = heads.get(b"branch.head")
    return (
        None if branch in {None, b"(detached)"} else _text(branch or b""),
        _sha(heads.get(b"branch.oid", b"")),
        any(line and not line.startswith(b"# ") for line in lines),
    )


def _heads(workspace: Path) -> tuple[str | None, str | None, bool | None] | None:
    """Branch and head alone, which a bare repository, a broken index and a slow disk still tell."""
    branch = run_git(["symbolic-ref", "--quiet", "--short", "HEAD"], cwd=workspace, timeout=5)
    if branch.code not in {0, 1}:  # 1: detached; anything else: git will not look at this repository
        return None
    head = run_git(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], cwd=workspace, timeout=5)
    return _text(branch.stdout.strip()) or None, _sha(head.stdout.strip()), None


def _remote(workspace: Path) -> str | None:
    answer = run_git(["config", "-z", "--get-regexp", _REMOTE_KEYS], cwd=workspace, timeout=5)
    pairs = [entry.partition(b"\n") for entry in answer.stdout.split(b"\0") if entry]
    return slug_of_remotes([(_text(key), _text(value)) for key, _, value in pairs])


def commits_between(workspace: Path, old: str | None, new: str, limit: int = 200) -> tuple[str, ...]:
    """The commits that `new` reaches and `old` does not, oldest first, the newest `limit` of them.

    Just `new` where `old` is None or gone (amended and pruned, another clone); nothing where they are the
    same, or where one is no commit's full sha. Never an error.
    """
    if _SHA.match(new) is None or new == old:
        return ()
    if old is None or _SHA.match(old) is None:
        return (new,)
    try:
        answer = run_git(
            ["rev-list", "--topo-order", "--reverse", f"--max-count={limit}", new, f"^{old}"],
            cwd=workspace,
            timeout=10,
        )
    except RaddleError:  # no git, or no such folder any more: what is known is known
        return (new,)
    if answer.code != 0:
        return (new,)
    return tuple(_text(line) for line in answer.stdout.split())


def commits_ahead(workspace: Path, old: str, new: str) -> int | None:
    """How many commits `new` reaches and `old` does not; None where one of them is not known here. Never an error."""
    if _SHA.match(new) is None or _SHA.match(old) is None:
        return None
    try:
        answer = run_git(["rev-list", "--count", new, f"^{old}"], cwd=workspace, timeout=10)
    except RaddleError:
        return None
    text = answer.stdout.strip()
    return int(text) if answer.code == 0 and text.isdigit() else None


def _sha(answer: bytes) -> str | None:
    text = _text(answer)
    return text if _SHA.match(text) else None


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
