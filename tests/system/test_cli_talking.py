"""A talk in a terminal, and the ways in which a turn of it does not get its answer."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders_answering import ECHO, JSON, SLOW, set_up, write_settings
from tests.command_line import PROGRAM, Terminal, done, new, program, raddle, terminal
from tests.fakes.orchestrator import TOKEN, orchestrating

YOU = "\x1b[?2004hyou> "
"""The prompt, once the terminal is told to mark what is pasted."""
REFUSING = '[responders.gone]\nkind = "command"\nprogram = ["/no/such/program"]'
SILENT = "import pathlib, time; pathlib.Path('begun').touch(); time.sleep(600)"


def said(thread: str) -> list[str]:
    shown = done("show", thread, "--json").json
    gone = shown.get("removed_messages", [])
    messages = [message for message in shown["conversation"]["messages"] if message["id"] not in gone]
    return [f"{message['role']}: {message['content']}" for message in messages]


def the_thread() -> str:
    (row,) = done("list", "--json").json
    found: str = row["id"]
    return found


def drafts(thread: str) -> list[str]:
    kept = json.loads(done("draft", thread, "--json").data)
    return [text for targets in kept.values() for text in targets.values()]


def leave(screen: Terminal) -> None:
    screen.type("\x04")
    assert screen.end() == 0


class TestTyping:
    def test_a_paste_of_several_lines_is_one_turn_and_no_command(self) -> None:
        set_up(echo=ECHO)
        with terminal("chat") as screen:
            screen.wait_for(YOU)
            screen.type("\x1b[200~one\n/undo\nthree\x1b[201~\r")
            screen.wait_for(f"heard: three\n{YOU}")
            screen.type("\x1b[200~/undo\nand more\x1b[201~\r")
            screen.wait_for(f"heard: and more\n{YOU}")
            leave(screen)
        assert said(the_thread())[::2] == ["user: one\n/undo\nthree", "user: /undo\nand more"]

    def test_a_line_that_ends_in_a_backslash_goes_on(self) -> None:
        set_up(echo=ECHO)
        with terminal("chat") as screen:
            screen.wait_for(YOU)
            screen.type("one\\\r")
            screen.wait_for("...> ")
            screen.type("two\r")
            screen.wait_for(f"heard: two\n{YOU}")
            leave(screen)
        assert said(the_thread())[0] == "user: one\ntwo"

    def test_ctrl_c_clears_the_line_for_good(self) -> None:
        set_up(echo=ECHO)
        thread = new("root")
        with terminal("chat", thread) as screen:
            screen.wait_for(YOU)
            screen.type("not this")
            wait_until(lambda: drafts(thread) == ["not this"])
            screen.type("\x03")
            wait_until(lambda: not drafts(thread))
            screen.type("but this\r")
            screen.wait_for(f"heard: [user] but this\n{YOU}")
            leave(screen)

    def test_where_a_thread_stands_is_shown_first(self) -> None:
        set_up(echo=ECHO)
        thread = new("how hot?", "--title", "Kilns")
        done("reply", thread, "cone six", "--role", "assistant")
        with terminal("chat", thread) as screen:
            screen.wait_for(YOU)
            leave(screen)
            shown = screen.shown
        assert "Kilns" in shown
        assert "user: how hot?" in shown
        assert "assistant: cone six" in shown

    def test_words_of_a_new_talk_are_there_again_after_a_crash(self) -> None:
        set_up(echo=ECHO)
        with terminal("chat") as screen:
            screen.wait_for(YOU)
            screen.type("a thought")
            wait_until(lambda: bool(done("list", "--json").json) and drafts(the_thread()) == ["a thought"])
            with terminal("chat") as second:  # somebody types there still
                second.wait_for(YOU)
                leave(second)
                assert "did not send" not in second.shown
            screen.process.send_signal(signal.SIGKILL)
            screen.end()
        with terminal("chat", "--private") as screen:  # what is not private is no part of it
            screen.wait_for(YOU)
            leave(screen)
            assert "did not send" not in screen.shown
        with terminal("chat") as screen:
            screen.wait_for(f"{YOU}a thought")
            assert f"did not send is in {the_thread()}" in screen.shown
            screen.type(" more\r")
            screen.wait_for(f"heard: a thought more\n{YOU}")
            leave(screen)


class TestCommands:
    def test_a_wrong_file_is_refused_at_once_and_the_talk_goes_on(self, tmp_path: Path) -> None:
        set_up(all=JSON)
        (tmp_path / "a.txt").write_text("kiln")
        (tmp_path / "b.bin").write_bytes(b"\0")
        with terminal("chat", columns=200) as screen:
            screen.wait_for(YOU)
            screen.type(f"/attach {tmp_path / 'nofile'}\r")
            screen.wait_for("there is no file")
            screen.type(f"/attach {tmp_path / 'a.txt'}\r")
            screen.wait_for(f"goes with the next turn: {tmp_path / 'a.txt'}\n{YOU}")
            screen.type(f"/attach {tmp_path / 'b.bin'}\r")
            screen.wait_for(f"goes with the next turn: {tmp_path / 'b.bin'}\n{YOU}")
            screen.type("look\r")
            screen.wait_for("b.bin is kept here, and not sent: all takes texts\n")
            screen.wait_for("kiln")
            screen.type("/attach\r")
            screen.wait_for(f"nothing is attached\n{YOU}")
            leave(screen)

    def test_a_file_that_went_away_costs_no_words(self, tmp_path: Path) -> None:
        set_up(echo=ECHO)
        file = tmp_path / "a.txt"
        file.write_text("kiln")
        with terminal("chat") as screen:
            screen.wait_for(YOU)
            screen.type(f"/attach {file}\r")
            screen.wait_for("goes with the next turn")
            file.unlink()
            screen.type("look\r")
            screen.wait_for(f"to attach\n{YOU}look")
            screen.type("\r")
            screen.wait_for(f"heard: look\n{YOU}")
            leave(screen)

    def test_detach_takes_all_of_them_away(self, tmp_path: Path) -> None:
        set_up(echo=ECHO)
        (tmp_path / "a.txt").write_text("kiln")
        with terminal("chat", "--attach", str(tmp_path / "a.txt")) as screen:
            screen.wait_for(YOU)
            screen.type("/detach\r")
            screen.wait_for(f"nothing is attached\n{YOU}")
            leave(screen)

    def test_undo_leaves_what_another_window_said(self) -> None:
        set_up(echo=ECHO)
        thread = new("root")
        with terminal("chat", thread) as screen:
            screen.wait_for(YOU)
            screen.type("mine\r")
            screen.wait_for(f"heard: [user] mine\n{YOU}")
            root = done("show", thread, "--json").json["conversation"]["messages"][0]["id"]
            done("reply", thread, "theirs", "--parent", root)
            screen.type("/undo\r")
            screen.wait_for(f"took back 2 messages\n{YOU}")
            leave(screen)
        assert said(thread) == ["user: root", "user: theirs"]

    def test_again_asks_about_a_turn_that_has_its_answer(self) -> None:
        set_up(echo=ECHO)
        with terminal("chat") as screen:
            screen.wait_for(YOU)
            screen.type("hello\r")
            screen.wait_for(f"heard: hello\n{YOU}")
            screen.type("/again\r")
            screen.wait_for(f"/again\n\x1b[?2004l\rheard: hello\n{YOU}")
            leave(screen)
        shown = done("show", the_thread(), "--json").json["conversation"]["messages"]
        turn = shown[0]["id"]
        assert [message["parent_id"] for message in shown if message["role"] == "assistant"] == [turn, turn]

    def test_policies_of_a_model_are_refused(self) -> None:
        set_up(echo=ECHO)
        with terminal("chat", columns=200) as screen:
            screen.wait_for(YOU)
            screen.type("/policies\r")
            screen.wait_for(f"echo is no deliberation server\n  /with NAME chooses another\n{YOU}")
            leave(screen)
        assert "has no policies" in raddle("reply", new("x"), "y", "--ask", "--policy", "careful").err


class TestRefused:
    def test_a_refused_turn_says_where_its_text_is(self) -> None:
        write_settings(REFUSING)
        thread = new("Why?")
        answer = raddle("reply", thread, "and now?", "--ask")
        assert answer.code == 7
        assert f"your draft: `raddle draft {thread}`" in answer.err
        told = raddle("reply", thread, "and then?", "--ask", "--json").error
        assert f"`raddle draft {thread}`" in told["hint"]

    def test_a_refused_talk_from_a_pipe_names_its_thread(self) -> None:
        write_settings(REFUSING)
        answer = raddle("chat", stdin=b"hello")
        assert answer.code == 7
        assert f"thread {the_thread()}" in answer.err
        assert drafts(the_thread()) == ["hello"]

    def test_a_refused_turn_stands_on_the_line_again(self) -> None:
        write_settings(REFUSING)
        with terminal("chat") as screen:
            screen.wait_for(YOU)
            screen.type("hello\r")
            screen.wait_for("your draft")
            screen.wait_for(f"`\n{YOU}hello")
            screen.type("\x15")  # Ctrl-U: the line is emptied
            leave(screen)

    @pytest.mark.parametrize("arguments", [("",), ("-",)])
    def test_an_empty_text_asks_about_no_old_turn(self, arguments: tuple[str, ...]) -> None:
        set_up(echo=ECHO)
        thread = new("Why?")
        answer = raddle("reply", thread, *arguments, "--ask")
        assert answer.code == 2
        assert "needs some text" in answer.err
        assert said(thread) == ["user: Why?"]

    @pytest.mark.parametrize(
        "arguments",
        [
            ("chat", "--branch", "m1"),
            ("resume", "--in", "codex", "--print-context"),
            ("resume", "--in", "codex", "--with", "echo"),
            ("resume", "--in", "codex", "--budget", "5"),
            ("jobs", "tell", "job-1", " "),
        ],
    )
    def test_options_that_would_do_nothing_are_refused(self, arguments: tuple[str, ...]) -> None:
        set_up(echo=ECHO)
        new("Why?")
        assert raddle(*arguments, stdin=b"x").code == 2


class TestStopped:
    def test_where_nothing_had_come_it_does_not_say_that_it_is_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        set_up(silent=SILENT)
        thread = new("hello")
        with terminal("reply", thread, "Why?", "--ask") as screen:
            wait_until((tmp_path / "begun").exists)
            assert screen.interrupt() == 130
            assert "nothing had come; your turn is kept" in screen.shown
            assert "what had come" not in screen.shown

    def test_a_thread_that_was_purged_meanwhile_keeps_nothing(self) -> None:
        set_up(slow=SLOW)
        thread = new("hello")
        with terminal("reply", thread, "Why?", "--ask") as screen:
            screen.wait_for("three")
            assert program("purge", "-y", thread).code == 0
            screen.interrupt()
            assert "what had come" not in screen.shown

    def test_who_stops_waiting_for_a_deliberation_hears_its_job(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("NSED_API_KEY", TOKEN)
        with orchestrating() as council:
            council.polls = 10_000
            write_settings(
                f'[responders.council]\nkind = "orchestrator"\nurl = "{council.open_port()}"\nretries = 0\n'
            )
            thread = new("hello")
            with terminal("reply", thread, "how hot?", "--ask", "--json", columns=200) as screen:
                screen.wait_for("Ctrl-C stops waiting")
                assert screen.interrupt() == 130
                shown = screen.shown
            (job,) = council.jobs
            assert f"the work goes on as job {job}: `raddle jobs`" in shown
            told = json.loads(shown[shown.index("{\n") :])
            assert (told["job_id"], told["answer"]) == (job, None)

    def test_an_answer_for_a_full_disk_is_kept_whole(self) -> None:
        set_up(echo=ECHO.replace("print(", "print('one', flush=True); print("))
        thread = new("hello")
        with Path("/dev/full").open("w") as full:
            code = run_into(full, "reply", thread, "Why?", "--ask")
        assert code == 6
        assert said(thread)[-1] == "assistant: one\nheard: [user] Why?"


def run_into(out: Any, *arguments: str) -> int:
    return subprocess.run(
        [*PROGRAM, *arguments], stdout=out, stderr=subprocess.DEVNULL, check=False
    ).returncode


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end


class TestResuming:
    def test_what_stdin_says_is_a_turn(self) -> None:
        set_up(echo=ECHO)
        thread = new("root")
        assert done("resume", thread, stdin=b"and now?").out.endswith("heard: [user] and now?\n")
        assert said(thread)[1] == "user: and now?"

    def test_where_nobody_answers_it_is_not_thrown_away(self) -> None:
        answer = raddle("resume", new("root"), stdin=b"and now?")
        assert answer.code == 2
        assert "nobody is set up" in answer.err

    def test_a_thread_of_another_folder_is_said_to_be_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("here", "there"):
            (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / "there")
        thread = new("root")
        monkeypatch.chdir(tmp_path / "here")
        answer = done("resume")
        assert f"this folder has no thread: this is the newest of all, of {tmp_path / 'there'}" in answer.err
        refused = raddle("resume", "--in", "codex")
        assert refused.code == 2
        assert f"raddle resume {thread} --in codex" in refused.err

    def test_messages_of_the_branch_are_counted(self) -> None:
        thread = new("root")
        first = done("reply", thread, "one").out.strip()
        done("reply", thread, "two", "--parent", "root")
        assert "Messages: 2 on this branch, 3 in all" in done("resume", thread, "--branch", first).out


def test_the_one_who_answers_by_default_is_marked() -> None:
    file = set_up(one=ECHO, two=ECHO)
    file.write_text(file.read_text() + '\n[answering]\nresponder = "two"\n')
    assert "two (default)" in done("responders").out
