"""What the docs show of the command line is what it prints now."""

from __future__ import annotations

import re

import pytest

from docs import fill_readme
from raddle.apps.cli.diagnostics import BUG, EXIT_CODES, INTERRUPTED, USAGE
from raddle.model import errors
from tests.command_line import done, new
from tests.seal import CHECKOUT

STALE = "run `python docs/fill_readme.py`"


def page(name: str) -> str:
    """The text of a page."""
    return (CHECKOUT / name).read_text(encoding="utf-8")


def test_the_readme_shows_what_the_demo_prints() -> None:
    assert fill_readme.readme() == page("README.md"), STALE


def test_the_page_on_json_shows_what_the_demo_prints() -> None:
    assert fill_readme.json_page() == page("docs/reference/json.md"), STALE


def test_the_page_on_commands_shows_every_help_text() -> None:
    assert fill_readme.cli_page() == page("docs/reference/cli.md"), STALE


def test_the_page_on_exit_codes_names_each() -> None:
    text = page("docs/reference/exit-codes.md")
    named = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert named == {0, BUG, USAGE, INTERRUPTED, 7, *(code for _, code in EXIT_CODES)}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.code for kind in kinds if issubclass(kind, errors.RaddleError)} - {"error", "refused"}
    assert [code for code in sorted(codes) if f"`{code}`" not in text] == []


def test_the_error_on_that_page_is_one_that_is_made() -> None:
    from tests.command_line import raddle

    assert raddle("show", "T-018e2b3c", "--json").err.strip() in page("docs/reference/exit-codes.md")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The keys that each verb answers with, by how the page calls it."""
    monkeypatch.setenv("RADDLE_OFFLINE", "1")  # `up` starts no server
    thread = new("hello")
    root = done("show", thread, "--json").json["conversation"]["messages"][0]["id"]
    asked = {
        "up": ("up",),
        "new": ("new", "hello"),
        "reply": ("reply", thread, "more"),
        "draft with TEXT": ("draft", thread, "text"),
        "draft --clear": ("draft", thread, "--clear"),
        "fork": ("fork", thread),
        "branches --promote": ("branches", thread, "--promote", root),
        "undo": ("undo", thread),
        "redo": ("redo", thread),
        "rename": ("rename", thread, "title"),
        "tag": ("tag", thread, "bug"),
        "pin": ("pin", thread),
        "archive": ("archive", thread),
        "private": ("private", thread),
        "branches --name": ("branches", thread, "--name", root, "name"),
        "branches --switch": ("branches", thread, "--switch", root),
        "branches --archive": ("branches", thread, "--archive", root),
        "branches --unarchive": ("branches", thread, "--unarchive", root),
        "branches --graft": ("branches", thread, "--graft", root, "root"),
        "delete": ("delete", thread),
        "restore": ("restore", thread),
        "purge --removed": ("purge", thread, "--removed", "-y"),
        "purge": ("purge", thread, "-y"),
    }
    return {name: set(done(words[0], "--json", *words[1:]).json) for name, words in asked.items()} | {
        "private without ID": set(done("private", "--json", stdin=b"hello").json)
    }


def test_every_verb_answers_what_the_page_promises(answers: dict[str, set[str]]) -> None:
    rows = re.findall(r"^\| (`.+?) \| `\{(.+)\}` \|$", page("docs/reference/json.md"), re.MULTILINE)
    promised = {
        called.replace("`", ""): set(keys.split(", ")) for names, keys in rows for called in _each(names)
    }
    del promised["draft"]  # its keys are devices
    assert answers == promised


def _each(names: str) -> list[str]:
    """`branches --archive`, `--unarchive` as two, and so on."""
    first = names.split("`", maxsplit=2)[1].split(maxsplit=1)[0]
    parts = re.split(r", | or (?=`)", names)
    return [part if not part.startswith("`--") else f"{first} {part}" for part in parts]
