"""`raddle memory`: what is worth knowing for long: kept, found and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.commands.memory_origins import history, import_, name_argument, resolve
from raddle.apps.cli.memory_options import with_memory
from raddle.apps.cli.memory_words import tell_conflicts, warn_of_secrets
from raddle.apps.cli.options import AskingCommand, KeptText, TextOrStdin, Words, as_json, limit_option
from raddle.model.errors import InvalidInput

if TYPE_CHECKING:
    from raddle.actions.memory.memories import Memory, MemoryLine
    from raddle.actions.memory.memory_search import DocumentKind
    from raddle.wiring.memory import ProjectMemory

_SEARCHED = 10


@click.group(
    help="""Keep, find and read what is worth knowing for long.

    A memory is a text with a name, such as team/release.md: files below `memory/` of the store, which git and the
    sync carry to every clone.""",
)
def memory() -> None:
    """Commands on memories."""


@memory.command(
    name="set",
    help="""Write the memory NAMESPACE/KEY. TEXT is what it says (-: stdin), UTF-8 of 1 MiB at most; without one, only
    what is told of it. Other bytes are kept as artifacts (`raddle artifact add`).

    \b
    raddle memory set team/release.md "Tag, then run the script." --tag release
    raddle memory set team/style - < STYLE.md""",
)
@name_argument
@click.argument("text", metavar="[TEXT]", required=False, type=TextOrStdin())
@click.option("--description", metavar="LINE", type=KeptText(), help="One line that a list shows.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, type=KeptText(), help="Add a tag.")
@click.option("--untag", "untags", metavar="TAG", multiple=True, type=KeptText(), help="Take one off.")
@click.option("--author", metavar="NAME", type=KeptText(), help="Who says so; else you.")
@as_json
@with_memory
def set_(
    memory: ProjectMemory,
    name: str,
    text: str | None,
    description: str | None,
    tags: tuple[str, ...],
    untags: tuple[str, ...],
    author: str | None,
    json: bool,
) -> None:
    """Print its name."""
    from raddle.actions.memory.memories import Told, memory_path, set_memory  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    told = Told(
        description=None if description is None else " ".join(description.split()),
        author=author,
        tags=_tags(tags),
        untags=untags,
    )
    if text is None and told.is_nothing:
        raise InvalidInput("there is no text", "give it as an argument, or - to read it from stdin")
    with versions_kept(memory, [memory_path(name)]):
        done = set_memory(memory.files, memory.writer(), name, text, told)
    warn_of_secrets("the memory", done.secrets)
    value = {"name": done.name, "path": done.path, "state": done.state, "secrets": done.secrets}
    output.answer(json, value, words.one_line(done.name))
    if done.state == "unchanged":
        diagnostics.say("it says just that already")


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    if any(not tag.strip() or not tag.isprintable() for tag in tags):
        raise InvalidInput("a tag is empty, or more than a line", "a tag is a word or a few")
    return tuple(tag.strip() for tag in tags)


@memory.command(
    name="get",
    help="""Print what the memory NAMESPACE/KEY says: its text, without what is told of it.

    With --raw the file as it is. --at shows it as a commit has it (`raddle memory history`).""",
)
@name_argument
@click.option("--at", "commit", metavar="COMMIT", type=Words(), help="As it was at this commit.")
@click.option("--raw", is_flag=True, help="The whole file, front matter and all.")
@as_json
@with_memory
def get(memory: ProjectMemory, name: str, commit: str | None, raw: bool, json: bool) -> None:
    """Print it."""
    from raddle.actions.memory.memories import get_memory, memory_in, place_named  # noqa: PLC0415
    from raddle.wiring.memory_shelf import version  # noqa: PLC0415

    if commit is None:
        found = get_memory(memory.files, name)
    else:
        place = place_named(name)
        found = memory_in(place, version(memory, place.path, commit))
    if json:
        output.json(_read_shape(found))
    elif raw or found.text is None:
        output.write_bytes(found.data)
    else:
        _print_text(found.text.body)
    if commit is None:
        tell_conflicts(memory.files, found.path, found.name)


def _print_text(text: str) -> None:
    """The text; on a terminal without what could move its cursor."""
    shown = words.safe_lines(text) if output.is_terminal() else text
    output.write(shown if shown.endswith("\n") or not output.is_terminal() else f"{shown}\n")


def _read_shape(found: Memory) -> dict[str, Any]:
    from raddle.model.memory.documents import plain_of  # noqa: PLC0415
    from raddle.model.memory.memory_text import described  # noqa: PLC0415

    said = found.text.front_matter if found.text is not None else None
    return {
        "namespace": found.namespace,
        "key": found.key,
        "path": found.path,
        "size": len(found.data),
        "text": found.text.body if found.text is not None else None,
        "description": described(found.text) if found.text is not None else "",
        "tags": said.tags if said else (),
        "created": said.created if said else "",
        "updated": said.updated if said else "",
        "author": said.author if said else "",
        "unknown": plain_of(said.unknown) if said else {},
    }


@memory.command(
    name="list",
    help="""List memories by name: all of them, those of NAMESPACE, or those whose name begins NAMESPACE/START.""",
)
@click.argument("where", metavar="[NAMESPACE[/START]]", default="", type=KeptText())
@click.option("--prefix", metavar="START", default="", type=KeptText(), help="Only keys that begin so.")
@as_json
@with_memory
def list_(memory: ProjectMemory, where: str, prefix: str, json: bool) -> None:
    """Print a line for each."""
    from raddle.wiring.memory_shelf import open_shelf  # noqa: PLC0415

    namespace, _, start = where.partition("/")
    with open_shelf(memory) as shelf:
        lines = shelf.memories(namespace or None, prefix or start)
        conflicts = shelf.conflicts(namespace or None, prefix or start)
    if json:
        output.json([_line_shape(line) for line in lines])
    else:
        output.page(_rows(lines, memory.stores.clock()))
        if not lines:
            _say_why_none(where or prefix)
    if conflicts:
        what = words.count(len(conflicts), "other version")
        diagnostics.note(f"{what} to be settled: `raddle memory resolve` lists them")


def _say_why_none(asked: str) -> None:
    diagnostics.say("no memory is named so" if asked else "no memories yet: `raddle memory set` writes one,")
    if not asked:
        diagnostics.say("and `raddle memory import FOLDER` brings in those of another agent")


def _line_shape(line: MemoryLine) -> dict[str, Any]:
    return {
        "namespace": line.namespace,
        "key": line.key,
        "description": line.description,
        "tags": line.tags,
        "updated": line.updated,
        "size": line.size,
    }


def _rows(lines: Sequence[MemoryLine], now: int) -> Iterator[str]:
    """Names as they are typed back, uncut; the description takes what room there is."""
    if not lines:
        return
    rows = [
        (
            words.one_line(line.name),
            words.ago(line.updated, now, is_short=True),
            words.one_line(" ".join([line.description, *(f"#{tag}" for tag in line.tags)])),
        )
        for line in lines
    ]
    yield from words.table(
        rows, (600, 12, 400), styles=(None, "dim", "dim"), width=output.columns(), shrink=(2,)
    )


@memory.command(
    cls=AskingCommand,
    help="""Find memories, entries, summaries and handoffs, the best first.

    Words as in `raddle search`, and of its filters before: after: tag:. `raddle search --in all` looks into the threads
    as well.""",
)
@click.argument("query", nargs=-1, required=True, type=Words())
@limit_option(_SEARCHED, "hits", most=1000)
@click.option("--namespace", metavar="NAMESPACE", type=Words(), help="Only memories of this namespace.")
@click.option("--memories", "only_memories", is_flag=True, help="Only memories.")
@as_json
@with_memory
def search(
    memory: ProjectMemory,
    query: tuple[str, ...],
    limit: int,
    namespace: str | None,
    only_memories: bool,
    json: bool,
) -> None:
    """Print hits."""
    from raddle.apps.cli.commands.listing import query_hints  # noqa: PLC0415
    from raddle.apps.cli.memory_found import say_looked_at, shape_of_answer, shown  # noqa: PLC0415
    from raddle.wiring.memory_shelf import search_memory  # noqa: PLC0415

    kinds: tuple[DocumentKind, ...] | None = ("memory",) if only_memories or namespace is not None else None
    answer = search_memory(memory, " ".join(query), limit=limit, kinds=kinds, namespace=namespace)
    if json:
        output.json(shape_of_answer(answer))
    else:
        output.page(shown(answer, memory.stores.clock()))
    say_looked_at(answer, json=json)
    for hint in query_hints(memory.stores, " ".join(query), has_hits=bool(answer.total)):
        diagnostics.note(hint)


@memory.command(help="Take the memory NAMESPACE/KEY out. Its versions stay in the history.")
@name_argument
@as_json
@with_memory
def delete(memory: ProjectMemory, name: str, json: bool) -> None:
    """Print what is gone."""
    from raddle.actions.memory.memories import delete_memory, get_memory  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    with versions_kept(memory, [get_memory(memory.files, name).path]):
        gone = delete_memory(memory.files, name)
    output.answer(json, {"name": gone.name, "path": gone.path}, words.one_line(gone.name))


memory.add_command(history)
memory.add_command(import_)
memory.add_command(resolve)
