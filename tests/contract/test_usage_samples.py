"""Usage of real sessions, on machines that have them: the sums are those of a straight count over the raw records.

An agent's sessions are tried as soon as raddle can import them: its count stands in `COUNTS`.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from raddle.model.threads.usage import WAYS
from raddle.wiring.usage import usage_of
from tests.builders_import import Machine

pytestmark = pytest.mark.samples

Plain = dict[str, Any]


class Count(NamedTuple):
    """Messages that say what they used, and what they used; input is without what came from a cache."""

    messages: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


def summed(parts: list[tuple[int, int, int, int]]) -> Count:
    """(input, output, cache read, cache write) of each message, together."""
    given, out, read, written = (sum(part[at] for part in parts) for at in range(4))
    return Count(len(parts), given, out, read, written)


def documents(folder: Path) -> Iterator[tuple[str, list[Plain]]]:
    """(name, objects) of every JSON file, and of every file of JSON lines."""
    for path in sorted([*folder.rglob("*.json"), *folder.rglob("*.jsonl")]):
        data = path.read_bytes()
        texts = data.split(b"\n") if path.suffix == ".jsonl" else [data]
        yield path.name, [value for text in texts if isinstance(value := parsed(text), dict)]


def parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None


def count_claude_code(folder: Path) -> Count:
    """Each API message once, over all files of lines, by the record of it with the greatest output."""
    most: dict[str, Plain] = {}
    for name, records in documents(folder):
        for number, record in enumerate(records if name.endswith(".jsonl") else ()):
            said: Plain = record.get("message") or {}
            is_answer = record.get("type") == "assistant" and said.get("model") != "<synthetic>"
            if is_answer and said.get("usage"):
                api_id = said.get("id") or record.get("uuid") or f"{name}:{number}"
                known = most.get(api_id)
                if known is None or said["usage"]["output_tokens"] > known["output_tokens"]:
                    most[api_id] = said["usage"]
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return summed([tuple(used.get(name) or 0 for name in names) for used in most.values()])  # type: ignore[misc]


def count_codex(folder: Path) -> Count:
    """Each response once a session: by its own record, in older files by the session's total after it."""
    by_record: dict[str, dict[Any, Plain]] = {}
    by_total: dict[str, dict[Any, Plain]] = {}
    for name, records in documents(folder):
        session = next(
            (one["payload"].get("id") for one in records if one.get("type") == "session_meta"), name
        )
        for record in records:
            told: Plain = record.get("payload") or {}
            if record.get("type") == "token_usage_record":
                by_record.setdefault(session, {})[told["response_id"]] = told["usage"]
            if record.get("type") == "event_msg" and told.get("type") == "token_count" and told.get("info"):
                last, total = told["info"]["last_token_usage"], told["info"]["total_token_usage"]
                if last["input_tokens"] or last["output_tokens"]:
                    place = total["input_tokens"], total["output_tokens"]
                    by_total.setdefault(session, {})[place] = last
    parts = []
    for used in [used for held in {**by_total, **by_record}.values() for used in held.values()]:
        read, written = used["cached_input_tokens"], used.get("cache_write_input_tokens") or 0
        parts.append((used["input_tokens"] - read - written, used["output_tokens"], read, written))
    return summed(parts)


def count_gemini_cli(folder: Path) -> Count:
    """Each answer once, as it was written last in its session; thoughts are output.

    An id names one answer wherever it stands, as in every importer. Real ids are UUIDs; two of these sessions are
    made up and both have an answer `m2`, so that the one with the greater output is all that counts of the two.
    """
    last: dict[tuple[str, str], Plain] = {}
    for _, records in documents(folder):
        session = next((one["sessionId"] for one in records if "sessionId" in one), "")
        for record in records:
            replaced = (record.get("$set") or {}).get("messages") or []
            for said in [record, *(record.get("messages") or []), *replaced]:
                if said.get("type") == "gemini" and any((said.get("tokens") or {}).values()):
                    last[said["id"], session] = said["tokens"]
    once: dict[str, Plain] = {}
    for (answer, _), used in last.items():
        if answer not in once or used["output"] > once[answer]["output"]:
            once[answer] = used
    return summed(
        [
            (
                used["input"] - used["cached"] + used["tool"],
                used["output"] + used["thoughts"],
                used["cached"],
                0,
            )
            for used in once.values()
        ]
    )


def count_opencode(folder: Path) -> Count:
    """Each message once, whichever of databases, exports and files of messages hold it."""
    found: dict[str, Plain] = {}
    for path in sorted(folder.rglob("*.db")):
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as sql:
            found |= {name: json.loads(data) for name, data in sql.execute("SELECT id, data FROM message")}
    for _, records in documents(folder):
        for record in records:
            exported = [one["info"] for one in record.get("messages") or [] if isinstance(one, dict)]
            found |= {one["id"]: one for one in [record, *exported] if one.get("role") == "assistant"}
    parts = []
    for used in [one["tokens"] for one in found.values() if one.get("tokens")]:
        cache: Plain = used.get("cache") or {}
        out = used["output"] + (used.get("reasoning") or 0 if "total" in used else 0)
        part = (used["input"], out, cache.get("read") or 0, cache.get("write") or 0)
        parts += [part] if any(part) else []
    return summed(parts)


COUNTS: dict[str, tuple[str, Callable[[Path], Count]]] = {
    "claude-code": ("claude-code", count_claude_code),
    "codex": ("codex", count_codex),
    "gemini-cli": ("gemini", count_gemini_cli),
    "opencode": ("opencode", count_opencode),
}
"""Agent -> the folder of its sessions, and the straight count over it."""


def bring_in(machine: Machine, folder: Path) -> None:
    """Import the folder; OpenCode's from where OpenCode keeps it, for its parts are known by their names."""
    if folder.name != "opencode":
        machine.bring_in(str(folder))
        return
    home = machine.home / ".local/share/opencode"
    for file in [path for path in folder.rglob("storage_*/**/*") if path.is_file()]:
        below = file.relative_to(next(above for above in file.parents if above.name.startswith("storage_")))
        (home / "storage" / below).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, home / "storage" / below)
    (database,) = folder.rglob("*.db")
    shutil.copyfile(database, home / "opencode.db")
    machine.bring_in()


@pytest.mark.parametrize("agent", COUNTS)
def test_the_sums_are_those_of_a_straight_count_over_the_records(
    agent: str, samples: Path, tmp_path: Path
) -> None:
    folder, count = COUNTS[agent]
    machine = Machine(tmp_path)
    bring_in(machine, samples / folder)
    expected = count(samples / folder)
    assert expected.messages > 0
    with machine.stores() as stores:
        for way in WAYS:
            found = usage_of(stores, by=way).tally
            rows = [[getattr(row.tokens, name) or 0 for name in Count._fields] for row in found.rows]
            total = Count(*[getattr(found.total.tokens, name) or 0 for name in Count._fields])
            assert (way, total) == (way, expected)
            assert [sum(column) for column in zip(*rows, strict=True)] == list(expected)
