"""Search as programs use it: streams, pages, a word that is still being typed, and what an answer says of itself."""

from __future__ import annotations

import json
from typing import Any

from raddle.adapters.blobs.directory import BlobDirectory
from raddle.config import load_config
from raddle.model.threads.message import Attachment
from raddle.wiring import open_stores
from tests.command_line import Answer, done, raddle


def new(text: str, *options: str) -> str:
    return done("new", *options, "--", text).out.strip()


def hits(answer: Answer) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.lines]


def told(answer: Answer) -> dict[str, Any]:
    """What a stream says of itself: the last line on stderr."""
    last: dict[str, Any] = json.loads(answer.err.splitlines()[-1])
    return last


def test_a_stream_is_hits_alone_and_says_on_stderr_what_it_looked_at() -> None:
    for number in range(5):
        new(f"kelp {number}")
    whole = done("search", "kelp", "--json").json
    stream = done("search", "kelp", "--jsonl")
    assert [hit["message_id"] for hit in hits(stream)] == [hit["message_id"] for hit in whole["hits"]]
    assert hits(stream)[0].keys() == whole["hits"][0].keys()
    del whole["hits"]
    assert told(stream) == whole
    assert told(done("search", "nowhere", "--jsonl"))["scope"]["threads"] == 5


def test_a_stream_of_many_is_made_page_by_page_and_goes_on_where_it_ended() -> None:
    with open_stores(load_config()) as stores:
        for number in range(130):
            with stores.threads.create() as editor:
                editor.append("user", f"kelp {number}")
    first = done("search", "kelp", "--jsonl", "-n", "110")
    rest = done("search", "kelp", "--jsonl", "-n", "1000", "--cursor", told(first)["cursor"])
    ids = [hit["thread"]["id"] for hit in (*hits(first), *hits(rest))]
    assert (len(hits(first)), len(ids), len(set(ids))) == (110, 130, 130)
    assert told(rest)["cursor"] == ""


def test_the_word_that_is_being_typed_is_found_by_its_beginning() -> None:
    thread = new("the authority on lock files")
    assert done("search", "lock", "auth", "--json").json["total_threads"] == 0
    answer = done("search", "lock", "auth", "--as-you-type", "--json").json
    assert [hit["thread"]["id"] for hit in answer["hits"]] == [thread]
    assert done("search", "auth", "lock ", "--as-you-type", "--json").json["total_threads"] == 0
    assert done("search", "--as-you-type", "", "--json").json["total_threads"] == 1


def test_a_page_of_a_word_that_was_being_typed_belongs_to_no_other_query() -> None:
    for number in range(3):
        new(f"kelp kelpie {number}")
    cursor = done("search", "kelp", "--as-you-type", "-n", "1", "--json").json["cursor"]
    again = done("search", "kelp", "--as-you-type", "-n", "5", "--cursor", cursor, "--json").json
    assert len(again["hits"]) == 2
    assert "cursor" in _refused("search", "kelp", "--cursor", cursor, "--json")


def _refused(*arguments: str) -> str:
    answer = raddle(*arguments)
    assert answer.code == 2
    return answer.error["message"]


def test_an_answer_says_that_a_long_text_is_searched_in_part() -> None:
    with open_stores(load_config()) as stores:
        whole = BlobDirectory(stores.paths.blobs_dir).put(b"a long kelp forest")
        body = Attachment(sha256=whole, media_type="text/plain", size=18, is_body=True)
        with stores.threads.create() as editor:
            editor.append("user", "a long … forest", attachments=(body,))
            editor.tag("wood")
        thread = editor.thread.id
    new("a short one")
    (note,) = done("search", "forest", "--json").json["scope"]["notes"]
    assert note == "1 text is searched in its first and last part only, being longer than 1 MiB"
    assert note in done("search", "forest").err
    assert done("search", "short", "-tag:wood", "--json").json["scope"]["notes"] == []
    assert done("search", "role:user", "--json").json["scope"]["notes"] == [], "no word was asked for"
    done("undo", thread)
    assert done("search", "forest", "--json").json["scope"]["notes"] == []
