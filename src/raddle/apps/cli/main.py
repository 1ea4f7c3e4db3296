"""The command `raddle`: which commands there are, and what becomes of an error.

Names and one-line helps stand here as text, so that `raddle --help` and a typing error import no command.
What a command prints goes through `output`, what it says on the side and its exit code through `diagnostics`.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import NamedTuple, NoReturn

import click

from raddle import __version__
from raddle.apps.cli import diagnostics, output
from raddle.model.errors import RaddleError


class Entry(NamedTuple):
    """Where a command is defined (`module:attribute` in `apps/cli/commands`), and its one-line help."""

    group: str
    module: str
    attribute: str
    short_help: str


FIRST, FIND, WRITE, KEEP = "First steps", "Find and read", "Write", "Keep in order"
SYNC, MEMORY, CARE = "On all devices", "Remember for a project", "Look after it"

COMMANDS: dict[str, Entry] = {
    "up": Entry(FIRST, "up", "up", "Bring in what this machine has, and say what to try"),
    "import": Entry(FIRST, "importing", "import_", "Bring in the sessions of other agents"),
    "hooks": Entry(FIRST, "hooks", "hooks", "Have an agent call raddle as its sessions go on"),
    "list": Entry(FIND, "listing", "list_", "List threads: pins first, newest activity first"),
    "search": Entry(FIND, "searching", "search", "Find messages by words, phrases and filters"),
    "show": Entry(FIND, "showing", "show", "Read a thread"),
    "branches": Entry(FIND, "branches", "branches", "List, name, compare, switch and move branches"),
    "stats": Entry(FIND, "stats", "stats", "Sum the tokens used, by day, thread, agent, model, …"),
    "export": Entry(FIND, "exporting", "export", "Write a thread out as markdown, json, text, …"),
    "attachments": Entry(FIND, "attaching", "attachments", "List what was attached, and write it out"),
    "new": Entry(WRITE, "writing", "new", "Start a thread"),
    "reply": Entry(WRITE, "writing", "reply", "Add a turn to a thread"),
    "draft": Entry(WRITE, "writing", "draft", "Keep, show or clear unsent text"),
    "fork": Entry(WRITE, "writing", "fork", "Copy a thread, or the path to one message, as a new one"),
    "chat": Entry(WRITE, "answering", "chat", "Talk with a model, or with who else answers"),
    "resume": Entry(WRITE, "resuming", "resume", "Go on with a thread, here or in an agent"),
    "jobs": Entry(WRITE, "answering", "jobs", "List the turns that wait for an answer, and settle them"),
    "policies": Entry(WRITE, "answering", "policies", "List the policies of a deliberation server"),
    "undo": Entry(WRITE, "writing", "undo", "Take back the last turns"),
    "redo": Entry(WRITE, "writing", "redo", "Bring back turns that were taken back"),
    "rename": Entry(KEEP, "keeping", "rename", "Set a thread's title"),
    "tag": Entry(KEEP, "keeping", "tag", "Add tags to a thread, or take them away"),
    "pin": Entry(KEEP, "keeping", "pin", "Put a thread first in lists"),
    "archive": Entry(KEEP, "keeping", "archive", "Put a thread away: out of lists, still found"),
    "private": Entry(KEEP, "keeping", "private", "Keep a thread on this machine, or start one that stays"),
    "login": Entry(SYNC, "signing_in", "login", "Sign this device in to a sync server"),
    "logout": Entry(SYNC, "signing_in", "logout", "Sign this device out"),
    "whoami": Entry(SYNC, "signing_in", "whoami", "Say who this device is signed in as"),
    "devices": Entry(
        SYNC, "signing_in", "devices", "List the devices that you let in, and let one in no more"
    ),
    "share": Entry(SYNC, "sharing", "share", "Say who may read a thread on the server"),
    "sync": Entry(SYNC, "syncing", "sync", "Bring this machine and the server into step"),
    "daemon": Entry(SYNC, "daemon", "daemon", "Import and sync by itself, all day"),
    "serve": Entry(SYNC, "serving", "serve", "Run a sync server, and manage its accounts"),
    "conflicts": Entry(SYNC, "syncing", "conflicts", "List what was set to several values at once"),
    "store": Entry(MEMORY, "memory_store", "store", "Make, find and bring into step a project's memory"),
    "run": Entry(MEMORY, "memory_runs", "run", "Begin, list and end runs, and say how their phases stand"),
    "entry": Entry(MEMORY, "memory_entries", "entry", "Note what happens in a run, and list it"),
    "artifact": Entry(MEMORY, "memory_artifacts", "artifact", "Keep a file of a run, and fetch it anywhere"),
    "summary": Entry(MEMORY, "memory_phases", "summary", "Read or write the digest of a phase"),
    "handoff": Entry(MEMORY, "memory_phases", "handoff", "Publish what the next phase needs to know"),
    "memory": Entry(MEMORY, "memory_texts", "memory", "Keep, find and read what is worth knowing for long"),
    "present": Entry(MEMORY, "presenting", "present", "Make a report, slides and pages of handoffs"),
    "mcp-serve": Entry(MEMORY, "mcp", "mcp_serve", "Serve memory and threads to an agent, over MCP"),
    "mcp": Entry(MEMORY, "mcp", "mcp", "Register that server with an agent"),
    "delete": Entry(KEEP, "removing", "delete", "Delete threads (restore brings them back)"),
    "restore": Entry(KEEP, "removing", "restore", "Bring deleted threads back"),
    "purge": Entry(KEEP, "removing", "purge", "Erase a thread, or its removed turns, for good"),
    "doctor": Entry(CARE, "doctor", "doctor", "Check what is stored, and mend it"),
    "responders": Entry(CARE, "answering", "responders", "List who can answer, and keep their keys"),
    "config": Entry(CARE, "config", "config", "Show every setting and where it comes from"),
    "completion": Entry(CARE, "completion", "completion", "Print the completion script of a shell"),
}

ALSO_CALLED = {
    "cat": "show",
    "cost": "stats",
    "entries": "entry list",
    "find": "search",
    "grep": "search",
    "handoffs": "handoff show",
    "history": "list",
    "init": "up",
    "less": "show",
    "log": "list",
    "ls": "list",
    "open": "show",
    "read": "show",
    "remove": "delete",
    "rm": "delete",
    "runs": "run list",
    "start": "new",
    "status": "list",
    "tokens": "stats",
    "unarchive": "archive --off",
    "undelete": "restore",
    "unpin": "pin --off",
    "usage": "stats",
    "view": "show",
}
"""What other programs call it; a typing error is not near enough to any of these to be found by its letters."""


class Verbs(click.Group):
    """The top group: commands by name from COMMANDS, imported when they run; a wrong name suggests the near one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None where there is none of that name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"raddle.apps.cli.commands.{entry.module}")
        command = getattr(module, entry.attribute)
        assert isinstance(command, click.Command)
        command.name = cmd_name
        command.short_help = entry.short_help
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but an unknown name is answered with the near ones."""
        name = args[0] if args else ""
        if args and not name.startswith("-") and name not in COMMANDS:
            raise click.UsageError(f"there is no command {name[:40]!r}\n{_meant(name)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by group, without importing one."""
        width = max(map(len, COMMANDS))
        for group in (FIRST, FIND, WRITE, KEEP, SYNC, MEMORY, CARE):
            rows = [
                (name.ljust(width), entry.short_help)
                for name, entry in COMMANDS.items()
                if entry.group == group
            ]
            with formatter.section(group):
                formatter.write_dl(rows)


def _meant(name: str) -> str:
    """A hint for a name that is no command."""
    import difflib  # noqa: PLC0415  8 ms that only a typing error pays

    known = ALSO_CALLED.get(name.lower())
    near = [known] if known else difflib.get_close_matches(name.lower(), COMMANDS, n=3, cutoff=0.55)
    if not near:
        return "`raddle --help` lists the commands"
    return f"did you mean {' or '.join(f'`raddle {one}`' for one in near)}?"


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`raddle COMMAND --help` says more of each. An ID may be cut to the part that is unique.",
)
@click.version_option(__version__, "-V", "--version", message="raddle %(version)s")
@click.pass_context
def raddle(ctx: click.Context) -> None:
    """Your coding agents' conversations, kept, found, read and gone on with."""
    if ctx.invoked_subcommand is None:
        output.line(ctx.get_help())


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    output.prepare()
    sys.exit(main(sys.argv[1:] if arguments is None else arguments))


def main(arguments: list[str]) -> int:
    """Run one command; its exit code (see `diagnostics.EXIT_CODES`)."""
    before_texts = arguments[: arguments.index("--")] if "--" in arguments else arguments
    settled = functools.partial(
        _settled,
        command=f"raddle {arguments[0]}" if arguments and arguments[0] in COMMANDS else "raddle",
        as_json=any(argument in {"--json", "--jsonl"} for argument in before_texts),
    )
    code = settled(lambda: raddle.main(args=arguments, prog_name="raddle", standalone_mode=False))
    # What was printed is still on its way: a full disk or a closed pipe may show only now.
    return max(code, settled(output.finish))


def _settled(step: Callable[[], object], *, command: str, as_json: bool) -> int:
    """The exit code of `step`: what it answers where that is one; what it raises is said."""
    try:
        code = step()
    except click.exceptions.Exit as leave:
        code = leave.exit_code
    except click.ClickException as error:
        code = diagnostics.usage_error(error, command, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        code = diagnostics.interrupted()
    except output.ReaderGone:
        code = 0
    except RaddleError as error:
        code = diagnostics.failed(error, as_json=as_json)
    except Exception as error:  # noqa: BLE001  a bug: said in one line, where it happened kept in the log file
        code = _unforeseen(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def _unforeseen(error: Exception, *, as_json: bool) -> int:
    """A bug of ours; or of no file, since every file of ours has its name: a help text that found no room."""
    if isinstance(error, OSError) and error.filename is None:
        output.give_up()
        return diagnostics.failed(output.refused(error), as_json=as_json)
    return diagnostics.bug(error, as_json=as_json)
