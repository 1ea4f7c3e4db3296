"""OpenCode's database and its older folder, real ones: what is listed, what is read, and what of it is new."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from raddle.actions.importing.opencode import OpenCode
from raddle.actions.importing.run_plan import FileProblem
from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.opencode_store import Database, is_export, open_collection
from raddle.adapters.agent_homes.read_only_sqlite import forget_copies
from tests.builders_opencode import (
    FOLDER,
    SESSION,
    START,
    OpenCodeSession,
    a_session_with_everything,
    a_short_session,
    delegates,
    ran,
    runs,
    shown,
)
from tests.builders_opencode_stores import (
    SHARE_URL,
    Reader,
    connected,
    lines_of,
    members,
    remove,
    store,
    touch,
    write_folder,
)
from tests.contract.source_laws import an_entry
from tests.reading import Reading, named, read

OTHER = "ses_other000000000000000000001"


def make(folder: Path, *sessions: OpenCodeSession) -> Path:
    """A database that its program has closed."""
    path = folder / "opencode.db"
    connection = connected(path)
    for session in sessions:
        store(connection, session)
    connection.close()
    return path


def all_of(path: Path) -> dict[str, Reading]:
    """Every session of a store, read from its start."""
    collection = open_collection(str(path))
    found = {}
    for member in members(collection):
        source = collection.open(member)
        found[member.session] = read(OpenCode(), named(member.session), lines_of(source))
        source.close()
    return found


def ids_and_words(reading: Reading) -> list[tuple[str, str | None, str]]:
    return [(message.id, message.parent_id, message.content) for message in reading.thread.messages]


def test_a_database_gives_its_sessions_with_their_sub_agents(tmp_path: Path) -> None:
    other = OpenCodeSession(OTHER)
    other.user("elsewhere")
    path = make(tmp_path, a_session_with_everything(), other)
    found = all_of(path)
    assert found.keys() == {SESSION, OTHER}
    reading = found[SESSION]
    assert reading.problems == []
    assert reading.message("look left").parent_id == reading.message("I delegate.").id
    assert reading.register("title") == "Bowls in blue"
    assert {member.workspace for member in members(open_collection(str(path)))} == {FOLDER}


def test_rows_are_read_as_the_lines_that_were_told(tmp_path: Path) -> None:
    session = a_short_session()
    reading = all_of(make(tmp_path, session))[SESSION]
    told = read(OpenCode(), named(SESSION), session.lines)
    assert ids_and_words(reading) == ids_and_words(told)


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    lines = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        collection = open_collection(str(make(tmp_path / name, a_session_with_everything())))
        source = collection.open(members(collection)[0])
        lines.append(lines_of(source))
        source.close()
    assert lines[0] == lines[1]
    assert not any(SHARE_URL.encode() in line for line in lines[0]), "a link that opens the session to anyone"


def test_the_folder_gives_what_the_database_gives(tmp_path: Path) -> None:
    session = a_session_with_everything()
    write_folder(tmp_path / "storage", session)
    write_folder(tmp_path / "loose" / "storage", session, is_loose=True)
    expected = ids_and_words(all_of(make(tmp_path, session))[SESSION])
    for folder in (tmp_path / "storage", tmp_path / "loose" / "storage"):
        found = all_of(folder)
        assert found.keys() == {SESSION}
        assert ids_and_words(found[SESSION]) == expected, folder
        assert found[SESSION].register("workspace_root") == FOLDER


def test_one_session_in_both_stores_is_one_thread(tmp_path: Path) -> None:
    session = a_short_session()
    write_folder(tmp_path / "storage", session)
    session.says(session.user("And now?"), "Warm.")
    newer, older = all_of(make(tmp_path, session))[SESSION], all_of(tmp_path / "storage")[SESSION]
    assert newer.ending.thread_id == older.ending.thread_id
    newer.thread.join(older.thread.whole())
    assert newer.texts() == [*older.texts(), "And now?", "Warm."]


def test_messages_whose_session_file_is_lost_are_a_session_still(tmp_path: Path) -> None:
    write_folder(tmp_path / "storage", a_short_session())
    shutil.rmtree(tmp_path / "storage" / "session")
    reading = all_of(tmp_path / "storage")[SESSION]
    assert reading.path()[0] == "Why is the kiln cold?"
    assert reading.register("title") == "Why is the kiln cold?"


def test_a_broken_file_costs_itself(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    write_folder(root, a_short_session())
    (last,) = (root / "message" / SESSION).glob("*3.json")
    last.write_text('{"id": "x", "role": "assist')
    (part,) = (root / "part").glob("*2/002.json")
    part.write_bytes(b'{"type":"text","text":"two\nlines"}')
    collection = open_collection(str(root))
    source = collection.open(members(collection)[0])
    reading = read(OpenCode(), named(SESSION), lines_of(source))
    assert reading.path() == ["Why is the kiln cold?", "two\nlines", "relay open"]
    reasons = [problem.reason for problem in reading.problems]
    assert reasons == ["JSON that is not quite that, and was mended", "a message that is no JSON object"]


def test_a_broken_session_file_is_told_and_its_messages_are_read(tmp_path: Path) -> None:
    write_folder(tmp_path / "storage", a_short_session())
    (file,) = (tmp_path / "storage" / "session").rglob("*.json")
    file.write_text("{")
    found = list(open_collection(str(tmp_path / "storage")).members())
    assert [one.path for one in found if isinstance(one, FileProblem)] == [str(file)]
    assert len(found) == 2


def test_what_grew_is_told_alone(tmp_path: Path) -> None:
    session = a_short_session()
    path = tmp_path / "opencode.db"
    connection = connected(path)
    store(connection, session)
    reader = Reader(open_collection(str(path)))
    assert len(reader.read().thread.messages) == 4
    message = session.says(session.user("And now?"), runs("c2", command="ls"))
    store(connection, session)
    assert len(reader.read().thread.messages) == 6
    session.now += 1000
    session.change(message, "I look.", ran("c2", "warm", command="ls"))
    store(connection, session)
    assert reader.read().path()[-2:] == ["I look.", "warm"]
    assert reader.wholes == 1
    assert len(reader.told) < 6, "nothing that is not needed to place what is new"
    connection.close()


def test_changes_are_read_up_to_the_newest_part(tmp_path: Path) -> None:
    session = a_short_session()
    path = tmp_path / "opencode.db"
    connection = connected(path)
    store(connection, session)
    connection.execute("UPDATE part SET time_updated = ? WHERE id LIKE '%0002000'", (session.now + 9,))
    collection = open_collection(str(path))
    source = collection.open(members(collection)[0])
    size = sum(len(line) + 1 for line in lines_of(source))
    assert source.tail(size) == str(session.now + 9)
    source.close()
    connection.close()


def test_lines_of_another_form_are_read_anew(tmp_path: Path) -> None:
    collection = open_collection(str(make(tmp_path, a_short_session())))
    source = collection.open(members(collection)[0])
    assert source.grew_from(an_entry(10, source.head(10), "1769936400000"))
    assert not source.grew_from(an_entry(10, "another form", "1769936400000"))
    assert not source.grew_from(an_entry(10, source.head(10), "no time"))
    assert source.grew_from(an_entry(0, "", ""))
    source.close()


def test_what_is_typed_after_a_deep_step_back_finds_its_place(tmp_path: Path) -> None:
    session = OpenCodeSession()
    first = session.says(session.user("begin"), "begun")
    for number in range(150):
        session.says(session.user(f"question {number}"), f"answer {number}")
    path = tmp_path / "opencode.db"
    connection = connected(path)
    store(connection, session)
    reader = Reader(open_collection(str(path)))
    reader.read()
    remove(connection, session, *[name for name in session.messages if name > first])
    session.now += 1000
    session.user("typed again", after=first)
    store(connection, session)
    reading = reader.read()
    assert reader.wholes == 1
    assert reading.path() == ["begin", "begun", "typed again"]
    assert "answer 149" in reading.texts()
    connection.close()


def test_an_old_message_that_changed_finds_its_place(tmp_path: Path) -> None:
    session = OpenCodeSession()
    asked = session.user("begin")
    session.says(asked, "a first answer")
    first = session.says(asked, "calling", runs("c1", command="make"))
    for number in range(250):
        session.says(session.user(f"question {number}"), f"answer {number}")
    path = tmp_path / "opencode.db"
    connection = connected(path)
    store(connection, session)
    reader = Reader(open_collection(str(path)))
    before = len(reader.read().thread.messages)
    session.now += 1000
    session.change(first, "calling, and done", ran("c1", "made", command="make"))
    store(connection, session)
    after = reader.read()
    assert (reader.wholes, len(after.thread.messages)) == (1, before + 1)
    assert after.message("calling, and done").parent_id == after.message("a first answer").id
    connection.close()


def test_a_step_back_and_what_is_typed_then_are_what_the_person_did(tmp_path: Path) -> None:
    session = a_short_session()
    last = session.last[SESSION]
    asked = session.user("Heat it")
    hot = session.says(asked, "Hot.", delegates("t1", "look left", "ses_left"))
    session.sub_agent("ses_left")
    look = session.user("look left", session="ses_left")
    path = tmp_path / "opencode.db"
    connection = connected(path)
    store(connection, session)
    reader = Reader(open_collection(str(path)))
    assert reader.read().path()[-1] == "Hot."
    session.now += 1000
    session.header(SESSION, revert={"messageID": asked, "snapshot": "x" * 40, "diff": "secret words"})
    store(connection, session)
    assert reader.read().path()[-1] == "The relay is open."
    assert not any(b"secret words" in line for line in reader.told)
    session.now += 1000
    session.header(SESSION, revert=None)
    store(connection, session)
    assert reader.read().path()[-2:] == ["Heat it", "Hot."]
    session.now += 1000
    session.header(SESSION, revert={"messageID": asked})
    store(connection, session)
    reader.read()
    session.now += 1000
    session.header(SESSION, revert=None)
    remove(connection, session, asked, hot, look)
    session.says(session.user("No, dry it", after=last), "Dry.")
    store(connection, session)
    reading = reader.read()
    assert reading.path()[-3:] == ["The relay is open.", "No, dry it", "Dry."]
    assert {"Heat it", "Hot.", "look left"} <= set(reading.texts()), "the archive never shrinks"
    assert reader.wholes == 1
    connection.close()


def test_any_change_of_a_session_shows_in_its_listing(tmp_path: Path) -> None:
    session = a_session_with_everything()
    other = OpenCodeSession(OTHER)
    other.user("elsewhere")
    path = tmp_path / "opencode.db"
    connection = connected(path)
    store(connection, session)
    store(connection, other)
    collection = open_collection(str(path))

    def listed() -> dict[str, tuple[int, int]]:
        return {member.session: (member.size, member.changed_ns) for member in members(collection)}

    seen = [listed()]
    assert listed() == seen[0]
    asked = session.user("one more")
    store(connection, session)
    seen.append(listed())
    session.says(asked, "streaming")
    store(connection, session)
    seen.append(listed())
    session.now += 1000
    session.change(session.last[SESSION] or "", "streaming, and done")
    store(connection, session)
    seen.append(listed())
    session.now += 1000
    session.header(SESSION, title="renamed")
    store(connection, session)
    seen.append(listed())
    session.says(session.user("more", session="ses_left"), "left", session="ses_left")
    store(connection, session)
    seen.append(listed())
    changes = [one[SESSION] for one in seen]
    assert len(set(changes)) == len(changes)
    assert len({one[OTHER] for one in seen}) == 1
    connection.close()


def test_the_stamp_of_a_database_changes_with_its_log(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    connection = connected(path)
    collection = open_collection(str(path))
    before = collection.stat()
    assert collection.stat() == before
    store(connection, a_short_session())
    assert collection.stat() != before
    connection.close()


def test_the_stamp_of_a_folder_changes_with_its_sessions_and_the_message_at_work(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    session = a_short_session()
    write_folder(root, session)
    collection = open_collection(str(root))
    stats = [collection.stat()]
    assert collection.stat() == stats[0]
    (part,) = (root / "part").glob("*3/000.json")
    touch(part, session.now + 9000)
    stats.append(collection.stat())
    session.user("more")
    write_folder(root, session)
    stats.append(collection.stat())
    assert len({(one.size, one.mtime_ns, one.inode) for one in stats}) == 3


def test_a_folder_that_grew_is_read_on(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    session = a_short_session()
    for number in range(20):
        session.says(session.user(f"question {number}"), f"answer {number}")
    write_folder(root, session)
    for number, file in enumerate(sorted(root.rglob("*.json"))):
        touch(file, START + number)
    reader = Reader(open_collection(str(root)))
    reader.read()
    session.says(session.user("And now?"), "Warm.")
    write_folder(root, session)
    assert reader.read().path()[-2:] == ["And now?", "Warm."]
    assert reader.wholes == 1
    assert len(reader.told) < 8


def test_a_session_that_is_read_while_it_is_written_is_of_one_moment(tmp_path: Path) -> None:
    session = a_short_session()
    for number in range(30):
        session.says(session.user(f"question {number}", shown("x" * 100_000)), f"answer {number}")
    path = tmp_path / "opencode.db"
    connection = connected(path)
    store(connection, session)
    collection = open_collection(str(path))
    source = collection.open(members(collection)[0])
    batches = source.read(0, 1, lambda _: None)
    first = next(batches)
    session.user("came meanwhile")
    remove(connection, session, "msg_kiln0004")
    store(connection, session)
    lines = [*first.lines, *(line for batch in batches for line in batch.lines)]  # type: ignore[union-attr]
    source.close()
    texts = read(OpenCode(), named(SESSION), lines).texts()
    assert "question 0" in texts
    assert "came meanwhile" not in texts
    connection.close()


def test_nothing_is_written_where_the_agent_keeps_its_own(tmp_path: Path) -> None:
    path = make(tmp_path, a_session_with_everything())
    write_folder(tmp_path / "storage", a_session_with_everything())

    def look() -> dict[str, tuple[int, int]]:
        return {str(one): (one.stat().st_size, one.stat().st_mtime_ns) for one in tmp_path.rglob("*")}

    before = look()
    all_of(path)
    all_of(tmp_path / "storage")
    assert look() == before


def test_rows_in_a_circle_and_rows_of_nobody_are_listed_once(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    connection = connected(path)
    one, two, orphan = (OpenCodeSession(name) for name in ("ses_b", "ses_a", "ses_orphan"))
    for session in (one, two, orphan):
        session.user(f"in {session.session}")
        store(connection, session)
    connection.execute("UPDATE session SET parent_id = 'ses_a' WHERE id = 'ses_b'")
    connection.execute("UPDATE session SET parent_id = 'ses_b' WHERE id = 'ses_a'")
    connection.execute("UPDATE session SET parent_id = 'ses_gone' WHERE id = 'ses_orphan'")
    connection.close()
    found = all_of(path)
    assert found.keys() == {"ses_a", "ses_orphan"}
    assert sorted(found["ses_a"].texts()) == ["in ses_a", "in ses_b"]
    assert not found["ses_orphan"].thread.messages[0].is_sidechain


def test_columns_of_other_versions_are_done_without(tmp_path: Path) -> None:
    path = make(tmp_path, a_short_session())
    connection = connected(path)
    for column in ("agent", "model", "time_archived", "revert"):
        connection.execute(f"ALTER TABLE session DROP COLUMN {column}")
    connection.close()
    assert all_of(path)[SESSION].register("title") == "Cold kiln"


def test_sessions_that_a_later_version_keeps_otherwise_are_told(tmp_path: Path) -> None:
    path = make(tmp_path, a_short_session())
    connection = connected(path)
    connection.execute("CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL)")
    assert len(members(open_collection(str(path)))) == 1
    connection.execute(
        "INSERT INTO session_message VALUES ('m1', 'ses_later'), ('m2', 'ses_later'), ('m3', ?)", (SESSION,)
    )
    connection.close()
    (problem,) = [one for one in open_collection(str(path)).members() if isinstance(one, FileProblem)]
    assert problem.reason.startswith("1 of its sessions are kept in a way (`session_message`)")


def test_rows_that_are_no_json_cost_themselves(tmp_path: Path) -> None:
    path = make(tmp_path, a_short_session())
    connection = connected(path)
    connection.execute("UPDATE part SET data = 'no json' WHERE data LIKE '%relay is open%'")
    connection.execute(
        "UPDATE part SET data = CAST(X'7B2274797065223A2274657874222C2274657874223A22FF227D' AS TEXT)"
        " WHERE data LIKE '%Why is%'"
    )
    connection.execute("UPDATE session SET model = 'no json', revert = '[]'")
    connection.close()
    reading = all_of(path)[SESSION]
    assert reading.path() == ["\ufffd", "I'll look.", "relay open"]
    assert len(reading.problems) == 2


@pytest.mark.parametrize("content", [b"SQLite format 3\0" + b"x" * 5000, b"no database" * 100, b""])
def test_a_file_that_is_no_such_database_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(content)
    with pytest.raises(SourceError):
        list(open_collection(str(path)).members())
    other = path.rename(tmp_path / "another program's.db")
    assert not is_export(str(other), content[:4096])


def test_a_database_is_known_by_its_tables(tmp_path: Path) -> None:
    path = make(tmp_path, a_short_session())
    assert is_export(str(path), path.read_bytes()[:4096])
    other = tmp_path / "other.db"
    connection = connected(other)
    connection.execute("DROP TABLE part")
    connection.close()
    assert not is_export(str(other), other.read_bytes()[:4096])


def test_what_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        open_collection(str(tmp_path / "opencode.db")).stat()
    path = make(tmp_path, a_short_session())
    (member,) = members(open_collection(str(path)))
    connection = connected(path)
    connection.execute("DELETE FROM session")
    connection.close()
    source = open_collection(str(path)).open(member)
    with pytest.raises(SourceError, match="not there any more"):
        lines_of(source)
    source.close()


def test_a_log_without_its_index_is_read_from_a_copy(tmp_path: Path) -> None:
    live, copied, scratch = tmp_path / "live", tmp_path / "copied", tmp_path / "scratch"
    for folder in (live, copied, scratch):
        folder.mkdir()
    connection = connected(live / "opencode.db")
    store(connection, a_short_session())
    for suffix in ("", "-wal"):
        shutil.copy(f"{live}/opencode.db{suffix}", copied)
    connection.close()
    collection = Database(str(copied / "opencode.db"), scratch=str(scratch))
    (member,) = members(collection)
    source = collection.open(member)
    assert read(OpenCode(), named(SESSION), lines_of(source)).path()[-1] == "The relay is open."
    source.close()
    forget_copies()
    assert list(scratch.iterdir()) == []
    assert {path.name for path in copied.iterdir()} == {"opencode.db", "opencode.db-wal"}


def test_a_line_too_long_to_read_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raddle.adapters.agent_homes.line_batches.MAX_LINE_BYTES", 2000)
    session = a_short_session()
    session.user("x" * 3000)
    session.user("after")
    collection = open_collection(str(make(tmp_path, session)))
    source = collection.open(members(collection)[0])
    sizes = [
        (type(batch).__name__, batch.read_to)  # type: ignore[union-attr]
        for batch in source.read(0, 1, lambda _: None)
    ]
    source.close()
    assert [name for name, _ in sizes] == ["Lines", "TooLong", "Lines"]
    assert sizes == sorted(sizes, key=lambda one: one[1])
