"""What a source file is called beside the session that it belongs to, here and on the person's other machines.

Paths are facts of one machine. What another one gets of them is a name below the session's folder and a hash of that
folder, and what it keeps then lies under a path that no file here has.
"""

from __future__ import annotations

import hashlib
from pathlib import PurePath

from raddle.model.protocol.sources import is_safe_name

_FETCHED = "device:"
"""How the path begins of what was fetched: no file's path, which are whole ones, begins so."""
_AGENTS_OWN_NAMES = frozenset({"claude-code", "codex", "gemini-cli"})
"""Agents that name their files themselves; elsewhere a person does, and that stays here."""


def home_of(path: str, mains: list[str], best: str) -> str:
    """The main file that a file lies nearest to; `best` where several are as near."""
    if path in mains:
        return path
    return max(mains, key=lambda main: (_shared(main, path), main == best))


def _shared(one: str, other: str) -> int:
    pairs = zip(PurePath(one).parts, PurePath(other).parts, strict=False)
    return next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), 0)


def name_beside(path: str, home: str) -> str:
    """A file's path below its session's folder; its bare name where it lies elsewhere."""
    folder = PurePath(home).parent
    if PurePath(path).is_relative_to(folder):
        return str(PurePath(path).relative_to(folder))
    return PurePath(path).name


def key_and_name(device: str, agent: str, path: str, home: str) -> tuple[str, str]:
    """What other machines get of a path: (a hash of its session's folder on this device, its name there)."""
    key = _hash(f"{device}\0{PurePath(home).parent}")
    name = name_beside(path, home)
    if agent in _AGENTS_OWN_NAMES and is_safe_name(name):
        return key, name
    return key, _hash(f"{device}\0{path}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def fetched_path(device: str, key: str, name: str) -> str:
    """Under which path the ledger has what came from another device."""
    return f"{_FETCHED}{device}/{_hash(key)}/{name}"


def is_fetched(path: str) -> bool:
    """Did what the ledger has under this path come from a server?"""
    return path.startswith(_FETCHED)


def root_of(path: str) -> str:
    """What stands above every folder of a path: `/`, or of what was fetched the device that it came from."""
    return path.partition("/")[0] if is_fetched(path) else "/"
