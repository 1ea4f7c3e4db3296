"""What another reader sees of a thread; its owner sees all of it.

Owns the decision for the API, links, exports, online search and MCP alike: whoever asks "may this be
shown?" in a second place will some day answer otherwise. What is decided here is *what* is shown; *whether*
at all is `visibility.may_read`. The lists say what is open, so that whatever a later version adds is closed
until somebody opens it.

Open: the turns that show, with their authors' names; title, tags, times, model, git context, branch names
and visibility. The owner's alone: drafts, turns that were taken back, pending jobs, agent state,
`workspace_root` and `cwd`, notices (what a program put into the context: instructions, paths, open files),
device ids (so also who wrote a register, and the values that nobody settled), the id of the imported
session, server handles, pins and archive marks, `extra` and unknown fields.
"""

from __future__ import annotations

from raddle.model.threads.delta import Delta
from raddle.model.threads.message import NOTICE, Attachment, Message
from raddle.model.threads.register import Register, one_write
from raddle.model.threads.thread import Thread

_OPEN = frozenset(
    {
        "created_at",
        "git",
        "git_initial",
        "git_remote_url",
        "last_activity_at",
        "model",
        "title",
        "updated_at",
        "visibility",
    }
)
_OPEN_FAMILIES = frozenset({"commit", "tag"})


def view_for(thread: Thread, *, viewer_is_owner: bool) -> Thread:
    """The thread as the viewer sees it: itself for its owner, else a copy that holds only what is open.

    A private or deleted thread has nothing open. The copy is no state to sync: its registers name no device.
    """
    if viewer_is_owner:
        return thread
    view = Thread(thread.id)
    if thread.is_private or thread.is_deleted:
        return view
    messages = tuple(as_others_see(message) for message in thread.tree.shown())
    view.join(
        Delta(
            version=thread.version,
            messages=messages,
            registers=_open_registers(thread, {message.id for message in messages}),
        )
    )
    return view


def as_others_see(message: Message) -> Message:
    """A shown turn for a reader who is not the owner. A notice keeps its place in the tree, not its words."""
    if message.kind == NOTICE:
        return Message(
            id=message.id,
            parent_id=message.parent_id,
            branch_id=message.branch_id,
            role=message.role,
            ts=message.ts,
            seq=message.seq,
            rev=message.rev,
            is_sidechain=message.is_sidechain,
            kind=NOTICE,
        )
    return Message(
        id=message.id,
        parent_id=message.parent_id,
        branch_id=message.branch_id,
        role=message.role,
        content=message.content,
        ts=message.ts,
        seq=message.seq,
        rev=message.rev,
        author=message.author,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        tool_name=message.tool_name,
        is_error=message.is_error,
        thinking=message.thinking,
        attachments=tuple(_without_folder(attachment) for attachment in message.attachments),
        provider=message.provider,
        model=message.model,
        policy_id=message.policy_id,
        usage=message.usage,
        is_sidechain=message.is_sidechain,
        kind=message.kind,
    )


def only_path(thread: Thread, leaf: str) -> Thread:
    """The thread with no turn but those from the root to `leaf`, and no register that names another turn.

    What it holds is the thread's own state, stamps and all: joining it into the thread changes nothing.
    """
    path = thread.tree.path_to_root(leaf)
    ids = {message.id for message in path}
    part = Thread(thread.id)
    part.join(
        Delta(
            version=thread.version,
            messages=tuple(path),
            registers={
                path: register
                for path, register in thread.registers.items()
                if _named_messages(path, register) <= ids
            },
        )
    )
    return part


def _open_registers(thread: Thread, shown: set[str]) -> dict[str, Register]:
    registers: dict[str, Register] = {}
    for path, register in thread.registers.items():
        family = path.partition("/")[0]
        is_open = path in _OPEN or family in _OPEN_FAMILIES or (family == "branch" and path.endswith("/name"))
        value = thread.shows(path) if is_open and _named_messages(path, register) <= shown else None
        if value is not None:
            n = register.first.n if family == "commit" else register.latest.n
            registers[path] = one_write(n, "", value)
    source = thread.source
    if source is not None:
        told = {"agent": source.agent, "session_id": ""}
        registers["source"] = one_write(thread.registers["source"].first.n, "", told)
    return registers


def _named_messages(path: str, register: Register) -> set[str]:
    """The messages that a register names, in its path or in its values."""
    family, _, name = path.partition("/")
    if family == "gone":
        return {name}
    if family == "branch":
        return {name.rpartition("/")[0]}
    values = [write.value for write in register.writes if isinstance(write.value, dict)]
    if family == "draft":
        return {target for targets in values for target in targets} - {"root"}
    if family == "job":
        return {entry["parent_id"] for entry in values if isinstance(entry.get("parent_id"), str)}
    return set()


def _without_folder(attachment: Attachment) -> Attachment:
    name = attachment.name.replace("\\", "/").rpartition("/")[2]
    return Attachment(
        sha256=attachment.sha256,
        media_type=attachment.media_type,
        name=name,
        size=attachment.size,
        is_body=attachment.is_body,
    )
