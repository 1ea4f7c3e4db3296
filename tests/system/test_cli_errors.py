"""What becomes of a mistake: one line that says what is wrong, one that says what to do, and the exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from raddle.apps.cli import main as command_line
from raddle.apps.cli.main import COMMANDS, FIRST, Entry
from raddle.apps.cli.options import with_stores
from raddle.config import load_config
from raddle.wiring import Stores
from tests.command_line import Answer, done, new, program, raddle

NOT_THERE = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"
TAKE_AN_ID = (
    *("show branches export fork undo redo pin archive private delete restore purge tag draft").split(),
)


def said(answer: Answer) -> list[str]:
    """The lines of an error, which has no data and no traceback."""
    assert answer.data == b""
    assert "Traceback" not in answer.err
    return answer.err.splitlines()


@pytest.mark.parametrize("command", [*TAKE_AN_ID, "reply", "rename"])
@pytest.mark.parametrize(
    ("thread", "code"),
    [(NOT_THERE, 3), ("T-018e2b3c", 3), ("zz", 2), ("", 2), ("../../etc/passwd", 2), ("T-", 2)],
)
def test_a_thread_that_is_not_there_is_one_error_everywhere(command: str, thread: str, code: int) -> None:
    words = [command, thread, *(["text"] if command in {"reply", "rename"} else [])]
    answer = raddle(*words)
    assert answer.code == code
    assert len(said(answer)) == 2
    assert said(answer)[0].startswith("error: ")
    assert said(answer)[1].startswith("  ")
    as_json = raddle(*words, "--json")
    assert (as_json.code, as_json.data) == (code, b"")
    assert as_json.error["code"] == ("not_found" if code == 3 else "invalid_input")
    assert as_json.error["message"]
    assert as_json.error["hint"]


@pytest.mark.parametrize("command", list(COMMANDS))
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_says_what_it_does(command: str, flag: str, home: Path) -> None:
    answer = done(command, flag)
    assert answer.lines[0].startswith(f"Usage: raddle {command} ")
    assert answer.err == ""
    assert len(answer.lines) > 4
    assert max(map(len, answer.lines)) <= 100
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("words", [(), ("-h",), ("--help",)])
def test_raddle_alone_says_what_there_is(words: tuple[str, ...]) -> None:
    answer = done(*words)
    assert all(command in answer.out for command in COMMANDS)
    assert answer.err == ""


def test_the_version_is_one_line() -> None:
    from raddle import __version__

    assert done("--version").out == f"raddle {__version__}\n" == done("-V").out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("lsit", "`raddle list`"),
        ("serach", "`raddle search`"),
        ("Show", "`raddle show`"),
        ("ls", "`raddle list`"),
        ("rm", "`raddle delete`"),
        ("grep", "`raddle search`"),
        ("unpin", "`raddle pin --off`"),
        ("xyzzy", "`raddle --help`"),
        ("", "`raddle --help`"),
    ],
)
def test_a_wrong_verb_is_answered_with_the_near_one(typed: str, meant: str) -> None:
    answer = raddle(typed)
    assert answer.code == 2
    assert meant in said(answer)[1]


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("show", "--foo"),
        ("--foo",),
        ("list", "-n", "0"),
        ("list", "-n", "x"),
        ("list", "-n", "99999999999999999999"),
        ("stats", "-n", "99999999999999999999"),
        ("search",),
        ("search", "x", "-n", "1001"),
        ("completion", "tcsh"),
        ("export", NOT_THERE, "--format", "docx"),
        ("branches", NOT_THERE, "--name", "only-one"),
        ("config", "hide"),
    ],
)
def test_words_that_do_not_fit_are_a_usage_error(words: tuple[str, ...]) -> None:
    answer = raddle(*words)
    assert answer.code == 2
    assert len(said(answer)) == 2
    assert not said(answer)[0].endswith(".")
    assert raddle(words[0], "--json", *words[1:]).error["code"] == "usage"


def test_a_misspelt_option_is_answered_with_the_near_one() -> None:
    assert "--json" in said(raddle("list", "--jsno"))[0]


def test_a_text_that_is_json_by_name_is_no_wish_for_json() -> None:
    assert raddle("show", "zz", "--", "--json").err.startswith("error: ")


@pytest.mark.parametrize("variable", ["DATA", "STATE", "CACHE"])
def test_a_file_in_the_way_is_a_storage_error(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(f"RADDLE_{variable}_DIR", str(tmp_path / "file" / "below"))
    answer = raddle("list") if variable == "CACHE" else raddle("new", "hello")
    assert answer.code == 6
    assert len(said(answer)) == 2
    assert str(tmp_path / "file") in said(answer)[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = new("hello")
    folder = load_config().data_dir / "threads"
    folder.chmod(0o500)
    try:
        answer = raddle("new", "more")
        assert (answer.code, len(said(answer))) == (6, 2)
        assert done("show", thread).out
    finally:
        folder.chmod(0o700)


def test_a_thread_file_of_a_newer_raddle_is_a_format_error() -> None:
    thread = new("hello")
    file = load_config().data_dir / "threads" / f"{thread}.json"
    newer = json.dumps(json.loads(file.read_bytes()) | {"format": 99}).encode()
    file.write_bytes(newer)
    for words in (["show", thread], ["reply", thread, "more"], ["export", thread]):
        answer = raddle(*words)
        assert answer.code == 5
        assert "upgrade raddle" in said(answer)[1]
    assert raddle("show", thread, "--json").error["code"] == "newer_format"
    assert file.read_bytes() == newer


def test_a_damaged_thread_without_an_earlier_revision_is_a_format_error() -> None:
    thread = new("hello")
    file = load_config().data_dir / "threads" / f"{thread}.json"
    file.write_bytes(b"\0" * 100)
    os.utime(file, (1_000_000_000, 1_000_000_000))
    answer = raddle("show", thread)
    assert answer.code == 5
    assert "damaged" in answer.err
    assert raddle("doctor").code == 5


def test_a_config_that_does_not_parse_is_named_with_its_line() -> None:
    folder = load_config().config_dir
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("[private\n")
    answer = raddle("list")
    assert answer.code == 2
    assert "config.toml" in said(answer)[0]
    assert "line 1" in said(answer)[0]


@pytest.fixture
def trouble() -> Iterator[None]:
    """Commands that fail as no other does here: `bug` with a mistake of ours, `clash` with a conflict."""
    module = ModuleType("raddle.apps.cli.commands.trouble")

    @click.command()
    @click.option("--json", is_flag=True)
    def bug(json: bool) -> None:
        raise KeyError("the words of a conversation")

    @click.command()
    @click.option("--json", is_flag=True)
    @with_stores
    def clash(stores: Stores, json: bool) -> None:
        with stores.threads.create(NOT_THERE) as editor:
            editor.append("user", "one")
        with stores.threads.create(NOT_THERE) as editor:
            editor.append("user", "other")

    for command in (bug, clash):
        name = str(command.name)
        setattr(module, name, command)
        COMMANDS[name] = Entry(FIRST, "trouble", name, "")
    sys.modules[module.__name__] = module
    yield
    del COMMANDS["bug"], COMMANDS["clash"], sys.modules[module.__name__]


@pytest.mark.usefixtures("trouble")
def test_a_bug_is_one_line_and_its_place_goes_to_a_log_without_any_words() -> None:
    answer = raddle("bug")
    assert answer.code == 1
    assert said(answer)[0] == "error: raddle made a mistake (KeyError)"
    log = load_config().state_dir / "raddle.log"
    assert str(log) in said(answer)[1]
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "in bug" in log.read_text()
    assert "words of a conversation" not in log.read_text()
    assert raddle("bug", "--json").error["code"] == "bug"


@pytest.mark.usefixtures("trouble")
def test_a_bug_is_told_where_no_log_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RADDLE_STATE_DIR", str(tmp_path / "file"))
    answer = raddle("bug")
    assert answer.code == 1
    assert "the log could not be written" in answer.err


@pytest.mark.usefixtures("trouble")
def test_a_conflict_has_an_exit_code_of_its_own() -> None:
    assert raddle("clash").code == 4
    assert raddle("clash", "--json").error["code"] == "conflict"


@pytest.mark.parametrize("code", [0, 2, 3])
def test_the_process_ends_with_that_code(code: int) -> None:
    words = {0: ("list", "--json"), 2: ("show", "zz", "--json"), 3: ("show", NOT_THERE, "--json")}[code]
    answer = program(*words)
    assert answer.code == code
    assert (answer.data == b"[]\n") is (code == 0)
    if code:
        assert answer.error["code"]


def test_every_synonym_leads_to_a_command() -> None:
    for typed, meant in command_line.ALSO_CALLED.items():
        assert typed not in COMMANDS
        assert meant.split()[0] in COMMANDS
