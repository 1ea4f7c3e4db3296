"""What an agent does to a project's memory by the tools of the server: the plain functions, without a protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raddle.apps.mcp_server.memory_tools import MemoryImport, memory_import
from raddle.apps.mcp_server.paging import CHARACTERS_A_TOKEN
from raddle.apps.mcp_server.resources import read_resource
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.tools import Call
from raddle.model.errors import ConflictError, Forbidden, InvalidInput, NotFound, RaddleError, UserError
from raddle.model.threads.recalled import RECALLED_KEY, is_recalled
from tests.mcp_sessions import QUIET, call, session_in
from tests.memory_clones import git
from tests.memory_hosts import make_code

pytest_plugins = ["tests.mcp_fixtures"]

LONG = "The kiln is cold in the morning because the relay opens at nine o'clock, says the log of last week."


def test_a_memory_is_made_where_the_code_is_and_opened_the_second_time(tmp_path: Path, code: Path) -> None:
    session = session_in(code, tmp_path / "home")
    with pytest.raises(NotFound) as none:
        call(session, "context_bootstrap")
    assert "store_init" in none.value.hint
    assert call(session, "store_init", project_id="kiln", phases="build, test")["state"] == "created"
    again = call(session, "store_init", project_id="kiln")
    assert (again["state"], again["phases"], again["mode"]) == (
        "there already",
        ("build", "test"),
        "worktree",
    )
    with pytest.raises(ConflictError):
        call(session, "store_init", project_id="other")
    assert git("status", "--porcelain", cwd=code).split() == ["??", ".raddle.yaml"]


def test_what_is_written_is_read_listed_and_found_at_once(agent: Session) -> None:
    written = call(
        agent,
        "memory_write",
        namespace="team",
        key="notes/kiln.md",
        content=LONG,
        description="why cold",
        tags="a, b",
    )
    assert written == {"name": "team/notes/kiln.md", "state": "created"}
    read = call(agent, "memory_read", namespace="team", key="notes/kiln.md")
    assert (read["content"].strip(), read["tags"], read["description"]) == (LONG, ("a", "b"), "why cold")
    (line,) = call(agent, "memory_list", namespace="team")["memories"]
    assert line["name"] == "team/notes/kiln.md"
    (hit,) = call(agent, "memory_search", query="relay")["hits"]
    assert (hit["kind"], hit["name"]) == ("memory", "team/notes/kiln.md")


def test_a_tag_given_as_one_text_is_not_cut_into_letters(agent: Session) -> None:
    for given in ("release", ["release"], '["release"]'):
        call(agent, "memory_write", namespace="t", key="k", content=f"as {given!r}", tags=given)
        assert call(agent, "memory_read", namespace="t", key="k")["tags"] == ("release",)


def test_recalled_text_is_marked_and_not_kept_a_second_time(agent: Session) -> None:
    call(agent, "memory_write", namespace="team", key="kiln", content=LONG)
    read = call(agent, "memory_read", namespace="team", key="kiln")
    assert next(iter(read)) == RECALLED_KEY
    assert is_recalled(json.dumps(read, separators=(",", ":")))
    copies: list[tuple[str, dict[str, Any]]] = [
        ("memory_write", {"namespace": "mine", "key": "copy", "content": f"  {LONG.upper()}\n\n"}),
        ("context_log", {"type": "note", "phase": "build", "payload": {"text": LONG}}),
        ("context_log", {"type": "note", "phase": "build", "payload": LONG}),
    ]
    for tool, arguments in copies:
        with pytest.raises(InvalidInput, match="recalled text"):
            call(agent, tool, **arguments)
    answer = f"as raddle says:\n{json.dumps(read)}"
    for tool, arguments in (
        ("memory_write", {"namespace": "mine", "key": "copy", "content": answer}),
        ("context_log", {"type": "note", "phase": "build", "payload": answer}),
        ("summary_update", {"phase": "build", "markdown": answer}),
        ("handoff_publish", {"phase": "build", "headline": "done", "decisions": [answer]}),
    ):
        with pytest.raises(InvalidInput, match="an answer of raddle's"):
            call(agent, tool, **arguments)
    assert call(agent, "memory_write", namespace="team", key="kiln", content=LONG)["state"] == "unchanged"
    more = f"{LONG}\n\nIt was the fuse, not the relay: the electrician measured it today, and replaced it."
    assert call(agent, "memory_write", namespace="mine", key="found", content=more)["state"] == "created"


def test_a_memory_can_be_moved_by_deleting_it_first(agent: Session) -> None:
    call(agent, "memory_write", namespace="team", key="kiln", content=LONG)
    call(agent, "memory_read", namespace="team", key="kiln")
    call(agent, "memory_delete", namespace="team", key="kiln")
    assert call(agent, "memory_write", namespace="team", key="oven", content=LONG)["state"] == "created"


def test_a_secret_is_warned_of(agent: Session) -> None:
    secret = "ghp_" + "aB3" * 12
    assert "secret" in call(agent, "memory_write", namespace="t", key="k", content=f"use {secret}")["warning"]
    assert "warning" in call(agent, "context_log", type="note", phase="build", payload=f"use {secret}")


def test_lists_come_in_pages_that_hold_each_thing_once(agent: Session) -> None:
    names = [f"n/k{number:02}" for number in range(11)]
    for name in names:
        call(agent, "memory_write", namespace="n", key=name.removeprefix("n/"), content=f"text of {name}")
        call(agent, "context_log", type="note", phase="build", payload={"text": name})
    seen: list[str] = []
    cursor = None
    while True:
        page = call(agent, "memory_list", limit=3, cursor=cursor)
        seen += [line["name"] for line in page["memories"]]
        cursor = page.get("cursor")
        if cursor is None:
            break
    assert seen == names
    entries: list[str] = []
    cursor = None
    while True:
        page = call(agent, "context_read", limit=4, cursor=cursor)
        entries = [entry["payload"]["text"] for entry in page["entries"]] + entries
        cursor = page.get("cursor")
        if cursor is None:
            break
    assert entries == names
    with pytest.raises(InvalidInput, match="cursor"):
        call(agent, "memory_list", cursor="12")


def test_a_page_goes_on_where_the_last_one_ended_though_its_last_memory_is_gone(agent: Session) -> None:
    for key in "abcd":
        call(agent, "memory_write", namespace="n", key=key, content=f"text {key}")
    cursor = call(agent, "memory_list", limit=2)["cursor"]
    call(agent, "memory_delete", namespace="n", key="b")
    page = call(agent, "memory_list", limit=9, cursor=cursor)
    assert [line["name"] for line in page["memories"]] == ["n/c", "n/d"]


def test_taking_up_a_project_tells_what_matters_within_its_budget(agent: Session, code: Path) -> None:
    (code / "notes").mkdir()
    for number in range(60):
        (code / "notes" / f"k{number:03}").write_text(f"---\ndescription: {'word ' * 30}\n---\nx\n")
    call(agent, "memory_import", source="notes", namespace="n")
    for number in range(12):
        call(agent, "context_log", type="note", phase="build", payload={"text": f"{number} " + "say " * 100})
    call(agent, "summary_update", phase="build", markdown="so far " * 900)
    call(agent, "handoff_publish", phase="build", headline="Bowls are dry", decisions=["keep the wheel"])
    for tokens in (500, 2000, 8000):
        told = call(agent, "context_bootstrap", tokens=tokens)
        assert len(json.dumps(told)) <= tokens * CHARACTERS_A_TOKEN + 2500
        assert told["run"]["handoffs"][0]["headline"] == "Bowls are dry"
        assert told["memories"]
    told = call(agent, "context_bootstrap", tokens=500)
    seen = [line["name"] for line in told["memories"]]
    while "cursor" in told:
        told = call(agent, "context_bootstrap", tokens=1000, cursor=told["cursor"])
        seen += [line["name"] for line in told["memories"]]
    assert seen == [f"n/k{number:03}" for number in range(60)]


def test_a_headline_without_end_does_not_fill_what_everybody_reads_first(agent: Session) -> None:
    with pytest.raises(InvalidInput, match="headline"):
        call(agent, "handoff_publish", phase="build", headline="words " * 200)
    call(agent, "handoff_publish", phase="build", headline="done")
    with agent.memory() as memory:
        (file,) = memory.root.glob("runs/*/phases/build/handoff.json")
        file.write_text(file.read_text().replace('"done"', '"' + "x" * 1_000_000 + '"'))
    assert len(json.dumps(call(agent, "context_bootstrap", tokens=500))) < 5_000
    call(agent, "run_start")
    assert len(json.dumps(call(agent, "context_bootstrap", tokens=500))) < 5_000


def test_a_new_run_knows_what_the_run_before_handed_over(agent: Session) -> None:
    call(agent, "handoff_publish", phase="build", headline="Bowls are dry")
    call(agent, "run_finish")
    call(agent, "run_start")
    told = call(agent, "context_bootstrap")
    assert told["recent_runs"][0]["headlines"] == {"build": "Bowls are dry"}
    assert told["run"]["run_id"] not in [run["run_id"] for run in told["recent_runs"]]


def test_artifacts_are_put_from_below_the_workspace_alone(agent: Session, code: Path, tmp_path: Path) -> None:
    (code / "report.md").write_text("all well\n")
    (tmp_path / "secret").write_text("not yours")
    (code / "link").symlink_to(tmp_path / "secret")
    put = call(agent, "artifact_put", source_path="report.md", kind="report", phase="build")
    assert put["artifact_id"] == "report"
    assert call(agent, "artifact_get", artifact_id="report")["text"] == "all well\n"
    for outside in ("../secret", str(tmp_path / "secret"), "link", "/etc/passwd", "report.md\0"):
        with pytest.raises(InvalidInput):
            call(agent, "artifact_put", source_path=outside, kind="file", phase="build")
    for inside in (".git/config", ".GIT/HEAD"):
        with pytest.raises((InvalidInput, NotFound)):
            call(agent, "artifact_put", source_path=inside, kind="file", phase="build")
    for outside in ("..", str(tmp_path), "/"):
        with pytest.raises(InvalidInput, match="outside"):
            call(agent, "memory_import", source=outside)
    with pytest.raises(NotFound):
        call(agent, "artifact_put", source_path="none.md", kind="file", phase="build")


def test_a_long_artifact_is_read_in_parts_that_cut_no_character(agent: Session, code: Path) -> None:
    text = "añ€𝄞" * 30_000
    (code / "long.txt").write_text(text)
    call(agent, "artifact_put", source_path="long.txt", kind="log", phase="build")
    read, offset = "", 0
    while True:
        part = call(agent, "artifact_get", artifact_id="long", offset=offset)
        read += part["text"]
        if "next_offset" not in part:
            break
        offset = part["next_offset"]
    assert read == text
    (code / "picture.png").write_bytes(b"\x89PNG\0\xff" * 10)
    call(agent, "artifact_put", source_path="picture.png", kind="figure", phase="build")
    assert "raddle artifact get" in call(agent, "artifact_get", artifact_id="picture")["note"]


def test_texts_of_the_workspace_become_memories(agent: Session, code: Path) -> None:
    (code / "notes").mkdir()
    (code / "notes" / "a.md").write_text("about a\n")
    done = call(agent, "memory_import", source="notes", namespace="old")
    assert done["added"] == ("a.md",)
    assert call(agent, "memory_read", namespace="old", key="a.md")["content"] == "about a\n"
    (code / "notes" / "deep").mkdir()
    (code / "notes" / "deep" / "b.md").write_text("about b\n")
    done = call(agent, "memory_import", source="notes", namespace="flat", recursive=False, tags="old")
    assert done["added"] == ("a.md",)
    assert call(agent, "memory_read", namespace="flat", key="a.md")["tags"] == ("old",)
    whole = call(agent, "memory_import", source=".", namespace="all")
    assert "raddle-store" in whole["skipped"]
    assert not [key for key in whole["added"] if key.startswith("raddle-store")]
    done = call(agent, "memory_import", source="notes/deep/b.md", namespace="one")
    assert done["added"] == ("b.md",)


def test_agents_md_tells_of_the_memory_without_a_path_and_keeps_the_rest(agent: Session, code: Path) -> None:
    file = code / "AGENTS.md"
    file.write_bytes(b"# Rules\r\n\r\nBe brief.\r\n")
    assert call(agent, "agents_md_bootstrap") == {"file": "AGENTS.md", "state": "changed"}
    first = file.read_bytes()
    assert first.startswith(b"# Rules\r\n\r\nBe brief.\r\n")
    assert str(code).encode() not in first
    assert b"context_bootstrap" in first
    assert call(agent, "agents_md_bootstrap")["state"] == "unchanged"
    file.write_bytes(first.replace(b"`kiln`", b"`old`") + b"Last.\r\n")
    assert call(agent, "agents_md_bootstrap")["state"] == "changed"
    assert file.read_bytes() == first + b"Last.\r\n"
    assert file.stat().st_mode & 0o777 != 0o600


def test_half_a_section_in_agents_md_is_left_for_a_person(agent: Session, code: Path) -> None:
    file = code / "AGENTS.md"
    file.write_text("<!-- raddle:memory begin -->\nmine\n")
    with pytest.raises(InvalidInput):
        call(agent, "agents_md_bootstrap")
    assert file.read_text() == "<!-- raddle:memory begin -->\nmine\n"


def test_of_several_roots_the_one_with_a_memory_is_worked_in(
    agent: Session, tmp_path: Path, code: Path
) -> None:
    other = make_code(tmp_path / "other")
    agent.roots = (other, code)
    assert agent.workspace() == code
    assert call(agent, "context_bootstrap")["project"]["project_id"] == "kiln"
    with pytest.raises(NotFound):
        call(agent, "context_bootstrap", workspace=str(other))
    agent.roots = ()
    with pytest.raises(Forbidden):
        call(agent, "context_bootstrap", workspace=str(other))
    assert call(agent, "context_bootstrap", workspace=str(code))["project"]["project_id"] == "kiln"
    with pytest.raises(InvalidInput):
        call(agent, "context_bootstrap", workspace="relative/path")


def test_the_wrong_argument_is_named(agent: Session) -> None:
    for tool, arguments, said in (
        ("memory_list", {"limit": "many"}, "limit: expected 'int'"),
        ("memory_list", {"colour": 1}, "takes no argument 'colour'"),
        ("memory_read", {"key": "k"}, "missing argument 'namespace'"),
        ("memory_list", {"limit": 0}, "limit"),
        ("memory_list", {"limit": 10**400}, "limit"),
    ):
        with pytest.raises(InvalidInput) as wrong:
            call(agent, tool, **arguments)
        assert said in wrong.value.message
        assert "it takes" in wrong.value.hint
    assert call(agent, "memory_list", limit="7")["total"] == 0


def test_a_memory_is_not_put_below_another_one_nor_where_git_keeps_things(agent: Session, code: Path) -> None:
    call(agent, "memory_write", namespace="team", key="a", content="words")
    for namespace, key in (
        ("team", "a/b"),
        (".git", "hooks/x"),
        ("team", ".git/config"),
        ("..", "x"),
        ("team", "../x"),
    ):
        with pytest.raises(RaddleError) as wrong:
            call(agent, "memory_write", namespace=namespace, key=key, content="words")
        assert wrong.value.hint
    names = {line["name"] for line in call(agent, "memory_list")["memories"]}
    assert names == {"team/a"}


def test_an_import_says_how_far_it_is_and_writes_nothing_once_it_is_given_up(
    agent: Session, code: Path
) -> None:
    (code / "notes").mkdir()
    for number in range(450):
        (code / "notes" / f"k{number:03}").write_text(f"text {number}\n")
    heard: list[float] = []
    over = Call(progress=lambda done, of, what: heard.append(done), is_over=lambda: bool(heard))
    with pytest.raises(UserError, match="given up"):
        memory_import(agent, MemoryImport(source="notes"), over)
    assert (heard, call(agent, "memory_list")["total"]) == ([200], 0)
    whole = Call(progress=lambda done, of, what: heard.append(done), is_over=lambda: False)
    memory_import(agent, MemoryImport(source="notes"), whole)
    assert (heard, call(agent, "memory_list")["total"]) == ([200, 200, 400], 450)


def test_a_long_memory_is_read_in_parts_that_no_client_cuts_off(agent: Session) -> None:
    text = "".join(f"line {number} of what is known\n" for number in range(5000))
    call(agent, "memory_write", namespace="team", key="long", content=text)
    read, offset = "", 0
    while True:
        part = call(agent, "memory_read", namespace="team", key="long", offset=offset)
        assert len(json.dumps(part)) < 50_000
        read += part["content"]
        if "next_offset" not in part:
            break
        offset = part["next_offset"]
    assert read == text
    with pytest.raises(InvalidInput, match="past the end"):
        call(agent, "memory_read", namespace="team", key="long", offset=len(text))
    _, whole = read_resource(agent, "raddle://memory/team/long", QUIET)
    assert json.loads(whole)["content"] == text
    call(agent, "summary_update", phase="build", markdown=text)
    assert call(agent, "summary_get", phase="build")["next_offset"] < len(text)
