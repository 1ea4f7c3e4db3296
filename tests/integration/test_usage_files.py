"""What is read of usage from the files is what the threads say, however the files lie there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.local_store.usage_files import usage_reader
from raddle.model.errors import BrokenFormat, NotFound
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.message import Usage
from raddle.model.threads.thread import Thread
from raddle.model.threads.tree import TWIN_OF
from raddle.model.threads.usage import Response, response_of
from tests.builders import THREAD_ID, a_line, a_message, a_thread
from tests.builders_store import a_store, files_in, paths_in, plain_of
from tests.property.strategies import rich_threads

USED = Usage(input_tokens=4, output_tokens=31, cache_read_tokens=14_000)


@pytest.fixture
def store(tmp_path: Path) -> ThreadFiles:
    return a_store(tmp_path)


@pytest.fixture
def thread_id(store: ThreadFiles) -> str:
    """A stored thread: a question, two answers that say what they used."""
    turns = a_line("why?", "so", "and?", "so too")
    answered = [
        msgspec.structs.replace(turn, usage=USED, model="opus") if turn.role == "assistant" else turn
        for turn in turns
    ]
    store.import_many([(THREAD_ID, encode_thread(a_thread(*answered)))])
    return THREAD_ID


class Asked(Exception):
    """The whole thread was loaded."""


def straight(folder: Path, thread_id: str) -> list[Response]:
    """What it says without a look at the whole thread; `Asked` where that was needed."""

    def load(_: str) -> Thread:
        raise Asked

    return usage_reader(paths_in(folder), load)(thread_id)


def read(folder: Path, store: ThreadFiles, thread_id: str) -> list[Response]:
    return usage_reader(paths_in(folder), store.load)(thread_id)


def whole(store: ThreadFiles, thread_id: str) -> list[Response]:
    """What the loaded thread says."""
    tree = store.load(thread_id).tree
    made = [response_of(message, is_removed=tree.is_removed(message.id)) for message in tree]
    return [response for response in made if response is not None]


def edited(folder: Path, thread_id: str, **changes: Any) -> None:
    """The file with its messages or fields changed by hand."""
    path = files_in(folder, thread_id).json
    path.write_bytes(msgspec.json.encode(plain_of(path) | changes))


def test_a_file_as_raddle_wrote_it_is_read_without_its_words(
    tmp_path: Path, store: ThreadFiles, thread_id: str
) -> None:
    found = straight(tmp_path, thread_id)
    assert [(one.id, one.usage, one.model) for one in found] == [("m2", USED, "opus"), ("m4", USED, "opus")]
    assert found == whole(store, thread_id)


def test_what_a_journal_holds_counts(tmp_path: Path, store: ThreadFiles, thread_id: str) -> None:
    store.append(thread_id, "assistant", "one more", usage=Usage(output_tokens=5))
    with pytest.raises(Asked):
        straight(tmp_path, thread_id)
    found = read(tmp_path, store, thread_id)
    assert [one.usage.output_tokens for one in found] == [31, 31, 5]
    store.fold(thread_id)
    assert straight(tmp_path, thread_id) == found


def test_turns_that_were_taken_back_are_marked_and_read(
    tmp_path: Path, store: ThreadFiles, thread_id: str
) -> None:
    with store.edit(thread_id) as editor:
        editor.undo(1)
    store.fold(thread_id)
    found = read(tmp_path, store, thread_id)
    assert [(one.id, one.is_removed) for one in found] == [("m2", False), ("m4", True)]


def test_a_usage_with_fields_nobody_knows_is_read(tmp_path: Path, store: ThreadFiles, thread_id: str) -> None:
    messages = plain_of(files_in(tmp_path, thread_id).json)["conversation"]["messages"]
    messages[1]["usage"]["service_tier"] = "standard"
    edited(tmp_path, thread_id, conversation={"messages": messages})
    assert read(tmp_path, store, thread_id) == whole(store, thread_id)
    assert read(tmp_path, store, thread_id)[0].usage == USED


def test_an_id_that_stands_twice_counts_as_one(tmp_path: Path, store: ThreadFiles, thread_id: str) -> None:
    messages = plain_of(files_in(tmp_path, thread_id).json)["conversation"]["messages"]
    messages.append({**messages[1], "content": "other words"})
    edited(tmp_path, thread_id, conversation={"messages": messages})
    found = read(tmp_path, store, thread_id)
    assert sorted(one.id for one in found) == ["m2", "m2", "m4"]
    assert found == whole(store, thread_id)


def test_a_second_message_of_one_id_is_known_in_the_file_that_keeps_both(
    tmp_path: Path, store: ThreadFiles
) -> None:
    kept = a_thread(a_message("m1", usage=USED), a_message("m9", usage=USED, extra={TWIN_OF: "m1"}))
    store.import_many([(THREAD_ID, encode_thread(kept))])
    assert [one.id for one in straight(tmp_path, THREAD_ID)] == ["m1", "m1"]


def test_a_file_that_was_replaced_under_its_journal_is_left_to_the_store(
    tmp_path: Path, store: ThreadFiles, thread_id: str
) -> None:
    store.append(thread_id, "user", "one more")
    store.fold(thread_id)
    edited(tmp_path, thread_id)
    with pytest.raises(Asked):
        straight(tmp_path, thread_id)


def test_a_file_of_another_program_is_left_to_the_store(
    tmp_path: Path, store: ThreadFiles, thread_id: str
) -> None:
    plain = plain_of(files_in(tmp_path, thread_id).json)
    for name in ("stamps", "format"):
        kept = {key: value for key, value in plain.items() if key != name}
        files_in(tmp_path, thread_id).json.write_bytes(msgspec.json.encode(kept))
        with pytest.raises(Asked):
            straight(tmp_path, thread_id)


def test_a_damaged_file_is_what_the_store_says_of_it(
    tmp_path: Path, store: ThreadFiles, thread_id: str
) -> None:
    path = files_in(tmp_path, thread_id).json
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(BrokenFormat):
        read(tmp_path, store, thread_id)


def test_a_thread_that_is_gone_is_not_found(tmp_path: Path, store: ThreadFiles) -> None:
    with pytest.raises(NotFound):
        read(tmp_path, store, THREAD_ID)


@given(rich_threads())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_says_the_same_as_its_thread(tmp_path: Path, thread: Thread) -> None:
    path = paths_in(tmp_path).thread_file(thread.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_thread(thread))
    tree = thread.tree
    made = [response_of(message, is_removed=tree.is_removed(message.id)) for message in tree]
    found = usage_reader(paths_in(tmp_path), lambda _: thread)(thread.id)
    assert found == [response for response in made if response is not None]


def test_a_message_without_usage_makes_no_response(tmp_path: Path, store: ThreadFiles) -> None:
    store.import_many([(THREAD_ID, encode_thread(a_thread(a_message())))])
    assert straight(tmp_path, THREAD_ID) == []
