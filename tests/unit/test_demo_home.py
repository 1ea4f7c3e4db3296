"""The made-up home of the demo: readable, small, whole where it should be and hurt where it should be."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.importing.claude_code import ClaudeCode
from raddle.actions.importing.importer import Ending, Links, Problem, SourceName
from raddle.apps.cli.demo_home import DemoHome, write_demo_home
from raddle.model.clock import parse_time
from raddle.model.threads.message import COMPACTION, Message

NOW = 1_795_000_000_000_000
HOUR = 3_600_000_000


@pytest.fixture
def demo(tmp_path: Path) -> DemoHome:
    return write_demo_home(tmp_path / "demo", now=NOW)


def session_files(demo: DemoHome) -> dict[str, Path]:
    """Title -> its file."""
    by_id = {path.stem: path for path in demo.claude_home.glob("projects/*/*.jsonl")}
    return {title: by_id[session_id] for title, session_id in demo.sessions.items()}


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a file; what is not one JSON value is left out."""
    out = []
    for line in path.read_bytes().split(b"\n"):
        try:
            out.append(json.loads(line))
        except ValueError:
            continue
    return out


def all_records(demo: DemoHome) -> list[dict[str, Any]]:
    return [record for path in demo.claude_home.rglob("*.jsonl") for record in records(path)]


def blocks(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [
        block
        for record in found
        if isinstance(record.get("message", {}).get("content"), list)
        for block in record["message"]["content"]
        if block["type"] == kind
    ]


def is_typed(record: dict[str, Any]) -> bool:
    return (
        record["type"] == "user"
        and isinstance(record["message"]["content"], str)
        and "isCompactSummary" not in record
    )


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_place_and_time_give_the_same_bytes(tmp_path: Path) -> None:
    write_demo_home(tmp_path, now=NOW)
    first = snapshot(tmp_path)
    write_demo_home(tmp_path, now=NOW)
    assert snapshot(tmp_path) == first


def test_another_seed_gives_the_same_words_under_other_ids(tmp_path: Path) -> None:
    one = write_demo_home(tmp_path / "a", now=NOW, seed=1)
    other = write_demo_home(tmp_path / "a", now=NOW, seed=2)
    assert one.sessions.keys() == other.sessions.keys()
    assert not set(one.sessions.values()) & set(other.sessions.values())


def test_it_is_small_and_has_a_dozen_sessions_of_four_projects(demo: DemoHome) -> None:
    size = sum(len(content) for content in snapshot(demo.claude_home).values())
    assert size < 300_000
    assert len(session_files(demo)) == 12
    assert {str(project) for project in demo.projects} == {
        record["cwd"] for record in all_records(demo) if "cwd" in record
    }
    assert all(project.is_dir() for project in demo.projects)


def test_a_session_lies_in_the_folder_named_after_its_project(demo: DemoHome) -> None:
    for path in session_files(demo).values():
        cwd = next(record["cwd"] for record in records(path) if "cwd" in record)
        assert path.parent.name == re.sub(r"[^A-Za-z0-9-]", "-", cwd)


def test_every_session_tells_its_title(demo: DemoHome) -> None:
    for title, path in session_files(demo).items():
        assert [one["aiTitle"] for one in records(path) if one["type"] == "ai-title"] == [title]


def test_nothing_happened_after_now_and_the_newest_is_fresh(demo: DemoHome) -> None:
    times = [parse_time(one["timestamp"]) or 0 for one in all_records(demo) if "timestamp" in one]
    assert max(times) <= NOW
    assert NOW - max(times) < 2 * HOUR
    assert NOW - min(times) > 30 * 24 * HOUR


def test_times_only_go_forward_in_a_session(demo: DemoHome) -> None:
    for path in session_files(demo).values():
        times = [one["timestamp"] for one in records(path) if "timestamp" in one]
        assert times == sorted(times)


def test_only_the_damaged_file_is_damaged(demo: DemoHome) -> None:
    hurt = set()
    for path in demo.claude_home.rglob("*.jsonl"):
        lines = path.read_bytes().split(b"\n")
        if len(records(path)) != len(lines) - 1 or lines[-1]:
            hurt.add(path)
    assert hurt == {demo.damaged}


def test_the_damage_is_a_block_of_nuls_and_a_torn_last_line(demo: DemoHome) -> None:
    lines = demo.damaged.read_bytes().split(b"\n")
    assert [set(line) for line in lines if b"\0" in line] == [{0}]
    assert lines[-1].startswith(b'{"parentUuid"')
    assert len(records(demo.damaged)) == len(lines) - 2


def test_every_parent_is_in_the_file_but_for_what_the_damage_took(demo: DemoHome) -> None:
    for path in demo.claude_home.rglob("*.jsonl"):
        found = records(path)
        uuids = {one["uuid"] for one in found if "uuid" in one}
        parents = {one["parentUuid"] for one in found if one.get("parentUuid")}
        assert parents <= uuids


def test_every_call_has_its_result_right_under_it(demo: DemoHome) -> None:
    found = all_records(demo)
    calls = Counter(block["id"] for block in blocks(found, "tool_use"))
    results = Counter(block["tool_use_id"] for block in blocks(found, "tool_result"))
    assert calls == results
    assert any(block["is_error"] for block in blocks(found, "tool_result"))


def test_one_person_went_back_and_typed_something_else(demo: DemoHome) -> None:
    typed = Counter(
        (path, one["parentUuid"])
        for path in session_files(demo).values()
        for one in records(path)
        if one.get("parentUuid") and is_typed(one)
    )
    assert [count for count in typed.values() if count > 1] == [2]


def test_one_session_goes_on_from_another_with_its_uuids(demo: DemoHome) -> None:
    seen: Counter[str] = Counter()
    for path in session_files(demo).values():
        seen.update([one["uuid"] for one in records(path) if "uuid" in one])
    shared = [uuid for uuid, count in seen.items() if count > 1]
    later = records(session_files(demo)["Honour Retry-After"])
    assert shared == [one["uuid"] for one in later if one.get("uuid") in shared]
    assert 5 < len(shared) < len(later)


def test_one_conversation_was_compacted_and_keeps_what_was_said_before(demo: DemoHome) -> None:
    found = all_records(demo)
    (boundary,) = [one for one in found if one.get("subtype") == "compact_boundary"]
    (summary,) = [one for one in found if one.get("isCompactSummary")]
    assert boundary["parentUuid"] is None
    assert boundary["logicalParentUuid"] in {one.get("uuid") for one in found}
    assert summary["parentUuid"] == boundary["uuid"]


def test_the_sub_agent_says_which_call_started_it(demo: DemoHome) -> None:
    (path,) = demo.claude_home.rglob("agent-*.jsonl")
    sidecar = json.loads(path.with_suffix(".meta.json").read_bytes())
    parent = records(path.parent.parent.with_suffix(".jsonl"))
    assert sidecar["toolUseId"] in {
        block["id"] for block in blocks(parent, "tool_use") if block["name"] == "Task"
    }
    assert {(one["isSidechain"], one["sessionId"]) for one in records(path)} == {
        (True, parent[0]["sessionId"])
    }


def test_each_search_worth_trying_finds_one_session(demo: DemoHome) -> None:
    texts = {
        title: "\n".join(
            json.dumps(one["message"]["content"], ensure_ascii=False).lower()
            for one in records(path)
            if "message" in one
        )
        for title, path in session_files(demo).items()
    }
    for search in demo.searches:
        words = search.query.strip('"').lower()
        assert [title for title, text in texts.items() if words in text] == [search.finds]


def test_a_symbol_a_flag_and_three_scripts_are_in_it(demo: DemoHome) -> None:
    whole = b"".join(snapshot(demo.claude_home).values()).decode(errors="replace")
    assert all(text in whole for text in ("👨‍👩‍👧", "🇳🇴", "東京湾", "서울", "½"))


def imported(path: Path, links: Links | None = None) -> tuple[Ending, list[Message], list[Problem]]:
    """A file as raddle's own importer reads it."""
    sidecar = path.with_suffix(".meta.json")
    folders = path.parts[path.parts.index("projects") + 1 : -1]
    told = sidecar.read_bytes() if sidecar.exists() else b""
    reader = ClaudeCode().open(SourceName(name=path.name, folders=folders, sidecar=told), links=links)
    *lines, tail = path.read_bytes().split(b"\n")
    reader.feed(lines)
    ending = reader.finish(tail)
    return ending, reader.take().messages, reader.problems


def test_the_importer_reads_all_of_it_and_names_only_the_damage(demo: DemoHome) -> None:
    hurt = {}
    for title, path in session_files(demo).items():
        ending, messages, problems = imported(path)
        assert ending.session_id == demo.sessions[title]
        assert title in {value for name, _, value in ending.registers if name == "title"}
        assert len(messages) > 7
        if problems:
            hurt[path] = [problem.line for problem in problems]
    lines = demo.damaged.read_bytes().split(b"\n")
    assert hurt == {demo.damaged: [1 + lines.index(b"\0" * 512), len(lines)]}


def test_the_importer_sees_one_fork_one_sub_agent_and_one_compaction(demo: DemoHome) -> None:
    read = {title: imported(path) for title, path in session_files(demo).items()}
    forked = [title for title, (_, said, _) in read.items() if len({one.branch_id for one in said}) > 1]
    assert forked == ["test_latest_reading fails one time in twenty"]
    compacted = [title for title, (_, said, _) in read.items() if any(one.kind == COMPACTION for one in said)]
    assert compacted == ["Add a datum column to 40 million readings"]
    (path,) = demo.claude_home.rglob("agent-*.jsonl")
    ending, said, _ = read["Is the release script safe to run twice?"]
    _, side, problems = imported(path, ending.links)
    assert side[0].parent_id in {one.id for one in said if one.tool_calls}
    assert all(one.is_sidechain for one in side)
    assert problems == []
