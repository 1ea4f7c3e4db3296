"""Files that raddle did not write, or not last: their fields become edits, their linear messages a tree.

Four ways in, all of which lose nothing:
- `first_sight`: nothing is known of the thread. Equal copies on two machines become one write, different ones
  concurrent values.
- `adopt`: the last known state is there. Each field that reads otherwise is one more edit of this device; a
  field the seed's programs do not know says nothing by its absence; unknown turns are appended. A rewrite
  that touched nothing changes nothing.
- `with_new_words`: messages whose text somebody changed in the file, or put back as it was before that.
- `migrated_messages`: a linear list gets ids, parents and one branch, the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from raddle.model.clock import parse_time
from raddle.model.ids import canonical_json, derived_id
from raddle.model.threads.codec import Decoded
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import ROOT, Author, Editor
from raddle.model.threads.message import Message, changed
from raddle.model.threads.message_codec import decode_message
from raddle.model.threads.plain_fields import plain_of, registers_shown
from raddle.model.threads.register import Register, one_write
from raddle.model.threads.thread import Thread

_EARLIER_TEXTS = "earlier_texts"
"""In a message's `extra`: hashes of the texts that stood there before somebody changed them in the file."""


def open_file(decoded: Decoded, known: Thread | None, author: Author) -> Thread:
    """The thread that a file holds, on top of what was `known` of it (None: nothing)."""
    if decoded.is_as_written and decoded.has_ids:
        return decoded.thread()
    if known is None and decoded.is_stamped:
        known = decoded.thread()
    return first_sight(decoded) if known is None else adopt(known, decoded, author)


def first_sight(decoded: Decoded) -> Thread:
    """A file without stamps, met for the first time: n = its `updated_at`, device = `~` + a hash of the value."""
    shown = registers_shown(decoded.plain)
    n = parse_time(str(shown.get("updated_at", ""))) or parse_time(str(shown.get("created_at", ""))) or 0
    n = max(n, 0)
    registers: dict[str, Register] = {
        path: one_write(n + (position if path.startswith("commit/") else 0), "~" + _hash(value), value)
        for position, (path, value) in enumerate(shown.items())
    }
    deleted_at = decoded.plain.get("deleted_at")
    if isinstance(deleted_at, str):
        registers["deleted"] = one_write(n, "~" + _hash(deleted_at), {"at": deleted_at, "seen": {}})
    created = parse_time(str(shown.get("created_at", ""))) or 0
    messages = migrated_messages(decoded.id, decoded.messages, created)
    registers |= _at_the_tip(decoded.plain, messages[-1].id if messages else None, n)
    thread = Thread(decoded.id)
    thread.join(Delta(version=decoded.version, messages=tuple(messages), registers=registers))
    return thread


def _at_the_tip(plain: Mapping[str, Any], tip: str | None, n: int) -> dict[str, Register]:
    """`draft` and `pending_job` of the second seed's kind: one each, and they belong to the last turn."""
    registers: dict[str, Register] = {}
    draft, job_id = plain.get("draft"), plain.get("pending_job")
    if isinstance(draft, str) and draft:
        registers["draft/~seed"] = one_write(n, "~" + _hash(draft), {tip or ROOT: draft})
    if isinstance(job_id, str) and job_id:
        entry = {"parent_id": tip, "responder": "", "launched_at": ""}
        registers[f"job/{job_id}"] = one_write(n, "~" + _hash(entry), entry)
    return registers


def adopt(known: Thread, decoded: Decoded, author: Author) -> Thread:
    """`known` with what the file says otherwise as edits of this device; `known` itself is not changed."""
    thread = known.copy()
    thread.join(Delta(version=decoded.version, registers=decoded.stamps if decoded.is_as_written else {}))
    shown = registers_shown(decoded.plain)
    before = registers_shown(plain_of(thread))
    editor = Editor(thread, author)
    for message in _unknown_turns(thread, decoded.messages):
        editor.put(message)
    for path, value in shown.items():
        if _is_edit(path, value, before.get(path), is_known=path in thread.registers):
            editor.write(path, value)
    for path in before:
        if path not in shown and path.startswith("tag/") and "metadata" in decoded.plain:
            editor.write(path, False)
    if "title" in before and "title" not in shown and "metadata" in decoded.plain:
        editor.write("title", None)
    editor.delta()
    return thread


def with_new_words(known: Thread, decoded: Decoded) -> Delta:
    """What the file says otherwise in the text of messages that are `known`, as later forms (`rev`) of them.

    Two forms of one `rev` are joined by no rule of time, so the file's would stand or fall by its letters. A form
    of a lesser `rev` is an old copy and says nothing, unless it is what stood there before an edit of this kind:
    then somebody put it back. A purged message stays purged.
    """
    later = (_reworded(known.tree.get(one.id), one) for one in decoded.messages if isinstance(one, Message))
    return Delta(
        base_version=known.version,
        version=known.version,
        messages=tuple(message for message in later if message is not None),
    )


def _reworded(mine: Message | None, theirs: Message) -> Message | None:
    """`mine` with the text of `theirs`, where that is an edit of it."""
    if mine is None or mine.is_purged or theirs.is_purged or theirs.content == mine.content:
        return None
    noted = mine.extra.get(_EARLIER_TEXTS)
    earlier = [one for one in noted if isinstance(one, str)] if isinstance(noted, list) else []
    is_put_back = theirs.rev < mine.rev and _hash(theirs.content) in earlier
    if theirs.rev != mine.rev and not is_put_back:
        return None
    earlier = list(dict.fromkeys([*earlier, _hash(mine.content)]))
    extra = {**mine.extra, _EARLIER_TEXTS: earlier}
    return changed(mine, content=theirs.content, rev=mine.rev + 1, extra=extra)


def _is_edit(path: str, value: Any, before: Any, *, is_known: bool) -> bool:
    """Does a field that reads otherwise say something new? Not a job that we know better, nor an older time."""
    if canonical_json(value) == canonical_json(before):
        return False
    if path in ("updated_at", "last_activity_at"):
        return (parse_time(str(value)) or 0) > (parse_time(str(before)) or 0)
    return not (is_known and path.startswith("job/"))


def migrated_messages(thread_id: str, messages: Sequence[Any], created: int) -> list[Message]:
    """Messages with ids as they are; those without get derived ids, each chained under the one before it.

    `created` (µs) starts the order of messages that carry no time. Loading one list twice gives equal ids;
    two lists that share their beginning share its messages.
    """
    migrated: list[Message] = []
    before: Message | None = None
    order = created - 1
    for message in messages:
        if isinstance(message, Message):
            whole = message
        else:
            whole = _with_place(thread_id, message, before, order)
        order = max(order, whole.order)
        migrated.append(whole)
        before = whole
    return migrated


def _with_place(thread_id: str, plain: Mapping[str, Any], before: Message | None, order: int) -> Message:
    message_id = linear_id(thread_id, before.id if before is not None else None, plain)
    ts = plain.get("ts")
    time = parse_time(ts) if isinstance(ts, str) else None
    seq = max(time if time is not None else 0, order + 1)
    parent_id = plain.get("parent_id") if isinstance(plain.get("parent_id"), str) else None
    fields = dict(plain) | {
        "id": message_id,
        "parent_id": parent_id or (before.id if before is not None else None),
        "branch_id": plain.get("branch_id") or (before.branch_id if before is not None else message_id),
    }
    if seq != time:
        fields["seq"] = seq
    return decode_message(fields)


def linear_id(thread_id: str, before_id: str | None, plain: Mapping[str, Any]) -> str:
    """The id of a message of a linear list: from its thread, the id before it, and what it says."""
    return derived_id(
        "linear",
        thread_id,
        before_id,
        plain.get("role"),
        plain.get("content", ""),
        plain.get("tool_calls") or [],
    )


def _unknown_turns(thread: Thread, messages: Sequence[Any]) -> Iterable[Message]:
    """The file's messages that the thread does not hold: those without ids are matched, in order, by what they say."""
    there = list(thread.tree)
    at = 0
    before: Message | None = None
    found: list[Message] = []
    for message in messages:
        if isinstance(message, Message):
            if message.id not in thread.tree:
                found.append(message)
            before = thread.tree.get(message.id) or message
            continue
        match = next(
            (index for index in range(at, len(there)) if _says_the_same(there[index], message)), None
        )
        if match is not None:
            at, before = match + 1, there[match]
            continue
        before = _with_place(thread.id, message, before, max(thread.clock, before.order if before else 0))
        if before.id not in thread.tree:
            found.append(before)
    return found


def _says_the_same(message: Message, plain: Mapping[str, Any]) -> bool:
    calls = plain.get("tool_calls") or []
    return (
        message.role == plain.get("role")
        and message.content == (plain.get("content") or "")
        and [call.id for call in message.tool_calls]
        == [call.get("id") for call in calls if isinstance(call, dict)]
        and message.tool_call_id == (plain.get("tool_call_id") or "")
    )


def _hash(value: Any) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()[:8]
