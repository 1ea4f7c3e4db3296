"""`raddle up`: the first minute. Brings in what this machine has (or a made-up home), and says what to try."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from raddle import __version__
from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.calling import how_to_call
from raddle.apps.cli.commands.importing import as_plain, bring_in, print_report
from raddle.apps.cli.first_import import is_first, may_import
from raddle.apps.cli.options import as_json, warn_of_settings
from raddle.apps.cli.own_server import PORT, bring_up, has_server_parts
from raddle.config import AGENT_VARIABLES, SETTINGS, Config, load_config
from raddle.model.errors import NetworkError, NotSignedIn, StorageError
from raddle.model.threads.summary import ThreadSummary
from raddle.wiring import Stores, open_stores

_LEAST_WORD = 5


class Try(NamedTuple):
    """A search worth trying, and why."""

    query: str
    why: str


@click.command(
    help="""Bring in the sessions of this machine's agents, start a server of your own and the daemon in the background,
    sync, and say what to try. Again brings in what is new; --stop ends both.

    --demo does it with made-up sessions, in a place apart from everything of yours, and prints the command that
    works there."""
)
@click.option("--demo", is_flag=True, help="With made-up sessions, apart from everything of yours.")
@click.option("--stop", is_flag=True, help="End the server and the daemon in the background.")
@click.option("--no-server", is_flag=True, help="Only import: start nothing.")
@as_json
def up(demo: bool, stop: bool, no_server: bool, json: bool) -> None:
    """Print the report of the import, the server's address, and commands to try."""
    if stop:
        _stop(_demo_config() if demo else load_config(), json=json)
        return
    if not json:
        output.styled(words.style(f"raddle {__version__}", "bold"))
    if demo:
        _demo(json=json, with_server=not no_server and not load_config().is_offline)
        return
    with open_stores(report=diagnostics.found) as stores:
        warn_of_settings(stores)
        was_first = is_first(stores)
        if not may_import(stores, (), json=json):
            return
        report = _bring_in(stores, json=json)
        called = how_to_call()
        server = "" if no_server else _serve(stores, called.command, json=json)
        tries = list(_worth_trying(stores))
        _conclude(stores, report, called.command, tries, server=server, json=json)
        if json:
            return
        if called.advice:
            diagnostics.say(called.advice)
        if was_first and report["threads"] and not (sys.stdin.isatty() and diagnostics.is_terminal()):
            diagnostics.say(_unasked(stores, called.command))
        diagnostics.suggest(f"threads are kept in {words.short_path(str(stores.paths.threads_dir))}")


def _unasked(stores: Stores, command: str) -> str:
    """What the question of the first import would have said, where nobody could be asked."""
    rules = stores.config.import_exclude + stores.config.private_workspaces + stores.config.private_remotes
    file = words.short_path(str(stores.paths.config_file))
    if rules:
        return f"no terminal to ask at: {words.count(len(rules), 'rule')} of {file} held"
    return (
        f"no terminal to ask at: all of it was imported, and nothing left out or kept private by rules.\n"
        f"Rules go into {file} ([import] exclude, [private] workspaces); `{command} purge ID` takes a thread out"
    )


def _bring_in(stores: Stores, *, json: bool) -> dict[str, Any]:
    """Import what is new and show it; the report in its JSON shape."""
    report, seconds = bring_in(stores, ())
    if not json:
        print_report(report, seconds)
    return as_plain(report, seconds)


def _stop(config: Config, *, json: bool) -> None:
    """End what `up` started; print what was."""
    from raddle.wiring.daemon_state import status_of, stop_daemon  # noqa: PLC0415
    from raddle.wiring.own_server import stop_own_server  # noqa: PLC0415

    paths = config.paths
    daemon = stop_daemon(paths) if status_of(paths).is_running else None
    server = stop_own_server(paths)
    ended = [name for name, pid in (("the daemon", daemon), ("the server", server)) if pid]
    output.answer(
        json, {"daemon": daemon, "server": server}, f"ended {' and '.join(ended)}" if ended else "nothing ran"
    )


def _serve(stores: Stores, command: str, *, json: bool, port: int = PORT) -> str:
    """Server, sign-in, sync and daemon; the server's address, empty where there is none to be had."""
    if stores.config.is_offline:
        return ""
    is_other = _has_other_server(stores)
    if not is_other and not _serve_own(stores, port=port, json=json):
        return ""
    from raddle.wiring.daemon import start_in_background  # noqa: PLC0415
    from raddle.wiring.remote import server_of  # noqa: PLC0415

    _sync(stores, command, json=json)
    start_in_background(stores.config)
    address = server_of(stores)
    if is_other:
        why = "the settings name" if stores.config.server else "this machine is signed in to"
        diagnostics.note(
            f"kept {address}, the server that {why}; one of your own: `{command} logout`, then `{command} up`"
        )
    elif not json:
        output.line(f"your server: {address}  (ends with `{command} up --stop`)")
    return address


def _serve_own(stores: Stores, *, port: int, json: bool) -> bool:
    """Start a server of the person's own, this machine signed in to it; False where its parts are not installed."""
    if not has_server_parts():
        if not json:
            diagnostics.suggest("for a server of your own: pip install 'raddle[server]'")
        return False
    running = bring_up(stores, stores.config, port=port)
    if running.is_new and not json:
        output.line(f"made the account {running.owner} on your server")
    if running.taken_port:
        diagnostics.warn(
            f"another program has port {running.taken_port}: your server listens on {running.address}, "
            "which your other devices have to be told"
        )
    return True


def _sync(stores: Stores, command: str, *, json: bool) -> None:
    from raddle.wiring.syncing import syncing  # noqa: PLC0415

    try:
        with syncing(stores) as work, diagnostics.Counting("syncing") as bar:
            plan = work.plan(anyway=True)
            if plan.is_alarming:
                diagnostics.warn(f"more would be deleted than kept: look, then `{command} sync`")
                return
            done = work.carry_out(plan, progress=lambda step: bar.show(step.done, step.total))
    except (NetworkError, NotSignedIn) as error:
        diagnostics.warn(f"not synced: {error.message}; {error.hint}")
        return
    if not json:
        output.line(f"synced: {words.count(done.pushed, 'thread')} sent, {done.pulled:,} taken in")


def _has_other_server(stores: Stores) -> bool:
    """Is this machine set to a server, or signed in to one, that `up` does not run?"""
    from raddle.wiring.own_server import last_address  # noqa: PLC0415
    from raddle.wiring.remote import is_signed_in, server_of  # noqa: PLC0415

    server = server_of(stores, is_needed=False)
    if not server or server == last_address(stores.paths):
        return False
    return bool(stores.config.server) or is_signed_in(stores)


def _demo_places(base: Path) -> dict[str, str]:
    return {f"RADDLE_{name.upper()}_DIR": str(base / name) for name in ("data", "config", "state", "cache")}


def _demo_config() -> Config:
    base = load_config().paths.demo_dir
    return load_config({"HOME": str(base / "home"), **_demo_places(base)})


def _demo(*, json: bool, with_server: bool) -> None:
    """A home of its own below the cache: nothing of the person's is read or written."""
    from raddle.apps.cli.demo_home import write_demo_home  # noqa: PLC0415

    own = load_config()
    base = own.paths.demo_dir
    try:
        made = write_demo_home(base / "home", now=_now_of(base))
        places = {
            "HOME": str(base / "home"),
            "CLAUDE_CONFIG_DIR": str(made.claude_home),
            **_demo_places(base),
            **({"RADDLE_PG_BIN": str(own.pg_bin)} if own.pg_bin else {}),
        }
        command = _write_wrapper(base, places)
    except OSError as error:
        raise StorageError(
            f"cannot write the demo below {base}: {error.strerror}", "make room, or set RADDLE_CACHE_DIR"
        ) from error
    with open_stores(load_config(places), report=diagnostics.found) as stores:
        report = _bring_in(stores, json=json)
        tries = [Try(search.query, search.shows) for search in made.searches]
        called = words.short_path(str(command))
        server = _serve(stores, called, json=json, port=PORT + 1) if with_server else ""
        _conclude(stores, report, called, tries, server=server, json=json)
    if not json:
        told = (
            f"this is the demo, in {words.short_path(str(base))}; `up` without it brings in your own sessions"
        )
        output.styled(words.style(told, "dim"))


def _now_of(base: Path) -> int:
    """The time the demo's sessions are told from: that of its first making, so that making it again is the same."""
    stamp = base / "made"
    try:
        return int(stamp.read_text())
    except (FileNotFoundError, ValueError):
        from raddle.model.clock import system_clock  # noqa: PLC0415

        now = system_clock()
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp.write_text(str(now))
        return now


def _write_wrapper(base: Path, places: dict[str, str]) -> Path:
    """A command that is raddle in the demo, whatever the person's own variables say."""
    command = base / "raddle"
    ours = {setting.variable for setting in SETTINGS if setting.variable.startswith("RADDLE_")}
    unset = sorted({*AGENT_VARIABLES, *ours} - places.keys())
    lines = [
        "#!/bin/sh",
        f"unset {' '.join(unset)}",
        *(f"export {name}={shlex.quote(value)}" for name, value in places.items()),
        f'exec {shlex.quote(sys.executable)} -m raddle "$@"',
    ]
    base.mkdir(parents=True, exist_ok=True, mode=0o700)
    command.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command.chmod(0o700)
    return command


def _worth_trying(stores: Stores) -> Iterator[Try]:
    """Up to three searches that find something here, each showing another way to search."""
    recent = stores.listed(limit=50)
    ways: tuple[Iterable[Try], ...] = (
        (Try(word, "a word of a title") for word in _title_words(row.title for row in recent)),
        (Try(f"repo:{name}", "everything of one repository") for name in _repositories(recent)),
        (
            Try("has:error after:30d", "what failed in the last month"),
            Try("role:user after:7d", "what you asked in the last week"),
            Try("role:user", "everything you asked"),
        ),
    )
    for candidates in ways:
        found = next((one for one in candidates if stores.find(one.query, limit=1).hits), None)
        if found is not None:
            yield found


def _title_words(titles: Iterable[str]) -> list[str]:
    """The longest word of each title, where it is one to search for."""
    seen: dict[str, None] = {}
    for title in titles:
        longest = max((word.strip(".,:;!?()[]{}\"'`<>*") for word in title.split()), key=len, default="")
        if len(longest) >= _LEAST_WORD and longest.isalpha():
            seen[longest] = None
    return list(seen)[:8]


def _repositories(summaries: Iterable[ThreadSummary]) -> list[str]:
    """The names of the newest repositories, where one word says them."""
    names = []
    for summary in summaries:
        place = summary.git_remote_url or summary.workspace_root or ""
        name = place.rstrip("/").rpartition("/")[2]
        if name and name.isprintable() and " " not in name:
            names.append(name)
    return list(dict.fromkeys(names))[:3]


def _conclude(
    stores: Stores, report: dict[str, Any], command: str, tries: list[Try], *, server: str, json: bool
) -> None:
    """Say what to try; with `json` the report with it."""
    newest = stores.listed(limit=1)
    commands = [f"{command} search {shlex.quote(one.query)}" for one in tries]
    if newest:
        commands += [f"{command} list", f"{command} show {stores.short_id(newest[0].id)}"]
    if json:
        data_dir = os.fspath(stores.paths.data_dir)
        output.json({"import": report, "data_dir": data_dir, "server": server or None, "try": commands})
        return
    if not newest:
        output.line(f"nothing is here yet: `{command} import PATH` reads sessions that lie elsewhere,")
        output.line(f"and `{command} new` starts a conversation of your own")
        return
    reasons = [*(one.why for one in tries), "what you worked on last", words.one_line(newest[0].title)]
    output.line()
    output.styled(words.style("Try:", "bold"))
    rows = [(f"  {line}", why) for line, why in zip(commands, reasons, strict=True)]
    for line in words.table(rows, (110, 60), styles=(None, "dim"), width=output.columns(), shrink=(1,)):
        output.styled(line)
