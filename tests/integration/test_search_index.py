"""The search index as its callers see it: what is found, in which order, and what is shown of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.clock import format_time
from raddle.model.errors import InvalidInput
from raddle.model.threads.search_fields import FIELDS, MessageText, cut_row
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary

NOW = 1_796_000_000_000_000
DAY = 86_400_000_000


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SearchIndex]:
    with SearchIndex(tmp_path / "cache" / "index.sqlite3", clock=lambda: NOW) as opened:
        opened.finish_rebuild()
        yield opened


def an_id(number: int) -> str:
    return f"T-018e2b3c-4d5e-7f8a-9b0c-{number:012x}"


def a_thread(number: int, *, days_ago: float = 0, **facts: Any) -> ThreadSummary:
    return replace(
        ThreadSummary(id=an_id(number), last_activity_at=format_time(NOW - int(days_ago * DAY))), **facts
    )


def says(at: int = 0, **texts: str) -> MessageText:
    """A message with these fields, its role that of the first."""
    fields = [texts.get(field, "") for field in FIELDS]
    role = next(
        (field for field in texts if field in {"user", "assistant"}),
        "tool" if "output" in texts else "assistant",
    )
    return MessageText(
        id=f"m{at}",
        order=NOW - DAY + at,
        role=role,
        texts=(fields[0], fields[1], fields[2], fields[3], fields[4]),
    )


def found(index: SearchIndex, query: str, **options: Any) -> list[str]:
    """Numbers of the threads found, as hex, best first."""
    return [hit.thread.id[-1] for hit in index.search(query, **options).hits]


def test_a_thread_is_shown_by_its_best_message(index: SearchIndex) -> None:
    index.put(
        a_thread(1, title="Sessions"),
        [
            says(1, output="the zebra is here"),
            says(2, assistant="I see the zebra"),
            says(3, user="where is the zebra?"),
            says(4, user="and the Zebra?"),
            says(5, output="zebra zebra zebra"),
        ],
    )
    (hit,) = index.search("zebra").hits
    assert (hit.message_id, hit.role, hit.field, hit.matches) == ("m4", "user", "user", 5)
    assert hit.snippet.text == "and the Zebra?"
    assert hit.snippet.marks == ((8, 13),)
    assert hit.thread.title == "Sessions"


def test_where_the_words_stand_decides_the_order(index: SearchIndex) -> None:
    for number, field in enumerate(("output", "tools", "thinking", "assistant", "user"), start=1):
        index.put(a_thread(number), [says(1, **{field: "a zebra"})])
    index.put(a_thread(6, title="zebra"), [says(1, user="something else")])
    assert found(index, "zebra") == ["6", "5", "4", "3", "2", "1"]


def test_a_word_beside_a_call_weighs_what_its_own_field_weighs(index: SearchIndex) -> None:
    index.put(a_thread(1), [says(1, assistant="look", tools="zebra")])
    index.put(a_thread(2), [says(1, assistant="zebra", tools="look")])
    index.put(a_thread(3), [says(1, assistant="look", thinking="zebra", tools="look")])
    assert found(index, "zebra") == ["2", "3", "1"]
    assert found(index, "zeb*") == ["2", "3", "1"]
    assert found(index, '"zebra"') == ["2", "3", "1"]


def test_recency_only_tips_the_balance(index: SearchIndex) -> None:
    index.put(a_thread(1, days_ago=400), [says(1, user="zebra")])
    index.put(a_thread(2, days_ago=30), [says(1, user="zebra")])
    index.put(a_thread(3), [says(1, output="zebra")])
    assert found(index, "zebra") == ["2", "1", "3"]


def test_threads_of_one_score_stand_in_the_order_of_their_ids(index: SearchIndex) -> None:
    for number in (3, 1, 2):
        index.put(a_thread(number), [says(1, user="zebra")])
    assert found(index, "zebra") == ["1", "2", "3"]


def test_a_word_of_the_title_counts_for_every_message(index: SearchIndex) -> None:
    index.put(
        a_thread(1, title="Login form"), [says(1, user="it fails"), says(2, assistant="the error is gone")]
    )
    (hit,) = index.search("login error").hits
    assert (hit.message_id, hit.field, hit.matches) == ("m2", "assistant", 1)
    (hit,) = index.search("login").hits
    assert (hit.message_id, hit.field, hit.matches) == ("m1", "header", 2)
    assert hit.snippet.text == "Login form"


def test_a_hit_in_title_and_text_shows_the_text(index: SearchIndex) -> None:
    index.put(a_thread(1, title="Login"), [says(1, user="hello"), says(2, assistant="the login")])
    (hit,) = index.search("login").hits
    assert (hit.message_id, hit.field, hit.snippet.text) == ("m2", "assistant", "the login")


def test_the_answer_says_what_was_looked_at(index: SearchIndex) -> None:
    index.put(a_thread(1, git_remote_url="github.com/me/one"), [says(1, user="zebra")])
    index.put(a_thread(2, git_remote_url="github.com/me/two"), [says(1, user="zebra")])
    answer = index.search("zebra repo:one -> ")
    assert answer.scope.threads == 1
    assert answer.scope.filters == ("repo:one",)
    assert answer.scope.ignored == ("->",)
    assert (answer.scope.store, answer.scope.query, answer.scope.is_complete) == (
        "local",
        "zebra repo:one ->",
        True,
    )
    assert answer.scope.notes == ()


def test_a_fragment_across_words_says_how_far_it_was_looked_for(
    index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 6):
        index.put(a_thread(number, days_ago=number), [says(1, user=f"a => b {number}")])
    answer = index.search("~=>")
    assert (answer.total_threads, answer.scope.is_complete, answer.scope.messages_read) == (5, True, 5)
    monkeypatch.setattr("raddle.adapters.local_store.search_rows.SCANNED_BYTES", 10)
    answer = index.search("~=>")
    assert (found(index, "~=>"), answer.scope.is_complete, answer.scope.messages_read) == (
        ["1", "2"],
        False,
        2,
    )


def test_pages_go_on_where_the_last_one_ended(index: SearchIndex) -> None:
    for number in range(1, 10):
        index.put(a_thread(number, days_ago=number), [says(1, user="zebra")])
    first = index.search("zebra after:30d", limit=4)
    index.put(a_thread(10), [says(1, user="zebra")])
    index.remove(an_id(2))
    second = index.search("zebra after:30d", limit=4, cursor=first.cursor, now=NOW + 3 * DAY)
    third = index.search("zebra after:30d", limit=4, cursor=second.cursor)
    assert [hit.thread.id[-1] for hit in (*first.hits, *second.hits, *third.hits)] == list("123456789")
    assert (first.total_threads, second.total_threads, third.cursor) == (9, 9, "")


@pytest.mark.parametrize("cursor", ["x", "!!!!", "gqFhAQ", "é"])
def test_what_is_no_cursor_is_refused(index: SearchIndex, cursor: str) -> None:
    with pytest.raises(InvalidInput):
        index.search("zebra", cursor=cursor)


def test_a_cursor_of_another_query_is_refused(index: SearchIndex) -> None:
    for number in range(3):
        index.put(a_thread(number), [says(1, user="zebra lion")])
    cursor = index.search("zebra", limit=1).cursor
    with pytest.raises(InvalidInput, match="another query"):
        index.search("lion", cursor=cursor)


def test_thousands_of_hits_are_all_counted_and_all_reached(index: SearchIndex) -> None:
    cutter = Cutter()
    with index.bulk() as bulk:
        for number in range(300):
            said = [says(at, output=f"zebra {at}") for at in range(20)]
            bulk.add(str(number), [cut_row(text, cutter) for text in said])
            bulk.finish(str(number), a_thread(number, days_ago=number))
    seen: list[str] = []
    cursor = ""
    while True:
        answer = index.search("zebra", limit=70, cursor=cursor)
        assert answer.total_threads == 300
        seen += [hit.thread.id for hit in answer.hits]
        assert all(hit.matches == 20 for hit in answer.hits)
        cursor = answer.cursor
        if not cursor:
            break
    assert seen == [an_id(number) for number in range(300)]
    assert index.search("zeb*", limit=300).total_threads == 300
    assert [hit.score > 0 for hit in index.search("zebra", limit=300).hits].count(False) > 100


def test_a_thread_of_thousands_of_messages_is_found_at_both_ends(index: SearchIndex) -> None:
    said = [says(at, user=f"word{at} common") for at in range(2_600)]
    index.put(a_thread(1), said)
    assert index.messages_in(an_id(1), "word0") == ["m0"]
    assert index.messages_in(an_id(1), "word2599") == ["m2599"]
    assert len(index.messages_in(an_id(1), "common")) == 2_600
    index.extend(a_thread(1), [says(2_600, user="word2600 common"), says(7, user="changed")])
    assert index.messages_in(an_id(1), "word2600") == ["m2600"]
    assert index.messages_in(an_id(1), "word7") == []
    assert index.messages_in(an_id(1), "changed") == ["m7"]
    assert index.verify() == []


def test_private_threads_are_found_by_who_may_see_them(index: SearchIndex) -> None:
    index.put(a_thread(1, is_private=True, title="zebra"), [says(1, user="zebra")])
    index.put(a_thread(2), [says(1, user="zebra")])
    assert found(index, "zebra") == ["1", "2"]
    answer = index.search("zebra", include_private=False)
    assert [hit.thread.id for hit in answer.hits] == [an_id(2)]
    assert (answer.total_threads, answer.scope.threads) == (1, 1)
    assert index.search("is:private", include_private=False).hits == ()
    assert [row.id for row in index.list(include_private=False)] == [an_id(2)]
    assert [row.id for row in index.list("zebra", include_private=False)] == [an_id(2)]


def test_archived_threads_are_found_but_not_listed(index: SearchIndex) -> None:
    index.put(a_thread(1, is_archived=True), [says(1, user="zebra")])
    index.put(a_thread(2), [says(1, user="zebra")])
    assert found(index, "zebra") == ["1", "2"]
    assert found(index, "zebra -is:archived") == ["2"]
    assert [row.id[-1] for row in index.list()] == ["2"]
    assert [row.id[-1] for row in index.list("zebra")] == ["2"]
    assert [row.id[-1] for row in index.list("is:archived")] == ["1"]
    assert [row.id[-1] for row in index.list(include_archived=True)] == ["1", "2"]


def test_a_deleted_thread_is_taken_out(index: SearchIndex) -> None:
    index.put(a_thread(1), [says(1, user="zebra")])
    index.put(a_thread(1, is_deleted=True), [says(1, user="zebra")])
    assert found(index, "zebra") == []
    assert index.ids() == set()
    index.put(a_thread(1), [says(1, user="zebra")])
    assert found(index, "zebra") == ["1"]


def test_removed_turns_come_and_go_without_being_cut_again(index: SearchIndex) -> None:
    index.put(a_thread(1), [says(1, user="zebra"), says(2, user="lion")], removed=["m1"])
    assert found(index, "zebra") == []
    assert index.messages_in(an_id(1), "zebra is:removed") == ["m1"]
    index.extend(a_thread(1), [], removed=[])
    assert found(index, "zebra") == ["1"]


def test_the_list_has_pins_first_then_the_newest(index: SearchIndex) -> None:
    for number, days in ((1, 3), (2, 1), (3, 2)):
        index.put(a_thread(number, days_ago=days), [says(1, user="x")])
    index.put(a_thread(4, days_ago=9, is_pinned=True), [says(1, user="x")])
    assert [row.id[-1] for row in index.list()] == ["4", "2", "3", "1"]
    assert [row.id[-1] for row in index.list(limit=2)] == ["4", "2"]
    assert [row.id[-1] for row in index.list(limit=2, offset=1)] == ["2", "3"]
    assert [row.id[-1] for row in index.list("x", limit=2, offset=1)] == ["2", "3"]


def test_a_list_by_filters_on_threads_has_threads_without_a_shown_message(index: SearchIndex) -> None:
    index.put(a_thread(1, tags=("bug",)), [says(1, user="x")], removed=["m1"])
    assert [row.id[-1] for row in index.list("tag:bug")] == ["1"]
    assert index.list("tag:bug x") == []
    assert index.list("-tag:bug") == []


def test_a_thread_renamed_is_found_by_its_new_name_only(index: SearchIndex) -> None:
    index.put(a_thread(1, title="old name", tags=("one",)), [says(1, user="x")])
    index.extend(a_thread(1, title="new name", tags=("two",)), [])
    assert found(index, "old") == []
    assert found(index, "tag:one") == []
    assert found(index, "new tag:two") == ["1"]


def test_the_start_of_an_id_finds_the_ids(index: SearchIndex) -> None:
    for number in (1, 2, 16):
        index.put(a_thread(number), [says(1, user="x")])
    assert index.resolve_prefix("018e2b3c") == [an_id(1), an_id(2), an_id(16)]
    assert index.resolve_prefix("T-018E2B3C-4d5e-7f8a-9b0c-00000000001") == [an_id(16)]
    assert index.resolve_prefix("019") == []
    assert index.get(an_id(2)) == a_thread(2)
    assert index.get(an_id(9)) is None


def test_a_pasted_log_of_ten_kilobytes_finds_where_it_came_from(index: SearchIndex) -> None:
    log = "\n".join(f"error {at} at src/module{at}.py:{at * 3} in handle_request" for at in range(200))
    for number in range(30):
        index.put(a_thread(number, title=f"error in module{number}"), [says(1, output=f"error {number}")])
    index.put(a_thread(99), [says(1, output=log)])
    assert found(index, log) == [an_id(99)[-1]]
    assert found(index, f'"{log}"') == [an_id(99)[-1]]


def test_words_of_many_titles_do_not_make_a_search_slow_or_wrong(index: SearchIndex) -> None:
    animals = "ant bee cat dog eel fox gnu hen".split()
    for number in range(256):
        title = " ".join(animal for bit, animal in enumerate(animals) if number >> bit & 1)
        rest = " ".join(animal for bit, animal in enumerate(animals) if not number >> bit & 1)
        index.put(a_thread(number, title=title), [says(1, user=rest if number % 2 else rest[:-1])])
    # The even ones lack the last letter of a word.
    assert index.search(" ".join(animals), limit=300).total_threads == 128


def test_what_is_costly_is_asked_for_once_however_titles_and_texts_share_the_words(
    index: SearchIndex,
) -> None:
    words = ("alpha", "beta", "gamma", "delta", "epsilon")
    for number in range(1 << len(words)):
        title = " ".join(word for at, word in enumerate(words) if number >> at & 1)
        said = [says(0, user="a b g d e"), says(1, user=" ".join(words), output="x " * 5)]
        index.put(a_thread(number, title=title), said)
    asked: list[str] = []
    index._database.sql.set_trace_callback(asked.append)
    answer = index.search("al* be* ga* de* ep*", limit=50)
    index._database.sql.set_trace_callback(None)
    assert (answer.total_threads, len(answer.hits)) == (32, 32)
    costly = [one for one in asked if "words MATCH" in one or "said MATCH" in one]
    assert 0 < len(costly) < 25, "not one for each of the 31 combinations"
