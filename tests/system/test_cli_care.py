"""`raddle doctor` and `raddle config`: what is wrong and put right, and what raddle is set to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from raddle.config import load_config
from tests.command_line import done, new, raddle
from tests.modes import bound_by_modes


def files(thread: str) -> dict[str, Path]:
    """The files of a thread, by suffix."""
    return {path.suffix: path for path in (load_config().data_dir / "threads").glob(f"{thread}.*")}


def index() -> Path:
    """The file of the search index."""
    (path,) = load_config().cache_dir.glob("search-*.sqlite3")
    return path


def grow_old(path: Path) -> None:
    """As if nobody had touched it for a while."""
    os.utime(path, (1_000_000_000, 1_000_000_000))


def test_a_healthy_store_is_told_to_be_well() -> None:
    assert done("doctor").out == "all is well: 0 threads\n"
    new("hello")
    assert done("doctor").out == "all is well: 1 thread\n"
    assert done("doctor", "--json").json == {"findings": [], "reindexed": None}
    assert done("doctor", "--fix").out == "all is well: 1 thread\n"


def test_a_torn_journal_is_found_and_put_right() -> None:
    thread = new("hello")
    done("reply", thread, "more")
    journal = files(thread)[".journal"]
    with journal.open("ab") as file:
        file.write(b'{"half a li')
    answer = raddle("doctor")
    assert answer.code == 5
    assert "was never whole" in answer.out
    assert "--fix" in answer.err
    assert raddle("doctor", "--json").json["findings"][0]["done"] == ""
    mended = done("doctor", "--fix", "--json").json["findings"]
    assert [finding["done"] for finding in mended] == ["put right"]
    assert done("doctor").out == "all is well: 1 thread\n"
    assert len(done("show", thread, "--json").json["conversation"]["messages"]) == 2


def test_a_lost_message_is_named_where_it_is_read_and_gets_a_root() -> None:
    thread = new("hello")
    file = files(thread)[".json"]
    document = json.loads(file.read_bytes())
    message = document["conversation"]["messages"][0]
    document["conversation"]["messages"].append(
        {**message, "id": "adrift", "parent_id": "nobody", "content": "adrift"}
    )
    file.write_text(json.dumps(document))
    assert "Lost and found: 1 message" in done("show", thread).out
    assert raddle("doctor").code == 5
    assert done("doctor", "--fix").code == 0
    assert "Lost and found" not in done("show", thread).out
    assert "adrift" in done("show", thread, "--tree").out


def test_a_damaged_file_is_restored_and_whoever_reads_it_is_told() -> None:
    thread = new("hello")
    done("doctor", "--fix")
    done("reply", thread, "more")
    file = files(thread)[".json"]
    file.write_bytes(b"\0" * 64)
    grow_old(file)
    answer = done("show", thread)
    assert "more" in answer.out
    assert answer.err.startswith("note: ~/.local/share/raddle/threads/")
    assert "restored" in answer.err
    assert done("show", thread).err == ""
    for words in (("doctor",), ("doctor", "--fix")):
        told = done(*words).out
        assert "was set aside" in told
        assert "can be read" in told


def test_a_thread_of_which_nothing_is_left_is_named_with_what_to_do_and_can_be_purged() -> None:
    thread = new("marimba")
    done("search", "marimba")
    for suffix, path in files(thread).items():
        if suffix == ".json":
            path.write_bytes(b"\0" * 64)
            grow_old(path)
        else:
            path.unlink()
    assert raddle("show", thread).code == 5
    for words in (("doctor", "--fix"), ("doctor",)):
        answer = raddle(*words)
        assert answer.code == 5
        assert f"raddle purge {thread}" in answer.out
    assert done("search", "marimba", "--json").json["hits"] == []
    assert done("purge", thread, "-y", "--json").json["purged"]
    assert files(thread) == {}
    assert done("doctor").out == "all is well: 0 threads\n"
    assert raddle("purge", thread, "-y").code == 3


def test_what_a_search_still_finds_of_a_file_that_is_gone_is_found_out_and_mended() -> None:
    thread = new("marimba")
    done("search", "marimba")
    for path in files(thread).values():
        path.unlink()
    answer = raddle("doctor")
    assert (answer.code, "a search still finds" in answer.out) == (5, True)
    assert "taken out" in done("doctor", "--fix").out
    assert done("search", "marimba", "--json").json["hits"] == []
    assert done("doctor").out == "all is well: 0 threads\n"


def test_a_thread_that_no_search_finds_is_found_out_and_mended() -> None:
    done("list")
    thread = new("marimba")
    (load_config().data_dir / "dirty").unlink()
    answer = raddle("doctor")
    assert (answer.code, thread in answer.out) == (5, True)
    assert "put in" in done("doctor", "--fix").out
    assert len(done("search", "marimba", "--json").json["hits"]) == 1


def test_where_nothing_may_be_written_it_says_so_and_does_not_claim_to_have_mended() -> None:
    thread = new("hello")
    done("reply", thread, "more")
    done("list")
    files(thread)[".json"].unlink()
    data = load_config().data_dir
    modes = {path: path.stat().st_mode for path in (data, *data.rglob("*"))}

    def look() -> None:
        answer = raddle("doctor", "--fix")
        assert answer.code == 6, answer
        assert "put right)" not in answer.out
        assert "could not be put right" in answer.out
        assert "permission denied" in answer.err
        told = raddle("doctor", "--fix", "--json")
        assert told.code == 6
        assert all(finding["failed"] and not finding["done"] for finding in told.json["findings"])

    for path in modes:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        bound_by_modes(look)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert done("doctor", "--fix").code == 0


def test_a_damaged_index_is_built_anew() -> None:
    thread = new("hello")
    done("list")
    index().write_bytes(b"\0" * 4096)
    assert [row["id"] for row in done("list", "--json").json] == [thread]
    assert done("doctor").code == 0
    assert done("doctor", "--reindex", "--json").json["reindexed"] == 1
    assert "built anew: 1 thread" in done("doctor", "--reindex").out


def test_an_index_that_lost_a_thread_is_found_out_and_mended() -> None:
    import sqlite3

    thread = new("hello")
    done("list")
    with sqlite3.connect(index()) as sql:
        sql.execute("UPDATE meta SET value = 'a crash' WHERE key = 'rebuild'")
        sql.execute("DELETE FROM threads")
    assert done("doctor", "--fix").code == 0
    assert [row["id"] for row in done("list", "--json").json] == [thread]


def test_what_was_edited_by_hand_is_no_damage_of_the_index() -> None:
    thread = new("hello")
    done("doctor", "--fix")  # what the journal holds is in the file that a person edits
    done("list")
    path = files(thread)[".json"]
    path.write_text(path.read_text().replace("hello", "good evening"))
    grow_old(path)
    told = raddle("doctor").out
    assert ("written by another program" in told, "search index" in told) == (True, False)
    assert done("search", "evening", "--json").json["hits"]


def test_every_setting_is_shown_with_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = load_config().config_dir
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[author]\nname = "Ada"\nzzz = 1\n')
    monkeypatch.setenv("RADDLE_OFFLINE", "1")
    monkeypatch.setenv("RADDLE_TOKEN", "hush-hush")
    monkeypatch.setenv("RADDLE_DATABASE_URL", "postgresql://me:hush-hush@db/raddle")
    answer = done("config", "show", "--json")
    shown = {row["name"]: row for row in answer.json}
    assert all(row.keys() == {"name", "value", "source", "where"} for row in answer.json)
    assert shown["author.name"]["value"] == "Ada"
    assert shown["author.name"]["source"] == "file"
    assert shown["author.name"]["where"] == str(folder / "config.toml")
    assert (shown["offline"]["value"], shown["offline"]["where"]) == (True, "RADDLE_OFFLINE")
    assert (shown["token"]["value"], shown["server"]["source"]) == ("set", "default")
    assert "author.zzz" in answer.err
    for words in (["config"], ["config", "show"]):
        text = done(*words)
        assert "Ada" in text.out
        assert "~/.config/raddle/config.toml" in text.out
        assert "hush-hush" not in text.out + text.err + answer.out + answer.err


def test_settings_can_be_read_where_nothing_may_be_written(home: Path) -> None:
    assert done("config").code == 0
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("words", ["list", "search x", "config"])
def test_looking_loads_nothing_that_writes_or_reads_threads(words: str) -> None:
    done("list")
    code = "import sys; from raddle.apps.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run(
        [sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=True
    )
    loaded = set(ran.stderr.splitlines()[-1].split())
    heavy = {"thread_files", "import_ledger", "doctor", "journal"}
    assert loaded & {f"raddle.adapters.local_store.{name}" for name in heavy} == set()
    assert (
        loaded & {"subprocess", "rich", "asyncio", "multiprocessing", "http.client", "raddle.wiring.care"}
        == set()
    )
