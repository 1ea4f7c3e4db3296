"""Runs and what they hold, by the command line: run, entry, summary, handoff, and what `show` tells of a thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.model.memory.repo_layout import (
    MARKER_FILE,
    PEER_MARKER_FILE,
    PROJECT_FILE,
    conflict_path,
    entry_file,
)
from raddle.wiring.memory_links import SIGNS
from tests.command_line import done, new, raddle, seen
from tests.memory_clones import Clone


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """A store of the phases build and test, which RADDLE_STORE names."""
    clone = Clone(tmp_path / "store", None)
    clone.begin()
    monkeypatch.setenv("RADDLE_STORE", str(clone.root))
    monkeypatch.chdir(tmp_path)
    return clone


@pytest.fixture
def run_id(store: Clone) -> str:
    return done("run", "start").out.strip()


class TestRun:
    def test_a_run_is_begun_shown_and_ended(self, run_id: str) -> None:
        assert done("run", "phase", "build", "active").out.startswith(run_id)
        (listed,) = done("run", "list").lines
        assert listed.split()[:4] == [run_id, "active", "build:active", "test:pending"]
        assert done("run", "finish", run_id[:8]).out.strip() == run_id
        assert done("run", "list", "--json").json[0]["status"] == "done"
        refused = raddle("run", "fail", "--json")
        assert (refused.code, refused.error["code"]) == (2, "invalid_input")

    def test_show_tells_what_it_holds(self, run_id: str) -> None:
        done("entry", "add", "note", "one")
        done("summary", "set", "digest", "--phase", "test")
        shown = done("run", "show").out
        assert "build  pending  1 entry" in shown
        assert "summary" in shown
        told = done("run", "show", run_id.lower(), "--json").json
        assert told["run"]["run_id"] == run_id
        assert (told["entries"], told["summaries"], told["handoffs"]) == ({"build": 1}, ["test"], [])

    def test_a_run_that_goes_on_from_another_names_it(self, run_id: str) -> None:
        later = done("run", "start", "--phases", "a, b", "--parent", run_id[:12], "--json").json
        assert later["parent_run_id"] == run_id
        assert list(later["phases"]) == ["a", "b"]
        assert done("run", "leave", later["run_id"], "--json").json["nodes"][0]["left"]

    def test_without_a_run_that_is_said(self, store: Clone) -> None:
        assert "raddle run start" in done("run", "list").err
        answer = raddle("entry", "add", "note", "x")
        assert (answer.code, answer.out) == (3, "")
        assert "raddle run start" in answer.err

    def test_a_damaged_run_is_told_beside_the_others(self, store: Clone, run_id: str) -> None:
        store.write("runs/01M8PZKM3KMAB0SYRHJ485PAMY/run.yaml", "run_id: [")
        answer = done("run", "list")
        assert len(answer.lines) == 1
        assert "01M8PZKM3KMAB0SYRHJ485PAMY/run.yaml" in answer.err


class TestEntry:
    def test_an_entry_is_added_and_listed(self, run_id: str) -> None:
        done("entry", "add", "decision", "keep the parser in C", "--tag", "parser", "--agent", "codex")
        added = done(
            "entry", "add", "metric", "-", "--payload", '{"fps": 2100}', "--json", stdin=b"fast\n"
        ).json
        assert added["payload"] == {"text": "fast", "fps": 2100}
        assert [line.split(maxsplit=2)[2] for line in done("entry", "list").lines] == [
            "build  decision  keep the parser in C #parser",
            "build  metric    fast fps=2100",
        ]
        (first,) = done("entry", "list", "--tag", "parser", "--since", "1h", "--json").json
        assert first["provenance"]["agent"] == "codex"
        newest = done("entry", "list", "-n", "1")
        assert "fast" in newest.out
        assert "-n shows more" in newest.err

    @pytest.mark.parametrize(
        "words",
        [
            ("add", "nonsense", "x"),
            ("add", "note"),
            ("add", "note", " "),
            ("add", "note", "--payload", '{"x": NaN}'),
            ("add", "note", "--payload", '{"x": 1e400}'),
            ("add", "note", "--payload", "[1]"),
            ("add", "note", "x", "--payload", '{"text": "y"}'),
            ("add", "note", "x", "--phase", "../x"),
            ("add", "note", "x", "--run", "u"),
            ("add", "note", "x", "--message", "m1"),
            ("add", "note", "x", "--tag", "a\nb"),
            ("list", "--phase", "nope"),
            ("list", "--type", "nope"),
            ("list", "--since", "yesteryear"),
        ],
        ids=" ".join,
    )
    def test_words_that_do_not_fit_are_refused_in_two_lines(
        self, run_id: str, words: tuple[str, ...]
    ) -> None:
        answer = raddle("entry", *words)
        assert (answer.code, answer.out) == (2, "")
        assert len(answer.err.splitlines()) == 2

    def test_a_secret_is_warned_of_and_never_shown(self, run_id: str) -> None:
        answer = done("entry", "add", "note", "password=" + "hunter22x")
        assert "a password" in answer.err
        assert "hunter22x" not in answer.err

    def test_a_damaged_entry_is_told_beside_the_others(self, store: Clone, run_id: str) -> None:
        done("entry", "add", "note", "fine")
        path = entry_file(run_id, "build", 7, "01M8PZKM3QH82B3EHB38JW5D7M")
        store.write(path, "")
        (store.root / path).write_bytes(b"")
        answer = done("entry", "list")
        assert len(answer.lines) == 1
        assert path in answer.err

    def test_what_is_said_cannot_move_the_terminals_cursor(self, run_id: str) -> None:
        done("entry", "add", "note", "a\x1b[2Jb\u202ec")
        shown = done("entry", "list").out
        assert "\x1b" not in shown
        assert "\u202e" not in shown


class TestThread:
    def test_a_thread_lists_what_rests_on_it(self, run_id: str) -> None:
        thread = new("hello")
        message = done("show", thread, "--json").json["conversation"]["messages"][0]["id"]
        done("entry", "add", "decision", "keep it", "--thread", thread[:13], "--message", message[-8:])
        done("entry", "add", "note", "something else")
        (entry,) = done("entry", "list", "--thread", thread[:13], "--json").json
        assert entry["provenance"]["thread_id"] == thread
        assert entry["provenance"]["message_id"] == message
        assert done("show", thread).lines[-2:] == [
            "1 entry of the project's memory on this",
            done("entry", "list", "--type", "decision").out.rstrip(),
        ]
        assert "keep it" not in done("show", thread, "--json").out

    def test_one_of_another_machine_is_named_by_its_whole_id(self, run_id: str) -> None:
        whole = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"
        done("entry", "add", "note", "x", "--thread", whole, "--message", "m1")
        for named in (whole[2:], "T-018e2b", "018E2B"):
            assert len(done("entry", "list", "--thread", named).lines) == 1
        assert raddle("entry", "list", "--thread", "T-0aaa").code == 3
        done("entry", "add", "note", "y", "--thread", f"{whole[:-1]}d")
        unclear = raddle("entry", "list", "--thread", "T-018e2b", "--json")
        assert (unclear.code, unclear.error["code"]) == (2, "ambiguous")
        assert raddle("entry", "add", "note", "x", "--thread", "T-0aaa").code == 3

    def test_without_a_store_nothing_is_said_and_a_broken_one_costs_a_line(
        self, store: Clone, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        thread = new("hello")
        monkeypatch.delenv("RADDLE_STORE")
        assert done("show", thread).err == ""
        monkeypatch.setenv("RADDLE_STORE", str(store.root))
        store.write(PROJECT_FILE, "schema_version: 9\n")
        broken = done("show", thread)
        assert "hello" in broken.out
        assert "newer" in broken.err or "format 9" in broken.err


def test_the_signs_of_a_store_are_the_layouts_own_names() -> None:
    assert set(SIGNS) == {MARKER_FILE, PEER_MARKER_FILE, PROJECT_FILE}


class TestPhases:
    def test_who_reads_one_is_told_of_another_version_that_waits(self, store: Clone, run_id: str) -> None:
        done("summary", "set", "ours")
        done("handoff", "publish", "--headline", "ours")
        for path in (f"phases/build/{name}" for name in ("summary.md", "handoff.json")):
            text = store.text(f"runs/{run_id}/{path}")
            other = conflict_path(f"runs/{run_id}/{path}", "bbbbbbbb", "01M8PZKM3KMAB0SYRHJ485PAMY")
            store.write(other, text.replace("ours", "theirs"))
        told = "has 1 other version: `raddle memory resolve` lists them"
        for words in (
            ("summary", "get"),
            ("handoff", "show"),
            ("handoff", "show", "--phase", "build", "--json"),
        ):
            assert told in done(*words).err
        assert done("store", "resume", run_id).err.count(told) == 2
        done("memory", "resolve", f"runs/{run_id}/phases/build/summary.md", "--take", "current")
        assert told not in done("summary", "get").err

    def test_a_summary_is_set_and_printed(self, run_id: str) -> None:
        assert raddle("summary", "get").code == 3
        assert done("summary", "set", "-", stdin="# Digest\nünïcode".encode()).out == "build\n"
        assert done("summary", "get").out == "# Digest\nünïcode\n"
        assert done("summary", "get", "--json").json == {
            "run_id": run_id,
            "phase": "build",
            "text": "# Digest\nünïcode\n",
        }
        done("summary", "set", "")
        assert raddle("summary", "get").code == 3

    def test_a_handoff_is_published_from_options_and_read(self, run_id: str) -> None:
        thread = new("hello")
        options = {
            "--headline": "Twice as fast",
            "--result": "fps=2100",
            "--decision": "keep C",
            "--question": "why?",
            "--evidence": thread[:13],
        }
        words = [word for option in options.items() for word in option]
        told = done("handoff", "publish", *words, "--result", "by=hand, mostly", "--json").json
        assert told["key_results"] == {"fps": 2100, "by": "hand, mostly"}
        assert told["evidence"] == [{"thread_id": thread}]
        shown = done("handoff", "show", "--phase", "build").out
        assert shown.startswith("Twice as fast\n")
        for text in ("fps  2100", "- keep C", "- why?", f"- {thread}"):
            assert text in shown
        (listed,) = done("handoff", "show", "--json").json
        assert listed == told

    def test_a_handoff_is_published_from_json(self, run_id: str, tmp_path: Path) -> None:
        file = tmp_path / "handoff.json"
        file.write_text('{"from_phase": "test", "headline": "from a file", "decisions": "one alone"}')
        assert done("handoff", "publish", "--file", str(file)).out == f"{run_id}  test\n"
        assert done("handoff", "show", "--phase", "test", "--json").json["decisions"] == ["one alone"]
        given = done(
            "handoff", "publish", "--file", "-", "--decision", "two", "--json", stdin=b'{"headline": "h"}'
        )
        assert (given.json["from_phase"], given.json["decisions"]) == ("build", ["two"])

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (("--decision", "no headline"), 2),
            (("--headline", "x", "--result", "nothing"), 2),
            (("--headline", "x", "--best", "nope"), 3),
            (("--headline", "x", "--evidence", "T-0aaa"), 3),
            (("--headline", "x", "--phase", "nope"), 2),
            (("--file", "nowhere.json"), 3),
            (("--file", "."), 6),
            (("--file", "a\0b"), 2),
        ],
        ids=str,
    )
    def test_what_leads_nowhere_is_refused(self, run_id: str, words: tuple[str, ...], code: int) -> None:
        answer = raddle("handoff", "publish", *words)
        assert (answer.code, answer.out) == (code, "")
        assert "nothing" not in done("handoff", "show").out
        assert "no phase" in done("handoff", "show").err


def test_on_a_terminal_entries_are_cut_to_its_width(run_id: str) -> None:
    done("entry", "add", "note", "word " * 60)
    for line in seen("entry", "list", columns=70).splitlines():
        assert len(line) < 110  # colours included
        assert line.count("word") < 12
