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
from raddle.adapters.meanwhile import Meanwhile
from raddle.adapters.memory_repo.commit_writing import Ground, name_commit, read_ground, write_commit
from raddle.adapters.memory_repo.git_index import GitIndex, changes_between
from raddle.adapters.memory_repo.git_objects import hash_name_of, id_in
from raddle.adapters.memory_repo.git_streams import blob_id, contents_in, tree_in
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
from raddle.adapters.memory_repo.store_settings import StoreSettings
from raddle.adapters.memory_repo.upkeep import maintain
from raddle.adapters.programs import Completed
from raddle.model.errors import BrokenFormat, Forbidden

NODE_TRAILER = "Raddle-Node"
UNKNOWN_NODE = "unknown"
RESCUE = "refs/raddle/rescue"

_INCOMING = "refs/raddle/incoming"
_FORMAT = f"%H%x00%P%x00%ct%x00%(trailers:key={NODE_TRAILER},valueonly,separator=%x2C)"
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z", re.ASCII)
_TREES_KEPT, _COMMITS_KEPT = 4, 16


class StoreRepository:
    """A `StoreHistory` and `StoreRemote` over the repository of the store at `root`."""

    def __init__(self, root: Path, own_folder: Path) -> None:
        self._root = root
        self._noted_branch = own_folder / "branch"
        self._agreed = own_folder / "agreed"
        self._index = GitIndex(root, own_folder / "index")
        self._branch = ""
        self._settings = StoreSettings(root)
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
        ground = read_ground(self._root, parent, changes) if parent else Ground(None, {})
        if ground.commit_id != parent:
            raise BrokenFormat(
                f"git no longer has the commit {parent}",
                "see `git fsck` in the store; another clone may have it",
            )
        if not moves:
            return self._written(ground, changes, message, writer, moves=False)
        with self._index.following(parent, changes) as reach:
            done = self._written(ground, changes, message, writer, moves=True)
            reach(done.id)
        return done

    def commit_files(
        self,
        files: Mapping[str, bytes | None],
        *,
        message: Callable[[Iterable[str]], str],
        writer: Writer,
    ) -> tuple[str, ...]:
        """Commit these contents on the newest commit; the paths of those that it did not have."""
        noted = self._index.at()
        with self._index.following(noted, files) as reach:
            ground = read_ground(self._root, f"refs/heads/{self.branch()}", files)
            parent = ground.commit_id
            changes = {path: data for path, data in files.items() if not _is_in(ground, path, data)}
            if parent is None or not changes:
                if parent is not None and parent == noted:
                    reach(parent)
                return ()
            done = self._written(ground, changes, message(changes), writer, moves=True)
            if parent == noted:
                reach(done.id)
        if parent != noted:
            self._index.follow(None, done.id, None)
        return tuple(changes)

    def _written(
        self,
        ground: Ground,
        changes: Mapping[str, str | bytes | None],
        message: str,
        writer: Writer,
        *,
        moves: bool,
    ) -> Commit:
        at = max(writer.now() // 1_000_000, 0)  # git knows no time before 1970, whatever the clock says
        commit_id = write_commit(
            self._root,
            ground,
            changes,
            who=f"{self._settings.identity(writer)} {at} +0000",
            message=f"{message}\n\n{NODE_TRAILER}: {writer.node_id}\n",
        )
        ref, was = (f"refs/heads/{self.branch()}", ground.commit_id) if moves else (_INCOMING, "")
        answer = name_commit(self._root, ref, commit_id, was=was, note="commit")
        if answer.code != 0:
            if moves and self._at(ref) != ground.commit_id:
                raise CommittedMeanwhile
            raise git_failed(self._root, "update-ref", answer)
        return self._noted(
            Commit(id=commit_id, at=at * 1_000_000, node_id=writer.node_id, parent=ground.commit_id or "")
        )

    def move(self, to: str, *, expects: str | None) -> None:
        """Have the branch at the commit `to`, and the index read from it."""
        ref = f"refs/heads/{self.branch()}"
        answer = name_commit(self._root, ref, to, was=expects, note="sync", drops=_INCOMING)
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
        url = self._settings.push_url(self.branch())
        return None if url is None else without_secrets(url)

    def is_agreed(self) -> bool:
        """Did a person say that this store goes to this remote, or did it come from there?"""
        noted = find_bytes(self._agreed)
        if noted is None:
            return self.known() is not None
        return (self._settings.push_url(self.branch()) or "").encode(errors="surrogateescape") in noted.split(
            b"\n"
        )

    def agree(self) -> None:
        """Note that it may go there."""
        url = (self._settings.push_url(self.branch()) or "").encode(errors="surrogateescape")
        noted = [line for line in (find_bytes(self._agreed) or b"").split(b"\n") if line]
        if url and url not in noted:
            make_folder(self._agreed.parent)
            write_atomic(self._agreed, b"\n".join([*noted, url]) + b"\n")

    def known(self) -> str | None:
        """The commit that the remote's branch was at when it was last asked."""
        return self._at(self._settings.tracking(self.branch()))

    def begin_asking(self) -> Callable[[], Asked]:
        """Ask the remote; one connection where it has nothing new, two where it has."""
        remote, ref, tracking = (
            self._settings.address(self.branch()),
            f"refs/heads/{self.branch()}",
            self._settings.tracking(self.branch()),
        )
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
            found = next(
                (name.decode() for name, of in lines if of == ref.encode(errors="surrogateescape")), ""
            )
            return Asked(known=known, theirs=self._brought(found, known) if found else None)

        return asked

    def _brought(self, commit_id: str, known: str | None) -> Commit | None:
        """The commit that the remote's branch is at, once it is here."""
        remote, tracking = self._settings.address(self.branch()), self._settings.tracking(self.branch())
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
        remote, ref = self._settings.address(self.branch()), f"refs/heads/{self.branch()}"
        # To send less, git looks for each new file through all of its folder; on this machine nothing is won by it.
        whole = ["--no-thin"] if self._settings.is_on_this_machine(self.branch()) else []
        answer = self._over_network(
            ["push", "--quiet", "--porcelain", "--no-verify", *whole, remote, f"{commit_id}:{ref}"]
        )
        if answer.code == 0:
            answer_of(self._root, ["update-ref", self._settings.tracking(self.branch()), commit_id])
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
        self._settings = StoreSettings(self._root)
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

    def _over_network(self, arguments: list[str], seconds: float = NETWORK_SECONDS) -> Completed:
        env = network_environment(self._settings.ssh_command())
        return run_store_git(self._root, arguments, timeout=seconds, env=env)


def noted_branch(own_folder: Path) -> str:
    """The branch that the memory has been on here, which raddle keeps in `own_folder`; empty where it never was."""
    return (find_bytes(own_folder / "branch") or b"").decode(errors="surrogateescape").strip()


def _is_in(ground: Ground, path: str, data: bytes | None) -> bool:
    """Does the commit have just this content there (None: nothing)?"""
    if ground.commit_id is None:
        return False
    hash_name = hash_name_of(ground.commit_id)
    folder, _, name = path.rpartition("/")
    held = id_in(ground.trees.get(folder, b""), name, hash_name)
    return held == (None if data is None else blob_id(data, hash_name))


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
