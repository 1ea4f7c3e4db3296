"""Commands that go on with a conversation: reply --ask, chat, resume, jobs, responders, attachments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.builders_answering import ECHO, JSON, SLOW, set_up, write_settings
from tests.command_line import done, new, program, raddle, terminal

YOU = "\x1b[?2004hyou> "
"""The prompt, once the terminal is told to mark what is pasted."""


def messages(thread: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done("show", thread, "--json").json["conversation"]["messages"]
    return found


def said(thread: str) -> list[str]:
    return [f"{message['role']}: {message['content']}" for message in messages(thread)]


class TestReplyAsk:
    def test_the_answer_is_printed_and_kept_under_the_turn(self) -> None:
        set_up(echo=ECHO)
        thread = new("Why does it hang?")
        assert done("reply", thread, "and now?", "--ask").out == "heard: [user] and now?\n"
        assert said(thread) == [
            "user: Why does it hang?",
            "user: and now?",
            "assistant: heard: [user] and now?",
        ]
        question, answer = messages(thread)[1:]
        assert answer["parent_id"] == question["id"]
        assert answer["provider"] == "echo"

    def test_without_a_text_the_turn_that_stands_there_is_asked_about(self) -> None:
        set_up(echo=ECHO)
        thread = new("Why does it hang?")
        assert done("reply", thread, "--ask").out == "heard: Why does it hang?\n"
        assert len(messages(thread)) == 2

    def test_a_program_gets_it_as_json(self) -> None:
        set_up(echo=ECHO)
        thread = new("Why?")
        answer = done("reply", thread, "--ask", "--json").json
        assert answer["id"] == thread
        assert answer["answer"]["text"] == "heard: Why?"
        assert answer["answer"]["message_id"] == messages(thread)[-1]["id"]

    def test_what_is_asked_is_the_path_and_no_sibling(self) -> None:
        set_up(all=JSON)
        thread = new("root")
        first = done("reply", thread, "one way").out.strip()
        done("reply", thread, "another way", "--parent", messages(thread)[0]["id"])
        told = json.loads(done("reply", thread, "go on", "--ask", "--parent", first).out)
        assert [message["content"] for message in told["messages"]] == ["root", "one way", "go on"]

    def test_who_answered_last_answers_again(self) -> None:
        set_up(echo=ECHO, other="print('the other one')")
        thread = new("Why?")
        assert raddle("reply", thread, "--ask").code == 2
        done("reply", thread, "--ask", "--with", "other")
        assert done("reply", thread, "again", "--ask").out == "the other one\n"

    def test_an_answer_that_failed_leaves_the_turn_and_the_reason(self) -> None:
        set_up(broken="import sys; print('half', flush=True); sys.exit('no such model')")
        thread = new("Why?")
        answer = raddle("reply", thread, "--ask")
        assert answer.code == 7
        assert "no such model" in answer.err
        assert said(thread) == ["user: Why?", "assistant: half"]
        assert messages(thread)[-1]["extra"] == {"cut_by": "unanswered"}
        state = done("show", thread, "--json").json["agent_state"]
        assert state["kind"] == "error"
        assert "no such model" in state["last_error"]

    def test_a_turn_that_is_refused_is_a_draft_again(self) -> None:
        write_settings('[responders.gone]\nkind = "command"\nprogram = ["/no/such/program"]')
        thread = new("Why?")
        answer = raddle("reply", thread, "and now?", "--ask")
        assert answer.code == 7
        assert said(thread) == ["user: Why?", "user: and now?"]
        assert done("show", thread, "--json").json["removed_messages"] == [messages(thread)[-1]["id"]]
        assert "and now?" in done("draft", thread).out

    def test_nothing_is_asked_of_a_network_when_raddle_is_offline(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_settings('[responders.far]\nkind = "openai"\nmodel = "m"')
        monkeypatch.setenv("RADDLE_OFFLINE", "1")
        thread = new("Why?")
        answer = raddle("reply", thread, "--ask")
        assert answer.code == 2
        assert "offline" in answer.err
        assert len(messages(thread)) == 1

    def test_options_of_asking_without_asking_are_refused(self) -> None:
        assert "--ask" in raddle("reply", new("Why?"), "x", "--with", "echo").err


class TestSettings:
    def test_where_nobody_is_set_up_it_says_how(self) -> None:
        answer = raddle("reply", new("Why?"), "--ask")
        assert answer.code == 2
        assert "[responders.local]" in answer.err

    @pytest.mark.parametrize("name", ["key", "api_key", "token"])
    def test_a_key_in_the_file_is_refused_by_name(self, name: str) -> None:
        write_settings(f'[responders.far]\nkind = "openai"\nmodel = "m"\n{name} = "sk-secret"')
        answer = raddle("responders")
        assert answer.code == 2
        assert f"responders.far.{name}" in answer.err
        assert "sk-secret" not in answer.err

    @pytest.mark.parametrize(
        ("table", "named"),
        [
            ('kind = "opanai"', "kind"),
            ('kind = "openai"\nmodle = "m"', "did you mean model?"),
            ('kind = "openai"\nurl = "localhost"', "url"),
            ('kind = "command"', "program"),
            ('kind = "openai"\nretries = "many"', "retries"),
        ],
    )
    def test_a_mistake_in_a_table_is_named(self, table: str, named: str) -> None:
        write_settings(f"[responders.far]\n{table}")
        answer = raddle("responders")
        assert answer.code == 2
        assert named in answer.err

    def test_a_key_is_never_shown(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
        write_settings(
            '[responders.far]\nkind = "openai"\nmodel = "m"\nurl = "http://127.0.0.1:9/v1"\nretries = 0'
        )
        thread = new("Why?")
        told = [
            raddle("reply", thread, "--ask"),
            raddle("responders"),
            raddle("responders", "--json"),
            raddle("config", "show"),
            raddle("config", "show", "--json"),
            raddle("show", thread, "--json"),
        ]
        assert "OPENAI_API_KEY" in told[1].out
        assert not any("very-secret" in answer.out + answer.err for answer in told)
        home = Path(os.environ["HOME"])
        kept = [path for path in home.rglob("*") if path.is_file() and b"very-secret" in path.read_bytes()]
        assert kept == []


class TestChat:
    def test_all_of_stdin_is_one_turn_where_nobody_sits_there(self) -> None:
        set_up(echo=ECHO)
        answer = raddle("chat", stdin=b"two\nlines")
        assert answer.out == "heard: lines\n"
        (row,) = done("list", "--json").json
        assert row["title"] == "two"
        assert row["id"] in answer.err
        assert done("chat", row["id"], stdin=b"more").out == "heard: [user] more\n"

    def test_a_talk_in_a_terminal(self) -> None:
        set_up(echo=ECHO)
        with terminal("chat") as screen:
            screen.wait_for(YOU)
            screen.type("hello\r")
            screen.wait_for(f"heard: hello\n{YOU}")
            screen.type("/undo\r")
            screen.wait_for(f"took back 2 messages\n{YOU}")
            screen.type("/nonsense\r")
            screen.wait_for(f"typed //\n{YOU}")
            screen.type("again\r")
            screen.wait_for(f"heard: again\n{YOU}")
            screen.type("\x04")
            assert screen.end() == 0
        (row,) = done("list", "--json").json
        assert row["title"] == "hello"
        assert row["message_count"] == 2

    def test_ctrl_c_keeps_what_had_come_and_the_talk_goes_on(self) -> None:
        set_up(slow=SLOW)
        with terminal("chat") as screen:
            screen.wait_for(YOU)
            screen.type("count\r")
            screen.wait_for("three")
            screen.type("\x03")
            screen.wait_for(f"what had come of the answer is kept\n{YOU}")
            screen.type("\x04")
            assert screen.end() == 0
        (row,) = done("list", "--json").json
        assert said(row["id"]) == ["user: count", "assistant: one two three "]
        assert messages(row["id"])[-1]["extra"] == {"cut_by": "interrupted"}

    def test_what_is_typed_and_not_sent_is_there_after_a_kill(self) -> None:
        set_up(echo=ECHO)
        with terminal("chat", "--private") as screen:
            screen.wait_for(YOU)
            screen.type("a thought that is not f")
            while not (rows := done("list", "--json").json):
                pass
            screen.process.send_signal(signal.SIGKILL)
            screen.end()
        (row,) = rows
        assert row["is_private"]
        assert "a thought" in done("draft", row["id"]).out
        with terminal("chat", row["id"]) as screen:
            screen.wait_for(f"{YOU}a thought")
            screen.type("inished\r")
            screen.wait_for(f"heard: a thought that is not finished\n{YOU}")
            screen.type("\x04")
            assert screen.end() == 0
        assert json.loads(done("draft", row["id"], "--json").data) == {}

    def test_an_answer_cannot_command_the_terminal(self) -> None:
        set_up(evil=r"print('\x1b]0;gotcha\x07\x1b[2Jhello', end='')")
        assert done("chat", stdin=b"hi").out.strip().endswith("hello")
        assert "\x1b" not in done("chat", stdin=b"hi").out

    def test_private_without_an_id_talks_where_somebody_answers(self) -> None:
        set_up(echo=ECHO)
        with terminal("private") as screen:
            screen.wait_for(YOU)
            screen.type("a secret\r")
            screen.wait_for(f"heard: a secret\n{YOU}")
            screen.type("/quit\r")
            assert screen.end() == 0
        (row,) = done("list", "--json").json
        assert row["is_private"]


class TestKilled:
    def test_jobs_puts_what_had_come_into_the_thread_once(self) -> None:
        set_up(slow=SLOW)
        thread = new("count")
        with terminal("reply", thread, "--ask") as screen:
            screen.wait_for("three")
            os.killpg(screen.process.pid, signal.SIGKILL)
            screen.end()
        assert len(done("show", thread, "--json").json["pending_jobs"]) == 1
        assert "waits for slow" in done("show", thread).out
        (settled,) = done("jobs", "--json").json
        assert (settled["what"], settled["responder"]) == ("cut", "slow")
        assert said(thread) == ["user: count", "assistant: one two three "]
        assert "cut: killed" in done("show", thread).out
        assert done("jobs", "--json").json == []
        assert len(messages(thread)) == 2
        assert "pending_jobs" not in done("show", thread, "--json").json

    def test_a_purge_leaves_nothing_of_an_answer_that_was_on_its_way(self) -> None:
        set_up(slow=SLOW)
        thread = new("count")
        with terminal("reply", thread, "--ask") as screen:
            screen.wait_for("three")
            os.killpg(screen.process.pid, signal.SIGKILL)
            screen.end()
        done("purge", "-y", thread)
        kept = (Path(os.environ["HOME"]) / ".local").rglob("*")
        assert not [path for path in kept if path.is_file() and b"three" in path.read_bytes()]


class TestResume:
    @pytest.fixture
    def work(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        work = tmp_path / "kiln"
        work.mkdir()
        git(work, "init", "-q", "-b", "main")
        commit(work, "first")
        monkeypatch.chdir(work)
        return work

    def test_it_says_where_a_thread_stands(self, work: Path) -> None:
        thread = new("Add authentication to API")
        head = git(work, "rev-parse", "HEAD")[:7]
        answer = done("resume", thread)
        assert answer.lines == [
            f"Resuming thread: {thread}",
            'Title: "Add authentication to API"',
            "Messages: 1",
            "Last activity: just now",
            f"Git: main @ {head}",
        ]
        assert "warning" not in answer.err

    def test_each_change_around_it_is_one_line(self, work: Path) -> None:
        thread = new("hello")
        before = git(work, "rev-parse", "HEAD")[:7]
        git(work, "checkout", "-q", "-b", "other")
        commit(work, "second")
        now = commit(work, "third")
        (work / "new").write_text("not committed")
        answer = done("resume", thread)
        assert answer.lines[-1] == f"Git: other @ {now[:7]} (dirty)"
        warnings = [line for line in answer.err.splitlines() if line.startswith("warning")]
        assert warnings == [
            "warning: another branch: it was main, this is other",
            f"warning: HEAD moved: it was {before}, this is {now[:7]}, 2 commits on",
            "warning: the working tree was clean, and has changes now",
        ]

    def test_without_an_id_it_is_the_newest_of_this_workspace(self, work: Path, tmp_path: Path) -> None:
        here = new("in the kiln")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        os.chdir(elsewhere)
        new("newer, and elsewhere")
        os.chdir(work)
        assert done("resume", "--json").json["id"] == here

    def test_what_a_model_is_told_can_be_printed(self, work: Path) -> None:
        thread = new("hello")
        done("reply", thread, "hi there", "--role", "assistant")
        assert done("resume", thread, "--print-context").lines == [
            "[user]",
            "hello",
            "",
            "[assistant]",
            "hi there",
            "",
        ]
        told = done("resume", thread, "--print-context", "--json").json
        assert [message["content"] for message in told] == ["hello", "hi there"]

    def test_a_branch_can_be_chosen(self, work: Path) -> None:
        thread = new("root")
        first = done("reply", thread, "one").out.strip()
        done("reply", thread, "two", "--parent", messages(thread)[0]["id"])
        told = done("resume", thread, "--branch", first, "--print-context", "--json").json
        assert [message["content"] for message in told] == ["root", "one"]

    def test_where_there_is_nothing_to_resume_it_says_so(self) -> None:
        assert raddle("resume").code == 3


def git(folder: Path, *words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


def commit(folder: Path, name: str) -> str:
    (folder / name).write_text(name)
    git(folder, "add", ".")
    git(folder, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", name)
    return git(folder, "rev-parse", "HEAD")


class TestAttachments:
    def test_a_file_goes_with_a_turn_and_comes_back_as_it_was(self, tmp_path: Path) -> None:
        (tmp_path / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n0000")
        thread = new("look", "--attach", str(tmp_path / "shot.png"))
        (listed,) = done("attachments", thread, "--json").json
        assert (listed["name"], listed["media_type"], listed["size"]) == ("shot.png", "image/png", 12)
        assert "[shot.png, 12 bytes]" in done("show", thread).out
        (path,) = done("attachments", thread, "-o", str(tmp_path / "out")).lines
        assert Path(path).read_bytes() == (tmp_path / "shot.png").read_bytes()
        assert done("attachments", thread, "-o", str(tmp_path / "out")).lines == [path]

    def test_two_of_one_name_do_not_write_over_each_other(self, tmp_path: Path) -> None:
        for number in (1, 2):
            (tmp_path / str(number)).mkdir()
            (tmp_path / str(number) / "a.txt").write_text(f"number {number}")
        files = [str(tmp_path / "1" / "a.txt"), str(tmp_path / "2" / "a.txt")]
        thread = new("look", "--attach", files[0], "--attach", files[1])
        paths = done("attachments", thread, "-o", str(tmp_path / "out")).lines
        assert [Path(path).read_text() for path in paths] == ["number 1", "number 2"]

    def test_an_attachment_alone_is_a_turn(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("kiln")
        set_up(all=JSON)
        thread = new("hello")
        told = json.loads(done("reply", thread, "--ask", "--attach", str(tmp_path / "a.txt")).out)
        assert "kiln" in json.dumps(told["messages"][-1])

    @pytest.mark.parametrize("name", ["nothing", ".", "~/nothing"])
    def test_what_is_no_file_is_refused_before_anything_is_written(self, name: str, tmp_path: Path) -> None:
        answer = raddle("new", "look", "--attach", str(tmp_path / name))
        assert answer.code == 2
        assert done("list", "--json").json == []


def test_help_of_each_names_what_it_needs() -> None:
    for command in ("chat", "resume", "jobs", "responders", "policies", "attachments"):
        assert program(command, "--help").code == 0


def test_jobs_says_when_nothing_waits() -> None:
    assert "nothing waits" in done("jobs").err
    assert raddle("jobs", "cancel", "job-1").code == 3
    assert raddle("jobs", "cancel").code == 2


def test_programs_get_the_shapes_that_the_page_promises(tmp_path: Path) -> None:
    set_up(echo=ECHO)
    (tmp_path / "a.txt").write_text("kiln")
    thread = new("hello", "--attach", str(tmp_path / "a.txt"))
    asked = done("reply", thread, "--ask", "--json").json
    promised = (Path(__file__).parents[2] / "docs" / "reference" / "json.md").read_text()
    page = " ".join(promised.partition("## Going on with a conversation")[2].partition("\n## ")[0].split())
    for shown in (
        asked,
        asked["answer"],
        done("resume", thread, "--json").json,
        done("responders", "--json").json[0],
        done("policies", thread, "--json").json,
        done("attachments", thread, "--json").json[0],
    ):
        assert "{" + ", ".join(shown) + "}" in page
