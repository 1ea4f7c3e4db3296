"""What git's plumbing says and is told, as bytes: trees, contents, commits. No process is started here."""

from __future__ import annotations

import hashlib

from raddle.adapters.memory_repo.git_objects import Changes
from raddle.model.errors import BrokenFormat
from raddle.model.memory.merge_trees import is_regular
from raddle.model.memory.repo_layout import is_safe


def tree_in(listing: bytes) -> dict[str, str]:
    """Path -> id, of what `ls-tree -r -z` says; what is no file has its mode before its id."""
    tree = {}
    for entry in listing.split(b"\0"):
        if entry:
            facts, _, path = entry.partition(b"\t")
            mode, _, content_id = facts.decode().split(" ")
            is_file = mode in ("100644", "100755", "100664")
            tree[path.decode(errors="surrogateescape")] = content_id if is_file else f"{mode} {content_id}"
    return tree


def contents_in(answer: bytes) -> dict[str, bytes]:
    """Id -> bytes, of what `cat-file --batch` says. BrokenFormat where it lacks one."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(answer):
        end = answer.index(b"\n", at)
        parts = answer[at:end].decode().split(" ")
        at = end + 1
        if len(parts) == 3 and parts[2].isdigit():
            size = int(parts[2])
            found[parts[0]] = answer[at : at + size]
            at += size + 1
        else:
            raise BrokenFormat(
                f"git no longer has the content {parts[0][:40]}",
                "see `git fsck` in the store; another clone may have it",
            )
    return found


def safe_lines(listing: bytes) -> bytes:
    """What `ls-tree -r -z` says, for `git update-index -z --index-info`: without names that git takes into no index."""
    lines = [line for line in listing.split(b"\0") if line]
    safe = [line for line in lines if is_safe(line.partition(b"\t")[2].decode(errors="surrogateescape"))]
    return b"".join(line + b"\0" for line in safe)


def index_lines(changes: Changes, *, hash_name: str) -> bytes:
    """The changes of a commit for the same command; it makes room for a file where a folder was, and for a folder."""
    lines = []
    for path, content in changes.items():
        if not is_safe(path):
            continue
        name = path.encode(errors="surrogateescape")
        if content is None:
            lines.append(b"0 %s\t%s\0" % (b"0" * len(blob_id(b"", hash_name)), name))
        elif isinstance(content, bytes):
            lines.append(b"100644 %s\t%s\0" % (blob_id(content, hash_name).encode(), name))
        else:
            entry = f"100644 {content}" if is_regular(content) else content
            lines.append(b"%s\t%s\0" % (entry.encode(), name))
    return b"".join(lines)


def blob_id(data: bytes, hash_name: str) -> str:
    """The id that git has for a content. `hash_name`: its object format (`sha1`, `sha256`)."""
    return hashlib.new(hash_name, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
