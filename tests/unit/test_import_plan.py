"""What is read is decided before a file is opened: by what it was, what the rules say, what was purged."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.importing.rules import Rules
from raddle.actions.importing.run_plan import (
    PURGED,
    FileProblem,
    LeftOut,
    PassedOver,
    Plan,
    SourceEntry,
    SourceFile,
    plan_import,
    unread,
)

NO_RULES = Rules()


def a_file(path: str = "/p/s.jsonl", session: str = "s", **fields: Any) -> SourceFile:
    given = {"agent": "claude-code", "size": 100, "mtime_ns": 5_000, "inode": 7, **fields}
    return SourceFile(path=path, session=session, **given)


def an_entry(file: SourceFile, **fields: Any) -> SourceEntry:
    known = {
        "thread_id": "T-1",
        "read_to": file.size,
        "lines": 3,
        "head": "h",
        "tail": "t",
        "generation": 0,
        **fields,
    }
    return SourceEntry(
        path=file.path,
        agent=file.agent,
        session=file.session,
        is_main=file.is_main,
        **{"size": file.size, "mtime_ns": file.mtime_ns, "inode": file.inode, **known},
    )


def known(*entries: SourceEntry) -> dict[str, SourceEntry]:
    return {entry.path: entry for entry in entries}


def paths(plan: Plan) -> list[list[str]]:
    return [[file.path for file in session.files] for session in plan.sessions]


def test_what_is_as_remembered_is_not_opened() -> None:
    file = a_file()
    plan = plan_import([file], known(an_entry(file)), NO_RULES)
    assert (plan.sessions, plan.unchanged) == ((), {"claude-code": 1})


def test_a_file_that_held_no_session_and_did_not_change_is_nothing_at_all() -> None:
    file = a_file()
    plan = plan_import([file], known(an_entry(file, thread_id="")), NO_RULES)
    assert (plan.sessions, plan.unchanged) == ((), {})


def test_size_time_or_inode_betray_a_change() -> None:
    file = a_file()
    for changed in (a_file(size=101), a_file(mtime_ns=5_001), a_file(inode=8)):
        (session,) = plan_import([changed], known(an_entry(file)), NO_RULES).sessions
        assert not session.is_new
        assert session.known == (file.path,)


def test_only_what_is_new_of_a_file_counts_as_to_be_read() -> None:
    file = a_file()
    (grown,) = plan_import([a_file(size=150)], known(an_entry(file)), NO_RULES).sessions
    (cut,) = plan_import([a_file(size=60)], known(an_entry(file)), NO_RULES).sessions
    (new,) = plan_import([file], {}, NO_RULES).sessions
    assert (grown.size, cut.size, new.size, new.is_new) == (50, 60, 100, True)


def test_the_largest_session_comes_first_so_that_no_worker_waits_for_it_at_the_end() -> None:
    files = [a_file(f"/p/{n}.jsonl", str(n), size=n) for n in (5, 900, 30)]
    assert [session.size for session in plan_import(files, {}, NO_RULES).sessions] == [900, 30, 5]


def test_a_main_file_comes_before_its_parts() -> None:
    parts = [a_file(f"/a/{n}.jsonl", is_main=False, size=n) for n in (3, 1)]
    plan = plan_import([*parts, a_file("/z.jsonl")], {}, NO_RULES)
    assert paths(plan) == [["/z.jsonl", "/a/1.jsonl", "/a/3.jsonl"]]


def test_two_main_files_of_one_session_are_read_apart_each_with_the_parts_beside_it() -> None:
    files = [
        a_file("/one/s.jsonl"),
        a_file("/two/s.jsonl"),
        a_file("/one/s/subagents/agent-a.jsonl", is_main=False),
        a_file("/two/s/subagents/agent-a.jsonl", is_main=False),
        a_file("/elsewhere/agent-b.jsonl", is_main=False),
    ]
    plan = plan_import(files, {}, NO_RULES)
    assert sorted(paths(plan)) == [
        ["/one/s.jsonl", "/elsewhere/agent-b.jsonl", "/one/s/subagents/agent-a.jsonl"],
        ["/two/s.jsonl", "/two/s/subagents/agent-a.jsonl"],
    ]
    assert len({session.key for session in plan.sessions}) == 2


def test_parts_without_a_main_file_are_together_unless_nothing_names_their_session() -> None:
    parts = [a_file(f"/a/{n}.jsonl", is_main=False) for n in (1, 2)]
    nameless = [a_file(f"/b/{n}.jsonl", "", is_main=False) for n in (1, 2)]
    plan = plan_import([*parts, *nameless], {}, NO_RULES)
    assert sorted(paths(plan)) == [["/a/1.jsonl", "/a/2.jsonl"], ["/b/1.jsonl"], ["/b/2.jsonl"]]


def test_a_part_belongs_to_a_main_file_that_only_the_ledger_knows() -> None:
    gone = an_entry(a_file("/p/s.jsonl"))
    (session,) = plan_import(
        [a_file("/p/s/subagents/agent-a.jsonl", is_main=False)], known(gone), NO_RULES
    ).sessions
    assert (session.known, session.is_new) == (("/p/s.jsonl",), False)


def test_a_part_of_another_main_file_of_that_name_is_none_of_this_ones() -> None:
    gone, part = a_file("/gone/s.jsonl"), a_file("/gone/s/subagents/agent-a.jsonl", is_main=False)
    before = known(an_entry(gone), an_entry(part, is_unplaced=True))
    (session,) = plan_import([a_file("/here/s.jsonl")], before, NO_RULES).sessions
    assert (session.known, session.unplaced, session.is_new) == ((), (), True)


def test_a_part_that_waits_for_its_place_is_named_when_its_session_changes() -> None:
    part = a_file("/p/s/subagents/agent-a.jsonl", is_main=False)
    before = known(an_entry(a_file()), an_entry(part, is_unplaced=True))
    assert plan_import([a_file(), part], before, NO_RULES).sessions == ()
    (session,) = plan_import([a_file(size=120), part], before, NO_RULES).sessions
    assert (session.files, session.unplaced) == ((a_file(size=120),), (part,))
    (session,) = plan_import(
        [a_file(), a_file(part.path, is_main=False, size=120)], before, NO_RULES
    ).sessions
    assert session.unplaced == ()


def test_sessions_of_two_agents_are_two_even_of_one_name() -> None:
    files = [a_file("/a.json", agent="loom"), a_file("/b.json", agent="quorum")]
    assert len(plan_import(files, {}, NO_RULES).sessions) == 2


def test_a_path_that_was_found_twice_is_read_once() -> None:
    assert paths(plan_import([a_file(), a_file()], {}, NO_RULES)) == [["/p/s.jsonl"]]


def test_a_rule_leaves_out_a_session_with_all_its_parts_whichever_file_it_fits() -> None:
    main = a_file("/p/s.jsonl", workspace="/home/me/clients/a")
    part = a_file("/p/s/subagents/agent-a.jsonl", is_main=False, workspace="/tmp/tree")
    plan = plan_import([part, main], {}, Rules(exclude=["/home/me/clients"]))
    assert plan.sessions == ()
    reason = "[import] exclude '/home/me/clients'"
    assert set(plan.left_out) == {
        LeftOut(path=part.path, reason=reason),
        LeftOut(path=main.path, reason=reason),
    }


def test_a_rule_that_fits_only_a_part_leaves_out_only_that() -> None:
    main = a_file("/p/s.jsonl", workspace="/home/me/open")
    part = a_file("/p/s/subagents/agent-a.jsonl", is_main=False, workspace="/home/me/secret")
    plan = plan_import([main, part], {}, Rules(exclude=["/home/me/secret/**"]))
    assert paths(plan) == [["/p/s.jsonl"]]
    assert [left.path for left in plan.left_out] == [part.path]


def test_what_was_purged_stays_gone_and_is_named_only_when_it_changed() -> None:
    file = a_file()
    before = known(an_entry(file))
    plan = plan_import([file], before, NO_RULES, purged={"T-1"})
    assert (plan.sessions, plan.left_out, plan.unchanged) == ((), (), {})
    plan = plan_import([a_file(size=120)], before, NO_RULES, purged={"T-1"})
    assert plan.left_out == (LeftOut(path=file.path, reason=PURGED),)
    part = a_file("/p/s/subagents/agent-a.jsonl", is_main=False)
    plan = plan_import([file, part], before, NO_RULES, purged={"T-1"})
    assert (plan.sessions, [left.path for left in plan.left_out]) == ((), [part.path])


def test_an_entry_made_unread_is_read_from_its_start_in_its_generation() -> None:
    file = a_file()
    entry = unread(an_entry(file, generation=3))
    (session,) = plan_import([file], known(entry), NO_RULES).sessions
    assert (session.is_new, session.size, entry.generation, entry.read_to) == (True, 100, 3, 0)


def test_since_passes_over_sessions_of_which_nothing_changed_after_it() -> None:
    files = [
        a_file("/old.jsonl", "old", mtime_ns=1_000_000),
        a_file("/new.jsonl", "new", mtime_ns=1_000_000),
        a_file("/new/agent-a.jsonl", "new", mtime_ns=9_000_000, is_main=False),
    ]
    assert paths(plan_import(files, {}, NO_RULES, since=5_000)) == [["/new.jsonl", "/new/agent-a.jsonl"]]


def test_what_could_not_be_looked_at_is_told_once() -> None:
    problem = FileProblem(path="/p", reason="permission denied")
    plan = plan_import([problem, a_file(), problem], {}, NO_RULES)
    assert (plan.problems, len(plan.sessions)) == ((problem,), 1)


@given(st.permutations(range(6)), st.integers(0, 63))
def test_the_order_of_finding_does_not_matter(order: list[int], seen: int) -> None:
    files = [
        a_file("/one/s.jsonl"),
        a_file("/two/s.jsonl"),
        a_file("/one/s/subagents/agent-a.jsonl", is_main=False),
        a_file("/two/s/subagents/agent-a.jsonl", is_main=False),
        a_file("/three/r.jsonl", "r"),
        a_file("/three/agent-b.jsonl", "q", is_main=False),
    ]
    before = known(*(an_entry(file) for at, file in enumerate(files) if seen >> at & 1))
    plan = plan_import([files[at] for at in order], before, NO_RULES)
    expected = plan_import(files, before, NO_RULES)
    assert plan.sessions == expected.sessions
    assert plan.unchanged == expected.unchanged
    read = [path for session in paths(plan) for path in session]
    assert sorted(read) == sorted(file.path for file in files if file.path not in before)


def test_what_was_found_and_not_looked_into_is_counted_by_the_reason() -> None:
    old, gone = a_file("/old.jsonl", "old", mtime_ns=1_000), a_file("/gone.jsonl", "gone", mtime_ns=9_000_000)
    empty = a_file("/empty.jsonl", "empty", mtime_ns=9_000_000)
    before = known(an_entry(gone), an_entry(empty, thread_id=""))
    plan = plan_import([old, gone, empty], before, NO_RULES, purged={"T-1"}, since=5_000)
    assert plan.passed_over == PassedOver(older=1, purged=1, empty=1)
    grown = plan_import([a_file("/gone.jsonl", "gone", size=120)], before, NO_RULES, purged={"T-1"})
    assert (grown.passed_over, len(grown.left_out)) == (PassedOver(), 1)
