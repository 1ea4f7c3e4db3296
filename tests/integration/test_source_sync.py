"""The bytes of agents' own files go to the person's other machines when they are asked for, and nowhere else."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from raddle.actions.sync.run import Done
from raddle.actions.threads import reply, undo
from raddle.model.errors import InvalidInput, TooLarge
from raddle.wiring import Stores
from raddle.wiring.care import check
from raddle.wiring.fetching import fetch_from, fetch_sources
from raddle.wiring.native_export import (
    FORMS,
    MissingBytes,
    chunks_of,
    native_session,
    write_session,
)
from raddle.wiring.purging import purge_removed, purge_thread
from raddle.wiring.shared_sources import SharedSources
from raddle.wiring.syncing import Syncing
from tests.builders_claude_code import (
    OTHER_SESSION,
    ClaudeSession,
    a_session_with_everything,
    a_short_session,
    a_sub_agent,
    picture,
)
from tests.builders_codex import a_session_with_everything as codex_session
from tests.builders_gemini_cli import a_session_with_everything as gemini_session
from tests.builders_gemini_cli import an_old_session
from tests.builders_import import Machine, write
from tests.fakes.memory_remote import MemoryRemote

SERVER = "https://hub.example"
_CODEX = codex_session()
_GEMINI = ".gemini/tmp/kiln/chats/session-2026-06-03T08-00-4d1f0c2e"
KINDS = {
    "claude-code": (f".claude/projects/-p/{a_short_session().session}.jsonl", a_short_session().data),
    "codex": (f".codex/sessions/2026/02/01/{_CODEX.name}", _CODEX.data),
    "gemini": (f"{_GEMINI}.jsonl", gemini_session().data),
    "gemini 2025": (f"{_GEMINI}.json", b"\n".join(an_old_session().document())),
}


class CountedRemote(MemoryRemote):
    """A hub that counts what it is asked about sources and blobs."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def __getattribute__(self, name: str) -> object:
        if name in {"put_sources", "sources", "put_blob", "has_blob", "blob"}:
            super().__getattribute__("asked").append(name)
        return super().__getattribute__(name)

    def all_bytes(self) -> bytes:
        return b"\n".join(self.blobs.values())

    def drop_unnamed(self) -> None:
        """What a server does a day later with bytes that nothing names."""
        named = {
            one.sha256 for lists in self.source_lists.values() for each in lists.values() for one in each
        }
        self.blobs = {sha256: data for sha256, data in self.blobs.items() if sha256 in named}


@pytest.fixture
def remote() -> CountedRemote:
    return CountedRemote()


@pytest.fixture
def one(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "one")


@pytest.fixture
def other(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "other")


@contextlib.contextmanager
def syncing(machine: Machine, remote: MemoryRemote) -> Iterator[Syncing]:
    with machine.stores() as stores:
        work = Syncing(stores, remote, SERVER)
        try:
            yield work
        finally:
            work.bases.close()


def sync(machine: Machine, remote: MemoryRemote) -> Done:
    machine.clock.wind()  # type: ignore[attr-defined]
    with syncing(machine, remote) as work:
        done = work.carry_out(work.plan())
    assert not done.trouble
    return done


def exported(stores: Stores, form: str) -> bytes:
    thread = stores.threads.load(stores.threads.ids()[0])
    return b"".join(chunks_of(stores, native_session(stores, thread, form).main))


def fetched(stores: Stores, remote: MemoryRemote, form: str = "claude-code") -> int:
    thread = stores.threads.load(stores.threads.ids()[0])
    return fetch_from(stores, remote, thread, FORMS[form].agent)


@pytest.mark.parametrize("kind", KINDS)
def test_another_machine_gives_a_session_back_to_the_byte(
    one: Machine, other: Machine, remote: CountedRemote, kind: str
) -> None:
    form = kind.split(maxsplit=1)[0]
    place, data = KINDS[kind]
    write(one.home / place, data)
    one.bring_in()
    assert sync(one, remote).sources == 1
    sync(other, remote)
    with other.stores() as stores:
        with pytest.raises(MissingBytes):
            exported(stores, form)
        assert fetched(stores, remote, form) == len(data)
        assert exported(stores, form) == data
        before = len(remote.asked)
        assert exported(stores, form) == data
        assert len(remote.asked) == before


def test_every_file_of_a_session_lies_where_its_agent_looks_for_it(
    one: Machine, other: Machine, remote: CountedRemote, tmp_path: Path
) -> None:
    talk = a_session_with_everything()
    one.keep(talk)
    one.keep(a_sub_agent())
    one.bring_in()
    sync(one, remote)
    sync(other, remote)
    trees = []
    for machine in (one, other):
        with machine.stores() as stores:
            if machine is other:
                fetched(stores, remote)
            thread = stores.threads.load(stores.threads.ids()[0])
            folder = tmp_path / machine.folder.name / "out"
            write_session(stores, native_session(stores, thread, "claude-code"), folder)
            trees.append({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.jsonl")})
    assert trees[0] == trees[1]
    assert len(trees[0]) == 2


def test_no_path_leaves_the_machine(one: Machine, remote: CountedRemote) -> None:
    one.keep(a_short_session(), "-home-ada-secret-project")
    one.bring_in()
    sync(one, remote)
    told = repr(remote.source_lists)
    assert a_short_session().session in told
    assert "secret-project" not in told
    assert str(one.home) not in told


def test_nothing_is_asked_when_nothing_changed_and_a_longer_file_goes_on_where_it_was(
    one: Machine, other: Machine, remote: CountedRemote
) -> None:
    talk = ClaudeSession()
    talk.user("hello")
    one.keep(talk)
    one.bring_in()
    sync(one, remote)
    remote.asked.clear()
    assert sync(one, remote).sources == 0
    assert remote.asked == []
    talk.says("well")
    one.keep(talk)
    one.bring_in()
    assert sync(one, remote).sources == 1
    assert remote.asked == ["put_blob", "put_sources"]
    sync(other, remote)
    with other.stores() as stores:
        fetched(stores, remote)
        assert exported(stores, "claude-code") == talk.data


def test_a_server_that_forgot_bytes_is_given_them_again(one: Machine, remote: CountedRemote) -> None:
    talk = a_short_session()
    one.keep(talk)
    one.bring_in()
    with syncing(one, remote) as work:
        for segment in SharedSources(work.stores).segments(work.stores.threads.ids()[0]):
            work.bases.note_blob(segment.sha256)
    sync(one, remote)
    assert remote.all_bytes() == talk.data


def test_a_server_that_was_put_back_to_an_old_backup_is_given_all_again(
    one: Machine, remote: CountedRemote
) -> None:
    talk = a_short_session()
    one.keep(talk)
    one.bring_in()
    sync(one, remote)
    remote.blobs.clear()
    remote.source_lists.clear()
    remote.begin_epoch()
    remote.asked.clear()
    assert sync(one, remote).sources == 1
    assert remote.all_bytes() == talk.data
    assert remote.asked == ["put_blob", "put_sources"], "without being told what it lacks"


class TestPrivacy:
    def test_a_private_thread_gives_nothing(self, one: Machine, remote: CountedRemote) -> None:
        one.keep(a_short_session())
        one.bring_in()
        with one.stores() as stores, stores.threads.edit(stores.threads.ids()[0]) as editor:
            editor.set_private(True)
        sync(one, remote)
        assert (remote.asked, remote.blobs, remote.source_lists) == ([], {}, {})

    def test_one_that_was_made_private_takes_its_sources_back_and_gives_them_when_it_is_open_again(
        self, one: Machine, remote: CountedRemote
    ) -> None:
        one.keep(a_short_session())
        one.bring_in()
        sync(one, remote)
        for is_private in (True, False):
            one.clock.wind()  # type: ignore[attr-defined]
            with one.stores() as stores, stores.threads.edit(stores.threads.ids()[0]) as editor:
                editor.set_private(is_private)
            sync(one, remote)
            assert bool(any(remote.source_lists.values())) is not is_private

    def test_bytes_that_the_server_let_go_while_a_thread_was_private_are_given_again(
        self, one: Machine, remote: CountedRemote
    ) -> None:
        talk = ClaudeSession()
        talk.user(
            [picture(base64.b64encode(b"a xylophone" * 3_000).decode()), {"type": "text", "text": "this"}]
        )
        one.keep(talk)
        one.bring_in()
        sync(one, remote)
        held = dict(remote.blobs)
        assert len(held) == 2, "the picture, and the agent's own file"
        for is_private in (True, False):
            one.clock.wind()  # type: ignore[attr-defined]
            with one.stores() as stores, stores.threads.edit(stores.threads.ids()[0]) as editor:
                editor.set_private(is_private)
            sync(one, remote)
            if is_private:
                remote.blobs.clear()
        assert remote.blobs == held

    def test_bytes_that_a_private_thread_has_too_do_not_go_with_another_one(
        self, one: Machine, remote: CountedRemote
    ) -> None:
        """Before, and after it became private."""
        for session, words in ((None, "of the one"), (OTHER_SESSION, "of the other")):
            talk = ClaudeSession(session) if session else ClaudeSession()
            talk.user(words)
            one.keep(talk)
        one.bring_in()
        with one.stores() as stores:
            secret, public = stores.threads.ids()
            (path, segment), *_ = stores.ledger.segments_of(secret)
            stores.ledger.record((), [(path, replace(segment, thread_id=public))])
        sync(one, remote)
        assert len(remote.source_lists[public]["".join(remote.source_lists[public])]) == 2
        with one.stores() as stores, stores.threads.edit(secret) as editor:
            editor.set_private(True)
        sync(one, remote)
        (told,) = remote.source_lists[public].values()
        assert [each.sha256 for each in told] != []
        assert segment.sha256 not in {each.sha256 for each in told}
        assert secret not in remote.source_lists

    def test_words_that_were_erased_are_in_no_source_that_the_hub_has(
        self, one: Machine, other: Machine, remote: CountedRemote
    ) -> None:
        talk = ClaudeSession()
        talk.user("keep this")
        talk.says("the password is kohlrabi")
        for machine in (one, other):
            machine.keep(talk)
            machine.bring_in()
            sync(machine, remote)
        (lists,) = remote.source_lists.values()
        assert len(lists) == 2
        with one.stores() as stores:
            thread_id = stores.threads.ids()[0]
            undo(stores.threads, thread_id, 1)
            assert purge_removed(stores, thread_id)
        sync(one, remote)
        sync(other, remote)
        assert not any(remote.source_lists.values())
        remote.drop_unnamed()
        assert b"kohlrabi" not in remote.all_bytes()
        assert "kohlrabi" not in repr(remote.since(thread_id, 0, ""))
        talk.user("more")
        other.keep(talk)
        other.bring_in()
        sync(other, remote)
        assert not any(remote.source_lists.values())


class TestFetching:
    @pytest.fixture
    def session(self, one: Machine, other: Machine, remote: CountedRemote) -> ClaudeSession:
        talk = a_short_session()
        one.keep(talk)
        one.bring_in()
        sync(one, remote)
        sync(other, remote)
        return talk

    def test_what_was_fetched_is_known_to_the_doctor_and_goes_with_its_thread(
        self, other: Machine, remote: CountedRemote, session: ClaudeSession
    ) -> None:
        with other.stores() as stores:
            fetched(stores, remote)
            assert other.orphans() == set()
            (sha256,) = stores.blobs.ids()
            stores.blobs.delete(sha256)
            assert [finding.done for finding in check(stores, fix=True)] != []
            assert check(stores, fix=False) == []
            fetched(stores, remote)
            assert exported(stores, "claude-code") == session.data
            purge_thread(stores, stores.threads.ids()[0])
            assert list(stores.blobs.ids()) == []
        assert session.session.encode() not in other.everything_stored()

    def test_a_thread_whose_files_are_lost_is_built_anew_from_what_was_fetched(
        self, other: Machine, remote: CountedRemote, session: ClaudeSession
    ) -> None:
        texts = other.texts()
        with other.stores() as stores:
            fetched(stores, remote)
            for file in stores.paths.threads_dir.glob("T-*"):
                file.unlink()
        with other.stores() as stores:
            check(stores, fix=True)
        assert other.texts() == texts

    def test_it_is_not_told_as_this_machines_own(
        self, other: Machine, remote: CountedRemote, session: ClaudeSession
    ) -> None:
        with other.stores() as stores:
            fetched(stores, remote)
        assert sync(other, remote).sources == 0
        (lists,) = remote.source_lists.values()
        assert len(lists) == 1

    def test_turns_that_were_added_on_either_machine_come_out_the_same(
        self, one: Machine, other: Machine, remote: CountedRemote, session: ClaudeSession
    ) -> None:
        other.clock.wind()  # type: ignore[attr-defined]
        with other.stores() as stores:
            reply(stores.threads, stores.threads.ids()[0], "And the glaze?", parent="tip")
            fetched(stores, remote)
        sync(other, remote)
        sync(one, remote)
        with one.stores() as here, other.stores() as there:
            assert exported(here, "claude-code") == exported(there, "claude-code") != session.data

    def test_bytes_of_another_length_are_not_kept(
        self, other: Machine, remote: CountedRemote, session: ClaudeSession
    ) -> None:
        remote.blobs = {sha256: data + b"more" for sha256, data in remote.blobs.items()}
        with other.stores() as stores:
            assert fetched(stores, remote) == 0
            assert list(stores.blobs.ids()) == []
            with pytest.raises(InvalidInput):
                exported(stores, "claude-code")

    def test_no_server_is_asked_where_none_was_ever_signed_in_to(self, one: Machine) -> None:
        one.keep(a_short_session())
        one.bring_in()
        with one.stores() as stores:
            thread = stores.threads.load(stores.threads.ids()[0])
            assert fetch_sources(stores, thread, "claude-code") is None

    def test_what_the_server_does_not_have_stays_missing(
        self, other: Machine, remote: CountedRemote, session: ClaudeSession
    ) -> None:
        remote.source_lists.clear()
        with other.stores() as stores:
            assert fetched(stores, remote) == 0


def test_a_source_that_is_refused_keeps_no_thread_from_being_in_step(
    one: Machine, remote: CountedRemote
) -> None:
    def refuse(*_: object) -> None:
        raise TooLarge("it is too large")

    one.keep(a_short_session())
    one.bring_in()
    remote.put_blob = refuse  # type: ignore[method-assign,assignment]
    done = sync(one, remote)
    assert (list(done.source_trouble.values()), done.pushed) == (["it is too large"], 1)
    assert sync(one, remote).source_trouble == {}, "not before it is another one"


class TestAPurgeHere:
    def test_a_thread_that_was_purged_here_alone_does_not_come_back_until_it_is_wanted(
        self, one: Machine, other: Machine, remote: CountedRemote
    ) -> None:
        one.keep(a_short_session())
        one.bring_in()
        sync(one, remote)
        sync(other, remote)
        with syncing(other, remote) as work:
            thread_id = work.stores.threads.ids()[0]
            purge_thread(work.stores, thread_id)
            work.bases.forget(thread_id)
            assert work.stores.ledger.purged() == {thread_id}
        with one.stores() as stores, stores.threads.edit(thread_id) as editor:
            editor.rename("newer")
        sync(one, remote)
        remote.begin_epoch()
        for _ in range(2):
            sync(other, remote)
            assert other.threads() == []
        with syncing(other, remote) as work:
            work.carry_out(work.plan(revive=True))
            assert work.stores.threads.load(thread_id).title == "newer"
            assert work.stores.ledger.purged() == set()

    def test_what_is_purged_on_the_hub_stays_where_it_is_until_it_is_purged_there(
        self, one: Machine, other: Machine, remote: CountedRemote
    ) -> None:
        one.keep(a_short_session())
        one.bring_in()
        sync(one, remote)
        sync(other, remote)
        remote.purge(other.thread().id)
        with syncing(other, remote) as work:
            done = work.carry_out(work.plan())
        assert [note.code for note in done.trouble.values()] == ["purged"]
        assert other.thread().messages
