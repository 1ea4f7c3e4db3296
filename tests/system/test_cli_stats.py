"""`raddle stats`, as people and programs call it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.threads import fork_thread
from raddle.config import load_config
from raddle.model.threads.message import Usage
from raddle.wiring import Stores, open_stores
from tests.builders import a_message, a_thread
from tests.command_line import done, new, raddle, seen

SUMS = {
    *("messages input_tokens output_tokens cache_read_tokens cache_write_tokens cost_usd").split(),
    *("recorded_cost_usd recorded_cost_messages").split(),
}
SCOPE = set("store query since until time_zone threads deleted unreadable pending notes".split())
BIG = Usage(
    input_tokens=1_234_567,
    output_tokens=45_678,
    cache_read_tokens=1_234_567_890,
    cache_write_tokens=9_876_543,
)


@pytest.fixture
def stores(home: Path) -> Iterator[Stores]:
    """The store that the commands of this test work with."""
    with open_stores(load_config({"HOME": str(home)})) as opened:
        yield opened


def spent(stores: Stores, usage: Usage = BIG, text: str = "hello", **fields: Any) -> str:
    """A thread with a question and an answer that says what it used."""
    thread = new(text)
    stores.threads.append(thread, "assistant", "an answer", usage=usage, **{"model": "opus", **fields})
    return thread


def dated(stores: Stores, *times: str) -> None:
    """A thread of answers, each of which used one token more than the one before, at these times."""
    answers = [
        a_message(f"m{out}", role="assistant", ts=ts, usage=Usage(output_tokens=out))
        for out, ts in enumerate(times, 1)
    ]
    stores.threads.save(a_thread(*answers))


def test_an_empty_store_says_how_to_get_threads() -> None:
    answer = done("stats")
    assert answer.out == ""
    assert "raddle import" in answer.err
    assert done("stats", "--json").json["rows"] == []
    assert done("stats", "--jsonl").out == ""


def test_threads_that_say_nothing_of_usage_are_told_from_no_threads_and_from_none_that_fit() -> None:
    new("hello")
    assert "no message that fits says what it used; of 1 thread" in done("stats").err
    assert "no threads fit" in done("stats", "repo:nowhere").err


def test_the_table_is_grouped_aligned_and_has_a_total(stores: Stores) -> None:
    spent(stores)
    spent(stores, Usage(output_tokens=7), model="haiku")
    heading, opus, haiku, total = done("stats", "--by", "model").lines
    assert heading.split("  ")[0] == "MODEL"
    assert re.split(r"\s{2,}", opus) == [
        "opus",
        "1",
        "1,234,567",
        "45,678",
        "1,234,567,890",
        "9,876,543",
        "–",
    ]
    assert re.split(r"\s{2,}", haiku) == ["haiku", "1", "–", "7", "–", "–", "–"]
    assert re.split(r"\s{2,}", total)[:4] == ["total", "2", "1,234,567", "45,685"]
    assert len({len(line) for line in (heading, opus, haiku, total)}) == 1


@pytest.mark.parametrize("way", ["day", "thread", "agent", "model", "repo", "role", "message"])
def test_every_way_fits_a_terminal_of_eighty_columns(way: str, stores: Stores) -> None:
    spent(stores, text="東京湾の水位 " * 20, model="a-model-with-a-name-that-goes-on-and-on-20260101")
    shown = seen("stats", "--by", way, columns=80)
    bare = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    lines = [line for line in bare.splitlines() if line]
    assert "1,234,567,890" in bare
    assert [line for line in lines if len(line) > 80] == []
    assert lines[0].startswith(way.upper())


def test_a_narrow_terminal_rather_shows_names_than_a_column_of_dashes(stores: Stores) -> None:
    spent(stores, model="claude-opus-4-5-20251101")
    assert "COST" in seen("stats", "--by", "model", columns=100)
    narrow = seen("stats", "--by", "model", columns=80)
    assert "COST" not in narrow
    assert "claude-opus-4-5-20251101 " in narrow


def test_of_a_repository_the_end_of_its_name_is_shown(stores: Stores) -> None:
    thread = spent(stores)
    with stores.threads.edit(thread) as editor:
        editor.write("git_remote_url", "git.example.com/an-organization-with-a-long-name/the-repository")
    assert "…" in (shown := seen("stats", "--by", "repo", columns=80))
    assert "/the-repository " in shown


def test_sub_agents_stand_below_the_total(stores: Stores) -> None:
    thread = spent(stores)
    stores.threads.append(thread, "assistant", "aside", usage=Usage(output_tokens=5), is_sidechain=True)
    *_, total, part = done("stats", "--by", "agent").lines
    assert "45,683" in total
    assert re.split(r"\s{2,}", part)[:4] == ["sub-agents' part", "1", "–", "5"]


def test_a_recorded_cost_has_a_column_of_its_own_and_the_cost_stays_open(stores: Stores) -> None:
    spent(stores, Usage(output_tokens=1, cost_usd=0.0042))
    spent(stores, Usage(output_tokens=1, cost_usd=1234.5))
    heading, *_, total = done("stats").lines
    assert heading.split()[-2:] == ["COST", "RECORDED"]
    assert total.split()[-2:] == ["–", "$1,234.50"]
    told = done("stats", "--json").json["total"]
    assert (told["cost_usd"], told["recorded_cost_usd"], told["recorded_cost_messages"]) == (
        None,
        1234.5042,
        2,
    )


def test_rows_past_the_limit_are_summed_in_one(stores: Stores) -> None:
    for number in range(4):
        spent(stores, Usage(output_tokens=10 + number), model=f"m{number}")
    heading, first, rest, total = done("stats", "--by", "model", "-n", "1").lines
    assert heading.startswith("MODEL")
    assert first.startswith("m3")
    assert re.split(r"\s{2,}", rest)[:4] == ["3 more", "3", "–", "33"]
    assert re.split(r"\s{2,}", total)[:4] == ["total", "4", "–", "46"]
    told = done("stats", "--by", "model", "-n", "1", "--json").json
    assert [row["key"] for row in told["rows"]] == ["m3"]
    assert (told["left_out"]["rows"], told["left_out"]["output_tokens"]) == (3, 33)
    assert len(done("stats", "--by", "model", "--all", "-n", "1").lines) == 6


def test_of_days_the_newest_are_shown_and_stand_last(stores: Stores) -> None:
    dated(stores, *(f"2026-01-0{day}T12:00:00Z" for day in (1, 2, 3)))
    days = [line.split("  ")[0] for line in done("stats", "-n", "2").lines]
    assert days == ["DAY", "1 earlier", "2026-01-02", "2026-01-03", "total"]


def test_the_json_is_the_shape_programs_rely_on(stores: Stores) -> None:
    thread = spent(stores)
    told = done("stats", "--by", "thread", "--json").json
    assert told.keys() == {"by", "scope", "rows", "left_out", "total"}
    assert told["scope"].keys() == SCOPE
    assert told["total"].keys() == {"threads", "sidechain", *SUMS}
    (row,) = told["rows"]
    assert row.keys() == {"key", "thread", "threads", "sidechain", *SUMS}
    assert row["thread"] == {"id": thread, "title": "hello"}
    assert (row["key"], row["sidechain"].keys()) == (thread, SUMS)
    assert [json.loads(line) for line in done("stats", "--by", "thread", "--jsonl").lines] == [row]
    (row,) = done("stats", "--by", "message", "--json").json["rows"]
    assert row["message"].keys() == {"id", "role", "model", "ts", "is_sidechain"}
    assert row["key"] == row["message"]["id"]


def test_a_fork_does_not_double_what_it_copied(stores: Stores) -> None:
    thread = spent(stores)
    before = done("stats", "--by", "thread", "--json").json["rows"]
    fork_thread(stores.threads, thread)
    assert done("stats", "--by", "thread", "--json").json["rows"] == before


def test_a_query_a_span_and_a_folder_narrow_the_sums(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "moth").mkdir()
    monkeypatch.chdir(tmp_path / "moth")
    moth = spent(stores, Usage(output_tokens=3))
    (tmp_path / "kiln").mkdir()
    monkeypatch.chdir(tmp_path / "kiln")
    spent(stores, Usage(output_tokens=50), text="the kiln is cold")

    def output(*arguments: str) -> int | None:
        found: int | None = done("stats", "--json", *arguments).json["total"]["output_tokens"]
        return found

    assert output() == 53
    assert output("moth") == output("repo:moth") == output(moth) == 3
    assert output("-moth") == output("cold") == 50
    assert output("--since", "today") == output("after:1h") == output("role:assistant") == 53
    assert output("--until", "yesterday") is None
    assert output("role:user") is None


def test_a_day_is_the_readers_own_unless_utc_is_asked_for(stores: Stores) -> None:
    dated(stores, "2026-01-01T22:00:00Z")
    shown = {utc: seen("stats", *utc, columns=80, TZ="Asia/Tokyo") for utc in ((), ("--utc",))}
    assert "2026-01-02" in shown[()]
    assert "days in local time" in shown[()]
    assert "2026-01-01" in shown["--utc",]
    assert "days in UTC" in shown["--utc",]


def test_deleted_threads_are_left_out_and_counted_apart(stores: Stores) -> None:
    spent(stores)
    done("delete", spent(stores))
    answer = done("stats")
    assert answer.lines[-1].split()[1] == "1"
    assert "1 deleted thread not counted" in answer.err
    assert done("stats", "--json").json["scope"]["deleted"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--since", "soon"),
        ("--until", "2026-13"),
        ("--by", "moon"),
        ("-n", "0"),
        ("--since", "2027", "--until", "2026"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...]) -> None:
    answer = raddle("stats", "--json", *arguments)
    assert answer.code == 2
    assert answer.error["hint"]


def test_a_query_that_is_read_otherwise_than_it_seems_is_talked_about(stores: Stores) -> None:
    spent(stores)
    assert "note: " in done("stats", "after:banana").err
    assert done("stats", "--json", "after:banana").json["scope"]["notes"]


def test_titles_and_models_move_no_cursor(stores: Stores) -> None:
    spent(stores, text="\x1b[2Jhello", model="o\x1b[31mpus\n")
    for way in ("thread", "model"):
        assert "\x1b" not in done("stats", "--by", way).out
        assert len(done("stats", "--by", way).lines) == 3


@pytest.mark.parametrize("name", ["cost", "tokens", "usage"])
def test_other_names_lead_to_it(name: str) -> None:
    assert "raddle stats" in raddle(name).err
