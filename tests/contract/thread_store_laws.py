"""The laws every store of threads keeps.

A store's test makes a subclass of `ThreadStoreLaws` and gives `open_store`: each call opens the same place
once more, as another process of the same device would. What only a disk can show (crashes, damage, other
programs) is in the tests of that store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pytest

from raddle.actions.ports import ThreadShelf, ThreadStore
from raddle.model.errors import Ambiguous, ConflictError, InvalidInput, NotFound, UserError
from raddle.model.threads.agent_state import AgentState
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.thread import Thread, diff
from tests.builders import SECOND, WoundClock, a_line, a_thread, an_author, texts
from tests.builders_store import a_writer, begin, equal

OTHER_ID = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5bff"
UNKNOWN_ID = "T-018e2b3c-0000-7000-8000-000000000000"


class Store(ThreadStore, ThreadShelf, Protocol):
    """Both ports in one, as adapters are."""


OpenStore = Callable[..., Store]
"""Opens the test's store once more; takes `author` and `changed`."""


class ThreadStoreLaws:
    """Subclass this, give the fixture `open_store`, and name the class Test…"""

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Store:
        return open_store()

    def test_what_was_created_is_there_for_every_process(self, open_store: OpenStore, store: Store) -> None:
        thread_id = begin(store, "hello", "hi")
        seen = open_store().load(thread_id)
        assert texts(seen.messages) == ["hello", "hi"]
        assert seen.version == 1

    def test_a_new_thread_gets_an_id_or_the_one_it_is_given(self, store: Store) -> None:
        first = begin(store)
        with store.create(OTHER_ID) as editor:
            editor.append("user", "hello")
        assert {first, OTHER_ID} == set(store.ids())

    def test_a_thread_is_created_once(self, store: Store) -> None:
        thread_id = begin(store)
        with pytest.raises(ConflictError), store.create(thread_id):
            pass
        assert texts(store.load(thread_id).messages) == ["hello"]

    def test_an_empty_thread_is_not_kept(self, store: Store) -> None:
        with store.create() as editor:
            editor.start(workspace_root="/w")
            editor.rename("nothing yet")
        assert store.ids() == []
        assert not store.save(a_thread(title="nothing either"))
        assert not store.join(OTHER_ID, Delta(version=3))
        assert store.ids() == []

    def test_an_unsent_first_turn_is_kept(self, store: Store) -> None:
        with store.create() as editor:
            editor.set_draft(None, "half a thought")
        assert store.load(editor.thread.id).drafts == {"aaaaaaaa": {"root": "half a thought"}}

    def test_a_thread_that_became_empty_is_kept(self, store: Store) -> None:
        thread_id = begin(store)
        with store.edit(thread_id) as editor:
            editor.undo()
        assert store.load(thread_id).tree.tip() is None
        assert store.ids() == [thread_id]

    def test_nobody_holds_the_stores_own_copy(self, store: Store) -> None:
        thread_id = begin(store)
        mine = store.load(thread_id)
        Editor(mine, an_author()).append("user", "only here")
        assert texts(store.load(thread_id).messages) == ["hello"]

    def test_an_edit_is_kept_at_the_end_of_its_block(self, open_store: OpenStore, store: Store) -> None:
        thread_id = begin(store)
        with store.edit(thread_id) as editor:
            editor.rename("a title")
            editor.tag("bug")
            assert open_store().load(thread_id).title == ""
        seen = open_store().load(thread_id)
        assert (seen.title, seen.tags, seen.version) == ("a title", ["bug"], 2)

    def test_an_edit_that_fails_leaves_nothing(self, store: Store) -> None:
        thread_id = begin(store)
        before = store.load(thread_id)

        def fail() -> None:
            with store.edit(thread_id) as editor:
                editor.rename("half done")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert equal(store.load(thread_id), before)

    def test_an_edit_that_changes_nothing_writes_nothing(self, open_store: OpenStore) -> None:
        told: list[str] = []
        store = open_store(changed=told.append)
        thread_id = begin(store)
        told.clear()
        with store.edit(thread_id) as editor:
            editor.rename("")
        store.apply(thread_id, lambda editor: editor.untag("never there"))
        assert not store.save(store.load(thread_id))
        assert told == []
        assert store.load(thread_id).version == 1

    def test_every_write_is_told_once_it_is_there(self, open_store: OpenStore) -> None:
        told: list[tuple[str, int]] = []

        def note(thread_id: str) -> None:
            told.append((thread_id, open_store().load(thread_id).version))

        store = open_store(changed=note)
        thread_id = begin(store)
        with store.edit(thread_id) as editor:
            editor.rename("a title")
        store.append(thread_id, "user", "more")
        elsewhere = store.load(thread_id)
        Editor(elsewhere, an_author("bbbbbbbb")).tag("bug")
        store.save(elsewhere)
        assert told == [(thread_id, 1), (thread_id, 2), (thread_id, 3), (thread_id, 3)]

    def test_an_edit_inside_an_edit_of_the_same_thread_is_refused(self, store: Store) -> None:
        thread_id = begin(store)
        with store.edit(thread_id), pytest.raises(UserError, match="being edited already") as refused:
            store.append(thread_id, "user", "unseen by the one outside")
        assert refused.value.hint
        assert texts(store.load(thread_id).messages) == ["hello"]

    def test_so_it_is_through_another_store_of_the_same_process(self, open_store: OpenStore) -> None:
        store, other = open_store(), open_store()
        thread_id, another = begin(store), begin(store)
        with store.edit(thread_id) as editor:
            inside: list[Callable[[], object]] = [
                lambda: other.append(thread_id, "user", "unseen by the one outside"),
                lambda: other.save(store.load(thread_id)),
                lambda: other.delete_files(thread_id),
            ]
            for write in inside:
                with pytest.raises(UserError, match="being edited already"):
                    write()
            other.append(another, "user", "of another thread")
            editor.append("user", "by the one outside")
        other.append(thread_id, "user", "after it")
        assert texts(store.load(thread_id).messages) == ["hello", "by the one outside", "after it"]
        assert len(store.load(another).messages) == 2

    def test_a_turn_is_appended_under_the_tip(self, store: Store) -> None:
        thread_id = begin(store, "one")
        for turn in ("two", "three", "four"):
            store.append(thread_id, "assistant", turn)
        seen = store.load(thread_id)
        tip = seen.tree.tip()
        assert tip is not None
        assert texts(seen.tree.path_to_root(tip.id)) == ["one", "two", "three", "four"]
        assert len(seen.tree.branches()) == 1

    def test_appending_is_editing(self, open_store: OpenStore) -> None:
        """The short way gives the thread that the long way gives, stamp by stamp."""
        short, long = (open_store(author=a_writer(clock=WoundClock())) for _ in range(2))
        ids = ["m1", "m2", "m3", "m4", "m5"]
        script: list[Callable[[Editor], object]] = [
            lambda editor: editor.append("user", "ask", id=ids[1]),
            lambda editor: editor.set_draft("m2", "typing"),
            lambda editor: editor.append("assistant", "answer", id=ids[2]),
            lambda editor: editor.snapshot_git(GitSnapshot(branch="main", head="a" * 40, is_dirty=True)),
            lambda editor: editor.set_agent_state(AgentState(kind="calling_llm", retries=1)),
            lambda editor: editor.snapshot_git(GitSnapshot(branch="main", head="b" * 40), ["c" * 40]),
            lambda editor: editor.undo(),
            lambda editor: editor.append("user", "ask again", id=ids[3]),
            lambda editor: editor.set_model("p", "m"),
            lambda editor: editor.append("assistant", "aside", id=ids[4], is_sidechain=True),
        ]
        threads = (OTHER_ID, UNKNOWN_ID)
        for store, thread_id in zip((short, long), threads, strict=True):
            with store.create(thread_id) as editor:
                editor.append("user", "hello", id=ids[0])
        for change in script:
            short.apply(threads[0], change)
            with long.edit(threads[1]) as editor:
                change(editor)
        mine, other = (store.load(thread_id) for store, thread_id in zip((short, long), threads, strict=True))
        assert mine.messages == other.messages
        assert mine.registers == other.registers
        assert mine.version == other.version

    def test_apply_answers_what_the_change_answers(self, store: Store) -> None:
        thread_id = begin(store, "ask", "answer")
        assert store.apply(thread_id, lambda editor: editor.append("user", "more").content) == "more"
        taken = store.apply(thread_id, lambda editor: editor.undo())
        assert [store.load(thread_id).tree.is_removed(name) for name in taken] == [True]

    def test_apply_sees_all_of_the_thread_that_it_asks_for(self, store: Store) -> None:
        thread_id = begin(store, "one", "two")
        store.append(thread_id, "user", "three")

        def told(editor: Editor) -> list[str]:
            editor.append("assistant", "four")
            return [*texts(editor.thread.tree), editor.thread.title]

        assert store.apply(thread_id, told) == ["one", "two", "three", "four", ""]
        assert texts(store.load(thread_id).messages) == ["one", "two", "three", "four"]

    def test_an_alarm_that_a_change_swallows_is_heard(self, store: Store) -> None:
        thread_id = begin(store, "one", "two")
        store.append(thread_id, "user", "three")

        def careless(editor: Editor) -> str:
            try:
                first = next(iter(editor.thread.tree)).content
            except Exception:  # noqa: BLE001
                first = "nobody knows"
            editor.append("assistant", f"it began with {first}")
            return first

        assert store.apply(thread_id, careless) == "one"
        assert texts(store.load(thread_id).messages)[3:] == ["it began with one"]

    def test_a_turn_on_a_deleted_thread_brings_it_back(self, store: Store) -> None:
        thread_id = begin(store)
        store.append(thread_id, "assistant", "hi")
        with store.edit(thread_id) as editor:
            editor.delete()
        assert store.load(thread_id).is_deleted
        store.append(thread_id, "user", "but wait")
        assert not store.load(thread_id).is_deleted

    def test_two_processes_of_one_device_never_lose_a_turn(self, open_store: OpenStore) -> None:
        clock = WoundClock()
        one, other = (open_store(author=a_writer(clock=clock)) for _ in range(2))
        thread_id = begin(one, "start")
        for number in range(12):
            store = (one, other)[number % 2]
            if number % 3:
                store.append(thread_id, "user", f"turn {number}")
            else:
                with store.edit(thread_id) as editor:
                    editor.append("user", f"turn {number}")
                    editor.rename(f"title {number}")
        seen = one.load(thread_id)
        assert texts(seen.messages) == ["start", *(f"turn {number}" for number in range(12))]
        assert len(seen.tree.heads()) == 1
        assert seen.title == "title 9"
        assert seen.version == 13

    def test_saving_an_older_copy_joins(self, store: Store) -> None:
        thread_id = begin(store, "hello")
        old = store.load(thread_id)
        store.append(thread_id, "assistant", "hi")
        with store.edit(thread_id) as editor:
            editor.rename("newer")
        Editor(old, a_writer("bbbbbbbb", WoundClock(now=WoundClock().now + SECOND))).append(
            "user", "elsewhere"
        )
        assert store.save(old)
        seen = store.load(thread_id)
        assert seen.title == "newer"
        assert sorted(texts(seen.messages)) == ["elsewhere", "hello", "hi"]
        assert seen.version == 3

    def test_saving_twice_is_saving_once(self, store: Store) -> None:
        thread = a_thread(*a_line("hello", "hi"), title="a title")
        assert store.save(thread)
        assert not store.save(thread)
        assert equal(store.load(thread.id), thread)

    def test_deltas_join_in_any_order_and_any_number_of_times(self, store: Store) -> None:
        thread = a_thread(*a_line("one"))
        store.save(thread)
        author = an_author("bbbbbbbb")
        deltas = []
        for turn in ("two", "three"):
            before = thread.copy()
            editor = Editor(thread, author)
            editor.append("assistant", turn)
            editor.delta()
            deltas.append(diff(before, thread))
        assert [store.join(thread.id, delta) for delta in (*reversed(deltas), *deltas)] == [
            True,
            True,
            False,
            False,
        ]
        assert equal(store.load(thread.id), thread)

    def test_a_delta_makes_the_thread_where_there_is_none(self, store: Store) -> None:
        thread = a_thread(*a_line("one", "two"))
        assert store.join(OTHER_ID, thread.whole())
        assert texts(store.load(OTHER_ID).messages) == ["one", "two"]

    def test_what_is_appended_after_a_join_stands_under_the_newest_turn(self, store: Store) -> None:
        thread_id = begin(store, "one")
        store.append(thread_id, "assistant", "two")
        ahead = store.load(thread_id)
        Editor(ahead, a_writer("bbbbbbbb", WoundClock(now=WoundClock().now + SECOND))).append("user", "three")
        store.save(ahead)
        added = store.append(thread_id, "assistant", "four")
        seen = store.load(thread_id)
        assert texts(seen.tree.path_to_root(added.id)) == ["one", "two", "three", "four"]

    def test_many_files_take_their_places_in_their_order(self, store: Store) -> None:
        there = a_thread(*a_line("one"), title="here")
        store.save(there)
        longer = a_thread(*a_line("one", "two"))
        new = a_thread(*a_line("three"), thread_id=OTHER_ID)
        files = [(thread.id, encode_thread(thread)) for thread in (longer, new, there, new)]
        placed = store.import_many(files)
        assert [(one.thread_id, one.is_new, one.has_news) for one in placed] == [
            (there.id, False, True),
            (OTHER_ID, True, True),
            (there.id, False, False),
            (OTHER_ID, False, False),
        ]
        seen = store.load(there.id)
        assert (texts(seen.messages), seen.title) == (["one", "two"], "here")
        assert equal(store.load(OTHER_ID), new)

    def test_importing_nothing_is_no_error(self, store: Store) -> None:
        assert store.import_many(()) == []
        assert store.ids() == []

    def test_folding_changes_nothing_that_is_read(self, store: Store) -> None:
        thread_id = begin(store)
        assert not store.fold(thread_id)
        store.append(thread_id, "assistant", "hi")
        before = store.load(thread_id)
        assert store.fold(thread_id)
        assert equal(store.load(thread_id), before)
        assert not store.fold(thread_id)
        store.append(thread_id, "user", "more")
        assert texts(store.load(thread_id).messages) == ["hello", "hi", "more"]

    def test_scrubbing_changes_nothing_that_is_read(self, store: Store) -> None:
        thread_id = begin(store)
        store.append(thread_id, "assistant", "hi")
        before = store.load(thread_id)
        store.scrub(thread_id)
        assert equal(store.load(thread_id), before)
        store.append(thread_id, "user", "more")
        assert texts(store.load(thread_id).messages) == ["hello", "hi", "more"]

    def test_ids_are_listed_oldest_first(self, store: Store) -> None:
        assert store.ids() == []
        made = [begin(store) for _ in range(4)]
        assert store.ids() == made

    def test_a_removed_thread_is_gone_and_can_come_again(self, open_store: OpenStore) -> None:
        told: list[str] = []
        store = open_store(changed=told.append)
        thread_id = begin(store)
        store.append(thread_id, "assistant", "hi")
        told.clear()
        assert store.delete_files(thread_id)
        assert not store.delete_files(thread_id)
        assert told == [thread_id]
        assert store.ids() == []
        with pytest.raises(NotFound):
            store.load(thread_id)
        with store.create(thread_id) as editor:
            editor.append("user", "anew")
        assert texts(store.load(thread_id).messages) == ["anew"]

    def test_an_unknown_thread_is_not_found_by_any_verb(self, store: Store) -> None:
        begin(store)
        with pytest.raises(NotFound):
            store.load(UNKNOWN_ID)
        with pytest.raises(NotFound), store.edit(UNKNOWN_ID):
            pass
        with pytest.raises(NotFound):
            store.append(UNKNOWN_ID, "user", "hello")
        with pytest.raises(NotFound):
            store.fold(UNKNOWN_ID)
        with pytest.raises(NotFound):
            store.scrub(UNKNOWN_ID)
        assert not store.delete_files(UNKNOWN_ID)

    @pytest.mark.parametrize(
        "text", ["", "T-", "../../etc/passwd", "T-018e2b3c", "T-018e2b3c/../x", "\0", "é"]
    )
    def test_what_is_no_id_reaches_no_thread(self, store: Store, text: str) -> None:
        with pytest.raises(InvalidInput):
            store.load(text)
        with pytest.raises(InvalidInput), store.edit(text):
            pass
        with pytest.raises(InvalidInput):
            store.append(text, "user", "hello")
        with pytest.raises(InvalidInput):
            store.delete_files(text)
        with pytest.raises(InvalidInput):
            store.import_many([(text, b"{}")])

    def test_the_start_of_an_id_is_enough_where_it_names_one(self, store: Store) -> None:
        ids = ["T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c", "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5bff"]
        for thread_id in ids:
            store.save(a_thread(*a_line("hello"), thread_id=thread_id))
        assert store.resolve(ids[0]) == ids[0]
        assert store.resolve(ids[0].upper()) == ids[0]
        assert store.resolve("018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5bf") == ids[1]
        with pytest.raises(Ambiguous) as several:
            store.resolve("018e2b")
        assert several.value.candidates == tuple(ids)
        with pytest.raises(NotFound):
            store.resolve("T-02")
        with pytest.raises(InvalidInput):
            store.resolve("no id")

    def test_a_whole_thread_may_be_read_while_it_is_edited(self, open_store: OpenStore, store: Store) -> None:
        thread_id = begin(store)
        with store.edit(thread_id) as editor:
            editor.append("assistant", "hi")
            assert texts(store.load(thread_id).messages) == ["hello"]
            assert texts(open_store().load(thread_id).messages) == ["hello"]

    def test_any_thread_comes_back_as_it_was(self, store: Store) -> None:
        thread = Thread(OTHER_ID)
        editor = Editor(thread, an_author("bbbbbbbb"))
        editor.start(workspace_root="/w", cwd="/w/src", client_version="1")
        first = editor.append("user", 'ask \0 é 🙂 \\ " \n')
        editor.append("assistant", "answer", tool_calls=(), thinking="hm")
        editor.reply(first.id, "assistant", "another answer")
        editor.reply(None, "user", "another root")
        editor.launch_job("j1", first.id, "r")
        editor.set_draft(first.id, "unsent")
        editor.write("x/vendor", {"a": [1, None, {"b": "c"}]})
        editor.undo()
        editor.delta()
        store.save(thread)
        assert equal(store.load(OTHER_ID), thread)
