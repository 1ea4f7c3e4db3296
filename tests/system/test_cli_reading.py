"""`raddle list`, `search` and `show`, as people and programs call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raddle.config import load_config
from raddle.model.threads.codec import decode_file
from raddle.wiring import open_stores
from tests.command_line import done, new, raddle
from tests.file_events import opened

LISTED = {
    *("id title message_count created_at last_activity_at workspace_root git_branch git_remote_url").split(),
    *("provider model source tags is_pinned visibility is_private is_archived sync").split(),
}


def test_a_list_without_threads_says_how_to_get_some() -> None:
    answer = done("list")
    assert answer.out == ""
    assert "raddle import" in answer.err
    assert done("list", "--json").json == []
    assert done("list", "--jsonl").out == ""


def test_a_list_shows_pins_first_and_then_the_newest() -> None:
    old, middle, young = (new(f"{name} thread") for name in ("old", "middle", "young"))
    done("pin", old)
    assert [row["id"] for row in done("list", "--json").json] == [old, young, middle]
    assert [line[0] for line in done("list").lines] == ["★", " ", " "]
    assert [line.rsplit("  ", 1)[1] for line in done("list").lines] == [
        "old thread",
        "young thread",
        "middle thread",
    ]


def test_no_line_for_people_says_that_somebody_else_sees_what_never_left_this_machine() -> None:
    thread_id = new("hello")
    for command in (("list",), ("show", thread_id), ("search", "hello")):
        assert "organi" not in done(*command).out
    (row,) = done("list", "--json").json
    assert (row["visibility"], row["sync"]) == ("organization", {"state": "local"})


def test_the_limit_is_applied_after_the_sort_and_the_rest_is_not_lost() -> None:
    ids = [new(f"thread {number}") for number in range(5)]
    done("pin", ids[0])
    assert [row["id"] for row in done("list", "-n", "2", "--json").json] == [ids[0], ids[4]]
    assert len(done("list", "--all", "-n", "1", "--json").json) == 5


@pytest.mark.parametrize("form", [(), ("--json",), ("--jsonl",)])
def test_a_list_that_was_cut_says_so_whoever_reads_it(form: tuple[str, ...]) -> None:
    for number in range(3):
        new(f"thread {number}")
    assert "these are the first 2: -n 8 or --all shows more" in done("list", "-n", "2", *form).err
    for whole in (("-n", "3"), ("--all", "-n", "1")):
        assert done("list", *whole, *form).err == ""


def test_a_list_is_the_shape_programs_rely_on() -> None:
    thread = new("hello", "--title", "A title")
    (row,) = done("list", "--json").json
    assert row.keys() == LISTED
    assert (row["id"], row["title"], row["message_count"]) == (thread, "A title", 1)
    assert row["sync"] == {"state": "local"}
    assert row["visibility"] == "organization"
    assert [json.loads(line) for line in done("list", "--jsonl").lines] == [row]
    done("private", thread)
    (row,) = done("list", "--json").json
    assert (row["is_private"], row["visibility"], row["sync"]) == (True, "private", {"state": "private"})


def test_a_list_is_narrowed_by_words_and_filters_and_by_what_is_left_out() -> None:
    lock, parser = new("the lock is held"), new("the parser hangs")
    done("tag", lock, "bug")
    assert [row["id"] for row in done("list", "tag:bug", "--json").json] == [lock]
    assert [row["id"] for row in done("list", "-tag:bug", "--json").json] == [parser]
    assert [row["id"] for row in done("list", "held", "--json").json] == [lock]
    assert "no threads fit" in done("list", "nowhere").err


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Threads in folders of their own: folder -> id."""
    made = {}
    for folder, text in (("tide-pool", "the lock is held"), ("moth", "the lock hangs"), ("kiln", "a fire")):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        made[folder] = new(text)
    return made


@pytest.mark.parametrize(
    ("query", "folders"),
    [
        ("moth", ["moth"]),
        ("MOTH", ["moth"]),
        ("tidepool", ["tide-pool"]),
        ("pool lock", ["tide-pool"]),
        ("pool fire", []),
        ("lock", ["moth", "tide-pool"]),
        ("lock -moth", ["tide-pool"]),
        ("-moth", ["kiln", "tide-pool"]),
        ("~ool", ["tide-pool"]),
        ("moth role:user", ["moth"]),
        ("moth role:tool", []),
        ("moth is:pinned", []),
        ("...", []),
        ("", ["kiln", "moth", "tide-pool"]),
    ],
)
def test_a_list_is_narrowed_by_the_folder_it_shows(
    query: str, folders: list[str], rows: dict[str, str]
) -> None:
    found = done("list", "--json", "--", query).json
    assert [row["id"] for row in found] == [rows[folder] for folder in folders]


def test_whatever_a_row_shows_finds_it(rows: dict[str, str]) -> None:
    done("tag", rows["moth"], "bug")
    done("private", rows["moth"])
    done("archive", rows["moth"])
    (line,) = done("list", "--all", "moth").lines
    for word in line.replace("now", "").replace("ago", "").split():
        if not word.isdigit() and word != "–":
            assert rows["moth"] in {row["id"] for row in done("list", "--all", "--json", "--", word).json}, (
                word
            )


def test_a_list_by_a_word_has_its_limit_and_its_order(rows: dict[str, str]) -> None:
    done("pin", rows["tide-pool"])
    assert [row["id"] for row in done("list", "lock", "--json").json] == [rows["tide-pool"], rows["moth"]]
    assert [row["id"] for row in done("list", "lock", "-n", "1", "--json").json] == [rows["tide-pool"]]
    assert [row["id"] for row in done("list", "moth", "-n", "1", "--json").json] == [rows["moth"]]


@pytest.mark.parametrize(
    "query", ["after:banana", "is:weird", "has:foo", "agnet:codex", "...", "repo: nowhere"]
)
@pytest.mark.parametrize("command", ["search", "list"])
def test_a_query_that_is_read_otherwise_than_it_seems_is_talked_about(command: str, query: str) -> None:
    new("hello")
    for options in ([], ["--json"], ["--jsonl"]):
        answer = done(command, *options, query)
        assert "note: " in answer.err
        assert query.split(maxsplit=1)[0] in answer.err
    if command == "search":
        answer = done("search", "--json", query)
        assert answer.json["total_threads"] == 0
        assert any(note in answer.err for note in answer.json["scope"]["notes"])


def test_a_query_of_filters_alone_and_an_empty_one_find_as_before() -> None:
    new("hello")
    for query in ("role:user", "-is:pinned", ""):
        answer = done("search", "--json", "--", query)
        assert (answer.json["total_threads"], answer.err) == (1, "")


def test_archived_threads_leave_the_list_but_not_the_search() -> None:
    thread = new("the lock is held")
    done("archive", thread)
    assert done("list", "--json").json == []
    assert [row["id"] for row in done("list", "--all", "--json").json] == [thread]
    assert [row["id"] for row in done("list", "is:archived", "--json").json] == [thread]
    assert done("search", "held", "--json").json["total_threads"] == 1
    done("archive", thread, "--off")
    assert len(done("list", "--json").json) == 1


def test_short_ids_name_one_thread_each() -> None:
    ids = [new(f"thread {number}") for number in range(3)]
    shown = [line.split("  ")[0] for line in done("list").lines]
    assert [done("show", short, "--json").json["id"] for short in shown] == ids[::-1]
    gone = new("another")
    done("delete", gone)
    shown = [line.split("  ")[0] for line in done("list").lines]
    assert [done("show", short, "--json").json["id"] for short in shown] == ids[::-1]


def test_a_list_opens_no_transcript() -> None:
    ids = [new(f"thread {number}") for number in range(3)]
    done("list")  # takes in what was just written
    folder = load_config().data_dir / "threads"
    for thread in ids:
        (folder / f"{thread}.json").unlink()
    with opened.listening():
        assert len(done("list", "--json").json) == 3
        assert len(done("list").lines) == 3
    assert [path for path in opened.paths if "/threads/" in path] == []


def test_what_was_just_said_is_found() -> None:
    thread = new("A hello from tidepool", "--title", "Greetings")
    answer = done("search", "tidepool", "--json").json
    assert answer.keys() == {"scope", "total_threads", "hits", "cursor"}
    assert answer["total_threads"] == 1
    assert answer["scope"]["store"] == "local"
    assert answer["scope"]["threads"] == 1
    (hit,) = answer["hits"]
    assert hit.keys() == {
        *("thread message_id role field matches snippet marks score").split(),
    }
    assert hit["thread"].keys() == LISTED
    assert hit["thread"]["id"] == thread
    assert (hit["role"], hit["field"], hit["matches"]) == ("user", "user", 1)
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["tidepool"]
    reply = done("reply", thread, "a kelp forest", "--role", "assistant").out.strip()
    (hit,) = done("search", "kelp", "--json").json["hits"]
    assert (hit["message_id"], hit["role"]) == (reply, "assistant")
    assert [json.loads(line) for line in done("search", "kelp", "--jsonl").lines] == [hit]


def test_a_search_that_finds_nothing_says_where_it_looked() -> None:
    new("hello")
    answer = done("search", "nowhere")
    assert answer.out == ""
    assert "0 threads found; looked at 1 thread of this machine" in answer.err


@pytest.mark.parametrize(
    "query",
    [
        ("lock", "-parser"),
        ("-parser", "lock"),
        ("-parser", "-n", "3", "lock"),
        ("lock", "-parser", "-n3"),
        ("lock", "--", "-parser"),
        ("--limit=3", "lock", "-parser"),
    ],
)
def test_a_word_with_a_dash_leaves_out_and_is_no_option(query: tuple[str, ...]) -> None:
    wanted = new("the lock is held")
    new("the lock of the parser")
    assert [hit["thread"]["id"] for hit in done("search", "--json", *query).json["hits"]] == [wanted]


def test_a_query_may_hold_what_looks_like_an_option() -> None:
    new("run it with --verbose please")
    assert done("search", "--json", "--", "--verbose").json["total_threads"] == 1
    answer = raddle("search", "--verbose")
    assert answer.code == 2
    assert "--" in answer.err


def test_a_search_goes_on_where_it_ended() -> None:
    for number in range(5):
        new(f"kelp {number}")
    first = done("search", "kelp", "-n", "3", "--json").json
    rest = done("search", "kelp", "-n", "3", "--cursor", first["cursor"], "--json").json
    found = [hit["thread"]["id"] for hit in (*first["hits"], *rest["hits"])]
    assert (len(found), len(set(found)), rest["cursor"]) == (5, 5, "")
    assert raddle("search", "kelp", "--cursor", "nonsense").code == 2


def test_a_hit_for_people_shows_where_it_is() -> None:
    thread = new("the lock is held", "--title", "Held up")
    done("reply", thread, "who holds the lock?", "--role", "assistant")
    short, title, *_ = done("search", "lock").lines[0].split("  ")
    assert thread.startswith(short)
    assert title == "Held up"
    assert "2 hits" in done("search", "lock").lines[0]
    assert done("search", "lock").lines[1].startswith("    user ")
    assert "title, tags or git" in done("search", "up").lines[1]


def test_show_prints_the_thread_files_own_json_with_the_journal_folded_in() -> None:
    thread = new("hello")
    done("reply", thread, "from the journal")
    done("rename", thread, "A title")
    shown = done("show", thread, "--json")
    decoded = decode_file(shown.data).thread()
    assert [message.content for message in decoded.tree] == ["hello", "from the journal"]
    assert shown.json["metadata"]["title"] == "A title"
    with open_stores() as stores:
        stores.threads.fold(thread)
        file = stores.paths.thread_file(thread)
    assert file.read_bytes() == shown.data


def test_show_of_a_branch_prints_the_path_as_an_array_of_messages() -> None:
    thread = new("ask")
    root = done("show", thread, "--json").json["conversation"]["messages"][0]["id"]
    one = done("reply", thread, "first answer", "--role", "assistant").out.strip()
    other = done("reply", thread, "second answer", "--parent", root, "--role", "assistant").out.strip()
    for leaf, said in ((one, "first answer"), (other[:20], "second answer"), (other[-8:], "second answer")):
        path = done("show", thread, "--json", "--branch", leaf).json
        assert [message["content"] for message in path] == ["ask", said]
    assert "second answer" in done("show", thread).out
    assert "first answer" not in done("show", thread).out
    assert "first answer" in done("show", thread, "--branch", one).out
    assert "1 other branch" in done("show", thread).out
    assert {"first answer", "second answer"} <= {
        line.split("  ")[-1] for line in done("show", thread, "--tree").lines
    }


def test_a_thread_is_named_by_any_start_of_its_id() -> None:
    thread = new("hello")
    for spelled in (thread, thread.upper(), thread[2:], thread[:12], thread[2:12], f" {thread} "):
        assert done("show", spelled, "--json").json["id"] == thread


def test_an_ambiguous_start_lists_the_candidates() -> None:
    one, other = new("one"), new("other")
    answer = raddle("show", one[:8])
    assert answer.code == 2
    assert one in answer.err
    assert other in answer.err
    assert raddle("show", one[:8], "--json").error["code"] == "ambiguous"


def test_an_ambiguous_message_lists_the_candidates() -> None:
    thread = new("one")
    one, other = (message_id(thread, -1), done("reply", thread, "other").out.strip())
    answer = raddle("show", thread, "--branch", one[:4])
    assert answer.code == 2
    assert one in answer.err
    assert other in answer.err


def message_id(thread: str, at: int) -> str:
    """The id of a message by its place in the thread."""
    found: str = done("show", thread, "--json").json["conversation"]["messages"][at]["id"]
    return found


def test_a_deleted_thread_is_listed_apart_and_can_still_be_read() -> None:
    kept, gone = new("kept"), new("gone")
    done("delete", gone)
    assert [row["id"] for row in done("list", "--json").json] == [kept]
    assert [row["id"] for row in done("list", "--deleted", "--json").json] == [gone]
    assert "deleted" in done("show", gone).lines[2]
    done("restore", gone)
    assert done("list", "--deleted", "--json").json == []
    assert len(done("list", "--json").json) == 2


def test_a_broken_file_does_not_hide_the_deleted_threads(home: Path) -> None:
    broken, gone = new("broken"), new("gone")
    done("list")
    done("delete", gone)
    folder = load_config().data_dir / "threads"
    done("doctor", "--reindex")
    (folder / f"{broken}.json").write_bytes(b"{")
    assert raddle("doctor", "--reindex", "--fix").code == 5
    assert [row["id"] for row in done("list", "--deleted", "--json").json] == [gone]


def test_a_thread_from_a_newer_raddle_is_named_and_the_others_are_listed() -> None:
    newer, kept = new("newer"), new("kept")
    file = load_config().data_dir / "threads" / f"{newer}.json"
    document = json.loads(file.read_bytes())
    file.write_text(json.dumps(document | {"format": 99}))
    assert raddle("show", newer).code == 5
    assert done("show", kept, "--json").json["id"] == kept
    assert kept in {row["id"] for row in done("list", "--json").json}


@pytest.mark.parametrize(("enough", "is_told"), [(1, True), (2, False)])
def test_an_index_that_is_gone_is_built_again_and_says_so_where_it_takes_a_while(
    enough: int, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = new("hello")
    done("list")
    for file in load_config().cache_dir.iterdir():
        file.unlink()
    monkeypatch.setattr("raddle.wiring._MANY", enough)
    answer = done("list", "--json")
    assert [row["id"] for row in answer.json] == [thread]
    assert ("building it from 1 threads" in answer.err) is is_told
    assert done("list").err == ""
