"""Real OpenCode stores, on machines that have them: all that was said is there, and in reach."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.importing.opencode import OpenCode
from raddle.adapters.agent_homes.opencode_store import open_collection
from raddle.model.threads.message import Message
from tests.builders_opencode_stores import lines_of, members
from tests.reading import Reading, difference, named, read, read_on, same_thread

pytestmark = pytest.mark.samples


@pytest.fixture
def stores(samples: Path, tmp_path: Path) -> list[Path]:
    """Copies: a database is never opened where it lies."""
    folder = shutil.copytree(samples / "opencode", tmp_path / "opencode")
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return [*sorted(folder.rglob("*.db")), *sorted(folder.rglob("storage_*"))]


def sessions(store: Path) -> Iterator[tuple[str, list[bytes]]]:
    collection = open_collection(str(store))
    for member in members(collection):
        source = collection.open(member)
        yield member.session, lines_of(source)
        source.close()


def imported(store: Path) -> list[Reading]:
    return [read(OpenCode(), named(session), lines) for session, lines in sessions(store)]


def parts(store: Path) -> Iterator[dict[str, Any]]:
    """Every part that lies in a store, by another reader than the one that is tried."""
    if store.is_dir():
        for path in (store / "part").rglob("*.json"):
            yield json.loads(path.read_bytes())
    else:
        database = sqlite3.connect(store)
        for (data,) in database.execute("SELECT data FROM part"):
            yield json.loads(data)
        database.close()


def said(part: dict[str, Any]) -> Iterator[str]:
    """Every text, thought, argument and result of a part."""
    if part["type"] in ("text", "reasoning"):
        yield part["text"]
    elif part["type"] == "tool":
        yield part["state"].get("output") or part["state"].get("error") or ""
        yield from (value for value in part["state"]["input"].values() if isinstance(value, str))


def words_of(message: Message) -> str:
    arguments = [
        str(value)
        for call in message.tool_calls
        if isinstance(call.arguments_json, dict)
        for value in call.arguments_json.values()
    ]
    return "\x1f".join([message.content, message.thinking, *arguments])


def test_everything_that_was_said_is_in_some_message(stores: list[Path]) -> None:
    assert stores
    for store in stores:
        words = "\x1e".join(words_of(one) for reading in imported(store) for one in reading.thread.messages)
        missing = [text for part in parts(store) for text in said(part) if text.strip() and text not in words]
        assert missing == [], store.name


def test_everything_is_on_the_way_to_the_tip_and_nothing_is_reported(stores: list[Path]) -> None:
    for store in stores:
        for reading in imported(store):
            assert reading.problems == []
            thread = reading.thread
            assert thread.tree.lost() == []
            main = [message.id for message in thread.messages if not message.is_sidechain]
            tip = thread.tree.tip()
            assert [one.id for one in thread.tree.path_to_root(tip.id if tip else None)] == main


def test_a_real_session_read_in_two_goes_is_the_same(stores: list[Path]) -> None:
    for store in stores:
        for session, lines in sessions(store):
            whole = read(OpenCode(), named(session), lines)
            for cut in range(1, len(lines)):
                grown = read_on(OpenCode(), named(session), lines[:cut], lines[cut:])
                assert same_thread(grown.thread, whole.thread), difference(grown.thread, whole.thread)


def test_usage_is_what_the_session_counts_itself(stores: list[Path]) -> None:
    for store in stores:
        if store.is_dir():
            continue
        database = sqlite3.connect(store)
        query = "SELECT sum(tokens_input), sum(tokens_output + tokens_reasoning), sum(tokens_cache_read) FROM session"
        (counted,) = database.execute(query)
        database.close()
        usages = [one.usage for reading in imported(store) for one in reading.thread.messages if one.usage]
        mine = (
            sum(usage.input_tokens or 0 for usage in usages),
            sum(usage.output_tokens or 0 for usage in usages),
            sum(usage.cache_read_tokens or 0 for usage in usages),
        )
        assert mine == counted
