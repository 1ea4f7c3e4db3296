"""The command that goes on with a thread: shows where it stands, and hands it to who goes on."""

from __future__ import annotations

import sys

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import (
    Words,
    as_json,
    asking_options,
    complete_thread,
    message_option,
    warn_of_settings,
    with_stores,
)
from raddle.model.errors import InvalidInput
from raddle.model.threads.edits import ROOT
from raddle.wiring import Stores
from raddle.wiring.resume_point import ResumePoint, newest_thread, resume_point

AGENTS = ("claude-code", "codex", "gemini", "opencode")
_SHORT = 7


@click.command(
    help="""Go on with thread ID; without ID, with the newest of this workspace.

    Says where it stands, and what changed around it since. Then a talk begins where somebody is set up to answer
    (`raddle responders`), or what stdin says is asked as one turn; with --in, the conversation is written as a session
    of that agent's, where it looks for it on this machine, and the command that opens it is printed, or run.

    \b
    raddle resume
    raddle resume T-019 --in codex --exec
    raddle resume T-019 --print-context | wc -c""",
)
@click.argument("thread", metavar="[ID]", required=False, type=Words(), shell_complete=complete_thread)
@message_option("--branch", "Go on with the branch of this message.")
@click.option("--in", "agent", type=click.Choice(AGENTS), help="Write it as a session of this agent.")
@click.option("--exec", "is_run", is_flag=True, help="With --in: run the agent's command.")
@click.option(
    "--print-context", "is_printed", is_flag=True, help="Print what a model is told of it, and end."
)
@asking_options
@as_json
@with_stores
def resume(
    stores: Stores,
    thread: str | None,
    branch: str | None,
    agent: str | None,
    is_run: bool,
    is_printed: bool,
    who: str,
    model: str,
    policy: str,
    budget: int | None,
    json: bool,
) -> None:
    """Print the block, and go on."""
    from raddle.apps.cli.conversation import tell_settled  # noqa: PLC0415
    from raddle.wiring.answering import settle  # noqa: PLC0415

    warn_of_settings(stores)
    if is_run and agent is None:
        raise InvalidInput("--exec runs the command of an agent", "name it with --in")
    if agent is not None:
        _refuse_beside_agent(is_printed=is_printed, asking=any((who, model, policy, budget)))
    thread_id = stores.resolve(thread) if thread is not None else _newest(stores, agent)
    for settled in settle(stores, thread_id):
        tell_settled(settled)
    point = resume_point(stores, thread_id, leaf=branch)
    if is_printed:
        _print_context(point, budget, json=json)
        return
    if agent is not None:
        _in_agent(stores, point, agent, is_run=is_run, json=json)
        return
    if json:
        output.json(_as_plain(point))
        return
    _print_block(point, stores.clock())
    _talk(stores, point, who=who, model=model, policy=policy, budget=budget)


def _refuse_beside_agent(*, is_printed: bool, asking: bool) -> None:
    """What says nothing to an agent that goes on by itself."""
    if is_printed:
        raise InvalidInput("--print-context writes no session", "leave it out, or --in")
    if asking:
        raise InvalidInput(
            "--with, --model, --policy and --budget are for who answers here, not for an agent",
            "leave them out, or --in",
        )


def _newest(stores: Stores, agent: str | None) -> str:
    """The thread to go on with where none is named. One of another folder is said to be so, and handed to nobody."""
    thread_id, other = newest_thread(stores)
    if other is not None:
        if agent is not None:
            raise InvalidInput(
                "this folder has no thread", f"the newest of all: `raddle resume {thread_id} --in {agent}`"
            )
        where = f", of {words.one_line(other)}" if other else ""
        diagnostics.warn(f"this folder has no thread: this is the newest of all{where}")
    return thread_id


def _talk(
    stores: Stores, point: ResumePoint, *, who: str, model: str, policy: str, budget: int | None
) -> None:
    from raddle.apps.cli.chatting import Talk  # noqa: PLC0415

    name = point.thread.id
    output.finish()
    text = "" if sys.stdin.isatty() else output.text_of_stdin()
    if not text.strip() and not (stores.config.responders and sys.stdin.isatty()):
        diagnostics.suggest(f"go on: `raddle reply {name} TEXT`, `raddle resume {name} --in AGENT`")
        if not stores.config.responders:
            diagnostics.suggest("to talk with a model, set one up: docs/how-to/talk-to-a-model.md")
        return
    talk = Talk(stores, who=who, model=model, policy=policy, budget=budget)
    talk.stand_at(name, point.leaf if point.leaf is not None else ROOT)
    if text:
        talk.say(text)
    else:
        talk.run()


def _print_block(point: ResumePoint, now: int) -> None:
    thread = point.thread
    output.line(f"Resuming thread: {thread.id}")
    output.line(f'Title: "{words.one_line(thread.title)}"')
    here, count = len(thread.tree.path_to_root(point.leaf)), thread.summary().message_count
    output.line(f"Messages: {here}" + (f" on this branch, {count} in all" if here != count else ""))
    output.line(f"Last activity: {words.ago(thread.summary().last_activity_at, now)}")
    git = point.git
    if git is not None and git.head is not None:
        dirty = " (dirty)" if git.is_dirty else ""
        output.line(f"Git: {words.one_line(git.branch or 'detached')} @ {git.head[:_SHORT]}{dirty}")
    state = thread.agent_state
    if state.kind != "waiting_for_user_input":
        said = f": {words.one_line(state.last_error)}" if state.last_error else ""
        output.line(f"State: {words.one_line(state.kind)}{said}")
        for call in state.pending_tool_calls:
            output.line(f"  {words.one_line(call.tool_name)} ({words.one_line(call.call_id)}) has no result")
    for warning in point.warnings:
        diagnostics.warn(words.one_line(warning))


def _as_plain(point: ResumePoint) -> dict[str, object]:
    import msgspec  # noqa: PLC0415

    thread, git = point.thread, point.git
    return {
        "id": thread.id,
        "title": thread.title,
        "message_count": thread.summary().message_count,
        "last_activity_at": thread.summary().last_activity_at,
        "leaf": point.leaf,
        "agent_state": msgspec.to_builtins(thread.agent_state),
        "folder": str(point.folder),
        "git": None if git is None else {"branch": git.branch, "head": git.head, "is_dirty": git.is_dirty},
        "warnings": list(point.warnings),
    }


def _print_context(point: ResumePoint, budget: int | None, *, json: bool) -> None:
    import msgspec  # noqa: PLC0415

    from raddle.model.threads.rendering import to_chat_messages  # noqa: PLC0415

    messages = to_chat_messages(point.thread, point.leaf, budget)
    if json:
        output.json([msgspec.to_builtins(message) for message in messages])
        return
    for message in messages:
        output.styled(words.style(f"[{words.one_line(message.role)}]", "bold"))
        for call in message.tool_calls:
            arguments = call.arguments_json
            text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
            output.line(words.safe_lines(f"{call.tool_name} {text}"))
        if message.content:
            output.line(words.safe_lines(message.content))
        for attachment in message.attachments:
            output.line(f"[attachment {words.one_line(attachment.name or attachment.sha256[:12])}]")
        output.line()


def _in_agent(stores: Stores, point: ResumePoint, agent: str, *, is_run: bool, json: bool) -> None:
    import shlex  # noqa: PLC0415
    import shutil  # noqa: PLC0415

    from raddle.wiring.resuming import prepare_session, run_agent  # noqa: PLC0415

    session = prepare_session(stores, point.thread, agent, leaf=point.leaf, workspace=point.folder)
    for warning in (*point.warnings, *session.warnings):
        diagnostics.warn(words.one_line(warning))
    command = shlex.join(session.argv)
    if json:
        output.json(
            {
                "id": point.thread.id,
                "agent": agent,
                "session_id": session.session_id,
                "path": None if session.path is None else str(session.path),
                "command": list(session.argv),
                "folder": str(session.cwd),
                "messages": session.messages,
            }
        )
        return
    if not is_run:
        output.line(f"cd {shlex.quote(str(session.cwd))} && {command}")
        return
    if shutil.which(session.argv[0]) is not None:
        diagnostics.say(f"{agent} goes on with {words.count(session.messages, 'message')}: {command}")
    output.finish()
    raise click.exceptions.Exit(run_agent(session))
