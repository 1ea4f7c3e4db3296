"""`raddle store adopt`: a memory that another program made, or whose git was left damaged, is one of ours again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.commands.memory_store import plain_value
from raddle.apps.cli.options import as_json, with_stores
from raddle.model.errors import InvalidInput

if TYPE_CHECKING:
    from raddle.wiring import Stores
    from raddle.wiring.memory_adopting import Adopted

_SHOWN = 20


@click.command(
    help="""Take over the memory at PATH that redthread made, or that was left in the middle of something.

    git is brought back to the memory's branch: no commit is lost, and what HEAD held is merged by record. A store whose
    .git is damaged or gone is joined again to the repository that it belongs to; where that is gone too, or nothing
    says which it was, it gets one of its own, or with --host-repo a branch of that code. Its files stay as they are. A
    marker .raddle.yaml is put beside .redthread.yaml. PATH is the store's folder, or the code's; what would change is
    shown first.""",
)
@click.argument("path", metavar="[PATH]", required=False)
@click.option(
    "--host-repo", metavar="PATH", help="The code that it belongs to, where no marker says; it gets one."
)
@click.option(
    "--branch",
    metavar="NAME",
    help="With --host-repo: the branch of it that the files go on; else raddle-store.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
@with_stores
def adopt(
    stores: Stores, path: str | None, host_repo: str | None, branch: str | None, yes: bool, json: bool
) -> None:
    """Show what would be done, ask, do it."""
    from raddle.apps.cli.main import COMMANDS  # noqa: PLC0415  it imports this module by name alone
    from raddle.wiring.memory_adopting import adopt as carry_out  # noqa: PLC0415
    from raddle.wiring.memory_adopting import plan_adoption  # noqa: PLC0415

    if branch is not None and host_repo is None:
        raise InvalidInput(
            "a branch is named, and no repository that is to hold it", "say --host-repo PATH too"
        )
    plan = plan_adoption(
        stores, path, host_repo=host_repo, branch=branch, with_server="mcp-serve" in COMMANDS
    )
    if not json:
        for trouble in plan.trouble:
            output.line(words.one_line(f"{plan.root}: {trouble}"))
        output.write(words.safe_lines(plan.diff))
    if plan.home.why and not plan.trouble:  # a person has to settle that
        diagnostics.warn(words.one_line(f"{plan.root}: {plan.home.why}"))
    if plan.is_needed and not yes and not _is_meant():
        diagnostics.say("nothing was changed")
        return
    _tell_adopted(carry_out(stores, plan), diff=plan.diff, json=json)


def _is_meant() -> bool:
    import sys  # noqa: PLC0415

    if not sys.stdin.isatty():
        raise InvalidInput(
            "adopt asks before it changes anything, and nobody is here to answer", "say -y to do it"
        )
    return click.confirm("Do this?", err=True)


def _tell_adopted(done: Adopted, *, diff: str, json: bool) -> None:
    if json:
        output.json({**plain_value(done), "diff": diff})
    else:
        output.line(f"adopted {done.project_id or 'the store'} at {words.short_path(str(done.root))}")
    if done.rescued:
        diagnostics.note(f"every commit that could have been lost is kept: {', '.join(done.rescued)}")
    if done.put_aside is not None:
        diagnostics.note(words.one_line(f"the repository that was in its place is {done.put_aside} now"))
    for file, other in done.aside.items():
        diagnostics.note(words.one_line(f"{file}: what git had left in it is {other} now"))
    for file in done.with_markers[:_SHOWN]:
        told = f"{file} holds the markers of a conflict: look at it, and mend it by hand"
        diagnostics.warn(words.one_line(told))
    for file in done.files:
        written = words.short_path(words.one_line(file))
        diagnostics.say(f"written: {written}; commit it, so that others find the memory")
    if done.is_merged or done.aside:
        diagnostics.suggest(
            "`raddle store sync` brings it into step; `raddle memory resolve` lists what is to be settled"
        )
