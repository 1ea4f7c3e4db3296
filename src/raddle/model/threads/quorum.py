"""The second seed's thread file, read and written as its own program does.

Owns the meeting of the two models: over there ids are any text, times whole seconds, the order is the list's,
there is one draft and one pending job, and a turn that was taken back is gone from the file. Whatever has no
place here (unknown fields, values of another type, ids that could not stand for a message everywhere) is kept
under `metadata.extra.quorum` and each message's `extra.quorum`, and goes back into the file it came from.

A thread read here is imported: its id is derived from the file's and its registers are an importer's, so that
two machines that read one file have one thread. A file that raddle itself exported bears the id of its thread. It has
less in it than that one, so where that one is known only new turns are taken (`turns_for`); where it is not, the
file is a thread of its own too: joined later, half a message must not meet the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.clock import format_time, parse_time
from raddle.model.errors import BrokenFormat, NotFound
from raddle.model.ids import canonical_json, derived_id, derived_thread_id
from raddle.model.threads.adopt import linear_id
from raddle.model.threads.codec import told_apart
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import ROOT, imported_registers
from raddle.model.threads.message import NOTICE, Message
from raddle.model.threads.thread import Thread
from raddle.model.tolerant_json import decode_tolerantly

AGENT = "quorum"
RESPONDER = "orchestrator"
"""Who answers a job of its: it knows no other way to get an answer."""

_EXTRA = "x/metadata/extra/quorum"
_DRAFT = f"draft/{AGENT}"
_CONTEXT = ("active_policy", "orchestrator", "server_thread")
_TEXTS = ("subject", *_CONTEXT, "pending_job", "draft")
_FIELDS = frozenset({"id", "created", "updated", "messages", *_TEXTS})
_MESSAGE_FIELDS = frozenset({"id", "parent_id", "branch_id", "role", "content", "policy_id", "job_id", "ts"})
_SECOND = 1_000_000
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\Z")

Write = tuple[str, int, Any]
"""(path, n in microseconds, value) of a register that an importer writes."""


class QuorumFile(Struct, frozen=True, kw_only=True):
    """A file as read. `session_id`: its own id. `n`: when it was last updated, in microseconds."""

    session_id: str
    thread_id: str
    n: int
    messages: tuple[Message, ...]
    writes: tuple[Write, ...]
    problems: tuple[str, ...] = ()

    def delta(self, known: Thread | None = None) -> Delta:
        """What the file says, on top of what is `known` of its thread.

        Messages that are known stay as they are, registers that a person wrote are left alone, and a field
        that the file no longer has is cleared. A turn that it no longer has stays.
        """
        there = known or Thread(self.thread_id)
        return Delta(
            version=max(there.version, 1),
            messages=tuple(message for message in self.messages if message.id not in there.tree),
            registers=imported_registers(there.registers, self._writes_on(there)),
        )

    def turns_for(self, origin: Thread) -> Delta:
        """What an export of `origin`, with which its program went on, adds to it: turns that it does not know.

        Each stands behind the one it answers whatever that program's clock, which knows whole seconds, says; and so
        on every machine, since it depends on that one alone.
        """
        there = origin.tree
        orders: dict[str, int] = {}
        news = []
        for message in self.messages:
            own = _odd(message)
            if own.get("id", message.id) in there or message.id in there:
                continue
            named = own.get("parent_id")
            parent_id = named if isinstance(named, str) and named in there else message.parent_id
            parent = there.get(parent_id) if parent_id is not None else None
            after = parent.order if parent is not None else orders.get(parent_id or "", -1)
            orders[message.id] = order = max(message.order, after + 1)
            seq = None if message.ts and order == parse_time(message.ts) else order
            news.append(msgspec.structs.replace(message, parent_id=parent_id, seq=seq))
        return Delta(version=max(origin.version, 1) if news else 0, messages=tuple(news))

    def thread(self) -> Thread:
        """The thread, where nothing is known of it yet."""
        thread = Thread(self.thread_id)
        thread.join(self.delta())
        return thread

    def _writes_on(self, known: Thread) -> Iterable[Write]:
        """The file's writes that say something new.

        Its program does not touch `updated` for a draft or a job, so what differs while `updated` stands
        still is the later word.
        """
        written = {path for path, _, _ in self.writes}
        gone = [(path, self.n, None) for path in known.registers if _is_ours(path) and path not in written]
        for path, n, value in (*self.writes, *gone):
            register = known.registers.get(path)
            if register is not None and canonical_json(register.values[-1:]) == canonical_json([value]):
                continue
            is_same_second = register is not None and register.clock // _SECOND == n // _SECOND
            yield path, register.clock + 1 if register is not None and is_same_second else n, value


def _is_ours(path: str) -> bool:
    return path in ("title", *_CONTEXT, _DRAFT, _EXTRA) or path.startswith("job/")


def is_quorum(plain: Any) -> bool:
    """Is this JSON value a thread of the second seed, and no thread file of ours or of the first?"""
    return (
        isinstance(plain, dict)
        and isinstance(plain.get("id"), str)
        and isinstance(plain.get("messages", []), list)
        and "conversation" not in plain
        and "subject" in plain
        and "created" in plain
    )


def decode_quorum(data: bytes) -> QuorumFile:
    """A file's bytes as read.

    BrokenFormat where they are no JSON object with an id and a list of messages. Damage smaller than that
    costs what it touches, and is named in `problems`.
    """
    problems: list[str] = []
    plain = _decode(data, problems)
    session_id, listed = plain.get("id"), plain.get("messages", [])
    if not isinstance(session_id, str) or not session_id:
        raise BrokenFormat("the file holds no thread: it has no id")
    if not isinstance(listed, list):
        raise BrokenFormat("the thread's messages are not a list")
    created = _time(plain.get("created"), "the thread's created", problems)
    updated = _time(plain.get("updated"), "the thread's updated", problems)
    thread_id = derived_thread_id(created, "thread", AGENT, session_id)
    messages = _read_messages(thread_id, session_id, listed, problems)
    n = max(updated or created or 0, 0)
    tip = messages[-1].id if messages else None
    return QuorumFile(
        session_id=session_id,
        thread_id=thread_id,
        n=n,
        messages=tuple(messages),
        writes=(
            ("source", max(created or 0, 0), {"agent": AGENT, "session_id": session_id}),
            *(() if created is None else (("created_at", max(created, 0), format_time(created)),)),
            *_writes(plain, updated, tip, n, problems),
        ),
        problems=tuple(problems),
    )


def _decode(data: bytes, problems: list[str]) -> dict[str, Any]:
    try:
        plain = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        plain, repairs = decode_tolerantly(data, is_whole=True)
        problems.extend(repairs)
    if not isinstance(plain, dict):
        raise BrokenFormat("the file is not a JSON object")
    return plain


def _time(value: Any, what: str, problems: list[str]) -> int | None:
    """Whole seconds as microseconds; None where no time can be made of them."""
    if isinstance(value, int) and not isinstance(value, bool):
        microseconds = value * _SECOND
        if parse_time(format_time(microseconds)) == microseconds:
            return microseconds
    problems.append(f"{what} is not a time in seconds")
    return None


def _writes(
    plain: Mapping[str, Any], updated: int | None, tip: str | None, n: int, problems: list[str]
) -> Iterable[Write]:
    texts, odd = _texts_of(plain, problems)
    if updated is not None:
        yield "updated_at", n, format_time(updated)
        yield "last_activity_at", n, format_time(updated)
    if "subject" in texts:
        yield "title", n, texts["subject"]
    yield from ((name, n, texts[name]) for name in _CONTEXT if name in texts)
    if "pending_job" in texts:
        entry = {"parent_id": tip, "responder": RESPONDER, "launched_at": ""}
        yield f"job/{texts['pending_job']}", n, entry
    if "draft" in texts:
        yield _DRAFT, n, {tip or ROOT: texts["draft"]}
    if odd:
        yield _EXTRA, n, odd


def _texts_of(plain: Mapping[str, Any], problems: list[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The thread's texts that say something, and all that has no place in a register of its own."""
    odd = {name: value for name, value in plain.items() if name not in _FIELDS}
    texts: dict[str, str] = {}
    for name in _TEXTS:
        value = plain.get(name)
        if isinstance(value, str) and value:
            texts[name] = value
        elif value is not None and (name, value) != ("subject", ""):
            odd[name] = value
            if value != "":
                problems.append(f"the thread's {name} is not text")
    for name in ("created", "updated"):
        if name in plain and _time(plain[name], name, []) is None:
            odd[name] = plain[name]
    return texts, odd


def _read_messages(thread_id: str, session_id: str, listed: list[Any], problems: list[str]) -> list[Message]:
    """The messages in the file's order, which `seq` keeps; one without an id goes under the one before it."""
    messages: list[Message] = []
    entries: dict[str, Any] = {}
    seq = -1
    for number, entry in enumerate(listed, 1):
        if not isinstance(entry, dict):
            problems.append(f"message {number} is not an object: kept as text")
            entry = {"role": "unknown", "content": canonical_json(entry).decode()}
        found = _read_message(entry, session_id, f"message {number}", problems)
        if not found["id"]:
            found |= _place_of(thread_id, entry, found, messages[-1] if messages else None)
        elif entries.get(found["id"]) == entry:
            problems.append(f"message {number} stands twice: taken once")
            continue
        entries.setdefault(found["id"], entry)
        time = parse_time(found["ts"])
        seq = max(time if time is not None else 0, seq + 1)
        messages.append(Message(**found, seq=None if seq == time else seq))
    return told_apart(messages, problems)


def _place_of(
    thread_id: str, entry: Mapping[str, Any], found: Mapping[str, Any], before: Message | None
) -> dict[str, Any]:
    """Id, parent and branch of a message that has no id: as the line of the list says, where it says no
    more.
    """
    own_id = linear_id(thread_id, before.id if before is not None else None, entry)
    parent_id = found["parent_id"] or (before.id if before is not None else None)
    goes_on = before is not None and parent_id == before.id
    line = before.branch_id if before is not None and goes_on else own_id
    return {"id": own_id, "parent_id": parent_id, "branch_id": found["branch_id"] or line}


def _read_message(
    entry: Mapping[str, Any], session_id: str, name: str, problems: list[str]
) -> dict[str, Any]:
    """The fields of a message; what does not fit its field stands in `extra.quorum`."""
    odd = {key: value for key, value in entry.items() if key not in _MESSAGE_FIELDS}
    texts: dict[str, str] = {}
    for key in ("id", "parent_id", "branch_id", "role", "content", "policy_id", "job_id"):
        value = entry.get(key)
        texts[key] = value if isinstance(value, str) else ""
        if value is not None and not isinstance(value, str):
            problems.append(f"{name}: its {key} is not text")
            odd[key] = value
    for key in ("id", "parent_id"):
        mapped = _message_id(session_id, texts[key])
        if mapped != texts[key]:
            odd[key] = texts[key]
            texts[key] = mapped
    time = _time(entry.get("ts"), f"{name}: its ts", problems)
    if time is None and "ts" in entry:
        odd["ts"] = entry["ts"]
    if "content" in odd:
        texts["content"] = canonical_json(odd["content"]).decode()
    return {
        **texts,
        "parent_id": texts["parent_id"] or None,
        "role": texts["role"] or "unknown",
        "ts": "" if time is None else format_time(time),
        "extra": {AGENT: odd} if odd else {},
    }


def _message_id(session_id: str, own: str) -> str:
    """An id that means this message in every thread: its own where that is a UUID, else one made of it."""
    return own if not own or _UUID.match(own) is not None else derived_id(AGENT, session_id, own)


def encode_quorum(thread: Thread, leaf: str | None = None) -> bytes:
    """The thread as the second seed's program writes it; `leaf`: only the path from the root to it.

    Shown messages only. Notices and sub-agents' turns, which it does not know, are left out, and what stands
    under them moves up. Tool calls and attachments have no place in its messages. Of several jobs the latest
    is named, of several drafts the one under the tip. NotFound for an unknown leaf.
    """
    messages = _kept(thread, leaf)
    tip = messages[-1].id if messages else None
    source = thread.source
    jobs = [job.job_id for job in thread.pending_jobs]
    plain: dict[str, Any] = {
        "id": source.session_id if source is not None and source.agent == AGENT else thread.id,
        "subject": thread.title,
        "created": _seconds(thread.time("created_at")),
        "updated": _seconds(thread.time("updated_at")),
        **{name: thread.shows(name) for name in _CONTEXT if isinstance(thread.shows(name), str)},
        **({"pending_job": jobs[-1]} if jobs else {}),
        **_draft(thread, tip),
    }
    odd = thread.shows(_EXTRA)
    if isinstance(odd, dict):
        plain |= {name: value for name, value in odd.items() if not plain.get(name)}
    plain["messages"] = _written(thread, messages)
    return msgspec.json.format(msgspec.json.encode(plain), indent=2)


def _kept(thread: Thread, leaf: str | None) -> list[Message]:
    if leaf is None:
        shown: Iterable[Message] = (message for message in thread.tree.shown() if not message.is_sidechain)
    elif leaf in thread.tree:
        shown = thread.tree.path_to_root(leaf)
    else:
        raise NotFound("message", leaf, f"`raddle show {thread.id} --tree` lists them")
    return [message for message in shown if message.kind != NOTICE]


def _seconds(time: str) -> int:
    return (parse_time(time) or 0) // _SECOND


def _draft(thread: Thread, tip: str | None) -> dict[str, str]:
    """The draft under the tip: the one that its program wrote, else that of the first device that has one."""
    drafts = thread.drafts
    for device in sorted(drafts, key=lambda device: (device != AGENT, device)):
        text = drafts[device].get(tip or ROOT)
        if text:
            return {"draft": text}
    elsewhere = list(drafts.get(AGENT, {}).values())
    return {"draft": elsewhere[-1]} if elsewhere else {}


def _written(thread: Thread, messages: list[Message]) -> list[dict[str, Any]]:
    own_ids = {message.id: _odd(message).get("id") or message.id for message in messages}
    return [_written_message(thread, message, own_ids) for message in messages]


def _written_message(thread: Thread, message: Message, own_ids: Mapping[str, str]) -> dict[str, Any]:
    """A message in the order of its program's own fields, what it had besides at the end."""
    parent_id = _written_parent(thread, message.parent_id, own_ids)
    return {
        "id": own_ids[message.id],
        **({} if parent_id is None else {"parent_id": parent_id}),
        "branch_id": thread.tree.branch_of(message.id),
        "role": message.role,
        "content": message.content,
        **({"policy_id": message.policy_id} if message.policy_id else {}),
        **({"job_id": message.job_id} if message.job_id else {}),
        "ts": _seconds(message.ts),
        **_odd(message),
    }


def _written_parent(thread: Thread, parent_id: str | None, own_ids: Mapping[str, str]) -> str | None:
    """The nearest message above that is written; an id that the thread does not know stays as it is."""
    if parent_id is None or parent_id in own_ids or parent_id not in thread.tree:
        return own_ids.get(parent_id or "", parent_id)
    above = [message.id for message in thread.tree.path_to_root(parent_id) if message.id in own_ids]
    return own_ids[above[-1]] if above else None


def _odd(message: Message) -> Mapping[str, Any]:
    odd = message.extra.get(AGENT)
    return odd if isinstance(odd, dict) else {}
