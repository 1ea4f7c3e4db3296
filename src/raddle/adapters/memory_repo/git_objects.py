"""git's objects as bytes: trees changed in place, commits, packs of them. No process is started here.

`git fast-import` does the same, and looks through the whole folder for each new name in it: for a thousand entries in a
phase of ten thousand that is most of a sync.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

from raddle.model.errors import BrokenFormat
from raddle.model.memory.merge_trees import is_regular

Changes = Mapping[str, str | bytes | None]
"""Path -> what a commit has there now: the id of a content (and its mode before it, where it is no file), new bytes, or
None: nothing."""

Kind = Literal["commit", "tree", "blob"]
_KINDS: dict[Kind, int] = {"commit": 1, "tree": 2, "blob": 3}
_HASH_NAMES = {40: "sha1", 64: "sha256"}
_FOLDER, _FILE = b"40000", b"100644"
_FEW = 64
_WORTH_PACKING_WELL = 64 * 1024
"""Bytes of a tree. A larger one is the folder of a thousand files, half of it hashes: to press it takes longer than all
the rest of a commit, and git's maintenance keeps but its differences."""
_SMALL, _SMALL_WINDOW = 4096, 12
"""Bytes, and the power of two that they are."""


class GitObject(NamedTuple):
    """`data` without git's header; `name` is its hash, raw."""

    kind: Kind
    data: bytes
    name: bytes


def hash_name_of(commit_id: str) -> str:
    """The name of the hash (`sha1`, `sha256`) that made an id, in hexadecimal."""
    return _HASH_NAMES[len(commit_id)]


def made(kind: Kind, data: bytes, hash_name: str) -> GitObject:
    """An object and its name."""
    header = b"%s %d\0" % (kind.encode(), len(data))
    return GitObject(kind, data, hashlib.new(hash_name, header + data, usedforsecurity=False).digest())


def folders_of(paths: Iterable[str]) -> list[str]:
    """Every folder that holds one of `paths`, at any depth, the deepest first; the last one is the root, empty."""
    found = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found, key=lambda folder: (-folder.count("/") - bool(folder), folder))


def objects_of(changes: Changes, trees: Mapping[str, bytes], hash_name: str) -> list[GitObject]:
    """What a commit with these changes needs that was not there: contents and trees; the last one is its tree.

    `trees`: each folder of `folders_of(changes)` that there is -> git's bytes of it. Folders without a file in them are
    in no tree.
    """
    found: list[GitObject] = []
    edits: dict[str, dict[bytes, bytes | None]] = {folder: {} for folder in folders_of(changes)}
    for path, content in changes.items():
        folder, _, name = path.rpartition("/")
        if isinstance(content, bytes):
            found.append(made("blob", content, hash_name))
            entry = (_FILE, found[-1].name)
        elif content is None:
            entry = None
        else:
            mode, _, content_id = ("100644 " + content if is_regular(content) else content).partition(" ")
            entry = (mode.lstrip("0").encode(), bytes.fromhex(content_id))
        edits[folder][_bytes(name)] = _entry(_bytes(name), entry)
    for folder, edit in edits.items():
        old = trees.get(folder, b"")
        new = edited(old, edit, hash_name)
        if new == old and folder:
            continue
        if new or not folder:
            found.append(made("tree", new, hash_name))
        if folder:
            above, _, name = folder.rpartition("/")
            if new:
                edits[above][_bytes(name)] = _entry(_bytes(name), (_FOLDER, found[-1].name))
            else:
                edits[above].setdefault(_bytes(name), None)  # a file may have taken its place
    return found


def edited(tree: bytes, edit: Mapping[bytes, bytes | None], hash_name: str) -> bytes:
    """A tree where each name of `edit` has the entry given, or (None) none. A file takes the place of a folder of its
    name, and the other way round. BrokenFormat for bytes that are no tree."""
    if not edit:
        return tree
    size = hashlib.new(hash_name, usedforsecurity=False).digest_size
    entries = _entries_of(tree, size)

    def key_of(entry: bytes) -> bytes:
        """What git sorts by."""
        mode, _, rest = entry.partition(b" ")
        name = rest[: -size - 1]
        return name + b"/" if mode == _FOLDER else name

    wanted: dict[bytes, bytes | None] = {}
    for name, entry in edit.items():
        wanted.update({name: None, name + b"/": None})
        if entry is not None:
            wanted[key_of(entry)] = entry
    where = _finder(entries, key_of, is_often=len(wanted) > _FEW)
    parts: list[bytes] = []
    at = 0
    for key in sorted(wanted):
        found = where(key, at)
        parts += entries[at:found]
        at = found + (found < len(entries) and key_of(entries[found]) == key)
        new = wanted[key]
        if new is not None:
            parts.append(new)
    return b"".join([*parts, *entries[at:]])


def id_in(tree: bytes, name: str, hash_name: str) -> str | None:
    """The id of a file of that name in a tree; None where there is none, or something else."""
    entry = _entry_in(tree, name, hash_name)
    size = hashlib.new(hash_name, usedforsecurity=False).digest_size
    return entry[-size:].hex() if entry.startswith(b"100") else None


def has_folder(tree: bytes, name: str, hash_name: str) -> bool:
    """Is there a folder of that name in a tree?"""
    return _entry_in(tree, name, hash_name).startswith(_FOLDER + b" ")


def _entry_in(tree: bytes, name: str, hash_name: str) -> bytes:
    """The entry of that name; empty where there is none."""
    if b" %s\0" % _bytes(name) not in tree:
        return b""
    # It may be the end of a longer name, or of a hash: both are told by the entries before.
    size = hashlib.new(hash_name, usedforsecurity=False).digest_size
    entries = {entry.partition(b" ")[2][: -size - 1]: entry for entry in _entries_of(tree, size)}
    return entries.get(_bytes(name), b"")


def commit_of(tree: GitObject, parent: str | None, *, who: str, message: str, hash_name: str) -> GitObject:
    """A commit. `who`: name, address and time, as git writes them."""
    above = f"parent {parent}\n" if parent else ""
    text = f"tree {tree.name.hex()}\n{above}author {who}\ncommitter {who}\n\n{message}"
    return made("commit", text.encode(errors="replace"), hash_name)


def pack_of(objects: Iterable[GitObject], hash_name: str) -> bytes:
    """Objects as a pack, each name once."""
    once = {(one.kind, one.name): one for one in objects}
    parts = [b"PACK" + (2).to_bytes(4, "big") + len(once).to_bytes(4, "big")]
    for one in once.values():
        parts += [_head(_KINDS[one.kind], len(one.data)), _pressed(one)]
    pack = b"".join(parts)
    return pack + hashlib.new(hash_name, pack, usedforsecurity=False).digest()


def _pressed(one: GitObject) -> bytes:
    if len(one.data) <= _SMALL:
        # With zlib's usual window a quarter of a megabyte is cleared for each of a thousand entries: 60 µs for 10.
        press = zlib.compressobj(6, zlib.DEFLATED, _SMALL_WINDOW, 5)
        return press.compress(one.data) + press.flush()
    return zlib.compress(one.data, 0 if one.kind == "tree" and len(one.data) > _WORTH_PACKING_WELL else 1)


def _entries_of(tree: bytes, size: int) -> list[bytes]:
    entries = re.findall(rb"[0-7]+ [^\0]+\0.{%d}" % size, tree, re.DOTALL)
    if sum(map(len, entries)) != len(tree):
        raise BrokenFormat(
            "a folder in git is damaged", "see `git fsck` in the store; another clone may have it"
        )
    return entries


def _finder(
    entries: list[bytes], key_of: Callable[[bytes], bytes], *, is_often: bool
) -> Callable[[bytes, int], int]:
    if not is_often:
        return lambda key, first: bisect_left(entries, key, first, key=key_of)
    keys = list(map(key_of, entries))
    return lambda key, first: bisect_left(keys, key, first)


def _entry(name: bytes, entry: tuple[bytes, bytes] | None) -> bytes | None:
    return None if entry is None else b"%s %s\0%s" % (entry[0], name, entry[1])


def _head(kind: int, size: int) -> bytes:
    """The kind of an object and its size, seven bits a byte, after four in the first."""
    byte, size = kind << 4 | size & 15, size >> 4
    head = bytearray()
    while size:
        head.append(byte | 128)
        byte, size = size & 127, size >> 7
    head.append(byte)
    return bytes(head)


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")
