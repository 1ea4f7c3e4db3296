"""`raddle entry`: note what happens in a run, and list it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output
from raddle.apps.cli.memory_options import agent_option, phase_option, run_option, with_memory
from raddle.apps.cli.memory_words import count_entries, entry_lines, tell_findings, warn_of_secrets
from raddle.apps.cli.options import TextOrStdin, Words, as_json, limit_option
from raddle.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from raddle.actions.memory.entries import Entries
    from raddle.model.memory.entry import ContextEntry
    from raddle.wiring import Stores
    from raddle.wiring.memory import ProjectMemory

_LISTED = 50
_CANDIDATES = 9


@click.group(
    help="""Note what happens in a run, and list it.

    An entry is one small file that never changes: a number, a decision, an error, with the thread and message that it
    rests on.""",
)
def entry() -> None:
    """Commands on entries."""


@entry.command(
    help="""Append an entry to a run, and print its id.

    TYPE is metric, decision, code_change, artifact_ref, error, milestone or note. TEXT is what it says (-: stdin);
    --payload says it as JSON, or more of it. It goes to the active phase of the newest run, unless --run and --phase
    say another.

    \b
    raddle entry add decision "keep the parser in C" --tag parser --thread T-018e2b
    raddle entry add metric --payload '{"files_per_second": 2100}'""",
)
@click.argument("kind", metavar="TYPE", type=Words())
@click.argument("text", metavar="[TEXT]", required=False, type=TextOrStdin())
@click.option("--payload", metavar="JSON", type=TextOrStdin(), help="A JSON object; - for stdin.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, type=Words(), help="May be given several times.")
@click.option(
    "--link",
    "links",
    metavar="LINK",
    multiple=True,
    type=Words(),
    help="A commit, a URL, a path, an id to look up; may be given several times.",
)
@run_option
@phase_option()
@click.option("--thread", metavar="ID", type=Words(), help="The thread that it rests on.")
@click.option("--message", metavar="MESSAGE", type=Words(), help="The message of it.")
@agent_option
@as_json
@with_memory
def add(
    memory: ProjectMemory,
    kind: str,
    text: str | None,
    payload: str | None,
    tags: tuple[str, ...],
    links: tuple[str, ...],
    run_id: str | None,
    phase: str | None,
    thread: str | None,
    message: str | None,
    agent: str | None,
    json: bool,
) -> None:
    """Print its id."""
    from raddle.actions.memory.entries import add_entry, entry_secrets  # noqa: PLC0415
    from raddle.actions.memory.runs import resolve_run  # noqa: PLC0415

    content = _payload(text, payload)
    if not (content or tags or links or thread):
        raise InvalidInput("the entry says nothing", "say it as TEXT, or with --payload")
    thread_id, message_id = rests_on(memory.stores, thread, message)
    added = add_entry(
        memory.files,
        memory.writer(agent=agent),
        resolve_run(memory.files, run_id or "").run_id,
        phase or "",
        type=kind,
        payload=content,
        tags=tags,
        links=links,
        thread_id=thread_id,
        message_id=message_id,
    )
    warn_of_secrets("the entry", entry_secrets(added))
    output.answer(json, _shape(added), added.entry_id)


def _payload(text: str | None, payload: str | None) -> dict[str, Any]:
    content = {} if payload is None else json_object(payload, "--payload")
    if text is None:
        return content
    if not text.strip():
        raise InvalidInput("the text is empty", "say something, or leave it out and give --payload")
    if "text" in content:
        raise InvalidInput("--payload has a text, and TEXT is another", "give one of them")
    return {"text": text, **content}


def json_object(text: str, what: str) -> dict[str, Any]:
    """The JSON object in `text`; InvalidInput where it is none."""
    import msgspec  # noqa: PLC0415  not needed for a help text

    try:
        value = msgspec.json.decode(text.encode())
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise InvalidInput(f"{what} is no JSON: {error}", 'it looks like {"name": "value"}') from error
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} is no JSON object", 'it looks like {"name": "value"}')
    return value


def rests_on(stores: Stores, thread: str | None, message: str | None) -> tuple[str | None, str | None]:
    """Thread and message by their whole ids; one that is not on this machine has to be given whole."""
    from raddle.actions.threads import find_message  # noqa: PLC0415
    from raddle.model.ids import parse_message_id  # noqa: PLC0415

    if thread is None:
        if message is not None:
            raise InvalidInput("a message is named without its thread", "name it: --thread ID")
        return None, None
    thread_id = whole_thread_id(stores, thread)
    if message is None:
        return thread_id, None
    try:
        loaded = stores.threads.load(thread_id)
    except NotFound:
        return thread_id, parse_message_id(message)
    return thread_id, find_message(loaded, message).id


def whole_thread_id(stores: Stores, thread: str) -> str:
    """The id that `thread` begins; a whole one may be that of a thread on another machine."""
    from raddle.model.ids import parse_thread_id  # noqa: PLC0415

    try:
        return parse_thread_id(thread)
    except InvalidInput:
        return stores.resolve(thread)


def _thread_rested_on(stores: Stores, thread: str, named: Callable[[str], list[str]]) -> str:
    """The same; and the start of an id may be that of a thread on another machine too, where entries name it: `named`
    tells the ids that begin so."""
    from raddle.model.errors import Ambiguous  # noqa: PLC0415
    from raddle.model.ids import parse_thread_id_prefix  # noqa: PLC0415

    try:
        return whole_thread_id(stores, thread)
    except NotFound:
        found = named(parse_thread_id_prefix(thread))
        if not found:
            raise
    if len(found) > 1:
        raise Ambiguous("thread", thread, found)
    return found[0]


@entry.command(
    name="list",
    help="""List entries of a run, the newest last: of the newest active one, unless --run says another.

    With --thread those of every run that rest on this thread. --since takes what `after:` takes in a search:
    2026-11-30, 7d, 12h, or a time such as 2026-11-30T12:00:00Z.""",
)
@run_option
@phase_option("Only those of this phase.")
@click.option("--type", "kind", metavar="TYPE", type=Words(), help="Only those of this type.")
@click.option("--tag", metavar="TAG", type=Words(), help="Only those with this tag.")
@click.option("--since", metavar="WHEN", type=Words(), help="Only those written since.")
@click.option("--text", metavar="WORDS", type=Words(), help="Only those in which each of these words stands.")
@click.option("--thread", metavar="ID", type=Words(), help="Only those that rest on this thread.")
@limit_option(_LISTED, "entries, the newest")
@as_json
@with_memory
def list_(
    memory: ProjectMemory,
    run_id: str | None,
    phase: str | None,
    kind: str | None,
    tag: str | None,
    since: str | None,
    text: str | None,
    thread: str | None,
    limit: int,
    json: bool,
) -> None:
    """Print a line for each."""
    from raddle.actions.memory.entries import list_entries  # noqa: PLC0415
    from raddle.actions.memory.runs import resolve_run  # noqa: PLC0415
    from raddle.wiring.memory_shelf import open_shelf  # noqa: PLC0415

    of_every_run = thread is not None and run_id is None
    run = None if of_every_run else resolve_run(memory.files, run_id or "").run_id
    with open_shelf(memory) as shelf:
        named = functools.partial(shelf.threads_rested_on, most=_CANDIDATES)
        found = list_entries(
            shelf,
            run,
            phase=phase,
            type=kind,
            tag=tag,
            since=None if since is None else _moment(since, memory.stores.clock()),
            limit=limit + 1,
            text=text,
            thread=None if thread is None else _thread_rested_on(memory.stores, thread, named),
        )
    shown = found.entries[-limit:]
    if not shown:
        _expect_names(memory, run, phase=phase, kind=kind)
    if json:
        output.json([_shape(one) for one in shown])
    else:
        for line in entry_lines(shown, room=output.columns(), with_run=of_every_run):
            output.styled(line)
    _tell(found, limit, json=json)


def _tell(found: Entries, limit: int, *, json: bool) -> None:
    tell_findings(found.findings)
    if not json and not found.entries and not found.findings:
        diagnostics.say("no entry is like that")
    elif len(found.entries) > limit:
        diagnostics.say(f"the newest {count_entries(limit)}; -n shows more")


def _expect_names(memory: ProjectMemory, run_id: str | None, *, phase: str | None, kind: str | None) -> None:
    """Nothing was found: InvalidInput where that is for a name that nothing can have."""
    from raddle.actions.memory.entries import check_type  # noqa: PLC0415
    from raddle.actions.memory.runs import known_phase, read_run  # noqa: PLC0415

    if kind:
        check_type(kind)
    if phase and run_id:
        known_phase(memory.files, read_run(memory.files, run_id), phase)


def _moment(text: str, now: int) -> int:
    from raddle.model.threads.query_times import parse_moment  # noqa: PLC0415

    moment = parse_moment(text, now)
    if moment is None:
        raise InvalidInput(f"{text[:40]!r} is no moment", "such as 2026-11-30, 7d, 12h, 2026-11-30T12:00:00Z")
    return moment


def _shape(one: ContextEntry) -> dict[str, Any]:
    """An entry as its file has it (docs/formats/memory-repo.md)."""
    from raddle.model.memory.documents import plain_of  # noqa: PLC0415

    plain: dict[str, Any] = plain_of(one)
    return plain
