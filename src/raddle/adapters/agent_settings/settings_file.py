"""One settings file of another program: read, changed in memory, and written only where nobody else wrote meanwhile.

A change is checked by decoding it: it has to say exactly what was wanted, or it is not made.
"""

from __future__ import annotations

import difflib
import errno
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from raddle.adapters.agent_settings import json_edits
from raddle.adapters.files import NewFile, find_bytes, storage_error
from raddle.model.errors import BrokenFormat, ConflictError

_USUAL_MODE = 0o600
_MARK = "\ufeff"
_BY_HAND = "mend it by hand, then try again"

Edit = Callable[[str], str]


class Change(NamedTuple):
    """A file as it is and as it would be; None: it is not there."""

    path: Path
    before: bytes | None
    after: bytes | None


def as_diff(change: Change) -> str:
    """What `diff -u` would show of it."""
    lines = difflib.unified_diff(
        (change.before or b"").decode().splitlines(keepends=True),
        (change.after or b"").decode().splitlines(keepends=True),
        str(change.path) if change.before is not None else "/dev/null",
        str(change.path) if change.after is not None else "/dev/null",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


class SettingsFile:
    """The file at `path` with these bytes, JSON or TOML by its name; one that is not there, or empty, says nothing.

    `plain`: what it says now, with the edits so far. `by_hand`: what to do where it cannot be changed here.
    BrokenFormat where it cannot be read as settings.
    """

    def __init__(
        self,
        path: Path,
        data: bytes | None,
        *,
        has_comments: bool = False,
        has_trailing_commas: bool = False,
        by_hand: str = "`raddle hooks list` shows what belongs there; change it by hand",
    ) -> None:
        self.path = path
        self.data = data
        """Its bytes as they are; None where it is not there."""
        self.is_toml = path.suffix == ".toml"
        self._leniency = {"has_comments": has_comments, "has_trailing_commas": has_trailing_commas}
        self._by_hand = by_hand
        try:
            whole = (data or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise BrokenFormat(f"{path} is left as it is: it is not UTF-8", _BY_HAND) from error
        self._mark = _MARK if whole.startswith(_MARK) else ""
        self._text = whole.removeprefix(_MARK)
        if not self._text.strip() and not self.is_toml:
            self._text = "{}\n"
        self._before = self._text
        try:
            plain = self._decoded(self._text)
        except BrokenFormat as error:
            raise BrokenFormat(f"{path} is left as it is: {error.message}", error.hint) from error
        if not isinstance(plain, dict):
            raise BrokenFormat(f"{path} is left as it is: it holds no settings", _BY_HAND)
        self.plain: dict[str, Any] = plain

    def edit(self, wanted: dict[str, Any], ways: Iterable[Edit]) -> None:
        """Change the text by the first of `ways` that makes it say what is wanted, and nothing else.

        BrokenFormat where none does: such a file a person has to change.
        """
        for way in ways:
            try:
                text = way(self._text)
                is_right = self._decoded(text) == wanted
            except (BrokenFormat, LookupError, TypeError, AttributeError, RecursionError):
                continue  # laid out in a way that this one cannot change
            if is_right:
                self._text, self.plain = text, wanted
                return
        raise BrokenFormat(
            f"{self.path} is left as it is: it is laid out in a way that raddle cannot change safely",
            self._by_hand,
        )

    def change(self) -> list[Change]:
        """What all edits come to; empty where they change nothing."""
        if self._text == self._before:
            return []
        return [Change(self.path, self.data, (self._mark + self._text).encode())]

    def refuse_twice(self) -> None:
        """BrokenFormat where a key stands twice: readers do not agree which one counts."""
        key = "" if self.is_toml else json_edits.key_given_twice(self._text, **self._leniency)
        if key:
            raise BrokenFormat(f"{self.path} is left as it is: the key {key!r} stands in it twice", _BY_HAND)

    @property
    def is_blank(self) -> bool:
        """Does its text hold nothing, not even a comment?"""
        return "".join(self._text.split()) in {"", "{}"}

    def _decoded(self, text: str) -> Any:
        if not self.is_toml:
            return json_edits.decoded(text, **self._leniency)
        from raddle.adapters.agent_settings import toml_edits  # noqa: PLC0415  50 ms that JSON does not need

        return toml_edits.decoded(text)


def ordinary_bytes(path: Path) -> bytes | None:
    """The bytes of a file alone, since a pipe would be waited for and a device never ends; None where there is none.

    BrokenFormat for what is no file, StorageError where it cannot be read.
    """
    try:
        is_ordinary = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise BrokenFormat(f"{path} is a link that leads in a circle", _BY_HAND) from error
        raise storage_error(error, path, "read") from error
    if not is_ordinary:
        raise BrokenFormat(f"{path} is left as it is: it is no ordinary file", _BY_HAND)
    return find_bytes(path)


def write_change(change: Change, *, new_mode: int = _USUAL_MODE) -> None:
    """Put it into the file, whole or not at all; a link stays one, and so does the mode: `new_mode` is that of a file
    which was not there. A file that is not to be there any more is removed.

    ConflictError where the file is not any more what it was when the change was worked out.
    """
    try:
        path = change.path.resolve()
        mode = stat.S_IMODE(path.stat().st_mode) if change.before is not None else new_mode
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, to Python 3.11
        broken = error if isinstance(error, OSError) else OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        raise storage_error(broken, change.path, "write") from error
    if change.after is None:
        _remove(path, change.before)
        return
    with NewFile(path.parent) as new:
        new.write(change.after)
        try:
            os.chmod(new.path, mode)  # noqa: PTH101
        except OSError as error:
            raise storage_error(error, path, "write") from error
        _must_still_be(path, change.before)
        new.publish(path)


def _must_still_be(path: Path, before: bytes | None) -> None:
    if ordinary_bytes(path) != before:
        raise ConflictError(f"{path} was changed by another program just now", "try again")


def _remove(path: Path, before: bytes | None) -> None:
    _must_still_be(path, before)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, path, "remove") from error
