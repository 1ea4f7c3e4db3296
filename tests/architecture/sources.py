"""The files of the house as the house rules see them: what is tracked, and Python as syntax trees."""

from __future__ import annotations

import ast
import functools
import gc
import subprocess

from tests.seal import CHECKOUT

SOURCE = CHECKOUT / "src" / "raddle"
_LEFT_OUT = {".git", ".venv", "__pycache__", "build", "dist"}


@functools.cache
def text_files() -> dict[str, str]:
    """Path from the checkout -> text of every file that is, or is about to be, tracked; binaries left out."""
    texts = {}
    for name in _tracked_names():
        try:
            texts[name] = (CHECKOUT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # not text, or removed and not yet committed
    return texts


def _tracked_names() -> list[str]:
    """What git tracks or would add; in an unpacked release, which has no .git, everything that is there."""
    if (CHECKOUT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
        return sorted({name for name in listed.split("\0") if name})
    found = (path.relative_to(CHECKOUT) for path in CHECKOUT.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if not _LEFT_OUT.intersection(path.parts))


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Path from the checkout -> syntax tree of every Python file."""
    gc.disable()  # millions of nodes that stay: looking for garbage among them takes three times as long
    try:
        return {name: ast.parse(text, name) for name, text in text_files().items() if name.endswith(".py")}
    finally:
        gc.freeze()
        gc.enable()


def folders() -> list[str]:
    """Every package of raddle as a path below `src/raddle`, such as `adapters/local_store`."""
    return sorted(
        str(path.parent.relative_to(SOURCE)) for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE
    )


@functools.cache
def class_names() -> set[str]:
    """The name of every class, and of every type alias at the top of a module, in raddle."""
    names: set[str] = set()
    for path, tree in modules().items():
        if path.startswith("src/"):
            names.update(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
            names.update(_alias(node) for node in tree.body)
    return names - {""}


def _alias(node: ast.stmt) -> str:
    """`Clock` for `Clock = Callable[[], int]`; empty for anything else."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper():
            return target.id
    return ""
