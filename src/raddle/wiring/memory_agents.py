"""What an agent does to a project as such: make its memory in one call, and tell the next agent of it in AGENTS.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from raddle.actions.memory.agents_text import with_section
from raddle.model.errors import InvalidInput, NotFound
from raddle.wiring import Stores
from raddle.wiring.memory_making import PHASES, StoreMade, init_store, init_worktree

FILE = "AGENTS.md"


class Told(NamedTuple):
    """What became of the file of that name."""

    name: str
    state: Literal["created", "changed", "unchanged"]


def make_or_open(
    stores: Stores, project_id: str, *, phases: Sequence[str] = (), name: str | None = None
) -> StoreMade:
    """The memory of the workspace: the one that is there, by a folder or by a marker; else a new one, on a branch of
    the code's repository where the workspace is in one.

    ConflictError where the one that is there is another project's.
    """
    from raddle.adapters.memory_repo.host_repository import host_around  # noqa: PLC0415
    from raddle.model.errors import ConflictError  # noqa: PLC0415
    from raddle.wiring.memory_attached import open_attached  # noqa: PLC0415
    from raddle.wiring.memory_places import workspace_of  # noqa: PLC0415

    workspace = workspace_of(stores.config)
    try:
        memory = open_attached(stores)
    except NotFound:
        memory = None
    if memory is not None:
        if memory.project.project_id != project_id:
            raise ConflictError(
                f"this project's memory is that of {memory.project.project_id} already",
                "use it, or give its project_id",
            )
        mode: Literal["worktree", "repo"] = "worktree" if (memory.root / ".git").is_file() else "repo"
        return StoreMade(root=memory.root, done="there", project=memory.project, mode=mode, host=memory.host)
    chosen = list(phases) or list(PHASES)
    host = host_around(workspace)
    if host is None or host.is_bare:
        return init_store(stores, project_id, phases=chosen, name=name)
    return init_worktree(stores, project_id, worktree_repo=str(workspace), phases=chosen, name=name)


def tell_agents(folder: Path, project_id: str) -> Told:
    """Put the section on the memory into AGENTS.md of `folder`, in place of an earlier one; the rest of it stays byte
    for byte. InvalidInput where it is no text, or a link."""
    from raddle.adapters.files import find_bytes  # noqa: PLC0415
    from raddle.adapters.memory_repo.host_repository import write_readable  # noqa: PLC0415

    file = folder / FILE
    if file.is_symlink():
        raise InvalidInput(f"{FILE} is a link", "name the folder of the file itself: project_dir")
    old = find_bytes(file)
    try:
        text = (old or b"").decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{FILE} is no UTF-8 text", "save it as UTF-8 first") from error
    new = with_section(text, project_id)
    if new == text:
        return Told(FILE, "unchanged")
    write_readable(file, new.encode())
    return Told(FILE, "created" if old is None else "changed")
