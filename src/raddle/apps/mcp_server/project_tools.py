"""The tools of the project itself: make its memory, say how it stands, tell other agents of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.texts import tags_of
from raddle.apps.mcp_server.tools import SETS, Arguments, Call, Hints, Tool
from raddle.model.errors import InvalidInput


class StoreInit(Arguments, frozen=True, kw_only=True):
    """A new memory."""

    project_id: Annotated[str, Meta(description="a slug")]
    phases: Annotated[list[str] | str | None, Meta(description="in order; else build, test, present")] = None
    name: str | None = None


class SyncStatus(Arguments, frozen=True, kw_only=True):
    """Nothing but the workspace."""


class AgentsMdBootstrap(Arguments, frozen=True, kw_only=True):
    """Where AGENTS.md is."""

    project_dir: Annotated[str | None, Meta(description="below the workspace; else its root")] = None


def store_init(session: Session, given: StoreInit, call: Call) -> dict[str, Any]:
    """Make the memory of the workspace's project on a branch of its code's repository, or in a repository of its own
    where the workspace is none; one that is there, here or on the remote, is opened instead."""
    from raddle.wiring.memory_agents import make_or_open  # noqa: PLC0415

    if given.name is not None and not given.name.isprintable():
        raise InvalidInput("the name is more than a line", "it is what people call the project")
    with session.stores(given.workspace) as stores:
        made = make_or_open(stores, given.project_id, phases=tags_of(given.phases), name=given.name)
        session.freshness.keep(made.root, session.config)
    told = {
        "state": {"made": "created", "there": "there already"}.get(made.done, made.done),
        "project_id": made.project.project_id,
        "phases": made.project.phases,
        "mode": made.mode,
        "folder": str(made.root),
        "marker": None
        if made.marker is None
        else f"{made.marker.name}: commit it, so that other machines find this",
        "notes": made.notes,
    }
    return {name: value for name, value in told.items() if value}


def sync_status(session: Session, given: SyncStatus, call: Call) -> dict[str, Any]:
    """How the memory stands to its remote, without asking it."""
    from raddle.model.clock import format_time  # noqa: PLC0415
    from raddle.wiring.memory_status import store_status  # noqa: PLC0415

    with session.memory(given.workspace) as memory:
        now = store_status(memory)
    told = {
        "project_id": now.project_id,
        "mode": now.mode,
        "publishing": now.publishing,
        "uncommitted": len(now.changes),
        "unpushed": now.unpushed,
        "last_sync": None if now.last_sync is None else format_time(now.last_sync),
        "conflicts": list(now.conflicts),
        "left_out": now.blocked,
        "trouble": now.apart,
    }
    if now.publishing == "not_agreed":
        told["note"] = "nothing leaves this machine until a person says `raddle store sync --publish`"
    return {name: value for name, value in told.items() if value not in (None, [], {}, "")}


def agents_md_bootstrap(session: Session, given: AgentsMdBootstrap, call: Call) -> dict[str, Any]:
    """Put a section into AGENTS.md that tells every agent of the memory; replaced in place where it is there."""
    from raddle.wiring.memory_agents import tell_agents  # noqa: PLC0415

    folder: Path = session.workspace(given.workspace)
    if given.project_dir:
        folder = session.below_workspace(given.project_dir, given.workspace)
    with session.memory(given.workspace) as memory:
        done = tell_agents(folder, memory.project.project_id)
    return {"file": done.name, "state": done.state}


TOOLS = (
    Tool(
        name="store_init",
        summary="Make this project's memory, or open the one that is there.",
        arguments=StoreInit,
        run=store_init,
        hints=Hints(idempotent=True, open_world=True),
        gives=("state", "project_id", "phases", "mode", "folder", "marker", "notes"),
    ),
    Tool(
        name="sync_status",
        summary="How this machine's memory stands to its remote: pending, conflicts, last sync.",
        arguments=SyncStatus,
        run=sync_status,
        hints=Hints(read_only=True, idempotent=True),
        gives=(
            "project_id",
            "mode",
            "publishing",
            "uncommitted",
            "unpushed",
            "last_sync",
            "conflicts",
            "left_out",
            "trouble",
            "note",
        ),
    ),
    Tool(
        name="agents_md_bootstrap",
        summary="Write the section of AGENTS.md that tells agents of this memory.",
        arguments=AgentsMdBootstrap,
        run=agents_md_bootstrap,
        hints=SETS,
        gives=("file", "state"),
    ),
)
