"""Commands that add turns and take them back: new, reply, draft, fork, undo, redo, branches."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from raddle.config import load_config
from tests.command_line import done, new, program, raddle
from tests.file_events import opened


def messages(thread: str) -> list[dict[str, Any]]:
    """All messages of a thread, in their order."""
    found: list[dict[str, Any]] = done("show", thread, "--json").json["conversation"]["messages"]
    return found


def shown(thread: str) -> list[str]:
    """What stands on the path to the tip."""
    lines = done("show", thread).lines
    return [line.strip() for line in lines[4:] if line.startswith("  ")]


def say(thread: str, text: str, *options: str) -> str:
    """Reply; the id of the message."""
    return done("reply", thread, text, *options).out.strip()


def test_a_new_thread_knows_where_it_was_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    work = tmp_path / "moth"
    (work / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "trunk"], cwd=work, check=True)
    subprocess.run(
        ["git", "remote", "add", "origin", "git@git.example.org:me/moth.git"], cwd=work, check=True
    )
    monkeypatch.chdir(work / "src")
    made = done("new", "hello", "--json").json
    assert made.keys() == {"id", "message_id", "is_private"}
    thread = done("show", made["id"], "--json").json
    assert thread["workspace_root"] == str(work)
    assert thread["cwd"] == str(work / "src")
    assert (thread["git_branch"], thread["git_remote_url"]) == ("trunk", "git.example.org/me/moth")
    assert thread["conversation"]["messages"][0]["id"] == made["message_id"]


def test_a_new_thread_is_called_by_its_first_words_unless_it_is_given_a_title() -> None:
    assert done("show", new("\nFix the lock\nplease"), "--json").json["metadata"]["title"] == "Fix the lock"
    assert done("show", new("hello", "--title", "Lock"), "--json").json["metadata"]["title"] == "Lock"


@pytest.mark.parametrize("command", [("new",), ("reply", "ID"), ("draft", "ID"), ("rename", "ID")])
def test_a_dash_reads_the_text_from_stdin(command: tuple[str, ...]) -> None:
    thread = new("first")
    words = [thread if word == "ID" else word for word in command]
    answer = done(*words, "-", "--json", stdin="zwölf\nBoxkämpfer\n".encode()).json
    kept = done("show", answer["id"], "--json").data.decode()
    assert "zwölf" in kept
    assert "Boxkämpfer" in kept


@pytest.mark.parametrize(
    "command", [("new",), ("reply", "ID"), ("draft", "ID"), ("rename", "ID"), ("private",)]
)
@pytest.mark.parametrize(
    ("data", "told", "helps"),
    [
        (b"caf\xe9", "not UTF-8 (byte 4)", "LATIN1"),
        (b"\x7fELF\x02\x01\x01\0\0\xff\xfe", "not UTF-8 (byte 10)", "iconv"),
        ("hi".encode("utf-16-le"), "NUL character (character 2)", "UTF-16"),
        (b"one\0two", "NUL character (character 4)", "tr -d"),
    ],
)
def test_what_is_no_text_is_refused_and_nothing_of_it_is_kept(
    command: tuple[str, ...], data: bytes, told: str, helps: str
) -> None:
    thread = new("first")
    before = done("show", thread, "--json").data
    words = [thread if word == "ID" else word for word in command]
    answer = raddle(*words, *(["-"] if command != ("private",) else []), stdin=data)
    assert answer.code == 2
    assert told in answer.err
    assert helps in answer.err
    assert done("show", thread, "--json").data == before
    assert len(done("list", "--json").json) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("new", "caf\udce9"),
        ("new", "x", "--title", "caf\udce9"),
        ("reply", "ID", "caf\udce9"),
        ("draft", "ID", "caf\udce9"),
        ("rename", "ID", "caf\udce9"),
        ("tag", "ID", "caf\udce9"),
        ("fork", "ID", "--title", "caf\udce9"),
        ("new", "x", "--role", "caf\udce9"),
    ],
)
def test_an_argument_that_is_kept_has_to_be_text_too(words: tuple[str, ...]) -> None:
    thread = new("first")
    answer = raddle(*(thread if word == "ID" else word for word in words))
    assert answer.code == 2
    assert "byte 4" in answer.err
    assert len(done("list", "--json").json) == 1


def test_the_mark_at_the_start_of_a_windows_file_is_no_part_of_the_text() -> None:
    thread = done("new", "-", stdin=b"\xef\xbb\xbfhello\r\n").out.strip()
    assert messages(thread)[0]["content"].startswith("hello")


@pytest.mark.parametrize("text", ["", " \n\t "])
@pytest.mark.parametrize("given", ["argument", "stdin"])
def test_a_turn_needs_words(text: str, given: str) -> None:
    thread = new("first")
    for command in (["new"], ["reply", thread]):
        if given == "stdin":
            answer = raddle(*command, "-", stdin=text.encode())
        else:
            answer = raddle(*command, text)
        assert answer.code == 2
        assert "TEXT" in answer.err
    assert len(messages(thread)) == 1


def test_a_private_thread_is_so_from_its_first_byte() -> None:
    thread = new("secret", "--private")
    document = done("show", thread, "--json").json
    assert (document["is_private"], document["visibility"]) == (True, "private")
    assert document["version"] == 1
    assert [path.suffix for path in (load_config().data_dir / "threads").glob("T-*")] == [".json"]


@pytest.fixture
def secret_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A workspace that a rule of the config keeps private; the current folder."""
    folder = tmp_path / "secret" / "plans"
    folder.mkdir(parents=True)
    write_config(f'[private]\nworkspaces = ["{tmp_path}/secret/**"]\n')
    monkeypatch.chdir(folder)
    return folder


def write_config(text: str) -> None:
    """Settings for the commands that follow."""
    folder = load_config().config_dir
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text, encoding="utf-8")


def test_a_rule_of_the_config_makes_a_new_thread_private(secret_folder: Path) -> None:
    answer = done("new", "hello", "--json")
    assert answer.json["is_private"] is True
    assert "by a rule" in answer.err
    assert done("show", answer.json["id"], "--json").json["is_private"] is True


@pytest.mark.parametrize("rule", ["below", "link", "remote"])
def test_a_rule_holds_in_a_folder_of_a_repository_through_a_link_and_by_remote(
    rule: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    (work / "secret").mkdir(parents=True)
    (tmp_path / "link").symlink_to(work)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    subprocess.run(
        ["git", "remote", "add", "origin", "git@git.example.org:me/plans.git"], cwd=work, check=True
    )
    write_config(
        {
            "below": f'[private]\nworkspaces = ["{work}/secret/**"]',
            "link": f'[private]\nworkspaces = ["{tmp_path}/link/**"]',
            "remote": '[private]\nremotes = ["git.example.org/me/*"]',
        }[rule]
    )
    monkeypatch.chdir(work / "secret")
    assert done("new", "hello", "--json").json["is_private"] is True
    monkeypatch.chdir(tmp_path)
    assert done("new", "hello", "--json").json["is_private"] is False


def test_a_copy_of_a_private_thread_is_private_wherever_it_is_made(
    secret_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    thread = new("hello")
    monkeypatch.chdir(tmp_path)
    for copy in (
        done("fork", thread).out.strip(),
        done("branches", thread, "--promote", messages(thread)[0]["id"]).out.strip(),
    ):
        assert done("show", copy, "--json").json["is_private"] is True


def test_a_copy_is_private_where_a_rule_came_after_the_thread(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    thread = new("hello")
    write_config(f'[private]\nworkspaces = ["{tmp_path}"]\n')
    copy = done("fork", thread).out.strip()
    assert done("show", copy, "--json").json["is_private"] is True
    assert done("show", thread, "--json").json["is_private"] is False


@pytest.mark.parametrize("command", ["new", "fork", "promote", "import"])
def test_a_misspelt_rule_lets_nothing_be_made(home: Path, command: str) -> None:
    thread = new("hello")
    root = messages(thread)[0]["id"]
    write_config('[private]\nworkspace = ["/secret"]\n')
    words = {
        "new": ("new", "more"),
        "fork": ("fork", thread),
        "promote": ("branches", thread, "--promote", root),
        "import": ("import",),
    }[command]
    answer = raddle(*words)
    assert (answer.code, answer.out) == (2, "")
    assert "private.workspace is not a setting; did you mean private.workspaces?" in answer.err
    assert [path.stem for path in home.rglob("T-*.json")] == [thread]


def test_a_reply_goes_under_the_newest_turn() -> None:
    thread = new("one")
    two, three = say(thread, "two", "--role", "assistant"), say(thread, "three")
    assert [(message["id"], message["parent_id"]) for message in messages(thread)[1:]] == [
        (two, messages(thread)[0]["id"]),
        (three, two),
    ]
    assert done("reply", thread, "four", "--json").json.keys() == {"id", "message_id", "parent_id"}


def test_a_reply_to_the_tip_does_not_read_the_thread() -> None:
    """By construction constant in the length of the thread: its file is not opened, its journal only at the end."""
    thread = new("one")
    say(thread, "two")
    with opened.listening():
        say(thread, "three")
    of_thread = [path for path in opened.paths if thread in path]
    assert of_thread
    assert not [path for path in of_thread if path.endswith((".json", ".prev"))]
    assert shown(thread) == ["one", "two", "three"]


def test_a_reply_to_an_earlier_turn_forks_and_keeps_both_answers() -> None:
    thread = new("ask")
    root = messages(thread)[0]["id"]
    first = say(thread, "first", "--role", "assistant")
    second = say(thread, "second", "--role", "assistant", "--parent", root)
    assert {message["id"] for message in messages(thread)} == {root, first, second}
    assert messages(thread)[2]["branch_id"] != messages(thread)[1]["branch_id"]
    assert shown(thread) == ["ask", "second"]
    other = say(thread, "elsewhere", "--parent", "root")
    assert "parent_id" not in messages(thread)[3]
    assert shown(thread) == ["elsewhere"]
    assert say(thread, "goes on", "--parent", other[-8:])
    assert shown(thread) == ["elsewhere", "goes on"]


@pytest.mark.parametrize(
    ("parent", "code"), [("0123abcd", 3), ("", 2), ("../../etc", 2), ("zz zz", 2), ("x" * 300, 2)]
)
def test_a_reply_to_no_message_is_refused(parent: str, code: int) -> None:
    thread = new("ask")
    assert raddle("reply", thread, "text", "--parent", parent).code == code
    assert raddle("show", thread, "--branch", parent).code == code
    assert raddle("fork", thread, "--at", parent).code == code
    assert raddle("draft", thread, "text", "--parent", parent).code == code
    assert raddle("branches", thread, "--switch", parent).code == code
    assert len(messages(thread)) == 1


@pytest.mark.parametrize("role", ["", "two words", "x" * 41, "a\x1b[2J"])
def test_a_role_is_one_word(role: str) -> None:
    assert raddle("new", "hello", "--role", role).code == 2


def test_any_other_role_is_kept() -> None:
    thread = new("hello", "--role", "critic")
    assert messages(thread)[0]["role"] == "critic"


def test_a_draft_is_kept_shown_and_cleared() -> None:
    thread = new("ask")
    root = messages(thread)[0]["id"]
    assert done("draft", thread).err == "no drafts\n"
    kept = done("draft", thread, "not yet", "--json").json
    assert kept == {"id": thread, "parent_id": root, "text": "not yet"}
    (targets,) = done("draft", thread, "--json").json.values()
    assert targets == {root: "not yet"}
    assert done("draft", thread).lines[1:] == ["not yet"]
    assert "draft under" in done("show", thread).out
    assert len(messages(thread)) == 1
    assert done("draft", thread, "--clear").out.startswith("cleared under ")
    assert done("draft", thread, "--json").json == {}
    assert raddle("draft", thread, "text", "--clear").code == 2


def test_a_draft_of_no_words_clears_it_and_a_reply_with_its_words_sends_it_off() -> None:
    thread = new("ask")
    done("draft", thread, "not yet")
    assert done("draft", thread, "").out.startswith("cleared")
    done("draft", thread, "not yet")
    done("reply", thread, "something else", "--parent", messages(thread)[0]["id"])
    assert "not yet" in done("draft", thread).out
    done("reply", thread, "not yet, but now", "--parent", messages(thread)[0]["id"])
    assert done("draft", thread, "--json").json == {}


def test_a_fork_is_a_thread_of_its_own_with_the_same_turns() -> None:
    thread = new("ask", "--title", "Lock")
    answer = say(thread, "first", "--role", "assistant")
    say(thread, "more")
    copy = done("fork", thread, "--at", answer, "--json").json
    assert copy["forked_from"] == thread
    assert [message["id"] for message in messages(copy["id"])] == [
        message["id"] for message in messages(thread)[:2]
    ]
    assert len(messages(done("fork", thread).out.strip())) == 3
    renamed = done("fork", thread, "--title", "Other").out.strip()
    assert done("show", renamed, "--json").json["metadata"]["title"] == "Other"


def test_turns_are_taken_back_and_brought_back() -> None:
    thread = new("one")
    say(thread, "answer one", "--role", "assistant")
    say(thread, "two")
    say(thread, "answer two", "--role", "assistant")
    assert len(done("undo", thread, "--json").json["removed"]) == 2
    assert shown(thread) == ["one", "answer one"]
    assert done("search", "two", "--json").json["total_threads"] == 0
    assert done("undo", thread).out == "took back 2 messages\n"
    assert done("undo", thread).out == "nothing to take back\n"
    assert done("redo", thread, "2").out == "brought back 4 messages\n"
    assert shown(thread) == ["one", "answer one", "two", "answer two"]
    assert done("redo", thread).out == "nothing to bring back\n"
    assert "[removed]" not in done("show", thread, "--tree").out
    done("undo", thread, "9")
    assert "[removed]" in done("show", thread, "--removed").out


def test_a_turn_whose_words_were_erased_does_not_come_back() -> None:
    thread = new("one")
    say(thread, "two")
    done("undo", thread)
    done("purge", thread, "--removed", "-y")
    answer = raddle("redo", thread)
    assert answer.code == 2
    assert "erased" in answer.err
    assert shown(thread) == ["one"]


@pytest.mark.parametrize("turns", ["0", "-1", "x", "1.5", "9" * 30])
def test_no_number_of_turns_is_refused(turns: str) -> None:
    thread = new("one")
    assert raddle("undo", thread, turns).code == 2
    assert raddle("redo", thread, turns).code == 2


def a_forked_thread() -> tuple[str, str, str, str]:
    """(thread, root, first answer, second answer)."""
    thread = new("ask")
    root = messages(thread)[0]["id"]
    first = say(thread, "first", "--role", "assistant")
    return thread, root, first, say(thread, "second", "--role", "assistant", "--parent", root)


def test_branches_are_listed_by_where_they_start() -> None:
    thread, root, first, second = a_forked_thread()
    rows = done("branches", thread, "--json").json
    assert [(row["start"], row["tip"], row["length"], row["is_current"]) for row in rows] == [
        (root, first, 2, False),
        (second, second, 1, True),
    ]
    assert rows[1]["under"] == root
    lines = done("branches", thread).lines
    assert lines[1].startswith("*")
    assert lines[1].endswith("│ second")


def test_a_branch_is_named_by_any_message_on_it() -> None:
    thread, _, first, second = a_forked_thread()
    assert done("branches", thread, "--name", second[-8:], "  the  short way ").out == "named the short way\n"
    assert done("branches", thread, "--name", first, "old").out == "named old\n"
    assert [row["name"] for row in done("branches", thread, "--json").json] == ["old", "the short way"]
    assert "[branch the short way]" in done("show", thread, "--tree").out
    done("branches", thread, "--name", first, "")
    assert [row.get("name", "") for row in done("branches", thread, "--json").json] == ["", "the short way"]


def test_two_branches_are_compared_from_where_they_part() -> None:
    thread, root, first, second = a_forked_thread()
    found = done("branches", thread, "--compare", first, second, "--json").json
    assert found["fork"] == root
    assert [[message["content"] for message in found[side]] for side in ("one", "other")] == [
        ["first"],
        ["second"],
    ]
    text = done("branches", thread, "--compare", first, second).out
    assert "they part after" in text
    assert text.index("first") < text.index("second")
    same = done("branches", thread, "--compare", root, second).out
    assert "stands above the other" in same


def test_a_device_goes_on_with_the_branch_it_switched_to() -> None:
    thread, _, first, _ = a_forked_thread()
    assert done("branches", thread, "--switch", first, "--json").json == {"id": thread, "leaf": first}
    assert shown(thread)[:2] == ["ask", "first"]
    assert done("branches", thread).lines[0].startswith("*")
    more = done("reply", thread, "more", "--json").json
    assert more["parent_id"] == first
    assert done("draft", thread, "unsent", "--json").json["parent_id"] == more["message_id"]
    say(thread, "and more")
    assert shown(thread)[:4] == ["ask", "first", "more", "and more"]
    done("branches", thread, "--switch", "tip")
    say(thread, "on the tip")
    assert shown(thread)[-2:] == ["and more", "on the tip"]


def test_a_branch_is_put_away_and_brought_back() -> None:
    thread, _, _, second = a_forked_thread()
    done("branches", thread, "--archive", second)
    assert [row["is_archived"] for row in done("branches", thread, "--json").json] == [False, True]
    assert "archived" in done("branches", thread).lines[1]
    done("branches", thread, "--unarchive", second)
    assert not any(row["is_archived"] for row in done("branches", thread, "--json").json)


def test_a_branch_becomes_a_thread_and_a_path_is_grafted() -> None:
    thread, _, first, second = a_forked_thread()
    promoted = done("branches", thread, "--promote", second, "--json").json["id"]
    assert [message["content"] for message in messages(promoted)] == ["ask", "second"]
    copied = done("branches", thread, "--graft", first, second, "--json").json["messages"]
    assert len(copied) == 1
    assert shown(thread)[:3] == ["ask", "second", "first"]
    assert len(done("branches", thread, "--graft", second, "root", "--json").json["messages"]) == 2


def test_several_things_at_once_are_refused() -> None:
    thread, _, first, second = a_forked_thread()
    answer = raddle("branches", thread, "--archive", first, "--promote", second)
    assert answer.code == 2
    assert "--archive" in answer.err
    assert "--promote" in answer.err


def test_a_folder_whose_name_is_not_utf_8_is_no_obstacle(tmp_path: Path) -> None:
    folder = bytes(tmp_path) + b"/caf\xe9"
    Path(folder.decode("utf-8", "surrogateescape")).mkdir()
    made = program("new", "hello", "--json", cwd=folder)
    assert made.code == 0, made
    assert done("show", made.json["id"], "--json").json["cwd"].endswith("caf\ufffd")
    assert program("list", cwd=folder).code == 0


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    script = f'rmdir "{folder}"; exec "$@"'
    from tests.command_line import PROGRAM

    ran = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *PROGRAM, "new", "hello"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 6
    assert "the current folder is gone" in ran.stderr
