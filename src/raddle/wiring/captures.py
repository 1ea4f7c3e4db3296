"""One session captured because its agent said that it went on: just its files are read, and git is asked.

An agent waits for what it calls, so this runs in a process of its own (`set_off`), and says what went wrong to the log
alone. What is read lies in the agent's own home: an agent, or whoever speaks in its name, opens no other file to us.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from raddle.adapters.path_names import normalised
from raddle.model.clock import system_clock
from raddle.model.errors import InvalidInput, NotFound, RaddleError
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.model.threads.thread import Thread

_PATIENCE = 12
"""So many times five seconds an import that is running may take: what it does not read is read after it."""
_GIT_SECONDS = 3.0
_END_SECONDS = 1.0
"""At its end an agent may take its machine with it (a container): so long it is kept waiting, and it gives 1.5."""
_LONGEST_LINE = 2000
_SESSION_ID = re.compile(r"[0-9A-Za-z_-]{8,80}\Z")
_NAMED_BY_SESSION = {
    "codex": ("sessions/*/*/*/rollout-*-{id}.jsonl*", "archived_sessions/rollout-*-{id}.jsonl*"),
    "gemini-cli": ("tmp/*/chats/session-*{short}*", "tmp/*/chats/{id}/*"),
    "claude-code": ("projects/*/{id}.jsonl",),
}
"""Where a session's file lies whose path the agent did not tell."""


class Told(Struct, frozen=True, kw_only=True):
    """What an agent tells of the session that went on: its file, its id, where it works; empty where it does not."""

    agent: str
    path: str = ""
    session: str = ""
    cwd: str = ""
    is_end: bool = False


def told_by(agent: str, payload: bytes) -> Told | None:
    """What the JSON that an agent hands to its hook says; None where it says of no session."""
    try:
        plain = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(plain, dict):
        return None
    told = Told(
        agent=agent,
        path=_text(plain.get("transcript_path")),
        session=_text(plain.get("session_id") or plain.get("thread-id")),
        cwd=_text(plain.get("cwd")),
        is_end=plain.get("hook_event_name") == "SessionEnd",
    )
    return told if told.path or told.session else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) and "\0" not in value else ""


def set_off(told: Told) -> None:
    """Have it captured by a process of its own, and come back at once; at a session's end, a little later."""
    from raddle.adapters.programs import start_alone  # noqa: PLC0415

    # -P: what lies in the folder that the agent works in is no module of ours.
    argv = [sys.executable, "-P", "-m", "raddle", "hooks", "run", told.agent, "--here"]
    start_alone(argv, input=msgspec.json.encode(told), wait_seconds=_END_SECONDS if told.is_end else 0.0)


def handed_on(data: bytes) -> Told:
    """What `set_off` hands to the process it starts. InvalidInput where that is not all there."""
    try:
        return msgspec.json.decode(data, type=Told)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"what was told of the session cannot be read: {error}") from error


def capture(stores: Stores, told: Told) -> None:
    """Import the session's files, and note what git says where the session works. What goes wrong is logged."""
    try:
        paths = list(_files_of(stores, told))
        if not paths:
            raise NotFound("session in its own home", told.path or told.session)
        _import(stores, told.agent, paths)
        _note_git(stores, paths, told.cwd)
    except RaddleError as error:
        note(told.agent, f"{error.code}: {error.message}", stores)


def note(agent: str, what: str, stores: Stores | None = None) -> None:
    """A line in the log, that of `stores` where there are any.

    Nothing where not even that can be written: an agent must not suffer from it.
    """
    from raddle.adapters.files import append_durable, make_folder  # noqa: PLC0415
    from raddle.adapters.paths import LOG_NAME  # noqa: PLC0415
    from raddle.config import state_folder  # noqa: PLC0415
    from raddle.model.clock import format_time  # noqa: PLC0415

    clock = system_clock if stores is None else stores.clock
    words = f"{format_time(clock())} hooks run {agent}: {what}".split()
    line = " ".join(words)[:_LONGEST_LINE] + "\n"
    with contextlib.suppress(RaddleError):
        folder = state_folder() if stores is None else stores.paths.state_dir
        make_folder(folder)
        append_durable(folder / LOG_NAME, line.encode("utf-8", "replace"))


def _files_of(stores: Stores, told: Told) -> Iterator[str]:
    """The session's file, and the folder of its sub-agents' beside it, by the names that a search meets them by."""
    from raddle.wiring.importing import Finder  # noqa: PLC0415

    homes = Finder(stores, [told.agent], {}).folders()
    found = [Path(told.path)] if told.path and Path(told.path).is_absolute() else []
    if not any(path.is_file() for path in found):
        found = list(_named_by(stores, told))
    names = dict.fromkeys(name for path in found for name in _names_in(homes, str(path)))
    if found and not names:
        raise NotFound(f"session of {told.agent} in its own home", str(found[0]))
    for name in names:
        yield name
        beside = Path(name).with_suffix("")
        if beside.is_dir():
            yield str(beside)


def _names_in(homes: Iterable[Path], path: str) -> Iterator[str]:
    """What the file is called in the homes that it really lies in, whatever links and `..` lead to it."""
    real = Path(os.path.realpath(path))
    for home in homes:
        real_home = Path(os.path.realpath(home))
        if real.is_relative_to(real_home):
            plain = normalised(path)
            if Path(plain).is_relative_to(home) and os.path.realpath(plain) == str(real):
                yield plain
            yield str(home / real.relative_to(real_home))


def _named_by(stores: Stores, told: Told) -> Iterator[Path]:
    from raddle.adapters.agent_settings.hook_settings import AGENTS, folder_of  # noqa: PLC0415

    if _SESSION_ID.match(told.session) is None:
        return
    config = stores.config
    home = Path(config.environment("HOME") or "~").expanduser()
    agent = next(agent for agent in AGENTS if agent.agent == told.agent)
    folder = folder_of(agent, config.environment, home)
    for pattern in _NAMED_BY_SESSION[told.agent]:
        yield from sorted(folder.glob(pattern.format(id=told.session, short=told.session[:8])))


def _import(stores: Stores, agent: str, paths: list[str]) -> None:
    from raddle.wiring.import_lock import ImportIsRunning  # noqa: PLC0415
    from raddle.wiring.importing import import_sessions  # noqa: PLC0415

    for attempt in range(1, _PATIENCE + 1):
        try:
            report = import_sessions(stores, [agent], changed=paths)
        except ImportIsRunning:
            if attempt == _PATIENCE:
                raise
            continue
        for problem in report.problems:
            what = f"{problem.path}, line {problem.line or 0}: {problem.reason}"
            note(agent, what, stores)
        for left in report.left_out:
            note(agent, f"a session was left out by {left.reason}", stores)
        return


def _note_git(stores: Stores, paths: list[str], cwd: str) -> None:
    """Note branch and commit of this moment, where the session's own records do not say them."""
    from raddle.adapters.git import commits_between, read_git  # noqa: PLC0415
    from raddle.adapters.git_head_log import commits_made, moves_from  # noqa: PLC0415
    from raddle.model.threads.deletion import is_real_device  # noqa: PLC0415
    from raddle.model.threads.edits import Editor  # noqa: PLC0415

    entries = stores.ledger.entries()
    thread_id = next((entries[path].thread_id for path in paths if path in entries), "")
    folder = Path(cwd)
    if not thread_id or not folder.is_absolute() or not folder.is_dir():
        return
    try:
        thread = stores.threads.load(thread_id)
    except NotFound:  # purged, or left out by a rule
        return
    if thread.is_deleted:
        return
    snapshot = read_git(folder, timeout=_GIT_SECONDS)
    root = thread.plain("workspace_root")
    if snapshot is None or snapshot.root is None or not _lies_in(root or cwd, snapshot.root):
        return  # it looks at another repository just now
    last = thread.plain("git_current_commit_sha")
    is_news = snapshot.head is not None and isinstance(last, str) and last != snapshot.head
    commits = commits_between(folder, last, snapshot.head or "") if is_news else ()
    seen = {*thread.git_commits, *commits}
    aside = commits_made(folder, moves_from(folder, _last_look_at_git(thread)), known=seen)
    commits = (*(sha for sha in aside if sha not in seen), *commits)

    def write(editor: Editor) -> None:
        is_news = snapshot.remote != editor.thread.shows("git_remote_url")
        if is_news and stores.rules.makes_private(None, snapshot.remote) and not editor.thread.is_private:
            editor.set_private(True)
        git = editor.thread.registers.get("git")
        if git is None or any(is_real_device(write.device) for write in git.writes):
            editor.snapshot_git(snapshot, commits)
            return
        # The session says its branch itself, and is heard no more once this device has: only what it leaves out.
        for sha in (*commits, *filter(None, (snapshot.head,))):
            editor.write(f"commit/{sha}", True)
        if snapshot.remote and editor.thread.shows("git_remote_url") is None:
            editor.write("git_remote_url", snapshot.remote)

    stores.threads.apply(thread_id, write)


def _last_look_at_git(thread: Thread) -> int:
    """When this or another device last noted a commit, else when the session began, in seconds of the Unix time."""
    from raddle.model.clock import parse_time  # noqa: PLC0415
    from raddle.model.threads.deletion import is_real_device  # noqa: PLC0415

    noted = [
        write.n
        for _, register in thread.family("commit")
        for write in register.writes
        if is_real_device(write.device)
    ]
    return max(noted, default=parse_time(thread.time("created_at")) or 0) // 1_000_000


def _lies_in(path: str, folder: str) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
