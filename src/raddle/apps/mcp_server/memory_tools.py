"""The tools of long-term memory: write, read, list, find, delete, import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from raddle.apps.mcp_server.paging import CHARACTERS_A_TOKEN, LARGEST_ANSWER, Budget, after, page, part_of
from raddle.apps.mcp_server.recalled import recalled
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.texts import tags_of, warn_of_secrets
from raddle.apps.mcp_server.tools import READS, SETS, Arguments, Call, Hints, Tool
from raddle.model.errors import InvalidInput, UserError

if TYPE_CHECKING:
    from raddle.actions.memory.memories import MemoryLine

Limit = Annotated[int, Meta(ge=1, le=1000)]
Cursor = str | None
_EACH = 200
"""Texts of an import after which its caller is told, and may have given it up."""


class MemoryWrite(Arguments, frozen=True, kw_only=True):
    """`push`: False leaves it to the next sync."""

    namespace: str
    key: Annotated[str, Meta(description="may be nested: style/python.md")]
    content: str
    description: Annotated[str | None, Meta(description="one line, shown in lists")] = None
    tags: list[str] | str | None = None
    push: bool = True


class MemoryNamed(Arguments, frozen=True, kw_only=True):
    """One memory by its name."""

    namespace: str
    key: str


class MemoryRead(MemoryNamed, frozen=True, kw_only=True):
    """One memory; a long one a part at a time."""

    offset: Annotated[int, Meta(ge=0)] = 0


class MemoryList(Arguments, frozen=True, kw_only=True):
    """A page of names."""

    namespace: str | None = None
    prefix: str | None = None
    limit: Limit = 100
    cursor: Cursor = None


class MemorySearch(Arguments, frozen=True, kw_only=True):
    """A query."""

    query: Annotated[str, Meta(description='words, "a phrase", prefix*, -not, tag: after: before:')]
    namespace: str | None = None
    limit: Limit = 20


class MemoryImport(Arguments, frozen=True, kw_only=True):
    """A folder or a file of texts below the workspace."""

    source: Annotated[str, Meta(description="a folder or file below the workspace")]
    namespace: str = "imported"
    recursive: bool = True
    overwrite: bool = False
    tags: list[str] | str | None = None


def memory_write(session: Session, given: MemoryWrite, call: Call) -> dict[str, Any]:
    """Write one memory; what it said before stays in the history."""
    from raddle.actions.memory.memories import Told, memory_path, set_memory  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    name = f"{given.namespace}/{given.key}"
    session.recalled.refuse_copy(given.content, place=f"raddle://memory/{name}")
    told = Told(
        description=None if given.description is None else " ".join(given.description.split()),
        tags=tags_of(given.tags),
    )
    with session.memory(given.workspace) as memory:
        with versions_kept(memory, [memory_path(name)]):
            done = set_memory(
                memory.files, memory.writer(agent=session.agent or None), name, given.content, told
            )
        if given.push and done.state != "unchanged":
            session.freshness.wrote(memory.root)
        return {
            "name": done.name,
            "state": done.state,
            **warn_of_secrets(done.secrets),
        }


def memory_read(session: Session, given: MemoryRead, call: Call) -> dict[str, Any]:
    """One memory, as much of it as an answer holds, with versions of it that wait to be settled."""
    from raddle.actions.memory.memories import get_memory  # noqa: PLC0415
    from raddle.actions.memory.memory_conflicts import versions_beside  # noqa: PLC0415

    with session.memory(given.workspace) as memory:
        found = get_memory(memory.files, f"{given.namespace}/{given.key}")
        waiting = versions_beside(memory.files, found.path)
    if found.text is None:
        raise InvalidInput(
            f"{found.name} is no text", f"`raddle memory get {found.name} --raw` writes its bytes"
        )
    said = found.text.front_matter
    part, more = part_of(found.text.body, given.offset)
    session.recalled.note(f"raddle://memory/{found.name}", part)
    told: dict[str, Any] = {
        "name": found.name,
        "content": part,
        **more,
        "description": said.description,
        "tags": said.tags,
        "created": said.created,
        "updated": said.updated,
        "author": said.author,
    }
    if waiting:
        told["conflicts"] = [one.path for one in waiting]
        told["note"] = "others changed it at once: `raddle memory resolve` settles it"
    return recalled({name: value for name, value in told.items() if value})


def memory_list(session: Session, given: MemoryList, call: Call) -> dict[str, Any]:
    """Names and descriptions, in the order of the names."""
    from raddle.wiring.memory_shelf import open_shelf  # noqa: PLC0415

    with session.memory(given.workspace) as memory, open_shelf(memory) as shelf:
        lines = shelf.memories(given.namespace, given.prefix or "")
    return recalled(listed(lines, limit=given.limit, cursor=given.cursor))


def listed(
    lines: list[MemoryLine], *, limit: int, cursor: str | None, budget: Budget | None = None
) -> dict[str, Any]:
    """A page of memories; `cursor` names the last one of the page before."""
    budget = budget or Budget(LARGEST_ANSWER // CHARACTERS_A_TOKEN)
    rest = after(lines, cursor, lambda line: line.name)
    shown, following = page(rest, limit, line_shape, lambda line: line.name, budget)
    return {"memories": shown, "total": len(lines), **({"cursor": following} if following else {})}


def line_shape(line: MemoryLine) -> dict[str, Any]:
    """A memory in a list; what is empty is left out."""
    told = {"name": line.name, "description": line.description, "tags": line.tags, "updated": line.updated}
    return {name: value for name, value in told.items() if value}


def memory_search(session: Session, given: MemorySearch, call: Call) -> dict[str, Any]:
    """Memories, entries, summaries and handoffs that hold the words, the best first."""
    from raddle.wiring.memory_shelf import search_memory  # noqa: PLC0415

    kinds = None if given.namespace is None else ("memory",)
    with session.memory(given.workspace) as memory:
        answer = search_memory(memory, given.query, limit=given.limit, kinds=kinds, namespace=given.namespace)  # type: ignore[arg-type]
    hits: list[dict[str, Any]] = []
    for hit in answer.hits:
        shape = {
            "kind": hit.kind,
            "name": hit.name,
            "run_id": hit.run_id,
            "phase": hit.phase,
            "entry_id": hit.entry_id,
            "at": hit.at,
            "tags": hit.tags,
            "text": hit.snippet.text,
        }
        hits.append({name: value for name, value in shape.items() if value})
        session.recalled.note(hit.name, hit.snippet.text)
    told: dict[str, Any] = {"hits": hits, "total": answer.total, "looked_at": answer.looked_at}
    for name in ("notes", "ignored"):
        if value := getattr(answer, name):
            told[name] = value
    return recalled(told)


def memory_delete(session: Session, given: MemoryNamed, call: Call) -> dict[str, Any]:
    """Take one out; its versions stay in git."""
    from raddle.actions.memory.memories import delete_memory, get_memory  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    name = f"{given.namespace}/{given.key}"
    with session.memory(given.workspace) as memory:
        with versions_kept(memory, [get_memory(memory.files, name).path]):
            gone = delete_memory(memory.files, name)
        session.recalled.forget(f"raddle://memory/{gone.name}")
        session.freshness.wrote(memory.root)
    return {"name": gone.name, "state": "deleted"}


def memory_import(session: Session, given: MemoryImport, call: Call) -> dict[str, Any]:
    """Texts of a folder as memories; the folder is only read, and lies below the workspace."""
    from raddle.actions.memory.memories import Told, set_memory  # noqa: PLC0415
    from raddle.wiring.memory_shelf import import_folder  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    def told(read: int) -> None:
        if read % _EACH == 0:
            if call.is_over():
                raise UserError("the import was given up, and nothing was written", "call it again")
            call.progress(read, None, f"{read:,} texts read")

    source = session.below_workspace(given.source, given.workspace)
    with session.memory(given.workspace) as memory:
        with versions_kept(memory):
            report = import_folder(
                memory,
                source,
                given.namespace,
                overwrite=given.overwrite,
                is_deep=given.recursive,
                told=told,
            )
            tags = tags_of(given.tags)
            for key in (*report.added, *report.replaced) if tags else ():
                writer = memory.writer(agent=session.agent or None)
                set_memory(memory.files, writer, f"{report.namespace}/{key}", None, Told(tags=tags))
        session.freshness.wrote(memory.root)
    kinds = sorted({kind for kinds in report.secrets.values() for kind in kinds})
    done = {
        "namespace": report.namespace,
        "added": report.added,
        "replaced": report.replaced,
        "same": len(report.same),
        "kept": report.kept,
        "renamed": report.renamed,
        "skipped": report.skipped,
        **warn_of_secrets(kinds),
    }
    return {name: value for name, value in done.items() if value}


TOOLS = (
    Tool(
        name="memory_write",
        summary="Keep what is worth knowing for long, on every machine. Replaces the key; git keeps what it said.",
        arguments=MemoryWrite,
        run=memory_write,
        hints=Hints(destructive=True, idempotent=True),
        gives=("name", "state", "warning"),
    ),
    Tool(
        name="memory_read",
        summary="Read one memory.",
        arguments=MemoryRead,
        run=memory_read,
        hints=READS,
        gives=(
            "name",
            "content",
            "next_offset",
            "description",
            "tags",
            "created",
            "updated",
            "author",
            "conflicts",
            "note",
        ),
    ),
    Tool(
        name="memory_list",
        summary="List memories: names, descriptions, tags.",
        arguments=MemoryList,
        run=memory_list,
        hints=READS,
        gives=("memories", "total", "cursor"),
    ),
    Tool(
        name="memory_search",
        summary="Find memories, entries, summaries and handoffs by words, best first.",
        arguments=MemorySearch,
        run=memory_search,
        hints=READS,
        gives=("hits", "total", "looked_at", "notes", "ignored"),
    ),
    Tool(
        name="memory_import",
        summary="Import a folder of texts as memories.",
        arguments=MemoryImport,
        run=memory_import,
        hints=SETS,
        gives=("namespace", "added", "replaced", "same", "kept", "renamed", "skipped", "warning"),
    ),
    Tool(
        name="memory_delete",
        summary="Delete a memory that is wrong or out of date. Its versions stay in git.",
        arguments=MemoryNamed,
        run=memory_delete,
        hints=Hints(destructive=True),
        gives=("name", "state"),
    ),
)
