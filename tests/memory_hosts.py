"""Repositories of code that hold a memory, for tests: real ones on tmp_path, and what of them nobody may touch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from raddle.config import load_config
from raddle.wiring import Stores
from tests.memory_clones import git

AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
BRANCH = "raddle-store"


@contextlib.contextmanager
def stores_in(workspace: Path, **flags: str | bool | None) -> Iterator[Stores]:
    """What the commands work with, for somebody who works in `workspace`."""
    with Stores(load_config(None, workspace=str(workspace), **flags)) as opened:
        yield opened


def lay(root: Path, files: dict[str, str]) -> None:
    """Put files there as another program would."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def make_code(root: Path, *, hub: Path | None = None) -> Path:
    """A repository of code with one commit on `main`; `hub`: a bare one that it is pushed to."""
    root.mkdir(parents=True)
    git("init", "--quiet", "--initial-branch=main", ".", cwd=root)
    commit(root, "code.py", "print('hello')\n")
    if hub is not None:
        git("clone", "--quiet", "--bare", str(root), str(hub), cwd=root.parent)
        git("remote", "add", "origin", str(hub), cwd=root)
        git("fetch", "--quiet", cwd=root)
    return root


def commit(root: Path, name: str, text: str) -> None:
    """One more commit of the code."""
    (root / name).write_text(text)
    git("add", name, cwd=root)
    git(*AUTHOR, "commit", "--quiet", "-m", f"change {name}", cwd=root)


def work_in_progress(root: Path) -> None:
    """Something stashed, something staged, something changed and something new in the code."""
    (root / "code.py").write_text("stashed\n")
    git(*AUTHOR, "stash", "--quiet", cwd=root)
    (root / "staged.py").write_text("staged\n")
    git("add", "staged.py", cwd=root)
    (root / "code.py").write_text("changed\n")
    (root / "new.py").write_text("new\n")


def untouchable(root: Path) -> dict[str, object]:
    """All that a memory on a branch of its own has no business with, byte for byte."""
    git_folder = root / ".git"
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_relative_to(git_folder) and BRANCH not in path.parts
    }
    return {
        "HEAD": (git_folder / "HEAD").read_bytes(),
        "index": (git_folder / "index").read_bytes(),
        "stash": git("stash", "list", "--format=%H", cwd=root),
        "main": git("rev-parse", "main", cwd=root),
        "status": git("--no-optional-locks", "status", "--porcelain", cwd=root),
        "files": files,
        "config": (git_folder / "config").read_bytes(),
    }


def branches(root: Path) -> list[str]:
    """The local branches."""
    return git("for-each-ref", "--format=%(refname:short)", "refs/heads/", cwd=root).split()
