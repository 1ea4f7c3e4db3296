"""The commands that make a memory, bring it to another machine and tell how it stands."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from raddle.model.memory.repo_layout import MARKER_FILE, PROJECT_FILE
from tests.command_line import done, program, raddle
from tests.memory_clones import git
from tests.memory_hosts import BRANCH, commit, lay, make_code
from tests.seal import CHECKOUT


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of code, which is the current folder; it has a remote."""
    root = make_code(tmp_path / "code", hub=tmp_path / "hub.git")
    monkeypatch.chdir(root)
    return root


def second_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another clone of the code, on a machine with a raddle of its own; it is the current folder."""
    git("clone", "--quiet", str(tmp_path / "hub.git"), str(tmp_path / "second"), cwd=tmp_path)
    for name in ("DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"RADDLE_{name}_DIR", str(tmp_path / "machine" / name))
    monkeypatch.chdir(tmp_path / "second")
    return tmp_path / "second"


def test_a_memory_begun_here_is_taken_up_on_a_second_machine(
    tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = done("store", "init", "loom", "--worktree-repo", ".", "--phases", "build, test")
    assert made.lines == [str(code / BRANCH)]
    assert "commit it, so that others find" in made.err
    assert "takes no notice" in made.err
    run = done("run", "start").lines[0]
    done("entry", "add", "note", "the parser is slow")
    done("store", "sync", "--publish")
    commit(code, MARKER_FILE, (code / MARKER_FILE).read_text())
    git("push", "--quiet", "origin", "main", cwd=code)

    second = second_machine(tmp_path, monkeypatch)
    assert raddle("run", "list").code == 3
    taken = done("store", "resume", run[:20])
    assert "attached the memory of loom" in taken.err
    assert taken.lines[0].startswith(run)
    assert "the parser is slow" in taken.out
    nodes = done("run", "show", run, "--json").json["run"]["nodes"]
    assert len({node["node_id"] for node in nodes}) == 2
    again = done("store", "resume", run, "--json").json
    assert (again["store"], again["project"]) == (str(second / BRANCH), "loom")
    assert again["run"]["nodes"] == nodes
    assert [entry["payload"]["text"] for entry in again["entries"]] == ["the parser is slow"]


def test_a_memory_of_its_own_is_taken_up_from_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done("store", "init", "loom", "--store", "first")
    run = done("run", "start", "--store", "first").lines[0]
    done("store", "sync", "--store", "first")
    git("clone", "--quiet", "--bare", "first", "hub.git", cwd=tmp_path)
    for _ in range(2):
        answer = done("store", "resume", run, "--remote", "hub.git", "--store", "second", "--json")
        assert answer.json["store"] == str(tmp_path / "second")
    refused = raddle("store", "resume", run, "--remote", "other.git", "--store", "second")
    assert refused.code == 2
    assert "hub.git" in refused.err


def test_status_and_log_tell_how_it_stands(code: Path) -> None:
    done("store", "init", "loom", "--worktree-repo", ".", "--name", "The loom")
    lay(
        code / BRANCH,
        {"memory/a/note": "one\n", "memory/a/note.conflict-x-01M8PZKM3KMAB0SYRHJ485PAMY": "two\n"},
    )
    (code / BRANCH / "memory" / "link").symlink_to("/etc/passwd")
    told = done("store", "status")
    assert "loom (The loom)" in told.out
    assert "2 files not committed" in told.out
    assert "memory/link is left out: it is a link" in told.err
    before = done("store", "status", "--json").json
    assert before["publishing"] == "not_agreed"
    assert before["changes"] == ["memory/a/note", "memory/a/note.conflict-x-01M8PZKM3KMAB0SYRHJ485PAMY"]
    assert before["conflicts"] == ["memory/a/note.conflict-x-01M8PZKM3KMAB0SYRHJ485PAMY"]
    assert (before["unpushed"], before["mode"], before["branch"]) == (1, "worktree", BRANCH)
    done("store", "sync", "--publish")
    after = done("store", "status", "--json").json
    assert (after["publishing"], after["changes"], after["unpushed"]) == ("published", [], 0)
    log = done("store", "log", "--json").json
    assert sorted(log[0]["changed"]) == before["changes"]
    assert len(log) == 2
    assert all(one["node_id"] for one in log)
    assert len(done("store", "log", "-n", "1").lines) == 1


def test_a_store_that_is_there_ends_with_4_and_attach_with_0(code: Path) -> None:
    done("store", "init", "loom", "--worktree-repo", ".")
    assert raddle("store", "init", "loom", "--worktree-repo", ".").code == 4
    assert "attached already" in done("store", "attach").err
    assert done("store", "attach", "--json").json["done"] == "there"


@pytest.mark.parametrize(
    "words",
    [
        ("init", "Loom!"),
        ("init", "loom", "--phases", ","),
        ("init", "loom", "--phases", "a,A"),
        ("init", "loom", "--branch", "b"),
        ("init", "loom", "--worktree-repo", ".", "--host-repo", "."),
        ("init", "loom", "--worktree-repo", "nowhere"),
        ("init", "loom", "--store", "a\0b"),
        ("attach",),
        ("attach", "--host-repo", "nowhere"),
        ("resume", "01M8", "--remote", "ext::sh"),
        ("resume", "01M8", "--remote", "x", "--worktree-repo", "."),
        ("resume", "01M8", "--branch", "b"),
        ("adopt", "nowhere"),
        ("adopt",),
        ("status",),
        ("log", "-n", "0"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = raddle("store", *words)
    assert answer.code in (2, 3)
    assert answer.out == ""
    assert len(answer.err.splitlines()) in (1, 2)
    assert list(tmp_path.iterdir()) == []


def test_adopt_shows_what_it_would_do_and_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done("store", "init", "loom", "--store", "m")
    server = {"mcpServers": {"redthread": {"command": "redthread", "args": ["mcp-serve"]}}}
    marker = "schema_version: 1\nstore: {mode: repo, path: ./m}\n"
    lay(tmp_path, {".redthread.yaml": marker, ".mcp.json": json.dumps(server, indent=2)})
    asked = raddle("store", "adopt", ".")
    assert asked.code == 2
    assert "+  mode: repo" in asked.out
    assert not (tmp_path / MARKER_FILE).exists()
    did = done("store", "adopt", ".", "-y", "--json").json
    assert did["files"] == [str(tmp_path / MARKER_FILE), str(tmp_path / ".mcp.json")]
    served = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["redthread"]
    assert (served["command"], served["args"]) == ("raddle", ["mcp-serve"])
    assert raddle(*served["args"], "--help").code == 0
    assert did["project_id"] == "loom"
    assert done("store", "status", "--json").json["host"] == str(tmp_path)
    assert "adopted loom" in done("store", "adopt", "m").out


def test_a_store_from_the_future_is_read_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done("store", "init", "loom")
    project = tmp_path / BRANCH / PROJECT_FILE
    project.write_text(project.read_text().replace("schema_version: 1", "schema_version: 2"))
    monkeypatch.chdir(project.parent)
    for words in (("status",), ("log",), ("resume", "01M8"), ("sync",)):
        answer = raddle("store", *words)
        assert (answer.code, "upgrade raddle" in answer.err) == (5, True)


def test_the_language_of_the_person_is_no_matter(code: Path) -> None:
    german = {"LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de"}
    env = {**os.environ, **german}
    assert program("store", "init", "loom", "--worktree-repo", ".", env=env).code == 0
    assert program("store", "sync", "--publish", env=env).code == 0
    assert git("ls-remote", "origin", f"refs/heads/{BRANCH}", cwd=code) != ""


def test_a_phase_that_a_global_gitignore_names_is_committed_all_the_same(code: Path, home: Path) -> None:
    (home / "ignore").write_text("build\nruns\n")
    git("config", "--global", "core.excludesFile", str(home / "ignore"), cwd=home)
    done("store", "init", "loom", "--worktree-repo", ".")
    run = done("run", "start").lines[0]
    done("entry", "add", "note", "kept", "--phase", "build")
    done("store", "sync", "--publish")
    committed = git("ls-tree", "-r", "--name-only", "HEAD", cwd=code / BRANCH)
    assert f"runs/{run}/phases/build/entries/" in committed


def test_help_lists_every_command_of_a_store() -> None:
    answer = done("store", "--help")
    for name in ("init", "attach", "resume", "adopt", "status", "log", "sync", "verify", "gc"):
        assert f"  {name} " in answer.out
    assert done("store", "gc", "--help").out.startswith("Usage: raddle store gc")


def test_a_sync_says_what_it_did_and_a_look_what_is_damaged(tmp_path: Path, code: Path) -> None:
    done("store", "init", "loom", "--worktree-repo", ".")
    asked = raddle("store", "sync")
    assert (asked.code, "--publish" in asked.err) == (4, True)
    assert done("store", "sync", "--publish", "--json").json["pushed"]
    assert done("store", "sync").lines == ["in step, nothing new"]
    done("memory", "set", "team/plan", "one")
    plain = done("store", "sync", "--json").json
    assert (plain["state"], plain["pushed"], plain["pulled"]) == ("in_step", True, [])
    assert git("show", f"{BRANCH}:memory/team/plan", cwd=tmp_path / "hub.git").endswith("one\n")
    assert done("store", "verify").lines[-1].endswith("all is well")
    (code / BRANCH / "project.yaml").write_bytes(b"{[")
    found = raddle("store", "verify")
    assert found.code == 5


def test_the_page_on_json_promises_what_is_printed(code: Path) -> None:
    page = " ".join((CHECKOUT / "docs/reference/json.md").read_text(encoding="utf-8").split())
    printed = {
        "store init": done("store", "init", "loom", "--worktree-repo", ".", "--json").json,
        "store adopt": done("store", "adopt", "-y", "--json").json,
        "store status": done("store", "status", "--json").json,
        "store sync": done("store", "sync", "--publish", "--json").json,
        "store log": done("store", "log", "--json").json[0],
        "store verify": done("store", "verify", "--json").json,
    }
    run = done("run", "start").lines[0]
    done("run", "phase", "build", "active")
    printed["summary set"] = done("summary", "set", "so far", "--json").json
    printed |= {
        "summary get": done("summary", "get", "--json").json,
        "run show": done("run", "show", "--json").json,
        "store resume": done("store", "resume", run, "--json").json,
    }
    promised = {
        name: re.search(rf"`{name}` (?:prints )?(?:an array, [^{{]*)?`\{{([^}}]+)\}}`", page)
        for name in printed
    }
    assert {name: found and set(found[1].split(", ")) for name, found in promised.items()} == {
        name: set(plain) for name, plain in printed.items()
    }


def test_a_store_that_lost_its_link_says_what_mends_it_and_that_does(tmp_path: Path, code: Path) -> None:
    done("store", "init", "loom", "--worktree-repo", ".")
    done("store", "sync", "--publish")
    (code / BRANCH / ".git").unlink()
    refused = raddle("store", "status")
    assert (refused.code, "raddle store adopt" in refused.err) == (5, True)
    assert f"joined to the branch {BRANCH}" in raddle("store", "adopt").out
    assert not (code / BRANCH / ".git").exists()
    done("store", "adopt", "-y")
    done("memory", "set", "team/plan", "one")
    assert done("store", "sync", "--json").json["pushed"]
    assert git("show", f"{BRANCH}:memory/team/plan", cwd=tmp_path / "hub.git").endswith("one\n")
    (code / BRANCH / ".git").unlink()
    git("init", "--quiet", ".", cwd=code / BRANCH)
    status = done("store", "status")
    assert "it is a repository of its own, and .raddle.yaml says" in status.err
    assert "is in no" not in done("store", "adopt", "-y").err
    assert done("store", "status", "--json").json["apart"] == ""


def test_a_project_file_that_cannot_be_read_is_mended_by_what_the_error_names(code: Path) -> None:
    done("store", "init", "kiln", "--worktree-repo", str(code))
    project = code / BRANCH / "project.yaml"
    whole = project.read_bytes()
    for broken in ("{{{{", "", "<<<<<<< HEAD\n"):
        project.write_text(broken)
        refused = raddle("store", "status")
        assert (refused.code, len(refused.err.splitlines())) == (5, 2)
        assert "`raddle store verify --fix`" in refused.err
        done("store", "verify", "--fix")
        assert project.read_bytes() == whole
        assert done("store", "status", "--json").json["project_id"] == "kiln"
