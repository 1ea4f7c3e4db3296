"""One client's session: which folder it works in, which memory that means, and what may be shown to it.

The one place that decides these for every tool. Calls run side by side in threads, so that nothing opened here is
shared between two of them but what is safe to share.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from raddle.apps.mcp_server.freshness import Freshness
from raddle.apps.mcp_server.recalled import RecalledTexts
from raddle.config import Config
from raddle.model.errors import Forbidden, InvalidInput, NotFound, RaddleError
from raddle.wiring import Stores, open_stores

if TYPE_CHECKING:
    from raddle.apps.mcp_server.thread_shelf import ThreadShelf
    from raddle.wiring.memory import ProjectMemory


_NO_MEMORY = (
    "call store_init with a project_id to make one (it opens the one that others have), or give `workspace`, the "
    "project's folder"
)


class Access(Struct, frozen=True, kw_only=True):
    """What the person who started the server lets agents see besides the workspace's own public threads."""

    all_repositories: bool = False
    include_private: bool = False


def _belongs_to(place: Path, home: Path) -> bool:
    """Is it of the repository that `home` is in, another worktree or clone of it too; below `home`, where that is in
    none?"""
    from raddle.wiring.thread_reach import surroundings_of  # noqa: PLC0415

    around = surroundings_of(home)
    if around.is_repository:
        return surroundings_of(place).name == around.name
    return place.is_relative_to(os.path.realpath(home))


class Session:
    """What the tools of one client work with. For any thread.

    `config`: settings as the client's own environment has them. `roots`: the folders that the client says it
    works in. `agent`: the client's name, for what it writes.
    """

    def __init__(
        self,
        config: Config,
        *,
        access: Access | None = None,
        freshness: Freshness | None = None,
        roots: tuple[Path, ...] = (),
    ) -> None:
        self.config = config
        self.access = access or Access()
        self.freshness = freshness or Freshness()
        self.recalled = RecalledTexts()
        self.roots = roots
        self.agent = ""
        self.has_met = False

    def workspace(self, given: str | None = None) -> Path:
        """The folder that is worked in: `given`, else one that the client names, else RADDLE_WORKSPACE or the current
        one. Of several of the client's, the first that has a memory. NotFound where it is gone; InvalidInput for a path
        that is not whole; Forbidden for one where the client does not work: what it may see is not for an agent to
        say."""
        from raddle.wiring.memory_places import workspace_of  # noqa: PLC0415

        if given:
            if "\0" in given or not Path(given).expanduser().is_absolute():
                raise InvalidInput("workspace is no whole path", "give the project's folder, from / on")
            place = workspace_of(msgspec.structs.replace(self.config, workspace=Path(given).expanduser()))
            if not self.access.all_repositories and not any(
                _belongs_to(place, home) for home in self.roots or (workspace_of(self.config),)
            ):
                raise Forbidden(
                    f"{place} is not what this server was started for",
                    "leave workspace out; `raddle mcp-serve --all-repositories` serves every project",
                )
            return place
        if self.roots:
            return next((root for root in self.roots if self._has_memory(root)), self.roots[0])
        return workspace_of(self.config)

    def _has_memory(self, root: Path) -> bool:
        from raddle.wiring.memory_places import find_store  # noqa: PLC0415

        try:
            find_store(msgspec.structs.replace(self.config, workspace=root), None)
        except RaddleError:
            return False
        return True

    def below_workspace(self, path: str, workspace: str | None = None) -> Path:
        """The file or folder at `path`, relative to the workspace or whole. InvalidInput where it lies outside, links
        followed; NotFound."""
        folder = self.workspace(workspace)
        if not path or "\0" in path:
            raise InvalidInput("the path is empty or holds a NUL", "name a file below the workspace")
        place = Path(os.path.realpath(folder / path))
        if any(part.casefold() == ".git" for part in place.parts):
            raise InvalidInput(
                f"{path[:200]} is git's own", "its files hold addresses and passwords: name another file"
            )
        if not place.is_relative_to(os.path.realpath(folder)):
            raise InvalidInput(
                f"{path[:200]} lies outside the workspace", "only files below the workspace are read"
            )
        try:
            place.lstat()
        except (OSError, ValueError) as error:  # not there, or a name that no system takes
            raise NotFound("file", path[:200], f"paths are relative to {folder}") from error
        return place

    def config_for(self, workspace: str | None = None) -> Config:
        """The settings, with the workspace of a call."""
        return msgspec.structs.replace(self.config, workspace=self.workspace(workspace))

    @contextlib.contextmanager
    def stores(self, workspace: str | None = None) -> Iterator[Stores]:
        """The threads of this machine, opened for one call."""
        with open_stores(self.config_for(workspace)) as stores:
            yield stores

    @contextlib.contextmanager
    def threads(self, workspace: str | None = None) -> Iterator[ThreadShelf]:
        """The threads that this client may see, opened for one call."""
        from raddle.apps.mcp_server.thread_shelf import local_shelf  # noqa: PLC0415

        with self.stores(workspace) as stores:
            yield local_shelf(
                stores,
                all_repositories=self.access.all_repositories,
                include_private=self.access.include_private,
            )

    @contextlib.contextmanager
    def memory(self, workspace: str | None = None) -> Iterator[ProjectMemory]:
        """The project's memory, opened for one call; one that a marker names and is not here yet is fetched first,
        where that crosses no boundary. NotFound says how to make one."""
        from raddle.wiring.memory_attached import open_attached  # noqa: PLC0415

        with self.stores(workspace) as stores:
            try:
                memory = open_attached(stores)
            except NotFound as error:
                error.hint = _NO_MEMORY if "store init" in (error.hint or "") else error.hint
                raise
            self.freshness.keep(memory.root, self.config)
            yield memory

    def warm_up(self) -> None:
        """Open the workspace's memory in a thread of its own: it is in step and indexed once the first call comes."""

        def work() -> None:
            from raddle.wiring.memory_shelf import open_shelf  # noqa: PLC0415

            with contextlib.suppress(RaddleError), self.memory() as memory, open_shelf(memory) as shelf:
                shelf.memories(None, "")

        threading.Thread(target=work, name="warm-up", daemon=True).start()
