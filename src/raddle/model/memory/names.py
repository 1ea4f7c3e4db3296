"""Which names a store takes: one part of a path, looked at by itself.

Two questions that must not be mixed up. *May it be written?* A name that git, Windows or macOS reads as another
one is refused when it is made. *May it be touched at all?* A name that a hostile store brings along (`.git`, `..`)
never reaches a disk, while one that is merely not portable stays readable: another program put it there in
good faith.
"""

from __future__ import annotations

import re
import unicodedata

from raddle.model.errors import InvalidInput

LONGEST_NAME = 180
"""Bytes of UTF-8. File systems take 255, and a conflict adds up to 56 behind it."""

_CUTS_A_PATH = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_BAD_ON_WINDOWS = frozenset('<>:"|?*')
_DEVICES = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\Z")
_SHORT_NAME = re.compile(r"[^.~]{1,7}~[0-9]{1,6}(?:\.[^.]{0,3})?\Z")
_READ_BY_GIT = frozenset({".gitattributes", ".gitignore", ".gitmodules", ".mailmap"})
_IGNORED_BY_HFS = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF), None
)


def folded(name: str) -> str:
    """What a file system that minds neither case nor Unicode form takes `name` for."""
    if name.isascii():
        return name.lower()
    plain = unicodedata.normalize("NFD", name.translate(_IGNORED_BY_HFS)).casefold()
    return unicodedata.normalize("NFC", plain)


def is_dangerous(name: str) -> bool:
    """Must `name` never be a file or folder of ours, whoever made it?"""
    if name in ("", ".", "..") or _CUTS_A_PATH.search(name) is not None:
        return True
    return _is_git(name)


def check_name(name: str, what: str, longest: int = LONGEST_NAME) -> str:
    """`name` in its canonical Unicode form (NFC), fit for every file system; InvalidInput says why it is not."""
    complaint = _complaint(name, longest)
    if complaint:
        raise InvalidInput(f"{what} {shown(name)} {complaint}", "use letters, digits, `-`, `_` and `.`")
    return unicodedata.normalize("NFC", name)


def shown(name: str) -> str:
    """`name` as a message can hold it: quoted, control characters spelled out, cut at 60 characters."""
    return ascii(name[:60]) if any(unicodedata.category(c)[0] == "C" for c in name[:60]) else repr(name[:60])


def _complaint(name: str, longest: int) -> str:
    """Why `name` cannot be written, in words that follow it; empty where it can."""
    return (
        _structural(name)
        or (_is_git(name) and "is git's own")
        or (folded(name) in _READ_BY_GIT and "is a file that git obeys")
        or _unportable(name)
        or (len(unicodedata.normalize("NFC", name).encode()) > longest and f"is longer than {longest} bytes")
        or ""
    )


def _structural(name: str) -> str:
    if not name:
        return "is empty"
    if name in (".", ".."):
        return "leads to another folder"
    if "/" in name or "\\" in name:
        return "holds a slash"
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in name):
        return "holds a character that cannot be seen"
    return ""


def _unportable(name: str) -> str:
    """Why Windows or macOS cannot hold `name`, or would take it for another."""
    found = _BAD_ON_WINDOWS.intersection(unicodedata.normalize("NFKC", name)) if not name.isascii() else None
    if _BAD_ON_WINDOWS.intersection(name) or found:
        return 'holds one of <>:"|?*'
    if name[-1] == "." or name[0].isspace() or name[-1].isspace():
        return "begins with a space, or ends with a space or a dot"
    if _DEVICES.match(name.partition(".")[0].rstrip(" ").casefold()):
        return "is a device on Windows"
    if _SHORT_NAME.match(name):
        return "may be another file's short name on Windows"
    return ""


def _is_git(name: str) -> bool:
    """Does any file system take it for `.git`: by case, form, unseen or trailing characters, stream, short name?"""
    if name.isascii() and name[:4].lower() not in (".git", "git~"):
        return False  # nearly every name, and this is asked of every part of every path
    wide = unicodedata.normalize("NFKC", name.translate(_IGNORED_BY_HFS))
    spellings = {wide.casefold(), wide.upper().lower(), folded(name)}
    heads = {spelling.partition(":")[0].rstrip(" .") for spelling in spellings}
    return any(head == ".git" or re.match(r"git~[0-9]+\Z", head, re.ASCII) is not None for head in heads)
