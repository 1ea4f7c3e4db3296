"""Fills what the docs show of the program: outputs of the demo, and the help text of every command.

    python docs/fill_readme.py            # writes README.md and docs/reference/{json,cli}.md
    python docs/fill_readme.py --check    # says which of them are stale

A block that begins with `<!-- demo: COMMAND ; COMMAND -->` holds what these commands print in the demo, in a home
made for the run. What differs from run to run or from machine to machine (paths, durations, scores) is made the
same. A COMMAND may end in `2>&1` (with what it says on stderr) or in `| head -n N`.
"""

# ruff: noqa: INP001  a script beside the pages it fills

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from raddle.adapters.programs import clean_environment, run
from raddle.apps.cli.main import COMMANDS, raddle

ROOT = Path(__file__).resolve().parent.parent
README, JSON_PAGE, CLI_PAGE = (
    ROOT / "README.md",
    ROOT / "docs/reference/json.md",
    ROOT / "docs/reference/cli.md",
)
TOLD_IN_JSON = 1_795_000_000_000_000
"""When the demo of json.md is told, in microseconds: its times stand there as they are."""

_BLOCK = re.compile(r"<!-- demo: (.+?) -->\n(?:\n?```[a-z]*\n.*?^```\n)?", re.DOTALL | re.MULTILINE)
_HEAD = re.compile(r"\s*\|\s*head -n (\d+)\Z")
_KEPT = frozenset({"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"})
_OURS = [sys.executable, "-m", "raddle"]
_WIDTH = 90

_CLI_HEAD = """# Commands

What `raddle COMMAND --help` says, of every command. An ID may be cut to the part that is unique; a MESSAGE may be
named by the start or the end of its id, as lists show it. Exit codes have [a page](exit-codes.md), and so has
[what `--json` prints](json.md).

Made by `python docs/fill_readme.py`; a test fails when it is stale.
"""

Run = Callable[[str], str]


class Demo:
    """The demo in a home of its own. Use as a context manager. `told_at`: microseconds; None: now."""

    def __init__(self, told_at: int | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="raddle-docs-")
        self._home = Path(self._folder.name).resolve()
        self._told_at = told_at

    def __enter__(self) -> Run:
        if self._told_at is None:
            first, up = "make up DEMO=1", self._output([*_OURS, "up", "--demo"])
        else:
            made = self._home / ".cache/raddle/demo/made"
            made.parent.mkdir(parents=True)
            made.write_text(str(self._told_at))
            first = "raddle up --demo --json"
            up = self._output([*_OURS, "up", "--demo", "--json", "--no-server"])
        return lambda command: up if command == first else self._shown(command)

    def __exit__(self, *_: object) -> None:
        try:
            self._output([*_OURS, "up", "--demo", "--stop"])
        finally:
            self._folder.cleanup()

    def _shown(self, command: str) -> str:
        """What a command prints in the demo."""
        program, *arguments = shlex.split(command.removesuffix(" 2>&1"))
        if program not in {"raddle", "~/.cache/raddle/demo/raddle"}:
            raise ValueError(f"{program} is no command of the demo")
        wrapper = str(self._home / ".cache/raddle/demo/raddle")
        return self._output([wrapper, *arguments], with_stderr=command.endswith(" 2>&1"))

    def _output(self, argv: list[str], *, with_stderr: bool = False) -> str:
        kept = {name: value for name, value in clean_environment().items() if name in _KEPT}
        ran = run(
            argv, env={**kept, "HOME": str(self._home), "LC_ALL": "C.UTF-8", "TZ": "UTC"}, cwd=self._home
        )
        data = ran.stdout + (ran.stderr if with_stderr else b"")
        if not data:
            raise ValueError(f"{shlex.join(argv)} printed nothing: {ran.stderr.decode()}")
        return _same_everywhere(data.decode(), str(self._home))


def _same_everywhere(text: str, home: str) -> str:
    text = text.replace(home, "/home/you")
    text = text.replace(re.sub("[^A-Za-z0-9]", "-", home), "-home-you")
    text = re.sub(r"in \d+\.\d s\b", "in 0.4 s", text)
    text = re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:7371", text)
    text = re.sub(r"made the account \S+", "made the account you", text)
    text = re.sub(r'"seconds": ?\d+\.\d+', '"seconds": 0.4', text)
    return re.sub(r'"score": ?\d+\.\d+', '"score": 0.5', text)


def filled(page: str, show: Run) -> str:
    """The page with every block as the demo prints it now."""
    return _BLOCK.sub(lambda found: f"{found[0].splitlines()[0]}\n{_block(found[1], show)}", page)


def _block(commands: str, show: Run) -> str:
    parts = [
        f"$ {command.removesuffix(' 2>&1')}\n{_cut(command, show)}\n" for command in commands.split(" ; ")
    ]
    return "\n```\n{}```\n".format("\n".join(parts))


def _cut(command: str, show: Run) -> str:
    head = _HEAD.search(command)
    if head is None:
        return show(command).rstrip()
    lines = show(command[: head.start()]).splitlines()
    return "\n".join([*lines[: int(head[1])], "…"])


def readme() -> str:
    """README.md as it should be."""
    with Demo() as show:
        return filled(README.read_text(encoding="utf-8"), show)


def json_page() -> str:
    """docs/reference/json.md as it should be."""
    with Demo(TOLD_IN_JSON) as show:
        return filled(JSON_PAGE.read_text(encoding="utf-8"), _pretty(show))


def _pretty(show: Run) -> Run:
    """JSON as a terminal would show it."""
    import msgspec  # noqa: PLC0415  only this page needs it

    def shown(command: str) -> str:
        text = show(command)
        if text.startswith(("{", "[")) and text.count("\n") == 1:
            return msgspec.json.format(text, indent=2)
        return text

    return shown


def cli_page() -> str:
    """docs/reference/cli.md as it should be."""
    return _CLI_HEAD + "".join(_sections())


def _sections() -> Iterator[str]:
    top = click.Context(raddle, info_name="raddle", terminal_width=_WIDTH, max_content_width=_WIDTH)
    top.help_option_names = ["-h", "--help"]
    group = ""
    for name, entry in COMMANDS.items():
        if entry.group != group:
            group = entry.group
            yield f"\n## {group}\n"
        command = raddle.get_command(top, name)
        assert command is not None
        yield from _of_command(command, name, top, "###")


def _of_command(command: click.Command, name: str, parent: click.Context, level: str) -> Iterator[str]:
    ctx = click.Context(command, info_name=name, parent=parent)
    text = "\n".join(line.rstrip() for line in command.get_help(ctx).splitlines())
    yield f"\n{level} {ctx.command_path}\n\n```\n{text}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(ctx):
            inner = command.get_command(ctx, below)
            assert inner is not None
            yield from _of_command(inner, below, ctx, level + "#")


PAGES: dict[Path, Callable[[], str]] = {README: readme, JSON_PAGE: json_page, CLI_PAGE: cli_page}


def main(arguments: list[str]) -> int:
    """Write the pages, or name the stale ones."""
    stale = [path for path, made in PAGES.items() if not path.exists() or path.read_text("utf-8") != made()]
    for path in stale:
        if "--check" not in arguments:
            path.write_text(PAGES[path](), encoding="utf-8")
        click.echo(f"{'stale' if '--check' in arguments else 'written'}: {path.relative_to(ROOT)}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
