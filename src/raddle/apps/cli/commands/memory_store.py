"""`raddle store`: make a project's memory, attach it elsewhere, take up a run, see how it stands."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.memory_options import store_option, with_memory
from raddle.apps.cli.options import Words, as_json, limit_option, with_stores
from raddle.model.errors import InvalidInput

if TYPE_CHECKING:
    from raddle.wiring import Stores
    from raddle.wiring.memory import ProjectMemory
    from raddle.wiring.memory_making import StoreMade
    from raddle.wiring.memory_status import StoreStatus

_ELSEWHERE = {
    "adopt": ("memory_adopting", "Take over a memory of redthread, or a wedged one."),
    "sync": ("memory_care", "Bring it and its remote into step."),
    "verify": ("memory_care", "Look at every file of it, and mend what can be."),
    "list": ("memory_machine", "List the memories of this machine."),
    "gc": ("memory_machine", "Remove what no artifact names any more."),
}
"""Command -> the module that has it, and its one-line help: a line of help imports none of them."""
_ORDER = ("init", "attach", "resume", "adopt", "status", "list", "log", "sync", "verify", "gc")
_SHOWN = 20


class _StoreCommands(click.Group):
    """The group, with commands of other modules in it, which are imported when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they are met."""
        return list(_ORDER)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None where there is none of that name."""
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, short_help = _ELSEWHERE[cmd_name]
        name = "list_" if cmd_name == "list" else cmd_name
        command = getattr(importlib.import_module(f"raddle.apps.cli.commands.{module}"), name)
        assert isinstance(command, click.Command)
        command.short_help = short_help
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does, without importing one."""
        rows = [
            (name, _ELSEWHERE[name][1] if name in _ELSEWHERE else self.commands[name].get_short_help_str(80))
            for name in _ORDER
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=_StoreCommands,
    help="""Make a project's memory, attach it on another machine, and bring it into step.

    A store is a folder of small files in git: runs and what happened in them, and what is worth knowing for long. It is
    found by walking up to the `.raddle.yaml` of the code that it belongs to.""",
)
def store() -> None:
    """Commands on stores."""


@store.command(
    short_help="Make a new memory.",
    help="""Make the memory of PROJECT: in a repository of its own, or with --worktree-repo on a branch of its own in
    the code's repository, where neither the code's branch nor anything that is checked out is touched.

    A marker in the code's folder, .raddle.yaml, says where the memory is, so that others find it; commit it. Where
    --store names a place, one is written for --host-repo or --worktree-repo only.""",
)
@click.argument("project", metavar="PROJECT", type=Words())
@click.option(
    "--phases",
    default="build,test,present",
    show_default=True,
    metavar="A,B,C",
    help="Its phases in their order.",
)
@click.option("--name", metavar="TEXT", type=Words(), help="What people call it.")
@click.option(
    "--store",
    "store_path",
    metavar="PATH",
    help="The folder to make; else raddle-store, here or beside the marker.",
)
@click.option(
    "--worktree-repo",
    metavar="PATH",
    help="The code's repository, which is to hold it on a branch of its own.",
)
@click.option("--branch", metavar="NAME", help="That branch; else raddle-store.")
@click.option(
    "--host-repo", metavar="PATH", help="Without --worktree-repo: the code whose marker is to name it."
)
@as_json
@with_stores
def init(
    stores: Stores,
    project: str,
    phases: str,
    name: str | None,
    store_path: str | None,
    worktree_repo: str | None,
    branch: str | None,
    host_repo: str | None,
    json: bool,
) -> None:
    """Print where it is."""
    from raddle.wiring.memory_making import init_store, init_worktree  # noqa: PLC0415

    chosen = [phase.strip() for phase in phases.split(",") if phase.strip()]
    if worktree_repo is None:
        if branch is not None:
            raise InvalidInput(
                "a branch is named, and no repository that is to hold it", "say --worktree-repo PATH too"
            )
        made = init_store(stores, project, phases=chosen, name=name, store=store_path, host_repo=host_repo)
    else:
        if host_repo is not None:
            raise InvalidInput("--worktree-repo names the code already", "leave --host-repo out")
        made = init_worktree(
            stores,
            project,
            worktree_repo=worktree_repo,
            phases=chosen,
            name=name,
            store=store_path,
            branch=branch,
        )
    _tell(made, json=json)


@store.command(
    short_help="Have the memory that the marker names.",
    help="""Have the memory that this code's marker names (.raddle.yaml, else .redthread.yaml) on this machine.

    A branch of the code's repository is checked out without more. A repository of its own is cloned only with
    --allow-clone: its address stands in a committed file, and agents read what is in it. Nothing is ever begun anew.
    Where it is there already, the marker learns its address, and what is damaged of its .git is mended.""",
)
@click.option("--store", "store_path", metavar="PATH", help="Where it is to be; else where the marker says.")
@click.option("--host-repo", metavar="PATH", help="The code with the marker; else the nearest one.")
@click.option("--allow-clone", is_flag=True, help="Clone it from the address in the marker.")
@as_json
@with_stores
def attach(
    stores: Stores, store_path: str | None, host_repo: str | None, allow_clone: bool, json: bool
) -> None:
    """Print where it is."""
    from raddle.wiring.memory_making import attach_store  # noqa: PLC0415

    _tell(attach_store(stores, host_repo=host_repo, store=store_path, allow_clone=allow_clone), json=json)


@store.command(
    short_help="Take up a run on this machine.",
    help="""Take up RUN on this machine: fetch the memory if it is not here, join the run, and print what to know.

    RUN may be cut to the start of its id that is unique. `raddle run leave` says that this machine is done with it.""",
)
@click.argument("run", metavar="RUN", type=Words())
@click.option("--remote", metavar="URL", help="Where to clone the memory from.")
@click.option(
    "--worktree-repo", metavar="PATH", help="The code's repository that holds it on a branch of its own."
)
@click.option("--branch", metavar="NAME", help="That branch; else raddle-store.")
@store_option
@as_json
@with_stores
def resume(
    stores: Stores,
    run: str,
    remote: str | None,
    worktree_repo: str | None,
    branch: str | None,
    store_path: str | None,
    json: bool,
) -> None:
    """Print how it stands."""
    from raddle.apps.cli.memory_run_overview import show_overview  # noqa: PLC0415
    from raddle.wiring.memory_resuming import bring_here, take_up  # noqa: PLC0415

    if remote is not None and worktree_repo is not None:
        raise InvalidInput("--remote and --worktree-repo name two places", "say one of them")
    if branch is not None and worktree_repo is None:
        raise InvalidInput(
            "a branch is named, and no repository that holds it", "say --worktree-repo PATH too"
        )
    memory, made = bring_here(
        stores, remote=remote, worktree_repo=worktree_repo, branch=branch, store=store_path
    )
    if made is not None:
        _explain(made)
    taken = take_up(memory, run)
    if taken.why_not_fetched:
        diagnostics.note(words.one_line(f"this is what this machine has: {taken.why_not_fetched}"))
    show_overview(taken.overview, memory, json=json)


@store.command(short_help="Say how it stands.", help="Say how this memory stands, without asking its remote.")
@as_json
@with_memory
def status(memory: ProjectMemory, json: bool) -> None:
    """Print it."""
    from raddle.wiring.memory_status import store_status  # noqa: PLC0415

    now = store_status(memory)
    if json:
        from raddle.model.clock import format_time  # noqa: PLC0415

        when = "" if now.last_sync is None else format_time(now.last_sync)
        output.json({**plain_value(now), "last_sync": when})
        return
    for name, value in _facts(now, memory):
        output.styled(f"{words.style(words.pad(name, 10), 'dim')}  {value}")
    for path in now.conflicts[:_SHOWN]:
        output.line(words.one_line(f"  {path}"))
    if now.apart:
        diagnostics.warn(words.one_line(now.apart))
        diagnostics.suggest("`raddle store adopt` shows what it would do about it, and asks")
    for path, why in list(now.blocked.items())[:_SHOWN]:
        diagnostics.warn(words.one_line(f"{path} is left out: {why}"))


def _facts(now: StoreStatus, memory: ProjectMemory) -> list[tuple[str, str]]:
    from raddle.model.clock import format_time  # noqa: PLC0415

    told = {
        "published": "yes",
        "not_agreed": "not yet: `raddle store sync --publish` says that it may go there",
        "no_remote": "no: git remote add origin URL, in its folder",
        "kept_here": "no: the project says `publish: false`",
    }
    kind = "a branch of the code's repository" if now.mode == "worktree" else "a repository of its own"
    since = "never" if now.last_sync is None else words.ago(format_time(now.last_sync), memory.stores.clock())
    facts = [
        ("project", now.project_id + (f" ({now.name})" if now.name else "")),
        ("folder", words.short_path(now.root)),
        ("code", words.short_path(now.host) if now.host else "–"),
        ("kind", f"{kind}, {now.branch}"),
        ("remote", now.remote or "–"),
        ("published", told[now.publishing]),
        (
            "changes",
            f"{words.count(len(now.changes), 'file')} not committed" if now.changes else "all committed",
        ),
        ("commits", f"{words.count(now.unpushed, 'commit')} not pushed" if now.unpushed else "all pushed"),
        ("last sync", since),
        ("conflicts", f"{len(now.conflicts)}: `raddle memory resolve`" if now.conflicts else "none"),
    ]
    return [(name, words.one_line(value)) for name, value in facts]


@store.command(
    name="log", short_help="List its commits.", help="List the commits of this memory, the newest first."
)
@limit_option(20, "commits")
@as_json
@with_memory
def log_(memory: ProjectMemory, limit: int, json: bool) -> None:
    """Print a line for each."""
    from raddle.model.clock import format_time  # noqa: PLC0415
    from raddle.wiring.memory_status import store_log  # noqa: PLC0415

    found = store_log(memory, limit)
    if json:
        output.json([{**plain_value(one), "at": format_time(one.at)} for one in found])
        return
    now = memory.stores.clock()
    rows = [
        [
            one.id[:10],
            words.ago(format_time(one.at), now),
            words.one_line(one.node_id or one.author),
            words.one_line(f"{one.subject} ({_files(one.changed)})"),
        ]
        for one in found
    ]
    for line in words.table(
        rows, (10, 14, 24, 200), styles=("yellow", "dim", None, None), width=output.columns(), shrink=(3,)
    ):
        output.styled(line)
    if not rows:
        diagnostics.say("nothing was committed yet; `raddle store sync` does it")


def _files(changed: dict[str, str]) -> str:
    gone = sum(status == "D" for status in changed.values())
    return words.count(len(changed), "file") + (f", {gone:,} of them removed" if gone else "")


def _tell(made: StoreMade, *, json: bool) -> None:
    if json:
        output.json({**plain_value(made), "project": made.project.project_id})
    else:
        output.line(str(made.root))
    _explain(made)


def _explain(made: StoreMade) -> None:
    """Words on what was done, and what is left to the person."""
    place = words.short_path(words.one_line(str(made.root)))
    where = f"on the branch {made.branch}" if made.mode == "worktree" else "in a repository of its own"
    done = {
        "made": f"made the memory of {made.project.project_id} {where}: {place}",
        "attached": f"attached the memory of {made.project.project_id}, {where}: {place}",
        "cloned": f"cloned the memory of {made.project.project_id}: {place}",
        "there": f"the memory of {made.project.project_id} is attached already: {place}",
    }
    diagnostics.say(words.one_line(done[made.done]))
    if made.excluded is not None:
        listed = words.short_path(words.one_line(str(made.excluded)))
        diagnostics.say(f"the code's repository takes no notice of that folder ({listed})")
    if made.is_marker_new and made.marker is not None:
        marker = words.short_path(words.one_line(str(made.marker)))
        diagnostics.say(f"written: {marker}; commit it, so that others find the memory")
    for note in made.notes:
        diagnostics.note(words.one_line(note))


def plain_value(value: Any) -> dict[str, Any]:
    """A Struct as JSON has it, its paths as text."""
    import msgspec  # noqa: PLC0415  not needed for a help text

    plain = msgspec.to_builtins(value, enc_hook=str)
    assert isinstance(plain, dict)
    return plain
