"""Bad input never gives a traceback: any words, over every command, end in an exit code that is documented."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raddle.apps.cli.main import COMMANDS
from raddle.apps.cli.main import raddle as top
from tests.command_line import done, new, raddle
from tests.seal import sealed_environment

HUGE = "x" * 100_000
HOSTILE = (
    *("", " ", "-", "--", "-n", "tip", "root", "T-", "T-0", "..", "../../etc/passwd", "/", "~", "*", "%s"),
    *("a\0b", "\0", "caf\udce9", "\ud800", "\udcff\udcfe", "\x1b[2J", "\u202e", "👨\u200d👩", "東京湾", '"'),
    *('"open', "repo:", "before:yesterday", "after:9999-99-99", "~", "~" + "y" * 600, "-x", "é" * 5000, HUGE),
    *("9" * 400, "-1", "1e400", "NaN", "$(id)", "`id`", "{}", "[", "\\", "a" * 300, "T-" + "f" * 36),
)
TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.one_of(st.characters(), st.sampled_from('\0\udc80\ud9ff\n\x1b"~-:*')), max_size=30),
)
LEFT_OUT = {
    "up": "it imports: the law of the importers covers any input there",
    "import": "the same",
    "serve": "it starts a server, which goes on until it is told to end",
    "daemon": "it goes on until it is told to end",
    "completion": "it has one argument with three values",
}
WRITES_ELSEWHERE = {"--output"}
CODES = {0, 2, 3, 4, 5, 6, 7}


class Place:
    """A small store that every example works on; THREAD and MESSAGE in its words are ids that are there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids: dict[str, str] = {}

    def enter(self) -> None:
        """Make it the home of the commands that follow, with at least one thread."""
        os.environ.update(sealed_environment(self.folder))
        if not self.ids or raddle("show", self.ids["THREAD"]).code:
            thread = new("hello", "--title", "Greetings")
            done("reply", thread, "more", "--role", "assistant")
            (message, _) = done("show", thread, "--json").json["conversation"]["messages"]
            self.ids = {"THREAD": thread, "MESSAGE": message["id"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The store, in a home of this module's own."""
    kept = dict(os.environ)
    yield Place(tmp_path_factory.mktemp("place"))
    os.environ.clear()
    os.environ.update(kept)


def params_of(name: str) -> list[click.Parameter]:
    """What a command takes."""
    command = top.get_command(click.Context(top), name)
    assert command is not None
    return [param for param in command.params if not WRITES_ELSEWHERE & set(param.opts)]


def is_json(data: bytes) -> bool:
    """Is it one JSON document, or one on each line?"""
    try:
        json.loads(data)
    except ValueError:
        return all(json.loads(line) is not None for line in data.splitlines())
    return True


@st.composite
def commands(draw: st.DrawFn) -> list[str]:
    """A command as it may be called, or nearly so: its own arguments and options, with any words in them."""
    name = draw(st.sampled_from([name for name in COMMANDS if name not in LEFT_OUT]))
    word = st.one_of(st.sampled_from(["MESSAGE", "THREAD", "user", "2"]), TEXTS)
    positional: list[str] = []
    optional: list[list[str]] = []
    for param in params_of(name):
        if isinstance(param, click.Argument):
            known = st.just("THREAD") if param.name in {"thread", "threads"} else word
            many = draw(st.integers(0, 3)) if param.nargs < 0 else 1
            positional += [draw(st.one_of(known, known, known, word)) for _ in range(many)]
        elif draw(st.integers(0, 3)) == 0:
            is_flag = isinstance(param, click.Option) and param.is_flag
            values = [draw(word) for _ in range(0 if is_flag else param.nargs)]
            optional.append([draw(st.sampled_from(param.opts)), *values])
    if draw(st.integers(0, 9)) == 0:
        positional += draw(st.lists(word, max_size=2))
    before = [word for words in optional for word in words]
    dashes = ["--"] if draw(st.booleans()) else []
    return [name, *before, *dashes, *positional]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(words=commands(), stdin=st.one_of(st.just(b""), st.binary(max_size=40)))
def test_any_words_end_in_a_documented_exit_code(words: list[str], stdin: bytes, place: Place) -> None:
    place.enter()
    answer = raddle(*(place.ids.get(word, word) for word in words), stdin=stdin)
    log = place.folder / ".local/state/raddle/raddle.log"
    assert answer.code in CODES, (answer, log.read_text() if log.exists() else "")
    assert "Traceback" not in answer.err
    assert "\x1b" not in answer.err
    options = words[: words.index("--")] if "--" in words else words
    wants_json = bool({"--json", "--jsonl"} & set(options))
    if answer.code and words[0] != "doctor":
        assert answer.error["message"] if wants_json else len(answer.err.splitlines()) <= 3
    elif wants_json and answer.data:
        assert is_json(answer.data)


def is_text(text: str) -> bool:
    """Can it be kept just so? What is no text is refused (`test_cli_writing.py`)."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


@pytest.mark.parametrize("text", [*filter(is_text, HOSTILE)])
def test_any_text_can_be_kept_found_and_read_again(text: str) -> None:
    answer = raddle("new", "--json", "--title", text, "--", f"begin {text} end")
    assert answer.code == 0, answer
    thread = answer.json["id"]
    for words in (["list"], ["show", thread], ["show", thread, "--tree"], ["search", "--", f"begin {text}"]):
        shown = done(*words)
        assert "\x1b" not in shown.out
        assert "\u202e" not in shown.out
    (message,) = done("show", thread, "--json").json["conversation"]["messages"]
    assert message["content"] == f"begin {text} end"
    assert done("search", "--json", "--", "begin").json["total_threads"] == 1


@pytest.mark.parametrize("query", HOSTILE)
def test_any_text_is_a_query(query: str) -> None:
    new("hello")
    assert done("search", "--json", "--", query).json["hits"] is not None
    assert done("list", "--json", "--", query).json is not None
