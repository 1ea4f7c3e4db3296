"""Files that go with a turn: kept as blobs, named in the message, given back as they were.

Owns what of a file is kept: its bytes, its name without its folder, its type.
"""

from __future__ import annotations

import contextlib
import functools
import mimetypes
from collections.abc import Iterable, Iterator
from pathlib import Path

from raddle.actions.answering.settings import ResponderSettings
from raddle.adapters.files import make_folder, write_atomic
from raddle.model.errors import BrokenFormat, InvalidInput, NotFound, RaddleError, StorageError, TooLarge
from raddle.model.threads.message import Attachment
from raddle.model.threads.rendering import ChatMessage
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores

MOST_BYTES = 64 << 20
"""A larger file is no part of a conversation."""
_FILES, _TEXTS, _NOTHING = "texts, and images and PDFs that are not too large", "texts", "no files"
_TAKEN = {"openai": _FILES, "anthropic": _FILES, "command": _TEXTS, "orchestrator": _NOTHING}


def attachments_of(stores: Stores, paths: Iterable[str]) -> tuple[Attachment, ...]:
    """Keep these files; as a message names them. InvalidInput, and nothing was kept of it, for what is no file."""
    found = list(paths)
    for path in found:
        check_attachable(path)
    return tuple(_attachment(stores, Path(path).expanduser()) for path in found)


def check_attachable(name: str) -> None:
    """Can it be attached, as things stand? InvalidInput, TooLarge or StorageError where it cannot."""
    path = Path(name).expanduser()
    with _readable(path):
        if path.is_dir():
            raise InvalidInput(f"{path} is a folder", "name a file to attach")
        if not path.exists():
            raise InvalidInput(f"there is no file {path}", "name a file to attach")
        if not path.is_file():
            raise InvalidInput(f"{path} is no plain file", "name a file to attach")
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise TooLarge(
                f"{path} is {size / 1e6:,.0f} MB", f"attach files of at most {MOST_BYTES >> 20} MiB"
            )
        with path.open("rb"):
            return


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}", "check its name and its mode") from error


def _attachment(stores: Stores, path: Path) -> Attachment:
    with _readable(path):
        data = path.read_bytes()
    name = path.name.encode("utf-8", "replace").decode()
    return Attachment(
        sha256=stores.blobs.put(data, compress=True),
        media_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
        name=name,
        size=len(data),
    )


def attachment_bytes(stores: Stores, attachment: Attachment, *, is_private: bool) -> bytes | None:
    """What was attached: from here, else from the server that another device gave it to; then it is kept. None where
    it is not to be had. A network is asked only where this device is signed in and may, never for a private thread."""
    return bytes_of_blob(stores, attachment.sha256, is_private=is_private)


def bytes_of_blob(stores: Stores, sha256: str, *, is_private: bool) -> bytes | None:
    """The same by its name alone."""
    with contextlib.suppress(NotFound, BrokenFormat):  # a damaged one may be whole elsewhere
        return stores.blobs.read(sha256)
    from raddle.wiring.remote import open_remote, server_of  # noqa: PLC0415  most blobs are here

    if is_private or stores.config.is_offline or not server_of(stores, is_needed=False):
        return None
    try:
        with open_remote(stores) as remote:
            data = _fetched(remote.blob(sha256))
    except RaddleError:  # not there, not signed in, no network: the words say that it is missing
        return None
    return data if data is not None and stores.blobs.put(data, compress=True) == sha256 else None


def _fetched(pieces: Iterable[bytes]) -> bytes | None:
    """All of it, where it is no larger than anybody attaches."""
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > MOST_BYTES:
            return None
    return bytes(data)


def not_sent(
    stores: Stores, attachments: Iterable[Attachment], settings: ResponderSettings
) -> list[tuple[Attachment, str]]:
    """Those of a turn that who answers does not get, each with what they do take."""
    from raddle.adapters.responders.attachments import Text, parts_of  # noqa: PLC0415  few turns have any

    takes = _TAKEN[settings.kind]
    read = functools.partial(attachment_bytes, stores, is_private=True)  # it was just kept here
    missing = []
    for attachment in attachments:
        message = ChatMessage(role="user", content="", attachments=(attachment,))
        parts = parts_of(message, read, with_files=takes == _FILES) if takes != _NOTHING else []
        # Of a file that is sent as words, its name is a line of its own; one that is only named is one line.
        if all(isinstance(part, Text) and "\n" not in part.text for part in parts):
            missing.append((attachment, f"{settings.name} takes {takes}"))
    return missing


def attachments_in(thread: Thread) -> list[tuple[str, Attachment]]:
    """(message id, attachment) of all that was attached and not erased, in the order of the thread."""
    return [
        (message.id, attachment)
        for message in thread.tree.shown()
        for attachment in message.attachments
        if not attachment.is_body
    ]


def write_attachments(stores: Stores, thread: Thread, folder: Path) -> tuple[list[Path], list[Attachment]]:
    """Write each into `folder`, under its own name, with a number where that is taken; (paths, those that are missing).

    One that is there already with these bytes is not written again. A name never leads out of the folder.
    """
    paths: list[Path] = []
    missing: list[Attachment] = []
    for _, attachment in attachments_in(thread):
        data = attachment_bytes(stores, attachment, is_private=thread.is_private)
        if data is None:
            missing.append(attachment)
            continue
        make_folder(folder)
        path = _free_name(folder, _file_name(attachment), data)
        if not path.exists():
            write_atomic(path, data)
        if path not in paths:
            paths.append(path)
    return paths, missing


def _file_name(attachment: Attachment) -> str:
    name = attachment.name.replace("\\", "/").rpartition("/")[2]
    safe = "".join(character if character.isprintable() else "_" for character in name).strip().lstrip(".")
    return safe[:120] or f"{attachment.sha256[:12]}{mimetypes.guess_extension(attachment.media_type) or ''}"


def _free_name(folder: Path, name: str, data: bytes) -> Path:
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        stem, dot, suffix = name, "", ""
    for number in range(1, 10_000):
        path = folder / (name if number == 1 else f"{stem}-{number}{dot}{suffix}")
        if not path.exists() or (path.is_file() and path.read_bytes() == data):
            return path
    raise StorageError(f"{folder} has too many files called {name}", "name another folder")
