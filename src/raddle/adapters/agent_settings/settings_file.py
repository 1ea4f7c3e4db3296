"""One settings file of another program: read, changed in memory, and written only where nobody else wrote meanwhile.

A change is checked by decoding it: it has to say exactly what was wanted, or it is not made.
"""

from __future__ import annotations

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
    """A file as it is (None: it is not there) and as it would be."""

    path: Path
    before: bytes | None
    after: bytes


class SettingsFile:
    """The file at `path`, JSON or TOML by its name; one that is not there, or empty, says nothing.

    `plain`: what it says now, with the edits so far. BrokenFormat where it cannot be read as settings;
    StorageError where it cannot be read at all.
    """

    def __init__(self, path: Path, *, has_comments: bool = False) -> None:
        self.path = path
        self.is_toml = path.suffix == ".toml"
        self._has_comments = has_comments
        self._data = find_bytes(path)
        try:
            whole = (self._data or b"").decode("utf-8")
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
            "`raddle hooks list` shows what belongs there; change it by hand",
        )

    def change(self) -> list[Change]:
        """What all edits come to; empty where they change nothing."""
        if self._text == self._before:
            return []
        return [Change(self.path, self._data, (self._mark + self._text).encode())]

    def _decoded(self, text: str) -> Any:
        if not self.is_toml:
            return json_edits.decoded(text, has_comments=self._has_comments)
        from raddle.adapters.agent_settings import toml_edits  # noqa: PLC0415  50 ms that JSON does not need

        return toml_edits.decoded(text)


def write_change(change: Change) -> None:
    """Put it into the file, whole or not at all; a link stays one, and so does the mode.

    ConflictError where the file is not any more what it was when the change was worked out.
    """
    try:
        path = change.path.resolve()
        mode = stat.S_IMODE(path.stat().st_mode) if change.before is not None else _USUAL_MODE
    except OSError as error:
        raise storage_error(error, change.path, "write") from error
    with NewFile(path.parent) as new:
        new.write(change.after)
        try:
            os.chmod(new.path, mode)  # noqa: PTH101
        except OSError as error:
            raise storage_error(error, path, "write") from error
        if find_bytes(path) != change.before:
            raise ConflictError(f"{path} was changed by another program just now", "try again")
        new.publish(path)
