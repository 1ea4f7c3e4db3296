"""`raddle up`: the first minute. Brings in what this machine has (or a made-up home), and says what to try."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from raddle import __version__
from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.commands.importing import Bar, print_report
from raddle.config import load_config
from raddle.model.threads.summary import ThreadSummary
from raddle.wiring import Stores, open_stores

_LEAST_WORD = 5


class Try(NamedTuple):
    """A search worth trying, and why."""

    query: str
    why: str


@click.command(help="Set raddle up: bring in the sessions of this machine's agents, and say what to try.")
@click.option(
    "--demo", is_flag=True, help="Use a small made-up home instead, apart from everything of yours."
)
def up(demo: bool) -> None:
    """Again brings in what is new since."""
    output.styled(words.style(f"raddle {__version__}", "bold"))
    if demo:
        _demo()
        return
    with open_stores() as stores:
        for warning in stores.config.warnings:
            diagnostics.warn(warning)
        _bring_in(stores)
        tries = list(_worth_trying(stores))
        _say_what_to_try("raddle", tries, stores)
        output.styled(words.style(f"threads are kept in {_short(stores.paths.threads_dir)}", "dim"))


def _bring_in(stores: Stores) -> None:
    from raddle.wiring.importing import import_sessions  # noqa: PLC0415  the rest of this command waits for it anyway

    started = time.monotonic()
    with Bar("importing") as bar:
        report = import_sessions(stores, (), since=None, revive=False, progress=bar.show)
    print_report(report, time.monotonic() - started)


def _demo() -> None:
    """A home of its own below the cache: nothing of the person's is read or written."""
    from raddle.apps.cli.demo_home import write_demo_home  # noqa: PLC0415

    own = load_config()
    base = own.cache_dir / "demo"
    made = write_demo_home(base / "home", now=_now_of(base))
    places = {
        "HOME": str(base / "home"),
        "CLAUDE_CONFIG_DIR": str(made.claude_home),
        **{f"RADDLE_{name.upper()}_DIR": str(base / name) for name in ("data", "config", "state", "cache")},
    }
    command = _write_wrapper(base, places)
    with open_stores(load_config(places)) as stores:
        _bring_in(stores)
        tries = [Try(search.query, search.shows) for search in made.searches]
        _say_what_to_try(_short(command), tries, stores)
    output.styled(
        words.style(f"this is the demo, in {_short(base)}; `raddle up` brings in your own sessions", "dim")
    )


def _now_of(base: Path) -> int:
    """The time the demo's sessions are told from: that of its first making, so that making it again is the same."""
    stamp = base / "made"
    try:
        return int(stamp.read_text())
    except (OSError, ValueError):
        from raddle.model.clock import system_clock  # noqa: PLC0415

        now = system_clock()
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp.write_text(str(now))
        return now


def _write_wrapper(base: Path, places: dict[str, str]) -> Path:
    """A command that is raddle in the demo."""
    import shlex  # noqa: PLC0415

    command = base / "raddle"
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in places.items())
    base.mkdir(parents=True, exist_ok=True, mode=0o700)
    command.write_text(
        f'#!/bin/sh\n{exports}exec {shlex.quote(sys.executable)} -m raddle "$@"\n', encoding="utf-8"
    )
    command.chmod(0o700)
    return command


def _worth_trying(stores: Stores) -> Iterator[Try]:
    """Up to three searches that find something here, each showing another way to search."""
    recent = stores.listed(limit=50)
    candidates = [
        *(Try(word, "a word of a title") for word in _title_words(summary.title for summary in recent)),
        None,
        *(Try(f"repo:{name}", "everything of one repository") for name in _repositories(recent)),
        None,
        Try("role:user is:pinned", "what you asked, in pinned threads"),
        Try("has:error after:30d", "what failed in the last month"),
        Try("role:user after:7d", "what you asked in the last week"),
        Try("role:user", "everything you asked"),
    ]
    found = False
    for candidate in candidates:
        if candidate is None:
            found = False
        elif not found and stores.find(candidate.query, limit=1).hits:
            found = True
            yield candidate


def _title_words(titles: Iterator[str]) -> list[str]:
    seen: dict[str, None] = {}
    for title in titles:
        for word in sorted(title.split(), key=len, reverse=True):
            clean = word.strip(".,:;!?()[]{}\"'`<>*")
            if len(clean) >= _LEAST_WORD and clean.isalpha():
                seen[clean] = None
                break
    return list(seen)[:8]


def _repositories(summaries: Iterable[ThreadSummary]) -> list[str]:
    names = []
    for summary in summaries:
        place = summary.git_remote_url or summary.workspace_root or ""
        name = place.rstrip("/").rpartition("/")[2]
        if name:
            names.append(name)
    return list(dict.fromkeys(names))[:3]


def _say_what_to_try(command: str, tries: list[Try], stores: Stores) -> None:
    import shlex  # noqa: PLC0415

    newest = stores.listed(limit=1)
    if not newest:
        output.line(
            "nothing is here yet: `raddle new` starts a thread, and `raddle import PATH` reads sessions from elsewhere"
        )
        return
    output.line()
    output.styled(words.style("Try:", "bold"))
    rows = [(f"  {command} search {shlex.quote(one.query)}", one.why) for one in tries]
    rows.append((f"  {command} list", "what you worked on last"))
    rows.append(
        (f"  {command} show {stores.short_id(newest[0].id)}", words.cut(words.one_line(newest[0].title), 60))
    )
    for line in words.table(rows, (110, 64), styles=(None, "dim")):
        output.styled(line)


def _short(path: Path) -> str:
    """`~` for the home folder."""
    home = os.path.expanduser("~")  # noqa: PTH111  shown, not opened
    text = str(path)
    return "~" + text[len(home) :] if text.startswith(home + "/") else text
