"""git as a store asks it: no hook runs, nothing is signed, nobody's ignore file is obeyed, nothing prompts.

The one list of what keeps a person's own settings, and a hostile store, out of it. A second one would forget a
line, and a store would be blocked by a hook of the code it lies beside, or run one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from raddle.adapters.git import git_environment, run_git
from raddle.adapters.programs import Completed
from raddle.model.errors import BrokenFormat, NetworkError, StorageError

GIT_SECONDS = 120.0
NETWORK_SECONDS = 600.0
ASKING_SECONDS = 60.0
"""For a question that is answered in a line: a remote that takes it and says nothing is away."""
_MOST_BYTES = 1 << 30

_NOTHING = os.devnull
_SETTINGS = {
    "core.hooksPath": _NOTHING,
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "push.gpgSign": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.symlinks": "false",
    "core.excludesFile": _NOTHING,
    "core.attributesFile": _NOTHING,
    "core.fsync": "committed,reference",
    "core.fsyncObjectFiles": "true",  # before 2.36, which knows the line above not yet
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "push.followTags": "false",
    "fetch.prune": "false",
    "fetch.writeCommitGraph": "false",
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "30",
    "advice.detachedHead": "false",
    "init.templateDir": "",
}
OPTIONS = tuple(part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}"))
"""What stands before every git command of a store."""
ENVIRONMENT = {
    # No window asks for a password: GIT_TERMINAL_PROMPT alone leaves these.
    "SSH_ASKPASS_REQUIRE": "never",
    "SSH_ASKPASS": "",
    "GCM_INTERACTIVE": "never",
    # What a person had git show in the place of an object is not what other clones have.
    "GIT_NO_REPLACE_OBJECTS": "1",
    # For each object that git packs, glibc takes a quarter of a megabyte from the system and gives it back: of a commit
    # of a thousand entries three quarters went there. Other libraries do not know the name.
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
}

_NO_ROOM = ("no space left", "out of diskspace", "disk quota exceeded")
_SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15"
_PASSWORD = re.compile(r"(://[^/@\s:]*):[^/@\s]*@")
_QUERY = re.compile(r"(://[^\s?'\"]*)\?[^\s'\"]*")
_LOCK = re.compile(r"'([^'\n]+\.lock)'")
_FORMAT = re.compile(rb"^\s*objectformat\s*=\s*(\w+)", re.IGNORECASE | re.MULTILINE)


def run_store_git(
    root: Path,
    arguments: Sequence[str],
    *,
    input: bytes = b"",  # noqa: A002  # the word that subprocess uses for it
    timeout: float = GIT_SECONDS,
    env: Mapping[str, str] | None = None,
) -> Completed:
    """Run git on the store whose folder is `root`, and on no repository that lies around it."""
    place = {"GIT_DIR": str(root / ".git"), "GIT_WORK_TREE": str(root)}
    return run_git(
        [*OPTIONS, *arguments],
        cwd=root,
        input=input,
        timeout=timeout,
        env={**ENVIRONMENT, **place, **(env or {})},
        limit_bytes=_MOST_BYTES,
    )


def answer_of(root: Path, arguments: Sequence[str], *, input: bytes = b"") -> bytes:  # noqa: A002
    """What git printed; StorageError where it did not do it."""
    answer = run_store_git(root, arguments, input=input)
    if answer.code != 0:
        raise git_failed(root, arguments[0], answer)
    return answer.stdout


def without_secrets(text: str) -> str:
    """`text` without the password of a URL in it, and without its query, in which tokens travel."""
    return _QUERY.sub(r"\1?…", _PASSWORD.sub(r"\1:…@", text))


def git_failed(root: Path, verb: str, answer: Completed) -> StorageError | BrokenFormat:
    """What to raise where git would not do `verb`."""
    why = complaint(answer)
    if "not a git repository" in why:
        return BrokenFormat(f"{root} is no git repository: {why}", "mend it with `raddle store adopt`")
    told = answer.stderr.decode(errors="replace").lower()
    if any(words in told for words in _NO_ROOM):
        return StorageError(
            f"git {verb} failed in {root}: the disk is full", "free some space, then try again"
        )
    lock = _LOCK.search(answer.stderr.decode(errors="replace"))
    if lock is not None:
        return StorageError(
            f"another git is at work on the store in {root}, or was killed: {lock[1]} is there",
            "wait a minute, then try again; where no git is at work, remove that file",
        )
    return StorageError(f"git {verb} failed in {root}: {why}", "see `raddle store status`")


def unreachable(answer: Completed) -> NetworkError:
    """What to raise where a remote could not be asked."""
    return NetworkError(
        f"the store's remote cannot be reached: {complaint(answer)}",
        "what is written stays here; the next sync tries again",
    )


def complaint(answer: Completed) -> str:
    """The line of git's messages that says most, without a password."""
    if answer.is_timed_out:
        return "it did not answer in time"
    lines = [line.strip() for line in answer.stderr.decode(errors="replace").splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("warning: core.fsyncObjectFiles")]
    telling = next(
        (line for line in lines if line.startswith(("fatal:", "error:", "ERROR:", "remote: error"))), ""
    )
    spoken = telling or (lines[-1] if lines else f"exit code {answer.code}")
    return without_secrets(spoken.partition(" ")[2] if telling else spoken)[:300]


def object_format(git_folder: Path) -> str:
    """How the repository names its contents: `sha1` or `sha256`. `git_folder`: its own, or a worktree's."""
    shared = git_folder
    try:
        common = git_folder / "commondir"
        if common.is_file():
            shared = git_folder / os.fsdecode(common.read_bytes()).strip()
        found = _FORMAT.search((shared / "config").read_bytes())
    except OSError as error:
        raise BrokenFormat(
            f"{shared} is no git repository: it has no settings", "mend it with `raddle store adopt`"
        ) from error
    return found[1].decode().lower() if found else "sha1"


def network_environment(ssh_command: str | None) -> dict[str, str]:
    """What keeps ssh from asking: an option, for OpenSSH; any other program is the person's choice, and left alone."""
    command = git_environment().get("GIT_SSH_COMMAND") or ssh_command
    if command is None and git_environment().get("GIT_SSH"):
        return {}
    is_open_ssh = command is None or re.search(r"(?:^|/)ssh(?:\s|\Z)", command) is not None
    return {"GIT_SSH_COMMAND": f"{command or 'ssh'} {_SSH_OPTIONS}"} if is_open_ssh else {}
