"""The thread file: readable JSON in the seed's own field names, and one group, `stamps`, for the rest.

`docs/formats/thread-file.md` is this module in prose. What shows stands in the plain fields; `stamps` says who
wrote which register when, short where the plain field reads back exactly the register's one value. A file
without stamps (another program's, or a person's edit) is read too: `Decoded.is_stamped` tells the store to
adopt it (`adopt.py`).

Bad bytes cost one message, not the file: what a strict reader refuses is read again message by message, and
each repair is named in `Decoded.problems`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from raddle.model.errors import BrokenFormat, InvalidInput, NewerFormat, OlderFormat
from raddle.model.ids import canonical_json, derived_id, parse_thread_id
from raddle.model.threads.delta import Delta, decode_register
from raddle.model.threads.message import Message, changed
from raddle.model.threads.message_codec import decode_message, encode_message
from raddle.model.threads.plain_fields import absent_value, plain_of, registers_shown
from raddle.model.threads.register import Register, one_write
from raddle.model.threads.thread import Thread
from raddle.model.threads.tree import TWIN_OF
from raddle.model.tolerant_json import decode_tolerantly

FORMAT = 1
"""The format this version writes. Files of the seeds carry none and are read as they are."""

_CHECK = "check"


class Decoded(Struct, frozen=True, kw_only=True):
    """A file as read. `messages` are those with ids; `bare` tells that some had none (a linear thread)."""

    id: str
    version: int
    plain: Mapping[str, Any]
    messages: Sequence[Any]
    """Plain JSON or `Message`, in the file's order."""
    stamps: Mapping[str, Register]
    is_stamped: bool
    is_as_written: bool
    """Do the plain fields still read as they did when the stamps were written?"""
    problems: tuple[str, ...] = ()

    @property
    def has_ids(self) -> bool:
        """Does every message carry an id?"""
        return all(isinstance(message, Message) for message in self.messages)

    def thread(self) -> Thread:
        """The thread, where the file was stamped by raddle and every message has its id."""
        thread = Thread(self.id)
        messages = tuple(message for message in self.messages if isinstance(message, Message))
        thread.join(Delta(version=self.version, messages=messages, registers=self.stamps))
        return thread


def encode_thread(thread: Thread) -> bytes:
    """The whole file: pretty-printed UTF-8 JSON, stable key order, a newline at the end."""
    plain = plain_of(thread)
    plain["conversation"]["messages"] = [encode_message(message) for message in thread.tree]
    plain["stamps"] = encode_stamps(thread, plain)
    plain["format"] = FORMAT
    return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"


def encode_frame(thread: Thread) -> tuple[bytes, bytes]:
    """What stands before and after the messages of a file, so that they can be streamed between.

    The whole is `before + b",".join(pretty_message(m) for m in messages in order) + after`.
    """
    plain = plain_of(thread)
    plain["stamps"] = encode_stamps(thread, plain)
    plain["format"] = FORMAT
    plain["conversation"]["messages"] = [0]
    whole = msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"
    opening = b'\n  "conversation": {\n    "messages": ['
    before, _, after = whole.partition(opening + b"\n      0")
    return before + opening, after


def pretty_message(message: Message) -> bytes:
    """One message as it stands inside a file, its leading newline and indentation included."""
    pretty: bytes = msgspec.json.format(msgspec.json.encode(encode_message(message)), indent=2)
    return b"\n      " + pretty.replace(b"\n", b"\n      ")


def encode_stamps(thread: Thread, plain: Mapping[str, Any]) -> dict[str, Any]:
    """The stamps of every register, short where `plain` reads back its one value."""
    shown = registers_shown(plain)
    stamps: dict[str, Any] = {_CHECK: check_of(shown)}
    for path in sorted(thread.registers):
        register = thread.registers[path]
        if len(register.writes) != 1 or not _reads_back(path, register.writes[0].value, shown):
            stamps[path] = {
                "is": [list(write) for write in register.writes],
                "saw": dict(sorted(register.saw.items())),
            }
            continue
        n, device, _ = register.writes[0]
        short = f"{n}@{device}"
        only = register.saw == {device: n}
        stamps[path] = short if only else {"at": short, "saw": dict(sorted(register.saw.items()))}
    return stamps


def check_of(shown: Mapping[str, Any]) -> str:
    """16 hex digits over what the plain fields show: tells an edit by hand from the file as it was written."""
    return hashlib.sha256(canonical_json(shown)).hexdigest()[:16]


def _reads_back(path: str, value: Any, shown: Mapping[str, Any]) -> bool:
    if path == "deleted":
        return value is None
    return canonical_json(value) == canonical_json(shown.get(path, absent_value(path)))


def decode_file(data: bytes, *, is_ours: bool = False) -> Decoded:
    """A file's bytes as read.

    BrokenFormat: not JSON, not an object, no thread id. OlderFormat, NewerFormat: a format number that this
    version does not read. `is_ours`: of a file that raddle writes, whose texts hold control characters as
    escapes only; a bare one is what a torn write leaves (NULs), and so BrokenFormat.
    """
    problems: list[str] = []
    try:
        plain, messages = _decode_strictly(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        plain, messages = _decode_whole(data, problems, is_ours=is_ours)
    _check_format(plain.get("format"))
    thread_id = _thread_id(plain)
    stamps_plain = plain.get("stamps")
    shown = registers_shown(plain)
    is_stamped = isinstance(stamps_plain, dict) and bool(stamps_plain)
    stamps = _decode_stamps(stamps_plain, shown, problems) if isinstance(stamps_plain, dict) else {}
    check = stamps_plain.get(_CHECK) if isinstance(stamps_plain, dict) else None
    version = plain.get("version")
    problems.extend(_misfits(plain))
    read = [_as_message(message, number, problems) for number, message in enumerate(messages, 1)]
    return Decoded(
        id=thread_id,
        version=version if type(version) is int and 0 <= version < 1 << 63 else 0,
        plain=plain,
        messages=told_apart(read, problems),
        stamps=stamps,
        is_stamped=is_stamped,
        is_as_written=is_stamped and check == check_of(shown),
        problems=tuple(problems),
    )


class _Conversation(Struct, forbid_unknown_fields=True):
    messages: list[Message]


_decode_parts = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_conversation = msgspec.json.Decoder(_Conversation).decode


def _decode_strictly(data: bytes) -> tuple[dict[str, Any], Sequence[Any]]:
    parts = _decode_parts(data)
    plain = {key: msgspec.json.decode(raw) for key, raw in parts.items() if key != "conversation"}
    raw = parts.get("conversation")
    if raw is None:
        return plain, _top_messages(plain)
    try:
        return plain | {"conversation": {}}, _decode_conversation(raw).messages
    except msgspec.ValidationError:
        conversation = msgspec.json.decode(raw)
    return plain | {"conversation": conversation}, _messages_of(conversation)


def _decode_whole(data: bytes, problems: list[str], *, is_ours: bool) -> tuple[dict[str, Any], Sequence[Any]]:
    plain, repairs = decode_tolerantly(data, with_controls=not is_ours, is_whole=True)
    problems.extend(repairs)
    if not isinstance(plain, dict):
        raise BrokenFormat("the file is not a JSON object")
    if "conversation" not in plain:
        return plain, _top_messages(plain)
    return plain, _messages_of(plain["conversation"])


def _messages_of(conversation: Any) -> Sequence[Any]:
    messages = conversation.get("messages") if isinstance(conversation, dict) else conversation
    if messages is None:
        return []
    if not isinstance(messages, list):
        raise BrokenFormat("the file's conversation is not a list of messages")
    return messages


def _top_messages(plain: dict[str, Any]) -> Sequence[Any]:
    """The second seed keeps its messages at the top; its own reader is `quorum.py`, this only loses nothing."""
    messages = plain.pop("messages", None)
    return messages if isinstance(messages, list) else []


def _as_message(message: Any, number: int, problems: list[str]) -> Any:
    """A `Message` where it has an id; plain JSON where the linear migration is to give it one."""
    if isinstance(message, Message):
        return message
    if not isinstance(message, dict):
        problems.append(f"message {number} is not an object: kept as text")
        return {"role": "unknown", "content": canonical_json(message).decode()}
    if not isinstance(message.get("role"), str):
        problems.append(f"message {number} has no role: kept as unknown")
        message = message | {"role": "unknown"}
    if not isinstance(message.get("id"), str) or not message["id"]:
        return message
    return decode_message(message)


def told_apart(messages: Sequence[Any], problems: list[str]) -> list[Any]:
    """Every id once. A message that stands twice is taken once; a different one of the same id is kept under an
    id made of what it says, beside the first, and named in `problems` and by `MessageTree.lost`.
    """
    kept: list[Any] = []
    there: dict[str, Message] = {}
    for number, message in enumerate(messages, 1):
        found = message
        if isinstance(message, Message) and message.id in there:
            twin = derived_id("twin", message)
            if message == there[message.id] or twin in there:
                problems.append(f"message {number} stands twice: taken once")
                continue
            problems.append(f"message {number} has the id of an earlier one: kept as {twin}")
            found = changed(message, id=twin, extra={**message.extra, TWIN_OF: message.id})
        if isinstance(found, Message):
            there[found.id] = found
        kept.append(found)
    return kept


_KINDS: Mapping[str, tuple[type, str]] = {
    "metadata": (dict, "an object"),
    "drafts": (dict, "an object"),
    "git_commits": (list, "a list"),
    "pending_jobs": (list, "a list"),
    "removed_messages": (list, "a list"),
}


def _misfits(plain: Mapping[str, Any]) -> list[str]:
    """The groups of a file that are not what they should be: nothing can be read out of them."""
    return [
        f"{name} is not {words}: left out"
        for name, (kind, words) in _KINDS.items()
        if plain.get(name) is not None and not isinstance(plain[name], kind)
    ]


def _thread_id(plain: Mapping[str, Any]) -> str:
    value = plain.get("id")
    if not isinstance(value, str):
        raise BrokenFormat("the file holds no thread: it has no id")
    try:
        return parse_thread_id(value)
    except InvalidInput as error:
        raise BrokenFormat(f"the file holds no thread: {error.message}") from error


def _check_format(found: Any) -> None:
    if found is None or found == FORMAT:
        return
    if isinstance(found, int) and found > FORMAT:
        raise NewerFormat("the thread file", found, FORMAT)
    raise OlderFormat(
        f"the thread file has format {found!r}",
        "open it with the raddle that wrote it, and export it as json",
    )


def _decode_stamps(
    plain: Mapping[str, Any], shown: Mapping[str, Any], problems: list[str]
) -> dict[str, Register]:
    stamps: dict[str, Register] = {}
    for path, stamp in plain.items():
        if path == _CHECK:
            continue
        try:
            stamps[path] = _decode_stamp(stamp, shown.get(path, absent_value(path)))
        except BrokenFormat as error:
            problems.append(f"stamp of {path}: {error.message}")
    return stamps


def _decode_stamp(stamp: Any, value: Any) -> Register:
    if isinstance(stamp, str):
        return one_write(*_parse_short(stamp), value)
    if isinstance(stamp, dict) and "at" in stamp:
        n, device = _parse_short(stamp["at"])
        return decode_register({"is": [[n, device, value]], "saw": stamp.get("saw", {})})
    return decode_register(stamp)


def _parse_short(text: Any) -> tuple[int, str]:
    n, separator, device = text.partition("@") if isinstance(text, str) else ("", "", "")
    if not separator or not n.isascii() or not n.isdigit() or len(n) > 19 or int(n) >> 63:
        raise BrokenFormat(f"{str(text)[:40]!r} is not n@device")
    return int(n), device
