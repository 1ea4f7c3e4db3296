"""`raddle.record()` as a program uses it: with a real store, real git, threads, tasks, full disks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import raddle
from tests.builders import texts
from tests.builders_recording import a_repository, commit, git, running, stored
from tests.file_events import opened

CALL = {"id": "c1", "name": "read_file", "arguments": {"path": "a.py"}}
OTHER = {"id": "c2", "name": "run", "arguments": {}}
WAITING = "waiting_for_user_input"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the program runs in: no repository."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def configure(home: Path, text: str) -> None:
    folder = home / ".config" / "raddle"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text)


def test_a_session_is_a_thread_that_reads_like_any_other(workspace: Path) -> None:
    with raddle.record(provider="anthropic", model="m1", agent="kilnbot") as session:
        session.system("You are kind.")
        session.user("Add error handling to login\n\nplease")
        session.assistant(
            "I'll look.", [CALL], thinking="login, then", usage={"input_tokens": 8, "output_tokens": 2}
        )
        with session.tool("c1") as run:
            run.result = {"lines": 3}
        session.notice("the user saved a.py")
        session.calling()
        last = session.assistant("Done.", model="m2")
    thread = stored(session.thread_id)
    assert thread.title == "Add error handling to login"
    assert [(message.role, message.content, message.kind) for message in thread.messages] == [
        ("system", "You are kind.", "turn"),
        ("user", "Add error handling to login\n\nplease", "turn"),
        ("assistant", "I'll look.", "turn"),
        ("tool", '{"lines":3}', "turn"),
        ("system", "the user saved a.py", "notice"),
        ("assistant", "Done.", "turn"),
    ]
    assert [message.author for message in thread.messages] == ["kilnbot", "", *["kilnbot"] * 4]
    _, _, asked, result, _, answer = thread.tree.path_to_root(last)
    assert asked.thinking == "login, then"
    assert (asked.provider, asked.model, asked.usage) == (
        "anthropic",
        "m1",
        raddle.Usage(input_tokens=8, output_tokens=2),
    )
    assert (result.tool_call_id, result.tool_name, result.is_error) == ("c1", "read_file", False)
    assert (answer.provider, answer.model) == ("anthropic", "m2")
    assert (thread.plain("provider"), thread.plain("model")) == ("anthropic", "m2")
    assert thread.plain("workspace_root") == str(workspace)
    assert thread.agent_state == raddle.AgentState()
    with raddle.open() as store:
        assert [hit.thread.id for hit in store.search("lines")] == [session.thread_id]


def test_each_step_is_on_the_disk_when_it_returns() -> None:
    with raddle.record() as session:
        seen = []

        def look() -> None:
            thread = stored(session.thread_id)
            seen.append(
                (len(thread.tree), thread.agent_state.kind, len(thread.agent_state.pending_tool_calls))
            )

        session.user("hello")
        look()
        with session.stream() as reply:
            reply.write("I'll ")
            look()
            reply.call(CALL)
            reply.call(OTHER)
        look()
        with session.tool("c1"):
            look()
        look()
        with session.tool("c2"):
            pass
        look()
        session.error("overloaded")
        look()
        session.retry()
        look()
    assert seen == [
        (1, "calling_llm", 0),
        (1, "processing_llm_response", 0),
        (2, "executing_tools", 2),
        (2, "executing_tools", 2),
        (3, "executing_tools", 1),
        (4, "post_tools_hook", 0),
        (4, "error", 0),
        (4, "calling_llm", 0),
    ]


def test_a_session_in_which_nobody_spoke_leaves_no_file() -> None:
    with raddle.record() as session:
        assert session.head is None
    with raddle.open() as store:
        assert list(store) == []
        assert session.thread_id not in store


def test_git_is_looked_at_at_the_start_after_each_tool_and_at_the_end(tmp_path: Path) -> None:
    repository = a_repository(tmp_path / "repository")
    first = git(repository, "rev-parse", "HEAD")
    with raddle.record(repository) as session:
        session.user("commit twice")
        session.assistant("", [CALL, OTHER])
        with session.tool("c1"):
            second, third = commit(repository, "second"), commit(repository, "third")
        thread = stored(session.thread_id)
        assert thread.git_commits == [first, second, third]
        assert thread.plain("git_current_commit_sha") == third
        with session.tool("c2"):
            git(repository, "checkout", "-q", "-b", "fix/login")
        assert stored(session.thread_id).plain("git_branch") == "fix/login"
        session.assistant("Done.")
        (repository / "file.txt").write_text("not committed")
    thread = stored(session.thread_id)
    assert thread.plain("git_initial_commit_sha") == first
    assert (thread.plain("git_initial_branch"), thread.plain("git_branch")) == ("main", "fix/login")
    assert (thread.plain("git_start_dirty"), thread.plain("git_end_dirty")) == (False, True)
    assert thread.plain("git_remote_url") == "example.org/me/kiln"
    assert thread.plain("workspace_root") == str(repository)


def test_commits_on_a_branch_that_a_tool_left_again_are_noted(tmp_path: Path) -> None:
    repository = a_repository(tmp_path / "repository")
    first = git(repository, "rev-parse", "HEAD")
    with raddle.record(repository) as session:
        session.user("try it on a branch")
        with session.tool("c1", "run"):
            git(repository, "checkout", "-q", "-b", "try")
            aside = commit(repository, "aside")
            git(repository, "checkout", "-q", "main")
        thread = stored(session.thread_id)
        assert thread.git_commits == [first, aside]
        assert (thread.plain("git_branch"), thread.plain("git_current_commit_sha")) == ("main", first)
        with session.tool("c2", "run"):
            git(repository, "checkout", "-q", "try")
            more = commit(repository, "more")
            git(repository, "checkout", "-q", "main")
            last = commit(repository, "last")
        assert stored(session.thread_id).git_commits == [first, aside, more, last]


def test_without_a_workspace_it_is_the_repository_around_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = a_repository(tmp_path / "repository")
    (repository / "src").mkdir()
    monkeypatch.chdir(repository / "src")
    with raddle.record() as session:
        session.user("hello")
    thread = stored(session.thread_id)
    assert thread.plain("workspace_root") == str(repository)
    assert thread.plain("cwd") == str(repository / "src")


def test_a_program_that_moves_elsewhere_is_still_recorded_where_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = a_repository(tmp_path / "repository")
    monkeypatch.chdir(repository)
    with raddle.record(".") as session:
        session.user("go")
        monkeypatch.chdir(tmp_path)
        session.assistant("", [CALL])
        with session.tool("c1"):
            sha = commit(repository, "second")
    assert stored(session.thread_id).plain("git_current_commit_sha") == sha


def test_a_tool_that_raises_leaves_its_error_as_the_result_and_raises_on() -> None:
    with raddle.record() as session:
        session.user("read it")
        session.assistant("", [CALL])
        with pytest.raises(FileNotFoundError), session.tool("c1") as run:
            run.result = "half of it"
            raise FileNotFoundError("a.py is not there")
        assert session.state.kind == "post_tools_hook"
        session.assistant("It is not there.")
    result = stored(session.thread_id).messages[2]
    assert result.is_error
    assert result.content == "half of it\n\nFileNotFoundError: a.py is not there"


def test_a_tool_may_say_itself_that_it_failed_and_need_not_have_been_announced() -> None:
    with raddle.record() as session:
        session.user("run it")
        with session.tool("c9", "run") as run:
            assert [call.call_id for call in session.state.pending_tool_calls] == ["c9"]
            run.result, run.is_error = b"exit 1", True
    result = stored(session.thread_id).messages[1]
    assert (result.tool_name, result.content, result.is_error) == ("run", "exit 1", True)


def test_an_exception_leaves_the_state_error_with_its_words_and_open_calls() -> None:
    with pytest.raises(ZeroDivisionError), raddle.record() as session:
        session.user("hello")
        session.assistant("", [CALL, OTHER])
        with session.tool("c1"):
            raise ZeroDivisionError("by zero")
    state = stored(session.thread_id).agent_state
    assert (state.kind, state.last_error) == ("error", "ZeroDivisionError: by zero")
    assert [call.call_id for call in state.pending_tool_calls] == ["c2"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, EOFError])
def test_a_program_that_ends_at_the_prompt_leaves_its_user_the_next_word(stop: type[BaseException]) -> None:
    with pytest.raises(stop), raddle.record() as session:
        session.user("hello")
        session.assistant("What can I do for you?")
        raise stop
    assert stored(session.thread_id).agent_state == raddle.AgentState()


def test_a_turn_that_nobody_answered_is_not_said_to_wait_for_the_user() -> None:
    with raddle.record() as session:
        session.user("hello")
    state = stored(session.thread_id).agent_state
    assert (state.kind, state.last_error) == ("shutting_down", "stopped while calling_llm")


def test_an_answer_that_is_cut_keeps_what_had_come() -> None:
    with raddle.record(model="m1") as session:
        session.user("tell me a story")
        with pytest.raises(ConnectionResetError), session.stream() as reply:
            reply.think("a kiln")
            reply.write("Once ")
            reply.write("upon")
            raise ConnectionResetError("by peer")
        assert (session.state.kind, session.state.last_error) == ("error", "ConnectionResetError: by peer")
        session.retry()
        assert (session.state.kind, session.state.retries) == ("calling_llm", 1)
        with session.stream() as again:
            again.write("Once upon a time")
        session.user("and then?")
    thread = stored(session.thread_id)
    cut = thread.messages[1]
    assert (cut.content, cut.thinking, cut.model) == ("Once upon", "a kiln", "m1")
    assert cut.extra == {"cut_by": "ConnectionResetError"}
    tip = thread.tree.tip()
    assert tip is not None
    assert texts(thread.tree.path_to_root(tip.id)) == ["tell me a story", "Once upon a time", "and then?"]


def test_an_answer_of_which_nothing_had_come_leaves_no_message() -> None:
    with raddle.record() as session:
        session.user("hello")
        with pytest.raises(TimeoutError), session.stream():
            raise TimeoutError
    assert texts(stored(session.thread_id).messages) == ["hello"]


def test_an_answer_still_coming_in_elsewhere_at_the_end_is_kept_as_cut() -> None:
    with raddle.record() as session:
        session.user("hello")
        reply = session.stream().__enter__()
        reply.write("Hel")
    reply.__exit__(None, None, None)
    thread = stored(session.thread_id)
    assert texts(thread.messages) == ["hello", "Hel"]
    assert thread.agent_state.last_error == "stopped while processing_llm_response"


def test_a_thread_goes_on_where_it_was_with_the_calls_that_were_open(workspace: Path) -> None:
    with pytest.raises(RuntimeError), raddle.record() as first:
        first.user("hello")
        first.assistant("I'll look.", [CALL])
        raise RuntimeError
    with raddle.record(thread=first.thread_id[:20]) as session:
        assert session.thread_id == first.thread_id
        assert session.state.kind == "error"
        for call in session.state.pending_tool_calls:
            with session.tool(call.call_id) as run:
                run.result = "seen"
        session.assistant("There.")
    thread = stored(first.thread_id)
    tip = thread.tree.tip()
    assert tip is not None
    assert texts(thread.tree.path_to_root(tip.id)) == ["hello", "I'll look.", "seen", "There."]
    assert thread.messages[2].tool_name == "read_file"
    assert thread.agent_state == raddle.AgentState()
    assert thread.plain("workspace_root") == str(workspace)


def test_a_thread_goes_on_under_the_message_that_is_named() -> None:
    with raddle.record() as first:
        first.user("hello")
        middle = first.assistant("What can I do for you?")
        first.user("nothing")
    with raddle.record(thread=first.thread_id, parent=middle) as session:
        branch = session.user("a kiln, please")
    with raddle.record(thread=first.thread_id, parent="root") as session:
        fresh = session.user("something else")
    tree = stored(first.thread_id).tree
    assert texts(tree.path_to_root(branch)) == ["hello", "What can I do for you?", "a kiln, please"]
    assert texts(tree.path_to_root(fresh)) == ["something else"]


def test_a_thread_that_goes_on_stays_in_the_folder_it_was_in(tmp_path: Path, workspace: Path) -> None:
    repository = a_repository(tmp_path / "repository")
    with raddle.record(repository) as first:
        first.user("hello")
    with raddle.record(thread=first.thread_id) as session:
        session.user("more")
    assert stored(first.thread_id).plain("workspace_root") == str(repository)
    with raddle.record(workspace, thread=first.thread_id) as session:
        session.user("and here")
    assert stored(first.thread_id).plain("workspace_root") == str(workspace)


def test_opening_a_session_of_a_thread_writes_nothing_until_a_step() -> None:
    with raddle.record() as first:
        first.user("hello")
    before = stored(first.thread_id)
    with raddle.record(thread=first.thread_id):
        pass
    after = stored(first.thread_id)
    assert (after.version, after.registers) == (before.version, before.registers)


def test_a_session_says_by_its_errors_what_it_cannot_find() -> None:
    with pytest.raises(raddle.NotFound, match="no thread"), raddle.record(thread="T-018e2b3c"):
        pass
    with pytest.raises(raddle.NotFound, match="no folder"), raddle.record("nowhere"):
        pass
    with pytest.raises(raddle.InvalidInput, match="without its thread"):
        raddle.record(parent="root")
    with pytest.raises(raddle.InvalidInput, match="on_error"):
        raddle.record(on_error="ignore")  # type: ignore[arg-type]


def test_a_session_outside_its_block_says_so() -> None:
    session = raddle.record()
    with pytest.raises(raddle.UserError, match="not open"):
        session.user("hello")
    with session:
        session.user("hello")
        with pytest.raises(raddle.UserError, match="opened before"), session:
            pass
    with pytest.raises(raddle.UserError, match="over"):
        session.user("hello")


def test_private_is_so_from_the_first_byte(home: Path, workspace: Path) -> None:
    configure(home, f"[private]\nworkspaces = ['{workspace}']\n")
    with raddle.record() as session:
        session.user("a secret")
        file = home / ".local/share/raddle/threads" / f"{session.thread_id}.json"
        assert b'"is_private": true' in file.read_bytes()
    thread = stored(session.thread_id)
    assert (thread.is_private, thread.visibility) == (True, "private")


def test_a_rule_for_a_remote_and_the_option_make_it_private_too(home: Path, tmp_path: Path) -> None:
    repository = a_repository(tmp_path / "repository")
    with raddle.record(repository) as open_one:
        open_one.user("nothing to hide")
    with raddle.record(private=True) as by_option:
        by_option.user("a secret")
    configure(home, "[private]\nremotes = ['example.org/me/kiln']\n")
    with raddle.record(repository) as by_rule:
        by_rule.user("a secret")
    with raddle.record(thread=open_one.thread_id) as goes_on:
        goes_on.user("a secret after all")
    private = [stored(one.thread_id).is_private for one in (by_option, by_rule, goes_on)]
    assert private == [True, True, True]


def test_a_rule_that_is_misspelt_lets_nothing_be_recorded(home: Path) -> None:
    configure(home, "[private]\nworkspace = ['/w']\n")
    with (
        pytest.raises(raddle.InvalidInput, match=r"private\.workspace is not a setting"),
        raddle.record() as session,
    ):
        session.user("must not be public")
    assert not list(home.rglob("T-*.json"))


def test_a_long_result_is_kept_whole_beside_the_thread(home: Path) -> None:
    long = "kiln " * 400_000
    with raddle.record() as session:
        session.user("read it all")
        session.assistant("", [CALL])
        with session.tool("c1") as run:
            run.result = long
    message = stored(session.thread_id).messages[2]
    assert len(message.content.encode()) <= 1 << 20
    (attachment,) = message.attachments
    assert (attachment.is_body, attachment.size) == (True, len(long))
    assert (home / ".local/share/raddle/blobs").exists()


def test_several_sessions_of_a_process_do_not_see_each_other() -> None:
    with raddle.record() as one, raddle.record() as other:
        one.user("one")
        other.user("other")
        one.assistant("1")
        other.assistant("2")
    assert texts(stored(one.thread_id).messages) == ["one", "1"]
    assert texts(stored(other.thread_id).messages) == ["other", "2"]


def test_threads_of_a_program_may_all_record_into_one_session() -> None:
    with raddle.record() as session:
        session.user("do it all at once")
        session.assistant("", [{"id": f"c{n}", "name": "run"} for n in range(8)])

        def run_tool(number: int) -> None:
            with session.tool(f"c{number}") as run:
                run.result = f"result {number}"

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(run_tool, range(8)))
        session.assistant("All done.")
    thread = stored(session.thread_id)
    results = {message.tool_call_id: message.content for message in thread.messages if message.role == "tool"}
    assert results == {f"c{n}": f"result {n}" for n in range(8)}
    tip = thread.tree.tip()
    assert tip is not None
    assert len(thread.tree.path_to_root(tip.id)) == 11
    assert thread.agent_state == raddle.AgentState()


def test_processes_that_record_into_one_thread_lose_nothing_of_each_other() -> None:
    with raddle.record() as first:
        first.user("who is there?")
    code = """
with raddle.record(thread=sys.argv[1], agent=sys.argv[2]) as session:
    reached(); sys.stdin.readline()
    for n in range(25):
        session.user(f"{sys.argv[2]} asks {n}")
        session.assistant(f"{sys.argv[2]} says {n}")
"""
    with running(code, first.thread_id, "A") as one, running(code, first.thread_id, "B") as other:
        for program in (one, other):
            assert program.hear() == "here"
        for program in (one, other):
            program.go_on()
        for program in (one, other):
            assert program.process.wait(60) == 0, program.errors()
    thread = stored(first.thread_id)
    for name in "AB":
        last = next(message for message in thread.messages if message.content == f"{name} says 24")
        path = texts(thread.tree.path_to_root(last.id))
        expected = [f"{name} {word} {n}" for n in range(25) for word in ("asks", "says")]
        assert path == ["who is there?", *expected]
    assert len(thread.tree) == 101
    assert thread.tree.lost() == []


def test_what_others_do_to_the_thread_meanwhile_stays() -> None:
    with raddle.record() as session:
        session.user("hello")
        with raddle.open() as store, store.edit(session.thread_id) as editor:
            editor.rename("Another title")
            editor.tag("kiln")
            editor.append("user", "said elsewhere")
        session.assistant("hi")
    thread = stored(session.thread_id)
    assert (thread.title, thread.tags) == ("Another title", ["kiln"])
    assert sorted(texts(thread.messages)) == ["hello", "hi", "said elsewhere"]
    assert texts(thread.tree.path_to_root(session.head)) == ["hello", "hi"]


def test_a_step_of_a_long_session_reads_no_more_than_one_of_a_short_one(home: Path) -> None:
    """Neither the thread's file nor more than the end of its journal; once in a while it is folded."""
    with raddle.record() as session:
        session.user("x" * 1000)
        for _ in range(3):
            for _ in range(60):
                session.user("x" * 1000)
                session.assistant("y" * 1000)
            counts = [_opened_by(lambda: session.user("z")) for _ in range(3)]
            assert min(counts) == 0
        journal = home / ".local/share/raddle/threads" / f"{session.thread_id}.journal"
        assert len(journal.read_bytes().splitlines()[-1]) < 2_000


def _opened_by(step: Callable[[], object]) -> int:
    """How many thread files a step opens."""
    with opened.listening():
        step()
    return sum(path.endswith(".json") for path in opened.paths)
