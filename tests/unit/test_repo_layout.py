"""Where things stand in a store, and which names never become a path of it."""

from __future__ import annotations

import pytest

from raddle.model.errors import InvalidInput
from raddle.model.memory.repo_layout import (
    Conflict,
    artifact_file,
    check_artifact_id,
    check_key,
    check_namespace,
    check_new_key,
    check_node_id,
    check_phase,
    check_phases,
    check_project_id,
    conflict_path,
    entry_file,
    handoff_file,
    index_file,
    is_portable,
    is_safe,
    memory_file,
    moved_artifact_path,
    parse_conflict,
    place_of,
    run_file,
    summary_file,
)

RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"
ENTRY = "01M8PZKM3QH82B3EHB38JW5D7M"

HOSTILE = (
    *(
        "",
        ".",
        "..",
        "/",
        "a/b",
        "../x",
        "/etc/passwd",
        "a\\b",
        "..\\x",
        "C:",
        "a:b",
        "a\0b",
        "a\nb",
        "\x7f",
        "a\x85b",
    ),
    *(
        ".git",
        ".GIT",
        ".Git",
        ".g\u200cit",
        "\ufeff.git",
        ".gi\u200dt",
        ".git ",
        ".git.",
        ".git. .",
        "git~1",
        "GIT~1",
    ),
    *(
        ".git::$INDEX_ALLOCATION",
        ".git:x",
        "\uff0egit",
        ".\uff47it",
        ".g\u0131t",
        "git~1 ",
        "git~2.",
        ".\uff27\uff29\uff34",
    ),
    *(".gitmodules", ".GitAttributes", ".gitignore", ".mailmap", "GITMOD~1", "gi7eba~1"),
    *(
        "con",
        "CON",
        "con.txt",
        "Aux.md",
        "nul",
        "prn.tar.gz",
        "com1",
        "LPT9.x",
        "com\u00b9",
        "conin$",
        "con .txt",
    ),
    *("a.", "a ", " a", "a<b", "a>b", 'a"b', "a|b", "a?b", "a*b", "a\uff1ab", "NOTES~1", "note~12.md"),
    *("a\u200bb", "a\u202eb", "\u2028", "\ud800", "x" * 181, "\u00e9" * 91),
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_becomes_no_path(name: str) -> None:
    for refuse in (check_phase, check_namespace, check_artifact_id):
        with pytest.raises(InvalidInput) as refused:
            refuse(name)
        assert refused.value.message.isprintable()
    parts = [name] if name != "a/b" else []
    for key in [key for part in parts for key in (f"{part}/x", f"x/{part}", f"x/{part}/y", part)]:
        with pytest.raises(InvalidInput):
            memory_file("notes", key)
    with pytest.raises(InvalidInput):
        artifact_file(RUN, "build", name, ".txt")
    with pytest.raises(InvalidInput):
        run_file(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../x", "-x", "a b", "a\0", ".git", "é", "a\n", "x" * 65]
)
def test_an_id_that_stands_in_files_is_plain(name: str) -> None:
    for refuse in (check_project_id, check_node_id):
        with pytest.raises(InvalidInput):
            refuse(name)


@pytest.mark.parametrize(
    "name",
    [
        ".github",
        "..x",
        "...x",
        "git",
        "legit",
        "notes.git",
        "caf\u00e9",
        "日本語",
        "a b",
        "COM",
        "con1",
        "x~y",
        "🧶",
        "AGENTS.md",
    ],
)
def test_a_harmless_name_is_taken(name: str) -> None:
    assert check_namespace(name) == name
    assert memory_file("notes", f"deep/{name}") == f"memory/notes/deep/{name}"


def test_one_name_in_two_unicode_forms_is_one_path() -> None:
    assert memory_file("notes", "cafe\u0301") == memory_file("notes", "caf\u00e9")


@pytest.mark.parametrize(
    "path",
    ["memory/n/.git/hooks/x", "a/../b", "/etc/x", "a//b", "a\\b", "memory/n/.GIT\u200c/x", "x/\x00", ""],
)
def test_a_tree_may_bring_paths_that_never_reach_a_disk(path: str) -> None:
    assert not is_safe(path)
    assert place_of(path).kind == "other"


@pytest.mark.parametrize(
    "path", ["memory/n/a:b", "memory/n/aux.md", "memory/n/a ", "memory/n/.gitignore", "memory/n/e\u0301"]
)
def test_what_is_only_not_portable_can_be_read(path: str) -> None:
    assert is_safe(path)
    assert not is_portable(path)
    assert place_of(path).kind == "memory"


def test_what_a_store_writes_is_portable() -> None:
    for path in (
        run_file(RUN),
        index_file(RUN),
        "project.yaml",
        ".gitattributes",
        "runs/.gitkeep",
        memory_file("n", "a/b"),
    ):
        assert is_portable(path)


def test_every_path_is_read_as_what_it_was_spelled_for() -> None:
    spelled = {
        "run": run_file(RUN),
        "index": index_file(RUN),
        "summary": summary_file(RUN, "build"),
        "handoff": handoff_file(RUN, "build"),
        "entry": entry_file(RUN, "build", 7, ENTRY),
        "artifact": artifact_file(RUN, "build", "model", ".bin"),
        "memory": memory_file("notes", "deep/key.md"),
        "project": "project.yaml",
        "attributes": ".gitattributes",
        "other": "README.md",
    }
    assert {kind: place_of(path).kind for kind, path in spelled.items()} == {kind: kind for kind in spelled}
    entry = place_of(spelled["entry"])
    assert spelled["entry"] == f"runs/{RUN}/phases/build/entries/0007-{ENTRY}.json"
    assert (entry.run_id, entry.phase, entry.seq, entry.entry_id) == (RUN, "build", 7, ENTRY)
    memory = place_of(spelled["memory"])
    assert (memory.namespace, memory.key, memory.name) == ("notes", "deep/key.md", "key.md")


@pytest.mark.parametrize(
    "path",
    [
        f"runs/{RUN}/phases/build/entries/x.json",
        f"runs/{RUN}/other",
        "runs/x",
        "memory/notes",
        f"runs/{RUN}/phases/build",
    ],
)
def test_what_has_no_known_shape_is_other(path: str) -> None:
    assert place_of(path).kind == "other"


def test_seq_never_breaks_a_name() -> None:
    assert place_of(entry_file(RUN, "p", 10**12, ENTRY)).seq == 999_999_999
    assert place_of(entry_file(RUN, "p", -1, ENTRY)).seq == 0


def test_a_conflict_says_what_it_stands_beside() -> None:
    path = conflict_path("memory/notes/a.md", "node-6f7ea912bd3c", ENTRY)
    assert path == f"memory/notes/a.md.conflict-node-6f7ea912bd3c-{ENTRY}"
    place = place_of(path)
    assert (place.kind, place.namespace, place.key) == (
        "conflict",
        "notes",
        path.removeprefix("memory/notes/"),
    )
    assert place.conflict == Conflict(of="memory/notes/a.md", node_id="node-6f7ea912bd3c", conflict_id=ENTRY)
    with pytest.raises(InvalidInput, match="the name of a conflict"):
        check_key(place.key)


@pytest.mark.parametrize("node", ["../../x", "", "a/b", "é", "x" * 90, "-a", "a.b", "\0"])
def test_no_node_id_leads_a_conflict_elsewhere(node: str) -> None:
    for path in (
        conflict_path("memory/n/k", node, ENTRY),
        moved_artifact_path(f"runs/{RUN}/phases/p/artifacts/k.png", node, ENTRY),
    ):
        assert is_safe(path)
        assert is_portable(path)
        conflict = parse_conflict(path)
        assert conflict is not None
        assert conflict.of in ("memory/n/k", f"runs/{RUN}/phases/p/artifacts/k.png")


def test_the_name_of_a_conflict_always_fits() -> None:
    for name in ("x" * 255, "é" * 127):
        path = conflict_path(f"memory/n/{name}", "n" * 40, ENTRY)
        assert len(path.rpartition("/")[2].encode()) <= 255
        assert parse_conflict(path) is not None
    longest = "é" * 90
    assert parse_conflict(conflict_path(f"memory/n/{longest}", "n" * 40, ENTRY)) == Conflict(
        of=f"memory/n/{longest}", node_id="n" * 18, conflict_id=ENTRY
    )


def test_a_moved_artifact_keeps_its_ending() -> None:
    assert moved_artifact_path("a/b/plot.png", "n", ENTRY) == f"a/b/plot.conflict-n-{ENTRY}.png"
    assert moved_artifact_path("a/b.c/plot", "n", ENTRY) == f"a/b.c/plot.conflict-n-{ENTRY}"
    assert moved_artifact_path("a/.hidden", "n", ENTRY) == f"a/.hidden.conflict-n-{ENTRY}"


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("Foo", "foo"),
        ("cafe\u0301", "CAF\u00c9"),
        ("a", "a/b"),
        ("a/b", "a"),
        ("A/c", "a"),
        ("Foo/x", "foo/y"),
        ("stra\u00dfe", "STRASSE"),
    ],
)
def test_a_key_that_a_file_system_could_not_tell_apart_is_refused(key: str, other: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_new_key(key, ["zzz", other])
    assert refused.value.hint


def test_a_key_that_is_there_may_be_written_again() -> None:
    assert check_new_key("a/b", ["a/b", "a/c"]) == "a/b"
    assert check_new_key("a/d", ["a/b", "ab"]) == "a/d"


def test_a_key_is_bounded_in_length_and_depth() -> None:
    assert check_key("/".join("x" * 16)) == "/".join("x" * 16)
    for key in ("/".join("x" * 17), "/".join(["x" * 99] * 5)):
        with pytest.raises(InvalidInput):
            check_key(key)


def test_a_pipeline_has_no_twins() -> None:
    assert check_phases(["build", "test"]) == ("build", "test")
    for phases in ([], ["build", "Build"], ["a", "a"], ["caf\u00e9", "cafe\u0301"]):
        with pytest.raises(InvalidInput):
            check_phases(phases)


def test_a_project_is_a_slug() -> None:
    assert check_project_id("my-project.2") == "my-project.2"
    for text in ("My", "-x", "a b", "x" * 65):
        with pytest.raises(InvalidInput):
            check_project_id(text)
