"""The code repository that a store's branch lives in, asked and changed without a trace in the person's work.

Nothing here touches what is checked out there: not HEAD, not the index, not the stash, no file. A second place that
asked git for a worktree would forget one of the ways in which git then refuses, or obeys a hook.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from raddle.adapters.files import NewFile, find_bytes, make_folder, storage_error
from raddle.adapters.git import run_git
from raddle.adapters.memory_repo.store_git import (
    ENVIRONMENT,
    GIT_SECONDS,
    NETWORK_SECONDS,
    OPTIONS,
    complaint,
    network_environment,
)
from raddle.adapters.programs import Completed
from raddle.model.errors import InvalidInput, NetworkError, NotFound, StorageError

_REMOTES = r"^(remote\..*\.(url|promisor)|branch\..*\.remote|core\.sshcommand)$"
_MOST_ROUNDS = 16
"""Of fetching what a partial clone left out: a tree that comes may name others that did not."""
_USAGE = 129
"""What git ends with where it does not know an option."""
_SHA = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?)\t")
_EXCLUDED_FOR = "# raddle: the project's memory has a branch of its own"


class Checkout(Struct, frozen=True, kw_only=True):
    """A working tree of a repository. `branch`: without `refs/heads/`; None where it is on none. `head`: its commit."""

    path: Path
    branch: str | None = None
    head: str | None = None
    is_locked: bool = False

    @property
    def is_there(self) -> bool:
        """Is it still where git thinks it is?"""
        return (self.path / ".git").exists() or (self.path / "HEAD").exists()


class HostRepository:
    """The repository around a folder. `root`: the top of its working tree there, or the folder of a bare one;
    `shared`: git's own folder, which all its working trees share."""

    def __init__(self, root: Path, shared: Path, *, is_bare: bool) -> None:
        self.root = root
        self.shared = shared
        self.is_bare = is_bare
        self._settings: dict[str, str] | None = None

    def git(
        self,
        arguments: Sequence[str],
        *,
        input: bytes = b"",  # noqa: A002  # the word that subprocess uses for it
        env: Mapping[str, str] | None = None,
        timeout: float = GIT_SECONDS,
    ) -> Completed:
        """Run git in it."""
        return git_at(self.root, arguments, input=input, env=env, timeout=timeout)

    def answer(
        self,
        arguments: Sequence[str],
        *,
        input: bytes = b"",  # noqa: A002
        env: Mapping[str, str] | None = None,
    ) -> str:
        """What git printed, without the newline at its end; StorageError where it did not do it."""
        return answer_at(self.root, arguments, input=input, env=env)

    def commit_at(self, ref: str) -> str | None:
        """The commit that `ref` names; None where it names none."""
        answer = self.git(["rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}"])
        return answer.stdout.decode().strip() or None if answer.code == 0 else None

    def checkouts(self) -> list[Checkout]:
        """Every working tree that git knows of, those included that are gone."""
        listed = self.git(["worktree", "list", "--porcelain", "-z"])
        end = "\0"
        if listed.code == _USAGE:  # before 2.36, which lists no path with a line end in it rightly
            listed, end = self.git(["worktree", "list", "--porcelain"]), "\n"
        if listed.code != 0:
            raise _failed(self.root, "worktree", listed)
        blocks = os.fsdecode(listed.stdout).split(end * 2)
        return [_checkout(block.split(end)) for block in blocks if block.startswith("worktree ")]

    def holder_of(self, branch: str) -> Checkout | None:
        """The working tree that has `branch` checked out, and is there; None where none has."""
        return next((one for one in self.checkouts() if one.branch == branch and one.is_there), None)

    def remote_for(self, branch: str) -> str | None:
        """The remote of `branch`, else `origin`, else the only one there is; as a sync chooses it."""
        settings = self.settings()
        names = self.remotes()
        chosen = settings.get(f"branch.{branch}.remote", "")
        if chosen in names:
            return chosen
        return "origin" if "origin" in names else names[0] if len(names) == 1 else None

    def remotes(self) -> list[str]:
        """The names of its remotes."""
        named = (name for name in self.settings() if name.startswith("remote.") and name.endswith(".url"))
        return sorted(name[len("remote.") : -len(".url")] for name in named)

    def settings(self) -> dict[str, str]:
        """What git's settings say of remotes."""
        if self._settings is None:
            pairs = (
                entry.partition(b"\n")
                for entry in self.git(["config", "-z", "--get-regexp", _REMOTES]).stdout.split(b"\0")
            )
            self._settings = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs if name}
        return self._settings

    def asked(self, remote: str, branch: str) -> str | None:
        """The commit that the remote's branch is at, which is here then, and noted; None where it has no such branch.

        NetworkError where it cannot be asked.
        """
        ref, tracking = f"refs/heads/{branch}", tracking_ref(remote, branch)
        env = network_environment(self.settings().get("core.sshcommand"))
        listed = self.git(["ls-remote", "--quiet", "--", remote, ref], env=env, timeout=NETWORK_SECONDS)
        if listed.code != 0:
            raise NetworkError(
                f"{remote} cannot be asked whether it has the branch {branch}: {complaint(listed)}",
                "try again when it can be reached: a second store of that name would be another one. If that remote "
                f"is gone for good: git remote remove {remote}",
            )
        if commit_of(listed.stdout, ref) is None:
            return None
        # Spelled out, and whole: a clone may fetch one branch only, be shallow, or leave out contents.
        whole = ["--no-tags", "--no-filter", "--no-write-fetch-head"]
        wanted = ["fetch", "--quiet", *whole, "--", remote, f"+{ref}:{tracking}"]
        fetched = self.git(wanted, env=env, timeout=NETWORK_SECONDS)
        if fetched.code != 0:
            raise NetworkError(
                f"the branch {branch} cannot be fetched from {remote}: {complaint(fetched)}", "try again"
            )
        return self.commit_at(tracking)

    def make_whole(self, commit_id: str) -> None:
        """Fetch what a partial clone left out of a commit and those below it; NetworkError where it is not to be had.

        git would fetch it one by one when it is read, and not at all where a look may ask no network.
        """
        promisors = [
            name for name in self.remotes() if self.settings().get(f"remote.{name}.promisor") == "true"
        ]
        for _ in range(_MOST_ROUNDS if promisors else 0):
            listed = self.git(["rev-list", "--objects", "--missing=print", commit_id]).stdout.splitlines()
            missing = b"".join(line[1:] + b"\n" for line in listed if line.startswith(b"?"))
            if not missing:
                return
            wanted = [
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--filter=blob:none",
                "--stdin",
            ]
            fetched = self.git(
                ["-c", "fetch.negotiationAlgorithm=noop", *wanted, "--", promisors[0]],
                input=missing,
                env=network_environment(self.settings().get("core.sshcommand")),
                timeout=NETWORK_SECONDS,
            )
            if fetched.code != 0:
                raise NetworkError(
                    f"what this partial clone left out cannot be fetched: {complaint(fetched)}", "try again"
                )

    def hold(self, branch: str, commit_id: str) -> bool:
        """Have a new branch at a commit; False where it was made meanwhile."""
        nothing = "0" * len(commit_id)
        made = self.git(["update-ref", "-m", "raddle: store", f"refs/heads/{branch}", commit_id, nothing])
        if made.code != 0 and self.commit_at(f"refs/heads/{branch}") is None:
            raise StorageError(
                f"git cannot make the branch {branch}: {complaint(made)}", "see what git says about it"
            )
        return made.code == 0

    def exclude(self, folder: Path) -> Path | None:
        """Have this repository take no notice of `folder`, where it lies in its working tree: in git's own list, not in
        the person's `.gitignore`. The list; None where it lies elsewhere, or was noted already."""
        if self.is_bare or not folder.is_relative_to(self.root) or folder == self.root:
            return None
        line = _pattern(str(folder.relative_to(self.root)))
        file = self.shared / "info" / "exclude"
        old = find_bytes(file) or b""
        if line in old.split(b"\n"):
            return None
        make_folder(file.parent)
        head = old if not old or old.endswith(b"\n") else old + b"\n"
        write_readable(file, head + _EXCLUDED_FOR.encode() + b"\n" + line + b"\n")
        return file

    def notices(self, folder: Path) -> bool:
        """Would `git add` take `folder` in all the same: a `.gitignore` of the person says so?"""
        if self.is_bare or not folder.is_relative_to(self.root):
            return False
        return self.git(["check-ignore", "--quiet", "--", f"{folder.relative_to(self.root)}/"]).code == 1


def open_host(place: Path) -> HostRepository:
    """The repository around `place`; NotFound where there is none, StorageError where git will not look at it."""
    asked = ["rev-parse", "--git-common-dir", "--is-bare-repository", "--is-inside-work-tree"]
    answer = git_at(place, asked)
    if answer.code != 0:
        why = complaint(answer)
        if "not a git repository" in why:
            raise NotFound("git repository at", str(place), "`git init` makes one")
        raise StorageError(f"git will not look at {place}: {why}", "do what git says, then try again")
    # Two words end it; the path before them may hold line ends.
    shared, is_bare, is_inside = os.fsdecode(answer.stdout).removesuffix("\n").rsplit("\n", 2)
    common = Path(os.path.realpath(place / shared))
    if is_inside == "true":
        top = answer_at(place, ["rev-parse", "--show-toplevel"])
        return HostRepository(Path(os.path.realpath(top)), common, is_bare=False)
    if is_bare != "true":
        raise InvalidInput(f"{place} is git's own folder", "name the folder of the code")
    return HostRepository(Path(os.path.realpath(place)), common, is_bare=True)


def host_around(place: Path) -> HostRepository | None:
    """The same; None where there is none, or git will not look at it."""
    try:
        return open_host(place)
    except (NotFound, InvalidInput, StorageError):
        return None


def git_at(
    place: Path,
    arguments: Sequence[str],
    *,
    input: bytes = b"",  # noqa: A002
    env: Mapping[str, str] | None = None,
    timeout: float = GIT_SECONDS,
) -> Completed:
    """Run git in the repository around `place`, as a store runs it."""
    return run_git(
        [*OPTIONS, *arguments], cwd=place, input=input, timeout=timeout, env={**ENVIRONMENT, **(env or {})}
    )


def answer_at(
    place: Path,
    arguments: Sequence[str],
    *,
    input: bytes = b"",  # noqa: A002
    env: Mapping[str, str] | None = None,
) -> str:
    """What git printed, without the newline at its end; StorageError where it did not do it."""
    answer = git_at(place, arguments, input=input, env=env)
    if answer.code != 0:
        raise _failed(place, arguments[0], answer)
    return os.fsdecode(answer.stdout).removesuffix("\n")


def _failed(place: Path, verb: str, answer: Completed) -> StorageError:
    return StorageError(f"git {verb} failed in {place}: {complaint(answer)}", "see what git says about it")


def tracking_ref(remote: str, branch: str) -> str:
    """Where it is noted what a remote's branch was at."""
    return f"refs/remotes/{remote}/{branch}"


def commit_of(listing: bytes, ref: str) -> str | None:
    """The commit of `ref` in what `git ls-remote` printed."""
    for line in listing.splitlines():
        found = _SHA.match(line)
        if found is not None and line[found.end() :] == os.fsencode(ref):
            return found[1].decode()
    return None


def _checkout(lines: Sequence[str]) -> Checkout:
    facts = {name: value for name, _, value in (line.partition(" ") for line in lines)}
    ref = facts.get("branch", "")
    return Checkout(
        path=Path(facts["worktree"]),
        branch=ref.removeprefix("refs/heads/") or None,
        head=facts.get("HEAD"),
        is_locked="locked" in facts,
    )


def _pattern(path: str) -> bytes:
    """A line of an ignore file for just this folder."""
    escaped = re.sub(rb"([\\*?\[\]])", rb"\\\1", os.fsencode(path))
    return b"/" + escaped.replace(b"\n", b"?") + b"/"  # nothing escapes a line end; `?` is any one character


def write_readable(file: Path, data: bytes) -> None:
    """Put `data` at `file`, whole or not at all, for whoever may read what it lies in: it is the repository's file, and
    no private one of ours."""
    try:
        place = file if file.exists() else file.parent
        mode = (place.stat().st_mode & 0o666) | 0o600
    except OSError as error:
        raise storage_error(error, file, "write") from error
    with NewFile(file.parent) as new:
        new.write(data)
        try:
            os.chmod(new.path, mode)  # noqa: PTH101  as the house does it
        except OSError as error:
            raise storage_error(error, file, "write") from error
        new.publish(file)


def is_vacant(folder: Path) -> bool:
    """Is there nothing at `folder`, or an empty folder?"""
    try:
        return not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir()))
    except OSError as error:
        raise storage_error(error, folder, "read") from error
