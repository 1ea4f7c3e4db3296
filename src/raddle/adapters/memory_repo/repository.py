"""What git holds of a store: its branch, its commits, its remote; by plumbing only.

Nothing here touches a file of the folder, and no command leaves a state behind that a later one could be stuck
in: there is no rebase, no merge, no checkout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from raddle.actions.memory.ports import Asked, Commit, CommittedMeanwhile, Writer
from raddle.adapters.files import find_bytes, make_folder, write_atomic
from raddle.adapters.git import place_of_relative_remotes
from raddle.adapters.meanwhile import Meanwhile
from raddle.adapters.memory_repo.git_index import GitIndex, changes_between
from raddle.adapters.memory_repo.git_streams import contents_in, import_stream, tree_in
from raddle.adapters.memory_repo.store_git import (
    ASKING_SECONDS,
    NETWORK_SECONDS,
    answer_of,
    git_failed,
    network_environment,
    run_store_git,
    unreachable,
    without_secrets,
)
from raddle.adapters.memory_repo.upkeep import maintain, packing_of_a_commit
from raddle.adapters.programs import Completed
from raddle.model.errors import BrokenFormat, Forbidden, StorageError

NODE_TRAILER = "Raddle-Node"
UNKNOWN_NODE = "unknown"
RESCUE = "refs/raddle/rescue"

_INCOMING = "refs/raddle/incoming"
_FORMAT = f"%H%x00%P%x00%ct%x00%(trailers:key={NODE_TRAILER},valueonly,separator=%x2C)"
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z", re.ASCII)
_SETTINGS = r"^(remote\..*\.(url|pushurl)|branch\..*\.remote|user\.(name|email)|core\.sshcommand)$"
_TREES_KEPT, _COMMITS_KEPT = 4, 16


class StoreRepository:
    """A `StoreHistory` and `StoreRemote` over the repository of the store at `root`."""

    def __init__(self, root: Path, own_folder: Path) -> None:
        self._root = root
        self._noted_branch = own_folder / "branch"
        self._agreed = own_folder / "agreed"
        self._index = GitIndex(root, own_folder / "index")
        self._branch = ""
        self._settings: dict[str, str] = {}
        self._trees: dict[str, dict[str, str]] = {}
        self._commits: dict[str, Commit] = {}
        """Those that were made or read here: what a commit says never changes."""

    def branch(self) -> str:
        """The store's branch, without `refs/heads/`. BrokenFormat where it is on none (a rebase was left half done)."""
        if not self._branch:
            answer = run_store_git(self._root, ["symbolic-ref", "--quiet", "HEAD"])
            name = answer.stdout.decode(errors="surrogateescape").strip()
            if answer.code == 1:
                raise BrokenFormat(
                    f"{self._root} is on no branch: a rebase or a checkout was left half done",
                    "mend it with `raddle store adopt`; nothing is lost by that",
                )
            if answer.code != 0 or not name.startswith("refs/heads/"):
                raise git_failed(self._root, "symbolic-ref", answer)
            self._branch = self._expected(name.removeprefix("refs/heads/"))
        return self._branch

    def _expected(self, branch: str) -> str:
        """`branch`, where it is the one that the store was on before, or that one is gone (it was renamed).

        Somebody who looks at another branch in the store's folder must not make it the memory of everybody.
        """
        noted = noted_branch(self._noted_branch.parent)
        if noted == branch:
            return branch
        if noted and self._at(f"refs/heads/{noted}") is not None:
            raise BrokenFormat(
                f"{self._root} is on the branch {branch}, and the memory on {noted}",
                f"`raddle store adopt {self._root}` brings it back, and so does: git -C {self._root} switch {noted}",
            )
        make_folder(self._noted_branch.parent)
        write_atomic(self._noted_branch, branch.encode(errors="surrogateescape") + b"\n")
        return branch

    def head(self) -> Commit | None:
        """The newest commit of the store's branch."""
        return self._commit(f"refs/heads/{self.branch()}")

    def begin_head(self) -> Callable[[], Commit | None]:
        """The same, asked meanwhile."""
        self.branch()  # which notes it on the disk: that is nobody's work but ours
        return Meanwhile(self.head).result

    def tree(self, commit_id: str) -> dict[str, str]:
        """Path -> id, for every entry of a commit."""
        known = self._trees.get(commit_id)
        if known is None:
            known = tree_in(answer_of(self._root, ["ls-tree", "-r", "-z", "--full-tree", commit_id]))
            self.learn_tree(commit_id, known)
        return dict(known)

    def learn_tree(self, commit_id: str, tree: Mapping[str, str]) -> None:
        """Take it that a commit has this tree."""
        while len(self._trees) >= _TREES_KEPT:
            del self._trees[next(iter(self._trees))]
        self._trees[commit_id] = dict(tree)

    def ids_at_head(self, paths: Iterable[str]) -> tuple[str | None, dict[str, str]]:
        """The newest commit's id, and path -> id for those of `paths` that it has."""
        ref, wanted = f"refs/heads/{self.branch()}", list(paths)
        names = "\n".join([ref, *(f"{ref}:{path}" for path in wanted), ""])
        lines = answer_of(
            self._root, ["cat-file", "--batch-check"], input=names.encode(errors="surrogateescape")
        )
        told = [line.split(b" ") for line in lines.splitlines()]
        ids = [one[0].decode() if one[-1].isdigit() else None for one in told]
        return ids[0], {path: found for path, found in zip(wanted, ids[1:], strict=True) if found is not None}

    def contents(self, ids: Iterable[str]) -> dict[str, bytes]:
        """Id -> bytes."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        answer = answer_of(
            self._root, ["cat-file", "--batch"], input="".join(f"{one}\n" for one in wanted).encode()
        )
        return contents_in(answer)

    def commit(
        self,
        changes: Mapping[str, str | bytes | None],
        *,
        parent: str | None,
        message: str,
        writer: Writer,
        moves: bool,
    ) -> Commit:
        """A commit on `parent` with these changes; `moves`: the branch, which is at `parent`, goes to it."""
        ref = f"refs/heads/{self.branch()}" if moves else _INCOMING
        at = max(writer.now() // 1_000_000, 0)  # git knows no time before 1970, whatever the clock says
        stream = import_stream(
            ref,
            changes,
            parent=parent,
            who=f"{self._identity(writer)} {at} +0000",
            message=f"{message}\n\n{NODE_TRAILER}: {writer.node_id}\n",
        )
        force = [] if moves else ["--force"]
        # What is new is packed quickly; git's own maintenance packs it well.
        settings = ["-c", "pack.compression=1", *packing_of_a_commit(self._root)]
        options = ["--quiet", "--done", "--depth=0", "--date-format=raw", *force]
        follow = self._index.following(parent, changes) if moves else None
        answer = run_store_git(self._root, [*settings, "fast-import", *options], input=stream)
        if answer.code != 0:
            if moves and self._at(ref) != parent:
                raise CommittedMeanwhile
            raise git_failed(self._root, "fast-import", answer)
        commit_id = answer.stdout.decode().strip()
        if follow is not None:
            follow(commit_id)
        return self._noted(
            Commit(id=commit_id, at=at * 1_000_000, node_id=writer.node_id, parent=parent or "")
        )

    def move(self, to: str, *, expects: str | None) -> None:
        """Have the branch at the commit `to`, and the index read from it."""
        ref = f"refs/heads/{self.branch()}"
        old = expects or "0" * len(to)
        words = f"start\nupdate {ref} {to} {old}\ndelete {_INCOMING}\nprepare\ncommit\n"
        answer = run_store_git(
            self._root,
            ["update-ref", "-m", "raddle: sync", "--stdin"],
            input=words.encode(errors="surrogateescape"),
        )
        if answer.code != 0:
            if self._at(ref) != expects:
                raise CommittedMeanwhile
            raise git_failed(self._root, "update-ref", answer)
        before, after = self._trees.get(expects or ""), self._trees.get(to)
        is_known = before is not None and after is not None
        self._index.follow(expects, to, changes_between(before or {}, after or {}) if is_known else None)

    def base_of(self, one: str, other: str) -> str | None:
        """The newest commit that both rest on."""
        answer = run_store_git(self._root, ["merge-base", one, other])
        if answer.code not in {0, 1}:
            raise git_failed(self._root, "merge-base", answer)
        return answer.stdout.decode().split("\n")[0].strip() or None

    def url(self) -> str | None:
        """Where what is pushed goes, without a password or a token."""
        url = self._push_url()
        return None if url is None else without_secrets(url)

    def is_agreed(self) -> bool:
        """Did a person say that this store goes to this remote, or did it come from there?"""
        noted = find_bytes(self._agreed)
        if noted is None:
            return self.known() is not None
        return (self._push_url() or "").encode(errors="surrogateescape") in noted.split(b"\n")

    def agree(self) -> None:
        """Note that it may go there."""
        url = (self._push_url() or "").encode(errors="surrogateescape")
        noted = [line for line in (find_bytes(self._agreed) or b"").split(b"\n") if line]
        if url and url not in noted:
            make_folder(self._agreed.parent)
            write_atomic(self._agreed, b"\n".join([*noted, url]) + b"\n")

    def known(self) -> str | None:
        """The commit that the remote's branch was at when it was last asked."""
        return self._at(self._tracking())

    def begin_asking(self) -> Callable[[], Asked]:
        """Ask the remote; one connection where it has nothing new, two where it has."""
        remote, ref, tracking = self._address(), f"refs/heads/{self.branch()}", self._tracking()
        asking = Meanwhile(
            lambda: (
                self._at(tracking),
                self._over_network(["ls-remote", "--quiet", remote, ref], ASKING_SECONDS),
            )
        )

        def asked() -> Asked:
            known, answer = asking.result()
            if answer.code != 0:
                raise unreachable(answer)
            lines = [line.split(b"\t") for line in answer.stdout.splitlines()]
            found = next((name.decode() for name, of in lines if of == ref.encode(errors="surrogateescape")), "")
            return Asked(known=known, theirs=self._brought(found, known) if found else None)

        return asked

    def _brought(self, commit_id: str, known: str | None) -> Commit | None:
        """The commit that the remote's branch is at, once it is here."""
        remote, tracking = self._address(), self._tracking()
        if known != commit_id:
            wanted = f"+refs/heads/{self.branch()}:{tracking}"
            answer = self._over_network(
                ["fetch", "--quiet", "--no-tags", "--no-filter", "--no-write-fetch-head", remote, wanted]
            )
            if answer.code != 0:
                raise unreachable(answer)
        return self._commits.get(commit_id) or self._commit(tracking)

    def push(self, commit_id: str) -> bool:
        """Have the remote's branch at a commit; False where it moved meanwhile."""
        remote, ref = self._address(), f"refs/heads/{self.branch()}"
        # To send less, git looks for each new file through all of its folder; on this machine nothing is won by it.
        whole = ["--no-thin"] if self._is_on_this_machine() else []
        answer = self._over_network(
            ["push", "--quiet", "--porcelain", "--no-verify", *whole, remote, f"{commit_id}:{ref}"]
        )
        if answer.code == 0:
            answer_of(self._root, ["update-ref", self._tracking(), commit_id])
            return True
        told = answer.stdout.decode(errors="replace")
        if "[rejected]" in told or ("[remote rejected]" in told and _moved_meanwhile(told)):
            return False
        if "[remote rejected]" in told:
            reason = told.partition("[remote rejected]")[2].splitlines()[0].strip(" ()")
            raise Forbidden(
                f"the store's remote does not take a push: {reason[:200]}",
                "ask who runs it; what is written stays here",
            )
        raise unreachable(answer)

    def keep_for_rescue(self, commit_id: str) -> str:
        """Keep a commit under a name of its own."""
        ref = f"{RESCUE}/{commit_id[:16]}"
        answer_of(self._root, ["update-ref", ref, commit_id])
        return ref

    def maintain(self) -> None:
        """Have git pack what has gathered, where it finds it worth it. Not where the store is a branch of the code's
        repository, which the person's own git looks after, nor where they switched it off."""
        maintain(self._root)

    def forget_settings(self) -> None:
        """Read git's settings anew when they are next asked for: somebody may have set a remote meanwhile."""
        self._settings = {}
        self._branch = ""

    def _commit(self, ref: str) -> Commit | None:
        answer = run_store_git(
            self._root, ["log", "-1", "--no-show-signature", f"--format={_FORMAT}", ref, "--"]
        )
        if answer.code != 0:
            if self._at(ref) is None:
                return None
            raise git_failed(self._root, "log", answer)
        commit_id, parents, seconds, node = answer.stdout.decode(errors="replace").strip("\n").split("\0")
        return self._noted(
            Commit(
                id=commit_id,
                at=int(seconds) * 1_000_000 if seconds.isdigit() else 0,  # git prints no date that is none
                node_id=node if _NODE.match(node) else UNKNOWN_NODE,
                parent=parents.partition(" ")[0],
            )
        )

    def _noted(self, commit: Commit) -> Commit:
        while len(self._commits) >= _COMMITS_KEPT:
            del self._commits[next(iter(self._commits))]
        self._commits[commit.id] = commit
        return commit

    def _at(self, ref: str) -> str | None:
        answer = run_store_git(self._root, ["rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}"])
        return answer.stdout.decode().strip() or None if answer.code == 0 else None

    def _git_settings(self) -> dict[str, str]:
        if not self._settings:
            answer = run_store_git(self._root, ["config", "-z", "--get-regexp", _SETTINGS])
            pairs = [entry.partition(b"\n") for entry in answer.stdout.split(b"\0") if entry]
            self._settings = {"": ""} | {
                name.decode(errors="surrogateescape"): value.decode(errors="surrogateescape")
                for name, _, value in pairs
            }
        return self._settings

    def _address(self) -> str:
        """What git is told to ask: the remote's name; where that is at a relative path, the whole one. git takes it
        from the folder of the worktree that it stands in, and another worktree's is another place."""
        remote, url = self._remote_or_none(), self._url()
        if remote is None or url is None:
            raise StorageError("the store has no remote", "give it one: git remote add origin URL")
        if not _is_path(url) or url.startswith(("/", "~")):
            return remote
        return str(place_of_relative_remotes(self._root) / url)

    def _is_on_this_machine(self) -> bool:
        url = self._push_url() or ""
        return url.startswith("file://") or _is_path(url)

    def _remote_or_none(self) -> str | None:
        """The branch's remote, else `origin`, else the only one there is."""
        settings = self._git_settings()
        names = [
            name[len("remote.") : -len(".url")]
            for name in settings
            if name.startswith("remote.") and name.endswith(".url")
        ]
        chosen = settings.get(f"branch.{self.branch()}.remote", "")
        if chosen in names:
            return chosen
        return "origin" if "origin" in names else names[0] if len(names) == 1 else None

    def _url(self) -> str | None:
        remote = self._remote_or_none()
        return None if remote is None else self._git_settings()[f"remote.{remote}.url"]

    def _push_url(self) -> str | None:
        """Another address than the one that is asked, where the person's git says so."""
        remote = self._remote_or_none()
        return self._git_settings().get(f"remote.{remote}.pushurl") or self._url()

    def _tracking(self) -> str:
        return f"refs/remotes/{self._remote_or_none() or 'origin'}/{self.branch()}"

    def _identity(self, writer: Writer) -> str:
        settings = self._git_settings()
        name = settings.get("user.name") or writer.author or "raddle"
        email = settings.get("user.email") or f"{writer.node_id}@raddle.invalid"
        return f"{_plain(name) or 'raddle'} <{_plain(email)}>"

    def _over_network(self, arguments: list[str], seconds: float = NETWORK_SECONDS) -> Completed:
        env = network_environment(self._git_settings().get("core.sshcommand"))
        return run_store_git(self._root, arguments, timeout=seconds, env=env)


def noted_branch(own_folder: Path) -> str:
    """The branch that the memory has been on here, which raddle keeps in `own_folder`; empty where it never was."""
    return (find_bytes(own_folder / "branch") or b"").decode(errors="surrogateescape").strip()


def _is_path(url: str) -> bool:
    return "://" not in url and ":" not in url.partition("/")[0]


def _moved_meanwhile(told: str) -> bool:
    return any(
        words in told
        for words in (
            "cannot lock ref",
            "failed to update ref",
            "fetch first",
            "non-fast-forward",
            "incorrect old value",
        )
    )


def _plain(text: str) -> str:
    return re.sub(r"[<>\x00-\x1f\x7f]", "", text).strip()
