"""`raddle memory` and `raddle search --in`, as people and programs type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import done, raddle


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store, which the folder that is worked in leads to."""
    root = tmp_path / "store"
    done("store", "init", "lantern", "--store", str(root))
    monkeypatch.chdir(root)
    return root


def test_what_a_list_prints_can_be_typed_back(store: Path) -> None:
    done("memory", "set", "team/a b/Grüße.md", "hello", "--tag", "x", "--description", "a line")
    name = done("memory", "list").out.split("  ")[0]
    assert name == "team/a b/Grüße.md"
    assert done("memory", "get", name).out == "hello\n"
    assert done("memory", "list", "team/a", "--json").json == done("memory", "list", "team", "--json").json
    (line,) = done("memory", "list", "--json").json
    assert line.keys() == {"namespace", "key", "description", "tags", "updated", "size"}
    assert (line["description"], line["tags"]) == ("a line", ["x"])


def test_text_comes_from_stdin_and_goes_out_as_it_is(store: Path) -> None:
    done("memory", "set", "team/a", "-", stdin=b"# Title\r\n\r\nbody\r\n")
    assert done("memory", "get", "team/a").data == b"# Title\r\n\r\nbody\r\n"
    read = done("memory", "get", "team/a", "--json").json
    assert (read["text"], read["description"]) == ("# Title\r\n\r\nbody\r\n", "Title")
    assert done("memory", "get", "team/a", "--raw").data == (store / "memory/team/a").read_bytes()
    answer = raddle("memory", "set", "team/a")
    assert (answer.code, "there is no text" in answer.err) == (2, True)


def test_a_secret_is_warned_of_and_written(store: Path) -> None:
    answer = done("memory", "set", "team/a", "AKIAABCDEFGHIJKLMNOP")
    assert "warning: the memory seems to hold an AWS access key" in answer.err
    assert done("memory", "get", "team/a").out == "AKIAABCDEFGHIJKLMNOP\n"


def test_every_version_that_is_written_stays_in_the_history(store: Path) -> None:
    for text in ("one", "two"):
        done("memory", "set", "team/a", text)
    done("memory", "delete", "team/a")
    gone, two, one = done("memory", "history", "team/a", "--json").json
    assert gone["size"] is None
    assert done("memory", "get", "team/a", "--at", two["commit"]).out == "two\n"
    assert done("memory", "get", "team/a", "--at", one["commit"]).out == "one\n"


def test_the_history_begins_with_what_is_not_committed(store: Path) -> None:
    done("memory", "set", "team/a", "one")
    (store / "memory/team/a").write_text("two\n")
    newest, oldest = done("memory", "history", "team/a", "--json").json
    assert (newest["commit"], newest["at"]) == (None, "")
    assert done("memory", "get", "team/a", "--at", oldest["commit"][:8]).out == "one\n"
    assert done("memory", "history", "team/a").lines[0].startswith("not committed")
    done("memory", "delete", "team/a")
    assert done("memory", "history", "team/a", "--json").json[0]["size"] is None
    assert raddle("memory", "history", "team/nothing").code == 3


def test_a_conflict_is_listed_and_settled(store: Path) -> None:
    other = store / "memory/team/a.conflict-bbbbbbbb-01M8PZKM3KMAB0SYRHJ485PAMY"
    done("memory", "set", "team/a", "ours")
    other.write_text("theirs\n")
    assert "1 other version to be settled" in done("memory", "list").err
    assert "1 other version" in done("memory", "get", "team/a").err
    (waiting,) = done("memory", "resolve", "--json").json
    assert (waiting["of"], waiting["name"]) == ("memory/team/a", other.name)
    assert raddle("memory", "resolve", "team/a").code == 2
    assert (
        done("memory", "resolve", "team/a", "--take", waiting["name"]).out
        == "team/a: kept that of bbbbbbbb\n"
    )
    assert done("memory", "get", "team/a").out == "theirs\n"
    assert "nothing waits" in done("memory", "resolve").err


def test_a_folder_is_brought_in_once(store: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n")
    (notes / "b?.md").write_text("# B\n")
    (notes / "c.png").write_bytes(b"\0")
    assert done("memory", "import", str(notes), "--dry-run").lines == ["imported/a.md", "imported/b-.md"]
    assert done("memory", "list").out == ""
    answer = done("memory", "import", str(notes), "--namespace", "ada")
    assert answer.lines == ["ada/a.md", "ada/b-.md"]
    assert "2 new, 1 left out" in answer.err
    assert "b?.md is b-.md here" in answer.err
    assert done("memory", "import", str(notes), "--namespace", "ada").out == ""


def test_one_search_finds_threads_and_memory(store: Path) -> None:
    done("new", "the kelp thread")
    done("memory", "set", "team/kelp", "the kelp memory", "--tag", "sea")
    run = done("run", "start").out.split()[0]
    done("entry", "add", "note", "the kelp entry", "--run", run)
    threads = done("search", "kelp", "--json").json
    both = done("search", "kelp", "--in", "all", "--json").json
    assert both["memory"].pop("total") == 2
    assert [hit["kind"] for hit in both.pop("memory")["hits"]] == ["memory", "entry"]
    assert [hit["thread"]["id"] for hit in both["hits"]] == [hit["thread"]["id"] for hit in threads["hits"]]
    only = done("search", "kelp", "tag:sea", "--in", "memory", "--json").json
    assert [hit["name"] for hit in only["memory"]["hits"]] == ["team/kelp"]
    assert done("memory", "search", "kelp", "--memories", "--json").json["total"] == 1
    shown = done("search", "kelp", "--in", "all").out
    assert shown.index("team/kelp") < shown.index("in threads") < shown.index("the kelp thread")
    lines = [json.loads(line) for line in done("search", "kelp", "--in", "all", "--jsonl").lines]
    assert ["memory" if "memory" in line else "thread" for line in lines] == ["memory", "memory", "thread"]
    both_forms = done("search", "kelp", "--in", "all", "--json", "--jsonl").lines
    assert [json.loads(line) for line in both_forms] == lines
    assert "asks about threads" in done("search", "kelp role:user", "--in", "memory").err
    assert "after: takes a time" in done("memory", "search", "kelp after:zz").err


def test_a_search_where_there_is_no_memory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done("new", "the kelp thread")
    answer = done("search", "kelp", "--in", "all")
    assert "the kelp thread" in answer.out
    assert "no project's memory" in answer.err
    assert raddle("search", "kelp", "--in", "memory").code == 3
    monkeypatch.setenv("RADDLE_STORE", str(tmp_path / "nothing"))
    assert "RADDLE_STORE names" in done("search", "kelp", "--in", "all").err
    monkeypatch.delenv("RADDLE_STORE")
    assert raddle("search", "kelp", "--in", "all", "--store", str(tmp_path / "nothing")).code == 3
    assert raddle("search", "kelp", "--in", "memory", "--cursor", "x").code == 2
    assert raddle("search", "kelp", "--store", str(tmp_path)).code == 2
