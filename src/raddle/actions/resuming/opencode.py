"""A conversation as the document that `opencode import` takes: a session, and its messages with their parts.

Owns how a session that did not come from OpenCode looks there, and how the lines that were kept of one become a
document again. Its ids order its messages and are made with their times: OpenCode waits for an answer to the newest
one of a person, so none of ours may be later than what is typed next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from raddle.actions.resuming.session import Header
from raddle.actions.resuming.told import Call, Picture, Turn
from raddle.model.clock import parse_time
from raddle.model.ids import derived_id
from raddle.model.threads.carried import FIELD, copied_form
from raddle.model.threads.message import Message

VERSION = "1.18.33"
"""The program whose records these look like."""

_MODEL = "opencode/big-pickle"
"""Where nobody knows a model that the program has: one that it comes with."""
_NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TIME_DIGITS, _TAIL_CHARACTERS = 12, 14
_PREFIX_CHARACTERS = 4


class OwnSession(NamedTuple):
    """What was kept of a session: its header, and its messages as the program has them, in their order."""

    header: dict[str, Any]
    messages: list[dict[str, Any]]


def argv(session_id: str) -> tuple[str, ...]:
    """What goes on with a session."""
    return ("opencode", "--session", session_id)


def session_id_of(*parts: Any, at: int) -> str:
    """An id of a session that depends on nothing but `parts` and `at` (microseconds)."""
    return f"ses_{~(at // 1000 << 12) & (1 << 48) - 1:012x}{_tail(*parts)}"


def document(header: Header, turns: Sequence[Turn], own: OwnSession | None = None) -> bytes:
    """What `opencode import` takes: a session of these turns, behind those of its own."""
    kept = own.messages if own is not None else []
    writer = _Writer(header, kept)
    messages = [*kept, *writer.messages(turns)]
    info = {
        "slug": "raddle",
        "projectID": "global",
        "version": VERSION,
        "title": header.title or "A conversation",
        "time": {"created": header.began // 1000, "updated": header.ends // 1000},
        **(own.header if own is not None else {}),
        "id": header.session_id,
        "directory": header.workspace,
    }
    return msgspec.json.encode({"info": info, "messages": messages})


def own_session(lines: Iterable[bytes], session_id: str, to_session: str) -> OwnSession | None:
    """What was kept of a session, under the id that it gets; None where a part of it cannot be told whole.

    A message that changed stands on several lines: the last one counts. Sub-agents are sessions of their own.
    """
    header: dict[str, Any] = {}
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        record = _decoded(line)
        if record is None:
            return None
        if record.get("opencode") == "session" and record.get("id") == session_id:
            header = {name: value for name, value in record.items() if name in _HEADER_FIELDS}
        elif record.get("opencode") == "message" and record.get("session") == session_id:
            found[str(record.get("id"))] = record
    if not header or not all(map(_is_whole, found.values())):
        return None
    rename = _Rename(session_id, to_session)
    ordered = sorted(found.values(), key=lambda record: (_created(record), record["id"]))
    return OwnSession(header, [rename.message(record) for record in ordered])


def last_prompt(messages: Sequence[dict[str, Any]]) -> int:
    """Where the last message of a person stands; -1: nowhere."""
    places = [at for at, message in enumerate(messages) if message["info"].get("role") == "user"]
    return places[-1] if places else -1


def model_of(message: dict[str, Any]) -> str:
    """The model that a person's message names, as `provider/model`; empty where it names none."""
    model = message["info"].get("model")
    return f"{model.get('providerID')}/{model.get('modelID')}" if isinstance(model, dict) else ""


def with_model(messages: list[dict[str, Any]], at: int, model: str) -> list[dict[str, Any]]:
    """The same messages; the one at that place names this model."""
    provider, _, name = (model or _MODEL).partition("/")
    info = messages[at]["info"] | {"model": {"providerID": provider, "modelID": name}}
    return [*messages[:at], {**messages[at], "info": info}, *messages[at + 1 :]]


_HEADER_FIELDS = frozenset(("title", "version", "time", "agent", "model", "cost", "tokens", "summary"))


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_whole(record: dict[str, Any]) -> bool:
    info, parts = record.get("info"), record.get("parts")
    if not isinstance(info, dict) or not isinstance(parts, list):
        return False
    return not any("unreadable" in one for one in (info, *parts) if isinstance(one, dict))


def _created(record: dict[str, Any]) -> float:
    time = record["info"].get("time")
    at = time.get("created") if isinstance(time, dict) else None
    return at if isinstance(at, int | float) else 0


class _Rename:
    """Gives messages and parts ids of their own where the session becomes another one."""

    def __init__(self, session: str, to_session: str) -> None:
        self._session, self._to_session = session, to_session

    def _id(self, name: str) -> str:
        if self._session == self._to_session:
            return name
        return name[: _PREFIX_CHARACTERS + _TIME_DIGITS] + _tail(self._to_session, name)

    def message(self, record: dict[str, Any]) -> dict[str, Any]:
        name = self._id(record["id"])
        owned = {"id": name, "sessionID": self._to_session}
        if isinstance(parent := record["info"].get("parentID"), str):
            owned["parentID"] = self._id(parent)
        parts = [
            {
                **part,
                "id": self._id(str(part.get("id"))),
                "sessionID": self._to_session,
                "messageID": name,
            }
            for part in record["parts"]
        ]
        return {"info": {**record["info"], **owned}, "parts": parts}


class _Writer:
    """Makes messages of turns; knows the ids given so far."""

    def __init__(self, header: Header, before: Sequence[dict[str, Any]]) -> None:
        self._header = header
        provider, _, model = (header.model or _MODEL).partition("/")
        self._model = {"providerID": provider, "modelID": model}
        self._count = 0
        self._asked = ""
        self._clock = 0
        for message in before:
            if message["info"].get("role") == "user":
                self._asked = message["info"]["id"]
            self._clock = max(self._clock, _time_in(message["info"]["id"]))

    def messages(self, turns: Sequence[Turn]) -> list[dict[str, Any]]:
        return [self._message(turn, len(turns) - number) for number, turn in enumerate(turns)]

    def _message(self, turn: Turn, left: int) -> dict[str, Any]:
        message = turn.message
        at = min(_milliseconds(message), self._header.now // 1000 - left)
        name = self._id("msg", at, message.id)
        info: dict[str, Any] = {
            "id": name,
            "sessionID": self._header.session_id,
            "role": turn.role,
            "time": {"created": at},
            "agent": "build",
        }
        if turn.role == "user":
            self._asked = name
            info["model"] = self._model
        else:
            info |= self._answered(turn, name, at)
        owned = {"sessionID": self._header.session_id, "messageID": name}
        parts = [
            {**part, "id": self._id("prt", at, message.id, number), **owned}
            for number, part in enumerate(_parts(turn, at))
        ]
        return {"info": info, "parts": parts}

    def _answered(self, turn: Turn, name: str, at: int) -> dict[str, Any]:
        message = turn.message
        return {
            "time": {"created": at, "completed": at},
            "parentID": self._asked or name,
            "mode": "build",
            "path": {"cwd": self._header.workspace, "root": self._header.workspace},
            "cost": 0,
            "tokens": _NO_TOKENS,
            "providerID": message.provider or self._model["providerID"],
            "modelID": message.model or self._model["modelID"],
            "finish": "tool-calls" if turn.calls else "stop",
        }

    def _id(self, kind: str, at: int, *parts: Any) -> str:
        """Greater than every id before; `at`: milliseconds."""
        self._clock = max(self._clock + 1, (at << 12) & (1 << 48) - 1)
        return f"{kind}_{self._clock:012x}{_tail(self._header.session_id, *parts)}"


def _parts(turn: Turn, at: int) -> list[dict[str, Any]]:
    carried: dict[str, Any] = {"message": copied_form(turn.message, is_said=turn.is_said)}
    text = turn.text or ("" if turn.calls else "[a picture]")
    parts: list[dict[str, Any]] = []
    if text:
        if text != turn.text:
            carried = {"message": copied_form(turn.message, is_said=False)}
        parts.append({"type": "text", "text": text, "metadata": {FIELD: carried}})
        carried = {}
    parts += [_file(picture) for picture in turn.pictures]
    for call in turn.calls:
        result = call.result.message
        if result is not None:
            carried = carried | {"result": copied_form(result, is_said=False)}
        part = {"type": "tool", "callID": call.id, "tool": call.name, "state": _state(call, at)}
        parts.append(part | ({"metadata": {FIELD: carried}} if carried else {}))
        carried = {}
    return parts


def _state(call: Call, at: int) -> dict[str, Any]:
    result = call.result
    time = {"start": at, "end": at if result.message is None else max(at, _milliseconds(result.message))}
    given = {"input": call.named_arguments, "time": time}
    if result.is_error:
        return {"status": "error", "error": result.text or "failed", **given}
    return {"status": "completed", "output": result.text, "title": call.name, "metadata": {}, **given}


def _file(picture: Picture) -> dict[str, Any]:
    named = {"filename": picture.name} if picture.name else {}
    return {"type": "file", "mime": picture.media_type, **named, "url": picture.url}


def _milliseconds(message: Message) -> int:
    at = parse_time(message.ts)
    return (message.order if at is None else at) // 1000


def _time_in(name: str) -> int:
    digits = name[_PREFIX_CHARACTERS : _PREFIX_CHARACTERS + _TIME_DIGITS]
    try:
        return int(digits, 16)
    except ValueError:
        return 0


def _tail(*parts: Any) -> str:
    number = int.from_bytes(hashlib.sha256(derived_id("opencode", *parts).encode()).digest()[:12], "big")
    characters = []
    for _ in range(_TAIL_CHARACTERS):
        number, digit = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[digit])
    return "".join(characters)
